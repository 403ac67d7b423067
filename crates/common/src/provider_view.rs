//! A provider's address as a consumer uses it: three layers of settings made into one URL.
//!
//! Follows `DubboServiceAddressURL` and `ServiceAddressURL` of Dubbo 3.1, which keep the layers and look through
//! them at each call. Here the result is computed when addresses change.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::SeedableRandomState;
use smol_str::SmolStr;

use crate::intern::UrlFactory;
use crate::keys;
use crate::merge::{JOINED, PROVIDER_FIRST};
use crate::params::{Entry, Params, hasher, set_sorted};
use crate::url::{Place, Service, Url};
use crate::volatile::Volatile;

/// Names that only the consumer or an override decides; a provider must not widen retries.
const CONSUMER_ONLY: [&str; 2] = [keys::RETRIES, keys::CLUSTER];

/// Names of which only the provider's value counts, next to [`PROVIDER_FIRST`].
const PROVIDER_ONLY: [&str; 3] = [keys::GROUP, keys::VERSION, keys::APPLICATION];

/// The address of one provider as seen by one consumer; see [`AddressMerger`], which does many.
pub fn merge_address(provider: &Url, consumer: &Url, overrides: &Params) -> Url {
    AddressMerger::new(consumer, overrides).merge(provider)
}

/// Merges many addresses for one consumer.
///
/// Addresses whose parameters are shared get merged parameters that are shared, and the work is done once.
///
/// | Name | Source |
/// |---|---|
/// | any that `overrides` holds | override |
/// | `group`, `version`, `application`, `release`, `dubbo`, `methods`, `timestamp`, `dubbo.tag` | provider |
/// | `remote.application` | `application` of the provider |
/// | `interface`, `side` | consumer |
/// | `retries`, `cluster`, also of a method | consumer |
/// | `category` | `providers` |
/// | `check` | `false`: a provider that is down now must be tried again later |
/// | `reference.filter`, `invoker.listener` | provider's, then consumer's |
/// | any other, also of a method | consumer if not empty, else provider |
///
/// The path is the provider's, else the consumer's. A merger keeps what it has seen: make one per notification.
#[derive(Debug)]
pub struct AddressMerger {
    consumer: Url,
    overrides: Params,
    factory: Option<UrlFactory>,
    /// Merged halves by the address of the provider's, which is held along so that it stays that address.
    done: HashMap<usize, (Arc<Service>, Arc<Service>), SeedableRandomState>,
}

impl AddressMerger {
    /// A merger for one consumer and one layer of overrides.
    pub fn new(consumer: &Url, overrides: &Params) -> Self {
        Self {
            consumer: consumer.clone(),
            overrides: overrides.clone(),
            factory: None,
            done: HashMap::with_hasher(hasher()),
        }
    }

    /// Shares the merged parameters with every equal set of `factory`, over several mergers and notifications.
    #[must_use]
    pub fn with_factory(mut self, factory: &UrlFactory) -> Self {
        self.factory = Some(factory.clone());
        self
    }

    /// The address of one provider.
    pub fn merge(&mut self, provider: &Url) -> Url {
        let own = provider.service();
        let merged = match self.done.get(&Arc::as_ptr(own).addr()) {
            Some((_, merged)) => Arc::clone(merged),
            None => {
                let merged = self.merge_service(provider);
                self.done.insert(Arc::as_ptr(own).addr(), (Arc::clone(own), Arc::clone(&merged)));
                merged
            }
        };
        let place = provider.place();
        let place = match self.overrides.get(keys::TIMESTAMP) {
            Some(since) if place.timestamp.as_deref() != Some(since) => {
                let (login, host) = (place.login.clone(), place.host.clone());
                Arc::new(Place::new(login, host, place.port, Some(since.into())))
            }
            _ => Arc::clone(place),
        };
        Url::of(place, merged)
    }

    fn merge_service(&self, provider: &Url) -> Arc<Service> {
        let (own, consumer) = (provider.service(), self.consumer.service());
        let pid = self.overrides.get(keys::PID).or(self.consumer.param(keys::PID)).or(own.pid.as_deref());
        let path = own.path.as_ref().or(consumer.path.as_ref()).cloned();
        let params = self.merge_params(provider);
        let merged = Service::new(Arc::clone(&own.protocol), path, params, pid.map(SmolStr::new));
        match &self.factory {
            Some(factory) => factory.share_service(&merged),
            None => Arc::new(merged),
        }
    }

    fn merge_params(&self, provider: &Url) -> Params {
        let consumer = &self.consumer;
        let mut entries: Vec<Entry> = provider
            .shared_params()
            .entries()
            .iter()
            .filter(|(name, _)| !is_consumers(name))
            .cloned()
            .collect();
        for (name, value) in consumer.shared_params().entries() {
            if !value.is_empty() && !is_providers(name) {
                set_sorted(&mut entries, name, Arc::clone(value));
            }
        }
        for name in JOINED {
            if let (Some(first), Some(second)) = (provider.param(name), consumer.param(name)) {
                set_sorted(&mut entries, name, Arc::from(format!("{first},{second}")));
            }
        }
        if let Some(application) = provider.application() {
            set_sorted(&mut entries, keys::REMOTE_APPLICATION, Arc::from(application));
        }
        let interface = consumer.service_interface();
        if !interface.is_empty() {
            set_sorted(&mut entries, keys::INTERFACE, Arc::from(interface));
        }
        if consumer.side().is_none() {
            entries.retain(|(name, _)| &**name != keys::SIDE);
        }
        set_sorted(&mut entries, keys::CHECK, Arc::from("false"));
        for (name, value) in self.overrides.entries() {
            if !value.is_empty() && !Volatile::owns(name) {
                set_sorted(&mut entries, name, Arc::clone(value));
            }
        }
        set_sorted(&mut entries, keys::CATEGORY, Arc::from(keys::category::PROVIDERS));
        Params::from_sorted(entries)
    }
}

/// Whether a provider has no say in `name`, plain or of a method.
fn is_consumers(name: &str) -> bool {
    CONSUMER_ONLY.contains(&name.rsplit('.').next().unwrap_or(name))
}

/// Whether a consumer has no say in `name`.
fn is_providers(name: &str) -> bool {
    PROVIDER_FIRST.contains(&name) || PROVIDER_ONLY.contains(&name)
}
