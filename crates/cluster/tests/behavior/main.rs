//! How calls are tried, picked and reported, seen from outside.

mod doubles;
mod failfast;
mod failover;
mod selection;
