//! The applications of the demo, and what happens to them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use dubhe::config::{ProtocolConfig, RegistryConfig};
use dubhe::{Dubhe, ExportedService, MemoryStore, Url, keys};
use dubhe_examples::{Greeter, GreeterClient, GreeterService, Named};
use tokio::task::JoinSet;

use crate::board::Board;
use crate::options::Options;

/// Callers at the same time, and the pause of each between two calls.
const CALLERS: usize = 16;
const PAUSE: Duration = Duration::from_millis(2);
/// How long the registry may take to answer at the start.
const REGISTRY_TIMEOUT: u64 = 5_000;

/// Three providers and a consumer.
#[derive(Debug)]
pub(crate) struct Fleet {
    registry: RegistryConfig,
    store: MemoryStore,
    providers: Vec<Option<Provider>>,
    consumer: Dubhe,
    greeter: GreeterClient,
    rule: Option<Url>,
}

#[derive(Debug)]
struct Provider {
    application: Dubhe,
    exported: ExportedService,
}

impl Fleet {
    pub(crate) async fn start(options: &Options, board: &Board) -> Result<Self> {
        let registry = RegistryConfig {
            timeout: Some(REGISTRY_TIMEOUT),
            file_cache: Some(false),
            ..RegistryConfig::at(&options.registry)
        };
        let store = MemoryStore::new();
        let mut providers = Vec::new();
        for index in 0..3 {
            let provider = provider(&registry, &store, index)
                .await
                .with_context(|| unreachable_hint(&options.registry))?;
            board.say(&format!("{} serves {}", name(index), provider.address()?));
            providers.push(Some(provider));
        }
        let consumer = Dubhe::builder("demo-consumer")
            .memory_store(&store)
            .registry_config(registry.clone())
            .start()
            .await?;
        let greeter = consumer.refer::<GreeterClient>().await?;
        Ok(Self { registry, store, providers, consumer, greeter, rule: None })
    }

    /// Starts the steady load.
    pub(crate) fn load(&self, board: &Board) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let mut callers = JoinSet::new();
        for caller in 0..CALLERS {
            let (greeter, board, stop) = (self.greeter.clone(), board.clone(), Arc::clone(&stop));
            callers.spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    match greeter.say_hello(format!("caller {caller}")).await {
                        Ok(greeting) => board.answered(&greeting.provider),
                        Err(error) => board.failed(&error),
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            });
        }
        Load { stop, callers }
    }

    /// A provider shuts down gracefully.
    pub(crate) async fn leave(&mut self, index: usize) {
        if let Some(provider) = self.providers[index].take() {
            provider.application.shutdown().await;
        }
    }

    /// A provider starts.
    pub(crate) async fn enter(&mut self, index: usize) -> Result<()> {
        self.providers[index] = Some(provider(&self.registry, &self.store, index).await?);
        Ok(())
    }

    /// Puts a rule that lets only one provider be called.
    pub(crate) async fn put_rule(&mut self, index: usize) -> Result<()> {
        let provider = self.providers[index].as_ref().context("the provider is there")?;
        let rule = format!("method = sayHello => address = {}", provider.address()?);
        let url = Url::builder(keys::protocol::CONDITION, keys::ANYHOST_VALUE, 0)
            .path("dev.dubhe.demo.Greeter")
            .param(keys::CATEGORY, keys::category::ROUTERS)
            .param(keys::INTERFACE, "dev.dubhe.demo.Greeter")
            .param(keys::FORCE, true)
            .param(keys::RULE, dubhe::encode(&rule))
            .build();
        self.consumer.registry().context("a registry is configured")?.register(&url).await?;
        self.rule = Some(url);
        Ok(())
    }

    /// Takes the rule away.
    pub(crate) async fn remove_rule(&mut self) -> Result<()> {
        if let Some(rule) = self.rule.take() {
            self.consumer.registry().context("a registry is configured")?.unregister(&rule).await?;
        }
        Ok(())
    }

    pub(crate) async fn stop(self) {
        self.consumer.shutdown().await;
        for provider in self.providers.into_iter().flatten() {
            provider.application.shutdown().await;
        }
    }
}

impl Provider {
    fn address(&self) -> Result<String> {
        let urls = self.exported.urls();
        urls.first().map(Url::address).ok_or_else(|| anyhow!("the provider serves nothing"))
    }
}

async fn provider(registry: &RegistryConfig, store: &MemoryStore, index: usize) -> Result<Provider> {
    let loopback = ProtocolConfig { host: Some("127.0.0.1".to_owned()), ..ProtocolConfig::dubbo(0) };
    let application = Dubhe::builder(name(index))
        .memory_store(store)
        .registry_config(registry.clone())
        .protocol(loopback)
        .start()
        .await?;
    let exported = application.export(GreeterService::new(Named(name(index)))).await?;
    Ok(Provider { application, exported })
}

fn name(index: usize) -> String {
    format!("provider-{}", index + 1)
}

fn unreachable_hint(registry: &str) -> String {
    format!(
        "the registry {registry} cannot be used; start a ZooKeeper there, or run `cargo demo` without --registry"
    )
}

/// The running load.
#[derive(Debug)]
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    callers: JoinSet<()>,
}

impl Load {
    /// Lets every caller finish its call.
    pub(crate) async fn stop(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        while self.callers.join_next().await.is_some() {}
    }
}
