//! How long from a provider's node in ZooKeeper until a consumer can route to it?

use std::time::{Duration, Instant};

use dubhe::Dubhe;
use dubhe::config::{ProtocolConfig, RegistryConfig};
use dubhe_testkit::ZooKeeper;

use crate::call::{BenchClient, BenchService};

/// Times of `rounds` providers joining, from the call that registers until the consumer's directory lists it.
pub async fn join_times(rounds: usize) -> anyhow::Result<Vec<Duration>> {
    let zookeeper = ZooKeeper::start().await?;
    // The first ten changes of a service pass at once anyway; here two hundred come one after the other.
    let unpaced = [("delay-notification".to_owned(), "0".to_owned())];
    let registry = || RegistryConfig {
        file_cache: Some(false),
        parameters: unpaced.clone().into(),
        ..RegistryConfig::at(format!("zookeeper://{}", zookeeper.address()))
    };
    let consumer = Dubhe::builder("push-consumer").registry_config(registry()).start().await?;
    let reference = consumer.reference::<BenchClient>().check(false).connect().await?;
    let directory = reference.directory().ok_or_else(|| anyhow::anyhow!("the reference has a directory"))?;
    let mut status = directory.status();
    let loopback = ProtocolConfig { host: Some("127.0.0.1".to_owned()), ..ProtocolConfig::dubbo(0) };
    let provider =
        Dubhe::builder("push-provider").registry_config(registry()).protocol(loopback).start().await?;
    let server = provider.service(BenchService::new(crate::call::Echo)).register(false).export().await?;
    let served = server.urls().into_iter().next().ok_or_else(|| anyhow::anyhow!("nothing is served"))?;
    let tree = provider.registry().ok_or_else(|| anyhow::anyhow!("a registry is configured"))?;
    let mut times = Vec::with_capacity(rounds);
    for round in 0..rounds {
        let url = served.with_param("round", round);
        let start = Instant::now();
        tree.register(&url).await?;
        while status.borrow_and_update().total == 0 {
            status.changed().await?;
        }
        times.push(start.elapsed());
        tree.unregister(&url).await?;
        while status.borrow_and_update().total != 0 {
            status.changed().await?;
        }
    }
    consumer.shutdown().await;
    provider.shutdown().await;
    Ok(times)
}
