//! The config centre over a tree (`ZookeeperDynamicConfiguration`).

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use dubhe_common::{Url, keys};
use dubhe_core::config_center::{ConfigCenter, ConfigText, DEFAULT_GROUP};
use dubhe_core::observation::Observation;
use dubhe_core::tree::{NodeData, Tree, TreeError};
use tokio::sync::watch;

use crate::follow::{Reading, follow};
use crate::node_path;
use crate::put::put;

/// Parameter of a config centre's address: what its tree is called.
const NAMESPACE: &str = "namespace";
/// Parameter of a config centre's address: the node below the namespace. Origin: `TreePathDynamicConfiguration`.
const BASE_PATH: &str = "dubbo.config-center.base-path";
/// Parameter of a config centre's address: namespace and base path in one. Origin: `TreePathDynamicConfiguration`.
const ROOT_PATH: &str = "dubbo.config-center.root-path";
/// Node below the namespace.
const DEFAULT_BASE_PATH: &str = "/config";

/// Texts at `/{namespace}/config/{group}/{key}`.
///
/// Groups and keys are not encoded: a `/` in them is a level. A node without data counts as no text, and so does one
/// that is emptied. What is not UTF-8 is read with replacement characters, as Java does.
#[derive(Debug)]
pub struct TreeConfigCenter {
    tree: Arc<dyn Tree>,
    root: String,
    group: String,
}

impl TreeConfigCenter {
    /// The config centre that `url` is the address of: `namespace` (default `dubbo`), `group` (default `dubbo`).
    pub fn new(url: &Url, tree: Arc<dyn Tree>) -> Self {
        let root = match url.param(ROOT_PATH).filter(|root| !root.trim().is_empty()) {
            Some(root) => node_path::join(&[root]),
            None => root(url.param_or(NAMESPACE, DEFAULT_GROUP), url.param_or(BASE_PATH, DEFAULT_BASE_PATH)),
        };
        Self { tree, root, group: url.param_or(keys::GROUP, DEFAULT_GROUP).to_owned() }
    }

    /// The registry at `url` used as config centre as well: its `group` is both the namespace and the group of
    /// properties. Rules stay in their own groups: `/{group}/config/dubbo/...`.
    pub fn of_registry(url: &Url, tree: Arc<dyn Tree>) -> Self {
        let group = url.param_or(keys::GROUP, DEFAULT_GROUP);
        Self { tree, root: root(group, DEFAULT_BASE_PATH), group: group.to_owned() }
    }

    /// The group that holds properties (`dubbo.properties`); rules have groups of their own.
    pub fn properties_group(&self) -> &str {
        &self.group
    }

    /// The node of a text. An empty group is `dubbo`.
    pub fn path(&self, group: &str, key: &str) -> String {
        let group = if group.trim().is_empty() { DEFAULT_GROUP } else { group };
        node_path::join(&[&self.root, group, key])
    }
}

fn root(namespace: &str, base_path: &str) -> String {
    node_path::join(&[&format!("/{namespace}"), base_path])
}

#[async_trait]
impl ConfigCenter for TreeConfigCenter {
    async fn get(&self, group: &str, key: &str) -> Result<Option<ConfigText>, TreeError> {
        Ok(self.tree.read(&self.path(group, key)).await?.as_ref().and_then(text))
    }

    async fn publish(&self, group: &str, key: &str, text: &str) -> Result<(), TreeError> {
        put(&*self.tree, &self.path(group, key), Bytes::copy_from_slice(text.as_bytes())).await
    }

    async fn publish_if(
        &self,
        group: &str,
        key: &str,
        text: &str,
        expected: Option<i32>,
    ) -> Result<bool, TreeError> {
        let path = self.path(group, key);
        let data = Bytes::copy_from_slice(text.as_bytes());
        if expected.is_some() {
            return self.tree.set(&path, data, expected).await;
        }
        if self.tree.create(&path, data.clone()).await? {
            return Ok(true);
        }
        // There is a node, which is no text yet while it is empty.
        match self.tree.read(&path).await? {
            Some(node) if node.bytes.is_empty() => self.tree.set(&path, data, Some(node.version)).await,
            _ => Ok(false),
        }
    }

    async fn remove(&self, group: &str, key: &str) -> Result<bool, TreeError> {
        let path = self.path(group, key);
        let was_text = self.tree.read(&path).await?.is_some_and(|node| !node.bytes.is_empty());
        Ok(self.tree.delete(&path).await? && was_text)
    }

    fn listen(&self, group: &str, key: &str) -> watch::Receiver<Observation<Option<ConfigText>>> {
        let span = tracing::debug_span!("config", group, key);
        follow(self.tree.data(&self.path(group, key)), Observation::unknown(), Text, span)
    }
}

struct Text;

impl Reading for Text {
    type Value = Option<ConfigText>;

    fn read(&mut self, data: Option<&NodeData>, _: Option<&Self::Value>) -> Self::Value {
        data.and_then(text)
    }
}

fn text(node: &NodeData) -> Option<ConfigText> {
    if node.bytes.is_empty() {
        return None;
    }
    let text = String::from_utf8_lossy(&node.bytes);
    Some(ConfigText { text: Arc::from(&*text), version: node.version })
}
