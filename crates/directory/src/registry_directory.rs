use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use dubhe_common::{Url, defaults};
use dubhe_core::directory::{Directory, DirectoryStatus};
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::extension::Extensions;
use dubhe_core::filter::Filter;
use dubhe_core::invocation::Invocation;
use dubhe_core::invoker::SharedInvoker;
use dubhe_core::load_balance::Candidates;
use dubhe_core::protocol::Protocol;
use dubhe_core::registry::{Registry, RegistryError};
use dubhe_core::router::{Explanation, RouterChain};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::Instrument;

use crate::connectivity::{Aside, Reports};
use crate::providers::Providers;
use crate::snapshot::{Published, Snapshot};
use crate::writer::Writer;

/// What a registry directory is made of.
#[derive(Debug)]
pub struct RegistryDirectoryParts {
    /// Where the providers are registered.
    pub registry: Arc<dyn Registry>,
    /// The consumer's URL: its parameters are merged into each address.
    pub consumer: Url,
    /// What to subscribe to: the consumer's URL with its categories.
    pub subscribe: Url,
    /// What to register, if the consumer is to be seen in the registry.
    pub register: Option<Url>,
    /// Makes invokers of addresses.
    pub protocols: Arc<Extensions<dyn Protocol>>,
    /// Put around each provider's invoker, the first one outermost.
    pub filters: Vec<Arc<dyn Filter>>,
    /// The routers of this service.
    pub chain: Arc<dyn RouterChain>,
}

/// A directory that follows a registry's view of one service.
///
/// Empty lists: with `enable-empty-protection` (of the consumer, else of the registry; default false, as in Dubbo 3.3) off, the registry's explicit empty list makes the
/// directory *forbidden* and lets all providers go; with it on the old list stays and is marked stale. Trouble with the registry always
/// keeps the list.
///
/// Override rules (`override://`, `absent://`) of the registry's `configurators` category change the addresses as they are used here,
/// not the consumer's own URL: `retries` and `cluster` stay as the consumer was configured.
///
/// Dropped without [`Directory::close`], it ends its subscription, but the consumer stays registered until the registry is closed.
pub struct RegistryDirectory {
    shared: Arc<Shared>,
    registry: Arc<dyn Registry>,
    registered: Option<Url>,
    writer: Mutex<Option<JoinHandle<()>>>,
    closed: AtomicBool,
}

/// What calls and the writer share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) consumer: Url,
    pub(crate) origin: String,
    pub(crate) published: Published,
    pub(crate) reports: Reports,
}

impl RegistryDirectory {
    /// Registers the consumer, subscribes, and gives the directory with the first view applied.
    pub async fn subscribe(parts: RegistryDirectoryParts) -> Result<Arc<Self>, RegistryError> {
        let RegistryDirectoryParts { registry, consumer, subscribe, register, protocols, filters, chain } =
            parts;
        if let Some(url) = &register {
            registry.register(url).await?;
        }
        let subscription = match registry.subscribe(&subscribe).await {
            Ok(subscription) => subscription,
            Err(error) => {
                if let Some(url) = &register {
                    // The reference failed as a whole: nothing of it stays behind. Its own failure is not worth more than this one.
                    let _ = registry.unregister(url).await;
                }
                return Err(error);
            }
        };
        let span = tracing::info_span!("directory", rpc.service = %consumer.service_key());
        let nothing = Snapshot::bind(Arc::from([]), &*chain, &Aside::default());
        let shared = Arc::new(Shared {
            consumer: consumer.clone(),
            origin: registry.url().address(),
            published: Published::new(nothing, false),
            reports: Reports::default(),
        });
        let providers = Providers::new(consumer, protocols, filters);
        let mut writer = Writer::new(Arc::clone(&shared), registry.url(), subscription, chain, providers);
        span.in_scope(|| writer.apply_view());
        let task = tokio::spawn(writer.run().instrument(span));
        Ok(Arc::new(Self {
            shared,
            registry,
            registered: register,
            writer: Mutex::new(Some(task)),
            closed: AtomicBool::new(false),
        }))
    }

    /// Ends the subscription and lets the providers go.
    fn stop(&self) -> Option<JoinHandle<()>> {
        let task = self.writer.lock().take();
        if let Some(task) = &task {
            task.abort();
        }
        self.shared.published.close();
        task
    }
}

#[async_trait]
impl Directory for RegistryDirectory {
    fn consumer_url(&self) -> &Url {
        &self.shared.consumer
    }

    fn origin(&self) -> &str {
        &self.shared.origin
    }

    fn list(&self, call: &Invocation) -> Result<Arc<Candidates>, RpcError> {
        let snapshot = self.shared.published.load();
        if snapshot.closed || snapshot.forbidden.is_some() {
            return Err(self.shared.refusal(&snapshot));
        }
        snapshot.routes.candidates(call)
    }

    fn invokers(&self) -> Arc<[SharedInvoker]> {
        Arc::clone(&self.shared.published.load().all)
    }

    fn invalidate(&self, invoker: &SharedInvoker) {
        self.shared.reports.report(invoker);
    }

    fn is_available(&self) -> bool {
        self.shared.published.load().is_available()
    }

    fn status(&self) -> watch::Receiver<DirectoryStatus> {
        self.shared.published.status()
    }

    fn explain(&self, call: &Invocation) -> Explanation {
        self.shared.published.load().explain(call)
    }

    async fn close(&self) {
        if self.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        let stops_when_dropped = Closing(self);
        if let Some(url) = &self.registered
            && let Err(error) = self.registry.unregister(url).await
        {
            tracing::warn!(%error, "consumer is not unregistered yet");
        }
        // Whatever the registry's state: nothing of the subscription stays behind.
        let task = self.stop();
        drop(stops_when_dropped);
        if let Some(task) = task {
            // It ends with the abort; its own end is no news.
            let _ = task.await;
        }
    }
}

/// Closes the directory even when the one who closes it is cancelled at the unregistering.
struct Closing<'a>(&'a RegistryDirectory);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Drop for RegistryDirectory {
    fn drop(&mut self) {
        self.stop();
    }
}

impl std::fmt::Debug for RegistryDirectory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RegistryDirectory")
            .field("consumer", &self.shared.consumer)
            .field("registry", &self.shared.origin)
            .field("status", &*self.shared.published.status().borrow())
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// The error of a call to a directory that is closed or forbidden.
    #[cold]
    fn refusal(&self, snapshot: &Snapshot) -> RpcError {
        let service = self.consumer.service_key();
        if snapshot.closed {
            return RpcError::new(
                ErrorCode::Unknown,
                format!(
                    "Directory of type RegistryDirectory already destroyed for service {service} from registry {}",
                    self.origin
                ),
            );
        }
        let why = snapshot.forbidden.as_deref().unwrap_or("the registry lists none");
        RpcError::new(
            ErrorCode::Forbidden,
            format!(
                "No provider available from registry {} for service {service} on consumer {} use dubbo version {}, please check status \
                 of providers(disabled, not registered or in blacklist). ({why})",
                self.origin,
                self.consumer.host(),
                defaults::DUBBO_VERSION,
            ),
        )
    }
}
