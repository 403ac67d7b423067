//! The intents: which nodes shall exist, and how far the store is from that. No I/O, no waiting.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dubhe_core::tree::{NodeKind, TreeError};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::link::Round;

/// Sum of the lengths of ephemeral paths that one session may own, in bytes; beyond it a further session is opened.
///
/// Origin: ZOOKEEPER-4306. The end of a session is one transaction with all of its paths; a server does not read back
/// what is longer than `jute.maxbuffer` (1 MiB), and never starts again.
pub const SESSION_BUDGET: usize = 800 * 1024;

/// Of each path in that transaction.
const LENGTH_PREFIX: usize = 4;

/// After an outcome that is not known.
const UNKNOWN: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10));

/// After a refusal: only somebody else can change it.
const REFUSED: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));

/// Failures in a row after which even a new connection is no reason to try before the delay is over: the request itself
/// may be what breaks the connections.
const SUSPECT: u32 = 3;

/// What shall exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) data: Bytes,
    pub(crate) kind: NodeKind,
}

/// One step for one node, read from the ledger at the moment it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) path: Arc<str>,
    /// `None`: it shall not exist.
    pub(crate) wanted: Option<Wanted>,
    /// Kind of the node that is wanted, or was.
    pub(crate) kind: NodeKind,
    /// It was right once: look before touching it.
    pub(crate) verify: bool,
    /// How often it failed in a row.
    pub(crate) failures: u32,
    revision: u64,
}

/// Whether the latest intent for a path holds.
pub(crate) enum Standing {
    Holds,
    Refused(TreeError),
    /// Ask again when notified; the last trouble.
    Open(Arc<Notify>, Option<TreeError>),
}

#[derive(Debug)]
struct Entry {
    wanted: Option<Wanted>,
    kind: NodeKind,
    count: usize,
    /// Counts changes of `wanted`.
    revision: u64,
    /// Revision that the store was seen to hold, and when.
    held: Option<(u64, Round)>,
    trouble: Option<(TreeError, bool)>,
    failures: u32,
    retry: Option<Instant>,
    tried: bool,
    busy: bool,
    queued: bool,
    lane: usize,
    charge: usize,
    changed: Arc<Notify>,
}

/// What belongs to one session.
#[derive(Debug, Default)]
struct Lane {
    charge: usize,
    entries: usize,
    queue: VecDeque<Arc<str>>,
    retries: BinaryHeap<Reverse<(Instant, Arc<str>)>>,
    at: Option<Round>,
    wake: Arc<Notify>,
}

/// All intents of a tree. Ephemeral ones are dealt to lanes, one per session; lane 0 always exists.
#[derive(Debug)]
pub(crate) struct Ledger {
    entries: HashMap<Arc<str>, Entry>,
    lanes: Vec<Lane>,
    budget: usize,
    closed: bool,
    drained: Arc<Notify>,
}

impl Ledger {
    pub(crate) fn new(budget: usize) -> Self {
        let (entries, lanes) = (HashMap::new(), vec![Lane::default()]);
        Self { entries, lanes, budget, closed: false, drained: Arc::default() }
    }

    /// Declares that `path` shall exist. Says which lane had to be added for it, if any.
    pub(crate) fn ensure(&mut self, path: Arc<str>, data: Bytes, kind: NodeKind) -> Option<usize> {
        if self.closed {
            return None;
        }
        let wanted = Wanted { data, kind };
        let mut added = None;
        if !self.entries.contains_key(&path) {
            let charge = if kind == NodeKind::Ephemeral { path.len() + LENGTH_PREFIX } else { 0 };
            let lane = self.lane_for(charge);
            added = (lane == self.lanes.len()).then_some(lane);
            if added.is_some() {
                self.lanes.push(Lane::default());
            }
            self.lanes[lane].charge += charge;
            self.lanes[lane].entries += 1;
            self.entries.insert(Arc::clone(&path), Entry::new(kind, lane, charge));
        }
        let entry = self.entries.get_mut(&path).expect("it is there or was just put there");
        entry.count = if entry.wanted.is_some() { entry.count + 1 } else { 1 };
        if entry.wanted.as_ref() != Some(&wanted) {
            entry.renew(Some(wanted));
        }
        self.queue(&path);
        added
    }

    /// Takes one `ensure` back.
    pub(crate) fn withdraw(&mut self, path: &str) {
        let Some(entry) = self.entries.get_mut(path) else { return };
        if entry.wanted.is_none() {
            return;
        }
        entry.count -= 1;
        if entry.count == 0 {
            entry.renew(None);
            self.queue(path);
        }
    }

    /// The session of a lane is this one now. A new round makes all entries due.
    pub(crate) fn attend(&mut self, lane: usize, at: Option<Round>, now: Instant) {
        if std::mem::replace(&mut self.lanes[lane].at, at) == at || at.is_none() {
            return;
        }
        let held_back =
            |entry: &Entry| entry.failures >= SUSPECT && entry.retry.is_some_and(|retry| retry > now);
        let due = self.entries.iter().filter(|(_, entry)| entry.lane == lane && !held_back(entry));
        let due: Vec<_> = due.map(|(path, _)| Arc::clone(path)).collect();
        due.iter().for_each(|path| self.queue(path));
    }

    /// The next thing to do in a lane that is alive.
    pub(crate) fn take(&mut self, lane: usize) -> Option<Job> {
        let at = self.lanes[lane].at?;
        loop {
            let path = self.lanes[lane].queue.pop_front()?;
            let Some(entry) = self.entries.get_mut(&path) else { continue };
            entry.queued = false;
            if entry.busy || entry.is_right(at) {
                continue;
            }
            entry.busy = true;
            entry.tried = true;
            entry.retry = None;
            // A persistent node outlives sessions; an ephemeral one of a former session is ours no more.
            let lasting = entry.wanted.as_ref().is_some_and(|wanted| wanted.kind == NodeKind::Persistent);
            let verify = matches!(entry.held, Some((revision, then))
                if revision == entry.revision && (lasting || then.epoch == at.epoch));
            let (wanted, kind) = (entry.wanted.clone(), entry.kind);
            let (failures, revision) = (entry.failures, entry.revision);
            return Some(Job { path, wanted, kind, verify, failures, revision });
        }
    }

    /// What came out of a job that was sent in round `at`; a failure with whether it is a definite one.
    pub(crate) fn finish(
        &mut self,
        job: &Job,
        at: Round,
        result: Result<(), (TreeError, bool)>,
        now: Instant,
    ) {
        let Some(entry) = self.entries.get_mut(&job.path) else { return };
        let lane = entry.lane;
        let current = entry.revision == job.revision;
        entry.busy = false;
        match result {
            Ok(()) => {
                entry.held = Some((job.revision, at));
                if current {
                    (entry.trouble, entry.failures) = (None, 0);
                    if entry.wanted.is_none() {
                        self.forget(&job.path);
                        return;
                    }
                }
            }
            Err((error, definite)) if current => {
                entry.failures += 1;
                entry.trouble = Some((error, definite));
                let backoff = if definite { REFUSED } else { UNKNOWN };
                let retry = now + backoff.delay(entry.failures);
                entry.retry = Some(retry);
                self.lanes[lane].retries.push(Reverse((retry, Arc::clone(&job.path))));
            }
            Err(_) => {}
        }
        entry.changed.notify_waiters();
        let missed_round = self.lanes[lane].at.is_some_and(|now| now > at);
        if entry.retry.is_none() || missed_round && entry.failures < SUSPECT {
            self.queue(&job.path);
        }
    }

    /// Makes the failed entries due whose delay is over; says when the next one will be.
    pub(crate) fn due(&mut self, lane: usize, now: Instant) -> Option<Instant> {
        loop {
            let next = self.lanes[lane].retries.peek()?.0.0;
            if next > now {
                return Some(next);
            }
            let Reverse((retry, path)) = self.lanes[lane].retries.pop()?;
            if self.entries.get(&path).is_some_and(|entry| entry.retry == Some(retry)) {
                self.queue(&path);
            }
        }
    }

    /// Whether the latest intent for `path` holds.
    pub(crate) fn standing(&self, path: &str) -> Standing {
        let Some(entry) = self.entries.get(path) else { return Standing::Holds };
        if self.lanes[entry.lane].at.is_some_and(|at| entry.is_right(at)) {
            return Standing::Holds;
        }
        match &entry.trouble {
            Some((error, true)) => Standing::Refused(error.clone()),
            trouble => {
                let error = trouble.as_ref().map(|(error, _)| error.clone());
                Standing::Open(Arc::clone(&entry.changed), error)
            }
        }
    }

    /// From now on only ephemeral nodes matter, and they shall go.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        let ephemeral = |wanted: &Wanted| wanted.kind == NodeKind::Ephemeral;
        let paths: Vec<_> = self.entries.keys().map(Arc::clone).collect();
        for path in paths {
            let Some(entry) = self.entries.get_mut(&path) else { continue };
            if entry.wanted.as_ref().is_some_and(|wanted| !entry.tried || !ephemeral(wanted)) {
                self.forget(&path);
            } else if entry.wanted.is_some() {
                entry.count = 0;
                entry.renew(None);
                self.queue(&path);
            }
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Nothing is left to do in any session that is alive; otherwise what tells that there may be.
    pub(crate) fn drained(&self) -> Result<(), Arc<Notify>> {
        let busy = self.lanes.iter().any(|lane| lane.at.is_some() && lane.entries > 0);
        if busy { Err(Arc::clone(&self.drained)) } else { Ok(()) }
    }

    /// What tells that a lane has something to do.
    pub(crate) fn wake(&self, lane: usize) -> Arc<Notify> {
        Arc::clone(&self.lanes[lane].wake)
    }

    /// The first lane with room; the number of lanes if there is none.
    fn lane_for(&self, charge: usize) -> usize {
        let fits = |lane: &Lane| charge == 0 || lane.charge == 0 || lane.charge + charge <= self.budget;
        self.lanes.iter().position(fits).unwrap_or(self.lanes.len())
    }

    fn queue(&mut self, path: &str) {
        let Some((path, _)) = self.entries.get_key_value(path) else { return };
        let path = Arc::clone(path);
        let entry = self.entries.get_mut(&path).expect("it was just there");
        if !entry.queued && !entry.busy {
            entry.queued = true;
            let lane = &mut self.lanes[entry.lane];
            lane.queue.push_back(path);
            lane.wake.notify_one();
        }
    }

    fn forget(&mut self, path: &str) {
        if let Some(entry) = self.entries.remove(path) {
            let lane = &mut self.lanes[entry.lane];
            lane.charge -= entry.charge;
            lane.entries -= 1;
            entry.changed.notify_waiters();
            self.drained.notify_waiters();
        }
    }
}

impl Entry {
    fn new(kind: NodeKind, lane: usize, charge: usize) -> Self {
        Self {
            wanted: None,
            kind,
            count: 0,
            revision: 0,
            held: None,
            trouble: None,
            failures: 0,
            retry: None,
            tried: false,
            busy: false,
            queued: false,
            lane,
            charge,
            changed: Arc::default(),
        }
    }

    /// Another wish: what went wrong with the former one says nothing about it.
    fn renew(&mut self, wanted: Option<Wanted>) {
        self.kind = wanted.as_ref().map_or(self.kind, |wanted| wanted.kind);
        self.wanted = wanted;
        self.revision += 1;
        (self.trouble, self.failures, self.retry) = (None, 0, None);
    }

    fn is_right(&self, at: Round) -> bool {
        self.held == Some((self.revision, at))
    }
}

#[cfg(test)]
mod tests;
