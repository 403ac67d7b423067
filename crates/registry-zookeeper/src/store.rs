//! Requests to the store, each safe to repeat.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use dubhe_core::BoxFuture;
use dubhe_core::tree::{Children, NodeData, NodeKind};
use futures::FutureExt;
use futures::future::join_all;
use zookeeper_client::{CreateMode, Error, OneshotWatcher, Stat};

use crate::failure::Failure;
use crate::link::Up;

/// Tries of one job against writers that change the same node at the same time.
const RACES: usize = 8;

/// What a request holds besides path and data: headers, lengths, flags, access list. Rounded up.
const OVERHEAD: usize = 128;

/// Resolves when a watch has fired.
pub(crate) type Armed = BoxFuture<'static, ()>;

/// A read with the watch that the same request set: nothing can change in between.
pub(crate) struct Look<V> {
    /// `None`: no such node.
    pub(crate) value: Option<V>,
    /// The store's order of changes of this kind; `None` for a missing node.
    pub(crate) sequence: Option<i64>,
    pub(crate) armed: Armed,
}

/// What can be watched.
pub(crate) trait Observable: Clone + PartialEq + Send + Sync + 'static {
    /// Reads a node and watches it; [`Failure::Missing`], and no watch, if there is none.
    fn look_at_present(up: &Up, path: &str) -> impl Future<Output = Result<Look<Self>, Failure>> + Send;

    /// Reads a node and watches it, or watches for it.
    fn look(up: &Up, path: &str) -> impl Future<Output = Result<Look<Self>, Failure>> + Send {
        async move {
            for _ in 0..RACES {
                match Self::look_at_present(up, path).await {
                    Err(Failure::Missing) => {}
                    present => return present,
                }
                if let Some(missing) = up.look_for_missing(path).await? {
                    return Ok(missing);
                }
            }
            Err(Failure::Missing)
        }
    }
}

impl Observable for Children {
    async fn look_at_present(up: &Up, path: &str) -> Result<Look<Self>, Failure> {
        let (names, stat, watcher) = up.call(up.client.get_and_watch_children(path)).await?;
        Ok(up.found(sorted(names), stat.pzxid, watcher))
    }
}

impl Observable for NodeData {
    async fn look_at_present(up: &Up, path: &str) -> Result<Look<Self>, Failure> {
        let (bytes, stat, watcher) = up.call(up.client.get_and_watch_data(path)).await?;
        Ok(up.found(node_data(bytes, &stat), stat.mzxid, watcher))
    }
}

impl Up {
    /// Awaits an answer of the client.
    pub(crate) async fn call<T>(&self, answer: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
        guarded(answer).await.map_err(|error| {
            if matches!(error, Error::UnexpectedError(_)) {
                self.suspicion.notify_one();
            }
            error.into()
        })
    }

    /// Makes `path` with its parents, whatever is there: an ephemeral node is ours afterwards, a persistent one has the
    /// data. An ephemeral of our own live session is not touched if its data are right.
    pub(crate) async fn hold(&self, path: &str, data: &Bytes, kind: NodeKind) -> Result<(), Failure> {
        self.check_size(path, data.len())?;
        for _ in 0..RACES {
            match self.create_with_parents(path, data, mode(kind)).await {
                Ok(()) => return Ok(()),
                Err(Failure::Exists | Failure::Missing) => {}
                Err(failure) => return Err(failure),
            }
            let Some(stat) = self.call(self.client.check_stat(path)).await? else { continue };
            let settled = if self.is_right(&stat, kind) {
                self.set_if_different(path, data, &stat).await
            } else {
                self.replace(path, data, kind, &stat).await
            };
            match settled {
                Err(Failure::Missing | Failure::Exists | Failure::Version) => {}
                settled => return settled,
            }
        }
        Err(Failure::Exists)
    }

    /// As [`Self::hold`] for a node that held in an earlier round: mostly one cheap read.
    pub(crate) async fn verify(&self, path: &str, data: &Bytes, kind: NodeKind) -> Result<(), Failure> {
        match self.call(self.client.check_stat(path)).await? {
            Some(stat) if self.is_right(&stat, kind) => Ok(()),
            _ => self.hold(path, data, kind).await,
        }
    }

    /// Takes back what [`Self::hold`] made. An ephemeral node that another process has taken over is not ours to delete.
    pub(crate) async fn release(&self, path: &str, kind: NodeKind) -> Result<(), Failure> {
        if kind == NodeKind::Ephemeral {
            match self.call(self.client.check_stat(path)).await? {
                Some(stat) if self.sessions.contains(&stat.ephemeral_owner) => {}
                _ => return Ok(()),
            }
        }
        self.remove(path).await.map(drop)
    }

    /// Deletes `path`; false if it was not there.
    pub(crate) async fn remove(&self, path: &str) -> Result<bool, Failure> {
        match self.call(self.client.delete(path, None)).await {
            Ok(()) => Ok(true),
            Err(Failure::Missing) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// Makes a persistent node with its parents, if it is missing; says whether it was.
    pub(crate) async fn create(&self, path: &str, data: &Bytes) -> Result<bool, Failure> {
        self.check_size(path, data.len())?;
        for _ in 0..RACES {
            match self.create_with_parents(path, data, CreateMode::Persistent).await {
                Ok(()) => return Ok(true),
                Err(Failure::Exists) => return Ok(false),
                Err(Failure::Missing) => {}
                Err(failure) => return Err(failure),
            }
        }
        Err(Failure::Missing)
    }

    /// Sets data if the version is `expected`; false if it is not, or there is no node.
    pub(crate) async fn set(&self, path: &str, data: &Bytes, expected: Option<i32>) -> Result<bool, Failure> {
        self.check_size(path, data.len())?;
        match self.call(self.client.set_data(path, data, expected)).await {
            Ok(_) => Ok(true),
            Err(Failure::Missing | Failure::Version) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    pub(crate) async fn list(&self, path: &str) -> Result<Option<Children>, Failure> {
        match self.call(self.client.list_children(path)).await {
            Ok(names) => Ok(Some(sorted(names))),
            Err(Failure::Missing) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    pub(crate) async fn read(&self, path: &str) -> Result<Option<NodeData>, Failure> {
        match self.call(self.client.get_data(path)).await {
            Ok((bytes, stat)) => Ok(Some(node_data(bytes, &stat))),
            Err(Failure::Missing) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// The server cuts the connection on a longer request, and with it everybody else's requests: it must not be sent.
    fn check_size(&self, path: &str, data: usize) -> Result<(), Failure> {
        let limit = self.settings.packet_limit;
        let size = request_size(path, data);
        if size <= limit {
            return Ok(());
        }
        Err(Failure::Invalid(format!(
            "{data} bytes of data make a request of {size} bytes, more than the {limit} that a server takes; store less, \
             or raise jute.maxbuffer of the servers and of the registry address"
        )))
    }

    /// Parents that are not known to exist are made in the same go: requests are sent when they are called, and executed
    /// in that order, so that the whole chain takes one round trip.
    async fn create_with_parents(&self, path: &str, data: &[u8], mode: CreateMode) -> Result<(), Failure> {
        let acls = self.settings.acls();
        let folder = CreateMode::Persistent.with_acls(acls);
        let parents = self.parents.claim(path);
        let parents = parents.into_iter().map(|parent| self.call(self.client.create(parent, &[], &folder)));
        let parents: Vec<_> = parents.collect();
        let node = self.client.create(path, data, &mode.with_acls(acls));
        let (parents, node) = futures::join!(join_all(parents), self.call(node));
        match node {
            Ok(_) => Ok(()),
            Err(Failure::Missing) => {
                self.parents.forget(path);
                let refused = parents.into_iter().filter_map(Result::err).find(Failure::is_definite);
                Err(refused.unwrap_or(Failure::Missing))
            }
            Err(failure) => {
                if !failure.is_definite() && failure != Failure::Exists {
                    // The creates of the parents may have been lost as well.
                    self.parents.forget(path);
                }
                Err(failure)
            }
        }
    }

    /// The node is of the wanted kind, and an ephemeral one is of our own session.
    fn is_right(&self, stat: &Stat, kind: NodeKind) -> bool {
        let owner = match kind {
            NodeKind::Ephemeral => self.session,
            NodeKind::Persistent => 0,
        };
        stat.ephemeral_owner == owner
    }

    async fn set_if_different(&self, path: &str, data: &Bytes, stat: &Stat) -> Result<(), Failure> {
        if usize::try_from(stat.data_length) == Ok(data.len()) {
            let (present, _) = self.call(self.client.get_data(path)).await?;
            if present == *data {
                return Ok(());
            }
        }
        self.call(self.client.set_data(path, data, None)).await.map(drop)
    }

    /// The node is of another session, of a dead one most likely, and would go away with it: a new one takes its place
    /// in one step.
    async fn replace(&self, path: &str, data: &[u8], kind: NodeKind, stat: &Stat) -> Result<(), Failure> {
        let owner = stat.ephemeral_owner;
        tracing::info!(registry.addr = %self.settings.address, path, owner, "node of another session is replaced");
        let mut writer = self.client.new_multi_writer();
        writer.add_delete(path, Some(stat.version))?;
        writer.add_create(path, data, &mode(kind).with_acls(self.settings.acls()))?;
        self.call(writer.commit().map(|result| result.map_err(Error::from))).await.map(drop)
    }

    async fn look_for_missing<V>(&self, path: &str) -> Result<Option<Look<V>>, Failure> {
        let (stat, watcher) = self.call(self.client.check_and_watch_stat(path)).await?;
        let look = || Look { value: None, sequence: None, armed: self.armed(watcher) };
        Ok(stat.is_none().then(look))
    }

    fn found<V>(&self, value: V, sequence: i64, watcher: OneshotWatcher) -> Look<V> {
        Look { value: Some(value), sequence: Some(sequence), armed: self.armed(watcher) }
    }

    /// A watch of a dead client panics instead of firing: then the owner of the session must look.
    fn armed(&self, watcher: OneshotWatcher) -> Armed {
        let suspicion = Arc::clone(&self.suspicion);
        Box::pin(async move {
            if AssertUnwindSafe(watcher.changed()).catch_unwind().await.is_err() {
                suspicion.notify_one();
                std::future::pending::<()>().await;
            }
        })
    }
}

/// The client indexes into answers without looking at their length; a malformed one must not end our task.
pub(crate) async fn guarded<T>(answer: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let panicked = |_| Err(Error::UnexpectedError("the client could not read an answer".to_owned()));
    AssertUnwindSafe(answer).catch_unwind().await.unwrap_or_else(panicked)
}

/// What the client answers when its own task is gone: a request that was under way, and one that came later.
pub(crate) fn is_death(error: &Error) -> bool {
    match error {
        Error::UnexpectedError(text) => text.starts_with("BUG: ") || text.starts_with("expect error state"),
        _ => false,
    }
}

/// Bytes of a create request.
pub(crate) fn request_size(path: &str, data: usize) -> usize {
    path.len() + data + OVERHEAD
}

fn mode(kind: NodeKind) -> CreateMode {
    match kind {
        NodeKind::Ephemeral => CreateMode::Ephemeral,
        NodeKind::Persistent => CreateMode::Persistent,
    }
}

fn sorted(mut names: Vec<String>) -> Children {
    names.sort_unstable();
    names.dedup();
    names.into_iter().map(Arc::from).collect()
}

fn node_data(bytes: Vec<u8>, stat: &Stat) -> NodeData {
    NodeData { bytes: bytes.into(), version: stat.version }
}
