//! Layer 7, metadata: what an application instance exports, by revision.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use dubhe_common::ServiceKey;
use serde::{Deserialize, Deserializer, Serialize};

use crate::discovery::ServiceInstance;
use crate::error::RpcError;
use crate::tree::TreeError;

/// All services of one application instance (`MetadataInfo`), as the metadata report and the metadata service carry it.
///
/// Its JSON form is what Java writes: what is missing is left out. Unknown fields and nulls are tolerated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetadataInfo {
    /// Application name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// Revision: changes with the content; opaque to consumers; `0` when there are no services.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Services by match key: `[group/]interface[:version]:protocol`.
    #[serde(default, deserialize_with = "without_nulls")]
    pub services: BTreeMap<String, ServiceInfo>,
}

/// One exported service of an instance (`MetadataInfo.ServiceInfo`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceInfo {
    /// Interface.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// Group, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Version, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Protocol: `dubbo`, `tri`.
    #[serde(default, deserialize_with = "or_default")]
    pub protocol: String,
    /// Port; -1 when unknown.
    #[serde(default = "unknown_port", deserialize_with = "or_unknown_port")]
    pub port: i32,
    /// URL path: the interface unless a context path is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// URL parameters of the provider.
    #[serde(default, deserialize_with = "without_nulls")]
    pub params: BTreeMap<String, String>,
}

const fn unknown_port() -> i32 {
    -1
}

/// Others write null for what is missing.
fn or_default<'de, T: Default + Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    Option::<T>::deserialize(from).map(Option::unwrap_or_default)
}

/// One entry without a value does not spoil the others.
fn without_nulls<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<String, T>, D::Error> {
    let entries = Option::<BTreeMap<String, Option<T>>>::deserialize(from)?.unwrap_or_default();
    Ok(entries.into_iter().filter_map(|(key, value)| Some((key, value?))).collect())
}

fn or_unknown_port<'de, D: Deserializer<'de>>(from: D) -> Result<i32, D::Error> {
    Option::<i32>::deserialize(from).map(|port| port.unwrap_or(unknown_port()))
}

impl MetadataInfo {
    /// The service of exactly this match key, else one whose service key (without protocol) this is; of several, one
    /// that its provider does not call an extra (`isExtra`) is preferred.
    pub fn find(&self, key: &str) -> Option<&ServiceInfo> {
        let mut extra = None;
        self.services.get(key).or_else(|| {
            for service in self.services.values().filter(|service| service.service_key() == key) {
                if !service.params.get("isExtra").is_some_and(|extra| extra.eq_ignore_ascii_case("true")) {
                    return Some(service);
                }
                extra = extra.or(Some(service));
            }
            extra
        })
    }
}

impl ServiceInfo {
    /// `[group/]interface[:version]`.
    pub fn service_key(&self) -> String {
        ServiceKey::new(self.group.as_deref(), &self.name, self.version.as_deref()).to_string()
    }

    /// `[group/]interface[:version]:protocol`: what [`MetadataInfo::services`] is keyed by.
    pub fn match_key(&self) -> String {
        format!("{}:{}", self.service_key(), self.protocol)
    }
}

/// Where metadata is stored centrally (storage type `remote`): `/dubbo/metadata/<app>/<revision>`.
#[async_trait]
pub trait MetadataReport: Send + Sync + Debug {
    /// Publishes an instance's metadata under its revision, before the instance is registered. What is there already stays.
    async fn publish(&self, info: &MetadataInfo) -> Result<(), TreeError>;

    /// Reads metadata; `None` when it is not there (yet): never cached.
    async fn fetch(&self, application: &str, revision: &str) -> Result<Option<MetadataInfo>, TreeError>;

    /// Publishes the definition of a service (`side` = `provider` or `consumer`) as JSON text.
    async fn publish_definition(&self, service: &DefinitionId<'_>, json: &str) -> Result<(), TreeError>;
}

/// Where a service definition is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefinitionId<'a> {
    /// Interface.
    pub interface: &'a str,
    /// Version, if any.
    pub version: Option<&'a str>,
    /// Group, if any.
    pub group: Option<&'a str>,
    /// `provider` or `consumer`.
    pub side: &'a str,
    /// Application name.
    pub application: &'a str,
}

/// Asks an instance itself for its metadata (storage type `local`).
#[async_trait]
pub trait MetadataClient: Send + Sync + Debug {
    /// The metadata of `revision` from `instance`; `None` when the instance does not know that revision.
    async fn fetch(
        &self,
        instance: &Arc<ServiceInstance>,
        revision: &str,
    ) -> Result<Option<MetadataInfo>, RpcError>;
}
