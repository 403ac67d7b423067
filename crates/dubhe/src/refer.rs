//! The reference flow: from a service's name to an invoker of its providers, in both of Dubbo's models side by side.
//!
//! ```text
//! Reference::get
//!   consumer URL        application, defaults, reference settings
//!   registry            those that the reference names, or all; what follows is for each of them
//!   rule                what the config centre says for this application    migration::RuleSource      (Dubhe::migration_rules)
//!   migrate             which model is wanted, and which calls use          migration::MigrationInvoker
//!   invokers            one for each model that is wanted                   Sides::make
//!
//!                       interface level (Dubbo 2)                           application level (Dubbo 3)
//!     registry          TreeRegistry: consumer registered, then             ServiceDiscoveryRegistry
//!     mapping           -                                                   interface -> applications
//!     instances         provider URLs of the interface                      instances of those applications
//!     metadata          in each URL                                         by revision, from the report or an instance
//!     directory         RegistryDirectory                                   RegistryDirectory
//!     router chain      mock selector, condition rules, user routers        the same
//!     cluster join      failover, failfast, ...                             the same
//!
//!   registries join     zone-aware, where there are several
//!   check               a provider must be there, unless check=false
//!   cluster filters     around the logical call, whichever side it goes to
//! ```
//!
//! With `url` there is nothing to discover: the addresses are the directory, and there is no migration.

use std::sync::Arc;
use std::time::Duration;

use dubhe_cluster::ZoneAware;
use dubhe_common::{Url, defaults, keys, merge_consumer_into_provider};
use dubhe_config::ReferenceConfig;
use dubhe_core::cluster::Cluster;
use dubhe_core::directory::Directory;
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::filter::{self, FilterSide};
use dubhe_core::invoker::{Invoker, SharedInvoker};
use dubhe_directory::StaticDirectory;
use dubhe_discovery::consumer_definition;
use dubhe_migration::{Effective, MigrationInvoker, MigrationParts, SideFactory, report_changes};
use dubhe_router::{Chain, ConditionRouter};

use crate::application::Dubhe;
use crate::consumer;
use crate::in_flight::Counted;
use crate::open_references::Lease;
use crate::providers::{InRegistry, Providers};
use crate::registries::OpenRegistry;
use crate::registry_invoker::RegistryInvoker;
use crate::sides::Sides;

/// How often a reference that is being checked looks whether a provider is connected.
const CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// A reference being set up, whatever kind of client it gets.
#[derive(Debug)]
pub(crate) struct Setup<'a> {
    pub(crate) dubhe: &'a Dubhe,
    pub(crate) interface: String,
    pub(crate) methods: &'static [&'static str],
    pub(crate) generic: bool,
    pub(crate) settings: ReferenceConfig,
    pub(crate) rules: Vec<ConditionRouter>,
}

/// What becomes of it.
pub(crate) struct Referred {
    pub(crate) invoker: SharedInvoker,
    pub(crate) lease: Arc<Lease>,
}

impl Setup<'_> {
    pub(crate) async fn refer(self) -> Result<Referred, RpcError> {
        let dubhe = self.dubhe;
        let consumer = consumer::url(
            dubhe.config(),
            &self.settings,
            &self.interface,
            self.methods,
            dubhe.host(),
            self.generic,
        );
        let consumer = consumer.with_param(keys::TIMESTAMP, dubhe.next_timestamp());
        let extensions = dubhe.extensions();
        let cluster_name = consumer.param_or(keys::CLUSTER, defaults::DEFAULT_CLUSTER);
        let cluster = extensions.clusters.get(cluster_name).map_err(|unknown| self.invalid(&unknown))?;
        let balancers = dubhe.balancers();
        for name in consumer.params().filter(|(key, _)| is_balancer(key)).map(|(_, value)| value) {
            balancers.get(name).map_err(|unknown| self.invalid(&unknown))?;
        }
        let (providers, invoker) = match self.settings.url.as_deref().filter(|url| !url.trim().is_empty()) {
            Some(urls) => {
                let directory = self.direct(&consumer, urls)?;
                let invoker = cluster.join(Arc::clone(&directory), balancers);
                (Providers::Fixed(directory), invoker)
            }
            None => self.discover_everywhere(&consumer, &cluster)?,
        };
        if let Err(error) = self.wait(&consumer, &providers, &*invoker).await {
            providers.close().await;
            return Err(error);
        }
        let Some(lease) = dubhe.references().hold(providers.clone()) else {
            providers.close().await;
            return Err(self.invalid(&"the application is shutting down"));
        };
        let invoker = filter::chain(&extensions.filters(FilterSide::Cluster), invoker);
        let invoker = Arc::new(Counted {
            inner: invoker,
            in_flight: Arc::clone(dubhe.in_flight()),
            _lease: Arc::clone(&lease),
        });
        Ok(Referred { invoker, lease })
    }

    /// The providers in all registries of the reference. Of several, one is chosen for each call.
    fn discover_everywhere(
        &self,
        consumer: &Url,
        cluster: &Arc<dyn Cluster>,
    ) -> Result<(Providers, SharedInvoker), RpcError> {
        let registries = self.registries()?;
        // As in Dubbo, the last registry says how one is chosen.
        let registry_cluster = registries.last().and_then(|last| last.url.param(keys::CLUSTER));
        let registry_cluster = match registry_cluster {
            Some(name) if registries.len() > 1 => name.to_owned(),
            _ => ZoneAware::NAME.to_owned(),
        };
        let registry_cluster = self.dubhe.extensions().clusters.get(&registry_cluster);
        let registry_cluster = registry_cluster.map_err(|unknown| self.invalid(&unknown))?;
        let found: Arc<[InRegistry]> =
            registries.into_iter().map(|registry| self.discover(consumer, registry, cluster)).collect();
        if let [only] = &*found {
            let invoker = Arc::clone(&only.migration) as SharedInvoker;
            return Ok((Providers::Discovered { registries: found, joined: None }, invoker));
        }
        let invokers = found.iter().map(|one| {
            let providers = Arc::clone(&one.migration) as SharedInvoker;
            RegistryInvoker::new(&one.registry.url, consumer, providers) as SharedInvoker
        });
        // Routers look at providers; here are none.
        let chain = Arc::new(Chain::builder(consumer.clone()).build());
        let joined: Arc<dyn Directory> = StaticDirectory::new(consumer.clone(), invokers.collect(), chain);
        let invoker = registry_cluster.join(Arc::clone(&joined), self.dubhe.balancers());
        Ok((Providers::Discovered { registries: found, joined: Some(joined) }, invoker))
    }

    /// The providers in one registry, in both models: rule, migration, and the two sides that it makes by need.
    fn discover(
        &self,
        consumer: &Url,
        registry: Arc<OpenRegistry>,
        cluster: &Arc<dyn Cluster>,
    ) -> InRegistry {
        let dubhe = self.dubhe;
        let register = self.settings.register.unwrap_or(true);
        let sides = Arc::new(Sides::new(
            dubhe,
            consumer,
            Arc::clone(&registry),
            Arc::clone(cluster),
            self.rules.clone(),
            register,
        ));
        let mut parts = MigrationParts::new(consumer.clone(), Arc::clone(&sides) as Arc<dyn SideFactory>);
        parts.properties = Arc::clone(dubhe.properties());
        parts.rules = dubhe.migration_rules();
        if let Some(applications) = &registry.applications {
            parts.applications = Some(applications.providing(consumer));
            applications.publish_definition(consumer, consumer_definition(consumer));
        }
        parts.fixed = match &registry.applications {
            None => Some(Effective::interface_only()),
            Some(_) if registry.by_application_only => Some(Effective::application_only()),
            Some(_) => None,
        };
        let migration = Arc::new(MigrationInvoker::start(parts));
        let reporters = &dubhe.extensions().status_reporters;
        if !reporters.is_empty() {
            // Ends with the migration.
            tokio::spawn(report_changes(migration.state(), consumer, reporters.clone().into()));
        }
        InRegistry { registry, migration, sides }
    }

    /// A fixed list of providers.
    fn direct(&self, consumer: &Url, urls: &str) -> Result<Arc<dyn Directory>, RpcError> {
        let chain = self.dubhe.router_chain(consumer, &self.rules);
        let extensions = self.dubhe.extensions();
        let filters = extensions.filters(FilterSide::Consumer);
        let mut invokers = Vec::new();
        for text in urls.split(';').map(str::trim).filter(|text| !text.is_empty()) {
            let mut provider = Url::parse(text).map_err(|error| self.invalid(&error))?;
            if provider.path().is_none_or(str::is_empty) {
                provider = provider.with_path(&self.interface);
            }
            if provider.protocol().is_empty() {
                provider = provider.with_protocol(keys::protocol::DUBBO);
            }
            let protocol =
                self.dubhe.protocols().get(provider.protocol()).map_err(|unknown| self.invalid(&unknown))?;
            if provider.port() == 0 {
                provider = provider.with_port(protocol.default_port());
            }
            let invoker = protocol.refer(&merge_consumer_into_provider(&provider, consumer))?;
            invokers.push(filter::chain(&filters, invoker));
        }
        if invokers.is_empty() {
            return Err(self.invalid(&"`url` names no address"));
        }
        Ok(StaticDirectory::new(consumer.clone(), invokers, chain))
    }

    fn registries(&self) -> Result<Vec<Arc<OpenRegistry>>, RpcError> {
        let registries =
            self.dubhe.registries().chosen(self.settings.registry.as_deref(), keys::SUBSCRIBE)?;
        if registries.is_empty() {
            return Err(RpcError::new(
                ErrorCode::Registry,
                format!(
                    "No such any registry to reference {} on the consumer {} use dubbo version {}: set `dubbo.registry.address`, or `url` \
                     of the reference",
                    self.interface,
                    self.dubhe.host(),
                    defaults::DUBBO_VERSION
                ),
            ));
        }
        Ok(registries)
    }

    /// Waits until each wanted side was made or failed to be, but no longer than one attempt to connect may take once a provider can be
    /// called. With `check`, one must be: as long as there are addresses, connecting has that time, and no address at all fails at once.
    async fn wait(
        &self,
        consumer: &Url,
        providers: &Providers,
        invoker: &dyn Invoker,
    ) -> Result<(), RpcError> {
        let patience = consumer.duration_param(keys::CONNECT_TIMEOUT, defaults::DEFAULT_CONNECT_TIMEOUT);
        let available = async {
            while !invoker.is_available() {
                tokio::time::sleep(CHECK_INTERVAL).await;
            }
        };
        let long_enough = async {
            available.await;
            tokio::time::sleep(patience).await;
        };
        tokio::select! {
            biased;
            () = providers.ready() => {}
            () = long_enough => {}
        }
        if !consumer.bool_param(keys::CHECK, true) {
            return Ok(());
        }
        let available = async {
            while !invoker.is_available() {
                if !providers.have_addresses() {
                    return false;
                }
                tokio::time::sleep(CHECK_INTERVAL).await;
            }
            true
        };
        if tokio::time::timeout(patience, available).await.unwrap_or(false) {
            return Ok(());
        }
        Err(self.unavailable(consumer, providers))
    }

    fn unavailable(&self, consumer: &Url, providers: &Providers) -> RpcError {
        let (code, status) = match providers.failure() {
            Some(failure) => (ErrorCode::Registry, failure),
            None => (ErrorCode::NoInvokerAvailableAfterFilter, providers.to_string()),
        };
        RpcError::new(
            code,
            format!(
                "Failed to check the status of the service {}. No provider available for the service {} from the url {} to the consumer {} \
                 use dubbo version {} ({status}): start a provider, or set check=false",
                self.interface,
                consumer.service_key(),
                providers.origin(),
                consumer.host(),
                defaults::DUBBO_VERSION,
            ),
        )
    }

    fn invalid(&self, error: &dyn std::fmt::Display) -> RpcError {
        RpcError::new(
            ErrorCode::Unknown,
            format!("the reference of {} cannot be made: {error}", self.interface),
        )
    }
}

/// Whether a parameter names a balancer: `loadbalance`, or that of a method.
fn is_balancer(key: &str) -> bool {
    key == keys::LOADBALANCE || key.rsplit_once('.').is_some_and(|(_, last)| last == keys::LOADBALANCE)
}
