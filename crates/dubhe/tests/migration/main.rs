//! Both models of discovery, and the road from one to the other, seen from calls over real sockets.
#![allow(clippy::unwrap_used)] // a failed set-up is a failed test

mod endings;
mod faults;
mod fleets;
mod mapping;
mod metadata;
mod modes;
mod nodes;
mod registries;
mod rules;
mod steps;
mod support;
