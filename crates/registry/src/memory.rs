//! The in-memory registry: a tree of nodes in this process.
//!
//! A real implementation, not a double: the embedded default, for applications of one process and for tests. Several
//! sessions on one [`MemoryStore`] see each other as applications on one ZooKeeper do.

mod session;
mod state;
mod tree;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use dubhe_common::Url;
use dubhe_core::tree::{Tree, TreeError, TreeFactory};
use parking_lot::Mutex;

use self::state::State;
pub use self::tree::MemoryTree;

/// Protocol of the in-memory registry's address: `memory://local`.
pub const MEMORY: &str = "memory";

/// What a registry's server is elsewhere: nodes, sessions and their ephemeral nodes. Clones are the same store.
///
/// Every operation is done when its call returns; nothing runs in the background, and no runtime is needed.
#[derive(Clone, Default)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
}

impl MemoryStore {
    /// A store with nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens a session.
    pub fn connect(&self) -> Arc<dyn Tree> {
        Arc::new(self.session("local"))
    }

    /// Opens a session that also has the fault hooks. `name` is its host in messages.
    pub fn session(&self, name: &str) -> MemoryTree {
        MemoryTree::open(&self.state, format!("{MEMORY}://{name}"))
    }

    /// Cuts every session's connection, as a store that is down does. New sessions connect all the same.
    pub fn suspend_all(&self) {
        self.state.lock().each_session(State::suspend);
    }

    /// Undoes [`MemoryStore::suspend_all`].
    pub fn resume_all(&self) {
        self.state.lock().each_session(State::resume);
    }

    /// Ends every session, as a store does that was out of reach for too long. Those connected open a new one at once.
    pub fn expire_all(&self) {
        self.state.lock().each_session(State::expire);
    }

    /// How many nodes there are, the root not counted.
    pub fn nodes(&self) -> usize {
        self.state.lock().node_count()
    }

    /// How many sessions are open.
    pub fn sessions(&self) -> usize {
        self.state.lock().session_count()
    }

    /// How many paths are watched, by all sessions together.
    pub fn watches(&self) -> usize {
        self.state.lock().watch_count()
    }

    /// All nodes, sorted, with whether they are ephemeral: for tests and for a look at the whole tree.
    pub fn paths(&self) -> Vec<(Arc<str>, bool)> {
        self.state.lock().paths()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("MemoryStore")
            .field("nodes", &state.node_count())
            .field("sessions", &state.session_count())
            .finish()
    }
}

/// Opens trees for `memory://` addresses.
#[derive(Debug, Default)]
pub struct MemoryTreeFactory {
    stores: Mutex<HashMap<String, MemoryStore>>,
    everywhere: Option<MemoryStore>,
}

impl MemoryTreeFactory {
    /// Every address opens a session on `store`.
    pub fn new(store: MemoryStore) -> Self {
        Self { everywhere: Some(store), ..Self::default() }
    }

    /// Every address has a store of its own, made when it is first used: `memory://a` and `memory://b` are two
    /// registries.
    pub fn per_address() -> Self {
        Self::default()
    }

    /// The store behind `address` (`host:port`, or the host alone).
    pub fn store(&self, address: &str) -> MemoryStore {
        match &self.everywhere {
            Some(store) => store.clone(),
            None => self.stores.lock().entry(address.to_owned()).or_default().clone(),
        }
    }
}

impl TreeFactory for MemoryTreeFactory {
    fn open(&self, url: &Url) -> Result<Arc<dyn Tree>, TreeError> {
        if url.protocol() != MEMORY {
            return Err(TreeError::Invalid(format!(
                "{} is not an address of the in-memory registry: write it as {MEMORY}://local",
                url.to_plain_string()
            )));
        }
        let address = url.address();
        Ok(Arc::new(self.store(&address).session(&address)))
    }
}
