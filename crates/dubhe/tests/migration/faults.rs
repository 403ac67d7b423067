//! ZooKeeper's bad days when there is application-level discovery only.

use std::sync::Arc;
use std::time::Duration;

use dubhe::config::RegistryConfig;
use dubhe::{Dubhe, DubheBuilder};
use dubhe_testkit::BreakableProxy;

use crate::support::{
    BUYER, Fleet, Load, Provider, ShopClient, loopback, text, until, until_callable, zookeeper,
};

/// By application only, through `address`, forgotten soon.
fn by_application(name: &str, address: &str) -> DubheBuilder {
    let registry = RegistryConfig {
        session: Some(2_500),
        timeout: Some(20_000),
        file_cache: Some(false),
        ..RegistryConfig::at(format!("zookeeper://{address}?registry-type=service"))
    };
    Dubhe::builder(name).registry_config(registry).protocol(loopback(0)).shutdown_wait(crate::support::LONG)
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
