use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;

use dubhe_common::{AddressMerger, Params, Url, UrlFactory, keys, list_items};
use dubhe_core::extension::Extensions;
use dubhe_core::filter::{self, Filter};
use dubhe_core::invoker::SharedInvoker;
use dubhe_core::protocol::Protocol;

use crate::former::{Former, Places};
use crate::listed::Listed;
use crate::overrides::Overrides;

/// The invokers of the addresses that the registry listed last, by the URL that the provider registered.
///
/// An address that did not change is neither merged nor referred again. One whose provider was started again (only its `timestamp`
/// differs, which equality of URLs ignores) gets a new invoker, so that it warms up and its connection is looked after.
///
/// There are as many of these as there are interfaces times instances: they lie beside the registry's own list, at the same places.
#[derive(Debug)]
pub(crate) struct Providers {
    consumer: Url,
    protocols: Arc<Extensions<dyn Protocol>>,
    filters: Vec<Arc<dyn Filter>>,
    overrides: Overrides,
    /// The last list that was taken over.
    listed: Arc<[Url]>,
    /// What became of each address in it.
    made: Outcomes,
    /// The override rules by which they were made.
    revision: u64,
    /// Equal settings of merged addresses are held once, over all notifications.
    factory: UrlFactory,
    /// Reasons for which addresses were skipped with a warning, so that the next address or notification does not warn again.
    warned: HashSet<String>,
}

/// What became of each address of a list.
#[derive(Debug)]
enum Outcomes {
    /// An invoker each, as a rule: then this is the list that calls are routed over.
    Invokers(Arc<[SharedInvoker]>),
    Some(Vec<Made>),
}

#[derive(Clone, Debug)]
enum Made {
    Invoker(SharedInvoker),
    /// Listed, but not to be called; the merged address.
    Disabled(Box<Url>),
    /// Skipped, or listed at another place, too.
    Nothing,
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
            listed: Arc::from([]),
            made: Outcomes::none(),
            revision: 0,
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
    pub(crate) fn refresh(&mut self, urls: &Arc<[Url]>) -> (Refreshed, Arc<[SharedInvoker]>) {
        let revision = self.overrides.revision();
        let is_by_same_rules = self.revision == revision;
        let (old_urls, old) = (Arc::clone(&self.listed), std::mem::replace(&mut self.made, Outcomes::none()));
        let mut is_taken = vec![false; old_urls.len()];
        let mut former = Former::new(&old_urls);
        let mut made: Vec<Made> = Vec::with_capacity(urls.len());
        let mut others = Vec::new();
        while made.len() < urls.len() {
            // As a rule most of a list is as it was.
            if let Outcomes::Invokers(invokers) = &old
                && is_by_same_rules
            {
                let run = former.run(&urls[made.len()..]);
                is_taken[run.clone()].fill(true);
                made.extend(invokers[run].iter().cloned().map(Made::Invoker));
            }
            let Some(url) = urls.get(made.len()) else { break };
            let kept = match former.next(url) {
                Some(at) if is_by_same_rules && is_same_start(&old_urls[at], url) => {
                    is_taken[at] = true;
                    old.of(at)
                }
                _ => Made::Nothing,
            };
            if kept.is_nothing() {
                others.push(made.len());
            }
            made.push(kept);
        }
        let mut merger = AddressMerger::new(&self.consumer, &Params::new()).with_factory(&self.factory);
        let is_left = |at: usize| !is_taken[at] && !old.is_nothing(at);
        let before = Places::new(&old_urls, others.len(), is_left);
        let mut now = Places::new(urls, others.len(), |at| !made[at].is_nothing());
        for at in others {
            let url = &urls[at];
            let twin = now.find(url, |at| !made[at].is_nothing());
            // Listed twice: a restarted provider beside the node that its dead session left behind. The later start counts.
            if twin.is_some_and(|twin| started(url) <= started(&urls[twin])) {
                continue;
            }
            let known = before.find(url, is_left).filter(|known| is_same_start(&old_urls[*known], url));
            let known = known.map(|known| old.of(known));
            let outcome = match known {
                Some(known) if is_by_same_rules => Ok(known),
                known => self.make(url, known, &mut merger),
            };
            match outcome {
                Ok(new) => {
                    if let Some(twin) = twin {
                        made[twin] = Made::Nothing;
                    }
                    made[at] = new;
                    now.set(url, at);
                }
                Err(Skip::Silently) => {}
                Err(Skip::Warn(reason)) => self.warn_once(url, reason),
            }
        }
        if made.iter().all(Made::is_nothing) {
            self.made = old;
            return (Refreshed::NoneUsable, Arc::from([]));
        }
        self.listed = Arc::clone(urls);
        self.made = Outcomes::new(made);
        self.revision = revision;
        let invokers = self.made.invokers();
        let outcome = if invokers.is_empty() { Refreshed::AllDisabled } else { Refreshed::Some };
        (outcome, invokers)
    }

    /// Lets all invokers go.
    pub(crate) fn clear(&mut self) {
        self.listed = Arc::from([]);
        self.made = Outcomes::none();
    }

    /// The invoker of an address as the consumer uses it, unless it is disabled. `known`: what was made of it by other rules.
    fn make(&self, provider: &Url, known: Option<Made>, merger: &mut AddressMerger) -> Result<Made, Skip> {
        let protocol = self.usable(provider)?;
        let address = self.overrides.apply(merger.merge(provider), provider, &self.consumer, &self.factory);
        if let Some(known) = known
            && known.address().is_some_and(|former| *former == address && is_same_start(former, &address))
        {
            // The rules changed, but not for this one.
            return Ok(known);
        }
        if !is_enabled(&address) {
            return Ok(Made::Disabled(Box::new(address)));
        }
        match protocol.refer(&address) {
            Ok(invoker) => {
                let inner = filter::chain(&self.filters, invoker);
                Ok(Made::Invoker(Arc::new(Listed { registered: provider.clone(), inner })))
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

impl Outcomes {
    fn none() -> Self {
        Self::Some(Vec::new())
    }

    fn new(made: Vec<Made>) -> Self {
        match made.iter().all(|made| made.invoker().is_some()) {
            true => Self::Invokers(
                made.into_iter().map(|made| made.into_invoker().expect("each is an invoker")).collect(),
            ),
            false => Self::Some(made),
        }
    }

    fn invokers(&self) -> Arc<[SharedInvoker]> {
        match self {
            Self::Invokers(invokers) => Arc::clone(invokers),
            Self::Some(made) => made.iter().filter_map(Made::invoker).cloned().collect(),
        }
    }

    fn of(&self, at: usize) -> Made {
        match self {
            Self::Invokers(invokers) => Made::Invoker(Arc::clone(&invokers[at])),
            Self::Some(made) => made[at].clone(),
        }
    }

    fn is_nothing(&self, at: usize) -> bool {
        match self {
            Self::Invokers(_) => false,
            Self::Some(made) => made[at].is_nothing(),
        }
    }
}

impl Made {
    const fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }

    const fn invoker(&self) -> Option<&SharedInvoker> {
        match self {
            Self::Invoker(invoker) => Some(invoker),
            Self::Disabled(_) | Self::Nothing => None,
        }
    }

    fn into_invoker(self) -> Option<SharedInvoker> {
        match self {
            Self::Invoker(invoker) => Some(invoker),
            Self::Disabled(_) | Self::Nothing => None,
        }
    }

    /// The merged address.
    fn address(&self) -> Option<&Url> {
        match self {
            Self::Invoker(invoker) => Some(invoker.url()),
            Self::Disabled(address) => Some(address),
            Self::Nothing => None,
        }
    }
}

/// Whether two equal addresses are of the same start of the provider.
fn is_same_start(one: &Url, other: &Url) -> bool {
    one.ptr_eq(other) || started(one) == started(other)
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
