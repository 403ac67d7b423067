//! Application-level discovery over both stores: in memory and a real ZooKeeper.

#![allow(clippy::unwrap_used)] // a failed set-up is a failed test

mod announcements;
mod config_center;
mod consuming;
mod instances;
mod mapping;
mod metadata;
mod metadata_service;
mod support;
