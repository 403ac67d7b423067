//! The export flow: from a service object to a registered provider.
//!
//! ```text
//! Export::export
//!   provider URL            application, protocol, defaults, service settings
//!   skeleton                service object, inside the provider filters
//!   protocol export         the server listens (shared by the services of one address)
//!   metadata service        once per application, before anything is registered by application
//!   registered URL          without what concerns only this machine, or short
//!   register                in each registry that the service names, by its register mode:
//!     by application        metadata, then the mapping and the instance: announced together, shortly after the last service
//!     by interface          the URL
//!   definition              for people, in the background
//!   report                  for status reporters, when there are any
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dubhe_common::{Url, keys};
use dubhe_config::{ProtocolConfig, ServiceConfig};
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::filter::{self, FilterSide};
use dubhe_core::invoker::SharedInvoker;
use dubhe_core::protocol::{Exported, Exporter};
use dubhe_core::registry::Registry;
use dubhe_core::service::Service;
use dubhe_core::status_report::StatusReport;
use dubhe_discovery::provider_definition;
use dubhe_migration::tell;
use dubhe_proxy::{ServiceInterface, Skeleton};
use dubhe_registry::registered_url::{Dialect, Form, registered_provider_url};
use tokio::runtime::Handle;
use tokio::sync::{Mutex, oneshot};
use tracing::Instrument;

use crate::application::Dubhe;
use crate::own_instance::OwnService;
use crate::provider;

/// `codeSource` of the definitions: where Java writes the path of a class's file.
const CODE_SOURCE: &str = "dubhe";

/// A service being set up for export.
///
/// Settings made here beat those of the configuration. [`Export::export`] offers it.
#[must_use = "a service is not offered until `export`"]
pub struct Export<'a> {
    dubhe: &'a Dubhe,
    service: Arc<dyn Service>,
    settings: ServiceConfig,
}

impl<'a> Export<'a> {
    pub(crate) fn new<S: Service + ServiceInterface>(dubhe: &'a Dubhe, service: S) -> Self {
        let mut export = Self::untyped(dubhe, Arc::new(service));
        let declared = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        export.settings.group = export.settings.group.or_else(|| declared(S::GROUP));
        export.settings.version = export.settings.version.or_else(|| declared(S::VERSION));
        export
    }

    pub(crate) fn untyped(dubhe: &'a Dubhe, service: Arc<dyn Service>) -> Self {
        let settings = dubhe.configured_service(service.definition().interface());
        Self { dubhe, service, settings }
    }

    /// Group of the service.
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.settings.group = Some(group.into());
        self
    }

    /// Version of the service.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.settings.version = Some(version.into());
        self
    }

    /// Share of calls relative to other providers. Default 100.
    pub fn weight(mut self, weight: u32) -> Self {
        self.settings.weight = Some(weight);
        self
    }

    /// Whether it is registered. Default true.
    pub fn register(mut self, register: bool) -> Self {
        self.settings.register = Some(register);
        self
    }

    /// Any other URL parameter, by its name in Dubbo.
    pub fn param(mut self, key: impl Into<String>, value: impl ToString) -> Self {
        self.settings.parameters.insert(key.into(), value.to_string());
        self
    }

    /// Serves and registers the service, by each protocol that it names. Returns when it can be called: with a `delay`, after that.
    ///
    /// By application, the services of one application are announced together: consumers see a further service about 100 ms later, or
    /// when [`Dubhe::announce`] returns.
    ///
    /// Errors: a setting cannot be used, the address cannot be listened on, or the registry cannot be reached and its `check` is on.
    /// After an error, or when this future is dropped before its end, nothing is left of the export.
    pub async fn export(self) -> Result<ExportedService, RpcError> {
        if let Some(delay) = self.settings.delay.and_then(|delay| u64::try_from(delay).ok()) {
            tokio::time::sleep(Duration::from_millis(delay)).await;
        }
        let work = Work { dubhe: self.dubhe.clone(), service: self.service, settings: self.settings };
        let (done, exported) = oneshot::channel();
        // A task of its own: when this future is dropped, what was done so far is taken back.
        let task = async move {
            let exported = work.export().await;
            let _ = done.send(exported.map(|exported| Unclaimed(Some(exported))));
        };
        let task = tokio::spawn(task.in_current_span());
        match exported.await {
            Ok(exported) => exported.map(Unclaimed::claim),
            Err(_) => match task.await {
                Err(panic) if panic.is_panic() => std::panic::resume_unwind(panic.into_panic()),
                _ => Err(RpcError::new(ErrorCode::Unknown, "the runtime is shutting down")),
            },
        }
    }
}

/// An export under way.
struct Work {
    dubhe: Dubhe,
    service: Arc<dyn Service>,
    settings: ServiceConfig,
}

impl Work {
    async fn export(&self) -> Result<ExportedService, RpcError> {
        let mut exports = Vec::new();
        for protocol in self.dubhe.protocol_configs(self.settings.protocol.as_deref())? {
            match self.export_by(&protocol).await {
                Ok(one) => exports.push(one),
                Err(error) => {
                    for one in &exports {
                        one.unexport().await;
                    }
                    return Err(error);
                }
            }
        }
        let exported = ExportedService(Arc::new(exports));
        if !self.dubhe.keep_export(exported.clone()) {
            exported.unexport().await;
            return Err(self.shutting_down());
        }
        self.report_registration().await;
        Ok(exported)
    }

    async fn export_by(&self, protocol: &ProtocolConfig) -> Result<OneExport, RpcError> {
        let (one, protocol) = self.serve(protocol).await?;
        if let Err(error) = self.register(&protocol, &one).await {
            one.unexport().await;
            return Err(error);
        }
        Ok(one)
    }

    /// Lets the protocol serve it. Gives the protocol's settings back with the port on which it is.
    async fn serve(&self, protocol: &ProtocolConfig) -> Result<(OneExport, ProtocolConfig), RpcError> {
        let dubhe = &self.dubhe;
        let name = protocol.name.as_deref().unwrap_or(keys::protocol::DUBBO);
        let implementation = dubhe.protocols().get(name).map_err(|unknown| self.invalid(&unknown))?;
        let definition = Arc::clone(self.service.definition());
        // All interfaces are something to listen on, and no address to be found by.
        let host =
            protocol.host.as_deref().filter(|host| !provider::is_any(host)).unwrap_or_else(|| dubhe.host());
        if let Some(port) = protocol.port.filter(|port| *port > i32::from(u16::MAX)) {
            return Err(self.invalid(&format!("the port {port} of protocol {name} is above {}", u16::MAX)));
        }
        // Until the port is known: others with the same settings are to share it.
        let _finding = dubhe.ports().find(protocol).await;
        let protocol = dubhe.ports().with_found(protocol);
        let url = provider::url(
            dubhe.config(),
            &protocol,
            &self.settings,
            &definition,
            host,
            implementation.default_port(),
        );
        let skeleton: SharedInvoker = Arc::new(Skeleton::new(url.clone(), Arc::clone(&self.service)));
        let invoker = filter::chain(&dubhe.extensions().filters(FilterSide::Provider), skeleton);
        let exporter = implementation.export(Exported { url, definition, invoker }).await?;
        dubhe.ports().note(&protocol, exporter.url().port());
        Ok((OneExport::new(dubhe, exporter), protocol))
    }

    async fn register(&self, protocol: &ProtocolConfig, one: &OneExport) -> Result<(), RpcError> {
        if !self.settings.register.unwrap_or(true) {
            return Ok(());
        }
        let registries = self.dubhe.registries().chosen(self.settings.registry.as_deref(), keys::REGISTER)?;
        if registries.is_empty() {
            let service = one.exporter.url().service_key();
            tracing::warn!(rpc.service = %service, "service is registered nowhere: set dubbo.registry.address for consumers to find it");
        }
        for registry in registries {
            let served = one.exporter.url();
            let mut url = served.with_param(keys::BIND_PORT, served.port());
            if registry.registers_applications() {
                one.own_service.offer(&self.dubhe, protocol, &url, &one.uses_own_service).await?;
                url = url.with_param(keys::SERVICE_NAME_MAPPING, true);
            }
            let form = Form::of_registry(&registry.url, Dialect::default());
            let registered = registered_provider_url(&url, &form);
            for place in registry.registers() {
                if self.dubhe.is_ending() {
                    return Err(self.shutting_down());
                }
                place
                    .register(&registered)
                    .await
                    .map_err(|error| RpcError::new(ErrorCode::Registry, error.to_string()))?;
                one.registered.lock().await.push((place, registered.clone()));
            }
            if let Some(applications) = &registry.applications {
                let definition = provider_definition(self.service.definition(), &url, CODE_SOURCE);
                applications.publish_definition(&url, definition);
            }
        }
        Ok(())
    }

    /// Says of each registry in which form the service is there.
    async fn report_registration(&self) {
        let reporters = &self.dubhe.extensions().status_reporters;
        if reporters.is_empty() || !self.settings.register.unwrap_or(true) {
            return;
        }
        let reporters = reporters.clone().into();
        // The same as before: what cannot be chosen was refused then.
        let registries = self.dubhe.registries().chosen(self.settings.registry.as_deref(), keys::REGISTER);
        for registry in registries.unwrap_or_default() {
            let application = self.dubhe.config().application.name.clone();
            let status = registry.register_mode().to_owned();
            tell(&reporters, StatusReport::Registration { application, status }).await;
        }
    }

    fn shutting_down(&self) -> RpcError {
        self.invalid(&"the application is shutting down")
    }

    fn invalid(&self, error: &dyn std::fmt::Display) -> RpcError {
        let interface = self.service.definition().interface();
        RpcError::new(ErrorCode::Unknown, format!("the service {interface} cannot be exported: {error}"))
    }
}

impl std::fmt::Debug for Export<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Export")
            .field("interface", self.service.definition().interface())
            .finish_non_exhaustive()
    }
}

/// A service being offered. Cheap to clone; the application ends it at shutdown.
#[derive(Clone, Debug)]
pub struct ExportedService(Arc<Vec<OneExport>>);

/// A service by one protocol.
#[derive(Debug)]
struct OneExport {
    exporter: Box<dyn Exporter>,
    registered: Mutex<Vec<(Arc<dyn Registry>, Url)>>,
    own_service: Arc<OwnService>,
    /// Whether it is one of those for whose sake the metadata service is served.
    uses_own_service: AtomicBool,
    ended: AtomicBool,
}

impl ExportedService {
    /// The provider URLs as served, one per protocol: ports are the real ones.
    pub fn urls(&self) -> Vec<Url> {
        self.0.iter().map(|one| one.exporter.url().clone()).collect()
    }

    /// Takes the service out of the registries; it still serves the calls that come.
    pub async fn unregister(&self) {
        for one in self.0.iter() {
            one.unregister().await;
        }
    }

    /// Takes the service out of the registries, and serves it no more: calls of it are refused from now on.
    pub async fn unexport(&self) {
        for one in self.0.iter() {
            one.unexport().await;
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.0.iter().all(|one| one.ended.load(Ordering::Acquire))
    }
}

impl OneExport {
    fn new(dubhe: &Dubhe, exporter: Box<dyn Exporter>) -> Self {
        Self {
            exporter,
            registered: Mutex::default(),
            own_service: Arc::clone(dubhe.own_service()),
            uses_own_service: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        }
    }

    /// May be given up and begun again: what is registered is forgotten when it is taken back, not before.
    async fn unregister(&self) {
        let mut registered = self.registered.lock().await;
        while let Some((registry, url)) = registered.last().cloned() {
            if let Err(error) = registry.unregister(&url).await {
                tracing::warn!(%error, "provider is not unregistered yet");
            }
            registered.pop();
        }
    }

    async fn unexport(&self) {
        self.unregister().await;
        self.exporter.unexport().await;
        self.own_service.release(&self.uses_own_service).await;
        self.ended.store(true, Ordering::Release);
    }
}

/// An export that nobody has taken yet: then it ends by itself.
struct Unclaimed(Option<ExportedService>);

impl Unclaimed {
    fn claim(mut self) -> ExportedService {
        self.0.take().expect("it is taken once, here")
    }
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        if let (Some(unwanted), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(async move { unwanted.unexport().await });
        }
    }
}
