//! What this application says of itself in application-level discovery, and the service that it answers for it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dubhe_common::{Url, keys};
use dubhe_config::{ApplicationConfig, DubboConfig, ProtocolConfig, ServiceConfig};
use dubhe_core::discovery::{LOCAL, REMOTE, ServiceInstance};
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::metadata::MetadataInfo;
use dubhe_core::protocol::{Exported, Exporter};
use dubhe_core::service::Service;
use dubhe_core::tree::TreeError;
use dubhe_discovery::{METADATA_SERVICE_V1, MetadataService, OwnInstance, OwnMetadata};
use dubhe_proxy::Skeleton;
use parking_lot::Mutex;

use crate::application::Dubhe;
use crate::{labels, provider};

/// Calls of the metadata service that are answered at once. Origin: `ConfigurableMetadataServiceExporter`.
const EXECUTES: u32 = 100;

/// The metadata service of this application, and the instances that name it, one at each registry.
#[derive(Debug)]
pub(crate) struct OwnService {
    application: Arc<str>,
    /// Whether consumers look into the metadata report, and ask no instance (`metadata-type=remote`).
    is_remote: bool,
    /// Of the environment, as it was at the start.
    labels: BTreeMap<String, String>,
    /// What is exported to each registry.
    own: Mutex<Vec<Arc<OwnMetadata>>>,
    /// Where the service is, while it is served.
    url: Mutex<Option<Url>>,
    served: tokio::sync::Mutex<Served>,
}

/// The metadata service while it is served, and for how many exports.
#[derive(Debug, Default)]
struct Served {
    exporter: Option<Box<dyn Exporter>>,
    users: usize,
}

impl OwnService {
    /// With the labels that the environment says.
    ///
    /// Errors: `metadata-type` is none that there is.
    pub(crate) fn new(config: &ApplicationConfig) -> Result<Self, RpcError> {
        Self::labelled(config, labels::from_environment(|name| std::env::var(name).ok()))
    }

    fn labelled(config: &ApplicationConfig, labels: BTreeMap<String, String>) -> Result<Self, RpcError> {
        let is_remote = match config.metadata_type.as_deref() {
            None | Some(LOCAL) => false,
            Some(REMOTE) => true,
            Some(other) => {
                return Err(RpcError::new(
                    ErrorCode::Unknown,
                    format!("`dubbo.application.metadata-type={other}` is neither {LOCAL} nor {REMOTE}"),
                ));
            }
        };
        let application = Arc::from(config.name.as_str());
        Ok(Self {
            application,
            is_remote,
            labels,
            own: Mutex::default(),
            url: Mutex::default(),
            served: tokio::sync::Mutex::default(),
        })
    }

    /// Takes in what is exported to a further registry.
    pub(crate) fn add(&self, own: Arc<OwnMetadata>) {
        self.own.lock().push(own);
    }

    /// Whether metadata is to be published in the report of the registry at `url` (`report-metadata`).
    pub(crate) fn is_reported(&self, url: &Url) -> bool {
        self.is_remote || url.bool_param(REPORT_METADATA, false)
    }

    /// The instance that exports what `own` knows; `None` until it can be asked for its metadata.
    pub(crate) fn describe(
        &self,
        own: &OwnMetadata,
        info: &MetadataInfo,
        has_report: bool,
    ) -> Result<Option<ServiceInstance>, TreeError> {
        if self.is_remote && !has_report {
            return Err(TreeError::Invalid(format!(
                "`dubbo.application.metadata-type={REMOTE}` needs a metadata centre: set `dubbo.metadata-report.address`, or let the \
                 registry be one (`use-as-metadata-center`)"
            )));
        }
        let exported = own.exported();
        let revision = info.revision.as_deref().unwrap_or_default();
        let instance = OwnInstance::new(&self.application, &exported, revision)
            .metadata_service_version(METADATA_SERVICE_V1)
            .labels(self.labels.clone());
        if self.is_remote {
            return Ok(instance.build()?);
        }
        match &*self.url.lock() {
            Some(url) => Ok(instance.metadata_service(url).build()?),
            None => Ok(None),
        }
    }

    /// Serves the metadata service, once, where the service that `url` stands for is served: it must answer before the first
    /// instance is registered. It is served as long as one of the exports is that it was offered for.
    pub(crate) async fn offer(
        &self,
        dubhe: &Dubhe,
        protocol: &ProtocolConfig,
        url: &Url,
        uses: &AtomicBool,
    ) -> Result<(), RpcError> {
        if self.is_remote || uses.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut served = self.served.lock().await;
        if served.exporter.is_none() {
            served.exporter = Some(self.export(dubhe, protocol, url).await?);
        }
        served.users += 1;
        uses.store(true, Ordering::Release);
        Ok(())
    }

    /// An export ended that it was offered for.
    pub(crate) async fn release(&self, uses: &AtomicBool) {
        if !uses.swap(false, Ordering::AcqRel) {
            return;
        }
        let mut served = self.served.lock().await;
        served.users -= 1;
        if served.users == 0
            && let Some(exporter) = served.exporter.take()
        {
            *self.url.lock() = None;
            exporter.unexport().await;
        }
    }

    async fn export(
        &self,
        dubhe: &Dubhe,
        protocol: &ProtocolConfig,
        first: &Url,
    ) -> Result<Box<dyn Exporter>, RpcError> {
        let application = &dubhe.config().application;
        let name = application.metadata_service_protocol.as_deref().unwrap_or(first.protocol());
        let shares_server = name == first.protocol();
        let port = match application.metadata_service_port {
            Some(port) => port,
            None if shares_server => first.port(),
            None => 0,
        };
        let protocol = ProtocolConfig {
            name: Some(name.to_owned()),
            port: Some(port.into()),
            ..if shares_server {
                protocol.clone()
            } else {
                ProtocolConfig { host: protocol.host.clone(), ..Default::default() }
            }
        };
        let service: Arc<dyn Service> =
            Arc::new(MetadataService::new(Arc::clone(&self.application), self.own.lock().clone()));
        let definition = Arc::clone(service.definition());
        let settings = ServiceConfig {
            group: Some(self.application.to_string()),
            version: Some(METADATA_SERVICE_V1.to_owned()),
            executes: Some(EXECUTES),
            ..ServiceConfig::default()
        };
        // What is set for the application's own services (tokens, time limits, filters) is not meant for this one.
        let config = DubboConfig { provider: ServiceConfig::default(), ..dubhe.config().clone() };
        let implementation = dubhe.protocols().get(name).map_err(|unknown| cannot(&unknown))?;
        let url = provider::url(
            &config,
            &protocol,
            &settings,
            &definition,
            first.host(),
            implementation.default_port(),
        )
        .with_param(keys::CONNECTIONS, 1);
        let invoker = Arc::new(Skeleton::new(url.clone(), service));
        let exporter = implementation
            .export(Exported { url, definition, invoker })
            .await
            .map_err(|error| cannot(&error))?;
        *self.url.lock() = Some(exporter.url().clone());
        Ok(exporter)
    }
}

const REPORT_METADATA: &str = "report-metadata";

fn cannot(error: &dyn std::fmt::Display) -> RpcError {
    RpcError::new(
        ErrorCode::Unknown,
        format!(
            "the metadata service cannot be served: {error}: set `dubbo.application.metadata-service-port`, or \
             `dubbo.application.metadata-type=remote`"
        ),
    )
}

#[cfg(test)]
mod tests {
    use dubhe_core::discovery::REVISION;

    use super::*;

    #[test]
    fn labels_are_metadata_of_the_instance_and_what_dubbo_says_prevails() {
        let config = ApplicationConfig {
            name: "shop".to_owned(),
            metadata_type: Some(REMOTE.to_owned()),
            ..ApplicationConfig::default()
        };
        let labels = [("region", "hangzhou"), (REVISION, "mine")];
        let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let service = OwnService::labelled(&config, BTreeMap::from(labels)).unwrap();
        let own = OwnMetadata::new("shop");
        own.add(&Url::parse("dubbo://192.0.2.1:20880/demo.Foo?interface=demo.Foo").unwrap());
        let info = MetadataInfo { revision: Some("r1".to_owned()), ..MetadataInfo::default() };
        let instance = service.describe(&own, &info, true).unwrap().unwrap();
        assert_eq!(instance.metadata.get("region").map(|value| &**value), Some("hangzhou"));
        assert_eq!(instance.metadata.get(REVISION).map(|value| &**value), Some("r1"));
    }
}
