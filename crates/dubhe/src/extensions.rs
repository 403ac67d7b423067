use std::sync::Arc;

use dubhe_common::keys;
use dubhe_core::cluster::Cluster;
use dubhe_core::extension::{self, DuplicateExtension};
use dubhe_core::filter::{Filter, FilterSide};
use dubhe_core::load_balance::LoadBalance;
use dubhe_core::protocol::Protocol;
use dubhe_core::registry::RegistryFactory;
use dubhe_core::router::Router;
use dubhe_core::serialize::Serialization;
use dubhe_core::status_report::StatusReporter;
use dubhe_core::tree::TreeFactory;
use dubhe_exchange::HeaderExchanger;
use dubhe_protocol_dubbo::DubboProtocol;
use dubhe_registry::{MEMORY, MemoryStore, MemoryTreeFactory, SharedTrees};
use dubhe_registry_zookeeper::ZookeeperTreeFactory;
use dubhe_serialize_hessian2::Hessian2;
use dubhe_transport::TcpTransporter;

/// The implementations that an application uses, by their names on the wire: Dubhe's own, and those that you add.
///
/// A value of the [`crate::DubheBuilder`], moved into the application when it starts: nothing is global.
///
/// ```
/// use std::sync::Arc;
/// use dubhe::core::invocation::Invocation;
/// use dubhe::core::invoker::SharedInvoker;
/// use dubhe::core::load_balance::{Candidates, LoadBalance};
///
/// #[derive(Debug)]
/// struct First;
///
/// impl LoadBalance for First {
///     fn name(&self) -> &str {
///         "first"
///     }
///
///     fn select<'a>(&self, candidates: &'a Candidates, _: &Invocation) -> Option<&'a SharedInvoker> {
///         candidates.invokers().first()
///     }
/// }
///
/// let mut builder = dubhe::Dubhe::builder("demo");
/// builder.extensions().load_balances.register("first", || Arc::new(First))?;
/// // From now on `loadbalance=first` on a reference, a service or a rule means this one.
/// # Ok::<(), dubhe::core::extension::DuplicateExtension>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Extensions {
    /// `failover`, `failfast`; `zone-aware`, among registries.
    pub clusters: extension::Extensions<dyn Cluster>,
    /// `random`, `roundrobin`.
    pub load_balances: extension::Extensions<dyn LoadBalance>,
    /// Empty at first; `dubbo` is added when the application starts, unless you put another one in its place.
    pub protocols: extension::Extensions<dyn Protocol>,
    /// Registries that keep a tree themselves and need none of [`Extensions::trees`]. Empty at first.
    pub registries: extension::Extensions<dyn RegistryFactory>,
    /// Stores under tree registries: `zookeeper`, `memory`.
    pub trees: extension::Extensions<dyn TreeFactory>,
    /// Routers of all references, in addition to the built-in ones.
    pub routers: Vec<Arc<dyn Router>>,
    /// Filters of all calls, the first one of a side outermost.
    pub filters: Vec<(FilterSide, Arc<dyn Filter>)>,
    /// Hear of each exported service in which form it is registered, and of each reference which discovery it uses and how it migrates.
    /// Empty at first.
    pub status_reporters: Vec<Arc<dyn StatusReporter>>,
}

impl Extensions {
    /// Dubhe's own, with `memory` registries on `store`.
    pub(crate) fn builtin(store: MemoryStore) -> Result<Self, DuplicateExtension> {
        let mut clusters = extension::Extensions::new("cluster");
        dubhe_cluster::builtin(&mut clusters)?;
        let mut load_balances = extension::Extensions::new("loadbalance");
        dubhe_loadbalance::builtin(&mut load_balances)?;
        let mut trees: extension::Extensions<dyn TreeFactory> = extension::Extensions::new("registry");
        trees.register(keys::protocol::ZOOKEEPER, || Arc::new(ZookeeperTreeFactory))?;
        trees.register(MEMORY, move || Arc::new(MemoryTreeFactory::new(store.clone())))?;
        Ok(Self {
            clusters,
            load_balances,
            protocols: extension::Extensions::new("protocol"),
            registries: extension::Extensions::new("registry"),
            trees,
            routers: Vec::new(),
            filters: Vec::new(),
            status_reporters: Vec::new(),
        })
    }

    /// Puts the `dubbo` protocol in, for an application of this name, unless there is one.
    pub(crate) fn add_dubbo(&mut self, application: &str) {
        if self.protocols.contains(DubboProtocol::NAME) {
            return;
        }
        let application = application.to_owned();
        self.protocols.replace(DubboProtocol::NAME, 0, move || {
            let exchanger = Arc::new(HeaderExchanger::new(Arc::new(TcpTransporter)));
            let hessian2: Arc<dyn Serialization> = Arc::new(Hessian2::default());
            Arc::new(DubboProtocol::new(exchanger, vec![hessian2]).with_application(&application))
        });
    }

    /// The filters of one side, in order.
    pub(crate) fn filters(&self, side: FilterSide) -> Vec<Arc<dyn Filter>> {
        self.filters.iter().filter(|(of, _)| *of == side).map(|(_, filter)| Arc::clone(filter)).collect()
    }

    /// Sessions with what keeps trees: one per address, shared by all that use it.
    pub(crate) fn shared_trees(&self) -> SharedTrees {
        let trees = SharedTrees::new();
        self.trees.activated().into_iter().fold(trees, |trees, (name, tree)| trees.with(&name, tree))
    }
}
