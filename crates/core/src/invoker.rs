//! What can be called: a provider, a cluster of providers, or a provider's own service object.

use std::fmt::Debug;
use std::sync::Arc;

use dubhe_common::Url;

use crate::BoxFuture;
use crate::error::RpcError;
use crate::invocation::Invocation;
use crate::response::Response;

/// One callable service: a single remote provider, a cluster that hides many, or a local service.
///
/// Promises:
/// - `invoke` may be called from many tasks at once and is cancelled by dropping its future: nothing leaks.
/// - An `Err` is a failure of the call (see [`RpcError::delivery`] for whether the provider may have run it); what the
///   service itself threw is an `Ok` response that holds an exception.
/// - An invoker that its directory no longer lists still serves calls that already chose it. Its connection lease
///   ends when the last `Arc` goes.
pub trait Invoker: Send + Sync + Debug {
    /// The effective URL: of the provider with the consumer's parameters merged in, or of the consumer for a cluster.
    fn url(&self) -> &Url;

    /// The address as the provider registered it, before the consumer's parameters and overrides were merged in: what the provider
    /// part of routing rules looks at. A directory that merges makes its invokers answer this; else it is [`Invoker::url`].
    fn registered_url(&self) -> &Url {
        self.url()
    }

    /// Whether a call sent now has a chance: for a remote provider, at least one of its connections is open and not
    /// read-only. Two or three atomic loads: it is asked once per pick.
    fn is_available(&self) -> bool;

    /// Performs one call.
    fn invoke(&self, invocation: Invocation) -> BoxFuture<'_, Result<Response, RpcError>>;
}

/// How invokers are held everywhere. Identity is the pointer.
pub type SharedInvoker = Arc<dyn Invoker>;

/// Whether two handles are the same invoker (identity, as in the reference; URLs are not compared).
#[inline]
pub fn same_invoker(a: &SharedInvoker, b: &SharedInvoker) -> bool {
    Arc::as_ptr(a).cast::<()>() == Arc::as_ptr(b).cast::<()>()
}
