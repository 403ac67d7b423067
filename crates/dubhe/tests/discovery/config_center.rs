//! The config centre over a tree.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use dubhe_common::Url;
use dubhe_core::config_center::{ConfigCenter, DEFAULT_GROUP, MIGRATION_GROUP};
use dubhe_discovery::TreeConfigCenter;
use dubhe_testkit::suites::{ConfigCenterFixture, Faults};

use crate::support::{InMemory, OnZookeeper, Store, on_every_store, until};

mod memory_suite {
    dubhe_testkit::config_center_suite!(super::Over(super::InMemory::default()));
}

mod zookeeper_suite {
    dubhe_testkit::config_center_suite!(super::Over(super::OnZookeeper::new().await));
}

struct Over<S>(S);

#[async_trait]
impl<S: Store> ConfigCenterFixture for Over<S> {
    async fn open(&self) -> (Arc<dyn ConfigCenter>, Box<dyn Faults>) {
        let (tree, faults) = self.0.open().await;
        (Arc::new(TreeConfigCenter::new(&address(&self.0, ""), tree)), faults)
    }
}

on_every_store! {
    texts_are_where_dubbo_puts_them
    a_registry_as_config_centre_keeps_rules_apart_from_its_group
    parents_that_vanish_and_come_back_are_followed
}

fn address(store: &dyn Store, more: &str) -> Url {
    Url::parse(&format!("zookeeper://192.0.2.1:2181?namespace={}{more}", store.name())).unwrap()
}

async fn texts_are_where_dubbo_puts_them(store: &dyn Store) {
    let (tree, _f) = store.open().await;
    let center = TreeConfigCenter::new(&address(store, ""), Arc::clone(&tree));
    let name = store.name();
    let rows = [
        (DEFAULT_GROUP, "demo.Foo::.condition-router", "/config/dubbo/demo.Foo::.condition-router"),
        (
            MIGRATION_GROUP,
            "demo-consumer.migration",
            "/config/DUBBO_SERVICEDISCOVERY_MIGRATION/demo-consumer.migration",
        ),
        ("", "dubbo.properties", "/config/dubbo/dubbo.properties"),
        ("same", "same", "/config/same"),
    ];
    for (group, key, path) in rows {
        center.publish(group, key, path).await.unwrap();
        let node = tree.read(&format!("/{name}{path}")).await.unwrap().unwrap();
        assert_eq!(node.bytes, path);
        assert_eq!(&*center.get(group, key).await.unwrap().unwrap().text, path);
    }
    let elsewhere = address(store, "&dubbo.config-center.root-path=/x//y&group=mine");
    let elsewhere = TreeConfigCenter::new(&elsewhere, tree);
    assert_eq!(elsewhere.path("dubbo", "k"), "/x/y/dubbo/k");
    assert_eq!(elsewhere.properties_group(), "mine");
}

async fn a_registry_as_config_centre_keeps_rules_apart_from_its_group(store: &dyn Store) {
    let (tree, _f) = store.open().await;
    let registry = Url::parse("zookeeper://192.0.2.1:2181?group=g").unwrap();
    let center = TreeConfigCenter::of_registry(&registry, Arc::clone(&tree));
    assert_eq!(center.path(DEFAULT_GROUP, "a.configurators"), "/g/config/dubbo/a.configurators");
    assert_eq!(center.path(center.properties_group(), "dubbo.properties"), "/g/config/g/dubbo.properties");
    let plain = TreeConfigCenter::of_registry(&Url::parse("zookeeper://192.0.2.1:2181").unwrap(), tree);
    assert_eq!(plain.path(DEFAULT_GROUP, "a.configurators"), "/dubbo/config/dubbo/a.configurators");
}

async fn parents_that_vanish_and_come_back_are_followed(store: &dyn Store) {
    let ((ours, _f), (operator, _g)) = (store.open().await, store.open().await);
    let center = TreeConfigCenter::new(&address(store, ""), ours);
    let mut listener = center.listen("dubbo", "k");
    let root = format!("/{}", store.name());
    let text = |seen: &dubhe_discovery::Observation<Option<dubhe_discovery::ConfigText>>| {
        seen.known.clone().map(|text| text.map(|text| text.text.to_string()))
    };
    until(&mut listener, |seen| text(seen) == Some(None)).await;
    for round in ["one", "two"] {
        operator.create(&format!("{root}/config/dubbo/k"), Bytes::from(round)).await.unwrap();
        until(&mut listener, |seen| text(seen) == Some(Some(round.to_owned()))).await;
        for gone in ["/config/dubbo/k", "/config/dubbo", "/config", ""] {
            assert_eq!(operator.delete(&format!("{root}{gone}")).await, Ok(true));
        }
        until(&mut listener, |seen| text(seen) == Some(None)).await;
    }
}
