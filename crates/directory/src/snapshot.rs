use std::sync::Arc;

use arc_swap::ArcSwap;
use dubhe_core::directory::DirectoryStatus;
use dubhe_core::error::RpcError;
use dubhe_core::invocation::Invocation;
use dubhe_core::invoker::SharedInvoker;
use dubhe_core::load_balance::Candidates;
use dubhe_core::router::{Decision, ExplainedStep, Explanation, RouterChain, Routes};
use tokio::sync::watch;

use crate::connectivity::Aside;

/// Providers and the routes bound to exactly them. Calls read one; the writer swaps in the next.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// All providers.
    pub(crate) all: Arc<[SharedInvoker]>,
    /// Those set aside as unavailable.
    pub(crate) aside: Vec<SharedInvoker>,
    /// Routes over the rest; over all of them when there is no rest.
    pub(crate) routes: Arc<dyn Routes>,
    /// Why there is none, when the registry says so explicitly.
    pub(crate) forbidden: Option<Arc<str>>,
    /// Whether there are some although the registry's last word is an empty list.
    pub(crate) kept: bool,
    /// Whether the directory is closed.
    pub(crate) closed: bool,
}

/// Where the latest snapshot and status stand.
#[derive(Debug)]
pub(crate) struct Published {
    snapshot: ArcSwap<Snapshot>,
    status: watch::Sender<DirectoryStatus>,
}

impl Published {
    pub(crate) fn new(snapshot: Snapshot, initialized: bool) -> Self {
        let status = snapshot.status(None, initialized, 0);
        Self { snapshot: ArcSwap::from_pointee(snapshot), status: watch::Sender::new(status) }
    }

    pub(crate) fn load(&self) -> arc_swap::Guard<Arc<Snapshot>> {
        self.snapshot.load()
    }

    pub(crate) fn status(&self) -> watch::Receiver<DirectoryStatus> {
        self.status.subscribe()
    }

    /// Swaps the snapshot in, then tells the status: who sees the status finds at least that snapshot.
    ///
    /// Both under the lock of the status, so that a writer that is still at work cannot open a closed directory again.
    pub(crate) fn publish(&self, snapshot: Snapshot, stale: Option<Arc<str>>, initialized: bool) {
        self.status.send_if_modified(|status| {
            if status.closed {
                return false;
            }
            *status = snapshot.status(stale, initialized, status.generation + 1);
            self.snapshot.store(Arc::new(snapshot));
            true
        });
    }

    /// Changes only why the list is stale.
    pub(crate) fn set_stale(&self, stale: Option<Arc<str>>) {
        self.status.send_if_modified(|status| {
            let changed = !status.closed && status.stale != stale;
            if changed {
                status.stale = stale;
            }
            changed
        });
    }

    /// Lets the providers go, for good.
    pub(crate) fn close(&self) {
        // The last routes would hold the providers.
        let routes = Arc::new(NoRoutes);
        let closed = Snapshot {
            all: Arc::from([]),
            aside: Vec::new(),
            routes,
            forbidden: None,
            kept: false,
            closed: true,
        };
        self.publish(closed, None, true);
    }
}

impl Snapshot {
    /// A snapshot of `all` with those in `aside` left out of the routes; if that leaves none, all stay in.
    pub(crate) fn bind(all: Arc<[SharedInvoker]>, chain: &dyn RouterChain, aside: &Aside) -> Self {
        if aside.is_empty() {
            let routes = chain.bind(&all);
            return Self { all, aside: Vec::new(), routes, forbidden: None, kept: false, closed: false };
        }
        let (aside, valid): (Vec<_>, Vec<_>) = all.iter().cloned().partition(|one| aside.contains(one));
        let routes = if aside.is_empty() || valid.is_empty() {
            chain.bind(&all)
        } else {
            chain.bind(&Arc::from(valid))
        };
        Self { all, aside, routes, forbidden: None, kept: false, closed: false }
    }

    /// Why the call goes where it goes: first what connectivity left out, then router by router.
    pub(crate) fn explain(&self, call: &Invocation) -> Explanation {
        let mut explanation = self.routes.explain(call);
        if !self.aside.is_empty() {
            explanation.steps.insert(0, self.explain_aside());
        }
        explanation
    }

    fn explain_aside(&self) -> ExplainedStep {
        let all = self.aside.len() == self.all.len();
        let reason = if all {
            "not available, but kept: no other provider is"
        } else {
            "not available: no open connection, or it asked for no more calls"
        };
        let decision = |one: &SharedInvoker| Decision {
            address: one.url().address(),
            kept: all,
            reason: reason.to_owned(),
        };
        ExplainedStep {
            router: "connectivity".to_owned(),
            decisions: self.aside.iter().map(decision).collect(),
        }
    }

    fn status(&self, stale: Option<Arc<str>>, initialized: bool, generation: u64) -> DirectoryStatus {
        DirectoryStatus {
            total: self.all.len(),
            valid: self.all.len() - self.aside.len(),
            forbidden: self.forbidden.is_some(),
            stale,
            kept: self.kept,
            initialized,
            closed: self.closed,
            generation,
        }
    }
}

/// The routes of a closed directory: they hold nobody.
#[derive(Debug)]
struct NoRoutes;

impl Routes for NoRoutes {
    fn candidates(&self, _call: &Invocation) -> Result<Arc<Candidates>, RpcError> {
        Ok(Arc::new(Candidates::new(Vec::new())))
    }

    fn explain(&self, _call: &Invocation) -> Explanation {
        Explanation::default()
    }
}
