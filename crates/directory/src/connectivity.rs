use std::collections::HashMap;
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

/// The providers that calls found unavailable. Calls report them, the directory's writer decides.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    reported: Mutex<Vec<SharedInvoker>>,
    news: Notify,
}

impl Reports {
    /// Reports a provider; cheap, and harmless when repeated.
    pub(crate) fn report(&self, invoker: &SharedInvoker) {
        let mut reported = self.reported.lock();
        // One provider that is down is reported by many calls before the writer runs.
        if !reported.iter().any(|one| Arc::ptr_eq(one, invoker)) {
            reported.push(Arc::clone(invoker));
            drop(reported);
            self.news.notify_one();
        }
    }

    pub(crate) async fn reported(&self) {
        self.news.notified().await;
    }

    fn take(&self) -> Vec<SharedInvoker> {
        std::mem::take(&mut *self.reported.lock())
    }
}

/// The providers set aside, kept by the writer.
#[derive(Debug, Default)]
pub(crate) struct Aside {
    /// By address of the invoker object, which the value keeps alive.
    entries: HashMap<usize, Waiting>,
}

#[derive(Debug)]
struct Waiting {
    invoker: SharedInvoker,
    pause: Duration,
    due: Instant,
}

impl Aside {
    pub(crate) fn contains(&self, invoker: &SharedInvoker) -> bool {
        !self.entries.is_empty() && self.entries.contains_key(&identity(invoker))
    }

    /// Takes reports over; `true` when one of them is news.
    pub(crate) fn accept(&mut self, reports: &Reports, is_listed: impl Fn(&SharedInvoker) -> bool) -> bool {
        let mut changed = false;
        for invoker in reports.take() {
            if invoker.is_available() || !is_listed(&invoker) {
                continue;
            }
            let due = Instant::now() + FIRST_RECHECK;
            changed |= self
                .entries
                .insert(identity(&invoker), Waiting { invoker, pause: FIRST_RECHECK, due })
                .is_none();
        }
        changed
    }

    /// Forgets what is not listed any more.
    pub(crate) fn retain(&mut self, is_listed: impl Fn(&SharedInvoker) -> bool) {
        self.entries.retain(|_, waiting| is_listed(&waiting.invoker));
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

fn identity(invoker: &SharedInvoker) -> usize {
    Arc::as_ptr(invoker).cast::<()>().addr()
}
