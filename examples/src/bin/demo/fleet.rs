//! The applications of the story of a day, and what happens to them.

use anyhow::{Context, Result};
use dubhe::{Connected, Dubhe, Url, keys};
use dubhe_examples::GreeterClient;

use crate::board::Board;
use crate::network::{Network, Provider};
use crate::options::Options;

/// Three providers and a consumer.
#[derive(Debug)]
pub(crate) struct Fleet {
    network: Network,
    providers: Vec<Option<Provider>>,
    consumer: Dubhe,
    greeter: Connected<GreeterClient>,
    rule: Option<Url>,
}

impl Fleet {
    pub(crate) async fn start(options: &Options, board: &Board) -> Result<Self> {
        let network = Network::new(&options.registry);
        let mut providers = Vec::new();
        for index in 0..3 {
            let provider = provider(&network, index).await?;
            board.say(&format!("{} serves {}", name(index), provider.address()?));
            providers.push(Some(provider));
        }
        let consumer = network.application("demo-consumer").start().await?;
        let greeter = consumer.reference::<GreeterClient>().connect().await?;
        Ok(Self { network, providers, consumer, greeter, rule: None })
    }

    /// The consumer's reference.
    pub(crate) const fn greeter(&self) -> &Connected<GreeterClient> {
        &self.greeter
    }

    /// A provider shuts down gracefully.
    pub(crate) async fn leave(&mut self, index: usize) {
        if let Some(provider) = self.providers[index].take() {
            provider.leave().await;
        }
    }

    /// A provider starts.
    pub(crate) async fn enter(&mut self, index: usize) -> Result<()> {
        self.providers[index] = Some(provider(&self.network, index).await?);
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
            provider.leave().await;
        }
    }
}

async fn provider(network: &Network, index: usize) -> Result<Provider> {
    network.provider(&name(index), &name(index), "all").await
}

fn name(index: usize) -> String {
    format!("provider-{}", index + 1)
}
