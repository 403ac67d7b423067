//! The stores that every test runs over, what is in them, and who looks at what.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use dubhe::Url;
use dubhe_core::observation::Observation;
use dubhe_core::tree::{Children, NodeData, NodeKind, SessionState, Tree, TreeError, TreeFactory};
use dubhe_registry::MemoryStore;
use dubhe_registry_zookeeper::ZookeeperTreeFactory;
use dubhe_testkit::ZooKeeper;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{OwnedMutexGuard, watch};

/// Longer than anything may take on a loaded machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Makes each test once over memory and once over ZooKeeper.
macro_rules! on_every_store {
    ($($name:ident)*) => {
        mod in_memory {
            $(
                #[tokio::test]
                async fn $name() {
                    super::$name(&$crate::stores::InMemory::default()).await;
                }
            )*
        }
        mod on_zookeeper {
            $(
                #[tokio::test]
                async fn $name() {
                    super::$name(&$crate::stores::OnZookeeper::new().await).await;
                }
            )*
        }
    };
}
pub(crate) use on_every_store;

/// A node as it is.
#[derive(Clone, Debug, serde::Deserialize)]
pub(crate) struct Node {
    pub(crate) path: String,
    pub(crate) data: String,
    pub(crate) ephemeral: bool,
    /// What else is known of its kind.
    pub(crate) node_type: Option<String>,
}

/// An empty registry of the test's own.
#[async_trait]
pub(crate) trait Store: Send + Sync {
    /// Name and address of the registry.
    fn registry(&self) -> (&'static str, String);

    /// Sessions for applications.
    fn factory(&self) -> Arc<dyn TreeFactory>;

    /// A session to look around with.
    fn look(&self) -> &Arc<dyn Tree>;

    /// The paths of what goes with its session.
    async fn ephemeral(&self) -> BTreeSet<String>;

    /// All nodes, those of the store's own not counted.
    async fn nodes(&self) -> Vec<Node> {
        let mut found = BTreeMap::new();
        collect(&**self.look(), String::new(), &mut found).await;
        let ephemeral = self.ephemeral().await;
        let node = |(path, data): (String, String)| Node {
            ephemeral: ephemeral.contains(&path),
            path,
            data,
            node_type: None,
        };
        found.into_iter().map(node).collect()
    }

    /// Paths of all nodes.
    async fn paths(&self) -> Vec<String> {
        self.nodes().await.into_iter().map(|node| node.path).collect()
    }

    /// What is at `path`.
    async fn text(&self, path: &str) -> String {
        let node = self.look().read(path).await.unwrap().unwrap_or_else(|| panic!("nothing at {path}"));
        String::from_utf8(node.bytes.to_vec()).unwrap()
    }
}

fn collect<'a>(
    tree: &'a dyn Tree,
    parent: String,
    found: &'a mut BTreeMap<String, String>,
) -> BoxFuture<'a, ()> {
    Box::pin(async move {
        let at = if parent.is_empty() { "/" } else { &*parent };
        let Some(children) = tree.list(at).await.unwrap() else { return };
        for child in children.iter() {
            let path = format!("{parent}/{child}");
            if path == "/zookeeper" {
                continue;
            }
            // It may have gone since.
            let Some(node) = tree.read(&path).await.unwrap() else { continue };
            found.insert(path.clone(), String::from_utf8(node.bytes.to_vec()).unwrap());
            collect(tree, path, found).await;
        }
    })
}

pub(crate) struct InMemory {
    store: MemoryStore,
    look: Arc<dyn Tree>,
}

impl Default for InMemory {
    fn default() -> Self {
        let store = MemoryStore::new();
        Self { look: store.connect(), store }
    }
}

#[async_trait]
impl Store for InMemory {
    fn registry(&self) -> (&'static str, String) {
        ("memory", "memory://local".to_owned())
    }

    fn factory(&self) -> Arc<dyn TreeFactory> {
        Arc::new(dubhe_registry::MemoryTreeFactory::new(self.store.clone()))
    }

    fn look(&self) -> &Arc<dyn Tree> {
        &self.look
    }

    async fn ephemeral(&self) -> BTreeSet<String> {
        let paths = self.store.paths().into_iter();
        paths.filter(|(_, ephemeral)| *ephemeral).map(|(path, _)| path.to_string()).collect()
    }
}

/// One server for all tests, that ends with the last of them; whoever holds the lock has it alone.
static SERVER: std::sync::LazyLock<Arc<tokio::sync::Mutex<Weak<ZooKeeper>>>> =
    std::sync::LazyLock::new(Arc::default);

pub(crate) struct OnZookeeper {
    server: Arc<ZooKeeper>,
    look: Arc<dyn Tree>,
    _alone: OwnedMutexGuard<Weak<ZooKeeper>>,
}

impl OnZookeeper {
    pub(crate) async fn new() -> Self {
        let mut alone = Arc::clone(&SERVER).lock_owned().await;
        let server = match alone.upgrade() {
            Some(server) => server,
            None => Arc::new(ZooKeeper::builder().tick(Duration::from_millis(250)).start().await.unwrap()),
        };
        *alone = Arc::downgrade(&server);
        let url = format!("zookeeper://{}?timeout=10000", server.address());
        let look = ZookeeperTreeFactory.open(&Url::parse(&url).unwrap()).unwrap();
        let mut found = BTreeMap::new();
        collect(&*look, String::new(), &mut found).await;
        for path in found.keys().rev() {
            look.delete(path).await.unwrap();
        }
        Self { server, look, _alone: alone }
    }
}

#[async_trait]
impl Store for OnZookeeper {
    fn registry(&self) -> (&'static str, String) {
        ("zookeeper", format!("zookeeper://{}", self.server.address()))
    }

    fn factory(&self) -> Arc<dyn TreeFactory> {
        Arc::new(ZookeeperTreeFactory)
    }

    fn look(&self) -> &Arc<dyn Tree> {
        &self.look
    }

    async fn ephemeral(&self) -> BTreeSet<String> {
        let dump = self.server.four_letter("dump").await.unwrap();
        dump.lines().map(str::trim).filter(|line| line.starts_with('/')).map(str::to_owned).collect()
    }
}

/// Opens sessions and keeps what is looked at in them.
#[derive(Debug)]
pub(crate) struct Observed {
    inner: Arc<dyn TreeFactory>,
    paths: Looked,
}

/// The paths that were looked at.
pub(crate) type Looked = Arc<Mutex<BTreeSet<String>>>;

impl Observed {
    pub(crate) fn new(store: &dyn Store) -> (Arc<Self>, Looked) {
        let paths = Looked::default();
        (Arc::new(Self { inner: store.factory(), paths: Arc::clone(&paths) }), paths)
    }
}

impl TreeFactory for Observed {
    fn open(&self, url: &Url) -> Result<Arc<dyn Tree>, TreeError> {
        Ok(Arc::new(ObservedTree { inner: self.inner.open(url)?, paths: Arc::clone(&self.paths) }))
    }
}

#[derive(Debug)]
struct ObservedTree {
    inner: Arc<dyn Tree>,
    paths: Looked,
}

impl ObservedTree {
    fn note(&self, path: &str) {
        self.paths.lock().insert(path.to_owned());
    }
}

#[async_trait]
impl Tree for ObservedTree {
    fn address(&self) -> &str {
        self.inner.address()
    }

    fn ensure(&self, path: &str, data: Bytes, kind: NodeKind) {
        self.inner.ensure(path, data, kind);
    }

    fn withdraw(&self, path: &str) {
        self.inner.withdraw(path);
    }

    async fn settled(&self, path: &str, timeout: Duration) -> Result<(), TreeError> {
        self.inner.settled(path, timeout).await
    }

    fn children(&self, path: &str, create: bool) -> watch::Receiver<Observation<Option<Children>>> {
        self.note(path);
        self.inner.children(path, create)
    }

    fn data(&self, path: &str) -> watch::Receiver<Observation<Option<NodeData>>> {
        self.note(path);
        self.inner.data(path)
    }

    async fn list(&self, path: &str) -> Result<Option<Children>, TreeError> {
        self.note(path);
        self.inner.list(path).await
    }

    async fn read(&self, path: &str) -> Result<Option<NodeData>, TreeError> {
        self.note(path);
        self.inner.read(path).await
    }

    async fn create(&self, path: &str, data: Bytes) -> Result<bool, TreeError> {
        self.inner.create(path, data).await
    }

    async fn set(&self, path: &str, data: Bytes, expected: Option<i32>) -> Result<bool, TreeError> {
        self.inner.set(path, data, expected).await
    }

    async fn delete(&self, path: &str) -> Result<bool, TreeError> {
        self.inner.delete(path).await
    }

    fn session(&self) -> watch::Receiver<SessionState> {
        self.inner.session()
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}

/// Waits until `holds`, and says what did not.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waited = tokio::time::timeout(LONG, async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(waited.await.is_ok(), "waited in vain: {what}");
}
