//! Application-level registration and discovery over a tree (`ZookeeperServiceDiscovery`).

use std::collections::HashMap;
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
/// that, `/services`. Registrations are intents of the tree: they survive whatever happens to the connection. One that
/// can never work is forgotten; if it was an update, what was registered before stays.
pub struct TreeServiceDiscovery {
    tree: Arc<dyn Tree>,
    root: String,
    timeout: Duration,
    /// The data of each node, by its path.
    registered: Mutex<HashMap<String, Bytes>>,
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

    /// Makes this the node's data; what it was to be before.
    fn ensure(&self, registered: &mut HashMap<String, Bytes>, path: &str, data: &Bytes) -> Option<Bytes> {
        self.tree.ensure(path, data.clone(), NodeKind::Ephemeral);
        let former = registered.insert(path.to_owned(), data.clone());
        if former.is_some() {
            // The tree counts, and this is the same registration with other data.
            self.tree.withdraw(path);
        }
        former
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
        let former = self.ensure(&mut self.registered.lock(), &path, &data);
        let settled = self.tree.settled(&path, self.timeout).await;
        if let Err(TreeError::Invalid(_)) = settled {
            let mut registered = self.registered.lock();
            // Unless somebody has registered it anew, or taken it back.
            match former.filter(|_| registered.get(&path) == Some(&data)) {
                Some(former) => {
                    self.ensure(&mut registered, &path, &former);
                }
                None if registered.get(&path) == Some(&data) => {
                    registered.remove(&path);
                    self.tree.withdraw(&path);
                }
                None => {}
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubles::{Nodes, instance};

    fn world() -> (Arc<Nodes>, TreeServiceDiscovery) {
        let nodes = Arc::new(Nodes::default());
        let url = Url::parse("zookeeper://192.0.2.1:2181").unwrap();
        let discovery = TreeServiceDiscovery::new(&url, Arc::clone(&nodes) as _);
        (nodes, discovery)
    }

    const PATH: &str = "/services/demo/192.0.2.1:20880";

    #[tokio::test]
    async fn an_update_that_can_never_work_leaves_what_was_registered() {
        let (nodes, discovery) = world();
        discovery.register(&instance(1, "r1")).await.unwrap();
        let before = nodes.wanted(PATH).unwrap();
        let large = instance(1, "r2").with("label", "x".repeat(Nodes::LIMIT));
        for _ in 0..2 {
            let refused = discovery.register(&large).await;
            assert!(matches!(refused, Err(TreeError::Invalid(_))), "{refused:?}");
            assert_eq!(nodes.wanted(PATH), Some(before.clone()));
        }
        discovery.register(&instance(1, "r3")).await.unwrap();
        assert!(nodes.wanted(PATH).unwrap().contains("r3"));
        discovery.unregister(&instance(1, "r3")).await.unwrap();
        assert_eq!((nodes.wanted(PATH), discovery.registrations()), (None, 0));
    }

    #[tokio::test]
    async fn a_registration_that_can_never_work_is_forgotten() {
        let (nodes, discovery) = world();
        let large = instance(1, "r1").with("label", "x".repeat(Nodes::LIMIT));
        assert!(matches!(discovery.register(&large).await, Err(TreeError::Invalid(_))));
        assert_eq!((nodes.wanted(PATH), discovery.registrations()), (None, 0));
        discovery.unregister(&large).await.unwrap();
        assert_eq!(nodes.wanted(PATH), None);
    }
}
