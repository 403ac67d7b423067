//! The providers of one registry, as one of several.

use std::sync::Arc;

use dubhe_common::{Url, keys};
use dubhe_core::BoxFuture;
use dubhe_core::error::RpcError;
use dubhe_core::invocation::Invocation;
use dubhe_core::invoker::{Invoker, SharedInvoker};
use dubhe_core::response::Response;

/// What a cluster of registries looks at, of a registry's address.
const OF_THE_CLUSTER: [&str; 4] = [keys::PREFERRED, keys::ZONE, keys::WEIGHT, keys::LOADBALANCE];

/// All providers of a service that one registry knows, under the URL of that registry: what `zone-aware` chooses by.
#[derive(Debug)]
pub(crate) struct RegistryInvoker {
    url: Url,
    providers: SharedInvoker,
}

impl RegistryInvoker {
    pub(crate) fn new(registry: &Url, consumer: &Url, providers: SharedInvoker) -> Arc<Self> {
        let interface = consumer.service_interface();
        let url = Url::builder(registry.protocol(), registry.host(), registry.port())
            .path(interface)
            .param(keys::INTERFACE, interface)
            .params(registry.params().filter(|(name, _)| OF_THE_CLUSTER.contains(name)))
            .build();
        Arc::new(Self { url, providers })
    }
}

impl Invoker for RegistryInvoker {
    fn url(&self) -> &Url {
        &self.url
    }

    fn is_available(&self) -> bool {
        self.providers.is_available()
    }

    fn invoke(&self, invocation: Invocation) -> BoxFuture<'_, Result<Response, RpcError>> {
        self.providers.invoke(invocation)
    }
}
