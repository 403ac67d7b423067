use dubhe_common::Url;
use dubhe_core::BoxFuture;
use dubhe_core::error::RpcError;
use dubhe_core::invocation::Invocation;
use dubhe_core::invoker::{Invoker, SharedInvoker};
use dubhe_core::response::Response;

/// An invoker as its directory lists it: it remembers what the provider registered.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) registered: Url,
    pub(crate) inner: SharedInvoker,
}

impl Invoker for Listed {
    fn url(&self) -> &Url {
        self.inner.url()
    }

    fn registered_url(&self) -> &Url {
        &self.registered
    }

    fn is_available(&self) -> bool {
        self.inner.is_available()
    }

    fn invoke(&self, call: Invocation) -> BoxFuture<'_, Result<Response, RpcError>> {
        self.inner.invoke(call)
    }
}
