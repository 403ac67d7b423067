//! Providers come and go, rules come and go, and no call fails.

use std::time::Duration;

use dubhe::{ConditionRouter, Url, keys};

use crate::support::{Load, Shop, ShopClient, World, until};

fn rule(text: &str) -> Url {
    Url::builder(keys::protocol::CONDITION, keys::ANYHOST_VALUE, 0)
        .path("dev.dubhe.test.Shop")
        .param(keys::CATEGORY, keys::category::ROUTERS)
        .param(keys::INTERFACE, "dev.dubhe.test.Shop")
        .param(keys::DYNAMIC, false)
        .param(keys::FORCE, true)
        .param(keys::RULE, dubhe::encode(text))
        .build()
}

#[tokio::test]
async fn providers_leave_and_return_under_load_and_no_call_fails() {
    let world = World::new();
    let _a = world.provider("a").await;
    let consumer = world.consumer().await;
    let shop = consumer.refer::<ShopClient>().await.unwrap();
    let load = Load::start(&shop, 8);
    for _ in 0..5 {
        let b = world.provider("b").await;
        load.more(200).await;
        b.application.shutdown().await;
        load.more(200).await;
    }
    assert_eq!(load.stop().await, [""; 0]);
}

// C29
#[tokio::test]
async fn a_provider_that_restarts_on_its_address_is_called_again() {
    let world = World::new();
    let a = world.provider("a").await;
    let port = a.port();
    let consumer = world.consumer().await;
    let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
    assert_eq!(shop.client.who().await.unwrap(), "a");
    a.application.shutdown().await;
    until("the address is gone", || shop.addresses().is_empty()).await;
    let _again = world.provider_with("again", port, |export| export).await;
    until("the address is back", || shop.addresses().len() == 1).await;
    assert_eq!(shop.client.who().await.unwrap(), "again");
}

#[tokio::test]
async fn a_condition_rule_in_the_registry_is_obeyed_while_it_is_there() {
    let world = World::new();
    let a = world.provider("a").await;
    let _b = world.provider("b").await;
    let consumer = world.consumer().await;
    let shop = consumer.reference::<ShopClient>().load_balance("roundrobin").connect().await.unwrap();
    until("two connections", || shop.directory().unwrap().invokers().iter().all(|one| one.is_available()))
        .await;
    let registry = consumer.registry().unwrap();
    let rule = rule(&format!("method = who => address = {}", a.address()));
    let mut status = shop.directory().unwrap().status();
    status.borrow_and_update();
    registry.register(&rule).await.unwrap();
    status.changed().await.unwrap();
    for _ in 0..20 {
        assert_eq!(shop.client.who().await.unwrap(), "a");
    }
    let why = shop.explain("who").to_string();
    assert!(why.contains("drops") && why.contains(&a.address()), "{why}");
    assert_eq!(shop.explain("greet").remaining.len(), 2, "other methods are free");
    registry.unregister(&rule).await.unwrap();
    status.changed().await.unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..20 {
        seen.insert(shop.client.who().await.unwrap());
    }
    assert_eq!(seen.len(), 2);
}

#[tokio::test]
async fn a_malformed_rule_is_skipped_and_the_rest_goes_on() {
    let world = World::new();
    let a = world.provider("a").await;
    let _b = world.provider("b").await;
    let consumer = world.consumer().await;
    let registry = consumer.registry().unwrap();
    registry.register(&rule("host == 1 => =")).await.unwrap();
    registry.register(&rule(&format!("=> address = {}", a.address()))).await.unwrap();
    let shop = consumer.refer::<ShopClient>().await.unwrap();
    for _ in 0..20 {
        assert_eq!(shop.who().await.unwrap(), "a");
    }
}

#[tokio::test]
async fn a_malformed_provider_url_is_skipped_and_the_rest_goes_on() {
    let world = World::new();
    let _a = world.provider("a").await;
    let tree = world.store.connect();
    for name in [
        "not%20a%20url",
        "dubbo%3A%2F%2F127.0.0.1%3Amany%2Fdev.dubhe.test.Shop",
        "tri%3A%2F%2F127.0.0.1%3A1%2Fdev.dubhe.test.Shop",
    ] {
        let path = format!("/dubbo/dev.dubhe.test.Shop/providers/{name}");
        tree.create(&path, dubhe::core::tree::NodeData { bytes: Default::default(), version: 0 }.bytes)
            .await
            .unwrap();
    }
    let consumer = world.consumer().await;
    let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
    assert_eq!(shop.addresses().len(), 1);
    assert_eq!(shop.client.who().await.unwrap(), "a");
}

#[tokio::test]
async fn a_rule_given_in_code_holds_for_its_reference_alone() {
    let world = World::new();
    let a = world.provider("a").await;
    let _b = world.provider("b").await;
    let consumer = world.consumer().await;
    let rule = ConditionRouter::parse(&format!("=> address = {}", a.address())).unwrap();
    let bound = consumer.reference::<ShopClient>().rule(rule).get().await.unwrap();
    for _ in 0..20 {
        assert_eq!(bound.who().await.unwrap(), "a");
    }
}

// C28
#[tokio::test]
async fn a_thousand_parameter_changes_under_load_fail_no_call() {
    let world = World::new();
    let a = world.provider("a").await;
    let consumer = world.consumer().await;
    let shop = consumer
        .reference::<ShopClient>()
        .retries(0)
        .timeout(Duration::from_secs(30))
        .connect()
        .await
        .unwrap();
    let load = Load::start(&shop.client, 8);
    let registry = consumer.registry().unwrap();
    let address = a.address();
    let (host, port) = address.split_once(':').unwrap();
    let mut status = shop.directory().unwrap().status();
    for round in 0..500 {
        let rule = Url::builder(keys::protocol::OVERRIDE, host, port.parse().unwrap())
            .path("dev.dubhe.test.Shop")
            .param(keys::CATEGORY, keys::category::CONFIGURATORS)
            .param(keys::INTERFACE, "dev.dubhe.test.Shop")
            .param("greet.timeout", 20_000 + round)
            .build();
        // Put and removed: two changes.
        status.borrow_and_update();
        registry.register(&rule).await.unwrap();
        status.changed().await.unwrap();
        registry.unregister(&rule).await.unwrap();
        status.changed().await.unwrap();
    }
    load.more(100).await;
    assert_eq!(load.stop().await, [""; 0]);
}

#[tokio::test]
async fn a_provider_that_is_killed_is_left_out_and_calls_go_on() {
    let world = World::new();
    let _a = world.provider("a").await;
    let dead = {
        // An address that is registered and that nobody listens on.
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        listener.local_addr().unwrap().port()
    };
    let consumer = world.consumer().await;
    let ghost = Url::builder("dubbo", "127.0.0.1", dead)
        .path("dev.dubhe.test.Shop")
        .param(keys::INTERFACE, "dev.dubhe.test.Shop")
        .build();
    consumer.registry().unwrap().register(&ghost).await.unwrap();
    let shop = consumer
        .reference::<ShopClient>()
        .param(keys::MIGRATION_STEP, "FORCE_INTERFACE")
        .connect()
        .await
        .unwrap();
    assert_eq!(shop.addresses().len(), 2);
    for _ in 0..200 {
        assert_eq!(shop.client.who().await.unwrap(), "a");
    }
    until("the dead address is set aside", || shop.status().valid == 1).await;
    let why = shop.explain("who").to_string();
    assert!(why.contains(&format!("127.0.0.1:{dead}")), "{why}");
}
