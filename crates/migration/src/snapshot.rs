//! What one call decides by.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use dubhe_core::directory::DirectoryStatus;
use dubhe_core::migration::MigrationStep;
use tokio::sync::{Notify, watch};

use crate::comparator::usable;
use crate::side::{Side, SideKind};

/// The decision, made at each change: a call only loads it.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) step: Option<MigrationStep>,
    pub(crate) preferred: SideKind,
    pub(crate) proportion: u8,
    pub(crate) interface: Option<Arc<Held>>,
    pub(crate) application: Option<Arc<Held>>,
    pub(crate) closed: bool,
}

impl Snapshot {
    pub(crate) fn side(&self, kind: SideKind) -> Option<&Arc<Held>> {
        match kind {
            SideKind::Interface => self.interface.as_ref(),
            SideKind::Application => self.application.as_ref(),
        }
    }

    pub(crate) fn sides(&self) -> impl Iterator<Item = &Arc<Held>> {
        self.interface.iter().chain(&self.application)
    }

    /// Where a call goes. `dice` gives 0 to 99, and is asked only when a proportion is set.
    ///
    /// Unlike the reference, the part of calls that goes to the interface-level side does so only while that has something usable.
    pub(crate) fn pick(&self, dice: impl FnOnce() -> u8) -> Option<&Arc<Held>> {
        let (Some(preferred), Some(other)) = (self.side(self.preferred), self.side(self.preferred.other()))
        else {
            return self.sides().next();
        };
        if self.step == Some(MigrationStep::ApplicationFirst)
            && self.preferred == SideKind::Application
            && self.proportion < 100
            && dice() >= self.proportion
            && other.is_available()
        {
            return Some(other);
        }
        if preferred.is_available() {
            return Some(preferred);
        }
        if other.is_available() {
            return Some(other);
        }
        // Neither has an open connection; the one with addresses may still get one in time.
        let hopeful = !preferred.has_addresses() && other.has_addresses();
        Some(if hopeful { other } else { preferred })
    }

    /// Another side than `tried` that can take a call now.
    pub(crate) fn rescue(&self, tried: &Arc<Held>) -> Option<&Arc<Held>> {
        self.sides().find(|side| !Arc::ptr_eq(side, tried) && side.is_available())
    }

    /// Whether calls see the same in both.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let same = |one: &Option<Arc<Held>>, two: &Option<Arc<Held>>| match (one, two) {
            (Some(one), Some(two)) => Arc::ptr_eq(one, two),
            (None, None) => true,
            _ => false,
        };
        self.step == other.step
            && self.preferred == other.preferred
            && self.proportion == other.proportion
            && self.closed == other.closed
            && same(&self.interface, &other.interface)
            && same(&self.application, &other.application)
    }
}

/// A side and the calls on it.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) kind: SideKind,
    pub(crate) side: Arc<dyn Side>,
    status: watch::Receiver<DirectoryStatus>,
    calls: AtomicUsize,
    leaving: AtomicBool,
    idle: Notify,
}

impl Held {
    pub(crate) fn new(kind: SideKind, side: Arc<dyn Side>) -> Self {
        let status = side.status();
        let (calls, leaving) = (AtomicUsize::new(0), AtomicBool::new(false));
        Self { kind, side, status, calls, leaving, idle: Notify::new() }
    }

    pub(crate) fn is_available(&self) -> bool {
        self.side.invoker().is_available()
    }

    pub(crate) fn status(&self) -> DirectoryStatus {
        self.status.borrow().clone()
    }

    fn has_addresses(&self) -> bool {
        usable(&self.status.borrow()) > 0
    }

    /// Calls that run on it.
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// A place for one call; `None` when the side leaves. Then a newer snapshot is there.
    pub(crate) fn enter(self: &Arc<Self>) -> Option<Pass> {
        // Counted before looking, and `leave` marks before counting: one of both sees the other.
        self.calls.fetch_add(1, Ordering::SeqCst);
        let pass = Pass { held: Arc::clone(self) };
        (!self.leaving.load(Ordering::SeqCst)).then_some(pass)
    }

    /// Lets nobody in any more, and waits until all are out. To be called when the snapshot without this side is published.
    pub(crate) async fn leave(&self) {
        self.leaving.store(true, Ordering::SeqCst);
        while self.calls() > 0 {
            self.idle.notified().await;
        }
    }

    /// Takes calls again.
    pub(crate) fn stay(&self) {
        self.leaving.store(false, Ordering::SeqCst);
    }
}

/// One call's place on a side, which is not closed before it is given back.
#[derive(Debug)]
pub(crate) struct Pass {
    pub(crate) held: Arc<Held>,
}

impl Drop for Pass {
    fn drop(&mut self) {
        if self.held.calls.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.held.idle.notify_one();
        }
    }
}
