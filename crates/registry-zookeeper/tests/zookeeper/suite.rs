//! What every tree promises.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use dubhe_common::Url;
use dubhe_core::tree::{SessionState, Tree, TreeFactory};
use dubhe_registry_zookeeper::ZookeeperTreeFactory;
use dubhe_testkit::suites::{Faults, TreeFixture};
use dubhe_testkit::{BreakableProxy, ZooKeeper};
use tokio::sync::Mutex;

use crate::support::until;

dubhe_testkit::tree_suite!(Fixture::new().await);

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
        Self { server, root: format!("/suite-{}", ROOTS.fetch_add(1, Ordering::Relaxed)) }
    }
}

#[async_trait]
impl TreeFixture for Fixture {
    async fn open(&self) -> (Arc<dyn Tree>, Box<dyn Faults>) {
        let proxy = BreakableProxy::start(self.server.address()).await.unwrap();
        let url = format!("zookeeper://{}?session=2500&timeout=2000", proxy.address());
        let tree = ZookeeperTreeFactory.open(&Url::parse(&url).unwrap()).unwrap();
        (Arc::clone(&tree), Box::new(Broken { proxy, tree }))
    }

    fn root(&self) -> String {
        self.root.clone()
    }
}

struct Broken {
    proxy: BreakableProxy,
    tree: Arc<dyn Tree>,
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

    /// The client declares its session over later than the server does.
    async fn expire(&self) {
        self.proxy.blackhole(true);
        until(&mut self.tree.session(), |state| *state == SessionState::Connecting).await;
        self.proxy.blackhole(false);
        self.proxy.cut().await;
    }
}
