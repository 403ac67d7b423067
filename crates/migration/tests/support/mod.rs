//! Doubles of both sides, and a reference over them.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, reason = "a double that cannot be made fails the test")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use dubhe_common::Url;
use dubhe_core::BoxFuture;
use dubhe_core::directory::DirectoryStatus;
use dubhe_core::error::{Delivery, ErrorCode, RpcError};
use dubhe_core::invocation::Invocation;
use dubhe_core::invoker::{Invoker, SharedInvoker};
use dubhe_core::response::{Outcome, Payload, Response};
use dubhe_migration::{
    MigrationInvoker, MigrationParts, MigrationRule, MigrationState, RuleInForce, RuleOrigin, Side,
    SideFactory, SideKind, SideState,
};
use parking_lot::Mutex;
use tokio::sync::watch;

pub(crate) use SideKind::{Application, Interface};

/// From one forced step to the other, and the side that is left.
pub(crate) const OPPOSITE: [(&str, &str, SideKind); 2] = [
    ("FORCE_INTERFACE", "FORCE_APPLICATION", Interface),
    ("FORCE_APPLICATION", "FORCE_INTERFACE", Application),
];

/// Longest virtual time that a test waits for something.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// Providers of one kind, as the registry would show them to each side made for them.
#[derive(Debug)]
pub(crate) struct Providers {
    status: watch::Sender<DirectoryStatus>,
    connected: AtomicBool,
    made: Mutex<Vec<Arc<FakeSide>>>,
    /// Why making fails.
    broken: Mutex<Option<String>>,
    /// Whether making ends.
    gate: watch::Sender<bool>,
    /// How often making began, and was dropped before its end.
    pub(crate) begun: AtomicUsize,
    pub(crate) dropped: AtomicUsize,
    /// Whether calls end.
    calls_end: watch::Sender<bool>,
    /// What calls fail with.
    failure: Mutex<Option<fn() -> RpcError>>,
    /// Whether two sides of the kind were at work at once.
    overlapped: AtomicBool,
}

impl Default for Providers {
    fn default() -> Self {
        Self {
            status: watch::Sender::new(addresses(0)),
            connected: AtomicBool::new(true),
            made: Mutex::default(),
            broken: Mutex::default(),
            gate: watch::Sender::new(true),
            begun: AtomicUsize::new(0),
            dropped: AtomicUsize::new(0),
            calls_end: watch::Sender::new(true),
            failure: Mutex::default(),
            overlapped: AtomicBool::new(false),
        }
    }
}

pub(crate) fn addresses(count: usize) -> DirectoryStatus {
    DirectoryStatus {
        total: count,
        valid: count,
        forbidden: count == 0,
        initialized: true,
        ..DirectoryStatus::default()
    }
}

pub(crate) fn kept_against_an_empty_list(count: usize) -> DirectoryStatus {
    DirectoryStatus { kept: true, stale: Some("empty protection is on".into()), ..addresses(count) }
}

impl Providers {
    pub(crate) fn set(&self, count: usize) {
        self.set_status(addresses(count));
    }

    pub(crate) fn set_status(&self, status: DirectoryStatus) {
        let made = self.made.lock();
        self.status.send_replace(status.clone());
        for side in made.iter() {
            side.status.send_if_modified(|shown| {
                let open = !shown.closed;
                if open {
                    *shown = status.clone();
                }
                open
            });
        }
    }

    pub(crate) fn set_connected(&self, connected: bool) {
        self.connected.store(connected, Ordering::SeqCst);
    }

    pub(crate) fn set_broken(&self, why: Option<&str>) {
        *self.broken.lock() = why.map(str::to_owned);
    }

    pub(crate) fn hold_making(&self, hold: bool) {
        self.gate.send_replace(!hold);
    }

    pub(crate) fn hold_calls(&self, hold: bool) {
        self.calls_end.send_replace(!hold);
    }

    pub(crate) fn fail_with(&self, failure: Option<fn() -> RpcError>) {
        *self.failure.lock() = failure;
    }

    pub(crate) fn is_live(&self) -> bool {
        self.connected.load(Ordering::SeqCst) && self.status.borrow().total > 0
    }

    pub(crate) fn sides(&self) -> Vec<Arc<FakeSide>> {
        self.made.lock().clone()
    }

    pub(crate) fn made(&self) -> usize {
        self.made.lock().len()
    }

    pub(crate) fn open(&self) -> usize {
        self.made.lock().iter().filter(|side| !side.is_closed()).count()
    }

    pub(crate) fn overlapped(&self) -> bool {
        self.overlapped.load(Ordering::SeqCst)
    }
}

#[derive(Debug)]
pub(crate) struct FakeSide {
    invoker: SharedInvoker,
    status: watch::Sender<DirectoryStatus>,
    addresses: Vec<String>,
}

impl FakeSide {
    pub(crate) fn is_closed(&self) -> bool {
        self.status.borrow().closed
    }

    /// As somebody else would.
    pub(crate) fn close_from_outside(&self) {
        self.status.send_modify(|status| status.closed = true);
    }
}

#[async_trait]
impl Side for FakeSide {
    fn invoker(&self) -> &SharedInvoker {
        &self.invoker
    }

    fn status(&self) -> watch::Receiver<DirectoryStatus> {
        self.status.subscribe()
    }

    fn addresses(&self) -> Vec<String> {
        self.addresses.clone()
    }

    async fn close(&self) {
        tokio::task::yield_now().await;
        self.close_from_outside();
    }
}

#[derive(Debug)]
struct FakeCluster {
    kind: SideKind,
    url: Url,
    providers: Arc<Providers>,
    status: watch::Receiver<DirectoryStatus>,
}

impl FakeCluster {
    async fn call(&self) -> Result<Response, RpcError> {
        if let Some(failure) = *self.providers.failure.lock() {
            return Err(failure());
        }
        let closed = || self.status.borrow().closed;
        if closed() {
            return Err(RpcError::new(ErrorCode::Unknown, "directory already destroyed"));
        }
        if self.status.borrow().total == 0 {
            return Err(RpcError::new(ErrorCode::Forbidden, "no provider"));
        }
        if !self.providers.connected.load(Ordering::SeqCst) {
            return Err(RpcError::new(ErrorCode::Network, "no connection"));
        }
        tokio::task::yield_now().await;
        let mut end = self.providers.calls_end.subscribe();
        let _ = end.wait_for(|end| *end).await;
        if closed() {
            let error = RpcError::new(ErrorCode::Network, "closed under a running call");
            return Err(error.with_delivery(Delivery::Sent));
        }
        Ok(Response::of(Payload::opaque(self.kind)))
    }
}

impl Invoker for FakeCluster {
    fn url(&self) -> &Url {
        &self.url
    }

    fn is_available(&self) -> bool {
        let status = self.status.borrow();
        !status.closed && status.total > 0 && self.providers.connected.load(Ordering::SeqCst)
    }

    fn invoke(&self, _invocation: Invocation) -> BoxFuture<'_, Result<Response, RpcError>> {
        Box::pin(self.call())
    }
}

#[derive(Debug, Default)]
pub(crate) struct Factory {
    pub(crate) interface: Arc<Providers>,
    pub(crate) application: Arc<Providers>,
}

impl Factory {
    pub(crate) fn of(&self, kind: SideKind) -> &Arc<Providers> {
        match kind {
            Interface => &self.interface,
            Application => &self.application,
        }
    }
}

/// Counts a making that was not carried to its end.
struct Making<'a>(&'a Providers, bool);

impl Drop for Making<'_> {
    fn drop(&mut self) {
        if !self.1 {
            self.0.dropped.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[async_trait]
impl SideFactory for Factory {
    async fn make(&self, kind: SideKind) -> Result<Arc<dyn Side>, RpcError> {
        let providers = self.of(kind);
        providers.begun.fetch_add(1, Ordering::SeqCst);
        if providers.open() > 0 {
            providers.overlapped.store(true, Ordering::SeqCst);
        }
        let mut making = Making(providers, false);
        let _ = providers.gate.subscribe().wait_for(|open| *open).await;
        making.1 = true;
        if let Some(why) = &*providers.broken.lock() {
            return Err(RpcError::new(ErrorCode::Registry, why.clone()));
        }
        let url = Url::parse("consumer://192.0.2.9/demo.Greeter").unwrap();
        // Under the lock, so that no change of the providers is missed.
        let mut made = providers.made.lock();
        let status = watch::Sender::new(providers.status.borrow().clone());
        let providers = Arc::clone(providers);
        let cluster =
            FakeCluster { kind, url, providers: Arc::clone(&providers), status: status.subscribe() };
        let side = FakeSide {
            invoker: Arc::new(cluster),
            status,
            addresses: vec![format!("{}.example:20880", if kind == Interface { "i" } else { "a" })],
        };
        let side = Arc::new(side);
        made.push(Arc::clone(&side));
        Ok(side)
    }
}

/// A reference over doubles.
pub(crate) struct Reference {
    pub(crate) factory: Arc<Factory>,
    pub(crate) rules: watch::Sender<Arc<RuleInForce>>,
    pub(crate) invoker: Arc<MigrationInvoker>,
}

/// What stands before a reference is started.
pub(crate) struct Setup {
    pub(crate) factory: Arc<Factory>,
    pub(crate) rules: watch::Sender<Arc<RuleInForce>>,
    pub(crate) parts: MigrationParts,
}

impl Setup {
    /// So many providers of each kind, and a rule.
    pub(crate) fn new(interface: usize, application: usize, rule: &str) -> Self {
        let factory = Arc::new(Factory::default());
        factory.interface.set(interface);
        factory.application.set(application);
        let rules = watch::Sender::new(in_force(rule));
        let consumer = Url::parse("consumer://192.0.2.9/demo.Greeter?interface=demo.Greeter").unwrap();
        let mut parts = MigrationParts::new(consumer, factory.clone());
        parts.rules = Some(rules.subscribe());
        Self { factory, rules, parts }
    }

    pub(crate) fn with_properties(mut self, pairs: &[(&str, &str)]) -> Self {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        self.parts.properties = Arc::new(pairs.collect::<BTreeMap<_, _>>());
        self
    }

    pub(crate) fn start(self) -> Reference {
        let invoker = Arc::new(MigrationInvoker::start(self.parts));
        Reference { factory: self.factory, rules: self.rules, invoker }
    }

    pub(crate) async fn ready(self) -> Reference {
        let reference = self.start();
        reference.invoker.ready().await;
        reference.rest().await;
        reference
    }
}

pub(crate) fn in_force(rule: &str) -> Arc<RuleInForce> {
    let rule = MigrationRule::parse(rule).unwrap();
    Arc::new(RuleInForce { rule, origin: RuleOrigin::ConfigCenter, refused: None, known: true })
}

impl Reference {
    pub(crate) fn rule(&self, rule: &str) {
        self.rules.send_replace(in_force(rule));
    }

    pub(crate) fn state(&self) -> MigrationState {
        self.invoker.state().borrow().clone()
    }

    /// The step that is reached, by name.
    pub(crate) fn step(&self) -> &'static str {
        self.state().step.map_or("none", |step| step.name())
    }

    pub(crate) async fn until(&self, condition: impl FnMut(&MigrationState) -> bool) -> MigrationState {
        let mut state = self.invoker.state();
        let reached = tokio::time::timeout(PATIENCE, state.wait_for(condition)).await;
        reached.unwrap_or_else(|_| panic!("never reached: {}", self.invoker.explain())).unwrap().clone()
    }

    pub(crate) async fn until_step(&self, step: &str) -> MigrationState {
        self.until(|state| state.step.is_some_and(|reached| reached.name() == step)).await
    }

    pub(crate) async fn until_absent(&self, kind: SideKind) {
        self.until(|state| *state.side(kind) == SideState::Absent).await;
    }

    /// Lets every task come to rest. With paused time, the clock moves on only then.
    pub(crate) async fn rest(&self) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    /// One call; which side answered.
    pub(crate) async fn call(&self) -> Result<SideKind, RpcError> {
        call(&self.invoker).await
    }

    pub(crate) fn is_closed(&self, kind: SideKind) -> bool {
        self.factory.of(kind).open() == 0
    }
}

pub(crate) async fn call(invoker: &MigrationInvoker) -> Result<SideKind, RpcError> {
    let response = invoker.invoke(Invocation::dynamic("sayHello", "", Vec::new())).await?;
    match response.outcome {
        Outcome::Value(payload) => Ok(payload.take::<SideKind>().unwrap()),
        Outcome::Exception(exception) => panic!("unexpected {exception}"),
    }
}
