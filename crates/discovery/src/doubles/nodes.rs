//! A tree that says what a test tells it to, observation by observation.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use dubhe_core::observation::Observation;
use dubhe_core::tree::{Children, NodeData, NodeKind, SessionState, Tree, TreeError};
use parking_lot::Mutex;
use tokio::sync::watch;

type Shown<T> = HashMap<String, watch::Sender<Observation<Option<T>>>>;

/// Nodes whose lists and data are set apart, so that one can be late.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    lists: Mutex<Shown<Children>>,
    data: Mutex<Shown<NodeData>>,
    /// How often each node is wanted, and with what data.
    wanted: Mutex<HashMap<String, (usize, Bytes)>>,
    /// What somebody else writes before each of the next writes.
    before: Mutex<VecDeque<String>>,
}

impl Nodes {
    /// Longest data that a node can have.
    pub(crate) const LIMIT: usize = 1_000;

    /// What a node is wanted to hold.
    pub(crate) fn wanted(&self, path: &str) -> Option<String> {
        let wanted = self.wanted.lock();
        let (_, data) = wanted.get(path).filter(|(count, _)| *count > 0)?;
        Some(String::from_utf8_lossy(data).into_owned())
    }

    pub(crate) fn list(&self, path: &str, names: &[&str]) {
        let known = Some(Some(names.iter().copied().map(Arc::from).collect()));
        self.lists.lock().entry(path.to_owned()).or_default().send_modify(|shown| shown.known = known);
    }

    pub(crate) fn list_trouble(&self, path: &str, trouble: Option<&str>) {
        let mut lists = self.lists.lock();
        let shown = lists.entry(path.to_owned()).or_default();
        shown.send_modify(|shown| shown.trouble = trouble.map(Arc::from));
    }

    /// `None`: the node is gone.
    pub(crate) fn write(&self, path: &str, text: Option<&str>) {
        self.data.lock().entry(path.to_owned()).or_default().send_modify(|shown| {
            let before = shown.known.take().flatten();
            let version = before.map_or(0, |node| node.version + 1);
            let bytes = text.map(|text| Bytes::copy_from_slice(text.as_bytes()));
            shown.known = Some(bytes.map(|bytes| NodeData { bytes, version }));
        });
    }

    pub(crate) fn data_trouble(&self, path: &str, trouble: Option<&str>) {
        let mut data = self.data.lock();
        let shown = data.entry(path.to_owned()).or_default();
        shown.send_modify(|shown| shown.trouble = trouble.map(Arc::from));
    }

    /// Lets somebody else write these, each right before one of our next writes.
    pub(crate) fn interrupt(&self, texts: &[&str]) {
        self.before.lock().extend(texts.iter().map(|text| (*text).to_owned()));
    }

    pub(crate) fn text(&self, path: &str) -> Option<String> {
        let node = self.node(path)?;
        Some(String::from_utf8_lossy(&node.bytes).into_owned())
    }

    /// How many nodes' data is followed.
    pub(crate) fn followed(&self) -> usize {
        self.data.lock().values().filter(|sender| sender.receiver_count() > 0).count()
    }

    fn node(&self, path: &str) -> Option<NodeData> {
        self.data.lock().get(path)?.borrow().known.clone()?
    }

    fn let_others_write(&self, path: &str) {
        if let Some(text) = self.before.lock().pop_front() {
            self.write(path, Some(&text));
        }
    }
}

#[async_trait]
impl Tree for Nodes {
    fn address(&self) -> &str {
        "nodes://test"
    }

    fn ensure(&self, path: &str, data: Bytes, _: NodeKind) {
        let mut wanted = self.wanted.lock();
        let (count, shown) = wanted.entry(path.to_owned()).or_default();
        (*count, *shown) = (*count + 1, data);
    }

    fn withdraw(&self, path: &str) {
        let mut wanted = self.wanted.lock();
        let (count, _) = wanted.get_mut(path).expect("what is withdrawn was wanted");
        *count = count.checked_sub(1).expect("no more often than it was wanted");
    }

    async fn settled(&self, path: &str, _: Duration) -> Result<(), TreeError> {
        match self.wanted(path) {
            Some(data) if data.len() > Self::LIMIT => Err(TreeError::Invalid("too much data".to_owned())),
            _ => Ok(()),
        }
    }

    fn children(&self, path: &str, _: bool) -> watch::Receiver<Observation<Option<Children>>> {
        self.lists.lock().entry(path.to_owned()).or_default().subscribe()
    }

    fn data(&self, path: &str) -> watch::Receiver<Observation<Option<NodeData>>> {
        self.data.lock().entry(path.to_owned()).or_default().subscribe()
    }

    async fn list(&self, _: &str) -> Result<Option<Children>, TreeError> {
        unreachable!("lists are followed")
    }

    async fn read(&self, path: &str) -> Result<Option<NodeData>, TreeError> {
        Ok(self.node(path))
    }

    async fn create(&self, path: &str, data: Bytes) -> Result<bool, TreeError> {
        self.let_others_write(path);
        let is_free = self.node(path).is_none();
        if is_free {
            self.write(path, Some(&String::from_utf8_lossy(&data)));
        }
        Ok(is_free)
    }

    async fn set(&self, path: &str, data: Bytes, expected: Option<i32>) -> Result<bool, TreeError> {
        self.let_others_write(path);
        let is_as_expected =
            self.node(path).is_some_and(|node| expected.is_none_or(|version| version == node.version));
        if is_as_expected {
            self.write(path, Some(&String::from_utf8_lossy(&data)));
        }
        Ok(is_as_expected)
    }

    async fn delete(&self, _: &str) -> Result<bool, TreeError> {
        unreachable!("nothing is deleted here")
    }

    fn session(&self) -> watch::Receiver<SessionState> {
        watch::Sender::new(SessionState::Connected { epoch: 1 }).subscribe()
    }

    async fn close(&self) {}
}
