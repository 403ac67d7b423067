//! The URL of a provider.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};

use dubhe_common::address::connect_host;
use dubhe_common::{Url, defaults, keys};
use dubhe_config::{DubboConfig, ProtocolConfig, ServiceConfig};
use dubhe_core::service::ServiceDefinition;

use crate::consumer::{runtime, with_revision};

/// All interfaces, of IPv4 only.
const ANY_HOST: &str = "0.0.0.0";

/// All interfaces, of IPv4 too where the system can do that.
const ANY_HOST_V6: &str = "::";

/// The provider's URL: what all its settings come from, later ones over earlier ones: application, protocol, defaults of all
/// services, this service. `host` is the address to register; the configured port may be 0.
pub(crate) fn url(
    config: &DubboConfig,
    protocol: &ProtocolConfig,
    service: &ServiceConfig,
    definition: &ServiceDefinition,
    host: &str,
    default_port: u16,
) -> Url {
    let interface = definition.interface();
    let mut params: BTreeMap<String, String> = config.application.url_params();
    params.extend(protocol.url_params());
    params.extend(config.provider.url_params());
    params.extend(service.url_params());
    if params.get(keys::TOKEN).is_some_and(|token| token == "true" || token == "default") {
        params.insert(keys::TOKEN.to_owned(), random_token());
    }
    let port = match protocol.port {
        None => default_port,
        Some(port) => u16::try_from(port).unwrap_or(0),
    };
    let bind = bind_host(protocol.host.as_deref(), host);
    let path = service.path.as_deref().unwrap_or(interface);
    let mut url = Url::builder(protocol.name.as_deref().unwrap_or(keys::protocol::DUBBO), host, port)
        .path(path)
        .param(keys::BACKGROUND, false)
        .param(keys::DEPRECATED, false)
        .param(keys::DYNAMIC, true)
        .param(keys::GENERIC, false)
        .params(params)
        .params(runtime())
        .param(keys::SIDE, keys::side::PROVIDER)
        .param(keys::INTERFACE, interface)
        .param(keys::METHODS, definition.method_list())
        .param(keys::BIND_IP, bind)
        .param(keys::BIND_PORT, port);
    if is_any(bind) {
        url = url.param(keys::ANYHOST, true);
    }
    with_revision(url.build())
}

/// The address to listen on: what is configured, else all interfaces; those of IPv6 too when `registered` is an address of it.
fn bind_host<'a>(configured: Option<&'a str>, registered: &str) -> &'a str {
    let configured = configured.unwrap_or(ANY_HOST);
    let is_v6 = connect_host(registered).parse::<std::net::Ipv6Addr>().is_ok();
    if is_v6 && is_any(configured) { ANY_HOST_V6 } else { configured }
}

/// Whether `host` stands for all interfaces.
pub(crate) fn is_any(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_unspecified())
}

/// The port of a protocol whose configuration names none.
pub(crate) const DEFAULT_PORT: u16 = defaults::DEFAULT_DUBBO_PORT;

/// A token that nobody guesses without reading the registry: 128 random bits.
fn random_token() -> String {
    // The keys of these hashers come from the operating system, and the hash keeps them secret.
    let part = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", part(), part())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_interfaces_are_no_address_to_register() {
        for host in ["0.0.0.0", "::", "[::]"] {
            assert!(is_any(host), "{host}");
        }
        for host in ["127.0.0.1", "::1", "greeter.example", ""] {
            assert!(!is_any(host), "{host}");
        }
    }

    #[test]
    fn what_is_registered_is_listened_on() {
        for (configured, registered, bound) in [
            (None, "192.0.2.1", "0.0.0.0"),
            (None, "provider.example", "0.0.0.0"),
            (None, "[2001:db8::1]", "::"),
            (Some("0.0.0.0"), "2001:db8::1", "::"),
            (Some("0.0.0.0"), "192.0.2.1", "0.0.0.0"),
            (Some("::"), "192.0.2.1", "::"),
            (Some("127.0.0.1"), "[2001:db8::1]", "127.0.0.1"),
            (Some("::1"), "::1", "::1"),
        ] {
            assert_eq!(bind_host(configured, registered), bound, "{configured:?}, {registered}");
        }
    }

    #[test]
    fn random_tokens_are_long_and_differ() {
        let (one, other) = (random_token(), random_token());
        assert_eq!(one.len(), 32);
        assert_ne!(one, other);
    }
}
