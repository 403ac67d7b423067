//! One of the two ways to a service's providers.

use std::fmt::{self, Debug};
use std::sync::Arc;

use async_trait::async_trait;
use dubhe_core::directory::{Directory, DirectoryStatus};
use dubhe_core::error::RpcError;
use dubhe_core::invoker::SharedInvoker;
use tokio::sync::watch;

/// Which discovery a side uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SideKind {
    /// Addresses registered per interface.
    Interface,
    /// Instances registered per application.
    Application,
}

impl SideKind {
    /// The other one.
    pub const fn other(self) -> Self {
        match self {
            Self::Interface => Self::Application,
            Self::Application => Self::Interface,
        }
    }
}

impl fmt::Display for SideKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Interface => "interface-level",
            Self::Application => "application-level",
        })
    }
}

/// One way to a service's providers: a cluster invoker and the directory behind it.
#[async_trait]
pub trait Side: Send + Sync + Debug {
    /// What is called.
    fn invoker(&self) -> &SharedInvoker;

    /// The directory's counts and flags, now and from now on.
    fn status(&self) -> watch::Receiver<DirectoryStatus>;

    /// Addresses of all providers, for people.
    fn addresses(&self) -> Vec<String>;

    /// Unregisters the consumer, ends the subscription and lets the providers go. Idempotent.
    async fn close(&self);
}

/// Makes sides when a step asks for them.
#[async_trait]
pub trait SideFactory: Send + Sync + Debug {
    /// Registers the consumer, subscribes, and joins the providers to one invoker. An empty list is not an error.
    ///
    /// Not called again for a kind before its last side was closed. A failure is tried again with growing pauses. When the step
    /// changes, the future is dropped: it must leave nothing behind then.
    async fn make(&self, kind: SideKind) -> Result<Arc<dyn Side>, RpcError>;
}

/// A side over any directory.
#[derive(Debug)]
pub struct DirectorySide {
    directory: Arc<dyn Directory>,
    invoker: SharedInvoker,
}

impl DirectorySide {
    /// A side whose calls go to `invoker`, which joins `directory`.
    pub fn new(directory: Arc<dyn Directory>, invoker: SharedInvoker) -> Self {
        Self { directory, invoker }
    }

    /// The directory.
    pub fn directory(&self) -> &Arc<dyn Directory> {
        &self.directory
    }
}

#[async_trait]
impl Side for DirectorySide {
    fn invoker(&self) -> &SharedInvoker {
        &self.invoker
    }

    fn status(&self) -> watch::Receiver<DirectoryStatus> {
        self.directory.status()
    }

    fn addresses(&self) -> Vec<String> {
        self.directory.invokers().iter().map(|one| one.url().address()).collect()
    }

    async fn close(&self) {
        self.directory.close().await;
    }
}

#[cfg(test)]
mod tests {
    use dubhe_common::Url;
    use dubhe_core::BoxFuture;
    use dubhe_core::invocation::Invocation;
    use dubhe_core::invoker::Invoker;
    use dubhe_core::load_balance::Candidates;
    use dubhe_core::response::{Payload, Response};
    use dubhe_core::router::Explanation;

    use super::*;

    #[derive(Debug)]
    struct OneProvider(Url);

    impl Invoker for OneProvider {
        fn url(&self) -> &Url {
            &self.0
        }

        fn is_available(&self) -> bool {
            true
        }

        fn invoke(&self, _call: Invocation) -> BoxFuture<'_, Result<Response, RpcError>> {
            Box::pin(async { Ok(Response::of(Payload::null())) })
        }
    }

    #[derive(Debug)]
    struct Listed {
        provider: SharedInvoker,
        status: watch::Sender<DirectoryStatus>,
    }

    #[async_trait]
    impl Directory for Listed {
        fn consumer_url(&self) -> &Url {
            self.provider.url()
        }

        fn origin(&self) -> &str {
            "test"
        }

        fn list(&self, _call: &Invocation) -> Result<Arc<Candidates>, RpcError> {
            Ok(Arc::new(Candidates::new(vec![Arc::clone(&self.provider)])))
        }

        fn invokers(&self) -> Arc<[SharedInvoker]> {
            Arc::from([Arc::clone(&self.provider)])
        }

        fn invalidate(&self, _invoker: &SharedInvoker) {}

        fn is_available(&self) -> bool {
            true
        }

        fn status(&self) -> watch::Receiver<DirectoryStatus> {
            self.status.subscribe()
        }

        fn explain(&self, _call: &Invocation) -> Explanation {
            Explanation::default()
        }

        async fn close(&self) {
            self.status.send_modify(|status| status.closed = true);
        }
    }

    #[tokio::test]
    async fn a_side_over_a_directory_shows_its_addresses_and_closes_it() {
        let provider: SharedInvoker =
            Arc::new(OneProvider(Url::parse("dubbo://192.0.2.1:20880/demo.Greeter").unwrap()));
        let status = watch::Sender::new(DirectoryStatus { total: 1, valid: 1, ..DirectoryStatus::default() });
        let directory = Arc::new(Listed { provider: Arc::clone(&provider), status });
        let side = DirectorySide::new(directory, provider);
        assert_eq!(side.addresses(), ["192.0.2.1:20880"]);
        assert_eq!(side.status().borrow().valid, 1);
        assert!(side.invoker().is_available());
        side.close().await;
        assert!(side.directory().status().borrow().closed);
    }
}
