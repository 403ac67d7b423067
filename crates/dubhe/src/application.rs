use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dubhe_common::{Url, defaults};
use dubhe_config::DubboConfig;
use dubhe_core::config_center::ConfigCenter;
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::extension;
use dubhe_core::load_balance::LoadBalance;
use dubhe_core::metadata::MetadataClient;
use dubhe_core::protocol::Protocol;
use dubhe_core::registry::Registry;
use dubhe_core::router::RouterChain;
use dubhe_core::service::Service;
use dubhe_metadata_triple::TripleMetadataClient;
use dubhe_migration::{Properties, RuleInForce};
use dubhe_proxy::{ServiceInterface, TypedClient};
use dubhe_registry::MemoryStore;
use dubhe_router::{Chain, ConditionRouter};
use dubhe_serialize_hessian2::Hessian2;
use futures::future::join_all;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::application_level::InstanceClient;
use crate::builder::DubheBuilder;
use crate::export::{Export, ExportedService};
use crate::extensions::Extensions;
use crate::in_flight::InFlight;
use crate::migration_rules::MigrationRules;
use crate::open_references::OpenReferences;
use crate::open_registries::Opening;
use crate::own_instance::OwnService;
use crate::ports::Ports;
use crate::reference::{GenericReference, Reference};
use crate::registries::Registries;
use crate::signals::stop_signal;
use crate::{address, consumer};

/// How long the end of references may take when there is no grace left. Origin: ours.
const LAST_WAIT: Duration = Duration::from_millis(200);

/// One application of the fleet: its registries, its references, its exported services. Cheap to clone.
///
/// Dropping it ends nothing gracefully: call [`Dubhe::shutdown`], or let [`Dubhe::run_until_signal`] do it.
#[derive(Clone, Debug)]
pub struct Dubhe(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    config: DubboConfig,
    host: String,
    extensions: Extensions,
    balancers: Arc<extension::Extensions<dyn LoadBalance>>,
    protocols: Arc<extension::Extensions<dyn Protocol>>,
    registries: Registries,
    /// What this application says of itself by application.
    own_service: Arc<OwnService>,
    migration_rules: MigrationRules,
    properties: Properties,
    in_flight: Arc<InFlight>,
    references: Arc<OpenReferences>,
    exports: Mutex<Exports>,
    /// The latest `timestamp` of a consumer URL: no two are the same, as they name nodes in the registry.
    timestamp: AtomicU64,
    ports: Ports,
    shut_down: tokio::sync::Mutex<bool>,
}

/// What the application offers, and whether it still may.
#[derive(Debug, Default)]
struct Exports {
    ended: bool,
    services: Vec<ExportedService>,
}

impl Dubhe {
    /// Sets an application of this name up.
    pub fn builder(name: impl Into<String>) -> DubheBuilder {
        let mut config = DubboConfig::default();
        config.application.name = name.into();
        Self::configured(config)
    }

    /// Sets an application up from a configuration that was read or built before.
    pub fn configured(config: DubboConfig) -> DubheBuilder {
        DubheBuilder::new(config, MemoryStore::new())
    }

    /// Sets an application up from a YAML file in Dubbo's own key names, with `DUBBO_*` environment variables over it.
    pub fn from_yaml_file(path: impl AsRef<Path>) -> Result<DubheBuilder, RpcError> {
        let config = DubboConfig::from_file(path.as_ref())
            .and_then(|config| config.with_environment(std::env::vars()))
            .map_err(|error| RpcError::new(ErrorCode::Unknown, error.to_string()))?;
        Ok(Self::configured(config))
    }

    /// The client of a service, with the settings of its trait and of the configuration. The same as `reference().get()`.
    pub async fn refer<C: TypedClient>(&self) -> Result<C, RpcError> {
        self.reference::<C>().get().await
    }

    /// A typed reference to be set up further.
    pub fn reference<C: TypedClient>(&self) -> Reference<'_, C> {
        Reference::new(self)
    }

    /// A reference to `interface` for calls by name.
    pub fn generic(&self, interface: &str) -> GenericReference<'_> {
        GenericReference::new(self, interface)
    }

    /// Offers a service, with the settings of its trait and of the configuration. The same as `service(..).export()`.
    pub async fn export<S: Service + ServiceInterface>(
        &self,
        service: S,
    ) -> Result<ExportedService, RpcError> {
        self.service(service).export().await
    }

    /// A service to be set up further and exported.
    pub fn service<S: Service + ServiceInterface>(&self, service: S) -> Export<'_> {
        Export::new(self, service)
    }

    /// A service that was written by hand, to be set up further and exported.
    pub fn untyped_service(&self, service: Arc<dyn Service>) -> Export<'_> {
        Export::untyped(self, service)
    }

    /// Runs until the process is told to stop (SIGTERM or SIGINT), then shuts down.
    ///
    /// Signals are listened for from here on: one that comes before ends the process as the operating system does, and what was
    /// registered goes with its session. [`DubheBuilder::run`] listens from the start.
    pub async fn run_until_signal(&self) {
        stop_signal().await;
        tracing::info!("signal received, shutting down");
        self.shutdown().await;
    }

    /// Ends gracefully; idempotent, and safe at any time after start. In this order:
    ///
    /// 1. no further service is exported, and those that are leave the registries, in both models;
    /// 2. connected consumers are told that no more calls are wanted, and calls being served finish: until then they may make calls
    ///    themselves;
    /// 3. new calls of the application's own references are refused, and those under way finish;
    /// 4. consumers are unregistered, subscriptions end, servers and connections close: calls that are still under way fail;
    /// 5. the registries' sessions end, so that nothing of the application is left there.
    ///
    /// Steps 1 to 3 together take at most `shutwait` (10 s), also when a registry does not answer; the farewell to one that hangs comes on
    /// top, some seconds (5 s for a ZooKeeper session).
    pub async fn shutdown(&self) {
        let inner = &*self.0;
        let mut done = inner.shut_down.lock().await;
        if *done {
            return;
        }
        let exports = {
            let mut exports = inner.exports.lock();
            exports.ended = true;
            std::mem::take(&mut exports.services)
        };
        let end = Instant::now() + self.shutdown_wait();
        let grace = || end.saturating_duration_since(Instant::now());
        // The instance first: it stands for all services at once, and is not to be announced anew while they leave. All at once: with
        // a thousand services one after the other would take as many round trips.
        let withdraw = inner.registries.application_levels().map(|one| one.withdraw());
        let unregister = exports.iter().map(ExportedService::unregister);
        let leave = async { tokio::join!(biased; join_all(withdraw), join_all(unregister)) };
        if tokio::time::timeout(grace(), leave).await.is_err() {
            tracing::warn!("a registry does not answer: what is registered there goes with the session");
        }
        let protocols = inner.protocols.activated();
        for (_, protocol) in &protocols {
            protocol.drain(grace()).await;
        }
        inner.in_flight.stop();
        if !inner.in_flight.drained(grace()).await {
            tracing::warn!(grace = ?self.shutdown_wait(), "calls are still under way at the end of the shutdown wait");
        }
        // References wait for their calls, which end with the connections at the latest.
        let _ = tokio::time::timeout(grace().max(LAST_WAIT), inner.references.close()).await;
        for (_, protocol) in &protocols {
            protocol.close().await;
        }
        let _ = tokio::time::timeout(LAST_WAIT, inner.references.close()).await;
        inner.registries.close().await;
        *done = true;
    }

    /// The application that was set up: its extensions, its registries.
    pub(crate) async fn open(mut config: DubboConfig, mut extensions: Extensions) -> Result<Self, RpcError> {
        config.application.name = config.application.name.trim().to_owned();
        if config.application.name.is_empty() {
            return Err(RpcError::new(
                ErrorCode::Unknown,
                "the application has no name: set `dubbo.application.name`",
            ));
        }
        extensions.add_dubbo(&config.application.name);
        let migration_rules = MigrationRules::new(&config.application.migration).await?;
        let protocols = std::mem::replace(&mut extensions.protocols, extension::Extensions::new("protocol"));
        let protocols = Arc::new(protocols);
        let own_service = Arc::new(OwnService::new(&config.application)?);
        let port = config.application.metadata_service_port;
        let triple = TripleMetadataClient::new(&*config.application.name, Arc::new(Hessian2::default()));
        let client: Arc<dyn MetadataClient> =
            Arc::new(InstanceClient { protocols: Arc::clone(&protocols), port, triple });
        let registries = Opening::open(&config, &extensions, &client, &own_service).await?;
        let target = registries.first_address();
        let host =
            tokio::task::spawn_blocking(move || address::to_register(target.as_deref())).await.map_err(
                |error| RpcError::new(ErrorCode::Unknown, format!("finding the own address failed: {error}")),
            )?;
        let balancers =
            std::mem::replace(&mut extensions.load_balances, extension::Extensions::new("loadbalance"));
        Ok(Self(Arc::new(Inner {
            properties: Arc::new(config.properties()),
            config,
            host,
            extensions,
            balancers: Arc::new(balancers),
            protocols,
            registries,
            own_service,
            migration_rules,
            in_flight: Arc::default(),
            references: Arc::default(),
            exports: Mutex::default(),
            timestamp: AtomicU64::default(),
            ports: Ports::default(),
            shut_down: tokio::sync::Mutex::new(false),
        })))
    }

    /// Returns when what was exported so far can be found by application at every registry that has a metadata centre.
    ///
    /// That comes by itself: the services of an application are announced together, about 100 ms after the last one, and what fails is
    /// tried again. Wait for it where others must find a service at once, or before telling a supervisor that the application is ready.
    /// An application that exports nothing has nothing to announce.
    ///
    /// Errors: a registry cannot be reached, or refuses it; it is still tried again there. The application is shutting down.
    pub async fn announce(&self) -> Result<(), RpcError> {
        if self.is_ending() {
            return Err(RpcError::new(
                ErrorCode::Unknown,
                "the application is shutting down: nothing is announced",
            ));
        }
        let announced = join_all(self.0.registries.application_levels().map(|one| one.announce())).await;
        announced.into_iter().collect()
    }

    /// The configuration in force.
    pub fn config(&self) -> &DubboConfig {
        &self.0.config
    }

    /// The first registry, for tools that read and write it: rules, lookups.
    pub fn registry(&self) -> Option<Arc<dyn Registry>> {
        self.0.registries.first()
    }

    /// The config centre, for tools that read and write rules: the configured one, else the first registry that may double as one.
    pub fn config_center(&self) -> Option<Arc<dyn ConfigCenter>> {
        self.0.registries.config_center().cloned()
    }

    /// The address that this application is registered with.
    pub fn host(&self) -> &str {
        &self.0.host
    }

    fn shutdown_wait(&self) -> Duration {
        self.0.config.application.shutdown_wait.map_or(defaults::DEFAULT_SHUTDOWN_WAIT, Duration::from_millis)
    }

    pub(crate) fn extensions(&self) -> &Extensions {
        &self.0.extensions
    }

    pub(crate) fn balancers(&self) -> Arc<extension::Extensions<dyn LoadBalance>> {
        Arc::clone(&self.0.balancers)
    }

    pub(crate) fn protocols(&self) -> &Arc<extension::Extensions<dyn Protocol>> {
        &self.0.protocols
    }

    pub(crate) fn registries(&self) -> &Registries {
        &self.0.registries
    }

    pub(crate) fn own_service(&self) -> &Arc<OwnService> {
        &self.0.own_service
    }

    /// The migration rule of this application as it changes; `None` where no rule can be.
    pub(crate) fn migration_rules(&self) -> Option<watch::Receiver<Arc<RuleInForce>>> {
        self.0.migration_rules.follow(&self.0.config.application.name, self.0.registries.config_center())
    }

    /// The properties that migration looks at.
    pub(crate) fn properties(&self) -> &Properties {
        &self.0.properties
    }

    pub(crate) fn in_flight(&self) -> &Arc<InFlight> {
        &self.0.in_flight
    }

    /// The router chain of one reference.
    pub(crate) fn router_chain(&self, consumer: &Url, rules: &[ConditionRouter]) -> Arc<dyn RouterChain> {
        let mut chain = Chain::builder(consumer.clone());
        for rule in rules {
            chain = chain.rule(rule.clone());
        }
        for router in &self.0.extensions.routers {
            chain = chain.shared_router(Arc::clone(router));
        }
        Arc::new(chain.build())
    }

    /// Ports that are found for protocols without one.
    pub(crate) fn ports(&self) -> &Ports {
        &self.0.ports
    }

    /// The references in use.
    pub(crate) fn references(&self) -> &Arc<OpenReferences> {
        &self.0.references
    }

    /// The `timestamp` of a further consumer URL: now, and later than that of every other one.
    pub(crate) fn next_timestamp(&self) -> u64 {
        let now = consumer::now_millis();
        let after = |last: u64| now.max(last + 1);
        let last =
            self.0.timestamp.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(after(last)));
        after(last.unwrap_or_else(|last| last))
    }

    /// Whether nothing is to be offered any more.
    pub(crate) fn is_ending(&self) -> bool {
        self.0.exports.lock().ended
    }

    /// Keeps an export until it ends or the application does; `false` when the application is ending already.
    pub(crate) fn keep_export(&self, export: ExportedService) -> bool {
        let mut exports = self.0.exports.lock();
        exports.services.retain(|one| !one.has_ended());
        if !exports.ended {
            exports.services.push(export);
        }
        !exports.ended
    }
}
