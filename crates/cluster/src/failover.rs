use std::sync::Arc;
use std::time::Instant;

use dubhe_common::{Url, defaults, keys};
use dubhe_core::BoxFuture;
use dubhe_core::cluster::Cluster;
use dubhe_core::directory::Directory;
use dubhe_core::error::RpcError;
use dubhe_core::extension::Extensions;
use dubhe_core::invocation::Invocation;
use dubhe_core::invoker::{Invoker, SharedInvoker};
use dubhe_core::load_balance::LoadBalance;
use dubhe_core::response::Response;
use dubhe_core::value::Value;

use crate::messages::{self, Ended};
use crate::selection::Selection;

/// Tries other providers when one fails: `retries` (2, from the consumer, per method) times more. A number in the call's attachment
/// `retries` takes its place for that call and is not sent.
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

/// A first attempt that failed.
struct Failed {
    provider: SharedInvoker,
    error: RpcError,
    /// How many candidates there were.
    listed: usize,
}

impl FailoverInvoker {
    async fn run(&self, mut call: Invocation) -> Result<Response, RpcError> {
        let retries = take_retries(&mut call);
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
        self.run_again(call, retries, Failed { provider, error, listed }).await
    }

    #[cold]
    fn run_again(
        &self,
        call: Invocation,
        retries: Option<i64>,
        first: Failed,
    ) -> BoxFuture<'_, Result<Response, RpcError>> {
        Box::pin(async move {
            let directory = self.selection.directory();
            let attempts_allowed = self.attempts(&call, retries);
            let Failed { provider, error: mut last, mut listed } = first;
            let mut attempts = vec![messages::attempt(&provider.url().address(), &last)];
            let mut tried = vec![provider];
            while attempts.len() < attempts_allowed {
                if call.deadline().is_some_and(|deadline| deadline <= Instant::now()) {
                    return Err(messages::tried(
                        &**directory,
                        &call,
                        attempts,
                        listed,
                        Ended::OutOfTime,
                        last,
                    ));
                }
                let next = self.selection.candidates(&call).and_then(|candidates| {
                    listed = candidates.len();
                    self.selection.select(&candidates, &call, &tried)
                });
                let provider = match next {
                    Ok(provider) => provider,
                    Err(error) => return Err(messages::none_left(error, attempts, last)),
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
                    Err(error) => {
                        attempts.push(messages::attempt(&provider.url().address(), &error));
                        return Err(error.with_attempts(attempts));
                    }
                }
            }
            Err(messages::tried(&**directory, &call, attempts, listed, Ended::Exhausted, last))
        })
    }

    /// Attempts in all: `retries` of the call, else of the consumer, and one more; at least 1.
    fn attempts(&self, call: &Invocation, retries: Option<i64>) -> usize {
        let consumer = self.selection.directory().consumer_url();
        let retries = retries.unwrap_or_else(|| {
            consumer.method_int(call.method_name(), keys::RETRIES, defaults::DEFAULT_RETRIES)
        });
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

/// Takes the attachment `retries` off the call, which sets the number for this call alone. Only a number counts (as in Dubbo): a text
/// of that name is the user's own.
fn take_retries(call: &mut Invocation) -> Option<i64> {
    let retries = match call.attachments().get(keys::RETRIES)? {
        Value::Int(number) => i64::from(*number),
        Value::Long(number) => *number,
        _ => return None,
    };
    call.attachments_mut().remove(keys::RETRIES);
    Some(retries)
}
