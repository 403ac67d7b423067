//! Writing a node whether it exists or not.

use bytes::Bytes;
use dubhe_core::tree::{Tree, TreeError};

/// How often a write is tried while others create and delete the node in between. Origin: ours.
const MAX_TURNS: usize = 10;

/// Creates the node or replaces its data.
pub(crate) async fn put(tree: &dyn Tree, path: &str, data: Bytes) -> Result<(), TreeError> {
    for _ in 0..MAX_TURNS {
        if tree.set(path, data.clone(), None).await? || tree.create(path, data.clone()).await? {
            return Ok(());
        }
    }
    Err(contended(tree, path))
}

/// Others are faster every time.
pub(crate) fn contended(tree: &dyn Tree, path: &str) -> TreeError {
    TreeError::Unreachable {
        address: tree.address().to_owned(),
        reason: format!("{path} was changed by others at every attempt to write it"),
    }
}
