//! The open registries of an application.

use std::str::FromStr;
use std::sync::Arc;

use dubhe_common::{Url, list_items};
use dubhe_core::config_center::ConfigCenter;
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::registry::Registry;
use dubhe_registry::{MEMORY, TreeLease};
use parking_lot::Mutex;

use crate::application_level::ApplicationLevel;

/// The open registries of an application, and the centres beside them. One session per address, whatever is there.
#[derive(Debug, Default)]
pub(crate) struct Registries {
    all: Vec<Arc<OpenRegistry>>,
    config_center: Option<Arc<dyn ConfigCenter>>,
    /// Of the centres.
    leases: Mutex<Vec<TreeLease>>,
}

/// One registry address, in both models.
#[derive(Debug)]
pub(crate) struct OpenRegistry {
    /// By the configuration.
    pub(crate) id: String,
    pub(crate) url: Url,
    /// Providers by interface; `None`: the address is for application-level discovery only (`service-discovery-registry://`).
    pub(crate) interfaces: Option<Arc<dyn Registry>>,
    /// Providers by application; `None`: the registry is the user's own, which keeps no tree.
    pub(crate) applications: Option<Arc<ApplicationLevel>>,
    /// Whether references find providers by application only, whatever the migration rules say.
    pub(crate) by_application_only: bool,
    pub(crate) mode: RegisterMode,
}

/// In which of the two models providers are registered (`register-mode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RegisterMode {
    /// In both, so that consumers of all releases find them.
    #[default]
    All,
    /// By interface only, as before Dubbo 3.
    Interface,
    /// By application only.
    Instance,
}

impl RegisterMode {
    /// The name in configuration and reports.
    const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Interface => "interface",
            Self::Instance => "instance",
        }
    }
}

impl FromStr for RegisterMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim().to_ascii_lowercase().as_str() {
            "all" => Ok(Self::All),
            "interface" => Ok(Self::Interface),
            "instance" => Ok(Self::Instance),
            _ => Err(format!("`register-mode={text}` is none of all, interface, instance")),
        }
    }
}

impl Registries {
    pub(crate) fn new(
        all: Vec<Arc<OpenRegistry>>,
        config_center: Option<Arc<dyn ConfigCenter>>,
        leases: Vec<TreeLease>,
    ) -> Self {
        Self { all, config_center, leases: Mutex::new(leases) }
    }

    /// Those that the comma list `ids` names (all without one) and that `key` (`register`, `subscribe`) is not false for.
    pub(crate) fn chosen(&self, ids: Option<&str>, key: &str) -> Result<Vec<Arc<OpenRegistry>>, RpcError> {
        let wanted: Option<Vec<&str>> = ids.map(|ids| list_items(ids).collect());
        for id in wanted.iter().flatten() {
            if !self.all.iter().any(|one| one.id == *id) {
                let known: Vec<&str> = self.all.iter().map(|one| one.id.as_str()).collect();
                return Err(invalid(&format!("unknown registry id `{id}`: known are {}", known.join(", "))));
            }
        }
        let chosen = self.all.iter().filter(|one| {
            wanted.as_ref().is_none_or(|wanted| wanted.contains(&one.id.as_str()))
                && one.url.bool_param(key, true)
        });
        Ok(chosen.cloned().collect())
    }

    /// `host:port` of the first one that is not in this process, to find the own address towards it.
    pub(crate) fn first_address(&self) -> Option<String> {
        self.all.iter().map(|one| &one.url).find(|url| url.protocol() != MEMORY).map(Url::address)
    }

    pub(crate) fn first(&self) -> Option<Arc<dyn Registry>> {
        let first = self.all.first()?;
        let by_application = || first.applications.as_ref().map(|one| Arc::clone(one.registry()));
        first.interfaces.clone().or_else(by_application)
    }

    /// Where rules are: the configured config centre, else the first registry that may double as one.
    pub(crate) fn config_center(&self) -> Option<&Arc<dyn ConfigCenter>> {
        self.config_center.as_ref()
    }

    /// The application-level half of each registry that has one.
    pub(crate) fn application_levels(&self) -> impl Iterator<Item = &Arc<ApplicationLevel>> {
        self.all.iter().filter_map(|one| one.applications.as_ref())
    }

    pub(crate) async fn close(&self) {
        for one in &self.all {
            if let Some(applications) = &one.applications {
                applications.close().await;
            }
            if let Some(interfaces) = &one.interfaces {
                interfaces.close().await;
            }
        }
        let leases = std::mem::take(&mut *self.leases.lock());
        for lease in leases {
            lease.release().await;
        }
    }
}

impl OpenRegistry {
    /// What providers are registered in, by the register mode: applications first, so that `all` is complete for consumers that
    /// prefer those as soon as it is there for the others.
    pub(crate) fn registers(&self) -> Vec<Arc<dyn Registry>> {
        let applications = self.applications.as_ref().map(|one| Arc::clone(one.registry()));
        let interfaces = self.interfaces.clone();
        match self.mode {
            RegisterMode::All => applications.into_iter().chain(interfaces).collect(),
            RegisterMode::Interface => interfaces.into_iter().collect(),
            RegisterMode::Instance => applications.into_iter().collect(),
        }
    }

    /// The name of the register mode.
    pub(crate) const fn register_mode(&self) -> &'static str {
        self.mode.name()
    }

    /// Whether providers are registered by application.
    pub(crate) fn registers_applications(&self) -> bool {
        self.mode != RegisterMode::Interface && self.applications.is_some()
    }
}

pub(crate) fn invalid(error: &dyn std::fmt::Display) -> RpcError {
    RpcError::new(ErrorCode::Registry, format!("the registry configuration cannot be used: {error}"))
}
