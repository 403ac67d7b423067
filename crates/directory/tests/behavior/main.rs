//! What a directory makes of a registry's views, of rules and of connections, seen from outside.

#![allow(clippy::unwrap_used, reason = "a double that fails ends its test")]

mod addresses;
mod connectivity;
mod doubles;
mod empty_lists;
mod life;
mod overrides;
mod snapshots;
