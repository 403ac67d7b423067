//! ZooKeeper's bad days when there is application-level discovery only.

use std::sync::Arc;
use std::time::Duration;

use dubhe::config::RegistryConfig;
use dubhe::{Dubhe, DubheBuilder, ErrorCode};
use dubhe_testkit::BreakableProxy;

use crate::nodes::text;
use crate::support::{
    BUYER, Fleet, LONG, Load, Named, Provider, ShopClient, ShopService, loopback, until, until_callable,
    zookeeper,
};

/// By application only, through `address`, forgotten soon.
fn by_application(name: &str, address: &str) -> DubheBuilder {
    let registry = RegistryConfig {
        session: Some(2_500),
        timeout: Some(20_000),
        file_cache: Some(false),
        ..RegistryConfig::at(format!("zookeeper://{address}?registry-type=service"))
    };
    Dubhe::builder(name).registry_config(registry).protocol(loopback(0)).shutdown_wait(LONG)
}

async fn provider(name: &str, address: &str) -> Provider {
    Provider::start(by_application(name, address), name, |export| export).await
}

// C20
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_go_on_while_zookeeper_is_dead_and_instances_are_there_again_after_it() {
    let server = Arc::new(zookeeper().await);
    let a = provider("app-a", server.address()).await;
    let b = provider("app-b", server.address()).await;
    let consumer = by_application(BUYER, server.address()).start().await.unwrap();
    let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
    until_callable(&shop, 2).await;
    let load = Load::start(&shop.client, 4);
    server.kill();
    until("the list is marked stale", || shop.status().stale.is_some()).await;
    load.more(100).await;
    assert_eq!(shop.addresses().len(), 2, "trouble empties nothing");
    // Longer than the session.
    tokio::time::sleep(Duration::from_secs(3)).await;
    load.more(100).await;
    server.restart().await.unwrap();
    until("the list is current again", || shop.status().stale.is_none()).await;
    until_callable(&shop, 2).await;
    load.more(50).await;
    let fleet = Fleet::on(Arc::clone(&server), None);
    let tree = fleet.tree();
    for (name, one) in [("app-a", &a), ("app-b", &b)] {
        assert!(text(&tree, &fleet.instance_path(name, one.port())).await.is_some(), "{name}");
    }
    tree.close().await;
    // A newcomer, and one that leaves.
    let late = provider("late", server.address()).await;
    until_callable(&shop, 3).await;
    b.leave().await;
    until_callable(&shop, 2).await;
    load.more(50).await;
    assert_eq!(load.stop().await, [""; 0]);
    consumer.shutdown().await;
    a.leave().await;
    late.leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_pause_longer_than_all_sessions_the_only_provider_is_still_called() {
    let server = Arc::new(zookeeper().await);
    let a = provider("app-a", server.address()).await;
    let consumer = by_application(BUYER, server.address()).start().await.unwrap();
    let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
    let load = Load::start(&shop.client, 4);
    // The server ends all sessions: whoever is back first finds no instance, and must not believe it yet.
    server.pause();
    until("the list is marked stale", || shop.status().stale.is_some()).await;
    tokio::time::sleep(Duration::from_millis(3_500)).await;
    load.more(50).await;
    server.resume();
    until("the list is current again", || shop.status().stale.is_none() && shop.addresses().len() == 1).await;
    load.more(50).await;
    assert_eq!(load.stop().await, [""; 0]);
    consumer.shutdown().await;
    a.leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_whose_session_ends_is_called_again_when_it_has_another() {
    let server = Arc::new(zookeeper().await);
    let door = BreakableProxy::start(server.address()).await.unwrap();
    let cut_off = provider("cut-off", &door.address()).await;
    let other = provider("other", server.address()).await;
    let consumer = by_application(BUYER, server.address()).start().await.unwrap();
    let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
    until_callable(&shop, 2).await;
    let load = Load::start(&shop.client, 4);
    door.refuse().await;
    door.cut().await;
    until("its session has ended", || shop.addresses() == [other.address()]).await;
    load.more(50).await;
    door.accept().await.unwrap();
    until_callable(&shop, 2).await;
    let before = cut_off.served();
    until("it is called again", || cut_off.served() > before + 5).await;
    // And so with the consumer's own session: nothing changes meanwhile.
    let own = BreakableProxy::start(server.address()).await.unwrap();
    let second = by_application(BUYER, &own.address()).start().await.unwrap();
    let mine = second.reference::<ShopClient>().connect().await.unwrap();
    until_callable(&mine, 2).await;
    let mine_load = Load::start(&mine.client, 2);
    own.refuse().await;
    own.cut().await;
    until("trouble is seen", || mine.status().stale.is_some()).await;
    let unseen = provider("unseen", server.address()).await;
    cut_off.leave().await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    mine_load.more(50).await;
    own.accept().await.unwrap();
    until("what changed is seen", || {
        let mut addresses = mine.addresses();
        addresses.sort();
        let mut expected = vec![other.address(), unseen.address()];
        expected.sort();
        addresses == expected && mine.status().stale.is_none()
    })
    .await;
    mine_load.more(50).await;
    assert_eq!(mine_load.stop().await, [""; 0]);
    assert_eq!(load.stop().await, [""; 0]);
    second.shutdown().await;
    consumer.shutdown().await;
    other.leave().await;
    unseen.leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn applications_end_in_time_although_zookeeper_is_dead() {
    let server = Arc::new(zookeeper().await);
    let fleet = Fleet::on(Arc::clone(&server), None);
    let all = fleet.provider("all", "all").await;
    let one = provider("one", server.address()).await;
    let consumer = fleet.consumer().await;
    let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
    until_callable(&shop, 2).await;
    let load = Load::start(&shop.client, 2);
    server.kill();
    until("trouble is seen", || shop.status().stale.is_some()).await;
    load.more(20).await;
    assert_eq!(load.stop().await, [""; 0]);
    let began = std::time::Instant::now();
    tokio::join!(all.leave(), one.leave(), consumer.shutdown());
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn applications_end_in_time_although_zookeeper_hangs() {
    let server = Arc::new(zookeeper().await);
    let door = BreakableProxy::start(server.address()).await.unwrap();
    // Sessions that last longer than anything here: to the applications the registry is there, and does not answer.
    let registry = || RegistryConfig {
        session: Some(60_000),
        timeout: Some(20_000),
        file_cache: Some(false),
        ..RegistryConfig::at(format!("zookeeper://{}", door.address()))
    };
    let start = |name: &str| {
        let builder = Dubhe::builder(name).registry_config(registry()).protocol(loopback(0));
        builder.shutdown_wait(Duration::from_secs(1)).start()
    };
    let (provider, consumer) = (start("shop").await.unwrap(), start(BUYER).await.unwrap());
    provider.export(ShopService::new(Named::new("shop"))).await.unwrap();
    let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
    until_callable(&shop, 1).await;
    door.blackhole(true);
    let began = std::time::Instant::now();
    tokio::join!(provider.shutdown(), consumer.shutdown());
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_could_not_be_registered_in_time_is_told_and_never_appears() {
    let server = Arc::new(zookeeper().await);
    server.kill();
    let fleet = Fleet::on(Arc::clone(&server), None);
    let registry = || RegistryConfig { timeout: Some(1_500), ..fleet.registry() };
    let start = |name: &str| Dubhe::builder(name).registry_config(registry()).protocol(loopback(0)).start();
    let (provider, consumer) = (start("shop").await.unwrap(), start(BUYER).await.unwrap());
    let export = || provider.export(ShopService::new(Named::new("shop")));
    let (exported, found) = tokio::join!(export(), consumer.refer::<ShopClient>());
    for error in [exported.unwrap_err(), found.unwrap_err()] {
        assert_eq!(error.code(), ErrorCode::Registry, "{error}");
        assert!(error.to_string().contains(server.address()), "{error}");
    }
    server.restart().await.unwrap();
    // Another application is registered: whatever the two still wanted would be there by then.
    let other = fleet.provider("other", "all").await;
    let tree = fleet.tree();
    let registered = async |category: &str| {
        tree.list(&fleet.category_path(category)).await.unwrap().map_or(0, |nodes| nodes.len())
    };
    assert_eq!((registered("providers").await, registered("consumers").await), (1, 0));
    assert_eq!(tree.list("/services/shop").await.unwrap().map_or(0, |nodes| nodes.len()), 0);
    assert_eq!(text(&tree, &fleet.mapping_path()).await.as_deref(), Some("other"));
    // The same applications may try again, as soon as they are connected.
    let again = async {
        let exported = loop {
            if let Ok(exported) = export().await {
                break exported;
            }
        };
        loop {
            if let Ok(shop) = consumer.reference::<ShopClient>().connect().await {
                return (exported, shop);
            }
        }
    };
    let (exported, shop) = tokio::time::timeout(LONG, again).await.unwrap();
    until("all are found", || shop.addresses().len() == 2).await;
    assert!(shop.addresses().contains(&exported.urls()[0].address()));
    tree.close().await;
    consumer.shutdown().await;
    provider.shutdown().await;
    other.leave().await;
}
