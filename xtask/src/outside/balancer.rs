//! A balancer of the user's own under a new name.

use std::sync::Arc;

use dubhe::config::ProtocolConfig;
use dubhe::core::invocation::Invocation;
use dubhe::core::invoker::SharedInvoker;
use dubhe::core::load_balance::{Candidates, LoadBalance};
use dubhe::{Dubhe, MemoryStore};

#[dubhe::service(interface = "com.example.Who")]
pub trait Who {
    async fn port(&self) -> dubhe::Result<i32>;
}

struct Me(i32);

impl Who for Me {
    async fn port(&self) -> dubhe::Result<i32> {
        Ok(self.0)
    }
}

#[derive(Debug)]
struct LowestPort;

impl LoadBalance for LowestPort {
    fn name(&self) -> &str {
        "lowest-port"
    }

    fn select<'a>(&self, candidates: &'a Candidates, _: &Invocation) -> Option<&'a SharedInvoker> {
        candidates.invokers().iter().filter(|one| one.is_available()).min_by_key(|one| one.url().port())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = MemoryStore::new();
    let mut ports = Vec::new();
    let mut providers = Vec::new();
    for number in 0..3 {
        let loopback = ProtocolConfig { host: Some("127.0.0.1".to_owned()), ..ProtocolConfig::dubbo(0) };
        let provider =
            Dubhe::builder("provider").memory_store(&store).registry("memory://local").protocol(loopback).start().await?;
        let exported = provider.export(WhoService::new(Me(number))).await?;
        ports.push((exported.urls()[0].port(), number));
        providers.push(provider);
    }
    let lowest = ports.iter().min().map(|(_, number)| *number);
    let mut builder = Dubhe::builder("consumer").memory_store(&store).registry("memory://local");
    builder.extensions().load_balances.register("lowest-port", || Arc::new(LowestPort))?;
    let consumer = builder.start().await?;
    let who = consumer.reference::<WhoClient>().load_balance("lowest-port").connect().await?;
    // All three are connected before the first pick.
    while !who.directory().unwrap().invokers().iter().all(|one| one.is_available()) {
        tokio::task::yield_now().await;
    }
    for _ in 0..10 {
        assert_eq!(Some(who.client.port().await?), lowest);
    }
    consumer.shutdown().await;
    for provider in providers {
        provider.shutdown().await;
    }
    Ok(())
}
