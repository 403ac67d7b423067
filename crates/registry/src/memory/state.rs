//! The nodes, and what every session is told when they change.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use dubhe_core::observation::{Observation, Stamp};
use dubhe_core::tree::{Children, NodeData, NodeKind, SessionState, TreeError};
use tokio::sync::watch;

use super::session::Session;

const CUT: &str = "the connection is cut";

pub(super) struct State {
    /// Counts changes: the store's order.
    zxid: i64,
    nodes: HashMap<Arc<str>, Node>,
    sessions: HashMap<u64, Session>,
    next_id: u64,
    /// Changed by the operation under way; told to the watchers when it is over.
    changed_children: HashSet<Arc<str>>,
    changed_data: HashSet<Arc<str>>,
}

#[derive(Default)]
struct Node {
    data: Bytes,
    version: i32,
    owner: Option<u64>,
    data_zxid: i64,
    children_zxid: i64,
    children: BTreeSet<Arc<str>>,
    /// `children` as it is handed out; made when it is asked for.
    listing: Option<Children>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            zxid: 0,
            nodes: HashMap::from([(Arc::from("/"), Node::default())]),
            sessions: HashMap::new(),
            next_id: 0,
            changed_children: HashSet::new(),
            changed_data: HashSet::new(),
        }
    }
}

/// Sessions.
impl State {
    pub(super) fn open(&mut self, address: Arc<str>, state: watch::Sender<SessionState>) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        state.send_replace(SessionState::Connected { epoch: 1 });
        self.sessions.insert(id, Session::new(id, address, state));
        id
    }

    pub(super) fn close(&mut self, id: u64) {
        let Some(session) = self.sessions.remove(&id) else { return };
        for path in session.owned {
            // An ephemeral node has no children.
            let _ = self.remove(&path);
        }
        session.state.send_replace(SessionState::Closed);
        self.tell();
    }

    pub(super) fn suspend(&mut self, id: u64) {
        let Some(session) = self.sessions.get_mut(&id).filter(|session| session.connected) else { return };
        session.connected = false;
        session.set_trouble(&Arc::from(CUT));
        session.state.send_replace(SessionState::Suspended);
    }

    pub(super) fn resume(&mut self, id: u64) {
        let Some(session) = self.sessions.get_mut(&id).filter(|session| !session.connected) else { return };
        session.connected = true;
        self.recover(id);
    }

    pub(super) fn expire(&mut self, id: u64) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.expired = true;
        for path in std::mem::take(&mut session.owned) {
            let _ = self.remove(&path);
        }
        self.tell();
        if let Some(session) = self.sessions.get_mut(&id).filter(|session| session.connected) {
            session.state.send_replace(SessionState::Connecting);
            self.recover(id);
        }
    }

    /// Brings the store to what the session wants, and the session to what the store holds.
    fn recover(&mut self, id: u64) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if session.expired {
            self.next_id += 1;
            session.owner = self.next_id;
            session.epoch += 1;
            session.expired = false;
        }
        session.sweep();
        let epoch = session.epoch;
        let wanted: Vec<Arc<str>> = session.intents.keys().chain(&session.leaving).cloned().collect();
        let watched: Vec<Arc<str>> = session.children.keys().cloned().collect();
        let read: Vec<Arc<str>> = session.data.keys().cloned().collect();
        for path in wanted {
            self.reconcile(id, &path);
        }
        self.tell();
        for path in watched {
            self.observe_children(id, &path);
        }
        for path in read {
            self.observe_data(id, &path);
        }
        self.tell();
        if let Some(session) = self.sessions.get(&id) {
            session.state.send_replace(SessionState::Connected { epoch });
        }
    }

    pub(super) fn session(&mut self, id: u64) -> Option<&mut Session> {
        self.sessions.get_mut(&id)
    }

    pub(super) fn each_session(&mut self, mut act: impl FnMut(&mut Self, u64)) {
        let mut ids: Vec<u64> = self.sessions.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            act(self, id);
        }
    }

    pub(super) fn session_count(&self) -> usize {
        self.sessions.len()
    }

    pub(super) fn watch_count(&mut self) -> usize {
        self.sessions
            .values_mut()
            .map(|session| {
                session.sweep();
                session.watch_count()
            })
            .sum()
    }

    /// Makes the node at `path` what the session's intent says: there, or gone.
    pub(super) fn reconcile(&mut self, id: u64, path: &Arc<str>) {
        let Some(session) = self.sessions.get_mut(&id).filter(|session| session.connected) else { return };
        let owner = session.owner;
        let Some(intent) = session.intents.get(path) else {
            // What another session has taken over is not ours to delete; a node with children stays for their sake.
            let others = self.nodes.get(path).and_then(|node| node.owner).is_some_and(|other| other != owner);
            if session.leaving.remove(path) && !others {
                let _ = self.remove(path);
            }
            return;
        };
        let (data, owner) = (intent.data.clone(), (intent.kind == NodeKind::Ephemeral).then_some(owner));
        let outcome = self.hold(path, data, owner);
        if let Some(intent) = self.sessions.get_mut(&id).and_then(|session| session.intents.get_mut(path)) {
            intent.refused = outcome.err();
        }
    }
}

/// Nodes.
impl State {
    pub(super) fn node_count(&self) -> usize {
        self.nodes.len() - 1
    }

    pub(super) fn paths(&self) -> Vec<(Arc<str>, bool)> {
        let mut paths: Vec<_> = self
            .nodes
            .iter()
            .filter(|(path, _)| &***path != "/")
            .map(|(path, node)| (Arc::clone(path), node.owner.is_some()))
            .collect();
        paths.sort();
        paths
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.nodes.contains_key(path)
    }

    pub(super) fn read(&self, path: &str) -> Option<NodeData> {
        self.nodes.get(path).map(|node| NodeData { bytes: node.data.clone(), version: node.version })
    }

    pub(super) fn list(&mut self, path: &str) -> Option<Children> {
        let node = self.nodes.get_mut(path)?;
        let children = &node.children;
        Some(Arc::clone(node.listing.get_or_insert_with(|| children.iter().cloned().collect())))
    }

    /// A node of this owner with this data; one that belongs to another owner is replaced.
    fn hold(&mut self, path: &Arc<str>, data: Bytes, owner: Option<u64>) -> Result<(), TreeError> {
        match self.nodes.get(path) {
            Some(node) if node.owner == owner => {
                if node.data != data {
                    self.write(path, data);
                }
                return Ok(());
            }
            Some(_) => self.remove(path)?,
            None => {}
        }
        self.make(path, data, owner)
    }

    /// Makes a node that does not exist, and its parents.
    pub(super) fn make(&mut self, path: &Arc<str>, data: Bytes, owner: Option<u64>) -> Result<(), TreeError> {
        let (parent, name) = split(path);
        if !self.exists(parent) {
            self.make(&Arc::from(parent), Bytes::new(), None)?;
        }
        let zxid = self.zxid + 1;
        let Some(above) = self.nodes.get_mut(parent) else { return Ok(()) };
        if above.owner.is_some() {
            return Err(TreeError::Invalid(format!(
                "{path} cannot be made: {parent} is ephemeral and can have no children"
            )));
        }
        above.children.insert(Arc::from(name));
        above.children_zxid = zxid;
        above.listing = None;
        self.changed_children.insert(Arc::from(parent));
        self.changed(path);
        let node = Node { data, owner, data_zxid: zxid, children_zxid: zxid, ..Node::default() };
        self.nodes.insert(Arc::clone(path), node);
        if let Some(session) = owner.and_then(|owner| self.session_of(owner)) {
            session.owned.insert(Arc::clone(path));
        }
        Ok(())
    }

    pub(super) fn write(&mut self, path: &Arc<str>, data: Bytes) {
        let zxid = self.zxid + 1;
        let Some(node) = self.nodes.get_mut(path) else { return };
        node.data = data;
        node.version = node.version.wrapping_add(1);
        node.data_zxid = zxid;
        self.zxid = zxid;
        self.changed_data.insert(Arc::clone(path));
    }

    /// Deletes a node if it is there and has no children.
    pub(super) fn remove(&mut self, path: &Arc<str>) -> Result<(), TreeError> {
        let Some(node) = self.nodes.get(path) else { return Ok(()) };
        if &**path == "/" {
            return Err(TreeError::Invalid("the root cannot be deleted".to_owned()));
        }
        if !node.children.is_empty() {
            return Err(TreeError::Invalid(format!(
                "{path} cannot be deleted: it has {} children",
                node.children.len()
            )));
        }
        let owner = node.owner;
        self.nodes.remove(path);
        if let Some(session) = owner.and_then(|owner| self.session_of(owner)) {
            session.owned.remove(path);
        }
        let (parent, name) = split(path);
        let zxid = self.zxid + 1;
        if let Some(above) = self.nodes.get_mut(parent) {
            above.children.remove(name);
            above.children_zxid = zxid;
            above.listing = None;
        }
        self.changed_children.insert(Arc::from(parent));
        self.changed(path);
        Ok(())
    }

    fn changed(&mut self, path: &Arc<str>) {
        self.zxid += 1;
        self.changed_data.insert(Arc::clone(path));
        self.changed_children.insert(Arc::clone(path));
    }

    fn session_of(&mut self, owner: u64) -> Option<&mut Session> {
        self.sessions.values_mut().find(|session| session.owner == owner)
    }
}

/// Watches.
impl State {
    /// Tells the watchers of everything that changed, once per path.
    pub(super) fn tell(&mut self) {
        let ids: Vec<u64> =
            self.sessions.iter().filter(|(_, session)| session.connected).map(|(id, _)| *id).collect();
        let (children, data) =
            (std::mem::take(&mut self.changed_children), std::mem::take(&mut self.changed_data));
        for id in ids {
            for path in &children {
                if self.sessions[&id].children.contains_key(path) {
                    self.observe_children(id, path);
                }
            }
            for path in &data {
                if self.sessions[&id].data.contains_key(path) {
                    self.observe_data(id, path);
                }
            }
        }
    }

    /// Reads the children of `path` for the session's watch of it.
    pub(super) fn observe_children(&mut self, id: u64, path: &Arc<str>) {
        let Some(session) = self.sessions.get_mut(&id).filter(|session| session.connected) else { return };
        let epoch = session.epoch;
        let Some(watch) = session.children.get_mut(path) else { return };
        if std::mem::take(&mut watch.create) && !self.exists(path) {
            // Refused only below an ephemeral node; then the node stays missing, and that is what is seen.
            let _ = self.make(path, Bytes::new(), None);
        }
        let sequence = self.nodes.get(path).map_or(self.zxid, |node| node.children_zxid);
        let known = Some(self.list(path));
        let seen = Observation { known, stamp: Stamp { epoch, sequence }, trouble: None };
        if let Some(watch) = self.sessions.get(&id).and_then(|session| session.children.get(path)) {
            watch.sender.send_replace(seen);
        }
    }

    /// Reads the data of `path` for the session's watch of it.
    pub(super) fn observe_data(&mut self, id: u64, path: &Arc<str>) {
        let Some(session) = self.sessions.get(&id).filter(|session| session.connected) else { return };
        let Some(sender) = session.data.get(path) else { return };
        let sequence = self.nodes.get(path).map_or(self.zxid, |node| node.data_zxid);
        let stamp = Stamp { epoch: session.epoch, sequence };
        sender.send_replace(Observation { known: Some(self.read(path)), stamp, trouble: None });
    }
}

/// A path's parent and its own name.
fn split(path: &str) -> (&str, &str) {
    match path.rsplit_once('/') {
        Some(("", name)) => ("/", name),
        Some(halves) => halves,
        None => ("/", path),
    }
}
