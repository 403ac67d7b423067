//! What does a pick cost: list + route + select, without I/O?

use std::sync::Arc;

use arc_swap::ArcSwap;
use dubhe_cluster::selection::Selection;
use dubhe_common::{Url, UrlFactory};
use dubhe_core::extension::Extensions;
use dubhe_core::invocation::Invocation;
use dubhe_core::invoker::SharedInvoker;
use dubhe_core::load_balance::LoadBalance;
use dubhe_core::protocol::Protocol;
use dubhe_directory::StaticDirectory;
use dubhe_router::{Chain, ConditionRouter};

use crate::doubles::{IdleProtocol, consumer, provider_text};

/// The condition rule of the benches: it keeps half of the providers.
pub const RULE: &str = "method = echo => region = east";

/// A consumer of `n` providers, and one call.
#[derive(Debug)]
pub struct Picks {
    selection: Selection,
    call: Invocation,
}

impl Picks {
    /// With `n` providers, a balancer, and the condition rule or none. Called within a tokio runtime.
    pub fn new(n: usize, balancer: &str, rule: Option<&str>) -> anyhow::Result<Self> {
        let factory = UrlFactory::new();
        let mut invokers: Vec<SharedInvoker> = Vec::with_capacity(n);
        for index in 0..n {
            let url = factory.parse(&provider_text(index))?.with_param("loadbalance", balancer);
            invokers.push(IdleProtocol.refer(&url)?);
        }
        let mut chain = Chain::builder(consumer());
        if let Some(rule) = rule {
            chain = chain.rule(ConditionRouter::parse(rule)?);
        }
        let mut balancers: Extensions<dyn LoadBalance> = Extensions::new("loadbalance");
        dubhe_loadbalance::builtin(&mut balancers)?;
        let directory = StaticDirectory::new(consumer(), invokers, Arc::new(chain.build()));
        let call = Invocation::dynamic("echo", "Ljava/lang/String;", vec!["hello".into()]);
        Ok(Self { selection: Selection::new(directory, Arc::new(balancers)), call })
    }

    /// One pick.
    pub fn pick(&self) -> SharedInvoker {
        self.selection
            .candidates(&self.call)
            .and_then(|candidates| self.selection.select(&candidates, &self.call, &[]))
            .expect("there are providers, and the rule keeps half of them")
    }
}

/// The floor: load of an atomic snapshot, alias-weighted pick, clone of the `Arc`.
#[derive(Debug)]
pub struct Floor(ArcSwap<FloorSnapshot>);

#[derive(Debug)]
struct FloorSnapshot {
    invokers: Vec<Arc<Url>>,
    /// Probability of the column itself in 1/2^32, and the alias.
    columns: Vec<(u32, u32)>,
}

impl Floor {
    /// With `n` entries.
    pub fn new(n: usize) -> Self {
        let invokers = (0..n).map(|index| Arc::new(consumer().with_port(index as u16))).collect();
        let columns = (0..n).map(|index| (u32::MAX / 2, (index as u32 + 1) % n as u32)).collect();
        Self(ArcSwap::from_pointee(FloorSnapshot { invokers, columns }))
    }

    /// One pick.
    pub fn pick(&self) -> Arc<Url> {
        let snapshot = self.0.load();
        let random = fastrand::u64(..);
        let column = (((random >> 32) * snapshot.columns.len() as u64) >> 32) as usize;
        let (own, alias) = snapshot.columns[column];
        let index = if random as u32 <= own { column } else { alias as usize };
        Arc::clone(&snapshot.invokers[index])
    }
}
