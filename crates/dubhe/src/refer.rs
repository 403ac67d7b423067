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

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use dubhe_cluster::ZoneAware;
use dubhe_common::{Url, defaults, keys, merge_consumer_into_provider};
use dubhe_config::ReferenceConfig;
use dubhe_core::cluster::Cluster;
use dubhe_core::directory::{Directory, DirectoryStatus};
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::filter::{self, FilterSide};
use dubhe_core::invocation::Invocation;
use dubhe_core::invoker::{Invoker, SharedInvoker};
use dubhe_core::router::Explanation;
use dubhe_directory::StaticDirectory;
use dubhe_discovery::consumer_definition;
use dubhe_migration::{
    Effective, MigrationExplanation, MigrationInvoker, MigrationParts, SideFactory, report_changes,
};
use dubhe_proxy::{GenericService, ServiceClient, TypedClient};
use dubhe_router::{Chain, ConditionRouter};

use crate::application::Dubhe;
use crate::consumer;
use crate::in_flight::Counted;
use crate::of_registry::OfRegistry;
use crate::open_references::Lease;
use crate::providers::{InRegistry, Providers};
use crate::registries::OpenRegistry;
use crate::sides::Sides;

/// How often a reference that is being checked looks whether a provider is connected.
const CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// A typed reference being set up.
///
/// Settings made here beat those of the configuration. [`Reference::get`] makes it. It ends with the last clone of its client: it
/// leaves the registry, and its connections close. Keep the client; a reference per call would be dear.
#[derive(Debug)]
#[must_use = "a reference does nothing until `get` or `connect`"]
pub struct Reference<'a, C> {
    setup: Setup<'a>,
    client: PhantomData<C>,
}

/// A reference for generic calls being set up.
#[derive(Debug)]
#[must_use = "a reference does nothing until `get`"]
pub struct GenericReference<'a> {
    setup: Setup<'a>,
}

#[derive(Debug)]
struct Setup<'a> {
    dubhe: &'a Dubhe,
    interface: String,
    methods: &'static [&'static str],
    generic: bool,
    settings: ReferenceConfig,
    rules: Vec<ConditionRouter>,
}

macro_rules! settings {
    () => {
        /// Group of the service; a comma list or `*` finds several.
        pub fn group(mut self, group: impl Into<String>) -> Self {
            self.setup.settings.group = Some(group.into());
            self
        }

        /// Version of the service; `*` finds all.
        pub fn version(mut self, version: impl Into<String>) -> Self {
            self.setup.settings.version = Some(version.into());
            self
        }

        /// Time limit of one attempt. Default 1 s, or what the provider says.
        pub fn timeout(mut self, timeout: Duration) -> Self {
            self.setup.settings.timeout = Some(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
            self
        }

        /// Attempts after the first. Default 2.
        pub fn retries(mut self, retries: u32) -> Self {
            self.setup.settings.retries = Some(i32::try_from(retries).unwrap_or(i32::MAX));
            self
        }

        /// Fault tolerance, by name. Default `failover`.
        pub fn cluster(mut self, name: impl Into<String>) -> Self {
            self.setup.settings.cluster = Some(name.into());
            self
        }

        /// Balancer, by name. Default `random`.
        pub fn load_balance(mut self, name: impl Into<String>) -> Self {
            self.setup.settings.loadbalance = Some(name.into());
            self
        }

        /// Whether a provider must be there now. Default true.
        pub fn check(mut self, check: bool) -> Self {
            self.setup.settings.check = Some(check);
            self
        }

        /// Provider addresses to call directly, `;`-separated (`dubbo://192.0.2.1:20880`); no registry is asked.
        pub fn url(mut self, url: impl Into<String>) -> Self {
            self.setup.settings.url = Some(url.into());
            self
        }

        /// Any other URL parameter, by its name in Dubbo; `sayHello.timeout` sets one of a method.
        pub fn param(mut self, key: impl Into<String>, value: impl ToString) -> Self {
            self.setup.settings.parameters.insert(key.into(), value.to_string());
            self
        }

        /// A condition rule that this reference obeys in addition to those of the registry.
        pub fn rule(mut self, rule: ConditionRouter) -> Self {
            self.setup.rules.push(rule);
            self
        }
    };
}

impl<'a, C: TypedClient> Reference<'a, C> {
    pub(crate) fn new(dubhe: &'a Dubhe) -> Self {
        let mut settings = dubhe.configured_reference(C::INTERFACE);
        let declared = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        settings.group = settings.group.or_else(|| declared(C::GROUP));
        settings.version = settings.version.or_else(|| declared(C::VERSION));
        let interface = C::INTERFACE.to_owned();
        let setup =
            Setup { dubhe, interface, methods: C::METHODS, generic: false, settings, rules: Vec::new() };
        Self { setup, client: PhantomData }
    }

    settings!();

    /// Makes the reference and gives its client.
    ///
    /// Errors: a setting cannot be used; with `check` (the default) the registry cannot be reached or no provider is there.
    pub async fn get(self) -> Result<C, RpcError> {
        Ok(self.connect().await?.client)
    }

    /// Makes the reference and gives its client with a view behind it.
    pub async fn connect(self) -> Result<Connected<C>, RpcError> {
        let referred = self.setup.refer().await?;
        let client = C::from_client(ServiceClient::new(referred.invoker));
        Ok(Connected { client, lease: referred.lease })
    }
}

impl<'a> GenericReference<'a> {
    pub(crate) fn new(dubhe: &'a Dubhe, interface: &str) -> Self {
        let settings = dubhe.configured_reference(interface);
        let interface = interface.to_owned();
        Self { setup: Setup { dubhe, interface, methods: &[], generic: true, settings, rules: Vec::new() } }
    }

    settings!();

    /// Makes the reference.
    pub async fn get(self) -> Result<GenericService, RpcError> {
        Ok(self.connect().await?.client)
    }

    /// Makes the reference with a view behind it.
    pub async fn connect(self) -> Result<Connected<GenericService>, RpcError> {
        let referred = self.setup.refer().await?;
        Ok(Connected { client: GenericService::new(referred.invoker), lease: referred.lease })
    }
}

/// A client with a view of the providers behind it. Each of the two keeps the reference open.
#[derive(Clone, Debug)]
pub struct Connected<C> {
    /// The client.
    pub client: C,
    lease: Arc<Lease>,
}

impl<C> Connected<C> {
    /// How many providers there are where calls go to now, and in what state; see [`Connected::directory`].
    pub fn status(&self) -> DirectoryStatus {
        self.directory().map(|directory| directory.status().borrow().clone()).unwrap_or_default()
    }

    /// Addresses of all providers where calls go to now, in all registries of the reference, unrouted.
    pub fn addresses(&self) -> Vec<String> {
        let directories = self.lease.providers.directories();
        let invokers = directories.iter().flat_map(|directory| directory.invokers().to_vec());
        invokers.map(|one| one.url().address()).collect()
    }

    /// Why a call of `method` (with no arguments that rules look at) goes where it goes.
    pub fn explain(&self, method: &str) -> Explanation {
        self.explain_call(&Invocation::dynamic(method, "", Vec::new()))
    }

    /// Why `call` goes where it goes, among the providers of [`Connected::directory`]. Which of the two models that is, and why,
    /// says [`Connected::migration`].
    pub fn explain_call(&self, call: &Invocation) -> Explanation {
        self.directory().map(|directory| directory.explain(call)).unwrap_or_default()
    }

    /// The addresses that both models have, which of them calls go to, and what keeps a switch, in the first registry of the reference.
    /// Its text form is for people. `None` for a reference with fixed addresses.
    pub fn migration(&self) -> Option<MigrationExplanation> {
        self.migrations().into_iter().next()
    }

    /// The same for each registry of the reference, in the order of the configuration.
    pub fn migrations(&self) -> Vec<MigrationExplanation> {
        self.lease.providers.migrations()
    }

    /// The directory that calls go to now: its status as it changes, its invokers. While a reference migrates there are two, and each
    /// of its registries has its own: this is the one of the first registry that has somebody to call. `None` while there is none, as
    /// when the registry was not reached yet.
    pub fn directory(&self) -> Option<Arc<dyn Directory>> {
        self.lease.providers.directory()
    }
}

struct Referred {
    invoker: SharedInvoker,
    lease: Arc<Lease>,
}

impl Setup<'_> {
    async fn refer(self) -> Result<Referred, RpcError> {
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
        let chooser = registries.last().and_then(|last| last.url.param(keys::CLUSTER));
        let chooser = self.dubhe.extensions().clusters.get(chooser.unwrap_or(ZoneAware::NAME));
        let chooser = chooser.map_err(|unknown| self.invalid(&unknown))?;
        let found: Arc<[InRegistry]> =
            registries.into_iter().map(|registry| self.discover(consumer, registry, cluster)).collect();
        if let [only] = &*found {
            let invoker = Arc::clone(&only.migration) as SharedInvoker;
            return Ok((Providers::Discovered { registries: found, choice: None }, invoker));
        }
        let invokers = found.iter().map(|one| {
            let providers = Arc::clone(&one.migration) as SharedInvoker;
            OfRegistry::new(&one.registry.url, consumer, providers) as SharedInvoker
        });
        // Routers look at providers; here are none.
        let chain = Arc::new(Chain::builder(consumer.clone()).build());
        let choice: Arc<dyn Directory> = StaticDirectory::new(consumer.clone(), invokers.collect(), chain);
        let invoker = chooser.join(Arc::clone(&choice), self.dubhe.balancers());
        Ok((Providers::Discovered { registries: found, choice: Some(choice) }, invoker))
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
        parts.fixed = match (&registry.interfaces, &registry.applications) {
            (None, _) => Some(Effective::application_only()),
            (_, None) => Some(Effective::interface_only()),
            _ => None,
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
