//! What real Dubbo wrote and answered, for the tests here.

use dubhe_core::metadata::MetadataInfo;
use serde::Deserialize;

#[derive(Deserialize)]
struct Tree {
    nodes: Vec<Node>,
}

/// A node of a recorded tree.
#[derive(Clone, Deserialize)]
pub(crate) struct Node {
    pub(crate) path: String,
    pub(crate) data: String,
}

#[derive(Deserialize)]
struct Captures {
    cases: Vec<Capture>,
}

/// An answer of a recorded metadata service.
#[derive(Deserialize)]
pub(crate) struct Capture {
    pub(crate) revision: String,
    pub(crate) metadata_info: MetadataInfo,
    zk_instance_node: Node,
}

/// The nodes of all trees: 3.1 (a, b, c) and 3.3 (d, e, f).
pub(crate) fn nodes() -> Vec<Node> {
    [
        include_str!("../tests/vectors/zk-tree-a.json"),
        include_str!("../tests/vectors/zk-tree-b.json"),
        include_str!("../tests/vectors/zk-tree-c.json"),
        include_str!("../tests/vectors/zk-tree-d.json"),
        include_str!("../tests/vectors/zk-tree-e.json"),
        include_str!("../tests/vectors/zk-tree-f.json"),
    ]
    .into_iter()
    .flat_map(|json| serde_json::from_str::<Tree>(json).unwrap().nodes)
    .collect()
}

/// The nodes of instances.
pub(crate) fn instances() -> Vec<Node> {
    let captured = captures().into_iter().map(|capture| capture.zk_instance_node);
    let in_trees = nodes().into_iter().filter(|node| node.path.starts_with("/services/demo-provider/"));
    in_trees.chain(captured).collect()
}

pub(crate) fn captures() -> Vec<Capture> {
    let captures: Captures = serde_json::from_str(include_str!("../tests/vectors/metadata.json")).unwrap();
    captures.cases
}
