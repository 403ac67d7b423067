//! The service that all tests here use, and applications that offer and call it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use dubhe::config::{ProtocolConfig, RegistryConfig};
use dubhe::{Dubhe, ExportedService, MemoryStore, Value, context};
use tokio::sync::Notify;

/// Longer than anything may take on a loaded machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

#[dubhe::service(interface = "dev.dubhe.test.Shop")]
pub(crate) trait Shop {
    async fn who(&self) -> dubhe::Result<String>;
    async fn greet(&self, name: String) -> dubhe::Result<String>;
    async fn find(&self, id: i64) -> dubhe::Result<Option<Order>>;
    async fn place(&self, order: Order, urgent: bool) -> dubhe::Result<Order>;
    async fn fail(&self, class: String, message: String) -> dubhe::Result<()>;
    async fn attached(&self) -> dubhe::Result<HashMap<String, String>>;
    async fn wait(&self) -> dubhe::Result<String>;
    #[dubhe(one_way)]
    async fn note(&self, text: String) -> dubhe::Result<()>;
    async fn notes(&self) -> dubhe::Result<Vec<String>>;
    async fn anything(&self, value: Value) -> dubhe::Result<Value>;
    async fn panics(&self) -> dubhe::Result<()>;
}

#[dubhe::java_class("dev.dubhe.test.Order")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Order {
    pub(crate) id: i64,
    pub(crate) article_names: Vec<String>,
    pub(crate) state: OrderState,
    pub(crate) remark: Option<String>,
}

#[dubhe::java_class("dev.dubhe.test.OrderState")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OrderState {
    OPEN,
    PAID,
}

/// What the test knows of a shop that serves.
#[derive(Debug, Default)]
pub(crate) struct Inside {
    pub(crate) served: AtomicUsize,
    pub(crate) waiting: AtomicUsize,
    pub(crate) release: Notify,
    notes: std::sync::Mutex<Vec<String>>,
}

pub(crate) struct NamedShop {
    pub(crate) name: String,
    pub(crate) inside: Arc<Inside>,
}

impl Shop for NamedShop {
    async fn who(&self) -> dubhe::Result<String> {
        self.inside.served.fetch_add(1, Ordering::SeqCst);
        Ok(self.name.clone())
    }

    async fn greet(&self, name: String) -> dubhe::Result<String> {
        Ok(format!("Hello {name}"))
    }

    async fn find(&self, id: i64) -> dubhe::Result<Option<Order>> {
        Ok((id > 0).then(|| order(id)))
    }

    async fn place(&self, mut order: Order, urgent: bool) -> dubhe::Result<Order> {
        order.state = OrderState::PAID;
        order.remark = urgent.then(|| "urgent".to_owned());
        Ok(order)
    }

    async fn fail(&self, class: String, message: String) -> dubhe::Result<()> {
        self.inside.served.fetch_add(1, Ordering::SeqCst);
        Err(dubhe::Exception::new(class, message).with_field("code", 42).into())
    }

    async fn attached(&self) -> dubhe::Result<HashMap<String, String>> {
        context::set_response_attachment("answered.by", self.name.clone());
        let attachments = context::attachments();
        let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
        Ok(attachments.iter().map(|(key, value)| (key.to_owned(), text(value))).collect())
    }

    async fn wait(&self) -> dubhe::Result<String> {
        let released = self.inside.release.notified();
        self.inside.waiting.fetch_add(1, Ordering::SeqCst);
        released.await;
        self.inside.waiting.fetch_sub(1, Ordering::SeqCst);
        Ok(self.name.clone())
    }

    async fn note(&self, text: String) -> dubhe::Result<()> {
        self.inside.notes.lock().unwrap().push(text);
        Ok(())
    }

    async fn notes(&self) -> dubhe::Result<Vec<String>> {
        Ok(self.inside.notes.lock().unwrap().clone())
    }

    async fn anything(&self, value: Value) -> dubhe::Result<Value> {
        Ok(value)
    }

    async fn panics(&self) -> dubhe::Result<()> {
        panic!("out of stock")
    }
}

pub(crate) fn order(id: i64) -> Order {
    Order {
        id,
        article_names: vec!["tea".to_owned(), "\u{1f600}".to_owned()],
        state: OrderState::OPEN,
        remark: None,
    }
}

/// A fleet on one in-memory registry.
pub(crate) struct World {
    pub(crate) store: MemoryStore,
}

pub(crate) struct Provider {
    pub(crate) application: Dubhe,
    pub(crate) exported: ExportedService,
    pub(crate) inside: Arc<Inside>,
}

impl Provider {
    pub(crate) fn address(&self) -> String {
        self.exported.urls()[0].address()
    }

    pub(crate) fn port(&self) -> u16 {
        self.exported.urls()[0].port()
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self { store: MemoryStore::new() }
    }

    pub(crate) fn builder(&self, name: &str) -> dubhe::DubheBuilder {
        let registry = RegistryConfig { file_cache: Some(false), ..RegistryConfig::at("memory://local") };
        Dubhe::builder(name).memory_store(&self.store).registry_config(registry).shutdown_wait(LONG)
    }

    pub(crate) async fn provider(&self, name: &str) -> Provider {
        self.provider_with(name, 0, |export| export).await
    }

    pub(crate) async fn provider_with(
        &self,
        name: &str,
        port: u16,
        settings: impl FnOnce(dubhe::Export<'_>) -> dubhe::Export<'_>,
    ) -> Provider {
        let application = self.builder(name).protocol(loopback(port)).start().await.unwrap();
        let inside = Arc::new(Inside::default());
        let shop = NamedShop { name: name.to_owned(), inside: Arc::clone(&inside) };
        let exported = settings(application.service(ShopService::new(shop))).export().await.unwrap();
        Provider { application, exported, inside }
    }

    pub(crate) async fn consumer(&self) -> Dubhe {
        self.builder("consumer").start().await.unwrap()
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

/// Calls `who` without pause from `callers` tasks until stopped, and counts.
pub(crate) struct Load {
    stop: Arc<std::sync::atomic::AtomicBool>,
    tasks: tokio::task::JoinSet<Vec<String>>,
    pub(crate) calls: Arc<AtomicU64>,
}

impl Load {
    pub(crate) fn start(client: &ShopClient, callers: usize) -> Self {
        let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
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
                    tokio::task::yield_now().await;
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
