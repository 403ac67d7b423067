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
//! - [`InstanceListeners`]: what the instances of an application offer; [`MappedService`]: all addresses of a service.
//! - [`ServiceDiscoveryRegistry`]: all of this behind the contract of a registry.
//!
//! Why the last one: to a directory both models are the same, a list of addresses that is known, empty or in trouble.
//! So one directory serves both, and keeps, merges, overrides and connects in one way; only the source of its URLs
//! differs. What Dubbo's second directory does beside that (finding the services of an instance that match, their port
//! and their parameters) is done here, before an address becomes a URL. What is shared by the services of an instance
//! (the instance, its revision's services) stays shared; a URL costs what it costs at interface level.
//!
//! Dubbo has one listener for each *set* of applications. Here there is one for each application, and a service puts
//! its own set together: when a mapping changes, the applications that stay are not listened to anew.
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

mod no_mapping;
pub use no_mapping::NoMapping;

mod instance_listeners;
pub use instance_listeners::{InstanceListeners, Offer, Offers};

mod catalog;
pub use catalog::Catalog;

mod service_match;
pub use service_match::ServiceMatch;

mod mapped_service;
pub use mapped_service::{MappedService, ServiceAddress, ServiceAddresses};

mod service_discovery_registry;
pub use service_discovery_registry::{ServiceDiscoveryRegistry, ServiceDiscoveryRegistryParts};

mod mapping_cache;
pub use mapping_cache::MappingCache;

mod cache_file;
pub use cache_file::CacheFile;

mod definition;
pub use definition::{consumer_definition, provider_definition};

mod address_urls;
mod closing;
mod follow;
mod instance_follower;
mod instance_listener;
mod instance_node;
mod lru;
mod node_path;
mod put;

#[cfg(test)]
mod doubles;
#[cfg(test)]
mod recorded;
