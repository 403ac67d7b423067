use std::collections::HashMap;
use std::sync::Arc;

use dubhe_core::invocation::Invocation;
use dubhe_core::invoker::SharedInvoker;
use dubhe_core::load_balance::{Candidates, LoadBalance};
use parking_lot::Mutex;

use crate::by_method::ByMethod;
use crate::rotation::{Group, Rotation};
use crate::source::{Clock, SystemClock};
use crate::weight_table::Tables;

/// Each in turn, in proportion to the weights and evenly spread: `roundrobin`.
///
/// Turns are kept per service, method and address; they go on when addresses or rules change. Three ways lead to the same shares:
/// - all weights are alike: plain rotation, one atomic addition;
/// - up to 64 candidates: the smooth weighted algorithm of `RoundRobinLoadBalance`, pick for pick, within one short critical section;
/// - more: the one due first in virtual time, at the cost of a logarithm instead of a look at each, within one short critical section.
///
/// Different from Dubbo: candidates that all weigh 0 take turns (there, the first gets all), and a weight that moves while its provider
/// warms up does not start the provider's turns anew.
#[derive(Debug)]
pub struct RoundRobin {
    clock: Arc<dyn Clock>,
    groups: Arc<Mutex<HashMap<String, Arc<Group>>>>,
    /// Tells what lists keep for this balancer from what they keep for another.
    key: Box<str>,
}

/// What a candidate list keeps for one balancer.
#[derive(Debug, Default)]
struct Rotations(ByMethod<Rotation>);

impl RoundRobin {
    /// The name in URLs.
    pub const NAME: &'static str = "roundrobin";

    /// Takes the time for warm-up from `clock`.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let groups = Arc::default();
        Self { key: format!("{:p}", Arc::as_ptr(&groups)).into(), groups, clock }
    }

    fn rotation(&self, candidates: &Candidates, method: &str) -> Arc<Rotation> {
        let now = self.clock.now_millis();
        let service = candidates.invokers().first().map(|one| one.url().service_key()).unwrap_or_default();
        let group = {
            let mut groups = self.groups.lock();
            // Services come and go; looking through all is rare next to what a new list costs.
            groups.retain(|_, group| !group.is_idle(now));
            Arc::clone(groups.entry(format!("{service}.{method}")).or_default())
        };
        Tables::with(candidates, method, &*self.clock, |weights| {
            group.join(candidates.invokers(), method, weights, now)
        })
    }
}

impl Default for RoundRobin {
    /// With the system's clock.
    fn default() -> Self {
        Self::new(Arc::new(SystemClock))
    }
}

impl LoadBalance for RoundRobin {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn select<'a>(&self, candidates: &'a Candidates, call: &Invocation) -> Option<&'a SharedInvoker> {
        let invokers = candidates.invokers();
        if invokers.len() < 2 {
            return invokers.first();
        }
        let method = call.method_name();
        let rotations = candidates.prepared(&self.key, |_| Rotations::default());
        let index = rotations.0.with(
            method,
            |method| self.rotation(candidates, method),
            |rotation| Tables::with(candidates, method, &*self.clock, |weights| rotation.next(weights)),
        );
        invokers.get(index)
    }
}
