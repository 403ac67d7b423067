//! The stores that every test runs over, and how to wait.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use dubhe_common::Url;
use dubhe_core::tree::{SessionState, Tree, TreeFactory};
use dubhe_registry::{MemoryStore, MemoryTree};
use dubhe_registry_zookeeper::ZookeeperTreeFactory;
use dubhe_testkit::suites::Faults;
use dubhe_testkit::{BreakableProxy, ZooKeeper};
use tokio::sync::{Mutex, watch};
use tokio::time::timeout;

/// Longer than anything may take on a loaded machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Makes each test once over memory and once over ZooKeeper.
macro_rules! on_every_store {
    ($($name:ident)*) => {
        mod in_memory {
            $(
                #[tokio::test]
                async fn $name() {
                    super::$name(&$crate::support::InMemory::default()).await;
                }
            )*
        }
        mod on_zookeeper {
            $(
                #[tokio::test]
                async fn $name() {
                    super::$name(&$crate::support::OnZookeeper::new().await).await;
                }
            )*
        }
    };
}
pub(crate) use on_every_store;

/// Opens sessions with one store.
#[async_trait]
pub(crate) trait Store: Send + Sync {
    /// A new session, and how to break it.
    async fn open(&self) -> (Arc<dyn Tree>, Box<dyn Faults>);

    /// A name that no other test uses.
    fn name(&self) -> &str;
}

#[derive(Default)]
pub(crate) struct InMemory(MemoryStore);

struct MemoryFaults(MemoryTree);

#[async_trait]
impl Store for InMemory {
    async fn open(&self) -> (Arc<dyn Tree>, Box<dyn Faults>) {
        let tree = self.0.session("test");
        (Arc::new(tree.clone()), Box::new(MemoryFaults(tree)))
    }

    fn name(&self) -> &str {
        "test"
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

/// One server for the tests that run at the same time; it ends with the last of them.
static SERVER: Mutex<Weak<ZooKeeper>> = Mutex::const_new(Weak::new());

static NAMES: AtomicUsize = AtomicUsize::new(0);

pub(crate) struct OnZookeeper {
    server: Arc<ZooKeeper>,
    name: String,
}

impl OnZookeeper {
    pub(crate) async fn new() -> Self {
        let mut shared = SERVER.lock().await;
        let server = match shared.upgrade() {
            Some(server) => server,
            None => Arc::new(ZooKeeper::builder().tick(Duration::from_millis(250)).start().await.unwrap()),
        };
        *shared = Arc::downgrade(&server);
        Self { server, name: format!("test-{}", NAMES.fetch_add(1, Ordering::Relaxed)) }
    }
}

#[async_trait]
impl Store for OnZookeeper {
    async fn open(&self) -> (Arc<dyn Tree>, Box<dyn Faults>) {
        let proxy = BreakableProxy::start(self.server.address()).await.unwrap();
        let url = format!("zookeeper://{}?session=2500&timeout=10000", proxy.address());
        let tree = ZookeeperTreeFactory.open(&Url::parse(&url).unwrap()).unwrap();
        (Arc::clone(&tree), Box::new(Broken { proxy, tree }))
    }

    fn name(&self) -> &str {
        &self.name
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

/// Waits until a condition holds, and returns the value for which it did.
pub(crate) async fn until<T: Clone + std::fmt::Debug>(
    receiver: &mut watch::Receiver<T>,
    condition: impl FnMut(&T) -> bool,
) -> T {
    let value = timeout(LONG, receiver.wait_for(condition)).await.map(|value| value.unwrap().clone());
    value.unwrap_or_else(|_| panic!("still {:?}", *receiver.borrow()))
}
