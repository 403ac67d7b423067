//! Service-name mapping over a tree.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use dubhe_common::Url;
use dubhe_core::mapping::{Applications, ServiceNameMapping};
use dubhe_core::observation::Observation;
use dubhe_core::tree::{Tree, TreeError, TreeFactory};
use dubhe_discovery::{CacheFile, METADATA_SERVICE, MappingCache, TreeServiceNameMapping};
use dubhe_registry_zookeeper::ZookeeperTreeFactory;
use dubhe_testkit::ZooKeeper;
use tokio::sync::watch;

use crate::support::{InMemory, Store, on_every_store, until};

on_every_store! {
    a_mapping_is_where_dubbo_puts_it
    each_registry_has_a_mapping_of_its_own
    names_are_compared_whole
    many_who_map_at_once_are_all_there
    what_cannot_be_mapped_is_refused
    an_interface_that_nobody_mapped_is_known_to_have_no_application
    names_that_are_added_and_removed_are_seen
    another_order_is_no_change
    a_mapping_that_goes_away_leaves_what_was_known
    an_outage_keeps_the_applications
    a_mapping_that_goes_there_and_back_is_followed
}

type Followed = watch::Receiver<Observation<Applications>>;

const FOO: &str = "demo.Foo";

fn address(store: &dyn Store) -> Url {
    Url::parse(&format!("zookeeper://192.0.2.1:2181?group={}", store.name())).unwrap()
}

fn over(store: &dyn Store, tree: &Arc<dyn Tree>) -> TreeServiceNameMapping {
    TreeServiceNameMapping::new(&address(store), Arc::clone(tree))
}

fn set(names: &[&str]) -> BTreeSet<Arc<str>> {
    names.iter().map(|name| Arc::from(*name)).collect()
}

async fn sees(followed: &mut Followed, names: &[&str]) {
    let names = set(names);
    until(followed, |seen| seen.trouble.is_none() && seen.known.as_deref() == Some(&names)).await;
}

async fn write(tree: &Arc<dyn Tree>, store: &dyn Store, text: &'static str) {
    let path = over(store, tree).path(FOO);
    let data = Bytes::from_static(text.as_bytes());
    assert!(tree.set(&path, data.clone(), None).await.unwrap() || tree.create(&path, data).await.unwrap());
}

async fn text(tree: &Arc<dyn Tree>, store: &dyn Store) -> String {
    let node = tree.read(&format!("/{}/mapping/{FOO}", store.name())).await.unwrap().unwrap();
    String::from_utf8(node.bytes.to_vec()).unwrap()
}

// C16
async fn a_mapping_is_where_dubbo_puts_it(store: &dyn Store) {
    let (tree, _f) = store.open().await;
    let default =
        TreeServiceNameMapping::new(&Url::parse("zookeeper://192.0.2.1:2181").unwrap(), Arc::clone(&tree));
    assert_eq!(default.path("com.x.Foo$Inner"), "/dubbo/mapping/com.x.Foo$Inner");
    let mapping = over(store, &tree);
    mapping.map(FOO, "app-b").await.unwrap();
    mapping.map(FOO, "app-a").await.unwrap();
    mapping.map(FOO, "app-b").await.unwrap();
    assert_eq!(text(&tree, store).await, "app-b,app-a");
    tree.close().await;
    let (other, _g) = store.open().await;
    assert_eq!(text(&other, store).await, "app-b,app-a", "it stays when the session goes");
}

// C40
async fn each_registry_has_a_mapping_of_its_own(store: &dyn Store) {
    let (tree, _f) = store.open().await;
    let of = |group: &str| {
        let url = Url::parse(&format!("zookeeper://192.0.2.1:2181?group={}-{group}", store.name())).unwrap();
        TreeServiceNameMapping::new(&url, Arc::clone(&tree))
    };
    of("ra").map(FOO, "app-a").await.unwrap();
    of("rb").map(FOO, "app-b").await.unwrap();
    sees(&mut of("ra").applications(FOO), &["app-a"]).await;
    sees(&mut of("rb").applications(FOO), &["app-b"]).await;
}

// C14
async fn names_are_compared_whole(store: &dyn Store) {
    let (tree, _f) = store.open().await;
    write(&tree, store, "order-api").await;
    over(store, &tree).map(FOO, "order").await.unwrap();
    assert_eq!(text(&tree, store).await, "order-api,order");
}

// C14
async fn many_who_map_at_once_are_all_there(store: &dyn Store) {
    let mut writers = Vec::new();
    for _ in 0..4 {
        writers.push(store.open().await);
    }
    let mapping: Vec<_> = writers.iter().map(|(tree, _)| Arc::new(over(store, tree))).collect();
    let adding: Vec<_> = (0..12)
        .map(|number| {
            let mapping = Arc::clone(&mapping[number % mapping.len()]);
            tokio::spawn(async move {
                // As exporters do: whoever was slower eleven times asks again.
                while let Err(error) = mapping.map(FOO, &format!("app-{number}")).await {
                    assert!(matches!(error, TreeError::Unreachable { .. }), "{error}");
                }
            })
        })
        .collect();
    for one in adding {
        one.await.unwrap();
    }
    let text = text(&writers[0].0, store).await;
    let names: Vec<&str> = text.split(',').collect();
    assert_eq!((names.len(), set(&names).len()), (12, 12), "{text}");
}

async fn what_cannot_be_mapped_is_refused(store: &dyn Store) {
    let (tree, _f) = store.open().await;
    let mapping = over(store, &tree);
    for (interface, application) in [(FOO, ""), (FOO, " "), (FOO, "a,b"), ("", "a")] {
        assert!(matches!(mapping.map(interface, application).await, Err(TreeError::Invalid(_))));
    }
    mapping.map(METADATA_SERVICE, "a").await.unwrap();
    assert_eq!(tree.read(&mapping.path(METADATA_SERVICE)).await, Ok(None), "every application has one");
}

// C33
async fn an_interface_that_nobody_mapped_is_known_to_have_no_application(store: &dyn Store) {
    let (tree, _f) = store.open().await;
    let mapping = over(store, &tree);
    let mut followed = mapping.applications(FOO);
    sees(&mut followed, &[]).await;
    mapping.map(FOO, "app-a").await.unwrap();
    sees(&mut followed, &["app-a"]).await;
}

// C12
async fn names_that_are_added_and_removed_are_seen(store: &dyn Store) {
    let (tree, _f) = store.open().await;
    write(&tree, store, "app-a").await;
    let mut followed = over(store, &tree).applications(FOO);
    sees(&mut followed, &["app-a"]).await;
    write(&tree, store, "app-a,app-b").await;
    sees(&mut followed, &["app-a", "app-b"]).await;
    write(&tree, store, "app-b").await;
    sees(&mut followed, &["app-b"]).await;
}

// C12
async fn another_order_is_no_change(store: &dyn Store) {
    let (tree, _f) = store.open().await;
    write(&tree, store, "app-a,app-b").await;
    let mut followed = over(store, &tree).applications(FOO);
    sees(&mut followed, &["app-a", "app-b"]).await;
    let before = followed.borrow_and_update().known.clone().unwrap();
    write(&tree, store, " app-b, app-a,").await;
    write(&tree, store, "app-b,app-a,app-c").await;
    let next = until(&mut followed, |seen| !Arc::ptr_eq(seen.known.as_ref().unwrap(), &before)).await;
    assert_eq!(*next.known.unwrap(), set(&["app-a", "app-b", "app-c"]), "the first to be seen is a change");
}

async fn a_mapping_that_goes_away_leaves_what_was_known(store: &dyn Store) {
    let (tree, _f) = store.open().await;
    let mut followed = over(store, &tree).applications(FOO);
    write(&tree, store, "app-a").await;
    sees(&mut followed, &["app-a"]).await;
    write(&tree, store, "").await;
    assert_eq!(tree.delete(&over(store, &tree).path(FOO)).await, Ok(true));
    write(&tree, store, "app-b").await;
    let seen = until(&mut followed, |seen| seen.known.as_deref() != Some(&set(&["app-a"]))).await;
    assert_eq!(*seen.known.unwrap(), set(&["app-b"]));
}

// C20
async fn an_outage_keeps_the_applications(store: &dyn Store) {
    let ((ours, faults), (other, _g)) = (store.open().await, store.open().await);
    write(&other, store, "app-a").await;
    let mut followed = over(store, &ours).applications(FOO);
    sees(&mut followed, &["app-a"]).await;
    faults.cut().await;
    let during = until(&mut followed, |seen| seen.trouble.is_some()).await;
    assert_eq!(*during.known.unwrap(), set(&["app-a"]));
    write(&other, store, "app-a,app-b").await;
    faults.restore().await;
    sees(&mut followed, &["app-a", "app-b"]).await;
}

async fn a_mapping_that_goes_there_and_back_is_followed(store: &dyn Store) {
    let (tree, _f) = store.open().await;
    for round in 0..2 {
        let mut followed = over(store, &tree).applications(FOO);
        for text in ["x", "y", "x"] {
            write(&tree, store, text).await;
            sees(&mut followed, &[text]).await;
        }
        assert!(followed.has_changed().is_ok(), "round {round}");
    }
}

#[tokio::test]
async fn a_cached_mapping_is_there_before_the_registry_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = CacheFile::open(Some(folder.path()), ".mapping.demo").unwrap();
    std::fs::write(file.path(), "demo.Foo=[\"app-a\"]\n").unwrap();
    let cache = Arc::new(MappingCache::with_file(file).await);
    let store = InMemory::default();
    let (tree, faults) = store.open().await;
    write(&tree, &store, "app-b").await;
    faults.cut().await;
    let mapping = over(&store, &tree).with_cache(Arc::clone(&cache));
    let mut followed = mapping.applications(FOO);
    let first = followed.borrow().clone();
    assert_eq!(*first.known.unwrap(), set(&["app-a"]));
    assert!(first.trouble.is_some());
    faults.restore().await;
    sees(&mut followed, &["app-b"]).await;
    assert_eq!(*cache.get(FOO).unwrap(), set(&["app-b"]));
}

// C14
#[tokio::test]
async fn denied_access_fails_at_once() {
    let server = ZooKeeper::start().await.unwrap();
    let open = |user: &str| {
        let url = format!("zookeeper://{user}{}?timeout=20000", server.address());
        let url = Url::parse(&url).unwrap();
        (ZookeeperTreeFactory.open(&url).unwrap(), url)
    };
    let (owner, url) = open("ann:secret@");
    TreeServiceNameMapping::new(&url, owner).map(FOO, "app-a").await.unwrap();
    let (stranger, url) = open("");
    let refused = TreeServiceNameMapping::new(&url, stranger).map(FOO, "app-b").await;
    assert!(matches!(refused, Err(TreeError::Denied { .. })), "{refused:?}");
}
