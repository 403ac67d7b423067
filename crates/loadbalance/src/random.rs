use std::sync::Arc;

use dubhe_core::invocation::Invocation;
use dubhe_core::invoker::SharedInvoker;
use dubhe_core::load_balance::{Candidates, LoadBalance};

use crate::source::{Clock, RandomSource, SystemClock, ThreadRandom};
use crate::weight_table::Tables;

/// Picks by chance, in proportion to the weights: `random`, the default of Dubbo.
///
/// As `RandomLoadBalance`, with two differences: the weights of all candidates are looked at, not only whether the first one has any,
/// and a pick takes the same time for ten and for ten thousand candidates. A candidate of weight 0 is not picked unless all weigh 0.
#[derive(Debug)]
pub struct Random {
    source: Arc<dyn RandomSource>,
    clock: Arc<dyn Clock>,
}

impl Random {
    /// The name in URLs.
    pub const NAME: &'static str = "random";

    /// Takes chance from `source` and the time for warm-up from `clock`.
    pub fn new(source: Arc<dyn RandomSource>, clock: Arc<dyn Clock>) -> Self {
        Self { source, clock }
    }
}

impl Default for Random {
    /// With a generator of each thread's own and the system's clock.
    fn default() -> Self {
        Self::new(Arc::new(ThreadRandom), Arc::new(SystemClock))
    }
}

impl LoadBalance for Random {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn select<'a>(&self, candidates: &'a Candidates, call: &Invocation) -> Option<&'a SharedInvoker> {
        let invokers = candidates.invokers();
        if invokers.len() < 2 {
            return invokers.first();
        }
        let random = self.source.next_u64();
        let index = Tables::with(candidates, call.method_name(), &*self.clock, |weights| {
            weights.pick(invokers.len(), random)
        });
        invokers.get(index)
    }
}
