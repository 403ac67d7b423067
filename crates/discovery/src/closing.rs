//! Instances that said goodbye while the registry still lists them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use dubhe_core::discovery::ServiceInstance;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long a goodbye counts. Origin: dubbo-go's graceful shutdown.
const COUNTS_FOR: Duration = Duration::from_secs(30);

/// Goodbyes by address. One counts for the process that said it: another revision or time of registration at the same
/// address is another process.
#[derive(Debug)]
pub(crate) struct Closing {
    goodbyes: Mutex<HashMap<Address, Goodbye>>,
    changes: watch::Sender<u64>,
}

type Address = (Arc<str>, Arc<str>, u16);

#[derive(Debug)]
struct Goodbye {
    revision: Option<Box<str>>,
    registered_at: u64,
    until: Instant,
}

impl Closing {
    pub(crate) fn new() -> Self {
        Self { goodbyes: Mutex::default(), changes: watch::Sender::new(0) }
    }

    pub(crate) fn say(&self, instance: &ServiceInstance) {
        let now = Instant::now();
        let mut goodbyes = self.goodbyes.lock();
        goodbyes.retain(|_, goodbye| goodbye.until > now);
        let goodbye = Goodbye {
            revision: instance.revision().map(Box::from),
            registered_at: instance.registered_at,
            until: now + COUNTS_FOR,
        };
        goodbyes.insert(address(instance), goodbye);
        drop(goodbyes);
        self.changes.send_modify(|count| *count += 1);
    }

    /// Until when this instance is not to be called; `None`: it may be.
    pub(crate) fn until(&self, instance: &ServiceInstance) -> Option<Instant> {
        let mut goodbyes = self.goodbyes.lock();
        if goodbyes.is_empty() {
            return None;
        }
        let address = address(instance);
        let goodbye = goodbyes.get(&address)?;
        let is_its_own = goodbye.registered_at == instance.registered_at
            && goodbye.revision.as_deref() == instance.revision();
        let until = goodbye.until;
        if is_its_own && until > Instant::now() {
            return Some(until);
        }
        goodbyes.remove(&address);
        None
    }

    /// Counts the goodbyes.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

fn address(instance: &ServiceInstance) -> Address {
    (Arc::clone(&instance.application), Arc::clone(&instance.host), instance.port)
}
