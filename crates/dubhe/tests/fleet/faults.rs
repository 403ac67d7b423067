//! The registry's bad days, seen from calls: a real ZooKeeper is paused, killed and restarted.

use std::time::Duration;

use dubhe::Dubhe;
use dubhe::config::RegistryConfig;
use dubhe_testkit::ZooKeeper;

use crate::support::{Inside, LONG, Load, NamedShop, ShopClient, ShopService, loopback, until};

async fn zookeeper() -> ZooKeeper {
    ZooKeeper::builder().tick(Duration::from_millis(250)).start().await.unwrap()
}

fn registry(zookeeper: &ZooKeeper) -> RegistryConfig {
    RegistryConfig {
        session: Some(2_500),
        timeout: Some(20_000),
        file_cache: Some(false),
        ..RegistryConfig::at(format!("zookeeper://{}", zookeeper.address()))
    }
}

async fn provider(zookeeper: &ZooKeeper, name: &str) -> Dubhe {
    let application = Dubhe::builder(name)
        .registry_config(registry(zookeeper))
        .protocol(loopback(0))
        .start()
        .await
        .unwrap();
    let shop = NamedShop { name: name.to_owned(), inside: std::sync::Arc::new(Inside::default()) };
    application.export(ShopService::new(shop)).await.unwrap();
    application
}

// C20
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_go_on_while_zookeeper_is_dead_and_what_changed_is_seen_after_its_return() {
    let zookeeper = zookeeper().await;
    let a = provider(&zookeeper, "a").await;
    let b = provider(&zookeeper, "b").await;
    let consumer = Dubhe::builder("consumer").registry_config(registry(&zookeeper)).start().await.unwrap();
    let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
    until("both are found", || shop.addresses().len() == 2).await;
    let load = Load::start(&shop.client, 4);
    load.more(100).await;
    zookeeper.kill();
    until("the list is marked stale", || shop.status().stale.is_some()).await;
    load.more(500).await;
    assert_eq!(shop.addresses().len(), 2, "trouble empties nothing");
    // Longer than the session: on its return the server knows none of the nodes' owners.
    tokio::time::sleep(Duration::from_secs(4)).await;
    load.more(500).await;
    zookeeper.restart().await.unwrap();
    until("the list is current again", || shop.status().stale.is_none()).await;
    until("both are registered again", || shop.addresses().len() == 2).await;
    load.more(500).await;
    let late = provider(&zookeeper, "late").await;
    until("a newcomer is found", || shop.addresses().len() == 3).await;
    load.more(100).await;
    assert_eq!(load.stop().await, [""; 0]);
    consumer.shutdown().await;
    for application in [a, b, late] {
        application.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_longer_than_the_session_costs_no_call_and_everybody_is_back() {
    let zookeeper = zookeeper().await;
    let a = provider(&zookeeper, "a").await;
    let consumer = Dubhe::builder("consumer").registry_config(registry(&zookeeper)).start().await.unwrap();
    // After the pause the server ends both sessions: whoever is back first finds no provider, and must not believe it yet.
    let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
    let load = Load::start(&shop.client, 4);
    zookeeper.pause();
    until("the list is marked stale", || shop.status().stale.is_some()).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    load.more(200).await;
    zookeeper.resume();
    until("the list is current again", || shop.status().stale.is_none() && shop.addresses().len() == 1).await;
    load.more(200).await;
    assert_eq!(load.stop().await, [""; 0]);
    consumer.shutdown().await;
    a.shutdown().await;
    // A session that its client gave up during the pause ends by the server's own clock.
    let nobody = async {
        loop {
            let left = zookeeper.four_letter("dump").await.unwrap();
            if !left.contains("/providers/") && !left.contains("/consumers/") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(LONG, nobody).await.expect("nobody's nodes are left");
}

#[tokio::test]
async fn a_registry_that_is_not_there_is_told_with_its_address() {
    let registry = RegistryConfig {
        timeout: Some(500),
        file_cache: Some(false),
        ..RegistryConfig::at("zookeeper://127.0.0.1:1")
    };
    let consumer = Dubhe::builder("consumer").registry_config(registry).start().await.unwrap();
    let error = tokio::time::timeout(LONG, consumer.refer::<ShopClient>())
        .await
        .expect("it does not hang")
        .unwrap_err();
    assert!(error.to_string().contains("127.0.0.1:1"), "{error}");
}
