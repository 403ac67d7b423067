//! The URLs that providers and consumers put into a registry, and those they subscribe with.
//!
//! Pure functions over URLs. What they make is what other members of the fleet read: names, order and values are those
//! of Dubbo, for each of its releases (`RegistryProtocol.getUrlToRegistry`, `DynamicDirectory`).

use dubhe_common::{Url, keys, list_items};

/// Which release's habits a registered URL follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// 2.7.
    Dubbo27,
    /// 3.1. The default: every later and earlier release reads it.
    #[default]
    Dubbo31,
    /// 3.3: leaves out the process id and settings of the provider's threads.
    Dubbo33,
}

/// How URLs are written into one registry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Form {
    dialect: Dialect,
    simplified: bool,
    extra_keys: Vec<String>,
}

impl Form {
    /// Everything, as a release writes it.
    pub fn full(dialect: Dialect) -> Self {
        Self { dialect, ..Self::default() }
    }

    /// Only what others need, and `extra_keys`.
    pub fn simplified(dialect: Dialect, extra_keys: &[&str]) -> Self {
        Self {
            dialect,
            simplified: true,
            extra_keys: extra_keys.iter().map(|key| (*key).to_owned()).collect(),
        }
    }

    /// As the registry's URL says: `simplified` (default false) and `extra-keys`.
    pub fn of_registry(registry: &Url, dialect: Dialect) -> Self {
        Self {
            dialect,
            simplified: registry.bool_param(keys::SIMPLIFIED, false),
            extra_keys: registry.list_param(keys::EXTRA_KEYS).into_iter().map(str::to_owned).collect(),
        }
    }
}

/// Names that 3.3 does not register either.
const LOCAL_33: [&str; 12] = [
    keys::REGISTER_MODE,
    keys::PID,
    keys::FILE_CACHE,
    "executor-management-mode",
    keys::BACKGROUND,
    keys::ANYHOST,
    keys::THREADNAME,
    keys::THREADPOOL,
    keys::ALIVE,
    keys::QUEUES,
    keys::CORE_THREADS,
    keys::THREADS,
];

/// Names a simplified provider keeps.
const KEPT: [&str; 18] = [
    keys::APPLICATION,
    keys::CODEC,
    keys::EXCHANGER,
    keys::SERIALIZATION,
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
];

/// Further names a simplified provider keeps, in any release.
const KEPT_TOO: [&str; 2] = [keys::SIDE, keys::IPV6];

/// Further names a simplified provider keeps in 3.3.
const KEPT_33: [&str; 6] = [
    keys::PREFER_SERIALIZATION,
    "serialize.packable.factory",
    "auth",
    "authenticator",
    keys::USERNAME,
    keys::PASSWORD,
];

/// Names a simplified consumer keeps.
const KEPT_OF_CONSUMER: [&str; 5] =
    [keys::APPLICATION, keys::VERSION, keys::GROUP, keys::DUBBO, keys::RELEASE];

/// What a provider registers: the exported URL without what only concerns its own machine.
pub fn registered_provider_url(provider: &Url, form: &Form) -> Url {
    if form.simplified { simplified_provider(provider, form) } else { full_provider(provider, form.dialect) }
}

/// What a consumer registers: `category=consumers`, and `check=false` whatever the user asked for.
pub fn registered_consumer_url(consumer: &Url, form: &Form) -> Url {
    let url = url_to_registry(consumer);
    let url = if form.simplified {
        url.retain_params(|name, value| KEPT_OF_CONSUMER.contains(&name) && !value.is_empty())
    } else {
        url
    };
    url.with_params([(keys::CATEGORY, keys::category::CONSUMERS), (keys::CHECK, "false")])
}

/// Whether a consumer registers at all: not one of every interface, not where the registry says `register=false`, and
/// not without an address of its own.
pub fn registers_consumer(consumer: &Url, registry: &Url) -> bool {
    consumer.service_interface() != keys::ANY
        && registry.bool_param(keys::REGISTER, true)
        && !url_to_registry(consumer).host().is_empty()
}

/// What a consumer subscribes with: providers and rules, the user's `check` as it is.
pub fn subscribe_url(consumer: &Url) -> Url {
    url_to_registry(consumer).with_param(keys::CATEGORY, keys::category::ALL)
}

/// What a provider subscribes with, to learn which of its parameters are overridden.
pub fn override_subscribe_url(provider: &Url) -> Url {
    provider
        .with_protocol(keys::protocol::PROVIDER)
        .with_params([(keys::CATEGORY, keys::category::CONFIGURATORS), (keys::CHECK, "false")])
}

/// A consumer as it appears in a registry: `consumer://<register.ip>/<interface>`, without a port.
fn url_to_registry(consumer: &Url) -> Url {
    let host = consumer.param(keys::REGISTER_IP).unwrap_or(consumer.host());
    let interface = consumer.service_interface();
    consumer.to_builder().host(host).port(0).path(interface).without_param(keys::REGISTER_IP).build()
}

fn full_provider(provider: &Url, dialect: Dialect) -> Url {
    provider.retain_params(|name, _| {
        let local = name.starts_with(keys::HIDDEN_PREFIX) || keys::MACHINE_LOCAL.contains(&name);
        let local_33 = name.starts_with("triple.") || LOCAL_33.contains(&name);
        !local && (dialect != Dialect::Dubbo33 || !local_33)
    })
}

/// A parameter stays when its name starts with a method's, without regard to a dot: Dubbo's own test, a superset of
/// the methods' parameters.
fn simplified_provider(provider: &Url, form: &Form) -> Url {
    let methods: Vec<&str> =
        provider.param(keys::METHODS).map(|list| list_items(list).collect()).unwrap_or_default();
    let names_interface = provider.path().is_some_and(|path| Some(path) != provider.param(keys::INTERFACE));
    provider.retain_params(|name, value| {
        !value.is_empty()
            && (KEPT.contains(&name)
                || KEPT_TOO.contains(&name)
                || (form.dialect == Dialect::Dubbo33 && KEPT_33.contains(&name))
                || form.extra_keys.iter().any(|key| key == name)
                || (names_interface && name == keys::INTERFACE)
                || methods.iter().any(|method| name.starts_with(method)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn a_provider_keeps_what_its_machine_does_not_own() {
        let provider = url(
            "dubbo://192.0.2.1:20880/demo.Foo?.hidden=1&bind.ip=0.0.0.0&bind.port=1&qos.enable=false&qos.port=2&\
             qos.host=h&qos.accept.foreign.ip=true&monitor=m&validation=true&interfaces=x&timeout=5&pid=7&threads=9&triple.x=1",
        );
        let rows = [
            (Dialect::Dubbo27, "pid=7&threads=9&timeout=5&triple.x=1"),
            (Dialect::Dubbo31, "pid=7&threads=9&timeout=5&triple.x=1"),
            (Dialect::Dubbo33, "timeout=5"),
        ];
        for (dialect, expected) in rows {
            let registered = registered_provider_url(&provider, &Form::full(dialect));
            assert_eq!(registered.to_parameter_string(), expected, "{dialect:?}");
        }
    }

    #[test]
    fn a_simplified_provider_keeps_what_consumers_need() {
        let provider = url(
            "dubbo://192.0.2.1:20880/ctx/demo.Foo?interface=demo.Foo&application=a&timeout=5&pid=7&side=provider&\
             methods=say,go&say.timeout=9&gone=1&owner=me&mine=2&token=&username=u&timestamp=3",
        );
        let registry = url("zookeeper://192.0.2.2:2181?simplified=true&extra-keys=mine");
        let rows = [(Dialect::Dubbo31, ""), (Dialect::Dubbo33, "&username=u")];
        for (dialect, more) in rows {
            let registered = registered_provider_url(&provider, &Form::of_registry(&registry, dialect));
            assert_eq!(
                registered.to_full_string(),
                format!(
                    "dubbo://192.0.2.1:20880/ctx/demo.Foo?application=a&gone=1&interface=demo.Foo&mine=2&\
                     say.timeout=9&side=provider&timeout=5{more}"
                )
            );
        }
        let same_path = provider.with_path("demo.Foo");
        let registered = registered_provider_url(&same_path, &Form::simplified(Dialect::Dubbo31, &[]));
        assert_eq!(registered.raw_param("interface"), None);
    }

    // C103
    #[test]
    fn a_consumer_registers_with_its_own_address_and_without_a_port() {
        let consumer = url(
            "consumer://192.0.2.9/demo.Foo?interface=demo.Foo&register.ip=192.0.2.8&check=true&version=1&a=b",
        );
        assert_eq!(
            registered_consumer_url(&consumer, &Form::default()).to_full_string(),
            "consumer://192.0.2.8/demo.Foo?a=b&category=consumers&check=false&interface=demo.Foo&version=1"
        );
        assert_eq!(
            registered_consumer_url(&consumer, &Form::simplified(Dialect::Dubbo31, &[])).to_full_string(),
            "consumer://192.0.2.8/demo.Foo?category=consumers&check=false&version=1"
        );
        assert_eq!(
            subscribe_url(&consumer).to_full_string(),
            "consumer://192.0.2.8/demo.Foo?a=b&category=providers,configurators,routers&check=true&interface=demo.Foo&version=1"
        );
    }

    // C103
    #[test]
    fn a_consumer_without_an_address_or_of_every_interface_does_not_register() {
        let registry = url("zookeeper://192.0.2.2:2181");
        assert!(registers_consumer(&url("consumer://192.0.2.9/demo.Foo"), &registry));
        assert!(!registers_consumer(&url("consumer:///demo.Foo"), &registry));
        assert!(!registers_consumer(&url("consumer://192.0.2.9/*?interface=*"), &registry));
        assert!(!registers_consumer(
            &url("consumer://192.0.2.9/demo.Foo"),
            &registry.with_param("register", "false")
        ));
    }

    #[test]
    fn a_provider_subscribes_to_its_overrides() {
        let provider = url("dubbo://192.0.2.1:20880/demo.Foo?check=true");
        assert_eq!(
            override_subscribe_url(&provider).to_full_string(),
            "provider://192.0.2.1:20880/demo.Foo?category=configurators&check=false"
        );
    }
}
