use std::sync::Arc;
use std::time::Instant;

use dubhe_common::{Url, defaults, keys};
use dubhe_core::BoxFuture;
use dubhe_core::cluster::Cluster;
use dubhe_core::directory::Directory;
use dubhe_core::error::{Attempt, ErrorCode, RpcError};
use dubhe_core::extension::Extensions;
use dubhe_core::invocation::Invocation;
use dubhe_core::invoker::{Invoker, SharedInvoker};
use dubhe_core::load_balance::LoadBalance;
use dubhe_core::response::Response;

use crate::messages;
use crate::selection::Selection;

/// Tries other providers when one fails: `retries` (2, from the consumer, per method) times more.
///
/// Tried again are network failures, timeouts, limits and unclassified refusals ([`RpcError::is_retryable`]); never what the service
/// itself threw, and never past the call's deadline. The list is read again before each attempt. The final error has the last one's
/// code, lists the providers tried, and has the last error as its source.
#[derive(Clone, Copy, Debug, Default)]
pub struct Failover;

impl Failover {
    /// The name in URLs.
    pub const NAME: &str = "failover";
}

impl Cluster for Failover {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn join(
        &self,
        directory: Arc<dyn Directory>,
        balancers: Arc<Extensions<dyn LoadBalance>>,
    ) -> SharedInvoker {
        Arc::new(FailoverInvoker { selection: Selection::new(directory, balancers) })
    }
}

#[derive(Debug)]
struct FailoverInvoker {
    selection: Selection,
}

impl FailoverInvoker {
    async fn run(&self, call: Invocation) -> Result<Response, RpcError> {
        // The first attempt stands apart: a call that succeeds at once keeps no books.
        let candidates = self.selection.candidates(&call)?;
        let provider = self.selection.select(&candidates, &call, &[])?;
        let error = match provider.invoke(call.clone()).await {
            Ok(response) => return Ok(response),
            Err(error) if error.is_retryable() => error,
            Err(error) => return Err(error),
        };
        let listed = candidates.len();
        drop(candidates);
        self.run_again(call, provider, error, listed).await
    }

    #[cold]
    fn run_again(
        &self,
        call: Invocation,
        provider: SharedInvoker,
        error: RpcError,
        listed: usize,
    ) -> BoxFuture<'_, Result<Response, RpcError>> {
        Box::pin(async move {
            let directory = self.selection.directory();
            let attempts_allowed = self.attempts(&call);
            let mut attempts = vec![messages::attempt(&provider.url().address(), &error)];
            let mut tried = vec![provider];
            let (mut last, mut listed) = (error, listed);
            while attempts.len() < attempts_allowed {
                if call.deadline().is_some_and(|deadline| deadline <= Instant::now()) {
                    return Err(out_of_time(&call, attempts, last));
                }
                let next = self.selection.candidates(&call).and_then(|candidates| {
                    listed = candidates.len();
                    self.selection.select(&candidates, &call, &tried)
                });
                let provider = match next {
                    Ok(provider) => provider,
                    Err(error) => return Err(error.with_attempts(attempts).with_source(last)),
                };
                match provider.invoke(call.clone()).await {
                    Ok(response) => {
                        tracing::warn!(
                            rpc.service = %directory.consumer_url().service_key(),
                            rpc.method = call.method_name(),
                            peer.addr = %provider.url().address(),
                            attempt = attempts.len() + 1,
                            error = %last,
                            "call succeeded after failed attempts"
                        );
                        return Ok(response);
                    }
                    Err(error) if error.is_retryable() => {
                        attempts.push(messages::attempt(&provider.url().address(), &error));
                        tried.push(provider);
                        last = error;
                    }
                    Err(error) => return Err(error.with_attempts(attempts)),
                }
            }
            Err(messages::tried(&**directory, &call, attempts, listed, last))
        })
    }

    /// Attempts in all: `retries` of the consumer, then 1, at least 1.
    fn attempts(&self, call: &Invocation) -> usize {
        let consumer = self.selection.directory().consumer_url();
        let retries = consumer.method_int(call.method_name(), keys::RETRIES, defaults::DEFAULT_RETRIES);
        usize::try_from(retries.saturating_add(1)).unwrap_or(1).max(1)
    }
}

impl Invoker for FailoverInvoker {
    fn url(&self) -> &Url {
        self.selection.directory().consumer_url()
    }

    fn is_available(&self) -> bool {
        self.selection.directory().is_available()
    }

    fn invoke(&self, call: Invocation) -> BoxFuture<'_, Result<Response, RpcError>> {
        Box::pin(self.run(call))
    }
}

fn out_of_time(call: &Invocation, attempts: Vec<Attempt>, last: RpcError) -> RpcError {
    RpcError::new(
        ErrorCode::TimeoutTerminate,
        format!(
            "No time left for making the following call: {}, terminate directly, after {} attempts. Last error is: {}",
            call.method_name(),
            attempts.len(),
            last.message()
        ),
    )
    .with_delivery(last.delivery())
    .with_attempts(attempts)
    .with_source(last)
}
