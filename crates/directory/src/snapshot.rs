use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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
    /// Where in `all` an available one was seen last: asked for each call, and most often still right.
    seen: AtomicUsize,
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
        let closed = Snapshot { closed: true, ..Snapshot::new(Arc::from([]), Vec::new(), routes) };
        self.publish(closed, None, true);
    }
}

impl Snapshot {
    /// A snapshot of `all` with those in `aside` left out of the routes; if that leaves none, all stay in.
    pub(crate) fn bind(all: Arc<[SharedInvoker]>, chain: &dyn RouterChain, aside: &Aside) -> Self {
        if aside.is_empty() {
            let routes = chain.bind(&all);
            return Self::new(all, Vec::new(), routes);
        }
        let (aside, valid): (Vec<_>, Vec<_>) = all.iter().cloned().partition(|one| aside.contains(one));
        let routes = if aside.is_empty() || valid.is_empty() {
            chain.bind(&all)
        } else {
            chain.bind(&Arc::from(valid))
        };
        Self::new(all, aside, routes)
    }

    fn new(all: Arc<[SharedInvoker]>, aside: Vec<SharedInvoker>, routes: Arc<dyn Routes>) -> Self {
        let seen = AtomicUsize::new(0);
        Self { all, aside, routes, forbidden: None, kept: false, closed: false, seen }
    }

    /// Whether a call has a chance: somebody is available. The list is looked through only when the one that was seen last is not.
    pub(crate) fn is_available(&self) -> bool {
        if self.closed || self.forbidden.is_some() {
            return false;
        }
        let seen = self.all.get(self.seen.load(Ordering::Relaxed));
        if seen.is_some_and(|one| one.is_available()) {
            return true;
        }
        let found = self.all.iter().position(|one| one.is_available());
        // A hint and no more: whatever another call writes, its place is looked at before it counts.
        self.seen.store(found.unwrap_or(0), Ordering::Relaxed);
        found.is_some()
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use dubhe_common::Url;
    use dubhe_core::BoxFuture;
    use dubhe_core::error::ErrorCode;
    use dubhe_core::invoker::Invoker;
    use dubhe_core::response::Response;

    use super::*;

    /// A provider that counts how often it is asked whether it is available.
    #[derive(Debug)]
    struct Asked {
        url: Url,
        up: AtomicBool,
        times: AtomicUsize,
    }

    impl Asked {
        fn new(up: bool) -> Arc<Self> {
            let url = Url::parse("dubbo://192.0.2.1:20880/demo.Greeter").unwrap();
            Arc::new(Self { url, up: AtomicBool::new(up), times: AtomicUsize::new(0) })
        }
    }

    impl Invoker for Asked {
        fn url(&self) -> &Url {
            &self.url
        }

        fn is_available(&self) -> bool {
            self.times.fetch_add(1, Ordering::Relaxed);
            self.up.load(Ordering::Relaxed)
        }

        fn invoke(&self, _: Invocation) -> BoxFuture<'_, Result<Response, RpcError>> {
            Box::pin(async { Err(RpcError::new(ErrorCode::Unknown, "nobody calls here")) })
        }
    }

    fn snapshot(all: &[Arc<Asked>]) -> Snapshot {
        let all: Vec<SharedInvoker> = all.iter().map(|one| Arc::clone(one) as SharedInvoker).collect();
        Snapshot::new(all.into(), Vec::new(), Arc::new(NoRoutes))
    }

    #[test]
    fn providers_that_are_down_are_not_looked_at_again_for_each_call() {
        let mut all: Vec<_> = (0..1_000).map(|_| Asked::new(false)).collect();
        all.push(Asked::new(true));
        let snapshot = snapshot(&all);
        for _ in 0..100 {
            assert!(snapshot.is_available());
        }
        // Once as the first guess, once on the way to the one that is up.
        assert_eq!(all[0].times.load(Ordering::Relaxed), 2);
        assert_eq!(all[1].times.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn one_that_goes_down_or_comes_up_is_seen_at_once() {
        let all = [Asked::new(true), Asked::new(false)];
        let snapshot = snapshot(&all);
        assert!(snapshot.is_available());
        all[0].up.store(false, Ordering::Relaxed);
        assert!(!snapshot.is_available());
        all[1].up.store(true, Ordering::Relaxed);
        assert!(snapshot.is_available());
        assert!(!Snapshot { closed: true, ..self::snapshot(&all) }.is_available());
        assert!(!Snapshot { forbidden: Some("nobody".into()), ..self::snapshot(&all) }.is_available());
    }
}
