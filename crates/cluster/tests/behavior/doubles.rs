//! Doubles of what stands around a cluster: providers that answer as told, a directory with a list to be changed, a balancer that
//! points where it is told.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use dubhe_common::Url;
use dubhe_core::BoxFuture;
use dubhe_core::cluster::Cluster;
use dubhe_core::directory::{Directory, DirectoryStatus};
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::extension::Extensions;
use dubhe_core::invocation::Invocation;
use dubhe_core::invoker::{Invoker, SharedInvoker, same_invoker};
use dubhe_core::load_balance::{Candidates, LoadBalance};
use dubhe_core::response::{Payload, Response};
use dubhe_core::router::Explanation;
use tokio::sync::watch;

/// The names of the providers in the order in which they were called.
pub(crate) type Log = Arc<Mutex<Vec<String>>>;

/// A provider that answers what it was told, then `Ok`.
#[derive(Debug)]
pub(crate) struct Provider {
    url: Url,
    pub(crate) available: AtomicBool,
    answers: Mutex<VecDeque<RpcError>>,
    always: Option<ErrorCode>,
    pub(crate) seen: Mutex<Vec<Invocation>>,
    log: Log,
}

impl Provider {
    pub(crate) fn new(name: &str, params: &str, log: &Log) -> Arc<Self> {
        Self::make(name, params, None, log)
    }

    /// One that always fails like this.
    pub(crate) fn failing(name: &str, code: ErrorCode, log: &Log) -> Arc<Self> {
        Self::make(name, "", Some(code), log)
    }

    fn make(name: &str, params: &str, always: Option<ErrorCode>, log: &Log) -> Arc<Self> {
        let url = Url::parse(&format!("dubbo://{name}:20880/demo.Greeter?{params}")).unwrap();
        Arc::new(Self {
            url,
            available: AtomicBool::new(true),
            answers: Mutex::default(),
            always,
            seen: Mutex::default(),
            log: Arc::clone(log),
        })
    }

    /// Fails once like this, before it answers otherwise.
    pub(crate) fn fails_with(self: Arc<Self>, error: RpcError) -> Arc<Self> {
        self.answers.lock().unwrap().push_back(error);
        self
    }

    pub(crate) fn down(self: Arc<Self>) -> Arc<Self> {
        self.available.store(false, Ordering::Relaxed);
        self
    }
}

impl Invoker for Provider {
    fn url(&self) -> &Url {
        &self.url
    }

    fn is_available(&self) -> bool {
        self.available.load(Ordering::Relaxed)
    }

    fn invoke(&self, call: Invocation) -> BoxFuture<'_, Result<Response, RpcError>> {
        self.log.lock().unwrap().push(self.url.host().to_owned());
        self.seen.lock().unwrap().push(call);
        let answer = self.answers.lock().unwrap().pop_front();
        let always = self.always.map(|code| RpcError::new(code, format!("{} says no", self.url.host())));
        Box::pin(async move { answer.or(always).map_or(Ok(Response::of(Payload::null())), Err) })
    }
}

/// A directory whose list is what the test puts there.
#[derive(Debug)]
pub(crate) struct Fleet {
    consumer: Url,
    list: Mutex<Arc<Candidates>>,
    /// Lists that take the place of the current one, one at each look.
    next: Mutex<VecDeque<Result<Vec<SharedInvoker>, RpcError>>>,
    /// What is no candidate now, and comes before the others in the list of all.
    aside: Mutex<Vec<SharedInvoker>>,
    pub(crate) invalidated: Mutex<Vec<String>>,
    status: watch::Sender<DirectoryStatus>,
}

impl Fleet {
    pub(crate) fn new(consumer_params: &str, providers: Vec<SharedInvoker>) -> Arc<Self> {
        let consumer = Url::parse(&format!("consumer://192.0.2.9/demo.Greeter?{consumer_params}")).unwrap();
        let status = DirectoryStatus { total: providers.len(), valid: providers.len(), ..Default::default() };
        Arc::new(Self {
            consumer,
            list: Mutex::new(Arc::new(Candidates::new(providers))),
            next: Mutex::default(),
            aside: Mutex::default(),
            invalidated: Mutex::default(),
            status: watch::Sender::new(status),
        })
    }

    pub(crate) fn set(&self, providers: Vec<SharedInvoker>) {
        *self.list.lock().unwrap() = Arc::new(Candidates::new(providers));
    }

    /// Sets these aside.
    pub(crate) fn set_aside(&self, providers: Vec<SharedInvoker>) {
        *self.aside.lock().unwrap() = providers;
    }

    /// What the directory answers at its next look, after those that were told before.
    pub(crate) fn then(&self, answer: Result<Vec<SharedInvoker>, RpcError>) {
        self.next.lock().unwrap().push_back(answer);
    }
}

#[async_trait]
impl Directory for Fleet {
    fn consumer_url(&self) -> &Url {
        &self.consumer
    }

    fn origin(&self) -> &str {
        "zk1.example:2181"
    }

    fn list(&self, _call: &Invocation) -> Result<Arc<Candidates>, RpcError> {
        if let Some(next) = self.next.lock().unwrap().pop_front() {
            self.set(next?);
        }
        Ok(Arc::clone(&self.list.lock().unwrap()))
    }

    fn invokers(&self) -> Arc<[SharedInvoker]> {
        let list = self.list.lock().unwrap();
        self.aside.lock().unwrap().iter().chain(list.invokers()).cloned().collect()
    }

    fn invalidate(&self, invoker: &SharedInvoker) {
        self.invalidated.lock().unwrap().push(invoker.url().host().to_owned());
    }

    fn is_available(&self) -> bool {
        self.invokers().iter().any(|one| one.is_available())
    }

    fn status(&self) -> watch::Receiver<DirectoryStatus> {
        self.status.subscribe()
    }

    fn explain(&self, _call: &Invocation) -> Explanation {
        Explanation::default()
    }

    async fn close(&self) {}
}

/// Picks the positions that it was told, then the first.
#[derive(Debug, Default)]
pub(crate) struct Pointer {
    positions: Mutex<VecDeque<usize>>,
    pub(crate) picks: AtomicUsize,
}

impl Pointer {
    pub(crate) fn at(positions: impl IntoIterator<Item = usize>) -> Arc<Self> {
        Arc::new(Self { positions: Mutex::new(positions.into_iter().collect()), picks: AtomicUsize::new(0) })
    }
}

impl LoadBalance for Pointer {
    fn name(&self) -> &str {
        "pointer"
    }

    fn select<'a>(&self, candidates: &'a Candidates, _call: &Invocation) -> Option<&'a SharedInvoker> {
        self.picks.fetch_add(1, Ordering::Relaxed);
        let at = self.positions.lock().unwrap().pop_front().unwrap_or(0);
        candidates.invokers().get(at.min(candidates.len().checked_sub(1)?))
    }
}

/// `cluster` over `fleet`, with `pointer` under the name of the default balancer.
pub(crate) fn join(cluster: &dyn Cluster, fleet: &Arc<Fleet>, pointer: &Arc<Pointer>) -> SharedInvoker {
    let mut balancers: Extensions<dyn LoadBalance> = Extensions::new("loadbalance");
    let pointer = Arc::clone(pointer);
    balancers.register("random", move || pointer.clone()).unwrap();
    balancers.register("roundrobin", || Arc::new(Pointer::default())).unwrap();
    cluster.join(Arc::clone(fleet) as Arc<dyn Directory>, Arc::new(balancers))
}

pub(crate) fn shared(providers: &[Arc<Provider>]) -> Vec<SharedInvoker> {
    providers.iter().map(|one| Arc::clone(one) as SharedInvoker).collect()
}

pub(crate) fn call() -> Invocation {
    Invocation::dynamic("hello", "", vec![])
}

pub(crate) fn called(log: &Log) -> Vec<String> {
    std::mem::take(&mut *log.lock().unwrap())
}

pub(crate) fn is_same(a: &SharedInvoker, b: &Arc<Provider>) -> bool {
    same_invoker(a, &(Arc::clone(b) as SharedInvoker))
}
