//! Layer 7, below the registries: a tree of nodes kept by a coordination service.
//!
//! Interface-level registry, application-level discovery, metadata report, mapping and config centre are written once
//! over this contract; ZooKeeper and memory implement it. One tree is one session, shared by all of them.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use dubhe_common::Url;
use tokio::sync::watch;

use crate::observation::Observation;

/// Names of a node's children, each once, sorted.
pub type Children = Arc<[Arc<str>]>;

/// A node's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeData {
    /// The bytes; may be empty.
    pub bytes: Bytes,
    /// Counts the changes of the node's data since its creation; what compare-and-set compares.
    pub version: i32,
}

/// How long a node lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// As long as the session that made it.
    Ephemeral,
    /// Until it is deleted.
    Persistent,
}

/// The state of the session with the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SessionState {
    /// No session yet, or between two sessions.
    Connecting,
    /// Alive. `epoch` counts the sessions: a change of it means that the former session's ephemerals are gone or going.
    Connected {
        /// Number of this session, from 1.
        epoch: u64,
    },
    /// The connection is lost; the session may survive.
    Suspended,
    /// Closed by [`Tree::close`].
    Closed,
}

/// A tree of nodes with sessions, ephemeral nodes and watches.
///
/// Paths are absolute, `/`-separated and already encoded (`/dubbo/demo.Foo/providers/dubbo%3A%2F%2F...`).
///
/// Writers declare *intents* ([`Tree::ensure`], [`Tree::withdraw`]); the tree drives the store towards them for as long
/// as it lives, over failures, reconnects and new sessions. Readers hold *observations*; dropping the last receiver of a
/// path ends its watch.
///
/// Promises:
/// - An intent is recorded before anything is sent, and a withdrawn intent is forgotten before its delete is sent, so
///   that no recovery brings it back.
/// - An ephemeral node that belongs to another session is never taken for our own: it is deleted and made again. One of
///   our own live session is left alone.
/// - Missing parents are made, persistent.
/// - Observations of a path are ordered by their stamp; the last change is always seen, steps in between may be merged.
/// - Connection loss never shows as an empty list or a missing node.
/// - No method panics or hangs for ever; those that wait for the store end with an error when `timeout`s of the
///   implementation (documented there) are over.
#[async_trait]
pub trait Tree: Send + Sync + Debug {
    /// The address for messages: `zookeeper://192.0.2.1:2181`, without secrets.
    fn address(&self) -> &str;

    /// Declares that `path` shall exist with `data`. Counted: as many [`Tree::withdraw`] calls undo it. A repeated call
    /// with other data replaces the data on the same node.
    fn ensure(&self, path: &str, data: Bytes, kind: NodeKind);

    /// Takes one [`Tree::ensure`] of `path` back. When none is left the node shall not exist, and is deleted as soon as
    /// the store can be reached. An ephemeral node that another session has taken over meanwhile is left to it.
    fn withdraw(&self, path: &str);

    /// Waits until the latest intent for `path` holds in the store: present, or gone after a withdrawal. A definite
    /// refusal ([`TreeError::Denied`], [`TreeError::Invalid`]) is returned at once; the intent stays and is tried again.
    async fn settled(&self, path: &str, timeout: Duration) -> Result<(), TreeError>;

    /// The children of `path`, now and from now on. Known `None`: the node does not exist. With `create` a missing node is
    /// made (persistent) first.
    fn children(&self, path: &str, create: bool) -> watch::Receiver<Observation<Option<Children>>>;

    /// The data of `path`, now and from now on. Known `None`: the node does not exist.
    fn data(&self, path: &str) -> watch::Receiver<Observation<Option<NodeData>>>;

    /// Reads children once; `None`: the node does not exist.
    async fn list(&self, path: &str) -> Result<Option<Children>, TreeError>;

    /// Reads data once; `None`: the node does not exist.
    async fn read(&self, path: &str) -> Result<Option<NodeData>, TreeError>;

    /// Creates `path` (and its parents) as a persistent node with `data`; `false` when it exists already.
    async fn create(&self, path: &str, data: Bytes) -> Result<bool, TreeError>;

    /// Sets the data of `path` if its version is `expected` (`None`: whatever it is); `false` when the version differs or the
    /// node does not exist.
    async fn set(&self, path: &str, data: Bytes, expected: Option<i32>) -> Result<bool, TreeError>;

    /// Deletes `path` if it exists and has no children; `false` when there was none.
    async fn delete(&self, path: &str) -> Result<bool, TreeError>;

    /// The session, now and from now on.
    fn session(&self) -> watch::Receiver<SessionState>;

    /// Deletes own ephemeral nodes, ends the session and all watches. Later calls fail with [`TreeError::Closed`].
    /// Idempotent. After it returns the store holds none of this session's ephemerals, if it could be reached.
    async fn close(&self);
}

/// Opens trees: one per kind of store, found by the registry address's protocol (`zookeeper`, `memory`).
pub trait TreeFactory: Send + Sync + Debug {
    /// Opens the tree at `url` (`zookeeper://user:password@h1:2181?backup=h2:2181&session=60000`). Returns at once; the
    /// connection is made in the background. Fails only for a URL that can never work.
    fn open(&self, url: &Url) -> Result<Arc<dyn Tree>, TreeError>;
}

/// Why an operation on the tree failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// The store cannot be reached now, or did not answer in time; whether a write happened is unknown.
    #[error("{address} cannot be reached ({reason}): it is tried again in the background")]
    Unreachable {
        /// Address of the store.
        address: String,
        /// What happened.
        reason: String,
    },
    /// The store refuses: missing or wrong credentials.
    #[error(
        "access to {path} at {address} is denied ({reason}): check user and password of the registry address and the ACL of the node"
    )]
    Denied {
        /// Address of the store.
        address: String,
        /// The node.
        path: String,
        /// What the store said.
        reason: String,
    },
    /// The request can never work: a malformed path or address, data over the store's limit.
    #[error("{0}")]
    Invalid(String),
    /// The tree was closed.
    #[error("the session with {0} is closed")]
    Closed(String),
}
