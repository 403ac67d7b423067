//! The metadata report over a tree, and whole trees as real Dubbo writes them.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use dubhe_common::Url;
use dubhe_core::discovery::ServiceDiscovery;
use dubhe_core::mapping::ServiceNameMapping;
use dubhe_core::metadata::{DefinitionId, MetadataInfo, MetadataReport};
use dubhe_core::tree::{Tree, TreeError};
use dubhe_discovery::{TreeMetadataReport, TreeServiceDiscovery, TreeServiceNameMapping};
use dubhe_registry::MemoryStore;
use serde_json::Value as Json;

use crate::support::{Store, on_every_store, until};

on_every_store! {
    metadata_is_where_dubbo_puts_it
    metadata_that_is_there_stays
    a_node_that_was_left_empty_is_filled
    metadata_that_is_not_there_is_none
    malformed_metadata_is_an_error
    metadata_of_java_is_read
    each_registry_has_a_report_of_its_own
    definitions_are_where_dubbo_puts_them
}

fn report(store: &dyn Store, tree: &Arc<dyn Tree>) -> TreeMetadataReport {
    let url = Url::parse(&format!("zookeeper://192.0.2.1:2181?group={}", store.name())).unwrap();
    TreeMetadataReport::new(&url, Arc::clone(tree))
}

fn info(revision: &str) -> MetadataInfo {
    let text = format!(
        r#"{{"app":"demo","revision":"{revision}","services":{{"a.A:dubbo":{{"name":"a.A","protocol":"dubbo","port":20880,
        "path":"a.A","params":{{"timeout":"5"}}}}}}}}"#
    );
    serde_json::from_str(&text).unwrap()
}

// C17
async fn metadata_is_where_dubbo_puts_it(store: &dyn Store) {
    let (tree, _f) = store.open().await;
    let report = report(store, &tree);
    report.publish(&info("abc")).await.unwrap();
    let path = format!("/{}/metadata/demo/abc", store.name());
    let node = tree.read(&path).await.unwrap().unwrap();
    assert_eq!(
        std::str::from_utf8(&node.bytes).unwrap(),
        r#"{"app":"demo","revision":"abc","services":{"a.A:dubbo":{"name":"a.A","protocol":"dubbo","port":20880,"path":"a.A","params":{"timeout":"5"}}}}"#
    );
    assert_eq!(report.fetch("demo", "abc").await, Ok(Some(info("abc"))));
    assert_eq!(report.path("metadata", "abc"), format!("/{}/metadata/abc", store.name()), "as in Java");
    tree.close().await;
    let (other, _g) = store.open().await;
    assert!(other.read(&path).await.unwrap().is_some(), "it stays when the session goes");
}

async fn metadata_that_is_there_stays(store: &dyn Store) {
    let (tree, _f) = store.open().await;
    let report = report(store, &tree);
    report.publish(&info("abc")).await.unwrap();
    let other = MetadataInfo { services: BTreeMap::new(), ..info("abc") };
    report.publish(&other).await.unwrap();
    assert_eq!(report.fetch("demo", "abc").await, Ok(Some(info("abc"))));
    for nothing in [MetadataInfo { revision: Some("0".to_owned()), ..info("0") }, MetadataInfo::default()] {
        report.publish(&nothing).await.unwrap();
    }
    let revisions = tree.list(&format!("/{}/metadata/demo", store.name())).await.unwrap().unwrap();
    assert_eq!(revisions.len(), 1);
}

async fn a_node_that_was_left_empty_is_filled(store: &dyn Store) {
    let (tree, _f) = store.open().await;
    let report = report(store, &tree);
    tree.create(&report.path("demo", "abc"), Bytes::new()).await.unwrap();
    assert_eq!(report.fetch("demo", "abc").await, Ok(None));
    report.publish(&info("abc")).await.unwrap();
    assert_eq!(report.fetch("demo", "abc").await, Ok(Some(info("abc"))));
}

// C18
async fn metadata_that_is_not_there_is_none(store: &dyn Store) {
    let (tree, _f) = store.open().await;
    let report = report(store, &tree);
    assert_eq!(report.fetch("demo", "abc").await, Ok(None));
    let empty = Bytes::from(r#"{"app":"demo","revision":"abc","services":{}}"#);
    tree.create(&report.path("demo", "abc"), empty).await.unwrap();
    assert_eq!(report.fetch("demo", "abc").await, Ok(None), "without services it is not there yet");
}

async fn malformed_metadata_is_an_error(store: &dyn Store) {
    let (tree, _f) = store.open().await;
    let report = report(store, &tree);
    let deep = "[".repeat(10_000);
    for (revision, data) in [("a", "192.0.2.1"), ("b", "{"), ("c", r#"{"services":[]}"#), ("d", &deep)] {
        tree.create(&report.path("demo", revision), Bytes::from(data.to_owned())).await.unwrap();
        let refused = report.fetch("demo", revision).await;
        assert!(matches!(&refused, Err(TreeError::Invalid(text)) if text.contains(revision)), "{refused:?}");
    }
}

// C17
async fn metadata_of_java_is_read(store: &dyn Store) {
    let (tree, _f) = store.open().await;
    let report = report(store, &tree);
    let mut found = 0;
    for node in recorded().into_iter().flatten() {
        let Some(revision) = node.path.strip_prefix("/dubbo/metadata/demo-provider/") else { continue };
        let path = node.path.replacen("/dubbo", &format!("/{}", store.name()), 1);
        tree.create(&path, Bytes::from(node.data.clone())).await.unwrap();
        let read = report.fetch("demo-provider", revision).await.unwrap().unwrap();
        assert_eq!(read.revision.as_deref(), Some(revision));
        let greet = read.find("g1/org.apache.dubbo.demo.GreetService:1.0.0").unwrap();
        assert_eq!((greet.port, &*greet.protocol), (20880, "dubbo"));
        found += 1;
    }
    assert_eq!(found, 2, "of 3.1 and of 3.3");
}

// C40
async fn each_registry_has_a_report_of_its_own(store: &dyn Store) {
    let (tree, _f) = store.open().await;
    let of = |group: &str| {
        let url = Url::parse(&format!("zookeeper://192.0.2.1:2181?group={}-{group}", store.name())).unwrap();
        TreeMetadataReport::new(&url, Arc::clone(&tree))
    };
    of("ra").publish(&info("abc")).await.unwrap();
    assert_eq!(of("rb").fetch("demo", "abc").await, Ok(None));
    assert!(of("ra").fetch("demo", "abc").await.unwrap().is_some());
}

async fn definitions_are_where_dubbo_puts_them(store: &dyn Store) {
    let (tree, _f) = store.open().await;
    let report = report(store, &tree);
    let id =
        |version, group, side| DefinitionId { interface: "a.A", version, group, side, application: "demo" };
    let rows = [
        (id(None, None, "provider"), "a.A/provider/demo"),
        (id(Some("1"), Some("g"), "provider"), "a.A/1/g/provider/demo"),
        (id(Some("1"), Some("1"), "consumer"), "a.A/1/consumer/demo"),
        (DefinitionId { interface: "a.A$B", ..id(None, None, "provider") }, "a.A%24B/provider/demo"),
    ];
    for (service, path) in rows {
        for json in [r#"{"old":1}"#, r#"{"new":1}"#] {
            report.publish_definition(&service, json).await.unwrap();
            let node = tree.read(&format!("/{}/metadata/{path}", store.name())).await.unwrap();
            assert_eq!(node.unwrap().bytes, json, "{path}");
        }
    }
}

/// What real Dubbo wrote, told to our writers again, makes the same tree.
#[tokio::test]
async fn trees_are_the_recorded_ones() {
    for (number, nodes) in recorded().into_iter().enumerate() {
        let wanted: BTreeMap<String, Json> = nodes
            .iter()
            .filter(|node| is_ours(&node.path) && !node.data.is_empty())
            .filter(|node| node.ephemeral || node.children == 0)
            .map(|node| (node.path.clone(), comparable(node.data.as_bytes())))
            .collect();
        let written = written_again(&nodes).await;
        assert_eq!(written, wanted, "tree {number}");
        assert!(wanted.len() >= 6);
    }
}

async fn written_again(nodes: &[Node]) -> BTreeMap<String, Json> {
    let (theirs, ours) = (MemoryStore::new(), MemoryStore::new());
    let url = Url::parse("zookeeper://192.0.2.1:2181").unwrap();
    let tree = ours.connect();
    let mapping = TreeServiceNameMapping::new(&url, Arc::clone(&tree));
    let report = TreeMetadataReport::new(&url, Arc::clone(&tree));
    let reader = theirs.connect();
    for node in nodes.iter().filter(|node| is_ours(&node.path)) {
        let parts: Vec<&str> = node.path.split('/').skip(1).collect();
        match parts[..] {
            ["services", _, _] => {
                reader.create(&node.path, Bytes::from(node.data.clone())).await.unwrap();
            }
            ["dubbo", "mapping", interface] => mapping.map(interface, &node.data).await.unwrap(),
            ["dubbo", "metadata", "demo-provider", _] => {
                report.publish(&serde_json::from_str(&node.data).unwrap()).await.unwrap();
            }
            ["dubbo", "metadata", interface, .., side, application] if node.children == 0 => {
                let (version, group) = match parts.len() {
                    7 => (Some(parts[3]), Some(parts[4])),
                    _ => (None, None),
                };
                let id = DefinitionId { interface, version, group, side, application };
                report.publish_definition(&id, &node.data).await.unwrap();
            }
            _ => {}
        }
    }
    let discovery = TreeServiceDiscovery::new(&url, Arc::clone(&tree));
    let mut followed = TreeServiceDiscovery::new(&url, reader).instances("demo-provider");
    let seen = until(&mut followed, |seen| seen.known.is_some()).await;
    for instance in seen.known.unwrap().iter() {
        discovery.register(instance).await.unwrap();
    }
    let mut written = BTreeMap::new();
    for (path, _) in ours.paths() {
        let data = tree.read(&path).await.unwrap().unwrap().bytes;
        if !data.is_empty() {
            written.insert(path.to_string(), comparable(&data));
        }
    }
    written
}

fn is_ours(path: &str) -> bool {
    ["/services/", "/dubbo/mapping/", "/dubbo/metadata/"].iter().any(|root| path.starts_with(root))
}

/// JSON without the time of registration; other texts as they are.
fn comparable(data: &[u8]) -> Json {
    let text = std::str::from_utf8(data).unwrap();
    let mut json = serde_json::from_str(text).unwrap_or_else(|_| Json::from(text));
    if let Some(time) = json.get_mut("registrationTimeUTC") {
        *time = Json::Null;
    }
    json
}

#[derive(serde::Deserialize)]
struct Recorded {
    nodes: Vec<Node>,
}

#[derive(serde::Deserialize)]
struct Node {
    path: String,
    data: String,
    ephemeral: bool,
    children: usize,
}

/// 3.1 (a, b, c) and 3.3 (d, e, f): all register modes, both storage types.
fn recorded() -> Vec<Vec<Node>> {
    [
        include_str!("../../../discovery/tests/vectors/zk-tree-a.json"),
        include_str!("../../../discovery/tests/vectors/zk-tree-b.json"),
        include_str!("../../../discovery/tests/vectors/zk-tree-c.json"),
        include_str!("../../../discovery/tests/vectors/zk-tree-d.json"),
        include_str!("../../../discovery/tests/vectors/zk-tree-e.json"),
        include_str!("../../../discovery/tests/vectors/zk-tree-f.json"),
    ]
    .map(|json| serde_json::from_str::<Recorded>(json).unwrap().nodes)
    .into()
}
