//! Metadata kept in the tree (`ZookeeperMetadataReport`).

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use dubhe_common::defaults::DEFAULT_REGISTRY_GROUP;
use dubhe_common::{Url, encode, keys};
use dubhe_core::discovery::NO_SERVICES;
use dubhe_core::metadata::{DefinitionId, MetadataInfo, MetadataReport};
use dubhe_core::tree::{Tree, TreeError};

use crate::node_path;
use crate::put::put;

/// What all metadata is below.
const METADATA: &str = "metadata";

/// Metadata at `<root>/metadata/<application>/<revision>`, definitions at
/// `<root>/metadata/<interface>/<version>/<group>/<side>/<application>`; all nodes stay when the application goes.
///
/// The root is the `group` of the report's address, or of the registry's that doubles as report; default `dubbo`.
#[derive(Debug)]
pub struct TreeMetadataReport {
    tree: Arc<dyn Tree>,
    root: String,
}

impl TreeMetadataReport {
    /// The report that `url` is the address of, which may be a registry's.
    pub fn new(url: &Url, tree: Arc<dyn Tree>) -> Self {
        Self { tree, root: root(url) }
    }

    /// The node of an application's metadata.
    pub fn path(&self, application: &str, revision: &str) -> String {
        // A part that repeats an earlier one is left out, also an application called `metadata`.
        let prefix = node_path::join(&[METADATA, application]);
        node_path::join(&[&self.root, &node_path::join(&[&prefix, revision])])
    }

    /// The node of a service's definition.
    pub fn definition_path(&self, service: &DefinitionId<'_>) -> String {
        let interface = encode(service.interface);
        let (version, group) = (service.version.unwrap_or_default(), service.group.unwrap_or_default());
        let prefix = node_path::join(&[METADATA, &interface, version, group, service.side]);
        node_path::join(&[&self.root, &node_path::join(&[&prefix, service.application])])
    }
}

/// The root of a report's nodes: `/` and the group.
pub(crate) fn root(url: &Url) -> String {
    node_path::join(&[url.param_or(keys::GROUP, DEFAULT_REGISTRY_GROUP)])
}

#[async_trait]
impl MetadataReport for TreeMetadataReport {
    /// Metadata without services or without a revision is not written.
    async fn publish(&self, info: &MetadataInfo) -> Result<(), TreeError> {
        let Some(revision) = info.revision.as_deref().filter(|revision| *revision != NO_SERVICES) else {
            return Ok(());
        };
        let Some(application) = info.app.as_deref().filter(|name| !name.is_empty()) else {
            return Err(TreeError::Invalid(format!(
                "the metadata of revision {revision} cannot be published: it has no application name"
            )));
        };
        let path = self.path(application, revision);
        let data = Bytes::from(serde_json::to_vec(info).expect("texts and numbers have a JSON form"));
        if self.tree.create(&path, data.clone()).await? {
            return Ok(());
        }
        match self.tree.read(&path).await? {
            // Somebody made the node and did not get further.
            Some(node) if node.bytes.is_empty() => put(&*self.tree, &path, data).await,
            _ => Ok(()),
        }
    }

    /// What has no services is as good as not there: its application may still be writing.
    async fn fetch(&self, application: &str, revision: &str) -> Result<Option<MetadataInfo>, TreeError> {
        let path = self.path(application, revision);
        let Some(node) = self.tree.read(&path).await?.filter(|node| !node.bytes.is_empty()) else {
            return Ok(None);
        };
        let info: MetadataInfo = serde_json::from_slice(&node.bytes).map_err(|error| {
            TreeError::Invalid(format!(
                "the metadata at {path} in {} is malformed: {error}",
                self.tree.address()
            ))
        })?;
        Ok(Some(info).filter(|info| !info.services.is_empty()))
    }

    async fn publish_definition(&self, service: &DefinitionId<'_>, json: &str) -> Result<(), TreeError> {
        let data = Bytes::copy_from_slice(json.as_bytes());
        put(&*self.tree, &self.definition_path(service), data).await
    }
}
