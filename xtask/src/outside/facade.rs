//! The README's service, provided and called, outside the workspace.

use dubhe::config::ProtocolConfig;
use dubhe::{Dubhe, MemoryStore};

#[dubhe::service(interface = "com.example.Greeter", version = "1.0.0")]
pub trait Greeter {
    async fn say_hello(&self, name: String) -> dubhe::Result<Greeting>;
}

#[dubhe::java_class("com.example.Greeting")]
#[derive(Clone, Debug)]
pub struct Greeting {
    pub text: String,
    pub times_greeted: i32,
}

struct Polite;

impl Greeter for Polite {
    async fn say_hello(&self, name: String) -> dubhe::Result<Greeting> {
        Ok(Greeting { text: format!("Hello {name}"), times_greeted: 1 })
    }
}

#[tokio::main]
async fn main() -> dubhe::Result<()> {
    let store = MemoryStore::new();
    let loopback = ProtocolConfig { host: Some("127.0.0.1".to_owned()), ..ProtocolConfig::dubbo(0) };
    let provider =
        Dubhe::builder("greeter-provider").memory_store(&store).registry("memory://local").protocol(loopback).start().await?;
    provider.export(GreeterService::new(Polite)).await?;
    let consumer = Dubhe::builder("greeter-consumer").memory_store(&store).registry("memory://local").start().await?;
    let greeter = consumer.refer::<GreeterClient>().await?;
    let greeting = greeter.say_hello("world".to_owned()).await?;
    assert_eq!((greeting.text.as_str(), greeting.times_greeted), ("Hello world", 1));
    consumer.shutdown().await;
    provider.shutdown().await;
    Ok(())
}
