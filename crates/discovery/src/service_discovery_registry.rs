//! Application-level discovery behind the contract of a registry (`ServiceDiscoveryRegistry`).

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dubhe_common::defaults::DEFAULT_REGISTRY_TIMEOUT;
use dubhe_common::{Url, UrlFactory, keys, list_contains};
use dubhe_core::mapping::ServiceNameMapping;
use dubhe_core::registry::{Category, Registry, RegistryError, ServiceView, Subscription};
use dubhe_core::tree::{SessionState, TreeError};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::Instrument;

use crate::address_urls::AddressUrls;
use crate::announcer::Announcer;
use crate::instance_listeners::InstanceListeners;
use crate::mapped_service::{MappedService, ServiceAddresses};
use crate::own_metadata::OwnMetadata;
use crate::revision::service_info;

/// How long a subscription that can do without the registry (`check=false`) waits for it. Origin: ours, as for the
/// interface-level registry.
const GRACE: Duration = Duration::from_secs(3);
/// When a mapping that could not be written is tried again. Origin: `mapping-retry-interval`.
const MAPPING_RETRY_INTERVAL: Duration = Duration::from_millis(5_000);
/// The pauses double up to this. Origin: ours.
const LONGEST_RETRY_INTERVAL: Duration = Duration::from_millis(60_000);

/// What a [`ServiceDiscoveryRegistry`] is made of.
#[derive(Debug)]
pub struct ServiceDiscoveryRegistryParts {
    /// The registry's address: `timeout` (30000 ms), `check`, `subscribed-services`, `enable-empty-protection`.
    pub url: Url,
    /// The session of the tree below.
    pub session: watch::Receiver<SessionState>,
    /// Which applications have an interface.
    pub mapping: Arc<dyn ServiceNameMapping>,
    /// What their instances offer.
    pub listeners: Arc<InstanceListeners>,
    /// Who keeps rules by interface, beside the providers of the other model; `None`: nobody.
    pub rules: Option<Arc<dyn Registry>>,
    /// What this application exports, and who announces it; `None`: it exports nothing.
    pub own: Option<(Arc<OwnMetadata>, Arc<Announcer>)>,
}

/// A registry whose providers are the instances of applications.
///
/// - A subscription follows the mapping, the instances and their metadata. The rules in its view are those of the
///   interface in [`ServiceDiscoveryRegistryParts::rules`]: unlike in Dubbo, a rule there does not cease to hold because
///   a consumer finds its providers by application.
/// - A provider that is registered is added to the application's metadata and its interface to the mapping. Both are
///   intents: the instance is announced for all of them together, shortly after the last one, and what fails is tried
///   again. [`Announcer::announce`] waits for it. Only the first provider waits until the instance is registered, and
///   fails when that cannot be, unless `check=false`.
/// - A provider that is unregistered is gone from what is announced when that returns, unless the registry is away.
/// - A consumer is not registered: it is no service.
///
/// Closing withdraws the instance and ends all subscriptions. The tree belongs to whoever opened it.
pub struct ServiceDiscoveryRegistry {
    parts: ServiceDiscoveryRegistryParts,
    timeout: Duration,
    urls: UrlFactory,
    closed: watch::Sender<bool>,
    tasks: Mutex<Tasks>,
}

#[derive(Default)]
struct Tasks {
    announcing: Option<AbortOnDrop>,
    /// By the service's match key.
    mapping: HashMap<String, AbortOnDrop>,
}

impl ServiceDiscoveryRegistry {
    /// A registry of these parts. It does nothing until it is asked to.
    pub fn new(parts: ServiceDiscoveryRegistryParts) -> Self {
        Self {
            timeout: parts.url.duration_param(keys::TIMEOUT, DEFAULT_REGISTRY_TIMEOUT),
            parts,
            urls: UrlFactory::new(),
            closed: watch::Sender::new(false),
            tasks: Mutex::default(),
        }
    }

    /// The listeners below, for goodbyes of instances.
    pub fn listeners(&self) -> &Arc<InstanceListeners> {
        &self.parts.listeners
    }

    fn check_open(&self) -> Result<(), RegistryError> {
        if *self.closed.borrow() { Err(RegistryError::Closed(self.parts.url.address())) } else { Ok(()) }
    }

    fn failed(&self, action: &'static str, url: &Url, cause: TreeError) -> RegistryError {
        RegistryError::Failed {
            action,
            url: url.to_plain_string().into(),
            registry: self.parts.url.address().into(),
            cause,
        }
    }

    fn follow(&self, consumer: &Url) -> MappedService {
        let ServiceDiscoveryRegistryParts { url, mapping, listeners, .. } = &self.parts;
        MappedService::follow(consumer, url, &**mapping, Arc::clone(listeners))
    }

    /// Waits until the addresses are known, or it is known that their metadata cannot be had now.
    async fn first_addresses(
        &self,
        action: &'static str,
        consumer: &Url,
        service: &mut MappedService,
    ) -> Result<(), RegistryError> {
        let checks = self.parts.url.bool_param(keys::CHECK, true) && consumer.bool_param(keys::CHECK, true);
        let deadline = Instant::now() + if checks { self.timeout } else { self.timeout.min(GRACE) };
        let mut closed = self.closed.subscribe();
        loop {
            let now = service.addresses();
            if now.known.is_some() || now.failure.is_some() {
                return Ok(());
            }
            tokio::select! {
                biased;
                _ = closed.wait_for(|closed| *closed) => return self.check_open(),
                is_alive = service.changed() => if !is_alive {
                    return Err(RegistryError::Closed(self.parts.url.address()));
                },
                () = sleep_until(deadline) => break,
            }
        }
        let now = service.addresses();
        // The registry has answered: metadata is what is missing.
        if !checks || (self.is_available() && now.listed > 0) {
            return Ok(());
        }
        let reason = now.trouble.as_deref().unwrap_or("no answer in time").to_owned();
        let cause = TreeError::Unreachable { address: self.parts.url.address(), reason };
        Err(self.failed(action, consumer, cause))
    }

    /// The rules that are kept for the interface, as far as `consumer` subscribes to rules.
    async fn rules(&self, consumer: &Url) -> Result<Option<Subscription>, RegistryError> {
        let Some(registry) = &self.parts.rules else { return Ok(None) };
        let rules = [keys::category::CONFIGURATORS, keys::category::ROUTERS];
        let category = consumer.category();
        let wanted: Vec<&str> =
            rules.into_iter().filter(|one| category == keys::ANY || list_contains(category, one)).collect();
        if wanted.is_empty() {
            return Ok(None);
        }
        let url = consumer.with_param(keys::CATEGORY, wanted.join(","));
        registry.subscribe(&url).await.map(Some)
    }

    /// Tries to write the mapping no more, unless it is that of something that is still exported.
    fn forget_mapping(&self, own: &OwnMetadata, match_key: &str) {
        let mut tasks = self.tasks.lock();
        if !own.contains(match_key) {
            tasks.mapping.remove(match_key);
        }
    }

    /// Writes the mapping until it works.
    fn map(&self, interface: String, application: Arc<str>) -> AbortOnDrop {
        let mapping = Arc::clone(&self.parts.mapping);
        let task = async move {
            let mut pause = MAPPING_RETRY_INTERVAL;
            while let Err(error) = mapping.map(&interface, &application).await {
                tracing::warn!(%error, retry = ?pause, "the mapping of a service could not be written and is tried again");
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_RETRY_INTERVAL);
            }
        };
        AbortOnDrop(tokio::spawn(task.in_current_span()).abort_handle())
    }
}

#[async_trait]
impl Registry for ServiceDiscoveryRegistry {
    fn url(&self) -> &Url {
        &self.parts.url
    }

    fn is_available(&self) -> bool {
        matches!(*self.parts.session.borrow(), SessionState::Connected { .. }) && !*self.closed.borrow()
    }

    async fn register(&self, url: &Url) -> Result<(), RegistryError> {
        self.check_open()?;
        if is_consumer(url) {
            return Ok(());
        }
        let Some((own, announcer)) = &self.parts.own else {
            return Err(RegistryError::Invalid(format!(
                "{} cannot be registered at {}: this application was set up without an instance of its own",
                url.to_plain_string(),
                self.parts.url.address()
            )));
        };
        let service = service_info(url);
        let is_first = {
            // Held so that nobody ends the announcing for want of services in between.
            let mut tasks = self.tasks.lock();
            own.add(url);
            if let Err(error) = announcer.check() {
                own.remove(url);
                return Err(self.failed("register", url, error));
            }
            let map = || self.map(service.name.clone(), Arc::clone(own.application()));
            tasks.mapping.entry(service.match_key()).or_insert_with(map);
            let is_first = tasks.announcing.is_none();
            tasks.announcing.get_or_insert_with(|| {
                let announcer = Arc::clone(announcer);
                let announcing = async move { announcer.run().await };
                AbortOnDrop(tokio::spawn(announcing.in_current_span()).abort_handle())
            });
            is_first
        };
        if is_first
            && self.parts.url.bool_param(keys::CHECK, true)
            && let Err(error) = announcer.announce().await
        {
            let is_last = {
                let mut tasks = self.tasks.lock();
                own.remove(url);
                if !own.contains(&service.match_key()) {
                    tasks.mapping.remove(&service.match_key());
                }
                if own.is_empty() {
                    tasks.announcing = None;
                }
                own.is_empty()
            };
            if is_last {
                // Nobody is to find an instance that offers nothing; what the tree was told is taken back at once.
                let _ = announcer.announce().await;
            }
            return Err(self.failed("register", url, error));
        }
        Ok(())
    }

    async fn unregister(&self, url: &Url) -> Result<(), RegistryError> {
        self.check_open()?;
        let Some((own, announcer)) = self.parts.own.as_ref().filter(|_| !is_consumer(url)) else {
            return Ok(());
        };
        if !own.remove(url) {
            return Ok(());
        }
        self.forget_mapping(own, &service_info(url).match_key());
        let mut session = self.parts.session.clone();
        tokio::select! {
            biased;
            announced = announcer.announce() => announced.map_err(|error| self.failed("unregister", url, error)),
            // The registry cannot be told now; the announcement is tried again until it is.
            _ = session.wait_for(|state| !matches!(state, SessionState::Connected { .. })) => Ok(()),
        }
    }

    async fn subscribe(&self, url: &Url) -> Result<Subscription, RegistryError> {
        self.check_open()?;
        let sender = watch::Sender::new(Arc::new(ServiceView::default()));
        let mut view = sender.subscribe();
        if !wants_providers(url) {
            // Kept by the guard: no view will follow, and this is not the end.
            return Ok(Subscription::new(view, sender));
        }
        let mut service = self.follow(url);
        let (first, rules) =
            futures::join!(self.first_addresses("subscribe", url, &mut service), self.rules(url));
        first?;
        let mut rules = rules?;
        let mut urls = AddressUrls::new(&self.urls);
        sender.send_replace(as_view(service.addresses(), &mut urls, rules.as_mut()));
        view.mark_changed();
        let mut closed = self.closed.subscribe();
        let following = async move {
            loop {
                tokio::select! {
                    biased;
                    _ = closed.wait_for(|closed| *closed) => return,
                    is_alive = service.changed() => if !is_alive {
                        return;
                    },
                    () = changed(&mut rules) => {}
                }
                sender.send_replace(as_view(service.addresses(), &mut urls, rules.as_mut()));
            }
        };
        let span = tracing::debug_span!("subscription", rpc.service = url.service_interface());
        let task = tokio::spawn(following.instrument(span));
        Ok(Subscription::new(view, AbortOnDrop(task.abort_handle())))
    }

    async fn lookup(&self, url: &Url) -> Result<Vec<Url>, RegistryError> {
        self.check_open()?;
        let mut service = self.follow(url);
        self.first_addresses("lookup", url, &mut service).await?;
        let known = service.addresses().known.clone();
        Ok(known.map_or_else(Vec::new, |known| AddressUrls::new(&self.urls).of(&known).to_vec()))
    }

    async fn close(&self) {
        if self.closed.send_replace(true) {
            return;
        }
        drop(std::mem::take(&mut *self.tasks.lock()));
        if let Some((_, announcer)) = &self.parts.own
            && let Err(error) = announcer.withdraw().await
        {
            tracing::warn!(registry.addr = %self.parts.url.address(), %error, "the instance could not be taken back");
        }
    }
}

impl fmt::Debug for ServiceDiscoveryRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceDiscoveryRegistry").field("parts", &self.parts).finish_non_exhaustive()
    }
}

fn as_view(
    addresses: &ServiceAddresses,
    urls: &mut AddressUrls,
    rules: Option<&mut Subscription>,
) -> Arc<ServiceView> {
    let providers = match &addresses.known {
        Some(known) => {
            let urls = urls.of(known);
            Category::Known { total: addresses.listed.max(urls.len()), urls }
        }
        None => Category::Unknown,
    };
    let rules = rules.map(Subscription::view).unwrap_or_default();
    let trouble = addresses.doubt().or(rules.trouble.as_ref());
    Arc::new(ServiceView {
        providers,
        configurators: rules.configurators.clone(),
        routers: rules.routers.clone(),
        trouble: trouble.cloned(),
        ..ServiceView::default()
    })
}

/// Waits for other rules; for ever when there will be none.
async fn changed(rules: &mut Option<Subscription>) {
    if let Some(subscription) = rules
        && subscription.changed().await
    {
        return;
    }
    std::future::pending().await
}

fn is_consumer(url: &Url) -> bool {
    url.protocol() == keys::protocol::CONSUMER || url.side() == Some(keys::side::CONSUMER)
}

fn wants_providers(url: &Url) -> bool {
    let category = url.category();
    category == keys::ANY || list_contains(category, keys::category::PROVIDERS)
}

struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests;
