//! Application-level registration and discovery over a tree.

use std::sync::Arc;

use bytes::Bytes;
use dubhe_common::Url;
use dubhe_core::discovery::{Instances, REVISION, ServiceDiscovery, ServiceInstance};
use dubhe_core::observation::Observation;
use dubhe_core::tree::{Tree, TreeError};
use dubhe_discovery::TreeServiceDiscovery;
use tokio::sync::watch;

use crate::support::{InMemory, Store, on_every_store, until};

on_every_store! {
    an_instance_is_where_dubbo_puts_it
    an_instance_is_seen_with_its_metadata
    an_update_replaces_the_metadata_in_place
    instances_come_and_go
    an_application_that_nobody_registered_is_known_to_have_none
    the_last_to_leave_leaves_an_explicit_empty_list
    a_replaced_instance_leaves_no_moment_without_any
    malformed_nodes_are_skipped
    an_instance_of_spring_cloud_is_seen_and_its_status_counts
    an_outage_keeps_every_instance
    instances_changed_during_an_outage_are_seen_after_it
    a_registration_is_made_again_in_a_new_session
    an_update_during_an_outage_is_carried_out_after_it
    an_instance_unregistered_during_an_outage_does_not_come_back
    followers_of_one_application_see_the_same
    an_application_can_be_followed_again_after_the_last_follower_is_gone
    what_cannot_be_an_instance_is_refused
    many_instances_are_seen_whole
}

type Followed = watch::Receiver<Observation<Instances>>;

fn address(store: &dyn Store) -> Url {
    Url::parse(&format!("zookeeper://192.0.2.1:2181?rootPath=/{}&timeout=10000", store.name())).unwrap()
}

fn over(store: &dyn Store, tree: Arc<dyn Tree>) -> TreeServiceDiscovery {
    TreeServiceDiscovery::new(&address(store), tree)
}

fn instance(number: u16, revision: &str) -> ServiceInstance {
    ServiceInstance::new("demo", format!("192.0.2.{number}"), 20880).with(REVISION, revision)
}

/// `number@revision` of all that are known, without trouble.
fn shown(seen: &Observation<Instances>) -> Option<Vec<String>> {
    let known = seen.known.as_ref().filter(|_| seen.trouble.is_none())?;
    Some(known.iter().map(|one| describe(one)).collect())
}

fn describe(one: &ServiceInstance) -> String {
    let number = one.host.rsplit('.').next().unwrap();
    format!("{number}@{}", one.revision().unwrap_or("none"))
}

async fn sees(followed: &mut Followed, wanted: &[&str]) {
    until(followed, |seen| shown(seen).is_some_and(|shown| shown == wanted)).await;
}

// C16
async fn an_instance_is_where_dubbo_puts_it(store: &dyn Store) {
    let (tree, _f) = store.open().await;
    let rows = [
        ("zookeeper://192.0.2.1:2181", "/services".to_owned()),
        ("zookeeper://192.0.2.1:2181?rootPath=/Services", "/services".to_owned()),
        (&*format!("zookeeper://192.0.2.1:2181?group={}", store.name()), format!("/{}", store.name())),
        (&*format!("zookeeper://192.0.2.1:2181?rootPath=/{}/x&group=g", store.name()), {
            format!("/{}/x", store.name())
        }),
    ];
    for (url, root) in rows {
        let discovery = TreeServiceDiscovery::new(&Url::parse(url).unwrap(), Arc::clone(&tree));
        let mut instance = instance(1, "r1");
        instance.application = Arc::from(format!("app-{}", store.name()));
        discovery.register(&instance).await.unwrap();
        let path = format!("{root}/app-{}/192.0.2.1:20880", store.name());
        let node = tree.read(&path).await.unwrap().unwrap_or_else(|| panic!("{path} of {url}"));
        assert!(node.bytes.starts_with(b"{\"name\":\"app-"));
        discovery.unregister(&instance).await.unwrap();
        assert_eq!(tree.read(&path).await, Ok(None));
    }
}

async fn an_instance_is_seen_with_its_metadata(store: &dyn Store) {
    let ((ours, _f), (other, _g)) = (store.open().await, store.open().await);
    let registered = instance(1, "r1").with("dubbo.endpoints", r#"[{"port":20880,"protocol":"dubbo"}]"#);
    over(store, ours).register(&registered).await.unwrap();
    let mut followed = over(store, other).instances("demo");
    sees(&mut followed, &["1@r1"]).await;
    let seen = followed.borrow().known.clone().unwrap();
    assert!(seen[0].registered_at > 0);
    let seen = ServiceInstance { registered_at: 0, ..ServiceInstance::clone(&seen[0]) };
    assert_eq!(seen, registered);
}

async fn an_update_replaces_the_metadata_in_place(store: &dyn Store) {
    let ((ours, _f), (other, _g)) = (store.open().await, store.open().await);
    let discovery = over(store, Arc::clone(&ours));
    let mut followed = over(store, other).instances("demo");
    discovery.register(&instance(1, "r1")).await.unwrap();
    sees(&mut followed, &["1@r1"]).await;
    discovery.register(&instance(1, "r2")).await.unwrap();
    sees(&mut followed, &["1@r2"]).await;
    let path = format!("/{}/demo/192.0.2.1:20880", store.name());
    // A node that was made anew would start at version 0.
    assert_eq!(ours.read(&path).await.unwrap().unwrap().version, 1);
    discovery.unregister(&instance(1, "r2")).await.unwrap();
    assert_eq!(ours.read(&path).await, Ok(None));
}

async fn instances_come_and_go(store: &dyn Store) {
    let ((ours, _f), (other, _g)) = (store.open().await, store.open().await);
    let discovery = over(store, ours);
    let mut followed = over(store, other).instances("demo");
    discovery.register(&instance(1, "r")).await.unwrap();
    sees(&mut followed, &["1@r"]).await;
    discovery.register(&instance(2, "r")).await.unwrap();
    sees(&mut followed, &["1@r", "2@r"]).await;
    discovery.unregister(&instance(1, "r")).await.unwrap();
    sees(&mut followed, &["2@r"]).await;
}

async fn an_application_that_nobody_registered_is_known_to_have_none(store: &dyn Store) {
    let (ours, _f) = store.open().await;
    let mut followed = over(store, ours).instances("nobody");
    sees(&mut followed, &[]).await;
}

// C35
async fn the_last_to_leave_leaves_an_explicit_empty_list(store: &dyn Store) {
    let (ours, _f) = store.open().await;
    let discovery = over(store, ours);
    let mut followed = discovery.instances("demo");
    for revision in ["r1", "r2"] {
        discovery.register(&instance(1, revision)).await.unwrap();
        sees(&mut followed, &[&format!("1@{revision}")]).await;
        discovery.unregister(&instance(1, revision)).await.unwrap();
        sees(&mut followed, &[]).await;
    }
}

async fn a_replaced_instance_leaves_no_moment_without_any(store: &dyn Store) {
    let ((ours, _f), (other, _g)) = (store.open().await, store.open().await);
    let discovery = over(store, ours);
    discovery.register(&instance(1, "r")).await.unwrap();
    let mut followed = over(store, other).instances("demo");
    sees(&mut followed, &["1@r"]).await;
    for number in 2..12 {
        discovery.register(&instance(number, "r")).await.unwrap();
        discovery.unregister(&instance(number - 1, "r")).await.unwrap();
        let wanted = [format!("{number}@r")];
        until(&mut followed, |seen| {
            let shown = shown(seen).unwrap();
            assert!(!shown.is_empty());
            shown == wanted
        })
        .await;
    }
}

async fn malformed_nodes_are_skipped(store: &dyn Store) {
    let (ours, _f) = store.open().await;
    let root = format!("/{}/demo", store.name());
    for (name, data) in [("a", "no json"), ("b", ""), ("c", "{}"), ("d", r#"{"address":"h","port":99999}"#)] {
        ours.create(&format!("{root}/{name}"), Bytes::from(data)).await.unwrap();
    }
    let discovery = over(store, Arc::clone(&ours));
    discovery.register(&instance(1, "r")).await.unwrap();
    let mut followed = discovery.instances("demo");
    sees(&mut followed, &["1@r"]).await;
    let mended = Bytes::from(r#"{"address":"192.0.2.9","port":1}"#);
    assert_eq!(ours.set(&format!("{root}/b"), mended, None).await, Ok(true));
    sees(&mut followed, &["1@r", "9@none"]).await;
}

// C111
async fn an_instance_of_spring_cloud_is_seen_and_its_status_counts(store: &dyn Store) {
    let (ours, _f) = store.open().await;
    let path = format!("/{}/demo/0d9f2c1e-uuid", store.name());
    let data = |status: &str| {
        Bytes::from(format!(
            r#"{{"name":"demo","id":"0d9f2c1e-uuid","address":"192.0.2.5","port":8080,"sslPort":null,"payload":{{
            "@class":"org.springframework.cloud.zookeeper.discovery.ZookeeperInstance","id":"demo-1","name":"demo",
            "metadata":{{"instance_status":"{status}"}}}},"registrationTimeUTC":1,"serviceType":"DYNAMIC","uriSpec":null}}"#
        ))
    };
    ours.create(&path, data("UP")).await.unwrap();
    let mut followed = over(store, Arc::clone(&ours)).instances("demo");
    let enabled = |seen: &Observation<Instances>| seen.known.as_ref()?.first().map(|one| one.enabled);
    until(&mut followed, |seen| enabled(seen) == Some(true)).await;
    assert_eq!(ours.set(&path, data("OUT_OF_SERVICE"), None).await, Ok(true));
    until(&mut followed, |seen| enabled(seen) == Some(false)).await;
    assert_eq!(ours.delete(&path).await, Ok(true));
    sees(&mut followed, &[]).await;
}

// C20
async fn an_outage_keeps_every_instance(store: &dyn Store) {
    let ((ours, _f), (other, faults)) = (store.open().await, store.open().await);
    let discovery = over(store, ours);
    for number in [1, 2] {
        discovery.register(&instance(number, "r")).await.unwrap();
    }
    let mut followed = over(store, other).instances("demo");
    sees(&mut followed, &["1@r", "2@r"]).await;
    let before = followed.borrow().known.clone().unwrap();
    faults.cut().await;
    let during = until(&mut followed, |seen| seen.trouble.is_some()).await;
    assert!(Arc::ptr_eq(&before, &during.known.unwrap()));
    faults.restore().await;
    let after = until(&mut followed, |seen| seen.trouble.is_none()).await;
    assert!(Arc::ptr_eq(&before, &after.known.unwrap()));
}

async fn instances_changed_during_an_outage_are_seen_after_it(store: &dyn Store) {
    let ((ours, _f), (other, faults)) = (store.open().await, store.open().await);
    let discovery = over(store, ours);
    for number in [1, 2] {
        discovery.register(&instance(number, "r1")).await.unwrap();
    }
    let mut followed = over(store, other).instances("demo");
    sees(&mut followed, &["1@r1", "2@r1"]).await;
    faults.cut().await;
    until(&mut followed, |seen| seen.trouble.is_some()).await;
    discovery.register(&instance(1, "r2")).await.unwrap();
    discovery.unregister(&instance(2, "r1")).await.unwrap();
    discovery.register(&instance(3, "r2")).await.unwrap();
    faults.restore().await;
    sees(&mut followed, &["1@r2", "3@r2"]).await;
}

// C01
async fn a_registration_is_made_again_in_a_new_session(store: &dyn Store) {
    let ((ours, faults), (other, _g)) = (store.open().await, store.open().await);
    let discovery = over(store, ours);
    discovery.register(&instance(1, "r1")).await.unwrap();
    discovery.register(&instance(1, "r2")).await.unwrap();
    let mut followed = over(store, other).instances("demo");
    sees(&mut followed, &["1@r2"]).await;
    faults.expire().await;
    discovery.register(&instance(2, "r2")).await.unwrap();
    sees(&mut followed, &["1@r2", "2@r2"]).await;
}

async fn an_update_during_an_outage_is_carried_out_after_it(store: &dyn Store) {
    let ((ours, faults), (other, _g)) = (store.open().await, store.open().await);
    let url = address(store).with_param("timeout", 100);
    let discovery = TreeServiceDiscovery::new(&url, ours);
    let mut followed = over(store, other).instances("demo");
    // A slow first settling is no failure of the registration.
    let _ = discovery.register(&instance(1, "r1")).await;
    sees(&mut followed, &["1@r1"]).await;
    faults.cut().await;
    assert!(matches!(discovery.register(&instance(1, "r2")).await, Err(TreeError::Unreachable { .. })));
    faults.restore().await;
    sees(&mut followed, &["1@r2"]).await;
    assert_eq!(discovery.registrations(), 1);
}

async fn an_instance_unregistered_during_an_outage_does_not_come_back(store: &dyn Store) {
    let ((ours, faults), (other, _g)) = (store.open().await, store.open().await);
    let discovery = over(store, ours);
    for number in [1, 2] {
        discovery.register(&instance(number, "r")).await.unwrap();
    }
    let mut followed = over(store, other).instances("demo");
    sees(&mut followed, &["1@r", "2@r"]).await;
    faults.cut().await;
    discovery.unregister(&instance(1, "r")).await.unwrap();
    faults.restore().await;
    sees(&mut followed, &["2@r"]).await;
}

async fn followers_of_one_application_see_the_same(store: &dyn Store) {
    let (ours, _f) = store.open().await;
    let discovery = over(store, ours);
    discovery.register(&instance(1, "r")).await.unwrap();
    let (mut one, mut two) = (discovery.instances("demo"), discovery.instances("demo"));
    sees(&mut one, &["1@r"]).await;
    sees(&mut two, &["1@r"]).await;
    assert!(Arc::ptr_eq(&one.borrow().known.clone().unwrap(), &two.borrow().known.clone().unwrap()));
    assert_eq!(discovery.followed(), 1);
}

async fn an_application_can_be_followed_again_after_the_last_follower_is_gone(store: &dyn Store) {
    let (ours, _f) = store.open().await;
    let discovery = over(store, ours);
    for number in 1..4 {
        let mut followed = discovery.instances("demo");
        discovery.register(&instance(number, "r")).await.unwrap();
        sees(&mut followed, &[&format!("{number}@r")]).await;
        discovery.unregister(&instance(number, "r")).await.unwrap();
        sees(&mut followed, &[]).await;
    }
}

async fn what_cannot_be_an_instance_is_refused(store: &dyn Store) {
    let (ours, _f) = store.open().await;
    let discovery = over(store, ours);
    let rows = [
        ServiceInstance::new("", "192.0.2.1", 1),
        ServiceInstance::new("a/b", "192.0.2.1", 1),
        ServiceInstance::new("demo", "", 1),
        ServiceInstance::new("demo", "192.0.2.1", 0),
    ];
    for refused in rows {
        assert!(matches!(discovery.register(&refused).await, Err(TreeError::Invalid(_))), "{refused:?}");
    }
    assert_eq!(discovery.registrations(), 0);
}

async fn many_instances_are_seen_whole(store: &dyn Store) {
    let ((ours, _f), (other, _g)) = (store.open().await, store.open().await);
    let discovery = over(store, ours);
    for number in 1..=100 {
        discovery.register(&instance(number, "r")).await.unwrap();
    }
    let mut followed = over(store, other).instances("demo");
    let first = until(&mut followed, |seen| seen.known.is_some()).await;
    assert_eq!(first.known.unwrap().len(), 100, "the first list is not a part of it");
}

#[tokio::test]
async fn the_watches_end_with_the_last_follower() {
    let store = InMemory::default();
    let (ours, _f) = store.open().await;
    let discovery = over(&store, ours);
    discovery.register(&instance(1, "r")).await.unwrap();
    let mut followed = discovery.instances("demo");
    sees(&mut followed, &["1@r"]).await;
    drop(followed);
    while discovery.followed() > 0 {
        tokio::task::yield_now().await;
    }
}
