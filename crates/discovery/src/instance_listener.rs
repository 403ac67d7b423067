//! The task behind a listener: follows one application's instances and finds out what they offer.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use dubhe_core::BoxFuture;
use dubhe_core::discovery::{Instances, REVISION, ServiceInstance};
use dubhe_core::metadata::MetadataInfo;
use dubhe_core::observation::Observation;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::catalog::Catalog;
use crate::closing::Closing;
use crate::instance_listeners::{Offer, Offers, Sender};
use crate::metadata_source::{MetadataError, MetadataSource};

/// When metadata that could not be had is asked for again. Origin: `ServiceInstancesChangedListener`.
const RETRY_AFTER: Duration = Duration::from_millis(10_000);

/// Single writer of what an application offers.
pub(crate) struct InstanceListener {
    application: Arc<str>,
    instances: watch::Receiver<Observation<Instances>>,
    is_followed: bool,
    source: Arc<MetadataSource>,
    closing: Arc<Closing>,
    goodbyes: watch::Receiver<u64>,
    sender: Arc<Sender>,
    listed: Option<Instances>,
    trouble: Option<Arc<str>>,
    /// Of the listed instances.
    revisions: BTreeMap<Arc<str>, Revision>,
    fetches: FuturesUnordered<BoxFuture<'static, (Arc<str>, Fetched)>>,
    /// What was offered last, by address.
    offered: HashMap<(Arc<str>, u16), Offer>,
    retry_at: Option<Instant>,
    /// When the first goodbye that counts now does not count any more.
    revive_at: Option<Instant>,
}

type Fetched = Result<Arc<MetadataInfo>, Arc<MetadataError>>;

#[derive(Default)]
struct Revision {
    /// `None`: unresolved.
    catalog: Option<Arc<Catalog>>,
    is_under_way: bool,
    failure: Option<Arc<str>>,
    /// Whose revision it was when it was fetched last.
    asked: Vec<Arc<ServiceInstance>>,
}

impl InstanceListener {
    pub(crate) fn new(
        application: Arc<str>,
        mut instances: watch::Receiver<Observation<Instances>>,
        source: Arc<MetadataSource>,
        closing: Arc<Closing>,
        sender: Arc<Sender>,
    ) -> Self {
        instances.mark_changed();
        Self {
            application,
            instances,
            is_followed: true,
            source,
            goodbyes: closing.changes(),
            closing,
            sender,
            listed: None,
            trouble: None,
            revisions: BTreeMap::new(),
            fetches: FuturesUnordered::new(),
            offered: HashMap::new(),
            retry_at: None,
            revive_at: None,
        }
    }

    /// Takes in what is known already.
    pub(crate) fn catch_up(&mut self) {
        self.take_instances();
        self.publish();
    }

    /// Runs until nobody listens any more.
    pub(crate) async fn run(&mut self) {
        let sender = Arc::clone(&self.sender);
        loop {
            tokio::select! {
                biased;
                () = sender.closed() => return,
                changed = self.instances.changed(), if self.is_followed => match changed {
                    Ok(()) => self.take_instances(),
                    // The tree is closed: what is known stays.
                    Err(_) => self.is_followed = false,
                },
                Some((revision, fetched)) = self.fetches.next() => self.take_metadata(&revision, fetched),
                Ok(()) = self.goodbyes.changed() => {}
                () = due(self.revive_at) => {}
                () = due(self.retry_at) => self.resolve(true),
            }
            while let Some(Some((revision, fetched))) = self.fetches.next().now_or_never() {
                self.take_metadata(&revision, fetched);
            }
            self.publish();
        }
    }

    fn take_instances(&mut self) {
        // Out of the channel first: nothing else happens under its lock.
        let seen = self.instances.borrow_and_update().clone();
        self.trouble = seen.trouble;
        if let Some(known) = seen.known {
            self.listed = Some(known);
            self.resolve(false);
        }
    }

    /// Starts to fetch what is not known. What failed is fetched again when other instances have it now, or `again`.
    fn resolve(&mut self, again: bool) {
        let Some(listed) = self.listed.clone() else { return };
        let groups = by_revision(&listed);
        self.revisions.retain(|revision, _| groups.contains_key(&**revision));
        for (revision, instances) in groups {
            let is_wanted = self.revisions.get(revision).is_none_or(|known| {
                let is_open = known.catalog.is_none() && !known.is_under_way;
                is_open && (again || !is_same(&known.asked, &instances))
            });
            if is_wanted {
                self.fetch(revision, instances);
            }
        }
        self.plan_retry();
    }

    fn fetch(&mut self, revision: &str, instances: Vec<Arc<ServiceInstance>>) {
        let revision: Arc<str> = Arc::from(revision);
        if let Some(info) = self.source.cache().get(&self.application, &revision) {
            return self.learn(&revision, &info);
        }
        let known = self.revisions.entry(Arc::clone(&revision)).or_default();
        known.is_under_way = true;
        known.asked.clone_from(&instances);
        let (source, application) = (Arc::clone(&self.source), Arc::clone(&self.application));
        let fetch = async move {
            let fetched = source.resolve(&application, &revision, &instances).await;
            (revision, fetched)
        };
        self.fetches.push(fetch.boxed());
    }

    fn take_metadata(&mut self, revision: &Arc<str>, fetched: Fetched) {
        match fetched {
            Ok(info) => self.learn(revision, &info),
            Err(error) => {
                // Unless nobody has it any more, or it became known in another way.
                if let Some(known) = self.revisions.get_mut(revision).filter(|known| known.catalog.is_none())
                {
                    known.is_under_way = false;
                    known.failure = Some(Arc::from(error.to_string()));
                }
            }
        }
        self.plan_retry();
    }

    fn learn(&mut self, revision: &Arc<str>, info: &MetadataInfo) {
        let is_listed =
            self.listed.iter().flat_map(|listed| listed.iter()).any(|one| one.revision() == Some(revision));
        if !is_listed {
            return;
        }
        let current = self.revisions.values().filter_map(|known| known.catalog.as_deref());
        let former = self.offered.values().next().map(|offer| &*offer.catalog);
        let catalog = Arc::new(Catalog::new(info, current.chain(former)));
        self.revisions
            .insert(Arc::clone(revision), Revision { catalog: Some(catalog), ..Revision::default() });
    }

    fn plan_retry(&mut self) {
        let is_due = self.revisions.values().any(|known| known.catalog.is_none() && !known.is_under_way);
        let pending = self.retry_at.filter(|at| *at > Instant::now());
        self.retry_at = is_due.then(|| pending.unwrap_or_else(|| Instant::now() + RETRY_AFTER));
    }

    fn publish(&mut self) {
        self.revive_at = None;
        let mut now = Offers {
            is_read: self.listed.is_some(),
            trouble: self.trouble.clone(),
            failure: self.revisions.values().find_map(|known| known.failure.clone()),
            ..Offers::default()
        };
        let is_open =
            |(revision, known): (&Arc<str>, &Revision)| known.catalog.is_none().then(|| Arc::clone(revision));
        now.unresolved = self.revisions.iter().filter_map(is_open).collect();
        if let Some(listed) = self.listed.clone() {
            now.listed = listed.len();
            for instance in listed.iter().filter(|instance| instance.enabled) {
                if let Some(until) = self.closing.until(instance) {
                    self.revive_at = Some(self.revive_at.map_or(until, |first| first.min(until)));
                } else if let Some(offer) = self.offer(instance) {
                    now.offers.push(offer);
                } else if !instance.metadata.contains_key(REVISION) {
                    now.plain.push(Arc::clone(instance));
                }
            }
        }
        let offered =
            |offer: &Offer| ((Arc::clone(&offer.instance.host), offer.instance.port), offer.clone());
        self.offered = now.offers.iter().map(offered).collect();
        self.sender.send_if_modified(|shown| {
            let is_news = **shown != now;
            if is_news {
                *shown = Arc::new(now);
            }
            is_news
        });
    }

    /// What an instance offers; until its revision is known, what it offered before.
    fn offer(&self, instance: &Arc<ServiceInstance>) -> Option<Offer> {
        match &self.revisions.get(instance.revision()?)?.catalog {
            Some(catalog) => Some(Offer { instance: Arc::clone(instance), catalog: Arc::clone(catalog) }),
            None => self.offered.get(&(Arc::clone(&instance.host), instance.port)).cloned(),
        }
    }
}

/// The enabled instances of each revision.
fn by_revision(instances: &Instances) -> HashMap<&str, Vec<Arc<ServiceInstance>>> {
    let mut groups: HashMap<&str, Vec<Arc<ServiceInstance>>> = HashMap::new();
    for instance in instances.iter().filter(|instance| instance.enabled) {
        if let Some(revision) = instance.revision() {
            groups.entry(revision).or_default().push(Arc::clone(instance));
        }
    }
    groups
}

fn is_same(one: &[Arc<ServiceInstance>], other: &[Arc<ServiceInstance>]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| Arc::ptr_eq(one, other))
}

async fn due(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
