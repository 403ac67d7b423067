//! Doubles of what stands around a directory: a protocol with shared connections, a registry whose view the test writes, a chain that
//! lets everything through or one host only, and a listener to warnings.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use async_trait::async_trait;
use dubhe_common::Url;
use dubhe_core::BoxFuture;
use dubhe_core::directory::{Directory, DirectoryStatus};
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::extension::Extensions;
use dubhe_core::filter::Filter;
use dubhe_core::invocation::Invocation;
use dubhe_core::invoker::{Invoker, SharedInvoker};
use dubhe_core::load_balance::Candidates;
use dubhe_core::protocol::{Exported, Exporter, Protocol};
use dubhe_core::registry::{Category, Registry, RegistryError, ServiceView, Subscription};
use dubhe_core::response::{Payload, Response};
use dubhe_core::router::{Explanation, RouterChain, Routes};
use dubhe_directory::{RegistryDirectory, RegistryDirectoryParts};
use tokio::sync::{Semaphore, watch};

/// A protocol whose invokers share one connection per address, as long as one of them lives.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    connections: Mutex<HashMap<String, Weak<Connection>>>,
    pub(crate) opened: AtomicUsize,
    pub(crate) closed: Arc<AtomicUsize>,
    pub(crate) referred: AtomicUsize,
    pub(crate) live: Arc<AtomicUsize>,
}

#[derive(Debug)]
pub(crate) struct Connection {
    open: AtomicBool,
    closed: Arc<AtomicUsize>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.closed.fetch_add(1, Ordering::SeqCst);
    }
}

#[derive(Debug)]
struct Provider {
    url: Url,
    connection: Arc<Connection>,
    live: Arc<AtomicUsize>,
}

impl Wire {
    /// Opens or closes the connection to an address that is referred.
    pub(crate) fn set_open(&self, host: &str, open: bool) {
        let connections = self.connections.lock().unwrap();
        let connection = connections[&format!("{host}:20880")].upgrade().unwrap();
        connection.open.store(open, Ordering::SeqCst);
    }

    pub(crate) fn live(&self) -> usize {
        self.live.load(Ordering::SeqCst)
    }

    pub(crate) fn opened(&self) -> usize {
        self.opened.load(Ordering::SeqCst)
    }

    pub(crate) fn referred(&self) -> usize {
        self.referred.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Protocol for Wire {
    fn name(&self) -> &str {
        "dubbo"
    }

    fn default_port(&self) -> u16 {
        20_880
    }

    fn refer(&self, url: &Url) -> Result<SharedInvoker, RpcError> {
        if url.param("refuse").is_some() {
            return Err(RpcError::new(ErrorCode::Unknown, "this address can never work"));
        }
        self.referred.fetch_add(1, Ordering::SeqCst);
        let mut connections = self.connections.lock().unwrap();
        let known = connections.get(&url.address()).and_then(Weak::upgrade);
        let connection = known.unwrap_or_else(|| {
            self.opened.fetch_add(1, Ordering::SeqCst);
            let open = AtomicBool::new(true);
            let made = Arc::new(Connection { open, closed: Arc::clone(&self.closed) });
            connections.insert(url.address(), Arc::downgrade(&made));
            made
        });
        self.live.fetch_add(1, Ordering::SeqCst);
        Ok(Arc::new(Provider { url: url.clone(), connection, live: Arc::clone(&self.live) }))
    }

    async fn export(&self, _exported: Exported) -> Result<Box<dyn Exporter>, RpcError> {
        Err(RpcError::new(ErrorCode::Unknown, "not in these tests"))
    }

    async fn drain(&self, _grace: Duration) {}

    async fn close(&self) {}
}

impl Invoker for Provider {
    fn url(&self) -> &Url {
        &self.url
    }

    fn is_available(&self) -> bool {
        self.connection.open.load(Ordering::SeqCst)
    }

    fn invoke(&self, _call: Invocation) -> BoxFuture<'_, Result<Response, RpcError>> {
        Box::pin(async {
            tokio::task::yield_now().await;
            if self.is_available() {
                Ok(Response::of(Payload::null()))
            } else {
                Err(RpcError::new(ErrorCode::Network, "closed"))
            }
        })
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.live.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A registry whose view of the one service is what the test shows.
#[derive(Debug)]
pub(crate) struct Board {
    url: Url,
    view: Mutex<Option<watch::Sender<Arc<ServiceView>>>>,
    pub(crate) log: Arc<Mutex<Vec<String>>>,
    pub(crate) refuses_subscriptions: AtomicBool,
    pub(crate) refuses_unregistering: AtomicBool,
    /// Permits for unregistering.
    pub(crate) unregistering: Semaphore,
}

struct Subscribed(Arc<Mutex<Vec<String>>>);

impl Drop for Subscribed {
    fn drop(&mut self) {
        self.0.lock().unwrap().push("unsubscribe".to_owned());
    }
}

impl Board {
    pub(crate) fn new(first: ServiceView) -> Arc<Self> {
        Self::at("zookeeper://zk1.example:2181", first)
    }

    pub(crate) fn at(address: &str, first: ServiceView) -> Arc<Self> {
        Arc::new(Self {
            url: Url::parse(address).unwrap(),
            view: Mutex::new(Some(watch::Sender::new(Arc::new(first)))),
            log: Arc::default(),
            refuses_subscriptions: AtomicBool::new(false),
            refuses_unregistering: AtomicBool::new(false),
            unregistering: Semaphore::new(1_000),
        })
    }

    pub(crate) fn show(&self, view: ServiceView) {
        self.view.lock().unwrap().as_ref().unwrap().send_replace(Arc::new(view));
    }

    /// Changes parts of the view; the lists that are left alone stay the same `Arc`s.
    pub(crate) fn edit(&self, change: impl FnOnce(&mut ServiceView)) {
        let view = self.view.lock().unwrap();
        let view = view.as_ref().unwrap();
        let mut edited = ServiceView::clone(&view.borrow());
        change(&mut edited);
        view.send_replace(Arc::new(edited));
    }

    /// Ends all subscriptions, as a registry that is closed does.
    pub(crate) fn end(&self) {
        *self.view.lock().unwrap() = None;
    }

    pub(crate) fn log(&self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock().unwrap())
    }

    fn note(&self, what: &str) {
        self.log.lock().unwrap().push(what.to_owned());
    }
}

#[async_trait]
impl Registry for Board {
    fn url(&self) -> &Url {
        &self.url
    }

    fn is_available(&self) -> bool {
        true
    }

    async fn register(&self, _url: &Url) -> Result<(), RegistryError> {
        self.note("register");
        Ok(())
    }

    async fn unregister(&self, _url: &Url) -> Result<(), RegistryError> {
        self.unregistering.acquire().await.unwrap().forget();
        self.note("unregister");
        if self.refuses_unregistering.load(Ordering::SeqCst) {
            return Err(RegistryError::Closed("zk1.example:2181".to_owned()));
        }
        Ok(())
    }

    async fn subscribe(&self, _url: &Url) -> Result<Subscription, RegistryError> {
        self.note("subscribe");
        if self.refuses_subscriptions.load(Ordering::SeqCst) {
            return Err(RegistryError::Closed("zk1.example:2181".to_owned()));
        }
        let view = self.view.lock().unwrap().as_ref().unwrap().subscribe();
        Ok(Subscription::new(view, Subscribed(Arc::clone(&self.log))))
    }

    async fn lookup(&self, _url: &Url) -> Result<Vec<Url>, RegistryError> {
        Ok(Vec::new())
    }

    async fn close(&self) {}
}

/// A chain that lets every provider through, or those of one host.
#[derive(Debug)]
pub(crate) struct Gate {
    only: Mutex<Option<String>>,
    changes: watch::Sender<u64>,
    pub(crate) registry_rules: Mutex<Vec<Url>>,
    pub(crate) bound: AtomicUsize,
}

impl Gate {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            only: Mutex::default(),
            changes: watch::Sender::new(0),
            registry_rules: Mutex::default(),
            bound: AtomicUsize::new(0),
        })
    }

    pub(crate) fn only(&self, host: &str) {
        *self.only.lock().unwrap() = Some(host.to_owned());
        self.changes.send_modify(|count| *count += 1);
    }
}

#[derive(Debug)]
struct Bound(Arc<Candidates>);

impl RouterChain for Gate {
    fn bind(&self, providers: &Arc<[SharedInvoker]>) -> Arc<dyn Routes> {
        self.bound.fetch_add(1, Ordering::SeqCst);
        let only = self.only.lock().unwrap().clone();
        let left: Vec<SharedInvoker> = providers
            .iter()
            .filter(|one| only.as_deref().is_none_or(|only| one.url().host() == only))
            .cloned()
            .collect();
        Arc::new(Bound(Arc::new(Candidates::new(left))))
    }

    fn set_registry_rules(&self, rules: &[Url]) -> bool {
        let mut known = self.registry_rules.lock().unwrap();
        let changed = *known != rules;
        *known = rules.to_vec();
        changed
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

impl Routes for Bound {
    fn candidates(&self, _call: &Invocation) -> Result<Arc<Candidates>, RpcError> {
        Ok(Arc::clone(&self.0))
    }

    fn explain(&self, _call: &Invocation) -> Explanation {
        let remaining = self.0.invokers().iter().map(|one| one.url().address()).collect();
        Explanation { steps: Vec::new(), remaining }
    }
}

/// Everything around one directory.
pub(crate) struct World {
    pub(crate) wire: Arc<Wire>,
    pub(crate) board: Arc<Board>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) consumer: Url,
    pub(crate) filters: Vec<Arc<dyn Filter>>,
}

pub(crate) const CONSUMER: &str =
    "consumer://192.0.2.9/demo.Greeter?interface=demo.Greeter&application=shop&side=consumer";

impl World {
    /// A world in which the registry lists these, see [`url`].
    pub(crate) fn of(providers: &[&str]) -> Self {
        Self {
            wire: Arc::default(),
            board: Board::new(listing(providers)),
            gate: Gate::new(),
            consumer: Url::parse(CONSUMER).unwrap(),
            filters: Vec::new(),
        }
    }

    pub(crate) fn with_consumer(mut self, key: &str, value: &str) -> Self {
        self.consumer = self.consumer.with_param(key, value);
        self
    }

    pub(crate) fn parts(&self) -> RegistryDirectoryParts {
        let mut protocols: Extensions<dyn Protocol> = Extensions::new("protocol");
        let wire = Arc::clone(&self.wire);
        protocols.register("dubbo", move || wire.clone()).unwrap();
        RegistryDirectoryParts {
            registry: Arc::clone(&self.board) as Arc<dyn Registry>,
            consumer: self.consumer.clone(),
            subscribe: self.consumer.clone(),
            register: Some(self.consumer.clone()),
            protocols: Arc::new(protocols),
            filters: self.filters.clone(),
            chain: Arc::clone(&self.gate) as Arc<dyn RouterChain>,
        }
    }

    pub(crate) async fn directory(&self) -> Arc<RegistryDirectory> {
        RegistryDirectory::subscribe(self.parts()).await.unwrap()
    }

    /// Shows a change of the view and waits until the directory has taken it over, even when that changes nothing.
    ///
    /// The change comes together with a mark that shows in the status: "not confirmed yet", or, in trouble, other trouble.
    pub(crate) async fn change(&self, directory: &RegistryDirectory, change: impl FnOnce(&mut ServiceView)) {
        const UNCONFIRMED: &str = "from the cache file";
        let mut wanted = (None, false);
        let number = NEXT_MARK.fetch_add(1, Ordering::SeqCst);
        self.board.edit(|view| {
            change(view);
            wanted = (view.trouble.clone(), view.from_cache);
            match &mut view.trouble {
                Some(trouble) => *trouble = format!("mark {number}").into(),
                None => view.from_cache = true,
            }
        });
        let (trouble, from_cache) = wanted;
        let mark = if trouble.is_some() { format!("mark {number}") } else { UNCONFIRMED.to_owned() };
        let is_marked =
            |status: &DirectoryStatus| status.stale.as_deref().is_some_and(|stale| stale.contains(&mark));
        until(directory, is_marked).await;
        if trouble.is_none() && from_cache {
            return;
        }
        self.board.edit(|view| (view.trouble, view.from_cache) = (trouble.clone(), from_cache));
        until(directory, |status| !is_marked(status)).await;
    }

    pub(crate) async fn list(&self, directory: &RegistryDirectory, providers: &[&str]) {
        self.change(directory, |view| view.providers = known(providers)).await;
    }
}

static NEXT_MARK: AtomicUsize = AtomicUsize::new(0);

/// Waits until the directory's status is as wanted.
pub(crate) async fn until(directory: &dyn Directory, wanted: impl FnMut(&DirectoryStatus) -> bool) {
    directory.status().wait_for(wanted).await.unwrap();
}

/// `a`: a provider on host `a`, started at 1. `a@2`: started at 2. `a?timeout=5`: with parameters. A whole URL: itself.
pub(crate) fn url(text: &str) -> Url {
    if text.contains("://") {
        return Url::parse(text).unwrap();
    }
    let (rest, params) = text.split_once('?').unwrap_or((text, ""));
    let (host, started) = rest.split_once('@').unwrap_or((rest, "1"));
    let text = format!(
        "dubbo://{host}:20880/demo.Greeter?interface=demo.Greeter&application=stock&timestamp={started}&{params}"
    );
    Url::parse(text.trim_end_matches('&')).unwrap()
}

pub(crate) fn known(urls: &[&str]) -> Category {
    Category::Known { urls: urls.iter().map(|text| url(text)).collect(), total: urls.len() }
}

pub(crate) fn listing(providers: &[&str]) -> ServiceView {
    ServiceView {
        providers: known(providers),
        configurators: known(&[]),
        routers: known(&[]),
        ..ServiceView::default()
    }
}

pub(crate) fn call() -> Invocation {
    Invocation::dynamic("hello", "", vec![])
}

/// The hosts that a call may go to.
pub(crate) fn hosts(directory: &dyn Directory) -> Vec<String> {
    let candidates = directory.list(&call()).unwrap();
    candidates.invokers().iter().map(|one| one.url().host().to_owned()).collect()
}

/// Collects the warnings and errors of the current thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    pub(crate) fn listen() -> (Self, tracing::subscriber::DefaultGuard) {
        let warnings = Self::default();
        let guard = tracing::subscriber::set_default(warnings.clone());
        (warnings, guard)
    }

    /// Those that hold this text.
    pub(crate) fn with(&self, text: &str) -> Vec<String> {
        self.0.lock().unwrap().iter().filter(|one| one.contains(text)).cloned().collect()
    }
}

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN
    }

    fn new_span(&self, _span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _span: &tracing::span::Id, _values: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _span: &tracing::span::Id, _follows: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        struct Text(String);
        impl tracing::field::Visit for Text {
            fn record_str(&mut self, field: &tracing::field::Field, value: &str) {
                self.0.push_str(&format!("{}={value} ", field.name()));
            }

            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                self.0.push_str(&format!("{}={value:?} ", field.name()));
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().unwrap().push(text.0);
    }

    fn enter(&self, _span: &tracing::span::Id) {}

    fn exit(&self, _span: &tracing::span::Id) {}
}
