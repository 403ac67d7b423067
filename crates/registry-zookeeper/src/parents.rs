//! Which persistent nodes are known to exist, so that they are not made over and over.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;

/// Paths remembered before the memory starts anew.
const LIMIT: usize = 100_000;

/// A memory of parents. A path counts as known as soon as its create was sent: requests of one session are executed in
/// order. What proves to be missing is forgotten, and made again by the next try.
#[derive(Debug, Default)]
pub(crate) struct Parents {
    known: Mutex<HashSet<Arc<str>>>,
}

impl Parents {
    /// The ancestors of `path` that are not known yet, topmost first; they are known from now on.
    pub(crate) fn claim<'a>(&self, path: &'a str) -> Vec<&'a str> {
        let mut known = self.known.lock();
        if known.len() > LIMIT {
            known.clear();
        }
        ancestors(path)
            .filter(|ancestor| !known.contains(*ancestor) && known.insert((*ancestor).into()))
            .collect()
    }

    /// Forgets `path` and its ancestors: one of them does not exist.
    pub(crate) fn forget(&self, path: &str) {
        let mut known = self.known.lock();
        known.remove(path);
        for ancestor in ancestors(path) {
            known.remove(ancestor);
        }
    }
}

/// `/a/b/c` -> `/a`, `/a/b`.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at]).filter(|ancestor| !ancestor.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_each_ancestor_once_until_it_is_forgotten() {
        let parents = Parents::default();
        assert_eq!(parents.claim("/a/b/c"), ["/a", "/a/b"]);
        assert_eq!(parents.claim("/a/b/d"), Vec::<&str>::new());
        assert_eq!(parents.claim("/a/x/d"), ["/a/x"]);
        parents.forget("/a/b/c");
        assert_eq!(parents.claim("/a/b/c"), ["/a", "/a/b"]);
        assert_eq!(parents.claim("/top"), Vec::<&str>::new());
    }
}
