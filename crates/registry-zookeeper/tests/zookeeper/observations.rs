//! What is known is never older than what was known, and trouble is never mistaken for an empty list.

use std::time::Duration;

use bytes::Bytes;
use dubhe_core::observation::Observation;
use dubhe_core::tree::{NodeData, NodeKind, SessionState};
use tokio::runtime::Handle;
use zookeeper_client::{Acls, CreateMode};

use crate::support::{LONG, World, eventually, known, make, sees, until};

/// C20
#[tokio::test]
async fn an_outage_keeps_what_is_known_and_says_why_it_may_be_old() {
    let world = World::start().await;
    let tree = world.tree().await;
    let other = world.other().await;
    make(&other, "/p/a").await;
    make(&other, "/p/b").await;
    let mut watched = tree.children("/p", false);
    sees(&mut watched, &["a", "b"]).await;
    // Only the tree loses the store, for longer than its session lasts; the others go on.
    world.proxy.refuse().await;
    world.proxy.cut().await;
    let outage = until(&mut watched, |observation| observation.trouble.is_some()).await;
    assert_eq!(known(&outage), Some(vec!["a", "b"]));
    other.delete("/p/b", None).await.unwrap();
    make(&other, "/p/c").await;
    until(&mut tree.session(), |state| *state == SessionState::Connecting).await;
    assert_eq!(known(&watched.borrow()), Some(vec!["a", "b"]));
    world.proxy.accept().await.unwrap();
    sees(&mut watched, &["a", "c"]).await;
}

/// C02
#[tokio::test]
async fn a_store_that_hangs_through_reconnects_loses_no_watch() {
    let world = World::start().await;
    let tree = world.tree().await;
    let other = world.other().await;
    make(&other, "/p/a").await;
    let mut watched = tree.children("/p", false);
    sees(&mut watched, &["a"]).await;
    // Connections come and answer nothing: every try to recover fails.
    world.proxy.blackhole(true);
    world.proxy.cut().await;
    until(&mut watched, |observation| observation.trouble.is_some()).await;
    let tries = world.proxy.accepted_total();
    world.proxy.wait_for_accepted(tries + 2).await;
    world.proxy.blackhole(false);
    world.proxy.cut().await;
    sees(&mut watched, &["a"]).await;
    make(&other, "/p/b").await;
    other.delete("/p/a", None).await.unwrap();
    sees(&mut watched, &["b"]).await;
}

/// C06
#[tokio::test]
async fn a_node_that_comes_while_its_parent_is_first_read_is_seen() {
    let world = World::start().await;
    let tree = world.tree().await;
    let other = world.other().await;
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    for round in 0..60_u64 {
        let parent = format!("/p{round}");
        make(&other, &parent).await;
        // Shifted against each other from round to round, so that they meet at every point.
        let child = format!("{parent}/a");
        let come = async {
            tokio::time::sleep(Duration::from_micros(round * 40)).await;
            other.create(&child, b"", &options).await.unwrap();
        };
        let mut watched = tree.children(&parent, round % 2 == 0);
        let ((), ()) = tokio::join!(come, sees(&mut watched, &["a"]));
    }
}

/// C05
#[tokio::test]
async fn lists_never_go_back_while_connections_break() {
    let world = World::start().await;
    let tree = world.tree().await;
    let other = world.other().await;
    make(&other, "/p").await;
    let mut watched = tree.children("/p", false);
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let grow = async {
        for index in 0..200 {
            other.create(&format!("/p/{index:03}"), b"", &options).await.unwrap();
            if index % 40 == 20 {
                world.proxy.cut().await;
            }
        }
    };
    let watch = async {
        let (mut longest, mut newest) = (0, None);
        while longest < 200 {
            watched.changed().await.unwrap();
            let observation = watched.borrow_and_update().clone();
            let length = known(&observation).map_or(0, |names| names.len());
            assert!(length >= longest, "{length} after {longest}");
            assert!(Some(observation.stamp) >= newest);
            (longest, newest) = (length, Some(observation.stamp));
        }
    };
    tokio::time::timeout(LONG, async { tokio::join!(grow, watch) }).await.unwrap();
}

#[tokio::test]
async fn data_are_followed_from_missing_to_made_to_changed_to_deleted() {
    let world = World::start().await;
    let tree = world.tree().await;
    let other = world.other().await;
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let mut watched = tree.data("/rule");
    until(&mut watched, |observation| observation.known == Some(None)).await;
    let has = |text: &'static str| move |observation: &Observation<Option<NodeData>>| matches!(&observation.known, Some(Some(node)) if node.bytes == text);
    other.create("/rule", b"one", &options).await.unwrap();
    until(&mut watched, has("one")).await;
    other.set_data("/rule", b"two", None).await.unwrap();
    until(&mut watched, has("two")).await;
    other.delete("/rule", None).await.unwrap();
    until(&mut watched, |observation| observation.known == Some(None)).await;
    other.create("/rule", b"three", &options).await.unwrap();
    until(&mut watched, has("three")).await;
}

#[tokio::test]
async fn dropping_the_last_receiver_ends_the_watch_here_and_in_the_store() {
    let world = World::start().await;
    let tree = world.tree().await;
    let other = world.other().await;
    make(&other, "/p").await;
    let tasks = Handle::current().metrics().num_alive_tasks();
    let mut first = tree.children("/p", false);
    sees(&mut first, &[]).await;
    let mut second = tree.children("/p", false);
    sees(&mut second, &[]).await;
    drop(first);
    make(&other, "/p/a").await;
    sees(&mut second, &["a"]).await;
    assert_eq!(world.counter("zk_watch_count").await, 1);
    drop(second);
    eventually("the watch is gone", async || world.counter("zk_watch_count").await == 0).await;
    eventually("the task is gone", async || Handle::current().metrics().num_alive_tasks() <= tasks).await;
}

#[tokio::test]
async fn nothing_is_left_of_a_thousand_changes() {
    let world = World::start().await;
    let tree = world.tree().await;
    let other = world.other().await;
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    make(&other, "/p").await;
    let mut lasting = tree.children("/p", false);
    sees(&mut lasting, &[]).await;
    let tasks = Handle::current().metrics().num_alive_tasks();
    for index in 0..500 {
        let path = format!("/p/{}", index % 7);
        other.create(&path, b"", &options).await.unwrap();
        let mut children = tree.children(&path, false);
        let mut data = tree.data(&path);
        tree.ensure(&format!("/own/{index}"), Bytes::new(), NodeKind::Ephemeral);
        until(&mut children, |observation| observation.known.is_some()).await;
        until(&mut data, |observation| observation.known.is_some()).await;
        tree.withdraw(&format!("/own/{index}"));
        other.delete(&path, None).await.unwrap();
        if index % 100 == 50 {
            world.proxy.cut().await;
        }
    }
    sees(&mut lasting, &[]).await;
    eventually("tasks are as before", async || Handle::current().metrics().num_alive_tasks() <= tasks).await;
    eventually("one watch is left", async || world.counter("zk_watch_count").await == 1).await;
    eventually("no own node is left", async || world.counter("zk_ephemerals_count").await == 0).await;
}
