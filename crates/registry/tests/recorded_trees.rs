//! Trees that real Dubbo wrote: our node names, paths and kinds are the same, byte for byte.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use dubhe_common::{Url, encode, keys};
use dubhe_registry::registered_url::{
    Dialect, Form, registered_consumer_url, registered_provider_url, subscribe_url,
};
use dubhe_registry::{MemoryStore, Registry, TreeRegistry};
use serde::Deserialize;

#[derive(Deserialize)]
struct Tree {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    path: String,
    data: String,
    ephemeral: bool,
    name_decoded: Option<String>,
}

struct Recorded {
    dialect: Dialect,
    /// URLs found under `providers` and `consumers`.
    providers: Vec<(Node, Url)>,
    consumers: Vec<(Node, Url)>,
    /// All paths below services.
    services: BTreeMap<String, bool>,
}

fn recorded() -> Vec<Recorded> {
    [
        (Dialect::Dubbo31, include_str!("vectors/zk-tree-a.json")),
        (Dialect::Dubbo33, include_str!("vectors/zk-tree-d.json")),
        (Dialect::Dubbo27, include_str!("vectors/zk-tree-g.json")),
    ]
    .into_iter()
    .map(|(dialect, json)| read(dialect, json))
    .collect()
}

fn read(dialect: Dialect, json: &str) -> Recorded {
    let tree: Tree = serde_json::from_str(json).unwrap();
    let mut found =
        Recorded { dialect, providers: Vec::new(), consumers: Vec::new(), services: BTreeMap::new() };
    for node in tree.nodes {
        if !node.path.starts_with("/dubbo/org.apache.dubbo.demo.") {
            continue;
        }
        found.services.insert(node.path.clone(), node.ephemeral);
        let parts: Vec<&str> = node.path.split('/').collect();
        if let [_, _, _, category, name] = parts[..] {
            let url = Url::parse_encoded(name).unwrap();
            match category {
                "providers" => found.providers.push((node, url)),
                "consumers" => found.consumers.push((node, url)),
                other => panic!("unexpected url in {other}"),
            }
        }
    }
    found
}

/// The URL taken to pieces and put together again, with what the application also knew about itself.
fn rebuilt(url: &Url, local: &[(&str, &str)]) -> Url {
    let builder = Url::builder(url.protocol(), url.host(), url.port()).path(url.path().unwrap());
    builder.params(local.iter().copied()).params(url.params()).build()
}

#[test]
fn there_is_something_recorded_of_every_release() {
    let counts: Vec<_> = recorded().iter().map(|tree| (tree.providers.len(), tree.consumers.len())).collect();
    assert_eq!(counts, [(2, 1), (2, 1), (1, 1)]);
}

#[test]
fn node_names_decode_and_encode_to_themselves() {
    for tree in recorded() {
        for (node, url) in tree.providers.iter().chain(&tree.consumers) {
            let decoded = node.name_decoded.as_ref().unwrap();
            assert_eq!(url.to_full_string(), *decoded);
            assert!(node.path.ends_with(&encode(decoded)));
        }
    }
}

#[test]
fn providers_register_under_the_recorded_names() {
    for tree in recorded() {
        let local: &[(&str, &str)] = match tree.dialect {
            Dialect::Dubbo33 => &[
                ("bind.ip", "192.0.2.10"),
                ("bind.port", "20880"),
                ("qos.enable", "false"),
                ("pid", "5552"),
                ("anyhost", "true"),
                ("background", "false"),
                ("executor-management-mode", "isolation"),
                ("file.cache", "true"),
                ("register-mode", "all"),
                ("threads", "200"),
            ],
            _ => &[("bind.ip", "192.0.2.10"), ("bind.port", "20880"), ("qos.enable", "false"), (".x", "y")],
        };
        for (node, url) in &tree.providers {
            let exported = rebuilt(url, local);
            let registered = registered_provider_url(&exported, &Form::full(tree.dialect));
            let name = node.path.rsplit('/').next().unwrap();
            assert_eq!(registered.encoded(), name);
        }
    }
}

#[test]
fn consumers_register_under_the_recorded_names() {
    for tree in recorded() {
        for (node, url) in &tree.consumers {
            // What the consumer's configuration holds: another host, the user's `check`, no category.
            let configured = rebuilt(
                &url.without_params([keys::CATEGORY, keys::CHECK]).with_host("198.51.100.1"),
                &[("register.ip", url.host()), ("check", "true")],
            );
            let registered = registered_consumer_url(&configured, &Form::full(tree.dialect));
            assert_eq!(registered.encoded(), node.path.rsplit('/').next().unwrap());
            assert_eq!(subscribe_url(&configured).param(keys::CHECK), Some("true"));
        }
    }
}

// C103
#[tokio::test]
async fn paths_kinds_and_data_of_all_nodes_are_the_recorded_ones() {
    for tree in recorded() {
        let store = MemoryStore::new();
        let registry = TreeRegistry::new(&Url::parse("memory://local").unwrap(), store.connect());
        let mut subscriptions = Vec::new();
        for (_, url) in &tree.providers {
            registry.register(url).await.unwrap();
            // As the provider does, for its overrides; 2.7 to 3.3 alike.
            let overrides = dubhe_registry::registered_url::override_subscribe_url(url);
            subscriptions.push(registry.subscribe(&overrides).await.unwrap());
        }
        for (_, url) in &tree.consumers {
            registry.register(url).await.unwrap();
            subscriptions.push(registry.subscribe(&subscribe_url(url)).await.unwrap());
        }
        let written: BTreeMap<String, bool> = store
            .paths()
            .into_iter()
            .filter(|(path, _)| &**path != "/dubbo")
            .map(|(path, ephemeral)| (path.to_string(), ephemeral))
            .collect();
        assert_eq!(written, tree.services, "{:?}", tree.dialect);
        let look = store.connect();
        for (node, url) in tree.providers.iter().chain(&tree.consumers) {
            let data = look.read(&node.path).await.unwrap().unwrap().bytes;
            assert_eq!(data, url.host());
            assert!(
                node.data == url.host() || node.data == "127.0.0.1",
                "the machine's address: nobody reads it"
            );
        }
    }
}
