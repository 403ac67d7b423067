use std::collections::BTreeMap;

use serde::Deserialize;

use crate::centers::{ConfigCenterConfig, MetadataReportConfig};
use crate::interface::{ReferenceConfig, ServiceConfig};
use crate::protocol::ProtocolConfig;
use crate::registry::RegistryConfig;

/// Everything that one application configures: the `dubbo` section of the YAML file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct DubboConfig {
    /// The application.
    pub application: ApplicationConfig,
    /// The registry, when there is one.
    pub registry: Option<RegistryConfig>,
    /// Several registries, by id.
    pub registries: BTreeMap<String, RegistryConfig>,
    /// The config centre, when it is not the registry.
    pub config_center: Option<ConfigCenterConfig>,
    /// The metadata centre, when it is not the registry.
    pub metadata_report: Option<MetadataReportConfig>,
    /// The protocol that services are served by, when there is one.
    pub protocol: Option<ProtocolConfig>,
    /// Several protocols, by id.
    pub protocols: BTreeMap<String, ProtocolConfig>,
    /// Defaults of all references.
    pub consumer: ReferenceConfig,
    /// Defaults of all services.
    pub provider: ServiceConfig,
    /// Settings of references, by interface.
    pub references: BTreeMap<String, ReferenceConfig>,
    /// Settings of services, by interface.
    pub services: BTreeMap<String, ServiceConfig>,
}

impl DubboConfig {
    /// What is set of the properties that stand behind migration rules, by their full names in Dubbo:
    /// `dubbo.application.migration.step`, `.threshold`, `.delay`, and `dubbo.application.service-discovery.migration`.
    pub fn properties(&self) -> BTreeMap<String, String> {
        let MigrationConfig { step, threshold, delay, file: _ } = &self.application.migration;
        let properties = [
            ("dubbo.application.migration.step", step.clone()),
            ("dubbo.application.migration.threshold", threshold.map(|one| one.to_string())),
            ("dubbo.application.migration.delay", delay.map(|one| one.to_string())),
            (
                "dubbo.application.service-discovery.migration",
                self.application.service_discovery.migration.clone(),
            ),
        ];
        let set = properties.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        set.collect()
    }
}

/// The `application` section.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ApplicationConfig {
    /// Name: what the registry and other applications know it by. Required.
    pub name: String,
    /// Version, for people (`application.version` in URLs).
    pub version: Option<String>,
    /// Who is responsible, for people.
    pub owner: Option<String>,
    /// Organization, for people.
    pub organization: Option<String>,
    /// Environment, e.g. `product`, `test`.
    pub environment: Option<String>,
    /// How long a graceful shutdown waits for calls in flight, milliseconds. Default 10000 (`dubbo.service.shutdown.wait`).
    #[serde(rename = "shutwait", alias = "shutdown-wait")]
    pub shutdown_wait: Option<u64>,
    /// How services are registered: `interface`, `instance` (by application) or `all`; a registry may say otherwise. Default `all`.
    pub register_mode: Option<String>,
    /// Where consumers find the metadata of this application's instances: `local` asks an instance, `remote` the metadata centre.
    /// Default `local`.
    pub metadata_type: Option<String>,
    /// Port that metadata is served on. Default: that of the first server that speaks its protocol.
    pub metadata_service_port: Option<u16>,
    /// Protocol that metadata is served by. Default: the application's.
    pub metadata_service_protocol: Option<String>,
    /// Whether an application without services is registered as an instance. Default true.
    pub register_consumer: Option<bool>,
    /// How references move from discovery by interface to discovery by application.
    pub migration: MigrationConfig,
    /// An older name of a part of `migration`.
    pub service_discovery: ServiceDiscoveryConfig,
    /// More URL parameters.
    pub parameters: BTreeMap<String, String>,
}

/// The `application.migration` section: what holds where neither a migration rule nor a reference says anything.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct MigrationConfig {
    /// `FORCE_INTERFACE`, `APPLICATION_FIRST` or `FORCE_APPLICATION`. Default `APPLICATION_FIRST`.
    pub step: Option<String>,
    /// Least number of addresses found by application, relative to those found by interface, to switch. Default 0: one is enough
    /// (`DefaultMigrationAddressComparator`).
    pub threshold: Option<f32>,
    /// How long the local rule waits for one of the config centre, milliseconds. Default 60000 (`MigrationRuleListener`).
    pub delay: Option<u64>,
    /// Path of a local rule. Default: none. Dubbo names it `dubbo.migration.file`, as a system property, and looks for
    /// `dubbo-migration.yaml` without one.
    pub file: Option<String>,
}

/// The `application.service-discovery` section.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ServiceDiscoveryConfig {
    /// The step of `migration`, by its older name; the newer one wins. Default: not set.
    pub migration: Option<String>,
}

impl ApplicationConfig {
    /// The application's URL parameters; what is not set is left out. As in Dubbo they also hold how the application registers
    /// (`register-mode`, `metadata-type`, ...), but nothing of its migration.
    pub fn url_params(&self) -> BTreeMap<String, String> {
        let mut params = self.parameters.clone();
        let mut put = |key: &str, value: &Option<String>| {
            if let Some(value) = value {
                params.insert(key.to_owned(), value.clone());
            }
        };
        put("application.version", &self.version);
        put("owner", &self.owner);
        put("organization", &self.organization);
        put("environment", &self.environment);
        put("register-mode", &self.register_mode);
        put("metadata-type", &self.metadata_type);
        put("metadata-service-port", &self.metadata_service_port.map(|port| port.to_string()));
        put("metadata-service-protocol", &self.metadata_service_protocol);
        // With a dot: Dubbo gives this one no name, and derives it from the field's.
        put("register.consumer", &self.register_consumer.map(|one| one.to_string()));
        params.insert("application".to_owned(), self.name.clone());
        params
    }
}
