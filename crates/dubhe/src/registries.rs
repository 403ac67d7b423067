//! From registry configuration to open registries.

use std::collections::BTreeMap;
use std::sync::Arc;

use dubhe_common::{Url, keys, parse_registry_address};
use dubhe_config::{DubboConfig, RegistryConfig};
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::registry::{Registry, RegistryFactory};
use dubhe_registry::MEMORY;

use crate::extensions::Extensions;

/// Id of a registry that the configuration gives none.
const DEFAULT_ID: &str = "default";

/// The open registries of an application, by the id in its configuration.
#[derive(Debug, Default)]
pub(crate) struct Registries(Vec<(String, Arc<dyn Registry>)>);

impl Registries {
    /// Opens what `config` names; connections are made in the background.
    pub(crate) fn open(config: &DubboConfig, extensions: &Extensions) -> Result<Self, RpcError> {
        let trees = extensions.tree_registries();
        let single = config.registry.iter().map(|one| (DEFAULT_ID, one));
        let several = config.registries.iter().map(|(id, one)| (id.as_str(), one));
        let mut open = Vec::new();
        for (id, registry) in single.chain(several) {
            for url in urls(registry, &config.application.name)? {
                let registry = if extensions.registries.contains(url.protocol()) {
                    let factory =
                        extensions.registries.get(url.protocol()).map_err(|unknown| invalid(&unknown))?;
                    factory.open(&url)
                } else {
                    extensions.trees.get(url.protocol()).map_err(|unknown| invalid(&unknown))?;
                    trees.open(&url)
                };
                open.push((id.to_owned(), registry.map_err(|error| invalid(&error))?));
            }
        }
        Ok(Self(open))
    }

    /// Those that the comma list `ids` names (all without one) and that `key` (`register`, `subscribe`) is not false for.
    pub(crate) fn chosen(&self, ids: Option<&str>, key: &str) -> Result<Vec<Arc<dyn Registry>>, RpcError> {
        let wanted: Option<Vec<&str>> = ids.map(|ids| dubhe_common::list_items(ids).collect());
        for id in wanted.iter().flatten() {
            if !self.0.iter().any(|(known, _)| known == id) {
                let known: Vec<&str> = self.0.iter().map(|(id, _)| id.as_str()).collect();
                return Err(invalid(&format!("unknown registry id `{id}`: known are {}", known.join(", "))));
            }
        }
        let chosen = self.0.iter().filter(|(id, registry)| {
            wanted.as_ref().is_none_or(|wanted| wanted.contains(&id.as_str()))
                && registry.url().bool_param(key, true)
        });
        Ok(chosen.map(|(_, registry)| Arc::clone(registry)).collect())
    }

    /// `host:port` of the first one that is not in this process, to find the own address towards it.
    pub(crate) fn first_address(&self) -> Option<String> {
        self.0
            .iter()
            .map(|(_, registry)| registry.url())
            .find(|url| url.protocol() != MEMORY)
            .map(Url::address)
    }

    pub(crate) fn first(&self) -> Option<Arc<dyn Registry>> {
        self.0.first().map(|(_, registry)| Arc::clone(registry))
    }

    pub(crate) async fn close(&self) {
        for (_, registry) in &self.0 {
            registry.close().await;
        }
    }
}

/// The URLs of one configured registry; none for `N/A`.
fn urls(config: &RegistryConfig, application: &str) -> Result<Vec<Url>, RpcError> {
    if config.address.trim().is_empty() {
        return Err(invalid(
            &"a registry has no address: set `dubbo.registry.address`, e.g. zookeeper://127.0.0.1:2181, or N/A",
        ));
    }
    let params: BTreeMap<String, String> = config.url_params();
    let port = config.port.unwrap_or(dubhe_common::defaults::DEFAULT_ZOOKEEPER_PORT);
    let mut defaults =
        Url::builder(config.protocol.as_deref().unwrap_or(keys::protocol::ZOOKEEPER), "", port)
            .param(keys::APPLICATION, application)
            .params(params);
    if let Some(user) = &config.username {
        defaults = defaults.user(user);
    }
    if let Some(password) = &config.password {
        defaults = defaults.password(password);
    }
    let urls = parse_registry_address(&config.address, &defaults.build()).map_err(|error| invalid(&error))?;
    Ok(urls.into_iter().map(|url| url.with_path(dubhe_common::defaults::REGISTRY_SERVICE)).collect())
}

fn invalid(error: &dyn std::fmt::Display) -> RpcError {
    RpcError::new(ErrorCode::Registry, format!("the registry configuration cannot be used: {error}"))
}
