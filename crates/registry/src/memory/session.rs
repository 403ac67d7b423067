//! One session: its intents, its watches, and whether its connection is up.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use dubhe_core::observation::Observation;
use dubhe_core::tree::{Children, NodeData, NodeKind, SessionState, TreeError};
use tokio::sync::watch;

/// Watches a session may hold before it looks for those nobody reads any more.
const FIRST_SWEEP: usize = 64;

pub(super) struct Session {
    /// Whom the store knows as the owner of ephemeral nodes; another one after an expiry.
    pub(super) owner: u64,
    pub(super) epoch: u64,
    pub(super) connected: bool,
    /// The store has ended the session while the connection was down.
    pub(super) expired: bool,
    pub(super) address: Arc<str>,
    pub(super) intents: HashMap<Arc<str>, Intent>,
    /// Withdrawn while the connection was down: to be deleted.
    pub(super) leaving: HashSet<Arc<str>>,
    pub(super) owned: HashSet<Arc<str>>,
    pub(super) children: HashMap<Arc<str>, ChildrenWatch>,
    pub(super) data: HashMap<Arc<str>, watch::Sender<Observation<Option<NodeData>>>>,
    pub(super) state: watch::Sender<SessionState>,
    sweep_at: usize,
}

pub(super) struct Intent {
    pub(super) data: Bytes,
    pub(super) kind: NodeKind,
    pub(super) count: usize,
    /// Why the store does not take it.
    pub(super) refused: Option<TreeError>,
}

pub(super) struct ChildrenWatch {
    pub(super) sender: watch::Sender<Observation<Option<Children>>>,
    /// Still to be made, as soon as the store can be reached.
    pub(super) create: bool,
}

impl Session {
    pub(super) fn new(owner: u64, address: Arc<str>, state: watch::Sender<SessionState>) -> Self {
        Self {
            owner,
            epoch: 1,
            connected: true,
            expired: false,
            address,
            intents: HashMap::new(),
            leaving: HashSet::new(),
            owned: HashSet::new(),
            children: HashMap::new(),
            data: HashMap::new(),
            state,
            sweep_at: FIRST_SWEEP,
        }
    }

    pub(super) fn unreachable(&self, reason: &str) -> TreeError {
        TreeError::Unreachable { address: self.address.to_string(), reason: reason.to_owned() }
    }

    /// Marks what is known as possibly out of date; it stays known.
    pub(super) fn set_trouble(&self, reason: &Arc<str>) {
        for watch in self.children.values() {
            watch.sender.send_modify(|seen| seen.trouble = Some(Arc::clone(reason)));
        }
        for sender in self.data.values() {
            sender.send_modify(|seen| seen.trouble = Some(Arc::clone(reason)));
        }
    }

    /// Ends the watches whose last receiver is gone.
    pub(super) fn sweep(&mut self) {
        self.children.retain(|_, watch| !watch.sender.is_closed());
        self.data.retain(|_, sender| !sender.is_closed());
        self.sweep_at = (self.watch_count() * 2).max(FIRST_SWEEP);
    }

    pub(super) fn sweep_if_grown(&mut self) {
        if self.watch_count() >= self.sweep_at {
            self.sweep();
        }
    }

    pub(super) fn watch_count(&self) -> usize {
        self.children.len() + self.data.len()
    }
}
