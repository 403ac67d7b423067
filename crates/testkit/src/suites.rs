//! Behaviour suites: every promise of a contract is a test, run for every implementation.
//!
//! An implementation's crate writes a fixture (how to open a session, how to break it) and one line:
//!
//! ```text
//! dubhe_testkit::tree_suite!(MyFixture::new().await);
//! ```
//!
//! Nothing here sleeps; what is waited for has [`PATIENCE`].

#![allow(clippy::unwrap_used, reason = "a suite is test code: it fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dubhe_core::config_center::ConfigCenter;
use dubhe_core::registry::Registry;
use dubhe_core::tree::Tree;

pub mod config_center;
pub mod registry;
pub mod tree;

/// How long a suite waits for what must come. Long, since a real store's session has to time out in between.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Breaks and mends one session's connection with its store.
#[async_trait]
pub trait Faults: Send + Sync {
    /// Cuts the connection; the session lives on in the store. Returns when it is cut, not when that is noticed.
    async fn cut(&self);

    /// Restores the connection.
    async fn restore(&self);

    /// Makes the store end the session, deleting its ephemeral nodes, and leaves the connection working. Returns when
    /// the store has done it or the client has noticed.
    async fn expire(&self);
}

/// Opens trees on one store: each a session of its own.
#[async_trait]
pub trait TreeFixture: Send + Sync {
    /// A new session, and how to break it.
    async fn open(&self) -> (Arc<dyn Tree>, Box<dyn Faults>);

    /// A path below which no other test works: `/suite-17`.
    fn root(&self) -> String;
}

/// Opens registries on one store: each a session of its own.
#[async_trait]
pub trait RegistryFixture: Send + Sync {
    /// A new registry whose URL has these parameters (`check=false&timeout=500`; may be empty), and how to break its
    /// session. No other test works below its root.
    async fn open(&self, params: &str) -> (Arc<dyn Registry>, Box<dyn Faults>);
}

/// Opens config centres on one store: each a session of its own.
#[async_trait]
pub trait ConfigCenterFixture: Send + Sync {
    /// A new config centre, and how to break its session. No other test works in its namespace.
    async fn open(&self) -> (Arc<dyn ConfigCenter>, Box<dyn Faults>);
}
