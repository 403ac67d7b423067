//! Layer 4, filter: code around calls.

use std::fmt::Debug;
use std::sync::Arc;

use dubhe_common::Url;

use crate::BoxFuture;
use crate::error::RpcError;
use crate::invocation::Invocation;
use crate::invoker::{Invoker, SharedInvoker};
use crate::response::Response;

/// Where a filter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FilterSide {
    /// Around one logical call of a consumer, retries inside.
    Cluster,
    /// Around each attempt of a consumer.
    Consumer,
    /// Around a provider's service.
    Provider,
}

/// Code around calls. It may change the invocation, answer itself, or look at the outcome.
pub trait Filter: Send + Sync + Debug {
    /// Handles one call; `next` is the rest of the chain.
    fn invoke<'a>(
        &'a self,
        next: &'a dyn Invoker,
        call: Invocation,
    ) -> BoxFuture<'a, Result<Response, RpcError>>;
}

/// `inner` with `filters` around it, the first one outermost. Without filters it is `inner` itself.
pub fn chain(filters: &[Arc<dyn Filter>], inner: SharedInvoker) -> SharedInvoker {
    filters.iter().rev().fold(inner, |next, filter| Arc::new(Filtered { filter: Arc::clone(filter), next }))
}

#[derive(Debug)]
struct Filtered {
    filter: Arc<dyn Filter>,
    next: SharedInvoker,
}

impl Invoker for Filtered {
    fn url(&self) -> &Url {
        self.next.url()
    }

    fn registered_url(&self) -> &Url {
        self.next.registered_url()
    }

    fn is_available(&self) -> bool {
        self.next.is_available()
    }

    fn invoke(&self, call: Invocation) -> BoxFuture<'_, Result<Response, RpcError>> {
        self.filter.invoke(&*self.next, call)
    }
}
