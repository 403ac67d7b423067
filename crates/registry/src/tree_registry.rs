//! The registry over a tree.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use dubhe_common::defaults::DEFAULT_REGISTRY_TIMEOUT;
use dubhe_common::{Url, UrlFactory, keys, list_items};
use dubhe_core::registry::{Registry, RegistryError, ServiceView, Subscription};
use dubhe_core::tree::{NodeKind, SessionState, Tree, TreeError};
use futures::future::join_all;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};
use tracing::Instrument;

use crate::cache_file::{CacheFile, Recorder};
use crate::follower::Follower;
use crate::listing::Reader;
use crate::pace::Pace;
use crate::paths::{self, Paths};
use crate::shared_trees::TreeLease;

/// How long after its opening a registry is waited for by those who can do without it (`check=false`, addresses in
/// the cache file). Later they do not wait at all. Origin: ours; Dubbo blocks for the whole `timeout`.
const CONNECT_GRACE: Duration = Duration::from_secs(3);

/// Dubbo's interface-level registry on a tree of nodes.
///
/// Provider and consumer URLs are nodes `/<group>/<interface>/<category>/<url>`, ephemeral unless the URL says
/// `dynamic=false`. Registrations are intents of the tree, subscriptions are its watches: both survive whatever
/// happens to the connection.
///
/// Parameters of the registry's URL (all times in milliseconds):
///
/// | name | default | meaning |
/// |---|---|---|
/// | `group` | `dubbo` | root of the tree |
/// | `check` | true | whether a registry out of reach is an error for those who ask for it too |
/// | `timeout` | 30000 | how long the registry is waited for |
/// | `delay-notification` | 5000 | ten changes of providers are passed on per that time |
/// | `accepts` | all | protocols that may be registered, `-x` excludes |
/// | `file`, `file.cache`, `save.file` | see [`CacheFile`] | the cache file |
/// | `enable-empty-protection` | false | whether an empty list leaves the cache file alone |
pub struct TreeRegistry {
    pub(crate) url: Url,
    pub(crate) address: Arc<str>,
    pub(crate) paths: Paths,
    pub(crate) tree: Arc<dyn Tree>,
    pub(crate) session: watch::Receiver<SessionState>,
    /// Taken by `close`, under a lock that later closers wait for.
    lease: tokio::sync::Mutex<Option<TreeLease>>,
    pub(crate) closed: watch::Sender<bool>,
    pub(crate) urls: UrlFactory,
    registered: Mutex<HashMap<String, Url>>,
    pub(crate) cache: Option<Arc<CacheFile>>,
    pub(crate) timeout: Duration,
    opened: Instant,
    /// Held by every live subscription's task, to count them.
    subscriptions: Arc<()>,
}

impl TreeRegistry {
    /// The registry at `url` on a tree that nobody else uses: closing the registry closes the tree.
    pub fn new(url: &Url, tree: Arc<dyn Tree>) -> Self {
        Self::over(url, TreeLease::sole(tree))
    }

    /// The registry at `url` on a shared tree.
    pub fn over(url: &Url, lease: TreeLease) -> Self {
        let tree = Arc::clone(lease.tree());
        Self {
            url: url.clone(),
            address: Arc::from(tree.address()),
            paths: Paths::new(url),
            session: tree.session(),
            tree,
            lease: tokio::sync::Mutex::new(Some(lease)),
            closed: watch::Sender::new(false),
            urls: UrlFactory::new(),
            registered: Mutex::new(HashMap::new()),
            cache: CacheFile::of_registry(url),
            timeout: url.duration_param(keys::TIMEOUT, DEFAULT_REGISTRY_TIMEOUT),
            opened: Instant::now(),
            subscriptions: Arc::new(()),
        }
    }

    /// What makes the registry's URLs: shares their parts.
    pub fn url_factory(&self) -> &UrlFactory {
        &self.urls
    }

    /// How many URLs are registered.
    pub fn registrations(&self) -> usize {
        self.registered.lock().len()
    }

    /// How many subscriptions are alive.
    pub fn subscriptions(&self) -> usize {
        Arc::strong_count(&self.subscriptions) - 1
    }

    fn check_open(&self) -> Result<(), RegistryError> {
        if *self.closed.borrow() { Err(RegistryError::Closed(self.address.to_string())) } else { Ok(()) }
    }

    /// Whether trouble with the registry is an error for an operation on `url`.
    pub(crate) fn checks(&self, url: &Url) -> bool {
        self.url.bool_param(keys::CHECK, true) && url.bool_param(keys::CHECK, true)
    }

    fn failed(&self, action: &'static str, url: &Url, cause: TreeError) -> RegistryError {
        RegistryError::Failed {
            action,
            url: url.to_plain_string().into(),
            registry: Box::from(&*self.address),
            cause,
        }
    }

    fn accepts(&self, url: &Url) -> bool {
        let Some(list) = self.url.param(keys::ACCEPTS) else { return true };
        let (refused, wanted): (Vec<&str>, Vec<&str>) =
            list_items(list).partition(|item| item.starts_with('-'));
        if wanted.is_empty() {
            return !refused.iter().any(|item| &item[1..] == url.protocol());
        }
        wanted.contains(&url.protocol())
    }

    /// Whether the session is alive. One that is still being opened is waited for within the grace time.
    pub(crate) async fn connected_in_grace(&self) -> bool {
        let mut session = self.session.clone();
        let decided = session.wait_for(|state| *state != SessionState::Connecting);
        // Out of time, or decided: what counts is the state.
        let _ = timeout_at(self.opened + CONNECT_GRACE, decided).await;
        self.is_available()
    }

    /// Waits for the intent of `path` as long as the session is alive; `Ok(false)` when it is not.
    async fn settled_while_connected(&self, path: &str) -> Result<bool, TreeError> {
        let mut session = self.session.clone();
        tokio::select! {
            biased;
            settled = self.tree.settled(path, self.timeout) => settled.map(|()| true),
            _ = session.wait_for(|state| !matches!(state, SessionState::Connected { .. })) => Ok(false),
        }
    }

    fn reader(&self, url: &Url) -> Reader {
        Reader::new(url, &self.urls, &self.address)
    }
}

#[async_trait]
impl Registry for TreeRegistry {
    fn url(&self) -> &Url {
        &self.url
    }

    fn is_available(&self) -> bool {
        matches!(*self.session.borrow(), SessionState::Connected { .. }) && !*self.closed.borrow()
    }

    async fn register(&self, url: &Url) -> Result<(), RegistryError> {
        self.check_open()?;
        if !self.accepts(url) {
            tracing::info!(registry.addr = %self.address, %url, "not registering a protocol this registry does not accept");
            return Ok(());
        }
        let path = self.paths.url(url)?;
        let is_new = match self.registered.lock().entry(path.clone()) {
            Entry::Occupied(_) => false,
            Entry::Vacant(entry) => {
                entry.insert(url.clone());
                let data = Bytes::copy_from_slice(url.host().as_bytes());
                self.tree.ensure(&path, data, kind(url));
                true
            }
        };
        if self.checks(url) && url.port() != 0 {
            let settled = self.tree.settled(&path, self.timeout).await;
            return settled.map_err(|error| {
                if is_new && self.registered.lock().remove(&path).is_some() {
                    self.tree.withdraw(&path);
                }
                self.failed("register", url, error)
            });
        }
        let outcome = match self.connected_in_grace().await {
            true => self.settled_while_connected(&path).await,
            false => Ok(false),
        };
        match outcome {
            Ok(true) => {}
            Ok(false) => {
                tracing::warn!(registry.addr = %self.address, %url, "will register when the registry can be reached");
            }
            Err(error) => {
                tracing::warn!(registry.addr = %self.address, %url, %error, "registration failed and is tried again");
            }
        }
        Ok(())
    }

    async fn unregister(&self, url: &Url) -> Result<(), RegistryError> {
        self.check_open()?;
        let path = self.paths.url(url)?;
        if self.registered.lock().remove(&path).is_none() {
            return Ok(());
        }
        // Before anything is awaited: from here on no recovery brings the node back.
        self.tree.withdraw(&path);
        match self.settled_while_connected(&path).await {
            Ok(_) | Err(TreeError::Unreachable { .. } | TreeError::Closed(_)) => Ok(()),
            Err(error) => Err(self.failed("unregister", url, error)),
        }
    }

    async fn subscribe(&self, url: &Url) -> Result<Subscription, RegistryError> {
        self.check_open()?;
        Paths::name(url)?;
        let sender = Arc::new(watch::Sender::new(Arc::new(ServiceView::default())));
        let mut view = sender.subscribe();
        let reader = self.reader(url);
        let recorder = self
            .cache
            .as_ref()
            .filter(|_| !paths::is_wildcard(url))
            .map(|cache| Recorder::new(cache, url, &self.url));
        let mut follower = Follower::new(
            Arc::clone(&self.tree),
            self.paths.clone(),
            url,
            reader.clone(),
            Pace::new(url, &self.url),
            Arc::clone(&sender),
            recorder,
        );
        follower.catch_up();
        let (closed, alive) = (self.closed.subscribe(), Arc::clone(&self.subscriptions));
        let span = tracing::debug_span!("subscription", rpc.service = url.service_interface());
        let task = tokio::spawn(
            async move {
                follower.run(closed).await;
                drop(alive);
            }
            .instrument(span),
        );
        let guard = AbortOnDrop(task.abort_handle());
        match self.first_view(url, &reader, &sender).await {
            Ok(()) => {
                // What is there now is news to the subscriber.
                view.mark_changed();
                Ok(Subscription::new(view, guard))
            }
            Err(TreeError::Closed(address)) => Err(RegistryError::Closed(address)),
            Err(error) => Err(self.failed("subscribe", url, error)),
        }
    }

    async fn lookup(&self, url: &Url) -> Result<Vec<Url>, RegistryError> {
        self.check_open()?;
        let failed = |error| self.failed("lookup", url, error);
        let interfaces: Vec<Arc<str>> = if paths::is_wildcard(url) {
            self.tree
                .list(self.paths.root())
                .await
                .map_err(failed)?
                .iter()
                .flat_map(|all| all.iter().cloned())
                .collect()
        } else {
            vec![Arc::from(Paths::name(url)?)]
        };
        let categories = paths::categories(url);
        let nodes =
            interfaces.iter().flat_map(|name| categories.iter().map(move |category| (name, *category)));
        let lists = join_all(nodes.map(|(name, category)| async move {
            (category, self.tree.list(&self.paths.category(name, category)).await)
        }))
        .await;
        let reader = self.reader(url);
        let mut urls = Vec::new();
        for (category, children) in lists {
            if let Some(names) = children.map_err(failed)? {
                urls.extend(reader.read_all(category, &names));
            }
        }
        Ok(urls)
    }

    async fn close(&self) {
        let mut lease = self.lease.lock().await;
        let Some(lease) = lease.take() else { return };
        self.closed.send_replace(true);
        let registered = std::mem::take(&mut *self.registered.lock());
        let leaving: Vec<String> = registered
            .into_iter()
            .filter(|(_, url)| kind(url) == NodeKind::Ephemeral)
            .map(|(path, _)| path)
            .collect();
        for path in &leaving {
            self.tree.withdraw(path);
        }
        for outcome in join_all(leaving.iter().map(|path| self.settled_while_connected(path))).await {
            if let Err(error) = outcome {
                tracing::warn!(registry.addr = %self.address, %error, "a registration could not be taken back");
            }
        }
        if let Some(cache) = &self.cache {
            cache.flush().await;
        }
        lease.release().await;
    }
}

impl fmt::Debug for TreeRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TreeRegistry")
            .field("url", &self.url)
            .field("registrations", &self.registrations())
            .field("subscriptions", &self.subscriptions())
            .finish_non_exhaustive()
    }
}

fn kind(url: &Url) -> NodeKind {
    if url.bool_param(keys::DYNAMIC, true) { NodeKind::Ephemeral } else { NodeKind::Persistent }
}

struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
