//! Application-level registration and discovery over a tree (`ZookeeperServiceDiscovery`).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use bytes::Bytes;
use dubhe_common::defaults::DEFAULT_REGISTRY_TIMEOUT;
use dubhe_common::{Url, keys};
use dubhe_core::discovery::{Instances, ServiceDiscovery, ServiceInstance};
use dubhe_core::observation::Observation;
use dubhe_core::tree::{NodeKind, SessionState, Tree, TreeError};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::instance_follower::Shared;
use crate::{instance_node, node_path};

/// Parameter of the registry's address: the root of the instances.
const ROOT_PATH: &str = "rootPath";
/// The root when the registry's address names none and has no group.
const DEFAULT_ROOT: &str = "/services";

/// Instances at `<root>/<application>/<host>:<port>`, ephemeral, followed by list and by data.
///
/// The root is the registry's `rootPath`; without one, or when that is `/services`, the registry's `group`; without
/// that, `/services`. Registrations are intents of the tree: they survive whatever happens to the connection.
pub struct TreeServiceDiscovery {
    tree: Arc<dyn Tree>,
    root: String,
    timeout: Duration,
    registered: Mutex<HashMap<String, Arc<str>>>,
    shared: Arc<Shared>,
}

impl TreeServiceDiscovery {
    /// The discovery of the registry at `url`: `rootPath`, `group`, and `timeout` (30000 ms), how long a registration
    /// is waited for.
    pub fn new(url: &Url, tree: Arc<dyn Tree>) -> Self {
        let named = url.param(ROOT_PATH).filter(|root| !root.eq_ignore_ascii_case(DEFAULT_ROOT));
        let root = named.or(url.group()).unwrap_or(DEFAULT_ROOT);
        Self {
            tree,
            root: node_path::join(&[root]),
            timeout: url.duration_param(keys::TIMEOUT, DEFAULT_REGISTRY_TIMEOUT),
            registered: Mutex::default(),
            shared: Arc::default(),
        }
    }

    /// How many instances are registered.
    pub fn registrations(&self) -> usize {
        self.registered.lock().len()
    }

    /// How many applications are followed.
    pub fn followed(&self) -> usize {
        self.shared.len()
    }

    fn path(&self, instance: &ServiceInstance) -> Result<String, TreeError> {
        let application = &*instance.application;
        let why = if application.is_empty() || application.contains('/') {
            "its application must have a name without `/`"
        } else if instance.host.is_empty() || instance.host.contains('/') {
            "it has no host"
        } else if instance.port == 0 {
            "its port is 0: nothing is exported"
        } else {
            return Ok(format!("{}/{application}/{}", self.root, instance.address()));
        };
        Err(TreeError::Invalid(format!(
            "instance {application} at {} cannot be registered: {why}",
            instance.address()
        )))
    }
}

#[async_trait]
impl ServiceDiscovery for TreeServiceDiscovery {
    async fn register(&self, instance: &ServiceInstance) -> Result<(), TreeError> {
        let path = self.path(instance)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let registered_at = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let data = instance_node::write(&ServiceInstance { registered_at, ..instance.clone() });
        let data = Bytes::from(data);
        {
            let mut registered = self.registered.lock();
            self.tree.ensure(&path, data, NodeKind::Ephemeral);
            match registered.entry(path.clone()) {
                // The tree counts, and this is the same registration with other data.
                Entry::Occupied(_) => self.tree.withdraw(&path),
                Entry::Vacant(entry) => {
                    entry.insert(Arc::clone(&instance.application));
                }
            }
        }
        let settled = self.tree.settled(&path, self.timeout).await;
        if let Err(TreeError::Invalid(_)) = settled
            && self.registered.lock().remove(&path).is_some()
        {
            self.tree.withdraw(&path);
        }
        settled
    }

    async fn unregister(&self, instance: &ServiceInstance) -> Result<(), TreeError> {
        let path = self.path(instance)?;
        if self.registered.lock().remove(&path).is_none() {
            return Ok(());
        }
        // Before anything is awaited: from here on no recovery brings the node back.
        self.tree.withdraw(&path);
        let mut session = self.tree.session();
        let settled = tokio::select! {
            biased;
            settled = self.tree.settled(&path, self.timeout) => settled,
            _ = session.wait_for(|state| !matches!(state, SessionState::Connected { .. })) => Ok(()),
        };
        match settled {
            // The node goes with the session.
            Ok(()) | Err(TreeError::Unreachable { .. } | TreeError::Closed(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Followers of one application share one watch.
    fn instances(&self, application: &str) -> watch::Receiver<Observation<Instances>> {
        let path = node_path::join(&[&self.root, application]);
        self.shared.follow(&self.tree, application, path)
    }
}

impl fmt::Debug for TreeServiceDiscovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TreeServiceDiscovery")
            .field("tree", &self.tree)
            .field("root", &self.root)
            .field("registrations", &self.registrations())
            .field("followed", &self.followed())
            .finish()
    }
}
