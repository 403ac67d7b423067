use std::sync::Arc;
use std::time::Duration;

use dubhe_config::{DubboConfig, ProtocolConfig, RegistryConfig};
use dubhe_core::error::RpcError;
use dubhe_core::tree::TreeFactory;
use dubhe_registry::{MEMORY, MemoryStore, MemoryTreeFactory};

use crate::application::Dubhe;
use crate::extensions::Extensions;
use crate::signals::stop_signal;

/// An application being set up, by code or from a configuration file.
#[derive(Debug)]
pub struct DubheBuilder {
    config: DubboConfig,
    extensions: Extensions,
}

impl DubheBuilder {
    pub(crate) fn new(config: DubboConfig, store: MemoryStore) -> Self {
        let extensions = Extensions::builtin(store).expect("the built-in extensions have different names");
        Self { config, extensions }
    }

    /// Adds a registry: `zookeeper://192.0.2.1:2181?backup=192.0.2.2:2181`, `memory://local`.
    pub fn registry(self, address: impl Into<String>) -> Self {
        self.registry_config(RegistryConfig::at(address))
    }

    /// Adds a registry with all its settings. The first one is `default`, further ones are `registry-2` and so on.
    pub fn registry_config(mut self, registry: RegistryConfig) -> Self {
        if self.config.registry.is_none() && self.config.registries.is_empty() {
            self.config.registry = Some(registry);
        } else {
            let id = format!("registry-{}", self.config.registries.len() + 2);
            self.config.registries.insert(id, registry);
        }
        self
    }

    /// Lets `memory://` registries live in `store`: applications of one process that share it see each other.
    pub fn memory_store(mut self, store: &MemoryStore) -> Self {
        let factory = Arc::new(MemoryTreeFactory::new(store.clone()));
        self.extensions.trees.replace(MEMORY, 0, move || Arc::clone(&factory) as Arc<dyn TreeFactory>);
        self
    }

    /// Adds a protocol to serve by. Without any, services are served by `dubbo` on port 20880.
    pub fn protocol(mut self, protocol: ProtocolConfig) -> Self {
        if self.config.protocol.is_none() && self.config.protocols.is_empty() {
            self.config.protocol = Some(protocol);
        } else {
            let id = format!("protocol-{}", self.config.protocols.len() + 2);
            self.config.protocols.insert(id, protocol);
        }
        self
    }

    /// How long [`Dubhe::shutdown`] waits for calls under way. Default 10 s.
    pub fn shutdown_wait(mut self, wait: Duration) -> Self {
        self.config.application.shutdown_wait = Some(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// The whole configuration, to be changed in place.
    pub fn config(&mut self) -> &mut DubboConfig {
        &mut self.config
    }

    /// The implementations used, to add your own.
    pub fn extensions(&mut self) -> &mut Extensions {
        &mut self.extensions
    }

    /// Starts the application, sets it up (`set_up` exports its services), and runs it until the process is told to stop (SIGTERM
    /// or SIGINT); then shuts down. Signals are listened for before anything is registered, so that one that comes while the
    /// application starts ends it gracefully too: `set_up` is given up, and what it had registered is taken back.
    ///
    /// Errors: those of [`DubheBuilder::start`] and of `set_up`, after a shutdown.
    ///
    /// ```no_run
    /// # async fn run<S: dubhe::Service + dubhe::ServiceInterface>(service: S) -> dubhe::Result<()> {
    /// dubhe::Dubhe::builder("greeter-provider")
    ///     .registry("zookeeper://127.0.0.1:2181")
    ///     .run(async |dubhe| dubhe.export(service).await.map(|_| ()))
    ///     .await
    /// # }
    /// ```
    pub async fn run<F>(self, set_up: F) -> Result<(), RpcError>
    where
        F: AsyncFnOnce(&Dubhe) -> Result<(), RpcError>,
    {
        let mut stopped = std::pin::pin!(stop_signal());
        // Asked once: from here on it listens.
        let early = futures::poll!(&mut stopped).is_ready();
        let dubhe = self.start().await?;
        let set_up = async {
            if early {
                return Ok(true);
            }
            tokio::select! {
                biased;
                () = &mut stopped => Ok(true),
                done = set_up(&dubhe) => done.map(|()| false),
            }
        };
        let outcome = set_up.await;
        if matches!(outcome, Ok(false)) {
            stopped.await;
        }
        tracing::info!("shutting down");
        dubhe.shutdown().await;
        outcome.map(|_| ())
    }

    /// Starts the application: opens its registries. Called within a tokio runtime.
    ///
    /// Errors: the configuration cannot be used. A registry that cannot be reached now is not an error here, but at the first operation
    /// that needs it.
    pub async fn start(self) -> Result<Dubhe, RpcError> {
        Dubhe::open(self.config, self.extensions).await
    }
}
