//! A session on a [`MemoryStore`](super::MemoryStore), as everybody else sees it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use dubhe_core::observation::Observation;
use dubhe_core::tree::{Children, NodeData, NodeKind, SessionState, Tree, TreeError};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::session::{ChildrenWatch, Intent};
use super::state::State;

/// Longest path in bytes. Origin: a ZooKeeper packet (`jute.maxbuffer`, 1 MiB) has to hold it.
const MAX_PATH_BYTES: usize = 1024 * 1024;

/// One session with a [`MemoryStore`](super::MemoryStore). Clones are the same session; it ends with
/// [`Tree::close`], or when the last clone is dropped, and its ephemeral nodes with it.
///
/// Reads and writes answer at once; while the session is suspended they fail with [`TreeError::Unreachable`].
/// [`Tree::settled`] waits as long as it is told to.
///
/// Intents are asserted when they are declared, by [`Tree::settled`], when the connection comes back and in every
/// new session. A node deleted by another session in between is not made again before that.
///
/// # Fault hooks
/// ```
/// use dubhe_registry::MemoryStore;
/// use dubhe_core::tree::{NodeKind, SessionState, Tree};
///
/// let store = MemoryStore::new();
/// let tree = store.session("local");
/// tree.ensure("/dubbo/a", "data".into(), NodeKind::Ephemeral);
/// tree.suspend(); // the connection is lost: reads fail, watches show trouble, what is known stays known
/// tree.expire(); // the store ends the session and deletes its ephemeral nodes
/// assert_eq!(store.paths(), [("/dubbo".into(), false)]);
/// tree.resume(); // the connection is back: a new session, intents and watches are made good
/// assert_eq!(*tree.session().borrow(), SessionState::Connected { epoch: 2 });
/// assert_eq!(store.paths().len(), 2);
/// ```
#[derive(Clone)]
pub struct MemoryTree(Arc<Handle>);

struct Handle {
    shared: Arc<Mutex<State>>,
    id: u64,
    address: Arc<str>,
    state: watch::Sender<SessionState>,
}

impl MemoryTree {
    pub(super) fn open(shared: &Arc<Mutex<State>>, address: String) -> Self {
        let address: Arc<str> = Arc::from(address);
        let (state, _) = watch::channel(SessionState::Connecting);
        let id = shared.lock().open(Arc::clone(&address), state.clone());
        Self(Arc::new(Handle { shared: Arc::clone(shared), id, address, state }))
    }

    /// Cuts the connection. The session lives on in the store.
    pub fn suspend(&self) {
        self.0.shared.lock().suspend(self.0.id);
    }

    /// Restores the connection; if the session has expired, a new one is opened.
    pub fn resume(&self) {
        self.0.shared.lock().resume(self.0.id);
    }

    /// The store ends the session and deletes its ephemeral nodes. If the connection is up, a new session is opened
    /// at once, otherwise by [`MemoryTree::resume`].
    pub fn expire(&self) {
        self.0.shared.lock().expire(self.0.id);
    }

    /// How many paths this session watches.
    pub fn watches(&self) -> usize {
        self.0.shared.lock().session(self.0.id).map_or(0, |session| {
            session.sweep();
            session.watch_count()
        })
    }

    /// How many paths this session wants to exist, and how many it still has to delete.
    pub fn intents(&self) -> (usize, usize) {
        let mut state = self.0.shared.lock();
        state.session(self.0.id).map_or((0, 0), |session| (session.intents.len(), session.leaving.len()))
    }

    fn closed(&self) -> TreeError {
        TreeError::Closed(self.0.address.to_string())
    }

    /// Runs `act` on the store if it can be reached, and tells the watchers.
    fn with_store<T>(
        &self,
        path: &str,
        act: impl FnOnce(&mut State, &Arc<str>) -> Result<T, TreeError>,
    ) -> Result<T, TreeError> {
        check_path(path)?;
        let mut state = self.0.shared.lock();
        let session = state.session(self.0.id).ok_or_else(|| self.closed())?;
        if !session.connected {
            return Err(session.unreachable("the connection is cut"));
        }
        let outcome = act(&mut state, &Arc::from(path));
        state.tell();
        outcome
    }

    /// Whether the intent for `path` holds; `None` while the store cannot be reached.
    fn holds(&self, path: &Arc<str>) -> Result<Option<()>, TreeError> {
        let mut state = self.0.shared.lock();
        let session = state.session(self.0.id).ok_or_else(|| self.closed())?;
        if !session.connected {
            return Ok(None);
        }
        state.reconcile(self.0.id, path);
        state.tell();
        let intent = state.session(self.0.id).and_then(|session| session.intents.get(path));
        match intent.and_then(|intent| intent.refused.clone()) {
            Some(refused) => Err(refused),
            None => Ok(Some(())),
        }
    }
}

#[async_trait]
impl Tree for MemoryTree {
    fn address(&self) -> &str {
        &self.0.address
    }

    fn ensure(&self, path: &str, data: Bytes, kind: NodeKind) {
        let mut state = self.0.shared.lock();
        let Some(session) = state.session(self.0.id) else { return };
        let path: Arc<str> = Arc::from(path);
        session.leaving.remove(&path);
        let refused = check_path(&path).err();
        let valid = refused.is_none();
        session
            .intents
            .entry(Arc::clone(&path))
            .and_modify(|intent| {
                intent.data = data.clone();
                intent.kind = kind;
                intent.count += 1;
            })
            .or_insert(Intent { data, kind, count: 1, refused });
        if valid {
            state.reconcile(self.0.id, &path);
            state.tell();
        }
    }

    fn withdraw(&self, path: &str) {
        let mut state = self.0.shared.lock();
        let Some(session) = state.session(self.0.id) else { return };
        let Some((path, intent)) = session.intents.get_key_value(path) else { return };
        let (path, count) = (Arc::clone(path), intent.count);
        if count > 1 {
            if let Some(intent) = session.intents.get_mut(&path) {
                intent.count -= 1;
            }
            return;
        }
        session.intents.remove(&path);
        if check_path(&path).is_ok() {
            session.leaving.insert(Arc::clone(&path));
            state.reconcile(self.0.id, &path);
            state.tell();
        }
    }

    async fn settled(&self, path: &str, timeout: Duration) -> Result<(), TreeError> {
        check_path(path)?;
        let path: Arc<str> = Arc::from(path);
        let mut session = self.0.state.subscribe();
        let wait = async {
            loop {
                session.borrow_and_update();
                if let Some(()) = self.holds(&path)? {
                    return Ok(());
                }
                if session.changed().await.is_err() {
                    return Err(self.closed());
                }
            }
        };
        tokio::time::timeout(timeout, wait).await.unwrap_or_else(|_| {
            Err(TreeError::Unreachable {
                address: self.0.address.to_string(),
                reason: format!("the connection was cut for {} ms", timeout.as_millis()),
            })
        })
    }

    fn children(&self, path: &str, create: bool) -> watch::Receiver<Observation<Option<Children>>> {
        let mut state = self.0.shared.lock();
        let Some(session) = state.session(self.0.id) else { return ended(&self.closed()) };
        if let Err(invalid) = check_path(path) {
            return ended(&invalid);
        }
        session.sweep_if_grown();
        let path: Arc<str> = Arc::from(path);
        let trouble = (!session.connected).then(|| Arc::from("the connection is cut"));
        let watch = session.children.entry(Arc::clone(&path)).or_insert_with(|| ChildrenWatch {
            sender: watch::Sender::new(Observation { trouble, ..Observation::unknown() }),
            create,
        });
        watch.create |= create;
        let (receiver, is_new) = (watch.sender.subscribe(), watch.sender.borrow().known.is_none());
        if is_new || create {
            state.observe_children(self.0.id, &path);
            state.tell();
        }
        receiver
    }

    fn data(&self, path: &str) -> watch::Receiver<Observation<Option<NodeData>>> {
        let mut state = self.0.shared.lock();
        let Some(session) = state.session(self.0.id) else { return ended(&self.closed()) };
        if let Err(invalid) = check_path(path) {
            return ended(&invalid);
        }
        session.sweep_if_grown();
        let path: Arc<str> = Arc::from(path);
        let trouble = (!session.connected).then(|| Arc::from("the connection is cut"));
        let sender = session
            .data
            .entry(Arc::clone(&path))
            .or_insert_with(|| watch::Sender::new(Observation { trouble, ..Observation::unknown() }));
        let (receiver, is_new) = (sender.subscribe(), sender.borrow().known.is_none());
        if is_new {
            state.observe_data(self.0.id, &path);
        }
        receiver
    }

    async fn list(&self, path: &str) -> Result<Option<Children>, TreeError> {
        self.with_store(path, |state, path| Ok(state.list(path)))
    }

    async fn read(&self, path: &str) -> Result<Option<NodeData>, TreeError> {
        self.with_store(path, |state, path| Ok(state.read(path)))
    }

    async fn create(&self, path: &str, data: Bytes) -> Result<bool, TreeError> {
        self.with_store(path, |state, path| {
            if state.exists(path) {
                return Ok(false);
            }
            state.make(path, data, None).map(|()| true)
        })
    }

    async fn set(&self, path: &str, data: Bytes, expected: Option<i32>) -> Result<bool, TreeError> {
        self.with_store(path, |state, path| {
            let version = state.read(path).map(|node| node.version);
            let fits = version.is_some_and(|version| expected.is_none_or(|expected| expected == version));
            if fits {
                state.write(path, data);
            }
            Ok(fits)
        })
    }

    async fn delete(&self, path: &str) -> Result<bool, TreeError> {
        self.with_store(path, |state, path| {
            let there = state.exists(path);
            state.remove(path).map(|()| there)
        })
    }

    fn session(&self) -> watch::Receiver<SessionState> {
        self.0.state.subscribe()
    }

    async fn close(&self) {
        self.0.shared.lock().close(self.0.id);
    }
}

impl fmt::Debug for MemoryTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryTree")
            .field("address", &self.0.address)
            .field("session", &*self.0.state.borrow())
            .finish()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.lock().close(self.id);
    }
}

/// A watch that says why there is nothing to see.
fn ended<T>(why: &TreeError) -> watch::Receiver<Observation<T>> {
    let trouble = Some(Arc::from(why.to_string()));
    watch::Sender::new(Observation { trouble, ..Observation::unknown() }).subscribe()
}

fn check_path(path: &str) -> Result<(), TreeError> {
    let bad = |why: &str| {
        let shown: String = path.chars().take(160).collect();
        Err(TreeError::Invalid(format!("`{shown}` is not a path of a node: {why}")))
    };
    if path.len() > MAX_PATH_BYTES {
        return bad("it is longer than 1 MiB");
    }
    let Some(rest) = path.strip_prefix('/') else { return bad("it does not start with /") };
    if rest.contains('\0') {
        return bad("it holds a NUL");
    }
    if !rest.is_empty() && rest.split('/').any(|name| matches!(name, "" | "." | "..")) {
        return bad("a name in it is empty, . or ..");
    }
    Ok(())
}
