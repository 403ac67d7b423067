//! What is left when providers and consumers go.

use std::sync::atomic::Ordering;

use dubhe::SideKind;
use dubhe_testkit::BreakableProxy;

use crate::nodes::{local_instance, metadata, remote_instance, write, write_instance};
use crate::support::{
    Fleet, LONG, Load, Shop, ShopClient, on_every_store, prefers, until, until_callable, until_migration,
};

on_every_store! {
    a_provider_that_is_killed_and_started_again_at_its_address_costs_no_call
    a_fleet_that_is_restarted_one_by_one_at_its_addresses_fails_no_call
}

async fn a_provider_that_is_killed_and_started_again_at_its_address_costs_no_call(fleet: Fleet) {
    let tree = fleet.tree();
    write(&tree, &fleet.mapping_path(), "shop").await;
    write(&tree, &fleet.metadata_path("shop", "r1"), metadata("shop", "r1")).await;
    let (mortal, other) = (fleet.unregistered("mortal").await, fleet.unregistered("other").await);
    write_instance(
        &tree,
        &fleet.instance_path("shop", other.port()),
        remote_instance("shop", other.port(), "r1"),
    )
    .await;
    let door = BreakableProxy::start(mortal.address()).await.unwrap();
    let port = door.socket_address().port();
    let path = fleet.instance_path("shop", port);
    let consumer = fleet.consumer_of("FORCE_APPLICATION").await;
    let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
    let load = Load::start(&shop.client, 4);
    for _ in 0..3 {
        let session = fleet.tree();
        write_instance(&session, &path, remote_instance("shop", port, "r1")).await;
        until_callable(&shop, 2).await;
        let before = mortal.served();
        until("it is called", || mortal.served() > before + 5).await;
        // Killed: connections break at once; the registry learns of it when the session ends.
        door.refuse().await;
        door.cut().await;
        load.more(100).await;
        session.close().await;
        until("it is gone", || shop.addresses() == [other.address()]).await;
        load.more(20).await;
        door.accept().await.unwrap();
    }
    // Started again before the registry noticed: the same node, the same address.
    let session = fleet.tree();
    write_instance(&session, &path, remote_instance("shop", port, "r1")).await;
    until_callable(&shop, 2).await;
    door.refuse().await;
    door.cut().await;
    load.more(20).await;
    door.accept().await.unwrap();
    let again = fleet.tree();
    write_instance(&again, &path, remote_instance("shop", port, "r1")).await;
    session.close().await;
    let before = mortal.served();
    until("it is called again", || mortal.served() > before + 5).await;
    assert_eq!(load.stop().await, [""; 0]);
    consumer.shutdown().await;
    for session in [again, tree] {
        session.close().await;
    }
}

async fn a_fleet_that_is_restarted_one_by_one_at_its_addresses_fails_no_call(fleet: Fleet) {
    let mut providers = Vec::new();
    for _ in 0..3 {
        providers.push(fleet.provider("shop", "instance").await);
    }
    let consumer = fleet.consumer_of("FORCE_APPLICATION").await;
    let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
    until_callable(&shop, 3).await;
    let load = Load::start(&shop.client, 4);
    for round in 0..2 {
        for one in &mut providers {
            let port = one.port();
            let leaving = one.application.clone();
            leaving.shutdown().await;
            load.more(10).await;
            // Another release, which says something else of itself.
            *one = fleet
                .provider_with("shop", port, "instance", |export| export.param("release-name", round))
                .await;
            until_callable(&shop, 3).await;
        }
    }
    until("the new ones are called", || providers.iter().all(|one| one.served() > 0)).await;
    assert_eq!(load.stop().await, [""; 0]);
    consumer.shutdown().await;
    for one in providers {
        one.leave().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_is_dropped_leaves_nothing_behind() {
    let fleet = Fleet::in_memory();
    let (_a, _b) = (fleet.provider("app-a", "all").await, fleet.provider("app-b", "all").await);
    let consumer = fleet.consumer().await;
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let once = async || {
        let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
        until_migration(&shop, "both sides", |now| {
            prefers(now, SideKind::Application)
                && now.interface.addresses.len() == 2
                && now.application.addresses.len() == 2
        })
        .await;
        until_callable(&shop, 2).await;
        shop.client.who().await.unwrap();
    };
    let left = || (fleet.memory().nodes(), fleet.memory().sessions(), fleet.memory().watches());
    // The first one leaves what is meant to stay: the definition of what is consumed, the application's rule.
    once().await;
    let rule = 1;
    until("the first is gone", || fleet.memory().watches() == rule && consumers(&fleet) == 0).await;
    let (before, tasks_before) = (left(), tasks());
    for _ in 0..10 {
        once().await;
    }
    until("nodes, sessions and watches are as before", || left() == before).await;
    until("tasks are as before", || tasks() <= tasks_before).await;
    consumer.shutdown().await;
    assert_eq!(fleet.memory().sessions(), 2, "those of the providers");
}

fn consumers(fleet: &Fleet) -> usize {
    fleet.memory().paths().iter().filter(|(path, _)| path.contains("/consumers/")).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_shutdown_instance_and_services_leave_before_calls_are_refused() {
    let fleet = Fleet::in_memory();
    let shop = fleet.provider("shop", "all").await;
    let consumer = fleet.consumer().await;
    let found = consumer.reference::<ShopClient>().timeout(LONG).connect().await.unwrap();
    until_migration(&found, "both sides", |now| {
        prefers(now, SideKind::Application) && now.interface.available
    })
    .await;
    let client = found.client.clone();
    let long = tokio::spawn(async move { client.wait().await });
    until("the call is served", || shop.inside.waiting.load(Ordering::SeqCst) == 1).await;
    let application = shop.application.clone();
    let shutdown = tokio::spawn(async move { application.shutdown().await });
    let registered = || {
        let instance = fleet.instance_path("shop", shop.port());
        let providers = fleet.category_path("providers") + "/";
        fleet.memory().paths().iter().any(|(path, _)| **path == instance || path.starts_with(&providers))
    };
    until("it left both models", || !registered()).await;
    let now = until_migration(&found, "the consumer knows", |now| {
        now.interface.addresses.is_empty() && now.application.addresses.is_empty()
    })
    .await;
    assert!(!shutdown.is_finished(), "{now}");
    shop.inside.release.notify_waiters();
    assert_eq!(long.await.unwrap().unwrap(), "shop");
    tokio::time::timeout(LONG, shutdown).await.unwrap().unwrap();
    assert_eq!(fleet.memory().sessions(), 1, "the consumer's");
    consumer.shutdown().await;
    // What stays is what is meant to: the mapping and definitions, nothing of a process.
    assert!(fleet.memory().paths().iter().all(|(_, is_ephemeral)| !is_ephemeral));
    assert_eq!(fleet.memory().watches(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_many_restarts_of_instances_nothing_is_left_of_them() {
    let fleet = Fleet::in_memory();
    let _a = fleet.provider("app-a", "instance").await;
    let consumer = fleet.consumer().await;
    let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
    let load = Load::start(&shop.client, 2);
    fleet.provider("app-b", "instance").await.leave().await;
    until("one is left", || shop.addresses().len() == 1).await;
    let left = || (fleet.memory().nodes(), fleet.memory().sessions(), fleet.memory().watches());
    let before = left();
    for _ in 0..10 {
        let b = fleet.provider("app-b", "instance").await;
        until_callable(&shop, 2).await;
        b.leave().await;
    }
    until("the registry is as it was", || left() == before).await;
    assert_eq!(load.stop().await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reference_that_waits_for_metadata_in_vain_can_be_dropped_and_ends_with_its_application() {
    let fleet = Fleet::in_memory();
    let silent = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = silent.local_addr().unwrap().port();
    let tree = fleet.tree();
    write(&tree, &fleet.mapping_path(), "shop").await;
    write(&tree, &fleet.instance_path("shop", port), local_instance("shop", port, port, "hangs")).await;
    let consumer = fleet.consumer().await;
    let left = || (fleet.memory().watches(), consumers(&fleet));
    let rules = consumer.reference::<ShopClient>().param("migration.step", "FORCE_INTERFACE").check(false);
    drop(rules.get().await.unwrap());
    // What stays is the watch of the application's rule.
    let is_gone = || left() == (1, 0);
    until("the first is gone", is_gone).await;
    // Given up while it is made, and dropped when it is made.
    let making = consumer.reference::<ShopClient>().check(false).get();
    tokio::time::timeout(std::time::Duration::from_millis(300), making).await.unwrap_err();
    until("nothing is left of what was given up", is_gone).await;
    let shop = consumer.reference::<ShopClient>().check(false).get().await.unwrap();
    drop(shop);
    until("nothing is left of what was dropped", is_gone).await;
    let _shop = consumer.reference::<ShopClient>().check(false).get().await.unwrap();
    let began = std::time::Instant::now();
    consumer.shutdown().await;
    assert!(began.elapsed() < std::time::Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!(fleet.memory().sessions(), 1, "that of the test");
}
