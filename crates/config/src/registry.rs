use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

/// The `registry` section: where services are registered and found.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RegistryConfig {
    /// `zookeeper://192.0.2.1:2181?backup=192.0.2.2:2181`, `192.0.2.1:2181,192.0.2.2:2181` with `protocol`, `memory://local`, or `N/A` for none.
    pub address: String,
    /// Protocol when the address has none.
    pub protocol: Option<String>,
    /// Port when the address has none.
    pub port: Option<u16>,
    /// User, when the address has none.
    pub username: Option<String>,
    /// Password, when the address has none.
    pub password: Option<String>,
    /// Root of the registry's tree. Default `dubbo`.
    pub group: Option<String>,
    /// How long connecting and checked operations may take, milliseconds. Default 30000.
    pub timeout: Option<u64>,
    /// Session timeout, milliseconds. Default 60000.
    pub session: Option<u64>,
    /// Whether the registry must be reachable at start. Default true.
    pub check: Option<bool>,
    /// Whether services are registered here. Default true.
    pub register: Option<bool>,
    /// Whether references look here. Default true.
    pub subscribe: Option<bool>,
    /// Whether provider URLs are registered short. Default false.
    pub simplified: Option<bool>,
    /// Names kept in addition when URLs are short, comma list.
    pub extra_keys: Option<String>,
    /// Whether registered nodes go with the session. Default true.
    pub dynamic: Option<bool>,
    /// Cache file; computed from application and address when absent.
    pub file: Option<String>,
    /// Whether the cache file is used. Default true.
    pub file_cache: Option<bool>,
    /// How services are registered here: `interface`, `instance` (by application) or `all`. Default: as the application says.
    pub register_mode: Option<String>,
    /// Whether it is the config centre too when none is configured. Default true. Not a parameter of its URL, as in Dubbo.
    pub use_as_config_center: Option<bool>,
    /// Whether it is the metadata centre too when none is configured. Default true. Not a parameter of its URL, as in Dubbo.
    pub use_as_metadata_center: Option<bool>,
    /// Applications to look for the services of which nobody says who offers them, comma list. Default: none.
    pub subscribed_services: Option<String>,
    /// Whether an empty list from here is disbelieved, and the addresses before it are kept. Default false, as in Dubbo 3.3 (true in 3.1).
    pub enable_empty_protection: Option<bool>,
    /// Whether it goes before the other ones while it has a provider, where a reference uses several registries. Default false.
    pub preferred: Option<bool>,
    /// The zone that it is in: calls with the attachment `registry_zone` go to the registry of that zone. Default none.
    pub zone: Option<String>,
    /// Its share of the calls among several registries. Default 100.
    pub weight: Option<u32>,
    /// How one of several registries is chosen for each call; the last one of a reference decides. Default `zone-aware`. Not the
    /// cluster among the providers of one registry: references have that.
    pub cluster: Option<String>,
    /// More URL parameters.
    pub parameters: BTreeMap<String, String>,
}

impl RegistryConfig {
    /// A registry at `address`.
    pub fn at(address: impl Into<String>) -> Self {
        Self { address: address.into(), ..Self::default() }
    }

    /// Parameters of the registry's URL, without what stands in its authority.
    pub fn url_params(&self) -> BTreeMap<String, String> {
        let mut params = self.parameters.clone();
        let mut put = |key: &str, value: Option<String>| {
            if let Some(value) = value {
                params.insert(key.to_owned(), value);
            }
        };
        put("group", self.group.clone());
        put("timeout", self.timeout.map(|one| one.to_string()));
        put("session", self.session.map(|one| one.to_string()));
        put("check", self.check.map(|one| one.to_string()));
        put("register", self.register.map(|one| one.to_string()));
        put("subscribe", self.subscribe.map(|one| one.to_string()));
        put("simplified", self.simplified.map(|one| one.to_string()));
        put("extra-keys", self.extra_keys.clone());
        put("dynamic", self.dynamic.map(|one| one.to_string()));
        put("file", self.file.clone());
        put("file.cache", self.file_cache.map(|one| one.to_string()));
        put("register-mode", self.register_mode.clone());
        put("subscribed-services", self.subscribed_services.clone());
        put("enable-empty-protection", self.enable_empty_protection.map(|one| one.to_string()));
        put("preferred", self.preferred.map(|one| one.to_string()));
        put("zone", self.zone.clone());
        put("weight", self.weight.map(|one| one.to_string()));
        put("cluster", self.cluster.clone());
        params
    }
}

impl fmt::Debug for RegistryConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistryConfig")
            .field("address", &without_secrets(&self.address))
            .field("group", &self.group)
            .finish_non_exhaustive()
    }
}

/// Addresses may hold a password too: only what stands between user and parameters may be shown.
pub(crate) fn without_secrets(address: &str) -> &str {
    let address = address.split('?').next().unwrap_or_default();
    address.rsplit('@').next().unwrap_or_default()
}
