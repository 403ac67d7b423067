//! From registry configuration to open registries.

use std::collections::BTreeMap;
use std::sync::Arc;

use dubhe_common::{Url, defaults, keys, parse_registry_address};
use dubhe_config::{DubboConfig, RegistryConfig};
use dubhe_core::config_center::ConfigCenter;
use dubhe_core::error::RpcError;
use dubhe_core::metadata::MetadataClient;
use dubhe_core::registry::Registry;
use dubhe_discovery::TreeConfigCenter;
use dubhe_registry::{SharedTrees, TreeLease, TreeRegistry};

use crate::application_level::{ApplicationLevel, Center};
use crate::extensions::Extensions;
use crate::own_instance::OwnService;
use crate::registries::{OpenRegistry, RegisterMode, Registries, invalid};

/// Id of a registry that the configuration gives none.
const DEFAULT_ID: &str = "default";

/// Opens registries one after the other; they share sessions, and the centres if those are configured.
pub(crate) struct Opening<'a> {
    pub(crate) config: &'a DubboConfig,
    pub(crate) extensions: &'a Extensions,
    pub(crate) client: &'a Arc<dyn MetadataClient>,
    pub(crate) own: &'a Arc<OwnService>,
    trees: SharedTrees,
    report: Option<Center>,
    config_center: Option<Arc<dyn ConfigCenter>>,
    /// Of the centres.
    leases: Vec<TreeLease>,
    open: Vec<Arc<OpenRegistry>>,
}

impl<'a> Opening<'a> {
    /// Opens what `config` names; connections are made in the background.
    pub(crate) async fn open(
        config: &'a DubboConfig,
        extensions: &'a Extensions,
        client: &'a Arc<dyn MetadataClient>,
        own: &'a Arc<OwnService>,
    ) -> Result<Registries, RpcError> {
        let trees = extensions.shared_trees();
        let (report, config_center, leases, open) = (None, None, Vec::new(), Vec::new());
        let mut opening =
            Self { config, extensions, client, own, trees, report, config_center, leases, open };
        opening.open_centers()?;
        let single = config.registry.iter().map(|one| (DEFAULT_ID, one));
        let several = config.registries.iter().map(|(id, one)| (id.as_str(), one));
        for (id, registry) in single.chain(several) {
            for url in urls(registry, &config.application.name)? {
                let one = opening.open_one(id, registry, url).await?;
                opening.open.push(Arc::new(one));
            }
        }
        Ok(Registries::new(opening.open, opening.config_center, opening.leases))
    }

    fn open_centers(&mut self) -> Result<(), RpcError> {
        let application = &*self.config.application.name;
        if let Some(one) = &self.config.metadata_report {
            let url = center("metadata-report", &one.address, preset!(one), application)?;
            self.report = Some(self.open_center(url)?);
        }
        if let Some(one) = &self.config.config_center {
            let url = center("config-center", &one.address, preset!(one), application)?;
            let Center { url, lease } = self.open_center(url)?;
            self.config_center = Some(Arc::new(TreeConfigCenter::new(&url, Arc::clone(lease.tree()))));
        }
        Ok(())
    }

    fn open_center(&mut self, url: Url) -> Result<Center, RpcError> {
        let lease = self.trees.lease(&url).map_err(|error| invalid(&error))?;
        self.leases.push(lease.clone());
        Ok(Center { url, lease })
    }

    async fn open_one(
        &mut self,
        id: &str,
        config: &RegistryConfig,
        url: Url,
    ) -> Result<OpenRegistry, RpcError> {
        let by_application_only = is_by_application_only(&url);
        let url = with_registry_protocol(&url);
        let mode = self.mode(&url, by_application_only)?;
        let id = id.to_owned();
        if self.extensions.registries.contains(url.protocol()) {
            let factory =
                self.extensions.registries.get(url.protocol()).map_err(|unknown| invalid(&unknown))?;
            let interfaces = Some(factory.open(&url).map_err(|error| invalid(&error))?);
            // The user's own registry has no other form.
            let mode = RegisterMode::Interface;
            return Ok(OpenRegistry {
                id,
                url,
                interfaces,
                applications: None,
                by_application_only: false,
                mode,
            });
        }
        self.extensions.trees.get(url.protocol()).map_err(|unknown| invalid(&unknown))?;
        let lease = self.trees.lease(&url).map_err(|error| invalid(&error))?;
        let with_interfaces = !by_application_only || mode == RegisterMode::All;
        let interfaces =
            with_interfaces.then(|| Arc::new(TreeRegistry::over(&url, lease.clone())) as Arc<dyn Registry>);
        let doubles = config.use_as_config_center;
        if self.config_center.is_none()
            && doubles.unwrap_or_else(|| url.bool_param(USE_AS_CONFIG_CENTER, true))
        {
            let tree = Arc::clone(lease.tree());
            self.config_center = Some(Arc::new(TreeConfigCenter::of_registry(&url, tree)));
        }
        let applications = match self.same_applications(&url) {
            Some(same) => same,
            None => {
                let doubles = config.use_as_metadata_center;
                let doubles = doubles.unwrap_or_else(|| url.bool_param(USE_AS_METADATA_CENTER, true));
                let itself = || doubles.then(|| Center { url: url.clone(), lease: lease.clone() });
                let report = self.report.clone().or_else(itself);
                let (rules, client) = (interfaces.clone(), Arc::clone(self.client));
                let application = &*self.config.application.name;
                Arc::new(
                    ApplicationLevel::open(&url, application, lease, report, rules, client, self.own).await,
                )
            }
        };
        Ok(OpenRegistry { id, url, interfaces, applications: Some(applications), by_application_only, mode })
    }

    /// In which models providers are registered at the registry at `url`.
    fn mode(&self, url: &Url, by_application_only: bool) -> Result<RegisterMode, RpcError> {
        let given = url.param(keys::REGISTER_MODE).or(self.config.application.register_mode.as_deref());
        let given: Option<RegisterMode> =
            given.map(|text| text.parse().map_err(|error: String| invalid(&error))).transpose()?;
        Ok(match given {
            // Such an address has no other form, unless it is asked for.
            None | Some(RegisterMode::Interface) if by_application_only => RegisterMode::Instance,
            None => RegisterMode::All,
            Some(mode) => mode,
        })
    }

    /// The application level of an address that is configured once more: an application has one instance there, not two that
    /// overwrite each other.
    fn same_applications(&self, url: &Url) -> Option<Arc<ApplicationLevel>> {
        let place = |url: &Url| {
            let mut servers = url.backup_addresses(0);
            servers.sort_unstable();
            let root = url.param(ROOT_PATH).or(url.group()).map(str::to_owned);
            (url.protocol().to_owned(), servers, root)
        };
        let same =
            self.open.iter().find(|one| one.applications.is_some() && place(&one.url) == place(url))?;
        same.applications.clone()
    }
}

const ROOT_PATH: &str = "rootPath";
const USE_AS_CONFIG_CENTER: &str = "use-as-config-center";
const USE_AS_METADATA_CENTER: &str = "use-as-metadata-center";
/// Value of [`keys::REGISTRY_TYPE`] for application-level discovery only.
const SERVICE: &str = "service";

fn is_by_application_only(url: &Url) -> bool {
    url.protocol() == keys::protocol::SERVICE_DISCOVERY_REGISTRY
        || url.param(keys::REGISTRY_TYPE) == Some(SERVICE)
}

/// The URL with the registry's own protocol: `service-discovery-registry://192.0.2.1:2181?registry=zookeeper` is `zookeeper://`.
fn with_registry_protocol(url: &Url) -> Url {
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
    preset!(config).urls(&config.address, application)
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

/// What is beside the address in one of the configuration's three sections that have one.
macro_rules! preset {
    ($section:expr) => {
        Preset {
            protocol: $section.protocol.as_deref(),
            port: $section.port,
            username: $section.username.as_deref(),
            password: $section.password.as_deref(),
            params: $section.url_params(),
        }
    };
}
use preset;

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
