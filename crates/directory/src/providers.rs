use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use dubhe_common::{AddressMerger, Params, Url, UrlFactory, keys, list_items};
use dubhe_core::extension::Extensions;
use dubhe_core::filter::{self, Filter};
use dubhe_core::invoker::SharedInvoker;
use dubhe_core::protocol::Protocol;

use crate::listed::Listed;
use crate::overrides::Overrides;

/// The invokers of the addresses that the registry listed last, by the URL that the provider registered.
///
/// An address that did not change is neither merged nor referred again. One whose provider was started again (only its `timestamp`
/// differs, which equality of URLs ignores) gets a new invoker, so that it warms up and its connection is looked after.
#[derive(Debug)]
pub(crate) struct Providers {
    consumer: Url,
    protocols: Arc<Extensions<dyn Protocol>>,
    filters: Vec<Arc<dyn Filter>>,
    overrides: Overrides,
    entries: HashMap<Url, Entry, foldhash::fast::RandomState>,
    /// Counts the lists that were taken over.
    generation: u64,
    /// Equal settings of merged addresses are held once, over all notifications.
    factory: UrlFactory,
    /// Reasons for which addresses were skipped with a warning, so that the next address or notification does not warn again.
    warned: HashSet<String>,
}

#[derive(Debug)]
struct Entry {
    /// The provider's URL with its own `timestamp`.
    registered: Url,
    /// What the invoker was made of.
    address: Url,
    /// `None`: listed, but not to be called (disabled).
    invoker: Option<SharedInvoker>,
    /// The list that it was in last, and where.
    generation: u64,
    slot: usize,
    /// The override rules by which it was made.
    revision: u64,
}

/// What became of a list.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) enum Refreshed {
    /// There are invokers.
    Some,
    /// The list was not empty, but every provider in it is disabled.
    AllDisabled,
    /// The list was not empty, but no address in it can be used: the old invokers stay.
    NoneUsable,
}

/// An address that the consumer skips, and why.
enum Skip {
    /// Configured so: `protocol=` of the reference.
    Silently,
    /// The reason to warn with; addresses with the same reason are warned of once.
    Warn(String),
}

/// Reasons remembered at most; beyond that a skipped address may be warned of again.
const MAX_WARNED: usize = 1_024;

impl Providers {
    pub(crate) fn new(
        consumer: Url,
        protocols: Arc<Extensions<dyn Protocol>>,
        filters: Vec<Arc<dyn Filter>>,
    ) -> Self {
        Self {
            consumer,
            protocols,
            filters,
            overrides: Overrides::default(),
            entries: HashMap::default(),
            generation: 0,
            factory: UrlFactory::new(),
            warned: HashSet::new(),
        }
    }

    /// Replaces the override rules; `true` when that changes anything at the next [`Providers::refresh`].
    pub(crate) fn set_overrides(&mut self, rules: &Arc<[Url]>) -> bool {
        let changed = self.overrides.replace(rules);
        if changed {
            tracing::info!(rules = self.overrides.len(), "override rules changed");
        }
        changed
    }

    /// The invokers of `urls`, in their order; those of addresses that are gone are let go.
    pub(crate) fn refresh(&mut self, urls: &[Url]) -> (Refreshed, Vec<SharedInvoker>) {
        let generation = self.generation + 1;
        let revision = self.overrides.revision();
        let mut slots: Vec<Option<SharedInvoker>> = Vec::with_capacity(urls.len());
        let mut others: Vec<(usize, &Url)> = Vec::new();
        let mut listed = 0;
        for url in urls {
            match self.entries.get_mut(url) {
                Some(entry) if entry.is_of(url) && entry.revision == revision => {
                    if entry.generation != generation {
                        entry.generation = generation;
                        entry.slot = slots.len();
                        slots.push(entry.invoker.clone());
                        listed += 1;
                    }
                }
                _ => {
                    others.push((slots.len(), url));
                    slots.push(None);
                }
            }
        }
        let mut merger = AddressMerger::new(&self.consumer, &Params::new()).with_factory(&self.factory);
        for (slot, url) in others {
            let twin = self.entries.get(url).filter(|entry| entry.generation == generation);
            // Listed twice: a restarted provider beside the node that its dead session left behind. The later start counts.
            if twin.is_some_and(|twin| started(url) <= started(&twin.registered)) {
                continue;
            }
            let (slot, more) = twin.map_or((slot, 1), |twin| (twin.slot, 0));
            match self.make(url, &mut merger) {
                Ok((address, invoker)) => {
                    slots[slot].clone_from(&invoker);
                    // Removed first: the key is to be this URL, not an equal one with another `timestamp`.
                    self.entries.remove(url);
                    let registered = url.clone();
                    self.entries.insert(
                        url.clone(),
                        Entry { registered, address, invoker, generation, slot, revision },
                    );
                    listed += more;
                }
                Err(Skip::Silently) => {}
                Err(Skip::Warn(reason)) => self.warn_once(url, reason),
            }
        }
        let invokers: Vec<SharedInvoker> = slots.into_iter().flatten().collect();
        if listed == 0 {
            return (Refreshed::NoneUsable, invokers);
        }
        self.generation = generation;
        if self.entries.len() != listed {
            self.entries.retain(|_, entry| entry.generation == generation);
        }
        let outcome = if invokers.is_empty() { Refreshed::AllDisabled } else { Refreshed::Some };
        (outcome, invokers)
    }

    /// Lets all invokers go.
    pub(crate) fn clear(&mut self) {
        self.entries = HashMap::default();
    }

    /// The address as the consumer uses it, and its invoker unless it is disabled.
    fn make(&self, provider: &Url, merger: &mut AddressMerger) -> Result<(Url, Option<SharedInvoker>), Skip> {
        let protocol = self.usable(provider)?;
        let address = self.overrides.apply(merger.merge(provider), provider, &self.consumer, &self.factory);
        if let Some(entry) = self.entries.get(provider)
            && entry.is_of(provider)
            && entry.address == address
            && started(&entry.address) == started(&address)
        {
            // The rules changed, but not for this one.
            return Ok((entry.address.clone(), entry.invoker.clone()));
        }
        if !is_enabled(&address) {
            return Ok((address, None));
        }
        match protocol.refer(&address) {
            Ok(invoker) => {
                let inner = filter::chain(&self.filters, invoker);
                let listed = Listed { registered: provider.clone(), inner };
                Ok((address, Some(Arc::new(listed))))
            }
            Err(error) => Err(Skip::Warn(format!("{}: {error}", provider.address()))),
        }
    }

    /// The protocol of an address that can be called at all.
    fn usable(&self, provider: &Url) -> Result<Arc<dyn Protocol>, Skip> {
        if provider.is_empty_protocol() {
            return Err(Skip::Silently);
        }
        if let Some(wanted) = self.consumer.param(keys::PROTOCOL)
            && !list_items(wanted).any(|one| one == provider.protocol())
        {
            return Err(Skip::Silently);
        }
        if is_nowhere(provider) {
            return Err(Skip::Warn(format!(
                "{} is not an address to connect to: let the provider register a host that consumers reach",
                provider.address()
            )));
        }
        self.protocols.get(provider.protocol()).map_err(|unknown| {
            Skip::Warn(format!(
                "Unsupported protocol {} in notified url, supported protocol: {:?}",
                unknown.name, unknown.known
            ))
        })
    }

    fn warn_once(&mut self, url: &Url, reason: String) {
        if self.warned.contains(&reason) {
            return;
        }
        if self.warned.len() >= MAX_WARNED {
            self.warned.clear();
        }
        tracing::warn!(rpc.service = %self.consumer.service_key(), provider = %url, reason, "provider address skipped");
        self.warned.insert(reason);
    }
}

impl Entry {
    /// Whether it was made of this URL, with the same start of the provider.
    fn is_of(&self, url: &Url) -> bool {
        self.registered.ptr_eq(url) || (self.registered == *url && started(&self.registered) == started(url))
    }
}

/// When the provider says that it was started; what is not a number is before all numbers, by text.
fn started(url: &Url) -> (Option<u64>, Option<&str>) {
    let text = url.raw_param(keys::TIMESTAMP);
    (text.and_then(|text| text.parse().ok()), text)
}

/// Whether nobody can be reached there: no host, or one that means "every interface" and belongs into a server's settings.
fn is_nowhere(url: &Url) -> bool {
    let host = url.connect_host();
    host.is_empty() || host.parse::<IpAddr>().is_ok_and(|address| address.is_unspecified())
}

/// `disabled` wins when it is there; else `enabled`, true by default.
fn is_enabled(address: &Url) -> bool {
    match address.param(keys::DISABLED) {
        Some(_) => !address.bool_param(keys::DISABLED, false),
        None => address.bool_param(keys::ENABLED, true),
    }
}
