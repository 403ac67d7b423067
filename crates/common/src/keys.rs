//! Names of parameters, as they stand in URLs.
//!
//! Names are those of `CommonConstants`, `RegistryConstants` and the `Constants` classes of Dubbo 3.1.

// Identity of a service.
/// Name of the service interface.
pub const INTERFACE: &str = "interface";
/// Group of the service; on a consumer also a comma list or `*`.
pub const GROUP: &str = "group";
/// Version of the service; on a consumer also `*`.
pub const VERSION: &str = "version";
/// Path under which a service is exported, if not its interface.
pub const PATH: &str = "path";
/// Comma list of method names, sorted; `*` when there are none or any is allowed.
pub const METHODS: &str = "methods";
/// Version of the artifact that holds the interface.
pub const REVISION: &str = "revision";
/// Kind of generic call; absent or `false` for an ordinary one.
pub const GENERIC: &str = "generic";

// Where a URL comes from.
/// Name of the application that made the URL.
pub const APPLICATION: &str = "application";
/// Version of that application.
pub const APPLICATION_VERSION: &str = "application.version";
/// On a merged address: the application of the provider.
pub const REMOTE_APPLICATION: &str = "remote.application";
/// `provider` or `consumer`; any text is accepted.
pub const SIDE: &str = "side";
/// Version of the wire protocol, `2.0.2`.
pub const DUBBO: &str = "dubbo";
/// Version of the framework.
pub const RELEASE: &str = "release";
/// Process id.
pub const PID: &str = "pid";
/// When the URL was made, milliseconds since 1970.
pub const TIMESTAMP: &str = "timestamp";
/// Whether the provider listens on all interfaces.
pub const ANYHOST: &str = "anyhost";
/// Local address the server binds to. Never registered.
pub const BIND_IP: &str = "bind.ip";
/// Local port the server binds to. Never registered.
pub const BIND_PORT: &str = "bind.port";
/// Address to register instead of the detected one.
pub const REGISTER_IP: &str = "register.ip";
/// IPv6 address of the provider.
pub const IPV6: &str = "ipv6";
/// Tag of a provider instance; on a call, the tag asked for.
pub const TAG: &str = "dubbo.tag";
/// On a call: whether only providers with the tag may be used.
pub const FORCE_TAG: &str = "dubbo.force.tag";
/// Environment of the application.
pub const ENVIRONMENT: &str = "environment";
/// Port, as a parameter.
pub const PORT: &str = "port";
/// Host, as a parameter.
pub const HOST: &str = "host";
/// Protocol, as a parameter.
pub const PROTOCOL: &str = "protocol";
/// User, as a parameter.
pub const USERNAME: &str = "username";
/// Password, as a parameter.
pub const PASSWORD: &str = "password";

// Registration and discovery.
/// Which list of a service a URL belongs to; see [`category`].
pub const CATEGORY: &str = "category";
/// Further mark that must match; `*` when absent.
pub const CLASSIFIER: &str = "classifier";
/// Whether a missing provider or registry is an error at start. Default true.
pub const CHECK: &str = "check";
/// Whether the node goes away with its session. Default true.
pub const DYNAMIC: &str = "dynamic";
/// Whether the provider may be used. Default true.
pub const ENABLED: &str = "enabled";
/// Whether the provider must not be used; wins over `enabled`.
pub const DISABLED: &str = "disabled";
/// Whether to register. Default true.
pub const REGISTER: &str = "register";
/// Whether consumers use a registry. Default true.
pub const SUBSCRIBE: &str = "subscribe";
/// Whether to register short URLs. Default false.
pub const SIMPLIFIED: &str = "simplified";
/// Comma list of names kept in a short URL.
pub const EXTRA_KEYS: &str = "extra-keys";
/// `all`, `interface` or `instance`.
pub const REGISTER_MODE: &str = "register-mode";
/// On a `registry://` URL: the real protocol.
pub const REGISTRY: &str = "registry";
/// `service` for discovery by application.
pub const REGISTRY_TYPE: &str = "registry-type";
/// Overrides the protocol of a registry URL.
pub const REGISTRY_PROTOCOL_TYPE: &str = "registry-protocol-type";
/// Id of a registry among several.
pub const REGISTRY_CLUSTER: &str = "REGISTRY_CLUSTER";
/// Comma list of protocols a registry takes; `-x` excludes.
pub const ACCEPTS: &str = "accepts";
/// Whether the mapping from interface to application is published.
pub const SERVICE_NAME_MAPPING: &str = "service-name-mapping";
/// Applications that offer a service, fixed by the user.
pub const PROVIDED_BY: &str = "provided-by";
/// Applications to fall back to.
pub const SUBSCRIBED_SERVICES: &str = "subscribed-services";
/// Kind of discovery to use while both exist.
pub const MIGRATION_STEP: &str = "migration.step";
/// Share of addresses that makes discovery by application preferred.
pub const MIGRATION_THRESHOLD: &str = "migration.threshold";
/// Percentage of calls that use the preferred kind.
pub const MIGRATION_PROMOTION: &str = "migration.promotion";
/// Seconds to wait before a switch.
pub const MIGRATION_DELAY: &str = "migration.delay";
/// Whether to switch without looking.
pub const MIGRATION_FORCE: &str = "migration.force";
/// Whether an empty provider list is ignored.
pub const ENABLE_EMPTY_PROTECTION: &str = "enable-empty-protection";
/// Milliseconds notifications are gathered.
pub const DELAY_NOTIFICATION: &str = "delay-notification";
/// Milliseconds before a failed registry operation is tried again.
pub const RETRY_PERIOD: &str = "retry.period";
/// How often a failed registry operation is tried again.
pub const RETRY_TIMES: &str = "retry.times";
/// Session timeout of the registry, milliseconds.
pub const SESSION: &str = "session";
/// Comma list of further servers of a registry.
pub const BACKUP: &str = "backup";
/// File for the registry cache.
pub const FILE: &str = "file";
/// Whether cache files are used. Default true.
pub const FILE_CACHE: &str = "file.cache";
/// Whether cache files are written at once. Default false.
pub const SAVE_FILE: &str = "save.file";
/// Zone of a registry.
pub const ZONE: &str = "zone";
/// On a call: the zone asked for.
pub const REGISTRY_ZONE: &str = "registry_zone";
/// On a call: whether only that zone may be used.
pub const REGISTRY_ZONE_FORCE: &str = "registry_zone_force";
/// Whether a registry comes before others.
pub const PREFERRED: &str = "preferred";
/// `local` or `remote`.
pub const METADATA_TYPE: &str = "metadata-type";
/// Whether a changed server list is followed.
pub const ZOOKEEPER_ENSEMBLE_TRACKER: &str = "zookeeper.ensemble.tracker";

// Calls.
/// Milliseconds a call may take.
pub const TIMEOUT: &str = "timeout";
/// How often a failed call is tried on another provider. The consumer decides.
pub const RETRIES: &str = "retries";
/// Name of the load balancing strategy. The consumer decides.
pub const LOADBALANCE: &str = "loadbalance";
/// Name of the cluster strategy. The consumer decides.
pub const CLUSTER: &str = "cluster";
/// Whether to stay with one provider.
pub const STICKY: &str = "sticky";
/// Whether a chosen provider must be connected.
pub const AVAILABLE_CHECK: &str = "cluster.availablecheck";
/// What to answer instead of, or after a failed, call.
pub const MOCK: &str = "mock";
/// How many providers are called at once.
pub const FORKS: &str = "forks";
/// How many failed calls wait for another try.
pub const FAIL_BACK_TASKS: &str = "failbacktasks";
/// Share of calls relative to other providers.
pub const WEIGHT: &str = "weight";
/// Milliseconds after start in which the weight grows.
pub const WARMUP: &str = "warmup";
/// Connections of a reference's own; 0 to share.
pub const CONNECTIONS: &str = "connections";
/// How many connections are shared per address.
pub const SHARE_CONNECTIONS: &str = "shareconnections";
/// Whether to connect at the first call.
pub const LAZY: &str = "lazy";
/// Whether a call is asynchronous.
pub const ASYNC: &str = "async";
/// Whether to wait until a call is written.
pub const SENT: &str = "sent";
/// Whether an answer is wanted.
pub const RETURN: &str = "return";
/// Secret a provider wants to see.
pub const TOKEN: &str = "token";
/// Limit of calls a provider runs at once.
pub const EXECUTES: &str = "executes";
/// Limit of calls a consumer runs at once.
pub const ACTIVES: &str = "actives";
/// Limit of calls per interval.
pub const TPS: &str = "tps";
/// That interval, milliseconds.
pub const TPS_INTERVAL: &str = "tps.interval";
/// `local`, `remote` or `none`.
pub const SCOPE: &str = "scope";
/// Names of routers.
pub const ROUTER: &str = "router";
/// Text of a rule, encoded once more.
pub const RULE: &str = "rule";
/// Order of rules and configurators.
pub const PRIORITY: &str = "priority";
/// Whether a rule is evaluated per call.
pub const RUNTIME: &str = "runtime";
/// Whether a rule may leave no provider.
pub const FORCE: &str = "force";
/// How answers of several groups are joined.
pub const MERGER: &str = "merger";
/// Whether the service is on its way out.
pub const DEPRECATED: &str = "deprecated";
/// Which arguments consistent hashing looks at.
pub const HASH_ARGUMENTS: &str = "hash.arguments";
/// Virtual nodes per address for consistent hashing.
pub const HASH_NODES: &str = "hash.nodes";
/// Window of the shortest-response strategy, milliseconds.
pub const SHORTEST_RESPONSE_SLIDE_PERIOD: &str = "slide.period";
/// Filters of a consumer; joined on merging.
pub const REFERENCE_FILTER: &str = "reference.filter";
/// Filters of a provider.
pub const SERVICE_FILTER: &str = "service.filter";
/// Listeners of a consumer; joined on merging.
pub const INVOKER_LISTENER: &str = "invoker.listener";
/// Listeners of a provider.
pub const EXPORTER_LISTENER: &str = "exporter.listener";
/// Another rule for merging a consumer into a provider.
pub const URL_MERGE_PROCESSOR: &str = "url-merge-processor";
/// Always `false` on a consumer URL.
pub const UNLOAD_CLUSTER_RELATED: &str = "unloadClusterRelated";
/// Whether an application starts in the background.
pub const BACKGROUND: &str = "background";
/// Whether nested calls share the time of the outer one.
pub const ENABLE_TIMEOUT_COUNTDOWN: &str = "enable-timeout-countdown";
/// On a call: what is left of that time.
pub const TIMEOUT_COUNTDOWN: &str = "timeout-countdown";

// Connections.
/// Largest message, bytes.
pub const PAYLOAD: &str = "payload";
/// Milliseconds to connect.
pub const CONNECT_TIMEOUT: &str = "connect.timeout";
/// Milliseconds between heartbeats.
pub const HEARTBEAT: &str = "heartbeat";
/// Milliseconds of silence after which a connection is closed.
pub const HEARTBEAT_TIMEOUT: &str = "heartbeat.timeout";
/// Milliseconds between attempts to connect again; `false` for never.
pub const RECONNECT: &str = "reconnect";
/// Milliseconds after which an unused connection is closed.
pub const IDLE_TIMEOUT: &str = "idle.timeout";
/// Name of the codec.
pub const CODEC: &str = "codec";
/// Version of the codec.
pub const CODEC_VERSION: &str = "codec.version";
/// Name of the serialization.
pub const SERIALIZATION: &str = "serialization";
/// Serializations in order of preference.
pub const PREFER_SERIALIZATION: &str = "prefer.serialization";
/// Name of the exchanger.
pub const EXCHANGER: &str = "exchanger";
/// Name of the transporter.
pub const TRANSPORTER: &str = "transporter";
/// Name of the client transporter.
pub const CLIENT: &str = "client";
/// Name of the server transporter.
pub const SERVER: &str = "server";
/// Limit of connections of a server (same name as the registry's list).
pub const ACCEPTED_CONNECTIONS: &str = "accepts";
/// Whether a server announces its shutdown.
pub const CHANNEL_READONLY_SEND: &str = "channel.readonly.send";
/// Threads for input and output.
pub const IOTHREADS: &str = "iothreads";
/// Kind of thread pool.
pub const THREADPOOL: &str = "threadpool";
/// Name of the threads.
pub const THREADNAME: &str = "threadname";
/// Threads of a provider.
pub const THREADS: &str = "threads";
/// Threads kept when idle.
pub const CORE_THREADS: &str = "corethreads";
/// Length of the queue before the threads.
pub const QUEUES: &str = "queues";
/// Milliseconds an idle thread lives.
pub const ALIVE: &str = "alive";

// Configurators.
/// Version of the rule format.
pub const CONFIG_VERSION: &str = "configVersion";
/// Comma list of addresses a configurator is for.
pub const PROVIDER_ADDRESSES: &str = "providerAddresses";
/// Marks a configurator made from an old one.
pub const COMPATIBLE_CONFIG: &str = "compatible_config";
/// Marks the interface list of a registry's own service.
pub const INTERFACES: &str = "interfaces";

/// Prefix of a value that stands in for the plain name: `default.timeout` for `timeout`.
pub const DEFAULT_PREFIX: &str = "default.";
/// Prefix of names that are never registered.
pub const HIDDEN_PREFIX: &str = ".";
/// Prefix of names that are conditions of a configurator.
pub const CONDITION_PREFIX: &str = "~";
/// Stands for any value.
pub const ANY: &str = "*";
/// Host of a server that listens everywhere.
pub const ANYHOST_VALUE: &str = "0.0.0.0";

/// Names that concern a provider's own machine only: neither registered nor part of its metadata. Origin: `RegistryProtocol` and
/// `DefaultMetadataParamsFilter` of Dubbo 3.1.
pub const MACHINE_LOCAL: [&str; 9] = [
    "monitor",
    BIND_IP,
    BIND_PORT,
    "qos.enable",
    "qos.host",
    "qos.port",
    "qos.accept.foreign.ip",
    "validation",
    INTERFACES,
];

/// Values of [`CATEGORY`].
pub mod category {
    /// Addresses of providers. The default.
    pub const PROVIDERS: &str = "providers";
    /// Addresses of consumers.
    pub const CONSUMERS: &str = "consumers";
    /// Routing rules.
    pub const ROUTERS: &str = "routers";
    /// Overrides of parameters.
    pub const CONFIGURATORS: &str = "configurators";
    /// Overrides of one service from a configuration centre.
    pub const DYNAMIC_CONFIGURATORS: &str = "dynamicconfigurators";
    /// Overrides of one application from a configuration centre.
    pub const APP_DYNAMIC_CONFIGURATORS: &str = "appdynamicconfigurators";
    /// Routing rules from a configuration centre.
    pub const DYNAMIC_ROUTERS: &str = "dynamicrouters";
    /// What a consumer subscribes to.
    pub const ALL: &str = "providers,configurators,routers";
}

/// Values of [`SIDE`].
pub mod side {
    /// The side that exports.
    pub const PROVIDER: &str = "provider";
    /// The side that refers.
    pub const CONSUMER: &str = "consumer";
}

/// Protocols with a meaning of their own.
pub mod protocol {
    /// Says that a category has no entries.
    pub const EMPTY: &str = "empty";
    /// A configurator that overwrites.
    pub const OVERRIDE: &str = "override";
    /// A configurator that only adds.
    pub const ABSENT: &str = "absent";
    /// A routing rule.
    pub const ROUTE: &str = "route";
    /// A condition routing rule.
    pub const CONDITION: &str = "condition";
    /// A script routing rule.
    pub const SCRIPT: &str = "script";
    /// A provider that asks for its configurators.
    pub const PROVIDER: &str = "provider";
    /// A consumer.
    pub const CONSUMER: &str = "consumer";
    /// A registry with one entry per service.
    pub const REGISTRY: &str = "registry";
    /// A registry with one entry per application instance.
    pub const SERVICE_DISCOVERY_REGISTRY: &str = "service-discovery-registry";
    /// Calls within the process.
    pub const INJVM: &str = "injvm";
    /// Answers made up by the consumer.
    pub const MOCK: &str = "mock";
    /// The Dubbo protocol.
    pub const DUBBO: &str = "dubbo";
    /// ZooKeeper.
    pub const ZOOKEEPER: &str = "zookeeper";
}

/// Names that hold a dot without being a parameter of a method. Sorted.
const DOTTED_KEYS: &[&str] = &[
    APPLICATION_VERSION,
    BIND_IP,
    BIND_PORT,
    CHANNEL_READONLY_SEND,
    AVAILABLE_CHECK,
    CODEC_VERSION,
    CONNECT_TIMEOUT,
    FORCE_TAG,
    TAG,
    EXPORTER_LISTENER,
    FILE_CACHE,
    HASH_ARGUMENTS,
    HASH_NODES,
    HEARTBEAT_TIMEOUT,
    IDLE_TIMEOUT,
    INVOKER_LISTENER,
    MIGRATION_DELAY,
    MIGRATION_FORCE,
    MIGRATION_PROMOTION,
    MIGRATION_STEP,
    MIGRATION_THRESHOLD,
    PREFER_SERIALIZATION,
    "qos.accept.foreign.ip",
    "qos.enable",
    "qos.host",
    "qos.port",
    REFERENCE_FILTER,
    REGISTER_IP,
    REMOTE_APPLICATION,
    RETRY_PERIOD,
    RETRY_TIMES,
    SAVE_FILE,
    SERVICE_FILTER,
    SHORTEST_RESPONSE_SLIDE_PERIOD,
    TPS_INTERVAL,
    ZOOKEEPER_ENSEMBLE_TRACKER,
];

/// Whether `name` holds a dot and is known not to be `method.key`.
pub(crate) fn is_dotted_key(name: &str) -> bool {
    name.starts_with(HIDDEN_PREFIX)
        || name.starts_with(DEFAULT_PREFIX)
        || DOTTED_KEYS.binary_search(&name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::DOTTED_KEYS;

    #[test]
    fn dotted_names_are_sorted_for_lookup() {
        assert!(DOTTED_KEYS.is_sorted());
    }
}
