//! Sessions that are suspended, lost, restored and closed.

use std::time::Duration;

use bytes::Bytes;
use dubhe_core::tree::{NodeKind, SessionState, TreeError};
use tokio::time::{Instant, sleep};
use zookeeper_client::EventType;

use crate::support::{LONG, SESSION, World, connected, eventually, hold, make, open, sees, until};

/// C01
#[tokio::test]
async fn nodes_are_made_again_in_a_new_session_after_the_server_ended_the_old_one() {
    let world = World::start().await;
    let tree = world.tree().await;
    let other = world.other().await;
    hold(&*tree, "/p/own", "x").await;
    let (_, watcher) = other.check_and_watch_stat("/p/own").await.unwrap();
    world.proxy.blackhole(true);
    assert_eq!(watcher.changed().await.event_type, EventType::NodeDeleted);
    world.proxy.blackhole(false);
    world.proxy.cut().await;
    until(&mut tree.session(), |state| *state == SessionState::Connected { epoch: 2 }).await;
    tree.settled("/p/own", LONG).await.unwrap();
    assert!(world.is_owned_by_a_live_session(&other, "/p/own").await);
}

/// C21
#[tokio::test]
async fn an_outage_of_three_session_timeouts_ends_by_itself_with_one_socket_at_a_time() {
    let world = World::start().await;
    let tree = world.tree().await;
    hold(&*tree, "/p/own", "x").await;
    let mut watched = tree.children("/p", false);
    sees(&mut watched, &["own"]).await;
    let before = world.proxy.accepted_total();
    world.server.kill();
    // The length of the outage is the point of this test.
    sleep(SESSION * 3).await;
    let tries = world.proxy.accepted_total() - before;
    assert!((3..=30).contains(&tries), "{tries} tries");
    assert_eq!(world.proxy.peak_connections(), 1);
    world.server.restart().await.unwrap();
    tree.settled("/p/own", LONG).await.unwrap();
    sees(&mut watched, &["own"]).await;
    let other = world.other().await;
    eventually("own node is of a live session", async || {
        world.is_owned_by_a_live_session(&other, "/p/own").await
    })
    .await;
    assert_eq!(world.proxy.peak_connections(), 1);
}

/// C01: after its restart the server holds the old session again, and with it the old nodes.
#[tokio::test]
async fn a_server_restarted_after_the_session_timeout_does_not_leave_us_with_nodes_that_go_away() {
    let world = World::start().await;
    let tree = world.tree().await;
    for index in 0..200 {
        tree.ensure(&format!("/p/{index}"), Bytes::new(), NodeKind::Ephemeral);
    }
    for index in 0..200 {
        tree.settled(&format!("/p/{index}"), LONG).await.unwrap();
    }
    let mut session = tree.session();
    world.server.kill();
    until(&mut session, |state| *state == SessionState::Connecting).await;
    world.server.restart().await.unwrap();
    let other = world.other().await;
    for index in 0..200 {
        tree.settled(&format!("/p/{index}"), LONG).await.unwrap();
        assert!(other.check_stat(&format!("/p/{index}")).await.unwrap().is_some());
    }
    assert!(world.is_owned_by_a_live_session(&other, "/p/0").await);
    // Longer than the restored session would last, were it not ours.
    let (stat, watcher) = other.check_and_watch_stat("/p/0").await.unwrap();
    assert!(stat.is_some());
    assert!(tokio::time::timeout(SESSION * 3 / 2, watcher.changed()).await.is_err(), "the node went away");
}

#[tokio::test]
async fn a_server_paused_beyond_the_session_timeout_is_recovered_from() {
    let world = World::start().await;
    let tree = world.tree().await;
    hold(&*tree, "/p/own", "x").await;
    let mut watched = tree.children("/p", false);
    sees(&mut watched, &["own"]).await;
    let mut session = tree.session();
    world.server.pause();
    until(&mut session, |state| *state == SessionState::Connecting).await;
    assert_eq!(crate::support::known(&watched.borrow()), Some(vec!["own"]), "nothing is emptied by trouble");
    world.server.resume();
    connected(&*tree).await;
    let other = world.other().await;
    eventually("own node is of a live session", async || {
        world.is_owned_by_a_live_session(&other, "/p/own").await
    })
    .await;
    make(&other, "/p/z").await;
    sees(&mut watched, &["own", "z"]).await;
}

/// C07
#[tokio::test]
async fn own_nodes_are_made_again_at_once_however_many_reads_are_due() {
    let world = World::start().await;
    let tree = world.tree().await;
    let other = world.other().await;
    hold(&*tree, "/own/node", "x").await;
    let mut watched = Vec::new();
    for index in 0..100 {
        make(&other, &format!("/p/{index}")).await;
        let mut one = tree.children(&format!("/p/{index}"), false);
        sees(&mut one, &[]).await;
        watched.push(one);
    }
    let (_, gone) = other.check_and_watch_stat("/own/node").await.unwrap();
    // All watches fire, all reads hang, and the session ends meanwhile.
    world.proxy.hold(true);
    for index in 0..100 {
        make(&other, &format!("/p/{index}/a")).await;
    }
    gone.changed().await;
    let (_, back) = other.check_and_watch_stat("/own/node").await.unwrap();
    world.proxy.delay_to_client(Duration::from_millis(50));
    world.proxy.hold(false);
    world.proxy.cut().await;
    until(&mut tree.session(), |state| *state == SessionState::Connected { epoch: 2 }).await;
    let start = Instant::now();
    assert_eq!(back.changed().await.event_type, EventType::NodeCreated);
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    for one in &mut watched {
        sees(one, &["a"]).await;
    }
}

#[tokio::test]
async fn a_tree_opened_before_the_server_is_there_works_once_it_comes() {
    let world = World::start().await;
    world.server.kill();
    let tree = open(&world.proxy.address(), "");
    tree.ensure("/p/own", Bytes::new(), NodeKind::Ephemeral);
    let mut watched = tree.children("/p", true);
    until(&mut watched, |observation| observation.trouble.is_some()).await;
    assert_eq!(watched.borrow().known, None);
    let error = tree.settled("/p/own", Duration::from_millis(50)).await.unwrap_err();
    assert!(matches!(error, TreeError::Unreachable { .. }), "{error}");
    world.server.restart().await.unwrap();
    tree.settled("/p/own", LONG).await.unwrap();
    sees(&mut watched, &["own"]).await;
}

#[tokio::test]
async fn closing_leaves_nothing_behind() {
    let world = World::start().await;
    let other = world.other().await;
    let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let tree = world.tree().await;
    hold(&*tree, "/p/own", "x").await;
    tree.ensure("/p/lasting", Bytes::new(), NodeKind::Persistent);
    tree.settled("/p/lasting", LONG).await.unwrap();
    let mut watched = tree.children("/p", false);
    sees(&mut watched, &["lasting", "own"]).await;
    tokio::join!(tree.close(), tree.close());
    assert!(other.check_stat("/p/own").await.unwrap().is_none());
    assert!(other.check_stat("/p/lasting").await.unwrap().is_some());
    assert_eq!(*tree.session().borrow(), SessionState::Closed);
    assert!(matches!(tree.list("/p").await, Err(TreeError::Closed(_))));
    assert!(matches!(tree.settled("/p/own", LONG).await, Err(TreeError::Closed(_))));
    world.proxy.wait_for_connections(0).await;
    drop(watched);
    // One is of the proxy's connection, until it sees the end.
    eventually("all tasks are gone", async || {
        tokio::runtime::Handle::current().metrics().num_alive_tasks() <= tasks
    })
    .await;
    tree.close().await;
}

#[tokio::test]
async fn dropping_the_tree_ends_its_session() {
    let world = World::start().await;
    let other = world.other().await;
    let tree = world.tree().await;
    hold(&*tree, "/p/own", "x").await;
    let (_, gone) = other.check_and_watch_stat("/p/own").await.unwrap();
    drop(tree);
    assert_eq!(gone.changed().await.event_type, EventType::NodeDeleted);
    world.proxy.wait_for_connections(0).await;
}

#[tokio::test]
async fn closing_does_not_wait_for_a_server_that_is_away() {
    let world = World::start().await;
    let tree = world.tree().await;
    hold(&*tree, "/p/own", "x").await;
    let mut session = tree.session();
    world.server.kill();
    until(&mut session, |state| *state == SessionState::Suspended).await;
    let start = Instant::now();
    tree.close().await;
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}
