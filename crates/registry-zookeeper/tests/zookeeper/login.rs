//! Digest authentication and access lists.

use bytes::Bytes;
use dubhe_core::tree::{NodeKind, SessionState, TreeError};
use zookeeper_client::{Client, Error, EventType};

use crate::support::{LONG, SESSION, World, connected, hold, open, until};

/// C104
#[tokio::test]
async fn nodes_made_with_a_login_are_for_that_login_only_in_every_session() {
    let world = World::start().await;
    let tree = open(&format!("user:secret@{}", world.proxy.address()), "");
    assert!(!tree.address().contains("secret"));
    hold(&*tree, "/dubbo/own", "x").await;
    let other = world.other().await;
    assert_eq!(other.get_data("/dubbo/own").await.unwrap_err(), Error::NoAuth);
    let member = Client::connector().with_session_timeout(SESSION).with_auth("digest", b"user:secret");
    let member = member.connect(world.server.address()).await.unwrap();
    for path in ["/dubbo", "/dubbo/own"] {
        let (acl, _) = member.get_acl(path).await.unwrap();
        assert_eq!((acl.len(), acl[0].scheme()), (1, "digest"), "{path}");
        assert!(acl[0].id().starts_with("user:"), "{path}");
    }
    // A new connection.
    let mut session = tree.session();
    world.proxy.cut().await;
    until(&mut session, |state| *state == SessionState::Suspended).await;
    connected(&*tree).await;
    tree.ensure("/dubbo/second", Bytes::from_static(b"x"), NodeKind::Ephemeral);
    tree.settled("/dubbo/second", LONG).await.unwrap();
    assert!(tree.read("/dubbo/second").await.unwrap().is_some());
    // A new session.
    let (_, gone) = member.check_and_watch_stat("/dubbo/own").await.unwrap();
    world.proxy.blackhole(true);
    assert_eq!(gone.changed().await.event_type, EventType::NodeDeleted);
    world.proxy.blackhole(false);
    world.proxy.cut().await;
    until(&mut session, |state| *state == SessionState::Connected { epoch: 2 }).await;
    tree.settled("/dubbo/own", LONG).await.unwrap();
    assert_eq!(other.get_data("/dubbo/own").await.unwrap_err(), Error::NoAuth);
    assert!(member.get_data("/dubbo/own").await.is_ok());
}

/// C104
#[tokio::test]
async fn a_refusal_names_the_path_and_what_to_check() {
    let world = World::start().await;
    let owner = open(&format!("user:secret@{}", world.server.address()), "");
    hold(&*owner, "/dubbo/own", "x").await;
    let stranger = world.tree().await;
    stranger.ensure("/dubbo/mine", Bytes::new(), NodeKind::Ephemeral);
    stranger.ensure("/open/mine", Bytes::new(), NodeKind::Ephemeral);
    let denied = |error: TreeError, node: &str| {
        assert!(matches!(&error, TreeError::Denied { path, .. } if path == node), "{error}");
        assert!(error.to_string().contains("user and password"), "{error}");
    };
    denied(stranger.settled("/dubbo/mine", LONG).await.unwrap_err(), "/dubbo/mine");
    denied(stranger.read("/dubbo/own").await.unwrap_err(), "/dubbo/own");
    denied(stranger.list("/dubbo").await.unwrap_err(), "/dubbo");
    denied(stranger.create("/dubbo/new/node", Bytes::new()).await.unwrap_err(), "/dubbo/new/node");
    denied(stranger.set("/dubbo/own", Bytes::new(), None).await.unwrap_err(), "/dubbo/own");
    denied(stranger.delete("/dubbo/own").await.unwrap_err(), "/dubbo/own");
    let mut watched = stranger.children("/dubbo", false);
    let observation = until(&mut watched, |observation| observation.trouble.is_some()).await;
    assert!(observation.trouble.unwrap().contains("/dubbo"), "what is not readable is trouble, not empty");
    assert_eq!(observation.known, None);
    // What is allowed goes on.
    stranger.settled("/open/mine", LONG).await.unwrap();
}
