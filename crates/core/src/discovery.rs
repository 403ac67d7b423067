//! Layer 7, service discovery: application-level registration, Dubbo 3's model.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::watch;

use crate::observation::Observation;
use crate::tree::TreeError;

/// Instance metadata key: the revision of the instance's services.
pub const REVISION: &str = "dubbo.metadata.revision";
/// Instance metadata key: `local` or `remote`.
pub const STORAGE_TYPE: &str = "dubbo.metadata.storage-type";
/// Instance metadata key: JSON array of `{"port":20880,"protocol":"dubbo"}`.
pub const ENDPOINTS: &str = "dubbo.endpoints";
/// Instance metadata key: JSON object of the metadata service's URL parameters.
pub const METADATA_SERVICE_PARAMS: &str = "dubbo.metadata-service.url-params";

/// One instance of an application: a host and port, and flat text metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceInstance {
    /// Application name.
    pub application: Arc<str>,
    /// Host, without brackets for IPv6.
    pub host: Arc<str>,
    /// Port, never 0.
    pub port: u16,
    /// Whether calls may go to it; `false` when the registry marks it as down.
    pub enabled: bool,
    /// Metadata, e.g. [`REVISION`], [`ENDPOINTS`].
    pub metadata: BTreeMap<String, String>,
}

/// Instances of one application, in the registry's order.
pub type Instances = Arc<[Arc<ServiceInstance>]>;

/// Application-level registration and discovery (`/services/<application>/<host>:<port>`).
///
/// Promises are those of [`crate::registry::Registry`]: registrations last, trouble never empties a list.
#[async_trait]
pub trait ServiceDiscovery: Send + Sync + Debug {
    /// Registers an instance; the same application, host and port again replaces its metadata in place.
    async fn register(&self, instance: &ServiceInstance) -> Result<(), TreeError>;

    /// Takes an instance's registration back.
    async fn unregister(&self, instance: &ServiceInstance) -> Result<(), TreeError>;

    /// The instances of an application, list and data, now and from now on. Dropping the last receiver ends the watch.
    fn instances(&self, application: &str) -> watch::Receiver<Observation<Instances>>;
}
