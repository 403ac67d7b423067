//! Where things stand in the tree: `/<root>/<interface>/<category>/<url>` (`ZookeeperRegistry.toUrlPath` and its kin).

use dubhe_common::defaults::DEFAULT_REGISTRY_GROUP;
use dubhe_common::{Url, encode, keys, list_items};
use dubhe_core::registry::RegistryError;

/// All categories, in the order in which `category=*` watches them.
const ALL: [&str; 4] = [
    keys::category::PROVIDERS,
    keys::category::CONSUMERS,
    keys::category::ROUTERS,
    keys::category::CONFIGURATORS,
];

/// The paths of one registry.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    /// `/dubbo`; empty for the root of the tree.
    root: String,
}

impl Paths {
    /// The root is the registry's `group`, `dubbo` where it names none.
    pub(crate) fn new(registry: &Url) -> Self {
        let group = registry.param_or(keys::GROUP, DEFAULT_REGISTRY_GROUP).trim_matches('/');
        Self { root: if group.is_empty() { String::new() } else { format!("/{group}") } }
    }

    /// The node whose children are the interfaces.
    pub(crate) fn root(&self) -> &str {
        if self.root.is_empty() { "/" } else { &self.root }
    }

    /// A category of an interface whose name is already encoded: one that was read, or [`Paths::name`]'s.
    pub(crate) fn category(&self, encoded_interface: &str, category: &str) -> String {
        format!("{}/{encoded_interface}/{category}", self.root)
    }

    /// The node of one URL.
    pub(crate) fn url(&self, url: &Url) -> Result<String, RegistryError> {
        let name = Self::name(url)?;
        let category = url.category();
        if category.contains(['/', ',', '*']) {
            return Err(RegistryError::Invalid(format!(
                "{url} cannot be registered: its category must be one name, such as {}",
                keys::category::PROVIDERS
            )));
        }
        Ok(format!("{}/{}", self.category(&name, category), url.encoded()))
    }

    /// The name of the interface's node.
    pub(crate) fn name(url: &Url) -> Result<String, RegistryError> {
        match url.service_interface() {
            "" => Err(RegistryError::Invalid(format!(
                "{url} names no interface: give it as path or as parameter `{}`",
                keys::INTERFACE
            ))),
            interface => Ok(encode(interface)),
        }
    }
}

/// The categories that a subscription's URL asks for, each once; a registry has no others than [`ALL`].
pub(crate) fn categories(url: &Url) -> Vec<&str> {
    let wanted = url.category();
    if list_items(wanted).any(|item| item == keys::ANY) {
        return ALL.to_vec();
    }
    let mut categories: Vec<&str> = Vec::new();
    for item in list_items(wanted).filter(|item| ALL.contains(item)) {
        if !categories.contains(&item) {
            categories.push(item);
        }
    }
    if categories.is_empty() { vec![keys::category::PROVIDERS] } else { categories }
}

/// Whether the URL asks for every interface.
pub(crate) fn is_wildcard(url: &Url) -> bool {
    url.service_interface() == keys::ANY
}
