//! Layer 7, config centre: rules and properties as text under a group and a key.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::watch;

use crate::observation::Observation;
use crate::tree::TreeError;

/// Group of all governance rules (`demo.Foo::.condition-router`). Origin: `DynamicConfiguration.DEFAULT_GROUP`.
pub const DEFAULT_GROUP: &str = "dubbo";
/// Group of migration rules (`<application>.migration`). Origin: `MigrationRuleListener`.
pub const MIGRATION_GROUP: &str = "DUBBO_SERVICEDISCOVERY_MIGRATION";

/// One configuration text and its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigText {
    /// UTF-8 text, never empty: an empty node counts as no configuration.
    pub text: Arc<str>,
    /// What compare-and-set compares.
    pub version: i32,
}

/// A config centre.
///
/// Promises: a listener that comes late gets the current value; parents that appear late or vanish are followed; connection loss
/// never shows as a removed rule.
#[async_trait]
pub trait ConfigCenter: Send + Sync + Debug {
    /// Reads one text; `None` when there is none.
    async fn get(&self, group: &str, key: &str) -> Result<Option<ConfigText>, TreeError>;

    /// Creates or replaces a text.
    async fn publish(&self, group: &str, key: &str, text: &str) -> Result<(), TreeError>;

    /// Replaces a text whose version is `expected` (`None`: that does not exist yet); `false` when somebody else was first.
    async fn publish_if(
        &self,
        group: &str,
        key: &str,
        text: &str,
        expected: Option<i32>,
    ) -> Result<bool, TreeError>;

    /// Removes a text; `false` when there was none.
    async fn remove(&self, group: &str, key: &str) -> Result<bool, TreeError>;

    /// The text now and from now on. Dropping the last receiver of a key ends its watch.
    fn listen(&self, group: &str, key: &str) -> watch::Receiver<Observation<Option<ConfigText>>>;
}
