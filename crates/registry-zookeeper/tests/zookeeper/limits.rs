//! Sizes that hurt.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use dubhe_core::observation::Observation;
use dubhe_core::tree::{Children, NodeKind, TreeError};
use dubhe_testkit::{BreakableProxy, ZooKeeper};
use futures::future::join_all;
use zookeeper_client::{Acls, CreateMode};

use crate::support::{LONG, World, connected, eventually, hold, known, make, open, until};

/// C50
#[tokio::test]
async fn a_node_over_the_packet_limit_is_refused_with_path_and_size_and_harms_nobody() {
    let world = World::start().await;
    let tree = world.tree().await;
    let large = Bytes::from(vec![b'x'; 1_200_000]);
    tree.ensure("/p/large", large.clone(), NodeKind::Persistent);
    hold(&*tree, "/p/small", "x").await;
    for error in [
        tree.settled("/p/large", LONG).await.unwrap_err(),
        tree.create("/p/large", large.clone()).await.unwrap_err(),
        tree.set("/p/small", large, None).await.unwrap_err(),
    ] {
        let text = error.to_string();
        assert!(matches!(error, TreeError::Invalid(_)) && text.contains("1200000"), "{text}");
        assert!(text.contains("/p/large") || text.contains("/p/small"), "{text}");
    }
    assert_eq!(world.proxy.accepted_total(), 1, "the connection was never lost");
}

/// C50
#[tokio::test]
async fn a_server_with_a_smaller_limit_than_ours_is_not_stormed() {
    let server = ZooKeeper::builder().tick(Duration::from_millis(300)).property("jute.maxbuffer", "100000");
    let server = server.start().await.unwrap();
    let proxy = BreakableProxy::start(server.address()).await.unwrap();
    let tree = open(&proxy.address(), "");
    connected(&*tree).await;
    tree.ensure("/p/large", Bytes::from(vec![b'x'; 200_000]), NodeKind::Persistent);
    let error = tree.settled("/p/large", LONG).await.unwrap_err();
    assert!(matches!(error, TreeError::Invalid(_)), "{error}");
    assert!(
        error.to_string().contains("/p/large") && error.to_string().contains("jute.maxbuffer"),
        "{error}"
    );
    // The others get their turn.
    for index in 0..20 {
        hold(&*tree, &format!("/p/small{index}"), "x").await;
    }
    assert!(proxy.accepted_total() <= 6, "{} connections", proxy.accepted_total());
}

/// C50
#[tokio::test]
async fn a_list_of_more_than_four_megabytes_is_read() {
    let world = World::start().await;
    let tree = world.tree().await;
    let other = world.other().await;
    make(&other, "/p").await;
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let paths: Vec<_> = (0..7_000).map(|index| format!("/p/{index:0>640}")).collect();
    for paths in paths.chunks(1_000) {
        let created = join_all(paths.iter().map(|path| other.create(path, b"", &options))).await;
        assert!(created.iter().all(Result::is_ok));
    }
    let mut watched = tree.children("/p", false);
    let whole = |observation: &Observation<Option<Children>>| {
        known(observation).is_some_and(|names| names.len() == 7_000)
    };
    until(&mut watched, whole).await;
    assert!(world.proxy.bytes_to_client() > 4_200_000);
}

#[tokio::test]
async fn more_than_a_megabyte_of_own_paths_is_spread_over_sessions_and_the_server_survives_their_end() {
    let world = World::start().await;
    let tree = world.tree().await;
    let path = |index: usize| format!("/dubbo/demo.Foo/providers/{index:0>680}");
    for index in 0..2_000 {
        tree.ensure(&path(index), Bytes::new(), NodeKind::Ephemeral);
    }
    for index in 0..2_000 {
        tree.settled(&path(index), LONG).await.unwrap();
    }
    let other = world.other().await;
    let paths: Vec<_> = (0..2_000).map(path).collect();
    let stats = join_all(paths.iter().map(|path| other.check_stat(path))).await;
    let mut owned = HashMap::<i64, usize>::new();
    for (path, stat) in paths.iter().zip(stats) {
        *owned.entry(stat.unwrap().unwrap().ephemeral_owner).or_default() += path.len();
    }
    assert!(owned.len() > 1 && owned.values().all(|bytes| *bytes < 1_000_000), "{owned:?}");
    // All sessions end at once and without a word, as in a crash; then the server must be able to read its own log.
    drop(other);
    world.proxy.refuse().await;
    world.proxy.cut().await;
    let other = world.other().await;
    eventually("all nodes are gone", async || {
        other.list_children("/dubbo/demo.Foo/providers").await.unwrap().is_empty()
    })
    .await;
    drop(other);
    world.server.restart().await.unwrap();
    world.proxy.accept().await.unwrap();
    for index in (0..2_000).step_by(100) {
        tree.settled(&path(index), LONG).await.unwrap();
    }
    tree.close().await;
    assert!(world.other().await.list_children("/dubbo/demo.Foo/providers").await.unwrap().is_empty());
}
