//! The in-memory tree keeps the promises of `Tree`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use async_trait::async_trait;
use dubhe_core::tree::Tree;
use dubhe_registry::{MemoryStore, MemoryTree};
use dubhe_testkit::suites::{Faults, TreeFixture};

struct Memory(MemoryStore);

struct MemoryFaults(MemoryTree);

#[async_trait]
impl TreeFixture for Memory {
    async fn open(&self) -> (Arc<dyn Tree>, Box<dyn Faults>) {
        let tree = self.0.session("test");
        (Arc::new(tree.clone()), Box::new(MemoryFaults(tree)))
    }

    fn root(&self) -> String {
        "/suite".to_owned()
    }
}

#[async_trait]
impl Faults for MemoryFaults {
    async fn cut(&self) {
        self.0.suspend();
    }

    async fn restore(&self) {
        self.0.resume();
    }

    async fn expire(&self) {
        self.0.expire();
    }
}

dubhe_testkit::tree_suite!(Memory(MemoryStore::new()));
