//! The interface-level registry over ZooKeeper keeps the promises of `Registry`.
#![allow(clippy::unwrap_used)] // a failed set-up is a failed test

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use dubhe_common::Url;
use dubhe_core::registry::{Registry, RegistryFactory};
use dubhe_registry::TreeRegistryFactory;
use dubhe_registry_zookeeper::ZookeeperTreeFactory;
use dubhe_testkit::suites::{Faults, RegistryFixture};
use dubhe_testkit::{BreakableProxy, ZooKeeper};
use tokio::sync::Mutex;

dubhe_testkit::registry_suite!(Fixture::new().await);

/// One server for the tests that run at the same time; it ends with the last of them.
static SERVER: Mutex<Weak<ZooKeeper>> = Mutex::const_new(Weak::new());

static ROOTS: AtomicUsize = AtomicUsize::new(0);

struct Fixture {
    server: Arc<ZooKeeper>,
    root: String,
}

impl Fixture {
    async fn new() -> Self {
        let mut shared = SERVER.lock().await;
        let server = match shared.upgrade() {
            Some(server) => server,
            None => Arc::new(ZooKeeper::builder().tick(Duration::from_millis(250)).start().await.unwrap()),
        };
        *shared = Arc::downgrade(&server);
        Self { server, root: format!("suite-{}", ROOTS.fetch_add(1, Ordering::Relaxed)) }
    }
}

#[async_trait]
impl RegistryFixture for Fixture {
    async fn open(&self, params: &str) -> (Arc<dyn Registry>, Box<dyn Faults>) {
        let proxy = BreakableProxy::start(self.server.address()).await.unwrap();
        let url = format!(
            "zookeeper://{}?session=2500&timeout=10000&file.cache=false&group={}&{params}",
            proxy.address(),
            self.root
        );
        let factory = TreeRegistryFactory::new().with("zookeeper", Arc::new(ZookeeperTreeFactory));
        let registry = factory.open(&Url::parse(&url).unwrap()).unwrap();
        (Arc::clone(&registry), Box::new(Broken { proxy, registry }))
    }
}

struct Broken {
    proxy: BreakableProxy,
    registry: Arc<dyn Registry>,
}

#[async_trait]
impl Faults for Broken {
    async fn cut(&self) {
        self.proxy.refuse().await;
        self.proxy.cut().await;
    }

    async fn restore(&self) {
        self.proxy.accept().await.unwrap();
    }

    /// Longer than the session may be silent: the server ends it, and the client finds a new one.
    async fn expire(&self) {
        self.proxy.blackhole(true);
        // The registry is unavailable once its session is given up; the server has ended it before.
        while self.registry.is_available() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(Duration::from_millis(4_000)).await;
        self.proxy.blackhole(false);
        self.proxy.cut().await;
    }
}
