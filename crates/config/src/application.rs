use std::collections::BTreeMap;

use serde::Deserialize;

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

/// The `application` section.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
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
    /// More URL parameters.
    pub parameters: BTreeMap<String, String>,
}

impl ApplicationConfig {
    /// The application's URL parameters.
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
        params.insert("application".to_owned(), self.name.clone());
        params
    }
}
