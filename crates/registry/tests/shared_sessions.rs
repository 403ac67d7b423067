//! Registries of one address share one session.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;

use dubhe_core::registry::{RegistryError, RegistryFactory};
use dubhe_registry::{MEMORY, MemoryStore, MemoryTreeFactory, SharedTrees, TreeRegistryFactory};
use support::{consumer, provider, url};

fn factory(store: &MemoryStore) -> TreeRegistryFactory {
    let memory = MemoryTreeFactory::new(store.clone());
    TreeRegistryFactory::new().with(MEMORY, Arc::new(memory))
}

#[tokio::test]
async fn one_address_is_one_session_whatever_the_parameters() {
    let store = MemoryStore::new();
    let factory = factory(&store);
    let one = factory.open(&url("memory://a:1?backup=b:2")).unwrap();
    let two = factory.open(&url("registry://b:2/x?registry=memory&backup=a:1&group=other")).unwrap();
    let lease = factory.trees().lease(&url("memory://a:1?backup=b:2&timeout=5")).unwrap();
    assert_eq!(store.sessions(), 1);
    let third = factory.open(&url("memory://c:3")).unwrap();
    assert_eq!(store.sessions(), 2);

    one.register(&provider(1)).await.unwrap();
    two.register(&provider(2)).await.unwrap();
    one.close().await;
    assert_eq!(two.lookup(&consumer("")).await.unwrap().len(), 1, "the other registry keeps the session");
    assert!(third.lookup(&consumer("")).await.unwrap().is_empty(), "the first one's registration is gone");
    two.close().await;
    assert!(lease.list("/other").await.unwrap().is_some());
    assert_eq!(store.sessions(), 2);
    lease.release().await;
    third.close().await;
    assert_eq!(store.sessions(), 0);
}

#[tokio::test]
async fn an_address_opened_again_after_the_last_close_is_a_new_session() {
    let store = MemoryStore::new();
    let factory = factory(&store);
    let first = factory.open(&url("memory://a")).unwrap();
    first.close().await;
    let second = factory.open(&url("memory://a")).unwrap();
    second.register(&provider(1)).await.unwrap();
    assert_eq!((store.sessions(), second.is_available(), first.is_available()), (1, true, false));
}

#[tokio::test]
async fn addresses_have_stores_of_their_own_when_asked_for() {
    let memory = Arc::new(MemoryTreeFactory::per_address());
    let factory =
        TreeRegistryFactory::over(Arc::new(SharedTrees::new().with(MEMORY, Arc::clone(&memory) as _)));
    let (a, b) = (factory.open(&url("memory://a")).unwrap(), factory.open(&url("memory://b")).unwrap());
    a.register(&provider(1)).await.unwrap();
    assert!(b.lookup(&consumer("")).await.unwrap().is_empty());
    assert_eq!(memory.store("a").nodes(), 4);
}

#[test]
fn an_unknown_protocol_is_refused_with_what_there_is() {
    let refused = factory(&MemoryStore::new()).open(&url("zookeeper://user:secret@a:1"));
    let Err(RegistryError::Invalid(message)) = refused else { panic!("{refused:?}") };
    assert_eq!(message, "no registry of protocol `zookeeper` for zookeeper://a:1: there are memory");
}
