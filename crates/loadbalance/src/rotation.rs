use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicUsize, Ordering};

use dubhe_common::Url;
use dubhe_core::invoker::SharedInvoker;
use parking_lot::Mutex;

use crate::schedule::Schedule;
use crate::weight::Weight;
use crate::weight_table::Weights;

/// Up to this many candidates of different weights the reference's algorithm runs as it is, which looks at each; beyond it, turns come
/// from a [`Schedule`].
const EXACT: usize = 64;

/// How long a provider that left is remembered, milliseconds. Origin: `RECYCLE_PERIOD` of `RoundRobinLoadBalance`.
pub(crate) const RECYCLE: u64 = 60_000;

/// Whose turn it is within one candidate list, for one method.
#[derive(Debug)]
pub(crate) struct Rotation {
    /// What each candidate is known by across lists.
    identities: Box<[u64]>,
    /// Counts the picks while all weights are alike.
    turn: AtomicUsize,
    /// One per candidate where there are few.
    nodes: Box<[Arc<Node>]>,
    /// Made when weights first differ, where there are many candidates.
    schedule: Mutex<Option<Schedule>>,
    /// Held during one pick where there are few candidates.
    picking: Arc<Mutex<()>>,
}

/// What rotations over different lists of one service and method share: it lives through changes of addresses and rules.
#[derive(Debug, Default)]
pub(crate) struct Group {
    picking: Arc<Mutex<()>>,
    members: Mutex<Members>,
}

#[derive(Debug, Default)]
struct Members {
    nodes: HashMap<u64, Remembered>,
    /// The rotation made last: the next one goes on where it was.
    latest: Option<Arc<Rotation>>,
    used_at: u64,
}

#[derive(Debug)]
struct Remembered {
    node: Arc<Node>,
    used_at: u64,
}

/// The smooth weighted state of one provider.
#[derive(Debug, Default)]
struct Node {
    current: AtomicI64,
    configured: AtomicU32,
}

impl Group {
    /// The rotation of a new list, which goes on where those before it were.
    pub(crate) fn join(
        &self,
        invokers: &[SharedInvoker],
        method: &str,
        weights: &Weights,
        now: u64,
    ) -> Arc<Rotation> {
        let hashing = foldhash::fast::FixedState::default();
        let identities: Box<[u64]> = invokers.iter().map(|one| identity(one.url(), &hashing)).collect();
        let mut members = self.members.lock();
        members.used_at = now;
        let latest = members.latest.take();
        let schedule = match weights.different() {
            Some(each) if invokers.len() > EXACT => Some(latest.as_ref().map_or_else(
                || Schedule::new(each, |_| None),
                |latest| latest.reschedule(each, &identities),
            )),
            _ => None,
        };
        let nodes = if invokers.len() > EXACT {
            Box::default()
        } else {
            members.recycle(now);
            identities
                .iter()
                .zip(invokers)
                .map(|(identity, one)| members.node(*identity, Weight::of(one.url(), method).configured, now))
                .collect()
        };
        let rotation = Arc::new(Rotation {
            turn: AtomicUsize::new(latest.map_or(0, |latest| latest.turn_in(&identities))),
            identities,
            nodes,
            schedule: Mutex::new(schedule),
            picking: Arc::clone(&self.picking),
        });
        members.latest = Some(Arc::clone(&rotation));
        rotation
    }

    /// Whether no list uses it any more, for long.
    pub(crate) fn is_idle(&self, now: u64) -> bool {
        let members = self.members.lock();
        let in_use = members.latest.as_ref().is_some_and(|latest| Arc::strong_count(latest) > 1);
        !in_use && now.saturating_sub(members.used_at) > RECYCLE
    }
}

impl Members {
    /// The state of a provider. A weight that was set anew starts it anew, as in the reference; one that moves while the provider warms
    /// up does not.
    fn node(&mut self, identity: u64, configured: u32, now: u64) -> Arc<Node> {
        let known =
            self.nodes.entry(identity).or_insert_with(|| Remembered { node: Arc::default(), used_at: now });
        known.used_at = now;
        if known.node.configured.swap(configured, Ordering::Relaxed) != configured {
            known.node.current.store(0, Ordering::Relaxed);
        }
        Arc::clone(&known.node)
    }

    /// Forgets providers that no list has had for a while.
    fn recycle(&mut self, now: u64) {
        for known in self.nodes.values_mut().filter(|known| Arc::strong_count(&known.node) > 1) {
            known.used_at = now;
        }
        self.nodes.retain(|_, known| now.saturating_sub(known.used_at) <= RECYCLE);
    }
}

impl Rotation {
    /// The index of the next one.
    pub(crate) fn next(&self, weights: &Weights) -> usize {
        match weights.different() {
            None => self.turn.fetch_add(1, Ordering::Relaxed) % self.identities.len().max(1),
            Some(each) if !self.nodes.is_empty() => self.pick_exact(each, weights.total()),
            Some(each) => {
                let mut schedule = self.schedule.lock();
                schedule.get_or_insert_with(|| Schedule::new(each, |_| None)).pick(each).unwrap_or_default()
            }
        }
    }

    /// Smooth weighted round robin as in `RoundRobinLoadBalance`: all gain their weight, the one with most is picked and pays the total.
    fn pick_exact(&self, weights: &[u32], total: u64) -> usize {
        // At most 64 weights below 2^31.
        let total = total as i64;
        let _picking = self.picking.lock();
        let mut best: Option<(usize, i64)> = None;
        for (index, (node, weight)) in self.nodes.iter().zip(weights).enumerate() {
            if *weight == 0 {
                continue;
            }
            // Lists share nodes, and weights move. Within one list nobody gains or owes as much as two rounds.
            let current = node
                .current
                .load(Ordering::Relaxed)
                .saturating_add((*weight).into())
                .clamp(-2 * total, 2 * total);
            node.current.store(current, Ordering::Relaxed);
            if best.is_none_or(|(_, most)| current > most) {
                best = Some((index, current));
            }
        }
        let Some((index, current)) = best else { return 0 };
        self.nodes[index].current.store(current - total, Ordering::Relaxed);
        index
    }

    /// Where in a new list the next turn is: at the first of those whose turn comes here that is still there.
    fn turn_in(&self, identities: &[u64]) -> usize {
        let count = self.identities.len();
        let next = self.turn.load(Ordering::Relaxed) % count.max(1);
        let upcoming = (0..count).map(|step| self.identities[(next + step) % count]);
        // Most of a list stays; where none of the next few did, it is as good as another list.
        upcoming.take(8).find_map(|wanted| identities.iter().position(|one| *one == wanted)).unwrap_or(0)
    }

    /// A schedule of a new list in which those who were in this one wait as long as they would have.
    fn reschedule(&self, weights: &[u32], identities: &[u64]) -> Schedule {
        let schedule = self.schedule.lock();
        let left: HashMap<u64, f64> = match &*schedule {
            Some(schedule) => schedule
                .left()
                .filter_map(|(index, left)| Some((*self.identities.get(index)?, left)))
                .collect(),
            None => HashMap::new(),
        };
        Schedule::new(weights, |index| left.get(&identities[index]).copied())
    }
}

/// What a provider is known by in the reference: its URL without parameters.
fn identity(url: &Url, hashing: &foldhash::fast::FixedState) -> u64 {
    hashing.hash_one((url.protocol(), url.user(), url.host(), url.port(), url.path()))
}
