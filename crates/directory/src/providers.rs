use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use dubhe_common::{AddressMerger, Params, Url, keys, list_items};
use dubhe_core::extension::Extensions;
use dubhe_core::filter::{self, Filter};
use dubhe_core::invoker::SharedInvoker;
use dubhe_core::protocol::Protocol;

/// The invokers of the addresses that the registry listed last, by the provider's URL.
///
/// An address whose URL did not change is neither merged nor referred again.
#[derive(Debug)]
pub(crate) struct Providers {
    consumer: Url,
    protocols: Arc<Extensions<dyn Protocol>>,
    filters: Vec<Arc<dyn Filter>>,
    entries: HashMap<Url, Entry, foldhash::fast::RandomState>,
    generation: u64,
    /// Addresses that were skipped with a warning, so that the next notification does not warn again.
    warned: HashSet<Url, foldhash::fast::RandomState>,
}

#[derive(Debug)]
struct Entry {
    generation: u64,
    /// `None`: listed, but not to be called (disabled).
    invoker: Option<SharedInvoker>,
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
    /// The reason to warn with.
    Warn(String),
}

/// Warnings remembered at most; beyond that a skipped address may be warned of again.
const MAX_WARNED: usize = 4_096;

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
            entries: HashMap::default(),
            generation: 0,
            warned: HashSet::default(),
        }
    }

    /// The invokers of `urls`, in their order; those of addresses that are gone are let go.
    pub(crate) fn refresh(&mut self, urls: &[Url]) -> (Refreshed, Vec<SharedInvoker>) {
        let generation = self.generation + 1;
        let mut merger = AddressMerger::new(&self.consumer, &Params::new());
        let mut invokers = Vec::with_capacity(urls.len());
        let (mut disabled, mut fresh) = (0, Vec::new());
        for url in urls {
            if let Some(entry) = self.entries.get_mut(url) {
                // Listed twice: once is enough.
                if entry.generation != generation {
                    entry.generation = generation;
                    match &entry.invoker {
                        Some(invoker) => invokers.push(Arc::clone(invoker)),
                        None => disabled += 1,
                    }
                }
                continue;
            }
            match self.make(url, &mut merger) {
                Ok(invoker) => {
                    match &invoker {
                        Some(invoker) => invokers.push(Arc::clone(invoker)),
                        None => disabled += 1,
                    }
                    self.entries.insert(url.clone(), Entry { generation, invoker });
                    fresh.push(url);
                }
                Err(Skip::Silently) => {}
                Err(Skip::Warn(reason)) => self.warn_once(url, &reason),
            }
        }
        if invokers.is_empty() && disabled == 0 {
            for url in fresh {
                self.entries.remove(url);
            }
            return (Refreshed::NoneUsable, invokers);
        }
        self.generation = generation;
        self.entries.retain(|_, entry| entry.generation == generation);
        let outcome = if invokers.is_empty() { Refreshed::AllDisabled } else { Refreshed::Some };
        (outcome, invokers)
    }

    /// Lets all invokers go.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    fn make(&self, provider: &Url, merger: &mut AddressMerger) -> Result<Option<SharedInvoker>, Skip> {
        if provider.is_empty_protocol() {
            return Err(Skip::Silently);
        }
        if let Some(wanted) = self.consumer.param(keys::PROTOCOL)
            && !list_items(wanted).any(|one| one == provider.protocol())
        {
            return Err(Skip::Silently);
        }
        let protocol = self.protocols.get(provider.protocol()).map_err(|unknown| {
            Skip::Warn(format!(
                "Unsupported protocol {} in notified url, supported protocol: {:?}",
                unknown.name, unknown.known
            ))
        })?;
        let address = merger.merge(provider);
        if !is_enabled(&address) {
            return Ok(None);
        }
        match protocol.refer(&address) {
            Ok(invoker) => Ok(Some(filter::chain(&self.filters, invoker))),
            Err(error) => Err(Skip::Warn(error.to_string())),
        }
    }

    fn warn_once(&mut self, url: &Url, reason: &str) {
        if self.warned.len() >= MAX_WARNED {
            self.warned.clear();
        }
        if self.warned.insert(url.clone()) {
            tracing::warn!(rpc.service = %self.consumer.service_key(), provider = %url, reason, "provider address skipped");
        }
    }
}

/// `disabled` wins when it is there; else `enabled`, true by default.
fn is_enabled(address: &Url) -> bool {
    match address.param(keys::DISABLED) {
        Some(_) => !address.bool_param(keys::DISABLED, false),
        None => address.bool_param(keys::ENABLED, true),
    }
}
