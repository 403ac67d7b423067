//! The tree over real servers that are paused, killed, cut off and restarted.

#![allow(clippy::unwrap_used)] // a failed set-up is a failed test

mod chaos;
mod failover;
mod intents;
mod limits;
mod login;
mod observations;
mod sessions;
mod suite;
mod support;
