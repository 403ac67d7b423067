//! The addresses of one service, whichever applications have it (`ServiceDiscoveryRegistry`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use dubhe_common::{Url, keys, list_items};
use dubhe_core::BoxFuture;
use dubhe_core::discovery::ServiceInstance;
use dubhe_core::mapping::{Applications, ServiceNameMapping};
use dubhe_core::metadata::ServiceInfo;
use dubhe_core::observation::Observation;
use futures::future::{AbortHandle, Abortable};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use tokio::sync::watch;

use crate::catalog::Catalog;
use crate::instance_listeners::{InstanceListeners, Offers};
use crate::instance_metadata::port_for;
use crate::service_match::ServiceMatch;

/// One instance as the address of one service.
#[derive(Clone, Debug)]
pub struct ServiceAddress {
    /// The instance: the same value in the addresses of all its services.
    pub instance: Arc<ServiceInstance>,
    /// The service: the same value for all instances of a revision.
    pub service: Arc<ServiceInfo>,
    /// The service's port; without one that of the instance's endpoint for the protocol, else the instance's.
    pub port: u16,
}

/// What is known of the addresses of a service.
#[derive(Clone, Debug, Default)]
pub struct ServiceAddresses {
    /// All there are, applications by name and instances in the registry's order. `None`: not known yet. Empty is the
    /// registry's explicit word: nothing that could not be read or fetched empties the list.
    pub known: Option<Arc<[ServiceAddress]>>,
    /// Whether that is what was known before: nothing is known of what there is now.
    pub is_kept: bool,
    /// How many instances the followed applications have, whatever they offer.
    pub listed: usize,
    /// The applications that are followed.
    pub applications: BTreeSet<Arc<str>>,
    /// Why metadata could not be had.
    pub failure: Option<Arc<str>>,
    /// Why the registry may know more by now.
    pub trouble: Option<Arc<str>>,
}

/// Follows the applications that have a service, and their instances.
///
/// The applications are those of the consumer's `provided-by`; then no mapping is read or watched. Else those of the
/// mapping; while nobody has mapped the interface, or that cannot be read, those of the registry's
/// `subscribed-services`.
///
/// When an application is added, nothing happens to the others. Those that a mapping lacks from now on are left when
/// the rest has an address, or when they have no instance any more. So there is no moment without a provider, and no
/// application is followed that was not chosen by what is followed now. A mapping that is emptied changes nothing.
///
/// Instances that say nothing of their services (Spring Cloud's) are addresses for a consumer that names both their
/// application (`provided-by`) and the `protocol`, unless the application has instances that do say it.
///
/// A value to await, without a task of its own. Dropping it ends what it follows.
pub struct MappedService {
    wanted: ServiceMatch,
    /// What instances without metadata are taken to offer, if the consumer says whose and by which protocol.
    presumed: Option<Arc<ServiceInfo>>,
    /// `None`: the applications are given.
    mapping: Option<watch::Receiver<Observation<Applications>>>,
    mapping_is_read: bool,
    mapping_trouble: Option<Arc<str>>,
    fallback: Applications,
    listeners: Arc<InstanceListeners>,
    followed: BTreeMap<Arc<str>, Followed>,
    news: FuturesUnordered<Abortable<Next>>,
    shown: Arc<ServiceAddresses>,
}

type Next = BoxFuture<'static, (Arc<str>, watch::Receiver<Arc<Offers>>)>;

struct Followed {
    offers: Arc<Offers>,
    /// The mapping lacks it.
    is_leaving: bool,
    /// It has, or had, instances that say what they offer: those that do not are something else.
    is_of_dubbo: bool,
    stop: AbortHandle,
}

impl MappedService {
    /// Follows what `consumer` asks for: `interface`, `group`, `version`, `protocol`, `provided-by`. `registry` is the
    /// registry's address, with its `subscribed-services`. What is known already is there at once.
    pub fn follow(
        consumer: &Url,
        registry: &Url,
        mapping: &dyn ServiceNameMapping,
        listeners: Arc<InstanceListeners>,
    ) -> Self {
        let wanted = ServiceMatch::of(consumer);
        let given = applications(consumer.param(keys::PROVIDED_BY));
        let is_given = !given.is_empty();
        let mut mapping = (!is_given).then(|| mapping.applications(wanted.interface()));
        if let Some(mapping) = &mut mapping {
            mapping.mark_changed();
        }
        let mut service = Self {
            presumed: wanted.presumed().filter(|_| is_given).map(Arc::new),
            wanted,
            mapping,
            mapping_is_read: is_given,
            mapping_trouble: None,
            fallback: applications(registry.param(keys::SUBSCRIBED_SERVICES)),
            listeners,
            followed: BTreeMap::new(),
            news: FuturesUnordered::new(),
            shown: Arc::default(),
        };
        if is_given {
            service.choose(&given);
        } else {
            service.take_mapping();
        }
        service.take_waiting();
        service.refresh();
        service
    }

    /// What is known now.
    pub fn addresses(&self) -> &Arc<ServiceAddresses> {
        &self.shown
    }

    /// Waits until something else is known; `false` when nothing more will come. Can be abandoned and called again.
    pub async fn changed(&mut self) -> bool {
        loop {
            tokio::select! {
                biased;
                is_alive = next_names(&mut self.mapping), if self.mapping.is_some() => match is_alive {
                    true => self.take_mapping(),
                    false => self.mapping = None,
                },
                Some(next) = self.news.next() => {
                    if let Ok((application, offers)) = next {
                        self.take_offers(application, offers);
                    }
                }
                else => return false,
            }
            self.take_waiting();
            if self.refresh() {
                return true;
            }
        }
    }

    /// Takes in all that is there already, so that it is published together.
    fn take_waiting(&mut self) {
        while let Some(Some(next)) = self.news.next().now_or_never() {
            if let Ok((application, offers)) = next {
                self.take_offers(application, offers);
            }
        }
    }

    fn take_mapping(&mut self) {
        let Some(mapping) = &mut self.mapping else { return };
        let seen = mapping.borrow_and_update().clone();
        self.mapping_trouble = seen.trouble;
        if seen.known.is_none() && self.mapping_trouble.is_none() {
            return;
        }
        self.mapping_is_read = seen.known.is_some();
        let known = seen.known.unwrap_or_default();
        if !known.is_empty() {
            self.choose(&known);
        } else if self.followed.is_empty() {
            let fallback = Arc::clone(&self.fallback);
            self.choose(&fallback);
        }
    }

    fn choose(&mut self, applications: &BTreeSet<Arc<str>>) {
        for (application, followed) in &mut self.followed {
            followed.is_leaving = !applications.contains(application);
        }
        for application in applications {
            if !self.followed.contains_key(application) {
                let receiver = self.listeners.listen(application);
                self.take_offers(Arc::clone(application), receiver);
            }
        }
        tracing::debug!(rpc.service = self.wanted.interface(), ?applications, "applications of a service");
    }

    /// Takes what is known of an application's instances, and waits for more.
    fn take_offers(&mut self, application: Arc<str>, mut receiver: watch::Receiver<Arc<Offers>>) {
        let offers = Arc::clone(&receiver.borrow_and_update());
        let name = Arc::clone(&application);
        let next = async move {
            // A listener lives for as long as it is listened to.
            if receiver.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            (name, receiver)
        };
        let (stop, registration) = AbortHandle::new_pair();
        self.news.push(Abortable::new(next.boxed(), registration));
        let before = self.followed.get(&application);
        let followed = Followed {
            is_leaving: before.is_some_and(|before| before.is_leaving),
            is_of_dubbo: before.is_some_and(|before| before.is_of_dubbo)
                || !(offers.offers.is_empty() && offers.unresolved.is_empty()),
            offers,
            stop,
        };
        self.followed.insert(application, followed);
    }

    /// Makes what is shown of what is followed; `true` if it is something else.
    fn refresh(&mut self) -> bool {
        let mut addresses = self.collect(|followed| !followed.is_leaving);
        let is_there = !addresses.is_empty();
        let has_left = self.leave(|offers| is_there || (offers.is_settled() && offers.listed == 0));
        if !is_there {
            addresses = self.collect(|_| true);
        }
        let all = || self.followed.values().map(|followed| &followed.offers);
        let is_settled =
            self.mapping_is_read && self.mapping_trouble.is_none() && all().all(|offers| offers.is_settled());
        let before = &self.shown.known;
        let is_word = !addresses.is_empty() || is_settled;
        let known = match before {
            Some(before) if is_same(before, &addresses) => Some(Arc::clone(before)),
            _ if is_word => Some(Arc::from(addresses)),
            _ => before.clone(),
        };
        let now = ServiceAddresses {
            is_kept: !is_word && known.as_ref().is_some_and(|known| !known.is_empty()),
            known,
            listed: all().map(|offers| offers.listed).sum(),
            applications: self.followed.keys().cloned().collect(),
            failure: all().find_map(|offers| offers.failure.clone()),
            trouble: self.mapping_trouble.clone().or_else(|| all().find_map(|offers| offers.trouble.clone())),
        };
        let is_news = *self.shown != now;
        if is_news {
            self.shown = Arc::new(now);
        }
        if has_left {
            // What was stopped is let go when it is looked at, and what came along is taken in.
            self.take_waiting();
            self.refresh();
        }
        is_news
    }

    fn leave(&mut self, may_go: impl Fn(&Offers) -> bool) -> bool {
        let before = self.followed.len();
        self.followed.retain(|application, followed| {
            let goes = followed.is_leaving && may_go(&followed.offers);
            if goes {
                followed.stop.abort();
                tracing::info!(rpc.service = self.wanted.interface(), %application, "the service is not of this application any more");
            }
            !goes
        });
        self.followed.len() != before
    }

    fn collect(&self, chosen: impl Fn(&Followed) -> bool) -> Vec<ServiceAddress> {
        let chosen = || self.followed.values().filter(|followed| chosen(followed));
        let mut addresses = Vec::with_capacity(chosen().map(|followed| followed.offers.offers.len()).sum());
        // As a rule all instances are of one revision, or of two: a catalog is looked through once for those in a row.
        let mut found: Option<(&Arc<Catalog>, Vec<&Arc<ServiceInfo>>)> = None;
        for followed in chosen() {
            for offer in &followed.offers.offers {
                if !found.as_ref().is_some_and(|(catalog, _)| Arc::ptr_eq(catalog, &offer.catalog)) {
                    let services = offer.catalog.services(self.wanted.interface()).iter();
                    let services = services.filter(|service| self.wanted.matches(service)).collect();
                    found = Some((&offer.catalog, services));
                }
                let services = found.iter().flat_map(|(_, services)| services);
                addresses.extend(services.map(|service| ServiceAddress::new(&offer.instance, service)));
            }
            if let Some(presumed) = self.presumed.as_ref().filter(|_| !followed.is_of_dubbo) {
                let plain = followed.offers.plain.iter();
                addresses.extend(plain.map(|instance| ServiceAddress::new(instance, presumed)));
            }
        }
        addresses
    }
}

impl ServiceAddresses {
    /// Why the list is not to be taken for all there is: trouble with the registry, or metadata that is missing while
    /// nothing else is known. That some instances' metadata cannot be had makes the others' addresses no worse.
    pub fn doubt(&self) -> Option<&Arc<str>> {
        let is_nothing_new = self.is_kept || self.known.as_ref().is_none_or(|known| known.is_empty());
        self.trouble.as_ref().or_else(|| self.failure.as_ref().filter(|_| is_nothing_new))
    }
}

impl ServiceAddress {
    fn new(instance: &Arc<ServiceInstance>, service: &Arc<ServiceInfo>) -> Self {
        let own = u16::try_from(service.port).ok().filter(|port| *port != 0);
        let port = own.unwrap_or_else(|| port_for(instance, &service.protocol));
        Self { instance: Arc::clone(instance), service: Arc::clone(service), port }
    }

    /// Whether it is made of the same values.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.instance, &other.instance) && Arc::ptr_eq(&self.service, &other.service)
    }
}

/// Lists are equal when they are the same value.
impl PartialEq for ServiceAddresses {
    fn eq(&self, other: &Self) -> bool {
        let same = match (&self.known, &other.known) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        same && (self.is_kept, self.listed, &self.applications, &self.failure, &self.trouble)
            == (other.is_kept, other.listed, &other.applications, &other.failure, &other.trouble)
    }
}

impl fmt::Debug for MappedService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MappedService")
            .field("wanted", &self.wanted)
            .field("shown", &self.shown)
            .finish_non_exhaustive()
    }
}

fn applications(list: Option<&str>) -> Applications {
    Arc::new(list_items(list.unwrap_or_default()).map(Arc::from).collect())
}

fn is_same(one: &[ServiceAddress], other: &[ServiceAddress]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.is(other))
}

async fn next_names(mapping: &mut Option<watch::Receiver<Observation<Applications>>>) -> bool {
    match mapping {
        Some(mapping) => mapping.changed().await.is_ok(),
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
