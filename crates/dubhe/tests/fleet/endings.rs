//! Graceful ends, of providers and of consumers.

use std::sync::atomic::Ordering;
use std::time::Duration;

use dubhe::ErrorCode;

use crate::support::{LONG, Load, Shop, ShopClient, World, until};

// C91
#[tokio::test]
async fn a_long_call_ends_well_although_its_provider_left_the_registry() {
    let world = World::new();
    let provider = world.provider("a").await;
    let consumer = world.consumer().await;
    let shop = consumer.reference::<ShopClient>().timeout(LONG).connect().await.unwrap();
    let client = shop.client.clone();
    let long = tokio::spawn(async move { client.wait().await });
    until("the call is served", || provider.inside.waiting.load(Ordering::SeqCst) == 1).await;
    provider.exported.unregister().await;
    until("the address is gone", || shop.addresses().is_empty()).await;
    provider.inside.release.notify_waiters();
    assert_eq!(long.await.unwrap().unwrap(), "a");
}

#[tokio::test]
async fn a_provider_that_shuts_down_finishes_the_calls_it_serves() {
    let world = World::new();
    let provider = world.provider("a").await;
    let consumer = world.consumer().await;
    let shop = consumer.reference::<ShopClient>().timeout(LONG).retries(0).get().await.unwrap();
    let client = shop.clone();
    let long = tokio::spawn(async move { client.wait().await });
    until("the call is served", || provider.inside.waiting.load(Ordering::SeqCst) == 1).await;
    let application = provider.application.clone();
    let shutdown = tokio::spawn(async move { application.shutdown().await });
    let error = async {
        loop {
            if let Err(error) = shop.who().await {
                return error;
            }
        }
    };
    let error = tokio::time::timeout(LONG, error).await.expect("new calls are refused at some point");
    assert_eq!(error.code(), ErrorCode::Forbidden, "{error:?}");
    assert!(!shutdown.is_finished(), "the shutdown waits for the call");
    provider.inside.release.notify_waiters();
    assert_eq!(long.await.unwrap().unwrap(), "a");
    shutdown.await.unwrap();
}

// C93
#[tokio::test]
async fn a_consumer_that_shuts_down_finishes_its_calls_and_leaves_nothing() {
    let world = World::new();
    let provider = world.provider("a").await;
    let consumer = world.consumer().await;
    let shop = consumer.reference::<ShopClient>().timeout(LONG).get().await.unwrap();
    assert!(consumer_nodes(&world) == 1, "the consumer is seen in the registry");
    let client = shop.clone();
    let long = tokio::spawn(async move { client.wait().await });
    until("the call is served", || provider.inside.waiting.load(Ordering::SeqCst) == 1).await;
    let ending = consumer.clone();
    let shutdown = tokio::spawn(async move { ending.shutdown().await });
    let refused = async {
        loop {
            if let Err(error) = shop.who().await {
                return error;
            }
        }
    };
    let error = tokio::time::timeout(LONG, refused).await.expect("new calls are refused");
    assert!(error.to_string().contains("shutting down"), "{error}");
    assert!(!shutdown.is_finished());
    provider.inside.release.notify_waiters();
    assert_eq!(long.await.unwrap().unwrap(), "a");
    shutdown.await.unwrap();
    assert_eq!(consumer_nodes(&world), 0);
    consumer.shutdown().await;
}

fn consumer_nodes(world: &World) -> usize {
    world.store.paths().iter().filter(|(path, _)| path.contains("/consumers/")).count()
}

#[tokio::test]
async fn shutdown_does_not_wait_longer_than_it_is_told() {
    let world = World::new();
    let provider = world.provider("a").await;
    let consumer = world.builder("consumer").shutdown_wait(Duration::from_millis(100)).start().await.unwrap();
    let shop = consumer.reference::<ShopClient>().timeout(LONG).retries(0).get().await.unwrap();
    let client = shop.clone();
    let long = tokio::spawn(async move { client.wait().await });
    until("the call is served", || provider.inside.waiting.load(Ordering::SeqCst) == 1).await;
    tokio::time::timeout(LONG, consumer.shutdown()).await.expect("the shutdown ends");
    assert!(long.await.unwrap().is_err(), "the call fails at the end of the wait");
}

#[tokio::test]
async fn after_many_restarts_nothing_is_left_of_them() {
    let world = World::new();
    let _a = world.provider("a").await;
    let consumer = world.consumer().await;
    let shop = consumer.refer::<ShopClient>().await.unwrap();
    let load = Load::start(&shop, 2);
    let nodes = world.store.nodes();
    for _ in 0..20 {
        world.provider("b").await.application.shutdown().await;
    }
    load.more(50).await;
    assert_eq!(load.stop().await, [""; 0]);
    until("the registry is as it was", || world.store.nodes() == nodes).await;
    assert_eq!(world.store.sessions(), 2, "one session each of the provider and of the consumer");
}
