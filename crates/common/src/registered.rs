//! What of a URL is written to a registry, and what a consumer subscribes with.

use crate::keys;
use crate::matching::{list_contains, list_items};
use crate::url::Url;

/// Names of a provider that are of its own machine only. Origin: `RegistryProtocol` of Dubbo 3.1.
const LOCAL_TO_PROVIDER: [&str; 9] = [
    "monitor",
    keys::BIND_IP,
    keys::BIND_PORT,
    "qos.enable",
    "qos.host",
    "qos.port",
    "qos.accept.foreign.ip",
    "validation",
    keys::INTERFACES,
];

/// Names a short provider URL keeps. Origin: `RegistryProtocol` of Dubbo 3.1, with `prefer.serialization` of 3.3.
const SHORT_PROVIDER: [&str; 21] = [
    keys::APPLICATION,
    keys::CODEC,
    keys::EXCHANGER,
    keys::SERIALIZATION,
    keys::PREFER_SERIALIZATION,
    keys::CLUSTER,
    keys::CONNECTIONS,
    keys::DEPRECATED,
    keys::GROUP,
    keys::LOADBALANCE,
    keys::MOCK,
    keys::PATH,
    keys::TIMEOUT,
    keys::TOKEN,
    keys::VERSION,
    keys::WARMUP,
    keys::WEIGHT,
    keys::DUBBO,
    keys::RELEASE,
    keys::SIDE,
    keys::IPV6,
];

/// Names a short consumer URL keeps. Origin: `RegistryProtocol` of Dubbo 3.1.
const SHORT_CONSUMER: [&str; 5] = [keys::APPLICATION, keys::VERSION, keys::GROUP, keys::DUBBO, keys::RELEASE];

/// The URL of a provider as it is registered: without hidden names and what concerns only its machine, or, if
/// `registry` has `simplified=true`, with the few names a consumer needs and those of `extra-keys`.
pub fn provider_to_register(provider: &Url, registry: &Url) -> Url {
    if !registry.bool_param(keys::SIMPLIFIED, false) {
        return provider.retain_params(|name, _| {
            !name.starts_with(keys::HIDDEN_PREFIX) && !LOCAL_TO_PROVIDER.contains(&name)
        });
    }
    let methods = provider.list_param(keys::METHODS);
    let extra = registry.param_or(keys::EXTRA_KEYS, "");
    let interface_needed = provider.path() != provider.param(keys::INTERFACE);
    provider.retain_params(|name, value| {
        // A name that starts with that of a method may be a setting of it; the prefix alone decides, as in Java.
        let of_method = || methods.iter().any(|method| name.starts_with(method));
        !value.is_empty()
            && !name.starts_with(keys::HIDDEN_PREFIX)
            && (SHORT_PROVIDER.contains(&name)
                || list_contains(extra, name)
                || (name == keys::INTERFACE && interface_needed)
                || of_method())
    })
}

/// The consumer URL with `register.ip` as its host and without a port: what the two below are made of.
pub fn consumer_for_registry(consumer: &Url) -> Url {
    let builder = match consumer.param(keys::REGISTER_IP) {
        Some(host) => consumer.to_builder().host(host),
        None => consumer.to_builder(),
    };
    builder.port(0).without_param(keys::REGISTER_IP).build()
}

/// The URL of a consumer as it is registered.
pub fn consumer_to_register(consumer: &Url, registry: &Url) -> Url {
    let url = consumer_for_registry(consumer);
    let url = if registry.bool_param(keys::SIMPLIFIED, false) {
        url.retain_params(|name, value| !value.is_empty() && SHORT_CONSUMER.contains(&name))
    } else {
        url
    };
    url.with_params([(keys::CATEGORY, keys::category::CONSUMERS), (keys::CHECK, "false")])
}

/// The URL a consumer subscribes with: all categories it listens to.
pub fn consumer_to_subscribe(consumer: &Url) -> Url {
    consumer_for_registry(consumer).with_param(keys::CATEGORY, keys::category::ALL)
}

/// The URL a provider subscribes with for rules about itself.
pub fn provider_to_subscribe(provider: &Url) -> Url {
    provider
        .with_protocol(keys::protocol::PROVIDER)
        .with_params([(keys::CATEGORY, keys::category::CONFIGURATORS), (keys::CHECK, "false")])
}

/// Whether a registry with this `accepts` takes URLs of a protocol: a comma list of names, `-name` excludes; names
/// win over exclusions.
pub fn accepts_protocol(registry: &Url, protocol: &str) -> bool {
    let Some(accepts) = registry.param(keys::ACCEPTS) else { return true };
    let (excluded, accepted): (Vec<&str>, Vec<&str>) =
        list_items(accepts).partition(|item| item.starts_with('-'));
    if accepted.is_empty() {
        return !excluded.iter().any(|item| item.strip_prefix('-') == Some(protocol));
    }
    accepted.contains(&protocol)
}
