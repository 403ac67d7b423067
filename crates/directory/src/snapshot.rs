use std::sync::Arc;

use arc_swap::ArcSwap;
use dubhe_core::directory::DirectoryStatus;
use dubhe_core::invocation::Invocation;
use dubhe_core::invoker::SharedInvoker;
use dubhe_core::router::{Decision, ExplainedStep, Explanation, RouterChain, Routes};
use tokio::sync::watch;

/// Providers and the routes bound to exactly them. Calls read one; the writer swaps in the next.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// All providers.
    pub(crate) all: Arc<[SharedInvoker]>,
    /// Those set aside as unavailable, for explanations. Empty when all were, since then all are offered.
    pub(crate) aside: Vec<SharedInvoker>,
    /// Routes over the rest.
    pub(crate) routes: Arc<dyn Routes>,
    /// Why there is none, when the registry says so explicitly.
    pub(crate) forbidden: Option<Arc<str>>,
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
    pub(crate) fn new(snapshot: Snapshot) -> Self {
        let status = DirectoryStatus {
            total: snapshot.all.len(),
            valid: snapshot.all.len(),
            ..DirectoryStatus::default()
        };
        Self { snapshot: ArcSwap::from_pointee(snapshot), status: watch::Sender::new(status) }
    }

    pub(crate) fn load(&self) -> arc_swap::Guard<Arc<Snapshot>> {
        self.snapshot.load()
    }

    pub(crate) fn status(&self) -> watch::Receiver<DirectoryStatus> {
        self.status.subscribe()
    }

    /// Swaps the snapshot in, then tells the status: who sees the status finds at least that snapshot.
    pub(crate) fn publish(&self, snapshot: Snapshot, stale: Option<Arc<str>>, initialized: bool) {
        let (total, aside) = (snapshot.all.len(), snapshot.aside.len());
        let (forbidden, closed) = (snapshot.forbidden.is_some(), snapshot.closed);
        self.snapshot.store(Arc::new(snapshot));
        self.status.send_modify(|status| {
            let generation = status.generation + 1;
            *status = DirectoryStatus {
                total,
                valid: total - aside,
                forbidden,
                stale,
                initialized,
                closed,
                generation,
            };
        });
    }

    /// Changes only why the list is stale.
    pub(crate) fn set_stale(&self, stale: Option<Arc<str>>) {
        self.status.send_if_modified(|status| {
            let changed = status.stale != stale;
            status.stale = stale;
            changed
        });
    }
}

impl Snapshot {
    /// A snapshot of `all` with those that `is_aside` names left out of the routes; if that leaves none, all stay in.
    pub(crate) fn bind(
        all: Arc<[SharedInvoker]>,
        chain: &dyn RouterChain,
        is_aside: impl Fn(&SharedInvoker) -> bool,
    ) -> Self {
        let (aside, valid): (Vec<SharedInvoker>, Vec<SharedInvoker>) =
            all.iter().cloned().partition(is_aside);
        let (aside, valid) = if aside.is_empty() || valid.is_empty() {
            (Vec::new(), Arc::clone(&all))
        } else {
            (aside, Arc::from(valid))
        };
        let routes = chain.bind(&valid);
        Self { all, aside, routes, forbidden: None, closed: false }
    }

    /// Why the call goes where it goes: first what connectivity left out, then router by router.
    pub(crate) fn explain(&self, call: &Invocation) -> Explanation {
        let mut explanation = self.routes.explain(call);
        if !self.aside.is_empty() {
            let decision = |one: &SharedInvoker| Decision {
                address: one.url().address(),
                kept: false,
                reason: "not available: no open connection, or it asked for no more calls".to_owned(),
            };
            let step = ExplainedStep {
                router: "connectivity".to_owned(),
                decisions: self.aside.iter().map(decision).collect(),
            };
            explanation.steps.insert(0, step);
        }
        explanation
    }
}
