//! Whole applications in one process, over real sockets.
#![allow(clippy::unwrap_used)] // a failed set-up is a failed test

mod calls;
mod changes;
mod configuration;
mod endings;
mod extensions;
mod faults;
mod ipv6;
mod registries;
mod reports;
mod support;
