//! The registry over the in-memory tree keeps the promises of `Registry`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use async_trait::async_trait;
use dubhe_common::Url;
use dubhe_registry::{MemoryStore, MemoryTree, Registry, TreeRegistry};
use dubhe_testkit::suites::{Faults, RegistryFixture};

struct Memory(MemoryStore);

struct MemoryFaults(MemoryTree);

#[async_trait]
impl RegistryFixture for Memory {
    async fn open(&self, params: &str) -> (Arc<dyn Registry>, Box<dyn Faults>) {
        let tree = self.0.session("test");
        let url = Url::parse(&format!("memory://test?{params}")).unwrap();
        (Arc::new(TreeRegistry::new(&url, Arc::new(tree.clone()))), Box::new(MemoryFaults(tree)))
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

dubhe_testkit::registry_suite!(Memory(MemoryStore::new()));
