//! How one provider is picked for one attempt.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Weak};

use dubhe_common::{Url, defaults, keys};
use dubhe_core::directory::Directory;
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::extension::Extensions;
use dubhe_core::invocation::Invocation;
use dubhe_core::invoker::{Invoker, SharedInvoker, same_invoker};
use dubhe_core::load_balance::{Candidates, LoadBalance};
use parking_lot::Mutex;

use crate::messages;

/// How many candidates a retry looks at when there are more. Origin: `dubbo.reselect.count` of Dubbo 3.1.
pub const RESELECT_COUNT: usize = 10;

/// Methods whose sticky provider is remembered at most: method names of generic calls come from callers.
const MAX_STICKY: usize = 1_024;

/// Picks providers for the attempts of one cluster invoker's calls.
pub struct Selection {
    directory: Arc<dyn Directory>,
    balancers: Arc<Extensions<dyn LoadBalance>>,
    /// The sticky provider of each method that is sticky; not held, so that it goes when its directory lets it go.
    sticky: Mutex<HashMap<Box<str>, Weak<dyn Invoker>>>,
}

/// What the URLs say about one method's calls to one list: read once per list.
struct Policy {
    /// The balancer; the name when there is none of it.
    balancer: Result<Arc<dyn LoadBalance>, String>,
    /// `sticky`, from the candidates.
    sticky: bool,
    /// `cluster.availablecheck`, from the consumer.
    check_available: bool,
}

impl Selection {
    /// Picks from `directory` with the balancers of `balancers`.
    pub fn new(directory: Arc<dyn Directory>, balancers: Arc<Extensions<dyn LoadBalance>>) -> Self {
        Self { directory, balancers, sticky: Mutex::default() }
    }

    /// The directory underneath.
    pub fn directory(&self) -> &Arc<dyn Directory> {
        &self.directory
    }

    /// The candidates for a call; none left is an error that says for what, where and what to do.
    pub fn candidates(&self, call: &Invocation) -> Result<Arc<Candidates>, RpcError> {
        let candidates = self.directory.list(call)?;
        if candidates.is_empty() {
            return Err(messages::no_provider(&*self.directory, call));
        }
        Ok(candidates)
    }

    /// The name of the balancer that picks for `call`.
    pub(crate) fn balancer_name<'a>(&self, candidates: &'a Candidates, call: &Invocation) -> &'a str {
        candidates
            .invokers()
            .first()
            .map_or(defaults::DEFAULT_LOADBALANCE, |first| balancer_name(first.url(), call.method_name()))
    }

    /// Picks a provider for the next attempt. `tried` are those of the earlier attempts, oldest first.
    pub fn select(
        &self,
        candidates: &Candidates,
        call: &Invocation,
        tried: &[SharedInvoker],
    ) -> Result<SharedInvoker, RpcError> {
        let Some(first) = candidates.invokers().first() else {
            return Err(messages::no_provider(&*self.directory, call));
        };
        let consumer = self.directory.consumer_url();
        let method = call.method_name();
        let by_method = first.url().has_method_params() || consumer.has_method_params();
        let policy = candidates
            .prepared(if by_method { method } else { "" }, |_| self.policy(first.url(), consumer, method));
        let balancer =
            policy.balancer.as_ref().map_err(|text| RpcError::new(ErrorCode::Unknown, text.as_str()))?;
        if !policy.sticky {
            return self.pick(&**balancer, candidates, call, tried, policy.check_available);
        }
        if let Some(remembered) = self.remembered(candidates, method, tried, policy.check_available) {
            return Ok(remembered);
        }
        let picked = self.pick(&**balancer, candidates, call, tried, policy.check_available)?;
        self.remember(method, &picked);
        Ok(picked)
    }

    fn policy(&self, provider: &Url, consumer: &Url, method: &str) -> Policy {
        let name = balancer_name(provider, method);
        Policy {
            balancer: self.balancers.get(name).map_err(|unknown| {
                format!("{unknown}: set `loadbalance` of {} to one of these", consumer.service_key())
            }),
            sticky: provider.method_bool(method, keys::STICKY, false),
            check_available: consumer.method_bool(method, keys::AVAILABLE_CHECK, true),
        }
    }

    /// The sticky provider of `method`, if it is still a candidate, was not tried, and is available (or that is not asked).
    fn remembered(
        &self,
        candidates: &Candidates,
        method: &str,
        tried: &[SharedInvoker],
        check_available: bool,
    ) -> Option<SharedInvoker> {
        let remembered = self.sticky.lock().get(method)?.upgrade()?;
        if !contains(candidates.invokers(), &remembered) {
            self.sticky.lock().remove(method);
            return None;
        }
        let usable = !contains(tried, &remembered) && (!check_available || remembered.is_available());
        usable.then_some(remembered)
    }

    fn remember(&self, method: &str, picked: &SharedInvoker) {
        let mut sticky = self.sticky.lock();
        let picked = Arc::downgrade(picked);
        if let Some(known) = sticky.get_mut(method) {
            *known = picked;
        } else if sticky.len() < MAX_STICKY {
            sticky.insert(method.into(), picked);
        }
    }

    fn pick(
        &self,
        balancer: &dyn LoadBalance,
        candidates: &Candidates,
        call: &Invocation,
        tried: &[SharedInvoker],
        check_available: bool,
    ) -> Result<SharedInvoker, RpcError> {
        let picked = match candidates.invokers() {
            [only] => Some(only),
            _ => balancer.select(candidates, call),
        };
        let picked = picked.ok_or_else(|| messages::no_provider(&*self.directory, call))?;
        let available = !check_available || picked.is_available();
        if available && !contains(tried, picked) {
            return Ok(Arc::clone(picked));
        }
        if !available {
            self.directory.invalidate(picked);
        }
        if candidates.len() == 1 {
            return Ok(Arc::clone(picked));
        }
        Ok(self
            .pick_again(balancer, candidates, call, tried, check_available)
            .unwrap_or_else(|| next_after(candidates, picked)))
    }

    /// Picks among the candidates that were not tried; if there are none, among those tried least, but not the last one.
    fn pick_again(
        &self,
        balancer: &dyn LoadBalance,
        candidates: &Candidates,
        call: &Invocation,
        tried: &[SharedInvoker],
        check_available: bool,
    ) -> Option<SharedInvoker> {
        let invokers = candidates.invokers();
        let usable = |invoker: &SharedInvoker| {
            let available = !check_available || invoker.is_available();
            if !available {
                self.directory.invalidate(invoker);
            }
            available
        };
        let fresh = |invoker: &SharedInvoker| !contains(tried, invoker) && usable(invoker);
        let drawn = draw(invokers.len(), RESELECT_COUNT + tried.len());
        let mut pool: Vec<SharedInvoker> =
            drawn.into_iter().map(|at| &invokers[at]).filter(|one| fresh(one)).cloned().collect();
        if pool.is_empty() && invokers.len() > RESELECT_COUNT {
            // The draw was unlucky: most are down. Looking further is better than trying one again.
            let start = fastrand::usize(..invokers.len());
            let (before, after) = invokers.split_at(start);
            pool.extend(after.iter().chain(before).find(|one| fresh(one)).cloned());
        }
        if pool.is_empty() {
            pool = self.least_tried(candidates, tried, check_available);
        }
        let pool = Candidates::new(pool);
        balancer.select(&pool, call).cloned()
    }

    fn least_tried(
        &self,
        candidates: &Candidates,
        tried: &[SharedInvoker],
        check_available: bool,
    ) -> Vec<SharedInvoker> {
        let times = |one: &SharedInvoker| tried.iter().filter(|other| same_invoker(one, other)).count();
        let usable: Vec<_> = candidates
            .invokers()
            .iter()
            .filter(|one| contains(tried, one) && (!check_available || one.is_available()))
            .collect();
        let others: Vec<_> = usable
            .iter()
            .filter(|one| !tried.last().is_some_and(|last| same_invoker(one, last)))
            .copied()
            .collect();
        let pool = if others.is_empty() { usable } else { others };
        let least = pool.iter().map(|one| times(one)).min().unwrap_or(0);
        pool.into_iter().filter(|one| times(one) == least).cloned().collect()
    }
}

impl fmt::Debug for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Selection").field("directory", &self.directory).finish_non_exhaustive()
    }
}

fn balancer_name<'a>(provider: &'a Url, method: &str) -> &'a str {
    provider.method_param(method, keys::LOADBALANCE).unwrap_or(defaults::DEFAULT_LOADBALANCE)
}

fn contains(list: &[SharedInvoker], one: &SharedInvoker) -> bool {
    list.iter().any(|other| same_invoker(one, other))
}

/// Up to `count` different positions below `len`, in the order of the list when that is all of them.
///
/// With as many more than wanted as were tried, enough untried ones are among them.
fn draw(len: usize, count: usize) -> Vec<usize> {
    if len <= count.saturating_mul(2) {
        let mut all: Vec<usize> = (0..len).collect();
        if len > count {
            fastrand::shuffle(&mut all);
            all.truncate(count);
        }
        return all;
    }
    let mut drawn = Vec::with_capacity(count);
    while drawn.len() < count {
        let at = fastrand::usize(..len);
        if !drawn.contains(&at) {
            drawn.push(at);
        }
    }
    drawn
}

/// The candidate behind `one`, cyclic: the last resort, even if it is unavailable.
fn next_after(candidates: &Candidates, one: &SharedInvoker) -> SharedInvoker {
    let invokers = candidates.invokers();
    let at =
        invokers.iter().position(|other| same_invoker(one, other)).map_or(0, |at| (at + 1) % invokers.len());
    Arc::clone(&invokers[at])
}
