use std::sync::Arc;

use async_trait::async_trait;
use dubhe_common::Url;
use dubhe_core::directory::{Directory, DirectoryStatus};
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::invocation::Invocation;
use dubhe_core::invoker::SharedInvoker;
use dubhe_core::load_balance::Candidates;
use dubhe_core::router::{Explanation, RouterChain};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tracing::Instrument;

use crate::connectivity::{Aside, Reports};
use crate::snapshot::{Published, Snapshot};

/// A directory over a fixed list of providers: `url=` references, and the registries of one reference.
///
/// Calls are routed, and providers that are not available are set aside, as with a registry.
#[derive(Debug)]
pub struct StaticDirectory {
    shared: Arc<Shared>,
    writer: AbortHandle,
}

#[derive(Debug)]
struct Shared {
    consumer: Url,
    published: Published,
    reports: Reports,
}

impl StaticDirectory {
    /// A directory of `invokers`, called as `consumer` says. Called within a tokio runtime.
    pub fn new(consumer: Url, invokers: Vec<SharedInvoker>, chain: Arc<dyn RouterChain>) -> Arc<Self> {
        let all: Arc<[SharedInvoker]> = invokers.into();
        // Before the first binding, so that no change in between is missed.
        let rules = chain.changes();
        let first = Snapshot::bind(Arc::clone(&all), &*chain, &Aside::default());
        let shared = Arc::new(Shared {
            consumer,
            published: Published::new(first, true),
            reports: Reports::default(),
        });
        let span = tracing::info_span!("directory", rpc.service = %shared.consumer.service_key());
        let task = tokio::spawn(watch_over(Arc::clone(&shared), all, chain, rules).instrument(span));
        Arc::new(Self { shared, writer: task.abort_handle() })
    }

    fn stop(&self) {
        self.writer.abort();
        self.shared.published.close();
    }
}

async fn watch_over(
    shared: Arc<Shared>,
    all: Arc<[SharedInvoker]>,
    chain: Arc<dyn RouterChain>,
    mut rules: watch::Receiver<u64>,
) {
    let mut aside = Aside::default();
    let mut rules_live = true;
    loop {
        let recheck = aside.next_due();
        let changed = tokio::select! {
            change = rules.changed(), if rules_live => {
                rules_live = change.is_ok();
                rules_live
            }
            () = shared.reports.reported() => aside.accept(&shared.reports, &all),
            () = tokio::time::sleep_until(recheck.unwrap_or_else(tokio::time::Instant::now)), if recheck.is_some() => aside.recheck(),
        };
        if changed {
            let snapshot = Snapshot::bind(Arc::clone(&all), &*chain, &aside);
            shared.published.publish(snapshot, None, true);
        }
    }
}

#[async_trait]
impl Directory for StaticDirectory {
    fn consumer_url(&self) -> &Url {
        &self.shared.consumer
    }

    fn origin(&self) -> &str {
        "static"
    }

    fn list(&self, call: &Invocation) -> Result<Arc<Candidates>, RpcError> {
        let snapshot = self.shared.published.load();
        if snapshot.closed {
            return Err(RpcError::new(
                ErrorCode::Unknown,
                format!(
                    "Directory of type StaticDirectory already destroyed for service {}",
                    self.shared.consumer.service_key()
                ),
            ));
        }
        snapshot.routes.candidates(call)
    }

    fn invokers(&self) -> Arc<[SharedInvoker]> {
        Arc::clone(&self.shared.published.load().all)
    }

    fn invalidate(&self, invoker: &SharedInvoker) {
        self.shared.reports.report(invoker);
    }

    fn is_available(&self) -> bool {
        self.shared.published.load().is_available()
    }

    fn status(&self) -> watch::Receiver<DirectoryStatus> {
        self.shared.published.status()
    }

    fn explain(&self, call: &Invocation) -> Explanation {
        self.shared.published.load().explain(call)
    }

    async fn close(&self) {
        self.stop();
    }
}

impl Drop for StaticDirectory {
    fn drop(&mut self) {
        self.stop();
    }
}
