//! Doubles for balancers: candidates that are only an address, a clock that is set by hand.
#![allow(dead_code, reason = "each test file uses its part")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dubhe_common::Url;
use dubhe_core::BoxFuture;
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::invocation::{Invocation, Method};
use dubhe_core::invoker::{Invoker, SharedInvoker, same_invoker};
use dubhe_core::load_balance::Candidates;
use dubhe_core::response::Response;
use dubhe_core::value::Value;
use dubhe_loadbalance::{Clock, LoadBalance, Random, RoundRobin, SeededRandom, SystemClock};

#[derive(Debug)]
struct Provider(Url);

impl Invoker for Provider {
    fn url(&self) -> &Url {
        &self.0
    }

    fn is_available(&self) -> bool {
        true
    }

    fn invoke(&self, _call: Invocation) -> BoxFuture<'_, Result<Response, RpcError>> {
        Box::pin(async {
            Err(RpcError::new(ErrorCode::Network, "a candidate of a balancer test is not called"))
        })
    }
}

/// A clock that stands where it was set, in milliseconds.
#[derive(Debug, Default)]
pub(crate) struct ManualClock(AtomicU64);

impl ManualClock {
    pub(crate) fn at(millis: u64) -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(millis)))
    }

    pub(crate) fn advance(&self, millis: u64) {
        self.0.fetch_add(millis, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now_millis(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Every balancer of the crate, with chance of a fixed seed.
pub(crate) fn balancers() -> Vec<Arc<dyn LoadBalance>> {
    balancers_with(Arc::new(SystemClock))
}

pub(crate) fn balancers_with(clock: Arc<dyn Clock>) -> Vec<Arc<dyn LoadBalance>> {
    vec![
        Arc::new(Random::new(Arc::new(SeededRandom::new(7)), Arc::clone(&clock))),
        Arc::new(RoundRobin::new(clock)),
    ]
}

/// Candidate `number` with these parameters.
pub(crate) fn provider(number: usize, parameters: &str) -> SharedInvoker {
    let host = format!("10.{}.{}.{}", number / 62_500, number / 250 % 250, number % 250);
    let url = format!("dubbo://{host}:20880/com.foo.Bar?interface=com.foo.Bar&{parameters}");
    Arc::new(Provider(Url::parse(&url).unwrap()))
}

/// A candidate with this very URL.
pub(crate) fn provider_at(url: &str) -> SharedInvoker {
    Arc::new(Provider(Url::parse(url).unwrap()))
}

/// Candidates of these weights, numbered from 0.
pub(crate) fn weighing(weights: &[u32]) -> Candidates {
    let one = |(number, weight): (usize, &u32)| provider(number, &format!("weight={weight}"));
    Candidates::new(weights.iter().enumerate().map(one).collect::<Vec<_>>())
}

pub(crate) fn call(method: &str) -> Invocation {
    Invocation::new(Arc::new(Method::new(method, "")), Arc::new(Vec::<Value>::new()))
}

/// The positions that were picked, in order.
pub(crate) fn picks(balancer: &dyn LoadBalance, candidates: &Candidates, count: usize) -> Vec<usize> {
    let call = call("sayHello");
    let position =
        |picked: &SharedInvoker| candidates.invokers().iter().position(|one| same_invoker(one, picked));
    (0..count).map(|_| position(balancer.select(candidates, &call).unwrap()).unwrap()).collect()
}

/// How often each was picked.
pub(crate) fn counts(balancer: &dyn LoadBalance, candidates: &Candidates, count: usize) -> Vec<usize> {
    let mut counts = vec![0; candidates.len()];
    for position in picks(balancer, candidates, count) {
        counts[position] += 1;
    }
    counts
}

/// Whether each count is within `tolerance` (of 1) of its share by weight; a weight of 0 has no share at all.
pub(crate) fn assert_shares(name: &str, counts: &[usize], weights: &[u32], tolerance: f64) {
    let (picks, total): (usize, u32) = (counts.iter().sum(), weights.iter().sum());
    for (count, weight) in counts.iter().zip(weights) {
        let share = picks as f64 * f64::from(*weight) / f64::from(total);
        assert!(
            (*count as f64 - share).abs() <= share * tolerance,
            "{name}: {counts:?} for weights {weights:?}, {count} is not about {share}"
        );
    }
}
