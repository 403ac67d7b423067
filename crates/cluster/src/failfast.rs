use std::sync::Arc;

use dubhe_common::Url;
use dubhe_core::BoxFuture;
use dubhe_core::cluster::Cluster;
use dubhe_core::directory::Directory;
use dubhe_core::error::RpcError;
use dubhe_core::extension::Extensions;
use dubhe_core::invocation::Invocation;
use dubhe_core::invoker::{Invoker, SharedInvoker};
use dubhe_core::load_balance::LoadBalance;
use dubhe_core::response::Response;

use crate::messages;
use crate::selection::Selection;

/// One attempt: for calls that must not run twice.
#[derive(Clone, Copy, Debug, Default)]
pub struct Failfast;

impl Failfast {
    /// The name in URLs.
    pub const NAME: &str = "failfast";
}

impl Cluster for Failfast {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn join(
        &self,
        directory: Arc<dyn Directory>,
        balancers: Arc<Extensions<dyn LoadBalance>>,
    ) -> SharedInvoker {
        Arc::new(FailfastInvoker { selection: Selection::new(directory, balancers) })
    }
}

#[derive(Debug)]
struct FailfastInvoker {
    selection: Selection,
}

impl FailfastInvoker {
    async fn run(&self, call: Invocation) -> Result<Response, RpcError> {
        let candidates = self.selection.candidates(&call)?;
        let provider = self.selection.select(&candidates, &call, &[])?;
        match provider.invoke(call.clone()).await {
            Ok(response) => Ok(response),
            Err(error) if error.is_business() => Err(error),
            Err(error) => {
                let attempts = vec![messages::attempt(&provider.url().address(), &error)];
                let balancer = self.selection.balancer_name(&candidates, &call);
                Err(messages::failfast(&**self.selection.directory(), &call, balancer, attempts, error))
            }
        }
    }
}

impl Invoker for FailfastInvoker {
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
