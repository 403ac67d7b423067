//! What the facade leaves in a registry, over both stores (in memory and a real ZooKeeper): the tree that Java leaves, and when which
//! part of it is there.

#![allow(clippy::unwrap_used)] // a failed set-up is a failed test

mod applications;
mod differences;
mod endings;
mod excuses;
mod groups;
mod recorded;
mod revisions;
mod same_tree;
mod services;
mod stores;
mod updates;
