//! Layer 7, metadata: what an application instance exports, by revision.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::discovery::ServiceInstance;
use crate::error::RpcError;
use crate::tree::TreeError;

/// All services of one application instance (`MetadataInfo`), as the metadata report and the metadata service carry it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetadataInfo {
    /// Application name.
    pub app: Option<String>,
    /// Revision: changes with the content; opaque to consumers; `0` when there are no services.
    pub revision: Option<String>,
    /// Services by match key: `[group/]interface[:version]:protocol`.
    #[serde(default)]
    pub services: BTreeMap<String, ServiceInfo>,
}

/// One exported service of an instance (`MetadataInfo.ServiceInfo`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceInfo {
    /// Interface.
    pub name: String,
    /// Group, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Version, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Protocol: `dubbo`, `tri`.
    pub protocol: String,
    /// Port; -1 when unknown.
    #[serde(default = "unknown_port")]
    pub port: i32,
    /// URL path: the interface unless a context path is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// URL parameters of the provider.
    #[serde(default)]
    pub params: BTreeMap<String, String>,
}

const fn unknown_port() -> i32 {
    -1
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
