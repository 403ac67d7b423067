//! What the configuration says of one reference, one service, one protocol.

use dubhe_common::{keys, list_items};
use dubhe_config::{ProtocolConfig, ReferenceConfig, ServiceConfig};
use dubhe_core::error::{ErrorCode, RpcError};

use crate::application::Dubhe;
use crate::provider;

impl Dubhe {
    /// Settings of the reference of `interface` in the configuration.
    pub(crate) fn configured_reference(&self, interface: &str) -> ReferenceConfig {
        let references = &self.config().references;
        let by_interface = |one: &&ReferenceConfig| one.interface.as_deref() == Some(interface);
        let one = references.get(interface).or_else(|| references.values().find(by_interface));
        let mut one = one.cloned().unwrap_or_default();
        // What is no parameter of a URL; those have their defaults laid under them where the URL is made.
        let defaults = &self.config().consumer;
        one.register = one.register.or(defaults.register);
        one.registry = one.registry.or_else(|| defaults.registry.clone());
        one
    }

    /// Settings of the service `interface` in the configuration.
    pub(crate) fn configured_service(&self, interface: &str) -> ServiceConfig {
        let services = &self.config().services;
        let by_interface = |one: &&ServiceConfig| one.interface.as_deref() == Some(interface);
        let one = services.get(interface).or_else(|| services.values().find(by_interface));
        let mut one = one.cloned().unwrap_or_default();
        let defaults = &self.config().provider;
        one.register = one.register.or(defaults.register);
        one.registry = one.registry.or_else(|| defaults.registry.clone());
        one.protocol = one.protocol.or_else(|| defaults.protocol.clone());
        one.delay = one.delay.or(defaults.delay);
        one
    }

    /// The protocols that the comma list `ids` names; without one, all that are configured; without any, `dubbo` on its own port.
    pub(crate) fn protocol_configs(&self, ids: Option<&str>) -> Result<Vec<ProtocolConfig>, RpcError> {
        let config = self.config();
        let configured: Vec<(&str, &ProtocolConfig)> = config
            .protocol
            .iter()
            .map(|one| (one.name.as_deref().unwrap_or("dubbo"), one))
            .chain(config.protocols.iter().map(|(id, one)| (id.as_str(), one)))
            .collect();
        let Some(ids) = ids else {
            let all: Vec<_> = configured.into_iter().map(|(_, one)| one.clone()).collect();
            return Ok(if all.is_empty() {
                vec![ProtocolConfig::dubbo(provider::DEFAULT_PORT)]
            } else {
                all
            });
        };
        list_items(ids)
            .map(|id| match configured.iter().find(|(known, _)| *known == id) {
                Some((_, one)) => Ok((*one).clone()),
                None if configured.is_empty() && id == keys::protocol::DUBBO => {
                    Ok(ProtocolConfig::dubbo(provider::DEFAULT_PORT))
                }
                None => {
                    let known: Vec<&str> = configured.iter().map(|(id, _)| *id).collect();
                    let text = format!("unknown protocol id `{id}`: known are {}", known.join(", "));
                    Err(RpcError::new(ErrorCode::Unknown, text))
                }
            })
            .collect()
    }
}
