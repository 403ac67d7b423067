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
/// Instance metadata key: JSON array of whole metadata service URLs, as Spring Cloud applications write it.
pub const METADATA_SERVICE_URLS: &str = "dubbo.metadata-service.urls";
/// Instance metadata key, from 3.3: highest version of the metadata service, `1.0.0` or `2.0.0`.
pub const METADATA_SERVICE_VERSION: &str = "meta-v";
/// [`STORAGE_TYPE`] of instances that answer for their metadata themselves.
pub const LOCAL: &str = "local";
/// [`STORAGE_TYPE`] of instances whose metadata is in the metadata report.
pub const REMOTE: &str = "remote";
/// The [`REVISION`] of an instance without services.
pub const NO_SERVICES: &str = "0";

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
    /// When it was registered, milliseconds since 1970; 0 when unknown. Another time at the same address is another
    /// process, or one that has changed. The discovery that registers an instance sets it itself.
    pub registered_at: u64,
    /// Metadata, e.g. [`REVISION`], [`ENDPOINTS`].
    pub metadata: BTreeMap<String, String>,
}

impl ServiceInstance {
    /// An enabled instance without metadata.
    pub fn new(application: impl Into<Arc<str>>, host: impl Into<Arc<str>>, port: u16) -> Self {
        Self {
            application: application.into(),
            host: host.into(),
            port,
            enabled: true,
            registered_at: 0,
            metadata: BTreeMap::new(),
        }
    }

    /// The same with one more entry in its metadata.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<String>) -> Self {
        self.metadata.insert(key.to_owned(), value.into());
        self
    }

    /// The revision of its services; `None` when it says none or has no services.
    pub fn revision(&self) -> Option<&str> {
        let revision = self.metadata.get(REVISION)?.trim();
        (!revision.is_empty() && revision != NO_SERVICES).then_some(revision)
    }

    /// Whether its metadata is in the metadata report, and not with the instance itself.
    pub fn is_stored_remotely(&self) -> bool {
        self.metadata.get(STORAGE_TYPE).is_some_and(|kind| kind == REMOTE)
    }

    /// `host:port`, also for messages.
    pub fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

/// Instances of one application, in the registry's order.
pub type Instances = Arc<[Arc<ServiceInstance>]>;

/// Application-level registration and discovery (`/services/<application>/<host>:<port>`).
///
/// Promises are those of [`crate::registry::Registry`]: registrations last, trouble never empties a list.
#[async_trait]
pub trait ServiceDiscovery: Send + Sync + Debug {
    /// Registers an instance; the same application, host and port again replaces its metadata in place.
    ///
    /// After an error the registration stays wanted and is tried again until [`ServiceDiscovery::unregister`], except
    /// for [`TreeError::Invalid`].
    async fn register(&self, instance: &ServiceInstance) -> Result<(), TreeError>;

    /// Takes an instance's registration back.
    async fn unregister(&self, instance: &ServiceInstance) -> Result<(), TreeError>;

    /// The instances of an application, list and data, now and from now on. Dropping the last receiver ends the watch.
    fn instances(&self, application: &str) -> watch::Receiver<Observation<Instances>>;
}
