//! How calls are tried, picked and reported, seen from outside.

#![allow(clippy::unwrap_used, reason = "a double that fails ends its test")]

mod doubles;
mod failfast;
mod failover;
mod selection;
mod zone_aware;
