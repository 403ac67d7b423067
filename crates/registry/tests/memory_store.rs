//! What the in-memory store has beyond a tree: several sessions, counts and fault hooks.

use std::time::Duration;

use dubhe_common::Url;
use dubhe_core::tree::{NodeKind, SessionState, Tree, TreeError, TreeFactory};
use dubhe_registry::{MemoryStore, MemoryTreeFactory};

#[test]
fn a_session_ends_when_its_last_handle_is_dropped() {
    let store = MemoryStore::new();
    let tree = store.session("local");
    let same = tree.clone();
    tree.ensure("/a/b", "x".into(), NodeKind::Ephemeral);
    drop(tree);
    assert_eq!((store.sessions(), store.nodes()), (1, 2));
    drop(same);
    assert_eq!((store.sessions(), store.nodes()), (0, 1));
}

#[test]
fn a_store_that_is_down_is_down_for_all_and_comes_back_for_all() {
    let store = MemoryStore::new();
    let sessions = [store.session("a"), store.session("b")];
    for (session, path) in sessions.iter().zip(["/a", "/b"]) {
        session.ensure(path, "x".into(), NodeKind::Ephemeral);
    }
    store.suspend_all();
    assert!(sessions.iter().all(|session| *session.session().borrow() == SessionState::Suspended));
    store.expire_all();
    assert_eq!(store.nodes(), 0);
    store.resume_all();
    assert!(
        sessions.iter().all(|session| *session.session().borrow() == SessionState::Connected { epoch: 2 })
    );
    assert_eq!(store.nodes(), 2);
    store.expire_all();
    assert!(
        sessions.iter().all(|session| *session.session().borrow() == SessionState::Connected { epoch: 3 })
    );
    assert_eq!(store.nodes(), 2);
}

#[test]
fn watches_are_forgotten_with_their_last_receiver() {
    let store = MemoryStore::new();
    let tree = store.session("local");
    let kept = tree.children("/kept", true);
    for round in 0..10_000 {
        drop((tree.children(&format!("/c{round}"), false), tree.data(&format!("/d{round}"))));
    }
    assert_eq!((tree.watches(), store.watches()), (1, 1));
    drop(kept);
    assert_eq!(store.watches(), 0);
}

#[tokio::test]
async fn what_the_store_refuses_is_said_at_once_and_taken_up_later() {
    let tree = MemoryStore::new().session("local");
    tree.ensure("/leaf", "x".into(), NodeKind::Ephemeral);
    tree.ensure("/leaf/below", "x".into(), NodeKind::Ephemeral);
    let refused = tree.settled("/leaf/below", Duration::from_secs(60)).await;
    assert!(
        matches!(&refused, Err(TreeError::Invalid(why)) if why.contains("/leaf is ephemeral")),
        "{refused:?}"
    );
    tree.withdraw("/leaf");
    assert_eq!(tree.settled("/leaf/below", Duration::from_secs(60)).await, Ok(()));
    assert!(matches!(tree.delete("/").await, Err(TreeError::Invalid(_))));
}

#[test]
fn only_memory_addresses_are_opened() {
    let factory = MemoryTreeFactory::new(MemoryStore::new());
    let url = |text: &str| Url::parse(text).expect("a url");
    let refused = factory.open(&url("zookeeper://user:secret@a:1"));
    let Err(TreeError::Invalid(message)) = refused else { panic!("{refused:?}") };
    assert!(message.contains("memory://") && !message.contains("secret"), "{message}");
    assert_eq!(factory.open(&url("memory://here")).expect("a tree").address(), "memory://here");
}
