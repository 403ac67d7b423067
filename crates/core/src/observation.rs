//! The latest thing known of something remote, and whether it can be trusted to be current.

use std::sync::Arc;

/// What was last read of something that lives elsewhere, carried by a `watch` channel: readers see the latest state,
/// never a backlog.
///
/// Trouble never erases what is known: a lost connection sets `trouble` and keeps `known`.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation<T> {
    /// The last value read; `None` until the first read succeeds.
    pub known: Option<T>,
    /// When it was read, in the order of the store.
    pub stamp: Stamp,
    /// Why `known` may be out of date; `None` while the watch is alive.
    pub trouble: Option<Arc<str>>,
}

/// The order of reads: a value with a lower stamp never replaces one with a higher stamp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    /// Counts the sessions with the store; a read of a later session is newer.
    pub epoch: u64,
    /// The store's own order of changes (ZooKeeper: the zxid of the node's last change of this kind).
    pub sequence: i64,
}

impl<T> Observation<T> {
    /// Nothing read yet.
    pub const fn unknown() -> Self {
        Self { known: None, stamp: Stamp { epoch: 0, sequence: 0 }, trouble: None }
    }
}

impl<T> Default for Observation<T> {
    fn default() -> Self {
        Self::unknown()
    }
}
