//! One consumer of many interfaces, all of one application with many instances: how much does it hold, how soon can it call, and
//! what does one more instance cost? By both models of discovery, on the same tree in memory.
//!
//! Providers' nodes are made before anything is measured. All runs on one thread, so that what is counted and timed is the
//! consumer's work. Invokers do nothing and connect to nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use bytes::Bytes;
use dubhe_common::{Url, keys};
use dubhe_core::directory::{Directory, DirectoryStatus};
use dubhe_core::discovery::ServiceInstance;
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::invocation::Invocation;
use dubhe_core::mapping::ServiceNameMapping;
use dubhe_core::metadata::{MetadataClient, MetadataInfo, MetadataReport};
use dubhe_core::registry::Registry;
use dubhe_core::tree::{NodeKind, Tree};
use dubhe_directory::{RegistryDirectory, RegistryDirectoryParts};
use dubhe_discovery::{
    InstanceListeners, MetadataCache, MetadataSource, OwnInstance, OwnMetadata, ServiceDiscovery,
    ServiceDiscoveryRegistry, ServiceDiscoveryRegistryParts, TreeMetadataReport, TreeServiceDiscovery,
    TreeServiceNameMapping,
};
use dubhe_registry::{MemoryStore, TreeRegistry};
use dubhe_router::Chain;
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::doubles::{consumer, protocols, provider_text};
use crate::measure::resident_bytes;

/// The application that provides everything.
const APPLICATION: &str = "order-provider";
/// The interface of [`provider_text`], in whose place each of the many stands.
const INTERFACE: &str = "dev.dubhe.bench.OrderService";
/// Of the registry: a join is not held back although ten came before it, and addresses are kept in memory only.
const REGISTRY: &str = "memory://local?delay-notification=0&file.cache=false";

/// How a consumer finds addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Each provider registers each of its interfaces.
    Interface,
    /// Each instance registers once, its interfaces stand in the metadata of its revision.
    Application,
}

/// Interfaces, and instances that provide all of them.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// How many interfaces the consumer refers to.
    pub interfaces: usize,
    /// How many instances provide them.
    pub instances: usize,
}

/// What was measured of one consumer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// Resident bytes per (interface, instance), after a call on each interface.
    pub resident: f64,
    /// Bytes on the heap per (interface, instance), after a call on each interface.
    pub held: f64,
    /// Nanoseconds from nothing until the first interface can be routed to all instances.
    pub first_ns: f64,
    /// Nanoseconds from nothing until all of them can; they come up one after the other.
    pub all_ns: f64,
    /// Instances that joined, one after the other.
    pub joins: Vec<Join>,
}

/// One instance that joined: from the registry's notice until all interfaces are routed to it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Join {
    /// Nanoseconds.
    pub ns: f64,
    /// Allocations.
    pub allocations: f64,
    /// Bytes allocated.
    pub bytes: f64,
}

/// Measures a consumer that comes up, and `rounds` instances that join. To be called once in a process, for the memory.
pub fn measure(model: Model, size: Size, rounds: usize) -> Result<Figures> {
    let mut fleet = Fleet::new(model, size)?;
    let mut figures = fleet.come_up()?;
    for _ in 0..rounds {
        figures.joins.push(fleet.join()?);
        fleet.leave()?;
    }
    Ok(figures)
}

/// The providers, and the consumer.
pub struct Fleet {
    runtime: Runtime,
    model: Model,
    size: Size,
    store: MemoryStore,
    providers: Arc<dyn Tree>,
    /// The nodes of one more instance.
    joining: Vec<(String, Bytes)>,
    directories: Vec<Arc<RegistryDirectory>>,
    statuses: Vec<watch::Receiver<DirectoryStatus>>,
}

impl Fleet {
    /// Registered providers and no consumer yet.
    pub fn new(model: Model, size: Size) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let store = MemoryStore::new();
        let providers = store.connect();
        let joining = runtime.block_on(async {
            match model {
                Model::Interface => register_interfaces(&*providers, size).await,
                Model::Application => register_instances(&providers, size).await,
            }
        })?;
        let (directories, statuses) = Default::default();
        Ok(Self { runtime, model, size, store, providers, joining, directories, statuses })
    }

    /// The consumer comes up.
    pub fn come_up(&mut self) -> Result<Figures> {
        let resident = resident_bytes();
        let (mut times, mut outcome) = (None, Ok(()));
        let counted = allocation_counter::measure(|| match self.refer_all() {
            Ok(measured) => {
                times = Some(measured);
                outcome = self.call_all();
            }
            Err(error) => outcome = Err(error),
        });
        outcome?;
        let (first, all) = times.context("all interfaces were referred to")?;
        let pairs = (self.size.interfaces * self.size.instances) as f64;
        Ok(Figures {
            resident: resident_bytes().saturating_sub(resident) as f64 / pairs,
            held: counted.bytes_current as f64 / pairs,
            first_ns: first.as_nanos() as f64,
            all_ns: all.as_nanos() as f64,
            joins: Vec::new(),
        })
    }

    /// One more instance registers. Its nodes are there, and the consumer's session is told, before the measuring starts.
    pub fn join(&mut self) -> Result<Join> {
        for (path, data) in &self.joining {
            self.providers.ensure(path, data.clone(), NodeKind::Ephemeral);
        }
        let mut outcome = Ok(Duration::ZERO);
        let counted = allocation_counter::measure(|| {
            let start = Instant::now();
            outcome = self.wait_for(self.size.instances + 1).map(|()| start.elapsed());
        });
        Ok(Join {
            ns: outcome?.as_nanos() as f64,
            allocations: counted.count_total as f64,
            bytes: counted.bytes_total as f64,
        })
    }

    /// That instance leaves again.
    pub fn leave(&mut self) -> Result<()> {
        for (path, _) in &self.joining {
            self.providers.withdraw(path);
        }
        self.wait_for(self.size.instances)
    }

    /// A call on each interface is routed: what is made at the first call is there.
    pub fn call_all(&self) -> Result<()> {
        let call = Invocation::dynamic("echo", "Ljava/lang/String;", vec!["hello".into()]);
        for directory in &self.directories {
            let candidates = directory.list(&call)?;
            ensure!(candidates.len() == self.size.instances, "{} instances are routable", candidates.len());
        }
        Ok(())
    }

    /// Times until the first and until all interfaces are routable.
    fn refer_all(&mut self) -> Result<(Duration, Duration)> {
        let start = Instant::now();
        let registry = self.registry()?;
        let protocols = protocols();
        let mut first = None;
        for number in 0..self.size.interfaces {
            let consumer = consumer_of(&interface(number));
            let parts = RegistryDirectoryParts {
                registry: Arc::clone(&registry),
                consumer: consumer.clone(),
                subscribe: consumer.with_param(keys::CATEGORY, "providers,configurators,routers"),
                register: None,
                protocols: Arc::clone(&protocols),
                filters: Vec::new(),
                chain: Arc::new(Chain::builder(consumer).build()),
            };
            let directory = self.runtime.block_on(RegistryDirectory::subscribe(parts))?;
            self.statuses.push(directory.status());
            self.directories.push(directory);
            if number == 0 {
                self.wait_for(self.size.instances)?;
                first = Some(start.elapsed());
            }
        }
        self.wait_for(self.size.instances)?;
        Ok((first.context("there is an interface")?, start.elapsed()))
    }

    /// The consumer's registry, in a session of its own.
    fn registry(&self) -> Result<Arc<dyn Registry>> {
        let _entered = self.runtime.enter();
        let (url, tree) = (Url::parse(REGISTRY)?, self.store.connect());
        if self.model == Model::Interface {
            return Ok(Arc::new(TreeRegistry::new(&url, tree)));
        }
        let report = Arc::new(TreeMetadataReport::new(&url, Arc::clone(&tree)));
        let source =
            MetadataSource::new(Some(report), Arc::new(Nobody), Arc::new(MetadataCache::in_memory()));
        let discovery = Arc::new(TreeServiceDiscovery::new(&url, Arc::clone(&tree)));
        Ok(Arc::new(ServiceDiscoveryRegistry::new(ServiceDiscoveryRegistryParts {
            session: tree.session(),
            mapping: Arc::new(TreeServiceNameMapping::new(&url, tree)),
            listeners: Arc::new(InstanceListeners::new(discovery, Arc::new(source))),
            rules: None,
            own: None,
            url,
        })))
    }

    /// Until each interface has so many providers.
    fn wait_for(&mut self, instances: usize) -> Result<()> {
        let Self { runtime, statuses, .. } = self;
        runtime.block_on(async {
            for status in statuses {
                status.wait_for(|status| status.total == instances).await?;
            }
            Ok(())
        })
    }
}

impl std::fmt::Debug for Fleet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fleet").field("model", &self.model).field("size", &self.size).finish_non_exhaustive()
    }
}

/// One node per interface and instance. Returns those of one more instance.
async fn register_interfaces(tree: &dyn Tree, size: Size) -> Result<Vec<(String, Bytes)>> {
    let mut joining = Vec::with_capacity(size.interfaces);
    for number in 0..size.interfaces {
        let like = provider_of(&interface(number))?;
        let node = |instance| {
            let url = on_instance(&like, instance);
            (
                format!("/dubbo/{}/providers/{}", interface(number), url.encoded()),
                Bytes::from(url.host().to_owned()),
            )
        };
        for instance in 0..size.instances {
            let (path, data) = node(instance);
            tree.create(&path, data).await?;
        }
        joining.push(node(size.instances));
    }
    Ok(joining)
}

/// One node per instance; metadata and mapping for all of them. Returns the node of one more instance.
async fn register_instances(tree: &Arc<dyn Tree>, size: Size) -> Result<Vec<(String, Bytes)>> {
    let registry = Url::parse(REGISTRY)?;
    let own = OwnMetadata::new(APPLICATION);
    let mapping = TreeServiceNameMapping::new(&registry, Arc::clone(tree));
    for number in 0..size.interfaces {
        own.add(&provider_of(&interface(number))?);
        mapping.map(&interface(number), APPLICATION).await?;
    }
    let metadata = own.current();
    TreeMetadataReport::new(&registry, Arc::clone(tree)).publish(&metadata).await?;
    let discovery = TreeServiceDiscovery::new(&registry, Arc::clone(tree));
    let revision = metadata.revision.as_deref().context("there are services")?;
    let like = provider_of(&interface(0))?;
    let instance = |number| -> Result<ServiceInstance> {
        let exported = [on_instance(&like, number)];
        OwnInstance::new(APPLICATION, &exported, revision).build()?.context("it has a port")
    };
    for number in 0..size.instances {
        discovery.register(&instance(number)?).await?;
    }
    let joining = instance(size.instances)?;
    let path = format!("/services/{APPLICATION}/{}", joining.address());
    discovery.register(&joining).await?;
    let node = tree.read(&path).await?.with_context(|| format!("{path} was registered"))?;
    discovery.unregister(&joining).await?;
    Ok(vec![(path, node.bytes)])
}

fn interface(number: usize) -> String {
    format!("{INTERFACE}{number:04}")
}

fn consumer_of(interface: &str) -> Url {
    consumer().with_path(interface).with_param(keys::INTERFACE, interface)
}

/// What a provider of an interface registers; all instances are alike.
fn provider_of(interface: &str) -> Result<Url> {
    Ok(Url::parse(&provider_text(0).replace(INTERFACE, interface))?.without_param("region"))
}

/// The same with what is an instance's own.
fn on_instance(provider: &Url, number: usize) -> Url {
    let started = 1_700_000_000_000_u64 + number as u64 * 1_000;
    provider
        .to_builder()
        .host(&format!("10.{}.{}.{}", number / 62_500, number / 250 % 250, number % 250 + 1))
        .param(keys::PID, 1_000 + number % 30_000)
        .param(keys::TIMESTAMP, started)
        .build()
}

/// All metadata is in the report.
#[derive(Debug)]
struct Nobody;

#[async_trait]
impl MetadataClient for Nobody {
    async fn fetch(&self, _: &Arc<ServiceInstance>, _: &str) -> Result<Option<MetadataInfo>, RpcError> {
        Err(RpcError::new(ErrorCode::Network, "instances are not asked"))
    }
}
