//! Trees whose answers a test decides, and a slow one.
#![allow(dead_code, reason = "each test file uses a part")]
#![allow(clippy::unimplemented, reason = "an unexpected call fails the test")]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use dubhe_common::Url;
use dubhe_core::observation::{Observation, Stamp};
use dubhe_core::registry::{ServiceView, Subscription};
use dubhe_core::tree::{Children, NodeData, NodeKind, SessionState, Tree, TreeError};
use dubhe_registry::MemoryTree;
use parking_lot::Mutex;
use tokio::sync::watch;

pub(crate) fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

pub(crate) fn provider(number: usize) -> Url {
    url(&format!(
        "dubbo://10.{}.{}.{}:20880/demo.Foo?application=p",
        number >> 16,
        number >> 8 & 255,
        number & 255
    ))
}

pub(crate) fn consumer(params: &str) -> Url {
    url(&format!("consumer://192.0.2.99/demo.Foo?{params}"))
}

pub(crate) fn hosts(view: &ServiceView) -> Vec<String> {
    view.providers.urls().into_iter().flat_map(|urls| urls.iter().map(|url| url.host().to_owned())).collect()
}

/// Waits for a view that fits; with paused time a wait in vain ends at once.
pub(crate) async fn until(
    subscription: &mut Subscription,
    fits: impl Fn(&ServiceView) -> bool,
) -> Arc<ServiceView> {
    let wait = async {
        loop {
            let view = subscription.view();
            if fits(&view) {
                return view;
            }
            assert!(subscription.changed().await, "the subscription goes on");
        }
    };
    tokio::time::timeout(Duration::from_secs(3_600), wait).await.expect("the view comes")
}

type ChildrenSender = watch::Sender<Observation<Option<Children>>>;

/// A tree that says what the test tells it to say.
#[derive(Debug)]
pub(crate) struct ScriptedTree {
    pub(crate) session: watch::Sender<SessionState>,
    pub(crate) nodes: Mutex<HashMap<String, ChildrenSender>>,
    /// What `list` and `settled` answer.
    pub(crate) answer: Mutex<Result<(), TreeError>>,
    pub(crate) wanted: Mutex<Vec<String>>,
    pub(crate) lists: AtomicUsize,
}

impl ScriptedTree {
    pub(crate) fn new(session: SessionState) -> Arc<Self> {
        Arc::new(Self {
            session: watch::Sender::new(session),
            nodes: Mutex::default(),
            answer: Mutex::new(Ok(())),
            wanted: Mutex::default(),
            lists: AtomicUsize::new(0),
        })
    }

    /// Shows children of `/dubbo/demo.Foo/<category>`.
    pub(crate) fn show(&self, category: &str, names: &[Arc<str>], sequence: i64) {
        let known = Some(Some(names.to_vec().into()));
        let stamp = Stamp { epoch: 1, sequence };
        self.sender(&format!("/dubbo/demo.Foo/{category}")).send_replace(Observation {
            known,
            stamp,
            trouble: None,
        });
    }

    fn sender(&self, path: &str) -> ChildrenSender {
        let mut nodes = self.nodes.lock();
        nodes.entry(path.to_owned()).or_insert_with(|| watch::Sender::new(Observation::unknown())).clone()
    }
}

#[async_trait]
impl Tree for ScriptedTree {
    fn address(&self) -> &str {
        "scripted://test"
    }

    fn ensure(&self, path: &str, _: Bytes, _: NodeKind) {
        self.wanted.lock().push(path.to_owned());
    }

    fn withdraw(&self, path: &str) {
        self.wanted.lock().retain(|wanted| wanted != path);
    }

    async fn settled(&self, _: &str, timeout: Duration) -> Result<(), TreeError> {
        let answer = self.answer.lock().clone();
        if let Err(TreeError::Unreachable { .. }) = answer {
            tokio::time::sleep(timeout).await;
        }
        answer
    }

    fn children(&self, path: &str, _: bool) -> watch::Receiver<Observation<Option<Children>>> {
        self.sender(path).subscribe()
    }

    fn data(&self, _: &str) -> watch::Receiver<Observation<Option<NodeData>>> {
        unreachable!("the registry reads no data")
    }

    async fn list(&self, _: &str) -> Result<Option<Children>, TreeError> {
        self.lists.fetch_add(1, Ordering::Relaxed);
        self.answer.lock().clone().map(|()| None)
    }

    async fn read(&self, _: &str) -> Result<Option<NodeData>, TreeError> {
        unreachable!("the registry reads no data")
    }

    async fn create(&self, _: &str, _: Bytes) -> Result<bool, TreeError> {
        unreachable!("the registry declares intents")
    }

    async fn set(&self, _: &str, _: Bytes, _: Option<i32>) -> Result<bool, TreeError> {
        unreachable!("the registry declares intents")
    }

    async fn delete(&self, _: &str) -> Result<bool, TreeError> {
        unreachable!("the registry declares intents")
    }

    fn session(&self) -> watch::Receiver<SessionState> {
        self.session.subscribe()
    }

    async fn close(&self) {
        self.session.send_replace(SessionState::Closed);
    }
}

/// A memory tree at the end of a long line: every request takes a round trip, requests may be under way together.
#[derive(Debug)]
pub(crate) struct DistantTree {
    pub(crate) inner: MemoryTree,
    pub(crate) round_trip: Duration,
    pub(crate) requests: Arc<AtomicUsize>,
}

impl DistantTree {
    fn later(&self, act: impl FnOnce(&MemoryTree) + Send + 'static) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let (inner, round_trip) = (self.inner.clone(), self.round_trip);
        tokio::spawn(async move {
            tokio::time::sleep(round_trip).await;
            act(&inner);
        });
    }

    async fn round_trip(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(self.round_trip).await;
    }
}

#[async_trait]
impl Tree for DistantTree {
    fn address(&self) -> &str {
        self.inner.address()
    }

    fn ensure(&self, path: &str, data: Bytes, kind: NodeKind) {
        let path = path.to_owned();
        self.later(move |tree| tree.ensure(&path, data, kind));
    }

    fn withdraw(&self, path: &str) {
        let path = path.to_owned();
        self.later(move |tree| tree.withdraw(&path));
    }

    /// The answer to the request that is under way already.
    async fn settled(&self, path: &str, timeout: Duration) -> Result<(), TreeError> {
        tokio::time::sleep(self.round_trip).await;
        self.inner.settled(path, timeout).await
    }

    fn children(&self, path: &str, create: bool) -> watch::Receiver<Observation<Option<Children>>> {
        let sender = watch::Sender::new(Observation::unknown());
        let (receiver, path) = (sender.subscribe(), path.to_owned());
        self.later(move |tree| {
            let mut source = tree.children(&path, create);
            tokio::spawn(async move {
                loop {
                    sender.send_replace(source.borrow_and_update().clone());
                    if source.changed().await.is_err() || sender.is_closed() {
                        break;
                    }
                }
            });
        });
        receiver
    }

    fn data(&self, path: &str) -> watch::Receiver<Observation<Option<NodeData>>> {
        self.inner.data(path)
    }

    async fn list(&self, path: &str) -> Result<Option<Children>, TreeError> {
        self.round_trip().await;
        self.inner.list(path).await
    }

    async fn read(&self, path: &str) -> Result<Option<NodeData>, TreeError> {
        self.round_trip().await;
        self.inner.read(path).await
    }

    async fn create(&self, path: &str, data: Bytes) -> Result<bool, TreeError> {
        self.round_trip().await;
        self.inner.create(path, data).await
    }

    async fn set(&self, path: &str, data: Bytes, expected: Option<i32>) -> Result<bool, TreeError> {
        self.round_trip().await;
        self.inner.set(path, data, expected).await
    }

    async fn delete(&self, path: &str) -> Result<bool, TreeError> {
        self.round_trip().await;
        self.inner.delete(path).await
    }

    fn session(&self) -> watch::Receiver<SessionState> {
        self.inner.session()
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}
