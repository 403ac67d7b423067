//! Whole applications in one process, over real sockets.

mod calls;
mod changes;
mod configuration;
mod endings;
mod extensions;
mod faults;
mod support;
