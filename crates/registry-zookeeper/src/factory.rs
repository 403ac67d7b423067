//! From a registry address to a tree.

use std::sync::Arc;

use dubhe_common::Url;
use dubhe_core::tree::{Tree, TreeError, TreeFactory};

use crate::settings::Settings;
use crate::tree::ZookeeperTree;

/// Opens a [`ZookeeperTree`] for every address it is given, for the protocols in [`ZookeeperTreeFactory::NAMES`].
///
/// Each call opens a session of its own; whoever wants registry, configuration centre and metadata report to share one
/// keeps the tree and hands it around.
#[derive(Clone, Copy, Debug, Default)]
pub struct ZookeeperTreeFactory;

impl ZookeeperTreeFactory {
    /// The protocols of registry addresses that mean ZooKeeper. `curator` is the older spelling of some Dubbo releases.
    pub const NAMES: [&'static str; 2] = ["zookeeper", "curator"];
}

impl TreeFactory for ZookeeperTreeFactory {
    fn open(&self, url: &Url) -> Result<Arc<dyn Tree>, TreeError> {
        let tree = ZookeeperTree::open(Settings::from_url(url)?)?;
        Ok(Arc::new(tree))
    }
}
