//! What all applications of the demo have in common: the registry, and sockets on the loopback interface.

use anyhow::{Context, Result, anyhow};
use dubhe::config::{ProtocolConfig, RegistryConfig};
use dubhe::{Dubhe, DubheBuilder, ExportedService, MemoryStore, Url};
use dubhe_examples::{GreeterService, Named};

/// How long the registry may take to answer at the start, milliseconds.
const REGISTRY_TIMEOUT: u64 = 5_000;

/// The registry, and how to become a member of the fleet in it.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    registry: RegistryConfig,
    store: MemoryStore,
}

impl Network {
    pub(crate) fn new(registry: &str) -> Self {
        let registry = RegistryConfig {
            timeout: Some(REGISTRY_TIMEOUT),
            file_cache: Some(false),
            ..RegistryConfig::at(registry)
        };
        Self { registry, store: MemoryStore::new() }
    }

    /// An application on this registry.
    pub(crate) fn application(&self, name: impl Into<String>) -> DubheBuilder {
        Dubhe::builder(name).memory_store(&self.store).registry_config(self.registry.clone())
    }

    /// Starts a provider on a free port: an instance of `application` whose greetings are signed with `name`. `mode` is how it
    /// registers: `interface`, `instance`, `all`. Returns when others can find it.
    pub(crate) async fn provider(&self, application: &str, name: &str, mode: &str) -> Result<Provider> {
        let loopback = ProtocolConfig { host: Some("127.0.0.1".to_owned()), ..ProtocolConfig::dubbo(0) };
        let mut builder = self.application(application).protocol(loopback);
        builder.config().application.register_mode = Some(mode.to_owned());
        let application = builder.start().await?;
        let exported = application
            .export(GreeterService::new(Named(name.to_owned())))
            .await
            .with_context(|| self.unreachable_hint())?;
        application.announce().await?;
        Ok(Provider { application, exported })
    }

    fn unreachable_hint(&self) -> String {
        format!(
            "the registry {} cannot be used; start a ZooKeeper there, or run the demo without --registry",
            self.registry.address
        )
    }
}

/// A running provider.
#[derive(Debug)]
pub(crate) struct Provider {
    application: Dubhe,
    exported: ExportedService,
}

impl Provider {
    pub(crate) fn address(&self) -> Result<String> {
        let urls = self.exported.urls();
        urls.first().map(Url::address).ok_or_else(|| anyhow!("the provider serves nothing"))
    }

    /// Shuts down gracefully: unregisters, finishes its calls, closes.
    pub(crate) async fn leave(self) {
        self.application.shutdown().await;
    }
}
