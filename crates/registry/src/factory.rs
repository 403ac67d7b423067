//! Opens registries by the protocol of their address.

use std::sync::Arc;

use dubhe_common::Url;
use dubhe_core::registry::{Registry, RegistryError, RegistryFactory};
use dubhe_core::tree::TreeFactory;

use crate::shared_trees::SharedTrees;
use crate::tree_registry::TreeRegistry;

/// Opens a [`TreeRegistry`] for every address whose protocol has a [`TreeFactory`].
///
/// A value that an application holds; registries of one address share one session, also with whoever else leases it
/// from the same [`SharedTrees`].
///
/// ```
/// use std::sync::Arc;
/// use dubhe_registry::{MEMORY, MemoryStore, MemoryTreeFactory, TreeRegistryFactory};
///
/// let memory = MemoryTreeFactory::new(MemoryStore::new());
/// let factory = TreeRegistryFactory::new().with(MEMORY, Arc::new(memory));
/// assert_eq!(factory.trees().protocols(), ["memory"]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct TreeRegistryFactory {
    trees: Arc<SharedTrees>,
}

impl TreeRegistryFactory {
    /// Without any kind of tree.
    pub fn new() -> Self {
        Self::default()
    }

    /// Over sessions that others lease as well.
    pub fn over(trees: Arc<SharedTrees>) -> Self {
        Self { trees }
    }

    /// With the factory for addresses of a protocol; a later one of the same protocol replaces it.
    #[must_use]
    pub fn with(self, protocol: &str, factory: Arc<dyn TreeFactory>) -> Self {
        self.trees.add(protocol, factory);
        self
    }

    /// The sessions.
    pub fn trees(&self) -> &Arc<SharedTrees> {
        &self.trees
    }
}

impl RegistryFactory for TreeRegistryFactory {
    fn open(&self, url: &Url) -> Result<Arc<dyn Registry>, RegistryError> {
        let lease = self.trees.lease(url).map_err(|error| RegistryError::Invalid(error.to_string()))?;
        Ok(Arc::new(TreeRegistry::over(url, lease)))
    }
}
