//! Layer 9, config: typed configuration in Dubbo's own key names.
//!
//! [`DubboConfig`] is everything that an application configures: the application itself, registries, config centre and metadata
//! centre, protocols, defaults of consumers and providers, references and services. It is read from YAML (`dubbo.registry.address`, the names of Dubbo's own
//! `dubbo.yaml`), from `DUBBO_*` environment variables, and set by the facade's builders; later ones win in that order. Keys that
//! no field knows become URL parameters under `parameters`, or are refused with the known names.
//!
//! Not here: what the settings do. A section becomes URL parameters ([`ReferenceConfig::url_params`] and so on) that the layers read.

mod application;
mod centers;
mod interface;
mod load;
mod protocol;
mod registry;

pub use application::{ApplicationConfig, DubboConfig, MigrationConfig, ServiceDiscoveryConfig};
pub use centers::{ConfigCenterConfig, MetadataReportConfig};
pub use interface::{MethodConfig, ReferenceConfig, ServiceConfig};
pub use load::{ConfigError, MAX_FILE_BYTES};
pub use protocol::ProtocolConfig;
pub use registry::RegistryConfig;
