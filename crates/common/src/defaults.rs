//! Values that hold when a URL says nothing, and limits of this implementation.

use std::time::Duration;

// Calls. Origin: `CommonConstants` and the cluster `Constants` of Dubbo 3.1 unless a line says otherwise.

/// Time a call may take. Text: `timeout`, milliseconds. Origin: `DEFAULT_TIMEOUT`.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_millis(1_000);
/// Further attempts after a failed call. Text: `retries`. Origin: `DEFAULT_RETRIES`.
pub const DEFAULT_RETRIES: i64 = 2;
/// Load balancing strategy. Text: `loadbalance`. Origin: `DEFAULT_LOADBALANCE`.
pub const DEFAULT_LOADBALANCE: &str = "random";
/// Cluster strategy. Text: `cluster`. Origin: `Cluster.DEFAULT`.
pub const DEFAULT_CLUSTER: &str = "failover";
/// Share of calls, no unit. Text: `weight`. Origin: `DEFAULT_WEIGHT`.
pub const DEFAULT_WEIGHT: i64 = 100;
/// Time in which the weight of a new provider grows. Text: `warmup`, milliseconds. Origin: `DEFAULT_WARMUP`.
pub const DEFAULT_WARMUP: Duration = Duration::from_millis(600_000);
/// Providers called at once by forking. Text: `forks`. Origin: `DEFAULT_FORKS`.
pub const DEFAULT_FORKS: i64 = 2;
/// Failed calls that wait for another try. Text: `failbacktasks`. Origin: `DEFAULT_FAILBACK_TASKS`.
pub const DEFAULT_FAILBACK_TASKS: i64 = 100;
/// Tries of a failed call by failback. Text: `retries`. Origin: `DEFAULT_FAILBACK_TIMES`.
pub const DEFAULT_FAILBACK_TIMES: i64 = 3;
/// Interval of the limit `tps`. Text: `tps.interval`, milliseconds. Origin: `DEFAULT_TPS_LIMIT_INTERVAL`.
pub const DEFAULT_TPS_INTERVAL: Duration = Duration::from_millis(60_000);
/// Version of the wire protocol. Text: `dubbo`. Origin: `Version.DEFAULT_DUBBO_PROTOCOL_VERSION`.
pub const DUBBO_VERSION: &str = "2.0.2";

// Connections. Origin: `Constants` of the remoting layer.

/// Largest message in bytes. Text: `payload`. Origin: `DEFAULT_PAYLOAD` (8 MiB).
pub const DEFAULT_PAYLOAD: usize = 8 * 1024 * 1024;
/// Time to connect. Text: `connect.timeout`, milliseconds. Origin: `DEFAULT_CONNECT_TIMEOUT`.
pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_millis(3_000);
/// Time between heartbeats. Text: `heartbeat`, milliseconds. Origin: `DEFAULT_HEARTBEAT`.
pub const DEFAULT_HEARTBEAT: Duration = Duration::from_millis(60_000);
/// Heartbeats missed before a connection is closed, when `heartbeat.timeout` is absent. Origin: `UrlUtils`.
pub const DEFAULT_HEARTBEAT_MISSES: u32 = 3;
/// Time between attempts to connect again. Text: `reconnect`, milliseconds. Origin: `DEFAULT_RECONNECT_PERIOD`.
pub const DEFAULT_RECONNECT_PERIOD: Duration = Duration::from_millis(2_000);
/// Time after which an unused connection is closed. Text: `idle.timeout`, milliseconds. Origin: `DEFAULT_IDLE_TIMEOUT`.
pub const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_millis(600_000);
/// Threads (here: calls at once) of a provider. Text: `threads`. Origin: `DEFAULT_THREADS`.
pub const DEFAULT_THREADS: usize = 200;
/// Calls that wait for a free thread. Text: `queues`. Origin: `DEFAULT_QUEUES`.
pub const DEFAULT_QUEUES: usize = 0;
/// Time a server waits for running calls when it stops. Property `dubbo.service.shutdown.wait`, milliseconds.
/// Origin: `DEFAULT_SERVER_SHUTDOWN_TIMEOUT`.
pub const DEFAULT_SHUTDOWN_WAIT: Duration = Duration::from_millis(10_000);
/// Port of the Dubbo protocol. Origin: `DubboProtocol.DEFAULT_PORT`.
pub const DEFAULT_DUBBO_PORT: u16 = 20_880;

// Registries. Origin: `RegistryConstants` and the registry `Constants`.

/// Category of a URL that names none. Origin: `DEFAULT_CATEGORY`.
pub const DEFAULT_CATEGORY: &str = "providers";
/// Root of the tree. Text: `group` of the registry URL. Origin: `ZookeeperRegistry.DEFAULT_ROOT`.
pub const DEFAULT_REGISTRY_GROUP: &str = "dubbo";
/// Path of a registry URL. Origin: the name of the class `RegistryService`.
pub const REGISTRY_SERVICE: &str = "org.apache.dubbo.registry.RegistryService";
/// Port of a registry address that names none. Origin: `UrlUtils.parseURL`.
pub const DEFAULT_REGISTRY_PORT: u16 = 9_090;
/// Port of ZooKeeper, for its backup servers. Origin: ZooKeeper's own default.
pub const DEFAULT_ZOOKEEPER_PORT: u16 = 2_181;
/// Time to reach a registry. Text: `timeout` of the registry URL, milliseconds. Origin: `DEFAULT_CONNECTION_TIMEOUT_MS`.
pub const DEFAULT_REGISTRY_TIMEOUT: Duration = Duration::from_millis(30_000);
/// Session of ZooKeeper. Text: `session`, milliseconds. Origin: `DEFAULT_SESSION_TIMEOUT_MS`.
pub const DEFAULT_SESSION_TIMEOUT: Duration = Duration::from_millis(60_000);
/// Time before a failed registry operation is tried again. Text: `retry.period`, milliseconds.
/// Origin: `DEFAULT_REGISTRY_RETRY_PERIOD`.
pub const DEFAULT_RETRY_PERIOD: Duration = Duration::from_millis(5_000);
/// Time notifications are gathered. Text: `delay-notification`, milliseconds. Origin: `DEFAULT_DELAY_NOTIFICATION_TIME`.
pub const DEFAULT_DELAY_NOTIFICATION: Duration = Duration::from_millis(5_000);

// Limits of this implementation; Dubbo Java has none.

/// Longest text of a URL in bytes: what one ZooKeeper packet can carry (`jute.maxbuffer`, 1 MiB).
pub const MAX_URL_BYTES: usize = 1024 * 1024;
/// Most parameters of one URL: a service of a thousand methods with a handful of settings each.
pub const MAX_URL_PARAMS: usize = 8_192;
