//! Layer 7, registry: interface-level registration and discovery.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use dubhe_common::Url;
use tokio::sync::watch;

use crate::tree::TreeError;

/// A registry of Dubbo 2's model: providers and consumers of an interface, its rules, as URLs.
///
/// Promises:
/// - What was registered stays registered until it is unregistered or the registry is closed, whatever happens to the
///   connection in between; what was subscribed is kept current in the same way.
/// - A view never loses an address because of trouble with the registry.
/// - `register` and `subscribe` succeed even when the registry cannot be reached now, if `check=false` stands on the URL or
///   on the registry's own URL; with `check=true` (the default; a consumer URL has port 0 and never fails a registration)
///   they fail after the registry's timeout and leave no intent behind.
#[async_trait]
pub trait Registry: Send + Sync + fmt::Debug {
    /// The registry's URL, without secrets in its `Display`.
    fn url(&self) -> &Url;

    /// Whether the session with the registry is alive now.
    fn is_available(&self) -> bool;

    /// Registers a provider or consumer URL, exactly as it stands.
    async fn register(&self, url: &Url) -> Result<(), RegistryError>;

    /// Takes the registration of exactly this URL back. Not registered: no error.
    async fn unregister(&self, url: &Url) -> Result<(), RegistryError>;

    /// Subscribes to what matches the consumer URL `url`: the categories in its `category` parameter, several groups and any
    /// version as its `group` and `version` say, every interface when its interface is `*`. Returns when the first view is
    /// there: read from the registry or, when that cannot be reached, from the cache file.
    async fn subscribe(&self, url: &Url) -> Result<Subscription, RegistryError>;

    /// What matches `url` now, without subscribing.
    async fn lookup(&self, url: &Url) -> Result<Vec<Url>, RegistryError>;

    /// Unregisters everything that is dynamic, ends all subscriptions and, unless others share it, the session.
    /// What was registered with `dynamic=false` stays: it was asked to outlive its maker. Idempotent.
    async fn close(&self);
}

/// Opens registries by the protocol of their address.
pub trait RegistryFactory: Send + Sync + fmt::Debug {
    /// The registry at `url` (`zookeeper://h1:2181?backup=h2:2181`); the connection is made in the background.
    fn open(&self, url: &Url) -> Result<Arc<dyn Registry>, RegistryError>;
}

/// What one subscription knows of a service.
#[derive(Clone, Debug, Default)]
pub struct ServiceView {
    /// `configurators`: override rules. Applied before providers.
    pub configurators: Category,
    /// `routers`: legacy routing rules. Applied before providers.
    pub routers: Category,
    /// `providers`.
    pub providers: Category,
    /// `consumers`: only known to subscriptions that ask for it (`category=*`), such as an administrator's.
    pub consumers: Category,
    /// Why the view may be out of date; `None` while the watch is alive.
    pub trouble: Option<Arc<str>>,
    /// Whether the addresses come from the cache file and were not confirmed by the registry yet.
    pub from_cache: bool,
}

/// One category of a view: always the full list.
#[derive(Clone, Debug, Default)]
pub enum Category {
    /// Not subscribed, or not read yet: keep what you have.
    #[default]
    Unknown,
    /// Read: this is all there is. An empty list is the registry's explicit word.
    Known {
        /// Those that match the subscription. The `Url`s of unchanged entries are the same values (pointer-equal) in the next view,
        /// and an unchanged list is the same `Arc`.
        urls: Arc<[Url]>,
        /// How many entries the registry holds, matching or not: tells "nobody there" from "nobody for this group and version".
        total: usize,
    },
}

impl Category {
    /// The list, when it is known.
    pub fn urls(&self) -> Option<&Arc<[Url]>> {
        match self {
            Self::Unknown => None,
            Self::Known { urls, .. } => Some(urls),
        }
    }
}

/// A live subscription: the latest view, and a wait for the next. Dropping it unsubscribes.
pub struct Subscription {
    view: watch::Receiver<Arc<ServiceView>>,
    _guard: Box<dyn Any + Send + Sync>,
}

impl Subscription {
    /// A subscription fed by `view`; `guard` is dropped with it and ends the work behind it.
    pub fn new(view: watch::Receiver<Arc<ServiceView>>, guard: impl Any + Send + Sync) -> Self {
        Self { view, _guard: Box::new(guard) }
    }

    /// The latest view; marks it as seen.
    pub fn view(&mut self) -> Arc<ServiceView> {
        Arc::clone(&self.view.borrow_and_update())
    }

    /// Waits until there is a view that was not seen; `false` when the registry was closed and no more will come.
    pub async fn changed(&mut self) -> bool {
        self.view.changed().await.is_ok()
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").field("view", &*self.view.borrow()).finish_non_exhaustive()
    }
}

/// Why the registry could not do it.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The reference's text: what failed, where, why.
    #[error("failed to {action} {url} to registry {registry}, cause: {cause}")]
    Failed {
        /// `register`, `unregister`, `subscribe`, `lookup`.
        action: &'static str,
        /// The URL, without secrets.
        url: Box<str>,
        /// Address of the registry.
        registry: Box<str>,
        /// What the tree said. Not a `source`: its text is in this one's already.
        cause: TreeError,
    },
    /// The registry address or the URL can never work.
    #[error("{0}")]
    Invalid(String),
    /// The registry was closed.
    #[error("the registry {0} is closed")]
    Closed(String),
}
