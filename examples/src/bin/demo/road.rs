//! The applications of the migration, its rule, and what must be seen on the way.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use dubhe::core::config_center::{ConfigCenter, MIGRATION_GROUP};
use dubhe::core::migration::MigrationStep;
use dubhe::{Connected, Dubhe, Url, keys};
use dubhe_examples::GreeterClient;

use crate::network::{Network, Provider};
use crate::view::View;

/// How many providers there are.
pub(crate) const PROVIDERS: usize = 3;
/// What all of them are instances of.
const PROVIDER: &str = "demo-provider";
const CONSUMER: &str = "demo-consumer";
/// The key of the consumer's migration rule.
const RULE: &str = "demo-consumer.migration";
/// How long what happened may take to be seen by the consumer.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(10);

/// Three providers, and a consumer that migrates.
#[derive(Debug)]
pub(crate) struct Road {
    network: Network,
    providers: Vec<Provider>,
    consumer: Dubhe,
    greeter: Connected<GreeterClient>,
    rules: Arc<dyn ConfigCenter>,
}

impl Road {
    /// Starts providers that register by interface, and the consumer.
    pub(crate) async fn start(registry: &str) -> Result<Self> {
        let network = Network::new(registry);
        let mut providers = Vec::new();
        for index in 0..PROVIDERS {
            providers.push(network.provider(PROVIDER, &name(index), "interface").await?);
        }
        let consumer = network.application(CONSUMER).start().await?;
        let rules = consumer.config_center().context("the registry is a config centre too")?;
        // Of a run that was ended half-way.
        rules.remove(MIGRATION_GROUP, RULE).await?;
        let greeter = consumer.reference::<GreeterClient>().connect().await?;
        Ok(Self { network, providers, consumer, greeter, rules })
    }

    /// The consumer's reference.
    pub(crate) const fn greeter(&self) -> &Connected<GreeterClient> {
        &self.greeter
    }

    /// A provider that registers by `mode` starts, then the one that it replaces shuts down gracefully.
    pub(crate) async fn replace(&mut self, index: usize, mode: &str) -> Result<()> {
        let new = self.network.provider(PROVIDER, &name(index), mode).await?;
        std::mem::replace(&mut self.providers[index], new).leave().await;
        Ok(())
    }

    /// Tells the consumer by a rule which step to take.
    pub(crate) async fn put_rule(&self, step: MigrationStep) -> Result<()> {
        Ok(self.rules.publish(MIGRATION_GROUP, RULE, &format!("step: {step}")).await?)
    }

    /// Takes the rule away.
    pub(crate) async fn remove_rule(&self) -> Result<()> {
        self.rules.remove(MIGRATION_GROUP, RULE).await?;
        Ok(())
    }

    /// Waits until the consumer sees what is expected.
    pub(crate) async fn reach(&self, expected: &View) -> Result<()> {
        let seen = || View::from_explanation(&self.greeter.migration()?);
        let reached = async {
            while seen().as_ref() != Some(expected) {
                tokio::time::sleep(LOOK).await;
            }
        };
        if tokio::time::timeout(PATIENCE, reached).await.is_err() {
            bail!("not reached within {PATIENCE:?}: {expected:?}; instead {}", self.explain());
        }
        Ok(())
    }

    /// What the consumer says of its migration.
    pub(crate) fn explain(&self) -> String {
        self.greeter.migration().map(|migration| migration.to_string()).unwrap_or_default()
    }

    /// How many providers stand in the registry by interface.
    pub(crate) async fn interface_nodes(&self) -> Result<usize> {
        let all = Url::builder("consumer", self.consumer.host(), 0)
            .path("dev.dubhe.demo.Greeter")
            .param(keys::INTERFACE, "dev.dubhe.demo.Greeter")
            .param(keys::CATEGORY, keys::category::PROVIDERS)
            .build();
        let registry = self.consumer.registry().context("a registry is configured")?;
        Ok(registry.lookup(&all).await?.len())
    }

    /// Takes the rule back and shuts all applications down.
    pub(crate) async fn stop(self) {
        // After the story it is gone; a registry that cannot be reached was complained of by then.
        let _ = self.remove_rule().await;
        self.consumer.shutdown().await;
        for provider in self.providers {
            provider.leave().await;
        }
    }
}

pub(crate) fn name(index: usize) -> String {
    format!("provider-{}", index + 1)
}
