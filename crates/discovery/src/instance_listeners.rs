//! What the instances of applications offer (`ServiceInstancesChangedListener`).

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use dubhe_core::discovery::{ServiceDiscovery, ServiceInstance};
use parking_lot::Mutex;
use tokio::sync::watch;
use tracing::Instrument;

use crate::catalog::Catalog;
use crate::closing::Closing;
use crate::instance_listener::InstanceListener;
use crate::metadata_source::MetadataSource;

/// What the instances of one application offer, as far as it is known.
#[derive(Clone, Debug, Default)]
pub struct Offers {
    /// Instances whose services are known, in the registry's order. Disabled ones are left out, and so are those that
    /// said goodbye.
    pub offers: Vec<Offer>,
    /// Instances that do not say what they offer: no Dubbo application registered them.
    pub plain: Vec<Arc<ServiceInstance>>,
    /// How many instances the registry lists, whatever they are.
    pub listed: usize,
    /// Whether the list was read.
    pub is_read: bool,
    /// Revisions of listed instances whose metadata is not there yet.
    pub unresolved: Vec<Arc<str>>,
    /// Why the metadata of one of them could not be had. It is tried again every ten seconds.
    pub failure: Option<Arc<str>>,
    /// Why all of this may be out of date.
    pub trouble: Option<Arc<str>>,
}

/// One instance and its services.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The instance, the same value for all its services.
    pub instance: Arc<ServiceInstance>,
    /// The services, the same value for all instances of its revision.
    pub catalog: Arc<Catalog>,
}

/// Hands out listeners to the instances of applications: one per application, for all who ask.
///
/// Promises of a listener:
/// - Instances are grouped by revision, and the metadata of a revision is fetched once. No lock is held meanwhile, and
///   a revision that cannot be had holds no other one up.
/// - An instance whose new revision is not known yet keeps being offered with what it offered before.
/// - What failed is tried again every ten seconds, and at once when another instance has that revision.
/// - It ends with its last receiver. Who asks later gets a new one, never one that has ended.
///
/// Needs a tokio runtime.
pub struct InstanceListeners {
    discovery: Arc<dyn ServiceDiscovery>,
    source: Arc<MetadataSource>,
    closing: Arc<Closing>,
    open: Arc<Mutex<HashMap<Arc<str>, Arc<Sender>>>>,
}

pub(crate) type Sender = watch::Sender<Arc<Offers>>;

impl InstanceListeners {
    /// Listeners to the instances of `discovery`, whose metadata comes from `source`.
    pub fn new(discovery: Arc<dyn ServiceDiscovery>, source: Arc<MetadataSource>) -> Self {
        Self { discovery, source, closing: Arc::new(Closing::new()), open: Arc::default() }
    }

    /// What the instances of an application offer, now and from now on. Dropping the last receiver ends the listener.
    pub fn listen(&self, application: &str) -> watch::Receiver<Arc<Offers>> {
        let mut open = self.open.lock();
        if let Some(sender) = open.get(application) {
            return sender.subscribe();
        }
        let application: Arc<str> = Arc::from(application);
        let sender = Arc::new(Sender::new(Arc::default()));
        let receiver = sender.subscribe();
        open.insert(Arc::clone(&application), Arc::clone(&sender));
        drop(open);
        let span = tracing::debug_span!("instance_listener", application = &*application);
        let mut listener = InstanceListener::new(
            Arc::clone(&application),
            self.discovery.instances(&application),
            Arc::clone(&self.source),
            Arc::clone(&self.closing),
            Arc::clone(&sender),
        );
        listener.catch_up();
        let open = Arc::clone(&self.open);
        let task = async move {
            loop {
                listener.run().await;
                let mut open = open.lock();
                // Somebody may have come between the last leaving and here.
                if sender.receiver_count() == 0 {
                    open.remove(&application);
                    return;
                }
            }
        };
        tokio::spawn(task.instrument(span));
        receiver
    }

    /// An instance said that it is closing: it is not offered for thirty seconds, although the registry lists it. When
    /// the registry shows another revision or time of registration at its address, that is another process and counts
    /// at once.
    pub fn say_goodbye(&self, instance: &ServiceInstance) {
        self.closing.say(instance);
    }

    /// How many applications are listened to.
    pub fn listening(&self) -> usize {
        self.open.lock().len()
    }
}

impl fmt::Debug for InstanceListeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InstanceListeners")
            .field("discovery", &self.discovery)
            .field("source", &self.source)
            .field("listening", &self.listening())
            .finish_non_exhaustive()
    }
}

impl Offers {
    /// Whether everything that is listed is known.
    pub fn is_settled(&self) -> bool {
        self.is_read && self.unresolved.is_empty()
    }
}

/// The same instances with the same services are equal when they are the same values.
impl PartialEq for Offers {
    fn eq(&self, other: &Self) -> bool {
        let same = |one: &[Arc<ServiceInstance>], other: &[Arc<ServiceInstance>]| {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| Arc::ptr_eq(one, other))
        };
        (self.is_read, self.listed, &self.trouble, &self.failure, &self.unresolved)
            == (other.is_read, other.listed, &other.trouble, &other.failure, &other.unresolved)
            && same(&self.plain, &other.plain)
            && self.offers == other.offers
    }
}

impl PartialEq for Offer {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.instance, &other.instance) && Arc::ptr_eq(&self.catalog, &other.catalog)
    }
}

#[cfg(test)]
mod tests;
