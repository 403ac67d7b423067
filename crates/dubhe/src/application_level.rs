//! One registry address in the application-level model: what it is made of.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use dubhe_common::{Url, keys};
use dubhe_core::discovery::{ServiceDiscovery, ServiceInstance};
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::extension::Extensions;
use dubhe_core::mapping::{Applications, ServiceNameMapping};
use dubhe_core::metadata::{DefinitionId, MetadataClient, MetadataInfo, MetadataReport};
use dubhe_core::observation::{Observation, Stamp};
use dubhe_core::protocol::Protocol;
use dubhe_core::registry::Registry;
use dubhe_core::tree::TreeError;
use dubhe_discovery::{
    Announcer, CacheFile, InstanceListeners, MappingCache, MetadataCache, MetadataSource, NoMapping,
    OwnMetadata, ServiceDiscoveryRegistry, ServiceDiscoveryRegistryParts, TreeMetadataReport,
    TreeServiceDiscovery, TreeServiceNameMapping, ask_metadata_service, metadata_service_url,
    offers_metadata_service_v2,
};
use dubhe_metadata_triple::{TripleMetadataClient, Version};
use dubhe_registry::{MEMORY, TreeLease};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use crate::own_instance::OwnService;

/// Pause before a definition that could not be published is tried again. Origin: `retry-period` of the metadata report.
const DEFINITION_RETRY: Duration = Duration::from_secs(3);
/// How often it is tried. Origin: `retry-times` of the metadata report.
const DEFINITION_TRIES: usize = 100;

/// The address of a metadata report, and a share of the session with it.
#[derive(Clone, Debug)]
pub(crate) struct Center {
    pub(crate) url: Url,
    pub(crate) lease: TreeLease,
}

/// Instances, mapping and metadata behind one registry address, and what this application says of itself there.
#[derive(Debug)]
pub(crate) struct ApplicationLevel {
    application: Arc<str>,
    registry: Arc<dyn Registry>,
    mapping: Arc<dyn ServiceNameMapping>,
    own: Arc<OwnMetadata>,
    announcer: Arc<Announcer>,
    report: Option<Arc<dyn MetadataReport>>,
    caches: Caches,
    /// Definitions on their way; `None` once closed.
    publishing: Mutex<Option<JoinSet<()>>>,
    leases: Mutex<Vec<TreeLease>>,
}

#[derive(Debug)]
struct Caches {
    metadata: Arc<MetadataCache>,
    mapping: Arc<MappingCache>,
    /// The task that saves both.
    saving: AbortHandle,
}

impl ApplicationLevel {
    /// The application level of the registry at `url`. `report`: its metadata centre, which the mapping is in as well. `rules`: the
    /// same registry in the other model, whose rules hold here too.
    pub(crate) async fn open(
        url: &Url,
        application: &str,
        lease: TreeLease,
        report: Option<Center>,
        rules: Option<Arc<dyn Registry>>,
        client: Arc<dyn MetadataClient>,
        own_service: &Arc<OwnService>,
    ) -> Self {
        let application: Arc<str> = Arc::from(application);
        let tree = lease.tree();
        let caches = Caches::open(url, &application).await;
        let discovery: Arc<dyn ServiceDiscovery> = Arc::new(TreeServiceDiscovery::new(url, Arc::clone(tree)));
        let mapping: Arc<dyn ServiceNameMapping> = match &report {
            Some(Center { url, lease }) => {
                let mapping = TreeServiceNameMapping::new(url, Arc::clone(lease.tree()));
                Arc::new(mapping.with_cache(Arc::clone(&caches.mapping)))
            }
            None => Arc::new(NoMapping::default()),
        };
        let mut leases = vec![lease.clone()];
        let report = report.map(|Center { url, lease }| {
            let report = TreeMetadataReport::new(&url, Arc::clone(lease.tree()));
            leases.push(lease);
            Arc::new(report) as Arc<dyn MetadataReport>
        });
        let source = MetadataSource::new(report.clone(), client, Arc::clone(&caches.metadata));
        let listeners = Arc::new(InstanceListeners::new(Arc::clone(&discovery), Arc::new(source)));

        let own = Arc::new(OwnMetadata::new(Arc::clone(&application)));
        own_service.add(Arc::clone(&own));
        let announcer = {
            let (own_service, exported) = (Arc::clone(own_service), Arc::clone(&own));
            let reported = report.clone().filter(|_| own_service.is_reported(url));
            let has_report = report.is_some();
            let describe = move |info: &MetadataInfo| own_service.describe(&exported, info, has_report);
            Arc::new(Announcer::new(Arc::clone(&own), discovery, reported, describe))
        };
        let registry = Arc::new(ServiceDiscoveryRegistry::new(ServiceDiscoveryRegistryParts {
            url: url.clone(),
            session: tree.session(),
            mapping: Arc::clone(&mapping),
            listeners,
            rules,
            own: Some((Arc::clone(&own), Arc::clone(&announcer))),
        }));
        Self {
            application,
            registry,
            mapping,
            own,
            announcer,
            report,
            caches,
            publishing: Mutex::new(Some(JoinSet::new())),
            leases: Mutex::new(leases),
        }
    }

    /// All of it behind the contract of a registry.
    pub(crate) fn registry(&self) -> &Arc<dyn Registry> {
        &self.registry
    }

    /// The applications that provide what `consumer` asks for: those that it names (`provided-by`), else those of the mapping.
    pub(crate) fn providing(&self, consumer: &Url) -> watch::Receiver<Observation<Applications>> {
        let named: BTreeSet<Arc<str>> =
            consumer.list_param(keys::PROVIDED_BY).into_iter().map(Arc::from).collect();
        if named.is_empty() {
            return self.mapping.applications(consumer.service_interface());
        }
        let known = Observation { known: Some(Arc::new(named)), stamp: Stamp::default(), trouble: None };
        watch::channel(known).1
    }

    /// Returns when what is exported is registered, and mapped to this application.
    pub(crate) async fn announce(&self) -> Result<(), RpcError> {
        let failed = |error: TreeError| RpcError::new(ErrorCode::Registry, error.to_string());
        self.announcer.announce().await.map_err(failed)?;
        // The registry maps in the background; what is mapped already costs one read.
        let exported = self.own.exported();
        let interfaces: BTreeSet<&str> = exported.iter().map(Url::service_interface).collect();
        let mapped = interfaces.into_iter().map(|one| self.mapping.map(one, &self.application));
        futures::future::try_join_all(mapped).await.map(|_| ()).map_err(failed)
    }

    /// Takes the instance back, for good.
    pub(crate) async fn withdraw(&self) {
        if let Err(error) = self.announcer.withdraw().await {
            tracing::warn!(registry.addr = %self.registry.url().address(), %error, "the instance could not be taken back yet");
        }
    }

    /// Publishes the definition of what `url` provides or consumes, in the background: people and consoles read it, no call needs it.
    pub(crate) fn publish_definition(&self, url: &Url, json: String) {
        let Some(report) = self.report.clone().filter(|_| url.bool_param(REPORT_DEFINITION, true)) else {
            return;
        };
        let (url, application) = (url.clone(), Arc::clone(&self.application));
        let publish = async move {
            let id = DefinitionId {
                interface: url.service_interface(),
                version: url.version(),
                group: url.group(),
                side: url.param_or(keys::SIDE, keys::side::PROVIDER),
                application: &application,
            };
            for _ in 0..DEFINITION_TRIES {
                match report.publish_definition(&id, &json).await {
                    Ok(()) => return,
                    Err(error) => {
                        tracing::debug!(rpc.service = id.interface, %error, "the definition cannot be published yet");
                        tokio::time::sleep(DEFINITION_RETRY).await;
                    }
                }
            }
        };
        if let Some(publishing) = &mut *self.publishing.lock() {
            while publishing.try_join_next().is_some() {}
            publishing.spawn(publish);
        }
    }

    /// Takes the instance back, ends all subscriptions and gives the session back.
    pub(crate) async fn close(&self) {
        drop(self.publishing.lock().take());
        self.registry.close().await;
        self.caches.save().await;
        let leases = std::mem::take(&mut *self.leases.lock());
        for lease in leases {
            lease.release().await;
        }
    }
}

const REPORT_DEFINITION: &str = "report-definition";

impl Caches {
    /// With files, unless the registry's `file.cache` is false or it is in this process.
    async fn open(registry: &Url, application: &str) -> Self {
        let files = async {
            if registry.protocol() == MEMORY || !registry.bool_param(keys::FILE_CACHE, true) {
                return (None, None);
            }
            let metadata = MetadataCache::file_name(None, application, registry);
            // Dubbo has one for all registries, whose mappings are not the same.
            let mapping = format!(
                "{}.{}",
                MappingCache::file_name(application),
                registry.backup_addresses(0).join(",")
            );
            let open = move || (CacheFile::open(None, &metadata), CacheFile::open(None, &mapping));
            tokio::task::spawn_blocking(open).await.unwrap_or_default()
        };
        let (metadata_file, mapping_file) = files.await;
        let metadata = match metadata_file {
            None => MetadataCache::in_memory(),
            Some(file) => MetadataCache::with_file(file).await,
        };
        let mapping = match mapping_file {
            None => MappingCache::in_memory(),
            Some(file) => MappingCache::with_file(file).await,
        };
        let (metadata, mapping) = (Arc::new(metadata), Arc::new(mapping));
        let both = (Arc::clone(&metadata), Arc::clone(&mapping));
        let saving = async move {
            tokio::join!(both.0.save_regularly(), both.1.save_regularly());
        };
        let saving = tokio::spawn(saving).abort_handle();
        Self { metadata, mapping, saving }
    }

    async fn save(&self) {
        self.saving.abort();
        self.metadata.save().await;
        self.mapping.save().await;
    }
}

impl Drop for Caches {
    fn drop(&mut self) {
        self.saving.abort();
    }
}

/// Asks instances for their metadata, over a connection that ends with the answer unless others use it too.
#[derive(Debug)]
pub(crate) struct InstanceClient {
    pub(crate) protocols: Arc<Extensions<dyn Protocol>>,
    /// The port of metadata services that do not say theirs (`metadata-service-port` of the consumer).
    pub(crate) port: Option<u16>,
    /// For metadata services that say they are there over Triple.
    pub(crate) triple: TripleMetadataClient,
}

/// The protocol that goes to [`InstanceClient::triple`].
const TRIPLE: &str = "tri";

#[async_trait::async_trait]
impl MetadataClient for InstanceClient {
    async fn fetch(
        &self,
        instance: &Arc<ServiceInstance>,
        revision: &str,
    ) -> Result<Option<MetadataInfo>, RpcError> {
        let url = metadata_service_url(instance, self.port);
        if url.protocol() == TRIPLE {
            let offers_v2 = offers_metadata_service_v2(instance);
            let version = if offers_v2 { Version::TwoElseOne } else { Version::One };
            return self.triple.fetch(&url, version, revision).await;
        }
        let protocol = self.protocols.get(url.protocol()).map_err(|unknown| {
            RpcError::new(
                ErrorCode::Unknown,
                format!("the metadata service of {} speaks another protocol: {unknown}", instance.address()),
            )
        })?;
        let invoker = protocol.refer(&url)?;
        ask_metadata_service(&invoker, revision).await
    }
}

#[cfg(test)]
mod tests {
    use dubhe_core::discovery::{METADATA_SERVICE_PARAMS, METADATA_SERVICE_VERSION};
    use dubhe_serialize_hessian2::Hessian2;

    use super::*;

    // C15
    #[tokio::test]
    async fn a_metadata_service_is_asked_over_the_protocol_that_its_instance_names() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let client = InstanceClient {
            protocols: Arc::new(Extensions::new("protocol")),
            port: None,
            triple: TripleMetadataClient::new("consumer", Arc::new(Hessian2::default())),
        };
        for (protocol, says) in
            [("tri", "cannot be reached over Triple"), ("dubbo", "speaks another protocol")]
        {
            let params = format!(r#"{{"protocol":"{protocol}","port":"{free}"}}"#);
            let instance = ServiceInstance::new("provider", "127.0.0.1", 20880)
                .with(METADATA_SERVICE_VERSION, "2.0.0")
                .with(METADATA_SERVICE_PARAMS, params);
            let error = client.fetch(&Arc::new(instance), "r1").await.unwrap_err();
            assert!(error.message().contains(says), "{protocol}: {error}");
        }
    }
}
