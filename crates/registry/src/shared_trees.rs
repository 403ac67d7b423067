//! One session per registry address.

use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Weak};

use dubhe_common::{Url, keys};
use dubhe_core::tree::{Tree, TreeError, TreeFactory};
use parking_lot::Mutex;

/// Opens trees by the protocol of their address, and one session per address only: interface-level registry,
/// application-level discovery, metadata report, mapping and config centre share it.
///
/// A value: one per application. Addresses are the same when protocol, user and the set of servers are; the
/// parameters of the first to open it prevail.
#[derive(Default)]
pub struct SharedTrees {
    factories: Mutex<HashMap<String, Arc<dyn TreeFactory>>>,
    open: Mutex<HashMap<String, Weak<Held>>>,
}

struct Held(Arc<dyn Tree>);

/// A share of a tree. Whoever releases the last one ends the session; one that is only dropped leaves that to the
/// tree's own drop.
#[derive(Clone)]
pub struct TreeLease(Arc<Held>);

impl SharedTrees {
    /// Without any kind of tree.
    pub fn new() -> Self {
        Self::default()
    }

    /// With the factory for addresses of a protocol; a later one of the same protocol replaces it.
    #[must_use]
    pub fn with(self, protocol: &str, factory: Arc<dyn TreeFactory>) -> Self {
        self.add(protocol, factory);
        self
    }

    /// As [`SharedTrees::with`]; trees that are open stay as they are.
    pub fn add(&self, protocol: &str, factory: Arc<dyn TreeFactory>) {
        self.factories.lock().insert(protocol.to_owned(), factory);
    }

    /// The protocols there are factories for, sorted.
    pub fn protocols(&self) -> Vec<String> {
        let mut protocols: Vec<String> = self.factories.lock().keys().cloned().collect();
        protocols.sort_unstable();
        protocols
    }

    /// A share of the session with the registry at `url`. On a `registry://` URL the parameter `registry` names the
    /// real protocol.
    ///
    /// # Errors
    /// No factory for the protocol, or the factory's own.
    pub fn lease(&self, url: &Url) -> Result<TreeLease, TreeError> {
        let url = real(url);
        let factory = self.factories.lock().get(url.protocol()).cloned();
        let factory = factory.ok_or_else(|| {
            TreeError::Invalid(format!(
                "no registry of protocol `{}` for {}: there are {}",
                url.protocol(),
                url.to_plain_string(),
                self.protocols().join(", ")
            ))
        })?;
        let mut open = self.open.lock();
        let key = key(&url);
        if let Some(held) = open.get(&key).and_then(Weak::upgrade) {
            return Ok(TreeLease(held));
        }
        open.retain(|_, held| held.strong_count() > 0);
        let held = Arc::new(Held(factory.open(&url)?));
        open.insert(key, Arc::downgrade(&held));
        Ok(TreeLease(held))
    }
}

impl TreeLease {
    /// The only share of a tree.
    pub fn sole(tree: Arc<dyn Tree>) -> Self {
        Self(Arc::new(Held(tree)))
    }

    /// The tree.
    pub fn tree(&self) -> &Arc<dyn Tree> {
        &self.0.0
    }

    /// Gives the share back; the last one closes the tree.
    pub async fn release(self) {
        if let Some(held) = Arc::into_inner(self.0) {
            held.0.close().await;
        }
    }
}

impl Deref for TreeLease {
    type Target = dyn Tree;

    fn deref(&self) -> &Self::Target {
        &*self.0.0
    }
}

impl fmt::Debug for TreeLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TreeLease").field(&self.0.0).finish()
    }
}

impl fmt::Debug for SharedTrees {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedTrees").field("protocols", &self.protocols()).finish_non_exhaustive()
    }
}

/// The URL with the protocol that is meant.
fn real(url: &Url) -> Url {
    match (url.protocol(), url.param(keys::REGISTRY)) {
        (keys::protocol::REGISTRY | keys::protocol::SERVICE_DISCOVERY_REGISTRY, Some(protocol)) => {
            url.with_protocol(protocol)
        }
        _ => url.clone(),
    }
}

fn key(url: &Url) -> String {
    let mut servers = url.backup_addresses(0);
    servers.sort_unstable();
    servers.dedup();
    format!("{}://{}@{}", url.protocol(), url.user_information(), servers.join(","))
}
