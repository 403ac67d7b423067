//! From registry configuration to open registries.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

use dubhe_common::{Url, defaults, keys, list_items, parse_registry_address};
use dubhe_config::{DubboConfig, RegistryConfig};
use dubhe_core::config_center::ConfigCenter;
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::metadata::MetadataClient;
use dubhe_core::registry::Registry;
use dubhe_discovery::TreeConfigCenter;
use dubhe_registry::{MEMORY, SharedTrees, TreeLease, TreeRegistry};
use parking_lot::Mutex;

use crate::application_level::{ApplicationLevel, Center};
use crate::extensions::Extensions;
use crate::own_instance::OwnService;

/// Id of a registry that the configuration gives none.
const DEFAULT_ID: &str = "default";

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
    id: String,
    pub(crate) url: Url,
    /// Providers by interface; `None`: the address is for application-level discovery only (`service-discovery-registry://`).
    pub(crate) interfaces: Option<Arc<dyn Registry>>,
    /// Providers by application; `None`: the registry is the user's own, which keeps no tree.
    pub(crate) applications: Option<Arc<ApplicationLevel>>,
    mode: RegisterMode,
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
        match text {
            "all" => Ok(Self::All),
            "interface" => Ok(Self::Interface),
            "instance" => Ok(Self::Instance),
            _ => Err(format!("`register-mode={text}` is none of all, interface, instance")),
        }
    }
}

impl Registries {
    /// Opens what `config` names; connections are made in the background.
    pub(crate) async fn open(
        config: &DubboConfig,
        extensions: &Extensions,
        client: &Arc<dyn MetadataClient>,
        own: &Arc<OwnService>,
    ) -> Result<Self, RpcError> {
        let trees = extensions.shared_trees();
        let application = &*config.application.name;
        let mut centers = Centers { trees: &trees, leases: Vec::new() };
        let report = match &config.metadata_report {
            None => None,
            Some(one) => {
                let preset = Preset {
                    protocol: one.protocol.as_deref(),
                    port: one.port,
                    username: one.username.as_deref(),
                    password: one.password.as_deref(),
                    params: one.url_params(),
                };
                Some(centers.open(&center("metadata-report", &one.address, preset, application)?)?)
            }
        };
        let mut config_center: Option<Arc<dyn ConfigCenter>> = None;
        if let Some(one) = &config.config_center {
            let preset = Preset {
                protocol: one.protocol.as_deref(),
                port: one.port,
                username: one.username.as_deref(),
                password: one.password.as_deref(),
                params: one.url_params(),
            };
            let Center { url, lease } =
                centers.open(&center("config-center", &one.address, preset, application)?)?;
            config_center = Some(Arc::new(TreeConfigCenter::new(&url, Arc::clone(lease.tree()))));
        }
        let single = config.registry.iter().map(|one| (DEFAULT_ID, one));
        let several = config.registries.iter().map(|(id, one)| (id.as_str(), one));
        let mut all = Vec::new();
        for (id, registry) in single.chain(several) {
            for url in urls(registry, application)? {
                let by_application_only = is_by_application_only(&url);
                let url = real(&url);
                let given = url.param(keys::REGISTER_MODE).or(config.application.register_mode.as_deref());
                let mode = match given.map(str::parse) {
                    Some(mode) => mode.map_err(|error| invalid(&error))?,
                    None if by_application_only => RegisterMode::Instance,
                    None => RegisterMode::All,
                };
                if extensions.registries.contains(url.protocol()) {
                    let factory =
                        extensions.registries.get(url.protocol()).map_err(|unknown| invalid(&unknown))?;
                    let interfaces = Some(factory.open(&url).map_err(|error| invalid(&error))?);
                    let id = id.to_owned();
                    all.push(Arc::new(OpenRegistry { id, url, interfaces, applications: None, mode }));
                    continue;
                }
                extensions.trees.get(url.protocol()).map_err(|unknown| invalid(&unknown))?;
                let lease = trees.lease(&url).map_err(|error| invalid(&error))?;
                let with_interfaces = !by_application_only || mode == RegisterMode::All;
                let interfaces = with_interfaces
                    .then(|| Arc::new(TreeRegistry::over(&url, lease.clone())) as Arc<dyn Registry>);
                let doubles = registry
                    .use_as_config_center
                    .unwrap_or_else(|| url.bool_param(USE_AS_CONFIG_CENTER, true));
                if config_center.is_none() && doubles {
                    config_center =
                        Some(Arc::new(TreeConfigCenter::of_registry(&url, Arc::clone(lease.tree()))));
                }
                let itself = || {
                    let given = registry.use_as_metadata_center;
                    let doubles = given.unwrap_or_else(|| url.bool_param(USE_AS_METADATA_CENTER, true));
                    doubles.then(|| Center { url: url.clone(), lease: lease.clone() })
                };
                let report = report.clone().or_else(itself);
                let applications = ApplicationLevel::open(
                    &url,
                    application,
                    lease,
                    report,
                    interfaces.clone(),
                    Arc::clone(client),
                    own,
                )
                .await;
                let (id, applications) = (id.to_owned(), Some(Arc::new(applications)));
                all.push(Arc::new(OpenRegistry { id, url, interfaces, applications, mode }));
            }
        }
        Ok(Self { all, config_center, leases: Mutex::new(centers.leases) })
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
            // The user's own registry has no other form.
            RegisterMode::Instance => applications.or(interfaces).into_iter().collect(),
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

/// Sessions of the config centre and the metadata report.
struct Centers<'a> {
    trees: &'a SharedTrees,
    leases: Vec<TreeLease>,
}

impl Centers<'_> {
    fn open(&mut self, url: &Url) -> Result<Center, RpcError> {
        let lease = self.trees.lease(url).map_err(|error| invalid(&error))?;
        self.leases.push(lease.clone());
        Ok(Center { url: url.clone(), lease })
    }
}

const USE_AS_CONFIG_CENTER: &str = "use-as-config-center";
const USE_AS_METADATA_CENTER: &str = "use-as-metadata-center";
/// Value of [`keys::REGISTRY_TYPE`] for application-level discovery only.
const SERVICE: &str = "service";

fn is_by_application_only(url: &Url) -> bool {
    url.protocol() == keys::protocol::SERVICE_DISCOVERY_REGISTRY
        || url.param(keys::REGISTRY_TYPE) == Some(SERVICE)
}

/// The URL with the registry's own protocol: `service-discovery-registry://192.0.2.1:2181?registry=zookeeper` is `zookeeper://`.
fn real(url: &Url) -> Url {
    if url.protocol() == keys::protocol::SERVICE_DISCOVERY_REGISTRY {
        url.with_protocol(url.param_or(keys::REGISTRY, keys::protocol::ZOOKEEPER))
    } else {
        url.clone()
    }
}

/// The URLs of one configured registry; none for `N/A`.
fn urls(config: &RegistryConfig, application: &str) -> Result<Vec<Url>, RpcError> {
    if config.address.trim().is_empty() {
        return Err(invalid(
            &"a registry has no address: set `dubbo.registry.address`, e.g. zookeeper://127.0.0.1:2181, or N/A",
        ));
    }
    let preset = Preset {
        protocol: config.protocol.as_deref(),
        port: config.port,
        username: config.username.as_deref(),
        password: config.password.as_deref(),
        params: config.url_params(),
    };
    preset.urls(&config.address, application)
}

/// The URL of a centre; `section` is where it is configured.
fn center(section: &str, address: &str, preset: Preset<'_>, application: &str) -> Result<Url, RpcError> {
    let mut urls = preset.urls(address, application)?;
    match (urls.pop(), urls.pop()) {
        (Some(url), None) => Ok(url),
        _ => Err(invalid(&format!(
            "`dubbo.{section}.address={address}` is not one address: further servers of it follow behind commas"
        ))),
    }
}

/// What is configured beside an address, for what stands not in it.
struct Preset<'a> {
    protocol: Option<&'a str>,
    port: Option<u16>,
    username: Option<&'a str>,
    password: Option<&'a str>,
    params: BTreeMap<String, String>,
}

impl Preset<'_> {
    fn urls(self, address: &str, application: &str) -> Result<Vec<Url>, RpcError> {
        let protocol = self.protocol.unwrap_or(keys::protocol::ZOOKEEPER);
        let port = self.port.unwrap_or(defaults::DEFAULT_ZOOKEEPER_PORT);
        let mut preset =
            Url::builder(protocol, "", port).param(keys::APPLICATION, application).params(self.params);
        if let Some(user) = self.username {
            preset = preset.user(user);
        }
        if let Some(password) = self.password {
            preset = preset.password(password);
        }
        let urls = parse_registry_address(address, &preset.build()).map_err(|error| invalid(&error))?;
        Ok(urls.into_iter().map(|url| url.with_path(defaults::REGISTRY_SERVICE)).collect())
    }
}

fn invalid(error: &dyn std::fmt::Display) -> RpcError {
    RpcError::new(ErrorCode::Registry, format!("the registry configuration cannot be used: {error}"))
}
