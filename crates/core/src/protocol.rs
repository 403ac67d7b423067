//! Layer 4, protocol: makes invokers of provider URLs, and servers of services.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dubhe_common::Url;

use crate::error::RpcError;
use crate::invoker::SharedInvoker;
use crate::service::ServiceDefinition;

/// A wire protocol, found by the protocol of a URL (`dubbo`, `tri`, `injvm`).
#[async_trait]
pub trait Protocol: Send + Sync + Debug {
    /// The name in URLs.
    fn name(&self) -> &str;

    /// Port of a provider whose configuration names none.
    fn default_port(&self) -> u16;

    /// An invoker for one provider. Returns at once: the connection (shared by all invokers of the same address and settings) is made
    /// in the background, and the invoker becomes available with it. Fails only for a URL that can never work. Called within a tokio
    /// runtime.
    fn refer(&self, url: &Url) -> Result<SharedInvoker, RpcError>;

    /// Serves `exported` on its URL's address; the server is shared by all services of one address. Returns when it listens.
    async fn export(&self, exported: Exported) -> Result<Box<dyn Exporter>, RpcError>;

    /// Tells all peers that no more calls are wanted (read-only), and waits until no call is being served, at most `grace`.
    async fn drain(&self, grace: Duration);

    /// Closes servers and connections. Calls in flight fail. Idempotent.
    async fn close(&self);
}

/// A service to be served.
#[derive(Clone, Debug)]
pub struct Exported {
    /// The provider URL; a port of 0 is replaced by a free one.
    pub url: Url,
    /// What its methods are, for decoding.
    pub definition: Arc<ServiceDefinition>,
    /// What requests are given to: filters, then the service.
    pub invoker: SharedInvoker,
}

/// A service being served.
#[async_trait]
pub trait Exporter: Send + Sync + Debug {
    /// The URL as served: the port is the real one.
    fn url(&self) -> &Url;

    /// Ends serving this service; requests for it are refused from now on. The server closes with its last service.
    async fn unexport(&self);
}
