use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use dubhe_common::keys;
use dubhe_core::invoker::SharedInvoker;
use dubhe_core::load_balance::Candidates;

use crate::alias::{Alias, scale};
use crate::by_method::ByMethod;
use crate::source::Clock;
use crate::weight::Weight;

/// How long a table is used while candidates warm up, milliseconds. A weight of 100 grows every 6,000 by default.
const REFRESH: u64 = 1_000;

/// The weights of a candidate list for one method (or all, where no candidate tells methods apart).
#[derive(Debug)]
pub(crate) struct WeightTable {
    state: State,
}

#[derive(Debug)]
enum State {
    /// Nobody warms up.
    Settled(Arc<Weights>),
    Warming(Warming),
}

#[derive(Debug)]
struct Warming {
    parameters: Box<[Weight]>,
    /// When the last candidate is warm.
    settled_from: u64,
    current: ArcSwap<Weights>,
    /// When the table is to be made again; `u64::MAX` once all are warm.
    refresh_at: AtomicU64,
}

/// The weights of one moment.
#[derive(Debug)]
pub(crate) struct Weights {
    /// One per candidate; empty if all are alike.
    each: Box<[u32]>,
    total: u64,
    /// Made when it is first picked from.
    alias: OnceLock<Alias>,
}

impl WeightTable {
    pub(crate) fn new(invokers: &[SharedInvoker], method: &str, clock: &dyn Clock) -> Self {
        let parameters: Box<[Weight]> = invokers.iter().map(|one| Weight::of(one.url(), method)).collect();
        let settled_from = parameters.iter().map(Weight::settled_from).max().unwrap_or(0);
        let now = if settled_from > 0 { clock.now_millis() } else { 0 };
        let weights = Arc::new(Weights::at(&parameters, now));
        if now >= settled_from {
            return Self { state: State::Settled(weights) };
        }
        Self {
            state: State::Warming(Warming {
                parameters,
                settled_from,
                current: ArcSwap::new(weights),
                refresh_at: AtomicU64::new(now.saturating_add(REFRESH)),
            }),
        }
    }

    /// Calls `then` with the weights of now. While somebody warms up they are made again at most once a second, by one caller; the
    /// others go on with the old ones.
    pub(crate) fn with<R>(&self, clock: &dyn Clock, then: impl FnOnce(&Weights) -> R) -> R {
        match &self.state {
            State::Settled(weights) => then(weights),
            State::Warming(warming) => {
                warming.refresh(clock);
                then(&warming.current.load())
            }
        }
    }
}

impl Warming {
    fn refresh(&self, clock: &dyn Clock) {
        let due = self.refresh_at.load(Ordering::Relaxed);
        if due == u64::MAX {
            return;
        }
        let now = clock.now_millis();
        if now < due {
            return;
        }
        let next = if now >= self.settled_from { u64::MAX } else { now.saturating_add(REFRESH) };
        if self.refresh_at.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            let weights = Weights::at(&self.parameters, now);
            if self.current.load().alias.get().is_some() {
                weights.prepare();
            }
            self.current.store(Arc::new(weights));
        }
    }
}

impl Weights {
    fn at(parameters: &[Weight], now: u64) -> Self {
        let each: Box<[u32]> = parameters.iter().map(|weight| weight.at(now)).collect();
        let total = each.iter().map(|weight| u64::from(*weight)).sum();
        let alike = each.windows(2).all(|pair| pair[0] == pair[1]);
        Self { each: if alike { Box::default() } else { each }, total, alias: OnceLock::new() }
    }

    /// The weights; `None` where all are alike.
    pub(crate) fn different(&self) -> Option<&[u32]> {
        (!self.each.is_empty()).then_some(&self.each)
    }

    pub(crate) const fn total(&self) -> u64 {
        self.total
    }

    /// An index below `count`, the number of candidates, for 64 random bits.
    pub(crate) fn pick(&self, count: usize, random: u64) -> usize {
        match self.different() {
            None => scale(random, count as u64).0 as usize,
            Some(each) => self.alias(each).pick(random),
        }
    }

    /// Makes ready for picking, so that no pick has to.
    fn prepare(&self) {
        if let Some(each) = self.different() {
            self.alias(each);
        }
    }

    fn alias(&self, each: &[u32]) -> &Alias {
        self.alias.get_or_init(|| Alias::new(each, self.total))
    }
}

/// The weight tables of a candidate list, kept with it.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    per_method: OnceLock<bool>,
    all: OnceLock<WeightTable>,
    by_method: ByMethod<WeightTable>,
}

impl Tables {
    /// Calls `then` with the weights of now for a method.
    pub(crate) fn with<R>(
        candidates: &Candidates,
        method: &str,
        clock: &dyn Clock,
        then: impl FnOnce(&Weights) -> R,
    ) -> R {
        let tables = candidates.prepared("", |_| Self::default());
        let invokers = candidates.invokers();
        if *tables.per_method.get_or_init(|| invokers.iter().any(has_method_weight)) {
            let make = |method: &str| Arc::new(WeightTable::new(invokers, method, clock));
            return tables.by_method.with(method, make, |table| table.with(clock, then));
        }
        tables.all.get_or_init(|| WeightTable::new(invokers, "", clock)).with(clock, then)
    }
}

fn has_method_weight(invoker: &SharedInvoker) -> bool {
    let url = invoker.url();
    url.has_method_params() && url.any_method_param(keys::WEIGHT).is_some()
}
