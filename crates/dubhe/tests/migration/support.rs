//! Fleets over memory and over ZooKeeper, applications of theirs, and how to wait.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use dubhe::config::{ProtocolConfig, RegistryConfig};
use dubhe::core::config_center::ConfigCenter;
use dubhe::core::tree::{Tree, TreeFactory};
use dubhe::{
    Connected, Dubhe, DubheBuilder, ExportedService, MemoryStore, MigrationExplanation, SideKind, Url,
};
use dubhe_discovery::TreeConfigCenter;
use dubhe_registry_zookeeper::ZookeeperTreeFactory;
use dubhe_testkit::ZooKeeper;
use tokio::sync::{Mutex, Notify};

/// Longer than anything may take on a loaded machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) const SHOP: &str = "dev.dubhe.test.Shop";
/// The application of all consumers here.
pub(crate) const BUYER: &str = "buyer";

#[dubhe::service(interface = "dev.dubhe.test.Shop")]
pub(crate) trait Shop {
    async fn who(&self) -> dubhe::Result<String>;
    async fn wait(&self) -> dubhe::Result<String>;
}

#[dubhe::service(interface = "dev.dubhe.test.Desk")]
pub(crate) trait Desk {
    async fn ask(&self) -> dubhe::Result<String>;
}

/// What the test knows of a shop that serves.
#[derive(Debug, Default)]
pub(crate) struct Inside {
    pub(crate) served: AtomicUsize,
    pub(crate) waiting: AtomicUsize,
    pub(crate) release: Notify,
}

pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) inside: Arc<Inside>,
}

impl Named {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), inside: Arc::default() }
    }
}

impl Shop for Named {
    async fn who(&self) -> dubhe::Result<String> {
        self.inside.served.fetch_add(1, Ordering::SeqCst);
        Ok(self.name.clone())
    }

    async fn wait(&self) -> dubhe::Result<String> {
        let released = self.inside.release.notified();
        self.inside.waiting.fetch_add(1, Ordering::SeqCst);
        released.await;
        Ok(self.name.clone())
    }
}

impl Desk for Named {
    async fn ask(&self) -> dubhe::Result<String> {
        Ok(self.name.clone())
    }
}

/// Makes each test once over memory and once over ZooKeeper.
macro_rules! on_every_store {
    ($($name:ident)*) => {
        mod in_memory {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    super::$name($crate::support::Fleet::in_memory()).await;
                }
            )*
        }
        mod on_zookeeper {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    super::$name($crate::support::Fleet::on_zookeeper().await).await;
                }
            )*
        }
    };
}
pub(crate) use on_every_store;

/// A fleet on one registry, with roots that no other fleet has.
#[derive(Clone)]
pub(crate) struct Fleet {
    store: Store,
    group: Option<String>,
}

#[derive(Clone)]
enum Store {
    Memory(MemoryStore),
    Zookeeper(Arc<ZooKeeper>),
}

/// One server for the tests that run at the same time; it ends with the last of them.
static SERVER: Mutex<Weak<ZooKeeper>> = Mutex::const_new(Weak::new());

static GROUPS: AtomicUsize = AtomicUsize::new(0);

impl Fleet {
    pub(crate) fn in_memory() -> Self {
        Self { store: Store::Memory(MemoryStore::new()), group: None }
    }

    pub(crate) async fn on_zookeeper() -> Self {
        let mut shared = SERVER.lock().await;
        let server = match shared.upgrade() {
            Some(server) => server,
            None => Arc::new(zookeeper().await),
        };
        *shared = Arc::downgrade(&server);
        Self::on(server, Some(format!("fleet-{}", GROUPS.fetch_add(1, Ordering::Relaxed))))
    }

    /// On a server of its own, to be broken.
    pub(crate) fn on(server: Arc<ZooKeeper>, group: Option<String>) -> Self {
        Self { store: Store::Zookeeper(server), group }
    }

    /// The same store, another root.
    pub(crate) fn group(&self, group: &str) -> Self {
        let group = self.group.as_ref().map_or(group.to_owned(), |own| format!("{own}-{group}"));
        Self { store: self.store.clone(), group: Some(group) }
    }

    /// The store in memory.
    pub(crate) fn memory(&self) -> &MemoryStore {
        match &self.store {
            Store::Memory(store) => store,
            Store::Zookeeper(_) => panic!("this fleet is on ZooKeeper"),
        }
    }

    pub(crate) fn address(&self) -> String {
        match &self.store {
            Store::Memory(_) => "memory://local".to_owned(),
            Store::Zookeeper(server) => format!("zookeeper://{}", server.address()),
        }
    }

    pub(crate) fn registry(&self) -> RegistryConfig {
        RegistryConfig {
            session: Some(5_000),
            timeout: Some(20_000),
            file_cache: Some(false),
            group: self.group.clone(),
            ..RegistryConfig::at(self.address())
        }
    }

    /// An application that has no registry yet.
    pub(crate) fn bare(&self, name: &str) -> DubheBuilder {
        let builder = Dubhe::builder(name).shutdown_wait(LONG);
        match &self.store {
            Store::Memory(store) => builder.memory_store(store),
            Store::Zookeeper(_) => builder,
        }
    }

    pub(crate) fn builder(&self, name: &str) -> DubheBuilder {
        self.bare(name).registry_config(self.registry())
    }

    pub(crate) async fn consumer(&self) -> Dubhe {
        self.builder(BUYER).start().await.unwrap()
    }

    /// A consumer that knows one step only.
    pub(crate) async fn consumer_of(&self, step: &str) -> Dubhe {
        let mut builder = self.builder(BUYER);
        builder.config().application.migration.step = Some(step.to_owned());
        builder.start().await.unwrap()
    }

    /// An application that offers the shop, registered by `mode`; there when it returns.
    pub(crate) async fn provider(&self, name: &str, mode: &str) -> Provider {
        self.provider_with(name, 0, mode, |export| export).await
    }

    pub(crate) async fn provider_with(
        &self,
        name: &str,
        port: u16,
        mode: &str,
        settings: impl FnOnce(dubhe::Export<'_>) -> dubhe::Export<'_>,
    ) -> Provider {
        let mut builder = self.builder(name).protocol(loopback(port));
        builder.config().application.register_mode = Some(mode.to_owned());
        Provider::start(builder, name, settings).await
    }

    /// A shop that serves and is registered nowhere: nodes written by hand lead to it.
    pub(crate) async fn unregistered(&self, name: &str) -> Provider {
        let builder = self.bare(name).protocol(loopback(0));
        Provider::start(builder, name, |export| export.register(false)).await
    }

    /// A session of its own.
    pub(crate) fn tree(&self) -> Arc<dyn Tree> {
        match &self.store {
            Store::Memory(store) => store.connect(),
            Store::Zookeeper(_) => {
                let url = format!("{}?session=5000&timeout=20000", self.address());
                ZookeeperTreeFactory.open(&Url::parse(&url).unwrap()).unwrap()
            }
        }
    }

    pub(crate) fn root(&self) -> &str {
        self.group.as_deref().unwrap_or("dubbo")
    }

    pub(crate) fn instance_path(&self, application: &str, port: u16) -> String {
        let root = self.group.as_deref().unwrap_or("services");
        format!("/{root}/{application}/127.0.0.1:{port}")
    }

    pub(crate) fn mapping_path(&self) -> String {
        format!("/{}/mapping/{SHOP}", self.root())
    }

    pub(crate) fn metadata_path(&self, application: &str, revision: &str) -> String {
        format!("/{}/metadata/{application}/{revision}", self.root())
    }

    pub(crate) fn category_path(&self, category: &str) -> String {
        format!("/{}/{SHOP}/{category}", self.root())
    }

    /// Publishes the migration rule of the consumers.
    pub(crate) async fn publish_rule(&self, text: &str) {
        let tree = self.tree();
        let mut url = Url::parse(&self.address()).unwrap();
        if let Some(group) = &self.group {
            url = url.with_param("group", group);
        }
        let center = TreeConfigCenter::of_registry(&url, Arc::clone(&tree));
        let key = format!("{BUYER}.migration");
        center.publish("DUBBO_SERVICEDISCOVERY_MIGRATION", &key, text).await.unwrap();
        tree.close().await;
    }
}

/// A server that soon forgets who is silent.
pub(crate) async fn zookeeper() -> ZooKeeper {
    ZooKeeper::builder().tick(Duration::from_millis(250)).start().await.unwrap()
}

pub(crate) struct Provider {
    pub(crate) application: Dubhe,
    pub(crate) exported: ExportedService,
    pub(crate) inside: Arc<Inside>,
}

impl Provider {
    pub(crate) async fn start(
        builder: DubheBuilder,
        name: &str,
        settings: impl FnOnce(dubhe::Export<'_>) -> dubhe::Export<'_>,
    ) -> Self {
        let application = builder.start().await.unwrap();
        let shop = Named::new(name);
        let inside = Arc::clone(&shop.inside);
        let exported = settings(application.service(ShopService::new(shop))).export().await.unwrap();
        application.announce().await.unwrap();
        Self { application, exported, inside }
    }

    pub(crate) fn address(&self) -> String {
        self.exported.urls()[0].address()
    }

    pub(crate) fn port(&self) -> u16 {
        self.exported.urls()[0].port()
    }

    pub(crate) fn served(&self) -> usize {
        self.inside.served.load(Ordering::SeqCst)
    }

    pub(crate) async fn leave(self) {
        self.application.shutdown().await;
    }
}

pub(crate) fn loopback(port: u16) -> ProtocolConfig {
    ProtocolConfig { host: Some("127.0.0.1".to_owned()), ..ProtocolConfig::dubbo(port) }
}

/// Waits until `holds` says so.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waited = tokio::time::timeout(LONG, async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    assert!(waited.await.is_ok(), "waited in vain: {what}");
}

/// Waits until the migration stands as `holds` says.
pub(crate) async fn until_migration<C>(
    shop: &Connected<C>,
    what: &str,
    mut holds: impl FnMut(&MigrationExplanation) -> bool,
) -> MigrationExplanation {
    let waited = tokio::time::timeout(LONG, async {
        loop {
            let now = shop.migration().unwrap();
            if holds(&now) {
                return now;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    match waited.await {
        Ok(now) => now,
        Err(_) => panic!("waited in vain: {what}\n{}", shop.migration().unwrap()),
    }
}

/// Waits until so many addresses can be called where calls go to.
pub(crate) async fn until_callable<C>(shop: &Connected<C>, count: usize) {
    let callable = || {
        let Some(directory) = shop.directory() else { return false };
        let invokers = directory.invokers();
        invokers.len() == count && invokers.iter().all(|one| one.is_available())
    };
    until("so many addresses", callable).await;
}

pub(crate) fn prefers(now: &MigrationExplanation, kind: SideKind) -> bool {
    now.state.preferred == kind
}

/// Who answers, of `calls` calls.
pub(crate) async fn answers(client: &ShopClient, calls: usize) -> std::collections::BTreeSet<String> {
    let mut names = std::collections::BTreeSet::new();
    for _ in 0..calls {
        names.insert(client.who().await.unwrap());
    }
    names
}

/// Calls `who` steadily from `callers` tasks until stopped, and counts.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    tasks: tokio::task::JoinSet<Vec<String>>,
    calls: Arc<AtomicU64>,
}

impl Load {
    pub(crate) fn start(client: &ShopClient, callers: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let calls = Arc::new(AtomicU64::new(0));
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..callers {
            let (client, stop, calls) = (client.clone(), Arc::clone(&stop), Arc::clone(&calls));
            tasks.spawn(async move {
                let mut failures = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    if let Err(error) = client.who().await {
                        failures.push(format!("{error:?}"));
                    }
                    calls.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                failures
            });
        }
        Self { stop, tasks, calls }
    }

    /// Waits until so many more calls were made.
    pub(crate) async fn more(&self, count: u64) {
        let target = self.calls.load(Ordering::Relaxed) + count;
        until("more calls", || self.calls.load(Ordering::Relaxed) >= target).await;
    }

    /// The failures.
    pub(crate) async fn stop(mut self) -> Vec<String> {
        self.stop.store(true, Ordering::Relaxed);
        let mut failures = Vec::new();
        while let Some(task) = self.tasks.join_next().await {
            failures.extend(task.unwrap());
        }
        failures
    }
}
