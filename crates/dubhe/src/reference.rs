//! What users set references up with, and what they get.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use dubhe_core::directory::{Directory, DirectoryStatus};
use dubhe_core::error::RpcError;
use dubhe_core::invocation::Invocation;
use dubhe_core::router::Explanation;
use dubhe_migration::MigrationExplanation;
use dubhe_proxy::{GenericService, ServiceClient, TypedClient};
use dubhe_router::ConditionRouter;

use crate::application::Dubhe;
use crate::open_references::Lease;
use crate::providers::InRegistry;
use crate::refer::Setup;

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
///
/// A reference finds its providers in each of its registries, there in two models: [`Connected::registries`] shows all of that. The other
/// methods are about the one place where most calls go: the preferred model of the first registry that has somebody to call. With one
/// registry, and no migration under way, that is all there is.
#[derive(Clone, Debug)]
pub struct Connected<C> {
    /// The client.
    pub client: C,
    lease: Arc<Lease>,
}

/// What a reference has in one of its registries.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RegistryStatus {
    /// `host:port` of the registry.
    pub registry: String,
    /// The addresses in both models, which of them is preferred, and what keeps a switch. Its text form is for people.
    pub migration: MigrationExplanation,
    /// The directory of the preferred model; `None` while there is none.
    pub directory: Option<Arc<dyn Directory>>,
}

impl<C> Connected<C> {
    /// How many providers there are, and in what state.
    pub fn status(&self) -> DirectoryStatus {
        self.directory().map(|directory| directory.status().borrow().clone()).unwrap_or_default()
    }

    /// Addresses of all providers, unrouted.
    pub fn addresses(&self) -> Vec<String> {
        let invokers = self.directory().map(|directory| directory.invokers());
        invokers.iter().flat_map(|invokers| invokers.iter()).map(|one| one.url().address()).collect()
    }

    /// Why a call of `method` (with no arguments that rules look at) goes where it goes.
    pub fn explain(&self, method: &str) -> Explanation {
        self.explain_call(&Invocation::dynamic(method, "", Vec::new()))
    }

    /// Why `call` goes where it goes, among the providers of one model. Why that one is preferred says [`Connected::migration`]. Empty
    /// while there is no directory.
    pub fn explain_call(&self, call: &Invocation) -> Explanation {
        self.directory().map(|directory| directory.explain(call)).unwrap_or_default()
    }

    /// The addresses in both models, which of them is preferred, and what keeps a switch. Its text form is for people. `None` for a
    /// reference with fixed addresses.
    pub fn migration(&self) -> Option<MigrationExplanation> {
        self.lease.providers.in_use().map(|one| one.status().migration)
    }

    /// The directory: its status as it changes, its invokers. `None` while there is none, as when the registry was not reached yet.
    pub fn directory(&self) -> Option<Arc<dyn Directory>> {
        self.lease.providers.directory()
    }

    /// What the reference has in each of its registries, in the order of the configuration; empty for one with fixed addresses.
    pub fn registries(&self) -> Vec<RegistryStatus> {
        self.lease.providers.registries().iter().map(InRegistry::status).collect()
    }
}
