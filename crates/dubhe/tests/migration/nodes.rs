//! Nodes written by hand, where another Dubbo would write them.

use std::sync::Arc;

use bytes::Bytes;
use dubhe::core::tree::{NodeKind, Tree};
use serde_json::json;

use crate::support::{LONG, SHOP};

/// An instance node as Dubbo writes it.
pub(crate) fn instance(application: &str, port: u16, metadata: &[(&str, &str)]) -> Bytes {
    let metadata: serde_json::Map<String, serde_json::Value> =
        metadata.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    let id = format!("127.0.0.1:{port}");
    let node = json!({
        "name": application, "id": id, "address": "127.0.0.1", "port": port, "sslPort": null,
        "payload": {
            "@class": "org.apache.dubbo.registry.zookeeper.ZookeeperInstance",
            "id": id, "name": application, "metadata": metadata,
        },
        "registrationTimeUTC": 1_795_997_932_961_u64, "serviceType": "DYNAMIC", "uriSpec": null,
    });
    Bytes::from(node.to_string())
}

/// An instance whose metadata is in the report.
pub(crate) fn remote_instance(application: &str, port: u16, revision: &str) -> Bytes {
    let endpoints = format!(r#"[{{"port":{port},"protocol":"dubbo"}}]"#);
    let metadata = [
        ("dubbo.endpoints", &*endpoints),
        ("dubbo.metadata.revision", revision),
        ("dubbo.metadata.storage-type", "remote"),
    ];
    instance(application, port, &metadata)
}

/// An instance that answers for its metadata at `metadata_port`.
pub(crate) fn local_instance(application: &str, port: u16, metadata_port: u16, revision: &str) -> Bytes {
    let endpoints = format!(r#"[{{"port":{port},"protocol":"dubbo"}}]"#);
    let params = format!(r#"{{"version":"1.0.0","protocol":"dubbo","port":"{metadata_port}"}}"#);
    let metadata = [
        ("dubbo.endpoints", &*endpoints),
        ("dubbo.metadata.revision", revision),
        ("dubbo.metadata.storage-type", "local"),
        ("dubbo.metadata-service.url-params", &*params),
    ];
    instance(application, port, &metadata)
}

/// Metadata of an application that offers the shop by the dubbo protocol, wherever its instances are.
pub(crate) fn metadata(application: &str, revision: &str) -> Bytes {
    let service = json!({
        "name": SHOP, "protocol": "dubbo", "path": SHOP,
        "params": {"interface": SHOP, "application": application, "side": "provider", "methods": "who,wait"},
    });
    let key = format!("{SHOP}:dubbo");
    Bytes::from(json!({"app": application, "revision": revision, "services": {key: service}}).to_string())
}

/// Writes a node, new or not.
pub(crate) async fn write(tree: &Arc<dyn Tree>, path: &str, data: impl Into<Bytes>) {
    let data = data.into();
    if !tree.create(path, data.clone()).await.unwrap() {
        assert!(tree.set(path, data, None).await.unwrap());
    }
}

/// An instance node that goes with the session of `tree`.
pub(crate) async fn write_instance(tree: &Arc<dyn Tree>, path: &str, data: Bytes) {
    tree.ensure(path, data, NodeKind::Ephemeral);
    tree.settled(path, LONG).await.unwrap();
}

/// The text of a node.
pub(crate) async fn text(tree: &Arc<dyn Tree>, path: &str) -> Option<String> {
    tree.read(path).await.unwrap().map(|node| String::from_utf8(node.bytes.to_vec()).unwrap())
}
