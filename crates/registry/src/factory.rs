//! Opens registries by the protocol of their address.

use std::sync::Arc;

use dubhe_common::Url;
use dubhe_core::registry::{Registry, RegistryError, RegistryFactory};

use crate::shared_trees::SharedTrees;
use crate::tree_registry::TreeRegistry;

/// Opens a [`TreeRegistry`] for every address whose protocol has a [`TreeFactory`](dubhe_core::tree::TreeFactory).
///
/// A value that an application holds; registries of one address share one session, also with whoever else leases it
/// from the same [`SharedTrees`].
///
/// ```
/// use std::sync::Arc;
/// use dubhe_registry::{MEMORY, MemoryStore, MemoryTreeFactory, SharedTrees, TreeRegistryFactory};
///
/// let memory = MemoryTreeFactory::new(MemoryStore::new());
/// let factory = TreeRegistryFactory::new(Arc::new(SharedTrees::new().with(MEMORY, Arc::new(memory))));
/// # let _ = factory;
/// ```
#[derive(Clone, Debug, Default)]
pub struct TreeRegistryFactory {
    trees: Arc<SharedTrees>,
}

impl TreeRegistryFactory {
    /// Over these sessions.
    pub fn new(trees: Arc<SharedTrees>) -> Self {
        Self { trees }
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
