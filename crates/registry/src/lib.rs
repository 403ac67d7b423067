//! Registry layer: interface-level registration and discovery, written once over a tree of nodes.
//!
//! [`TreeRegistry`] is Dubbo's registry model (providers, consumers and rules of an interface as URLs) on any
//! [`Tree`]. [`MemoryStore`] is such a tree within the process, the embedded default; ZooKeeper's is in a crate of its
//! own. [`TreeRegistryFactory`] opens a registry by the protocol of its address, and [`SharedTrees`] keeps one session
//! per address for everybody who needs it.
//!
//! ```
//! use std::sync::Arc;
//!
//! use dubhe_common::Url;
//! use dubhe_registry::{MemoryStore, Registry, TreeRegistry};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = MemoryStore::new();
//! let registry = TreeRegistry::new(&Url::parse("memory://local")?, store.connect());
//! registry.register(&Url::parse("dubbo://192.0.2.1:20880/demo.Greeter")?).await?;
//!
//! let consumer = Url::parse("consumer://192.0.2.9/demo.Greeter?category=providers,configurators,routers")?;
//! let mut subscription = registry.subscribe(&consumer).await?;
//! assert_eq!(subscription.view().providers.urls().map(|urls| urls.len()), Some(1));
//! # Ok(()) }
//! ```
//!
//! What a provider and a consumer write there, byte for byte as Dubbo does, is in [`registered_url`]. When the
//! registry cannot be reached, [`CacheFile`] remembers the last addresses.
//!
//! Not here: what becomes of the addresses (see `directory`), sessions and sockets (see the trees), application-level
//! discovery.

pub use dubhe_core::registry::{
    Category, Registry, RegistryError, RegistryFactory, ServiceView, Subscription,
};
pub use dubhe_core::tree::{Tree, TreeError, TreeFactory};

mod tree_registry;
pub use tree_registry::TreeRegistry;

mod factory;
pub use factory::TreeRegistryFactory;

mod shared_trees;
pub use shared_trees::{SharedTrees, TreeLease};

mod memory;
pub use memory::{MEMORY, MemoryStore, MemoryTree, MemoryTreeFactory};

pub mod registered_url;

mod cache_file;
pub use cache_file::CacheFile;

mod first_view;
mod follower;
mod former_names;
mod listing;
mod pace;
mod paths;
mod properties;
