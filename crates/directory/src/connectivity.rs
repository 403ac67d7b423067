use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use dubhe_core::invoker::SharedInvoker;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Longest pause between two looks at a provider that was set aside. Origin: `dubbo.reconnect.reconnectTaskPeriod` of Dubbo 3.1.
pub(crate) const RECHECK_PERIOD: Duration = Duration::from_millis(1_000);
/// First pause: a provider that was picked while its connection was still being made is back at once.
const FIRST_RECHECK: Duration = Duration::from_millis(10);

/// Address of the invoker object. Means something only while the invoker is held.
type Identity = usize;

/// The providers that calls found unavailable. Calls report them, the directory's writer decides.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    reported: Mutex<HashMap<Identity, SharedInvoker, foldhash::fast::RandomState>>,
    news: Notify,
}

impl Reports {
    /// Reports a provider; cheap, and harmless when repeated.
    pub(crate) fn report(&self, invoker: &SharedInvoker) {
        // One provider that is down is reported by many calls before the writer runs.
        let known = self.reported.lock().insert(identity(invoker), Arc::clone(invoker)).is_some();
        if !known {
            self.news.notify_one();
        }
    }

    pub(crate) async fn reported(&self) {
        self.news.notified().await;
    }

    fn take(&self) -> HashMap<Identity, SharedInvoker, foldhash::fast::RandomState> {
        std::mem::take(&mut *self.reported.lock())
    }
}

/// The providers set aside, kept by the writer.
#[derive(Debug, Default)]
pub(crate) struct Aside {
    entries: HashMap<Identity, Waiting, foldhash::fast::RandomState>,
}

#[derive(Debug)]
struct Waiting {
    /// Held, so that the identity stays its own.
    invoker: SharedInvoker,
    pause: Duration,
    due: Instant,
}

impl Aside {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn contains(&self, invoker: &SharedInvoker) -> bool {
        self.entries.contains_key(&identity(invoker))
    }

    /// Takes reports about members of `listed` over; `true` when one of them is news.
    pub(crate) fn accept(&mut self, reports: &Reports, listed: &[SharedInvoker]) -> bool {
        let mut reported = reports.take();
        reported.retain(|id, invoker| !self.entries.contains_key(id) && !invoker.is_available());
        if reported.is_empty() {
            return false;
        }
        let due = Instant::now() + FIRST_RECHECK;
        let before = self.entries.len();
        // One pass over the list, however many reports there are.
        for id in listed.iter().map(identity) {
            if reported.is_empty() {
                break;
            }
            if let Some(invoker) = reported.remove(&id) {
                self.entries.insert(id, Waiting { invoker, pause: FIRST_RECHECK, due });
            }
        }
        self.entries.len() != before
    }

    /// Forgets what is not in `listed` any more.
    pub(crate) fn retain(&mut self, listed: &[SharedInvoker]) {
        if self.entries.is_empty() {
            return;
        }
        let still: HashSet<Identity, foldhash::fast::RandomState> =
            listed.iter().map(identity).filter(|id| self.entries.contains_key(id)).collect();
        self.entries.retain(|id, _| still.contains(id));
    }

    /// Looks at those that are due; `true` when one is available again.
    pub(crate) fn recheck(&mut self) -> bool {
        let now = Instant::now();
        let before = self.entries.len();
        self.entries.retain(|_, waiting| {
            if waiting.due > now {
                return true;
            }
            waiting.pause = (waiting.pause * 2).min(RECHECK_PERIOD);
            waiting.due = now + waiting.pause;
            !waiting.invoker.is_available()
        });
        self.entries.len() != before
    }

    /// When the next look is due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.entries.values().map(|waiting| waiting.due).min()
    }
}

fn identity(invoker: &SharedInvoker) -> Identity {
    Arc::as_ptr(invoker).cast::<()>().addr()
}
