//! Trees that real Dubbo left.

use serde::Deserialize;

use crate::applications::{LOCAL, Mode, REMOTE};
use crate::stores::Node;

/// A tree with provider and consumer up.
#[derive(Debug)]
pub(crate) struct Recording {
    /// `a`, `b`, `c`: 3.1.11; `d`, `e`, `f`: 3.3.6.
    pub(crate) name: char,
    /// How the provider was configured.
    pub(crate) mode: Mode,
    pub(crate) nodes: Vec<Node>,
    /// Paths that are left when both have stopped; empty where that was not recorded.
    pub(crate) left: Vec<String>,
}

#[derive(Deserialize)]
struct File {
    nodes: Vec<Node>,
    #[serde(default, rename = "paths_left_after_consumer_and_provider_stopped")]
    left: Vec<(String, String)>,
}

impl Recording {
    fn read(name: char, mode: Mode, json: &str) -> Self {
        let File { nodes, left } = serde_json::from_str(json).unwrap();
        Self { name, mode, nodes, left: left.into_iter().map(|(path, _)| path).collect() }
    }

    /// The only node below `parent`.
    pub(crate) fn below(&self, parent: &str) -> &Node {
        let mut below = self.nodes.iter().filter(|node| {
            node.path
                .strip_prefix(parent)
                .is_some_and(|rest| rest.starts_with('/') && rest.rfind('/') == Some(0))
        });
        let only = below.next().unwrap_or_else(|| panic!("nothing below {parent}"));
        assert!(below.next().is_none(), "several below {parent}");
        only
    }

    /// The revision that the instance shows.
    pub(crate) fn revision(&self) -> String {
        let instance: serde_json::Value =
            serde_json::from_str(&self.below("/services/demo-provider").data).unwrap();
        instance["payload"]["metadata"]["dubbo.metadata.revision"].as_str().unwrap().to_owned()
    }
}

/// Register mode `all`, local metadata; 3.1.11.
pub(crate) fn a() -> Recording {
    let mode = Mode { register_mode: Some("all"), metadata_type: None };
    Recording::read('a', mode, include_str!("../../../discovery/tests/vectors/zk-tree-a.json"))
}

/// By application only, local metadata; 3.1.11.
pub(crate) fn b() -> Recording {
    Recording::read('b', LOCAL, include_str!("../../../discovery/tests/vectors/zk-tree-b.json"))
}

/// By application only, remote metadata; 3.1.11.
pub(crate) fn c() -> Recording {
    Recording::read('c', REMOTE, include_str!("../../../discovery/tests/vectors/zk-tree-c.json"))
}

/// Defaults: both models, local metadata; 3.3.6.
pub(crate) fn d() -> Recording {
    Recording::read('d', Mode::default(), include_str!("../../../discovery/tests/vectors/zk-tree-d.json"))
}

/// By application only, local metadata; 3.3.6.
pub(crate) fn e() -> Recording {
    Recording::read('e', LOCAL, include_str!("../../../discovery/tests/vectors/zk-tree-e.json"))
}

/// By application only, remote metadata; 3.3.6.
pub(crate) fn f() -> Recording {
    Recording::read('f', REMOTE, include_str!("../../../discovery/tests/vectors/zk-tree-f.json"))
}
