use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use dubhe_common::{Url, defaults, keys};
use dubhe_core::directory::{Directory, DirectoryStatus};
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::extension::Extensions;
use dubhe_core::filter::Filter;
use dubhe_core::invocation::Invocation;
use dubhe_core::invoker::{SharedInvoker, same_invoker};
use dubhe_core::load_balance::Candidates;
use dubhe_core::protocol::Protocol;
use dubhe_core::registry::{Category, Registry, RegistryError, ServiceView, Subscription};
use dubhe_core::router::{Explanation, RouterChain};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tracing::Instrument;

use crate::connectivity::{Aside, Reports};
use crate::providers::{Providers, Refreshed};
use crate::snapshot::{Published, Snapshot};

/// Whether an empty list from the registry is ignored when the consumer URL says nothing. Text form: `enable-empty-protection`.
/// Origin: false in Dubbo 3.3 (true in 3.1).
const DEFAULT_EMPTY_PROTECTION: bool = false;

/// What a registry directory is made of.
#[derive(Debug)]
pub struct RegistryDirectoryParts {
    /// Where the providers are registered.
    pub registry: Arc<dyn Registry>,
    /// The consumer's URL: its parameters are merged into each address.
    pub consumer: Url,
    /// What to subscribe to: the consumer's URL with its categories.
    pub subscribe: Url,
    /// What to register, if the consumer is to be seen in the registry.
    pub register: Option<Url>,
    /// Makes invokers of addresses.
    pub protocols: Arc<Extensions<dyn Protocol>>,
    /// Put around each provider's invoker, the first one outermost.
    pub filters: Vec<Arc<dyn Filter>>,
    /// The routers of this service.
    pub chain: Arc<dyn RouterChain>,
}

/// A directory that follows a registry's view of one service.
///
/// Empty lists: with `enable-empty-protection` (default false) off, the registry's explicit empty list makes the directory *forbidden*
/// and lets all providers go; with it on the old list stays and is marked stale. Trouble with the registry always keeps the list.
pub struct RegistryDirectory {
    shared: Arc<Shared>,
    registry: Arc<dyn Registry>,
    registered: Option<Url>,
    writer: Mutex<Option<AbortHandle>>,
    closed: AtomicBool,
}

#[derive(Debug)]
struct Shared {
    consumer: Url,
    origin: String,
    published: Published,
    reports: Reports,
}

impl RegistryDirectory {
    /// Registers the consumer, subscribes, and gives the directory with the first view applied.
    pub async fn subscribe(parts: RegistryDirectoryParts) -> Result<Arc<Self>, RegistryError> {
        let RegistryDirectoryParts { registry, consumer, subscribe, register, protocols, filters, chain } =
            parts;
        if let Some(url) = &register {
            registry.register(url).await?;
        }
        let subscription = match registry.subscribe(&subscribe).await {
            Ok(subscription) => subscription,
            Err(error) => {
                if let Some(url) = &register {
                    // The reference failed as a whole: nothing of it stays behind. Its own failure is not worth more than this one.
                    let _ = registry.unregister(url).await;
                }
                return Err(error);
            }
        };
        let empty: Arc<[SharedInvoker]> = Arc::from([]);
        let shared = Arc::new(Shared {
            origin: registry.url().address(),
            published: Published::new(Snapshot::bind(Arc::clone(&empty), &*chain, |_| false)),
            reports: Reports::default(),
            consumer: consumer.clone(),
        });
        let mut writer = Writer {
            protection: consumer.bool_param(keys::ENABLE_EMPTY_PROTECTION, DEFAULT_EMPTY_PROTECTION),
            providers: Providers::new(consumer.clone(), protocols, filters),
            shared: Arc::clone(&shared),
            aside: Aside::default(),
            all: empty,
            applied: Applied::default(),
            warned_of_overrides: false,
            chain,
            subscription,
        };
        writer.apply_view();
        let span = tracing::info_span!("directory", rpc.service = %consumer.service_key());
        let task = tokio::spawn(writer.run().instrument(span));
        Ok(Arc::new(Self {
            shared,
            registry,
            registered: register,
            writer: Mutex::new(Some(task.abort_handle())),
            closed: AtomicBool::new(false),
        }))
    }

    fn stop_writer(&self) {
        if let Some(task) = self.writer.lock().take() {
            task.abort();
        }
    }
}

#[async_trait]
impl Directory for RegistryDirectory {
    fn consumer_url(&self) -> &Url {
        &self.shared.consumer
    }

    fn origin(&self) -> &str {
        &self.shared.origin
    }

    fn list(&self, call: &Invocation) -> Result<Arc<Candidates>, RpcError> {
        let snapshot = self.shared.published.load();
        if snapshot.closed || snapshot.forbidden.is_some() {
            return Err(self.shared.refusal(&snapshot));
        }
        snapshot.routes.candidates(call)
    }

    fn invokers(&self) -> Arc<[SharedInvoker]> {
        Arc::clone(&self.shared.published.load().all)
    }

    fn invalidate(&self, invoker: &SharedInvoker) {
        self.shared.reports.report(invoker);
    }

    fn is_available(&self) -> bool {
        let snapshot = self.shared.published.load();
        !snapshot.closed && snapshot.forbidden.is_none() && snapshot.all.iter().any(|one| one.is_available())
    }

    fn status(&self) -> watch::Receiver<DirectoryStatus> {
        self.shared.published.status()
    }

    fn explain(&self, call: &Invocation) -> Explanation {
        self.shared.published.load().explain(call)
    }

    async fn close(&self) {
        if self.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Some(url) = &self.registered
            && let Err(error) = self.registry.unregister(url).await
        {
            tracing::warn!(%error, "consumer is not unregistered yet");
        }
        // Ends the subscription and lets the providers go, whatever the registry's state.
        self.stop_writer();
        let empty = self.shared.published.load();
        let closed = Snapshot {
            all: Arc::from([]),
            aside: Vec::new(),
            routes: Arc::clone(&empty.routes),
            forbidden: None,
            closed: true,
        };
        drop(empty);
        self.shared.published.publish(closed, None, true);
    }
}

impl Drop for RegistryDirectory {
    fn drop(&mut self) {
        self.stop_writer();
    }
}

impl std::fmt::Debug for RegistryDirectory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RegistryDirectory")
            .field("consumer", &self.shared.consumer)
            .field("registry", &self.shared.origin)
            .field("status", &*self.shared.published.status().borrow())
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// The error of a call to a directory that is closed or forbidden.
    #[cold]
    fn refusal(&self, snapshot: &Snapshot) -> RpcError {
        let service = self.consumer.service_key();
        if snapshot.closed {
            return RpcError::new(
                ErrorCode::Unknown,
                format!(
                    "Directory of type RegistryDirectory already destroyed for service {service} from registry {}",
                    self.origin
                ),
            );
        }
        let why = snapshot.forbidden.as_deref().unwrap_or("the registry lists none");
        RpcError::new(
            ErrorCode::Forbidden,
            format!(
                "No provider available from registry {} for service {service} on consumer {} use dubbo version {}, please check status \
                 of providers(disabled, not registered or in blacklist). ({why})",
                self.origin,
                self.consumer.host(),
                defaults::DUBBO_VERSION,
            ),
        )
    }
}

/// The one writer of a directory's snapshots.
struct Writer {
    shared: Arc<Shared>,
    subscription: Subscription,
    chain: Arc<dyn RouterChain>,
    providers: Providers,
    aside: Aside,
    all: Arc<[SharedInvoker]>,
    applied: Applied,
    protection: bool,
    warned_of_overrides: bool,
}

/// What the published snapshot was made from.
#[derive(Default)]
struct Applied {
    providers: Option<Arc<[Url]>>,
    routers: Option<Arc<[Url]>>,
    forbidden: Option<Arc<str>>,
    /// Why the list is older than the registry's word, apart from trouble with the registry.
    kept: Option<Arc<str>>,
}

impl Writer {
    async fn run(mut self) {
        let mut rules = self.chain.changes();
        let mut rules_live = true;
        loop {
            let recheck = self.aside.next_due();
            let shared = Arc::clone(&self.shared);
            tokio::select! {
                alive = self.subscription.changed() => {
                    if !alive {
                        tracing::debug!("registry closed, the list stays as it is");
                        return;
                    }
                    self.apply_view();
                }
                change = rules.changed(), if rules_live => match change {
                    Ok(()) => self.publish(),
                    Err(_) => rules_live = false,
                },
                () = shared.reports.reported() => {
                    let all = Arc::clone(&self.all);
                    if self.aside.accept(&self.shared.reports, |one| all.iter().any(|other| same_invoker(one, other))) {
                        self.publish();
                    }
                }
                () = sleep_until(recheck), if recheck.is_some() => {
                    if self.aside.recheck() {
                        self.publish();
                    }
                }
            }
        }
    }

    /// Applies the latest view: rules first, then providers, then one publication.
    fn apply_view(&mut self) {
        let view = self.subscription.view();
        self.note_overrides(&view);
        let routers_changed = self.apply_routers(&view.routers);
        let providers_changed = self.apply_providers(&view.providers);
        if routers_changed || providers_changed {
            self.publish_with(&view);
        } else {
            self.shared.published.set_stale(self.stale(&view));
        }
    }

    fn note_overrides(&mut self, view: &ServiceView) {
        let some = view.configurators.urls().is_some_and(|urls| !urls.is_empty());
        if some && !self.warned_of_overrides {
            tracing::warn!(
                rules = view.configurators.urls().map_or(0, |urls| urls.len()),
                "override rules are not supported yet"
            );
        }
        self.warned_of_overrides = some;
    }

    fn apply_routers(&mut self, routers: &Category) -> bool {
        let Some(urls) = routers.urls() else { return false };
        if self.applied.routers.as_ref().is_some_and(|applied| Arc::ptr_eq(applied, urls)) {
            return false;
        }
        self.applied.routers = Some(Arc::clone(urls));
        self.chain.set_registry_rules(urls)
    }

    fn apply_providers(&mut self, providers: &Category) -> bool {
        let Category::Known { urls, total } = providers else { return false };
        if self.applied.providers.as_ref().is_some_and(|applied| Arc::ptr_eq(applied, urls)) {
            return false;
        }
        self.applied.providers = Some(Arc::clone(urls));
        let first = self.all.is_empty() && self.applied.forbidden.is_none();
        if urls.is_empty() {
            return self.apply_empty(*total, first);
        }
        let (outcome, invokers) = self.providers.refresh(urls);
        self.applied.kept = None;
        match outcome {
            Refreshed::Some => {
                self.applied.forbidden = None;
                self.all = invokers.into();
            }
            Refreshed::AllDisabled => self.forbid(format!("all {} providers are disabled", urls.len())),
            Refreshed::NoneUsable => {
                tracing::error!(providers = urls.len(), "urls to invokers error, no address can be used");
                self.applied.kept = Some("none of the listed addresses can be used: see the warnings".into());
            }
        }
        true
    }

    fn apply_empty(&mut self, total: usize, first: bool) -> bool {
        let why = match total {
            0 => "no provider is registered".to_owned(),
            _ => format!(
                "{total} providers are registered, none matches the group, version and interface asked for"
            ),
        };
        if self.protection {
            if !first {
                tracing::warn!(
                    providers = self.all.len(),
                    "empty list from the registry ignored, empty protection is on"
                );
                self.applied.kept =
                    Some(format!("{why}; the old list is kept: empty protection is on").into());
            }
            return first;
        }
        self.forbid(why);
        true
    }

    fn forbid(&mut self, why: String) {
        self.providers.clear();
        self.all = Arc::from([]);
        self.applied.forbidden = Some(why.into());
        self.applied.kept = None;
    }

    fn publish(&mut self) {
        let view = self.subscription.view();
        self.publish_with(&view);
    }

    fn publish_with(&mut self, view: &ServiceView) {
        let all = Arc::clone(&self.all);
        self.aside.retain(|one| all.iter().any(|other| same_invoker(one, other)));
        let mut snapshot = Snapshot::bind(all, &*self.chain, |one| self.aside.contains(one));
        snapshot.forbidden = self.applied.forbidden.clone();
        let initialized = self.applied.providers.is_some();
        tracing::debug!(providers = snapshot.all.len(), aside = snapshot.aside.len(), "addresses published");
        self.shared.published.publish(snapshot, self.stale(view), initialized);
    }

    fn stale(&self, view: &ServiceView) -> Option<Arc<str>> {
        if let Some(trouble) = &view.trouble {
            return Some(Arc::clone(trouble));
        }
        if view.from_cache {
            return Some("the addresses are from the cache file: the registry was not reached yet".into());
        }
        self.applied.kept.clone()
    }
}

async fn sleep_until(due: Option<tokio::time::Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
