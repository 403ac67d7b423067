use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use dubhe_common::Url;
use dubhe_core::BoxFuture;
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::invocation::Invocation;
use dubhe_core::invoker::{Invoker, SharedInvoker};
use dubhe_core::response::Response;
use tokio::sync::Notify;

use crate::open_references::Lease;

/// The calls of an application that are under way, and whether new ones are still taken.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    calls: AtomicUsize,
    closing: AtomicBool,
    idle: Notify,
}

impl InFlight {
    /// Refuses new calls from now on.
    pub(crate) fn stop(&self) {
        self.closing.store(true, Ordering::SeqCst);
    }

    /// Waits until no call is under way, at most `grace`; `false` when some still are.
    pub(crate) async fn drained(&self, grace: Duration) -> bool {
        let idle = async {
            loop {
                let notified = self.idle.notified();
                if self.calls.load(Ordering::SeqCst) == 0 {
                    return;
                }
                notified.await;
            }
        };
        tokio::time::timeout(grace, idle).await.is_ok()
    }

    fn enter(self: &Arc<Self>) -> Option<Entered> {
        // Counted first: whoever sees zero after `stop` knows that no call slips in behind it.
        self.calls.fetch_add(1, Ordering::SeqCst);
        let entered = Entered(Arc::clone(self));
        (!self.closing.load(Ordering::SeqCst)).then_some(entered)
    }
}

struct Entered(Arc<InFlight>);

impl Drop for Entered {
    fn drop(&mut self) {
        if self.0.calls.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.idle.notify_waiters();
        }
    }
}

/// Counts the calls that pass through a reference, and keeps it open.
#[derive(Debug)]
pub(crate) struct Counted {
    pub(crate) inner: SharedInvoker,
    pub(crate) in_flight: Arc<InFlight>,
    pub(crate) _lease: Arc<Lease>,
}

impl Invoker for Counted {
    fn url(&self) -> &Url {
        self.inner.url()
    }

    fn is_available(&self) -> bool {
        self.inner.is_available()
    }

    fn invoke(&self, call: Invocation) -> BoxFuture<'_, Result<Response, RpcError>> {
        let Some(entered) = self.in_flight.enter() else {
            let text =
                format!("the application is shutting down: the call of {} is not made", call.method_name());
            return Box::pin(std::future::ready(Err(RpcError::new(ErrorCode::Unknown, text))));
        };
        let result = self.inner.invoke(call);
        Box::pin(async move {
            let _entered = entered;
            result.await
        })
    }
}
