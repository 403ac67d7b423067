//! Registry layer: Dubbo 3's application-level discovery, written once over a tree of nodes.
//!
//! - [`TreeConfigCenter`]: rules and properties as text under a group and a key.
//! - [`TreeServiceDiscovery`]: applications' instances, registered and followed; [`OwnInstance`] is what an application
//!   says of itself.
//! - [`OwnMetadata`]: what an application exports, by [`revision()`]; [`TreeMetadataReport`] keeps it centrally.
//! - [`Announcer`]: keeps the own instance registered as it is now, metadata first.
//! - [`MetadataSource`]: the metadata of other applications' revisions, remembered in a [`MetadataCache`].
//! - [`MetadataService`]: answers consumers about this application; [`ask_metadata_service`] asks another.
//! - [`TreeServiceNameMapping`]: which applications provide an interface, remembered in a [`MappingCache`].
//!
//! Everything works on any [`Tree`]: ZooKeeper's, or the one in memory. One tree is one session with one registry
//! address, shared by all of them and by the interface-level registry; nothing here opens or closes one.
//!
//! What is followed is followed by a task on the current tokio runtime, which ends with the last receiver.
//!
//! Not here: interface-level registration (see `registry`), what becomes of the addresses (see `directory`).

pub use dubhe_core::config_center::{ConfigCenter, ConfigText};
pub use dubhe_core::discovery::{Instances, ServiceDiscovery, ServiceInstance};
pub use dubhe_core::mapping::{Applications, ServiceNameMapping};
pub use dubhe_core::metadata::{MetadataClient, MetadataInfo, MetadataReport, ServiceInfo};
pub use dubhe_core::observation::Observation;
pub use dubhe_core::tree::{Tree, TreeError};

mod config_center;
pub use config_center::TreeConfigCenter;

mod service_discovery;
pub use service_discovery::TreeServiceDiscovery;

mod own_instance;
pub use own_instance::{InconsistentInstance, OwnInstance};

mod instance_metadata;
pub use instance_metadata::{
    Endpoint, METADATA_SERVICE, METADATA_SERVICE_V1, METADATA_SERVICE_V2, endpoints, metadata_service_params,
    metadata_service_url, offers_metadata_service_v2, port_for,
};

mod announcer;
pub use announcer::Announcer;

mod own_metadata;
pub use own_metadata::OwnMetadata;

mod revision;
pub use revision::{revision, service_info};

mod metadata_report;
pub use metadata_report::TreeMetadataReport;

mod metadata_source;
pub use metadata_source::{MetadataError, MetadataSource};

mod metadata_cache;
pub use metadata_cache::MetadataCache;

mod metadata_service;
pub use metadata_service::{MetadataService, ask_metadata_service, metadata_from_value, metadata_to_value};

mod mapping;
pub use mapping::TreeServiceNameMapping;

mod mapping_cache;
pub use mapping_cache::MappingCache;

mod cache_file;
pub use cache_file::CacheFile;

mod definition;
pub use definition::{consumer_definition, provider_definition};

mod follow;
mod instance_follower;
mod instance_node;
mod lru;
mod node_path;
mod put;

#[cfg(test)]
mod recorded;
