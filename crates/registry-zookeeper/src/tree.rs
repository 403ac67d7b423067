//! The tree that users hold.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use dubhe_core::BoxFuture;
use dubhe_core::observation::Observation;
use dubhe_core::tree::{Children, NodeData, NodeKind, SessionState, Tree, TreeError};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::backoff::Backoff;
use crate::failure::Failure;
use crate::ledger::{Ledger, Standing};
use crate::link::{Link, Up, up};
use crate::observe::{READS, Table};
use crate::reconcile::reconcile;
use crate::session::{FAREWELL, Owner};
use crate::settings::Settings;

/// Between tries of one operation.
const AGAIN: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(2));

/// A [`Tree`] in ZooKeeper.
///
/// Operations that ask the store directly, and wait for it, end with an error after `timeout` of the address (default
/// 30 s). An operation whose outcome got lost with the connection is repeated within that time.
///
/// Dropping the tree ends its session, and with it the ephemeral nodes, in the background; [`Tree::close`] waits for it.
#[derive(Debug)]
pub struct ZookeeperTree {
    core: Arc<Core>,
}

/// What the handle and the task that closes it share.
#[derive(Debug)]
struct Core {
    settings: Arc<Settings>,
    runtime: Handle,
    ledger: Arc<Mutex<Ledger>>,
    children: Arc<Table<Children>>,
    data: Arc<Table<NodeData>>,
    /// The session that reads and watches, and owns nodes as long as they fit.
    link: watch::Receiver<Link>,
    state: watch::Sender<SessionState>,
    ending: watch::Sender<bool>,
    owners: Mutex<Vec<JoinHandle<()>>>,
}

impl ZookeeperTree {
    /// Opens a tree; the connection is made in the background, however long that takes.
    ///
    /// # Errors
    /// When it is called outside of a tokio runtime.
    pub fn open(settings: Settings) -> Result<Self, TreeError> {
        let outside =
            |_| TreeError::Invalid("a ZooKeeper tree must be opened within a tokio runtime".to_owned());
        let runtime = Handle::try_current().map_err(outside)?;
        let settings = Arc::new(settings);
        let state = watch::Sender::new(SessionState::Connecting);
        let ending = watch::Sender::new(false);
        let (owner, link) = Owner::new(Arc::clone(&settings), state.clone(), ending.subscribe());
        let ledger = Arc::new(Mutex::new(Ledger::new(settings.session_budget)));
        let reads = Arc::new(Semaphore::new(READS));
        let core = Core {
            children: Arc::new(Table::new(Arc::clone(&reads))),
            data: Arc::new(Table::new(reads)),
            owners: Mutex::new(vec![runtime.spawn(owner.run())]),
            settings,
            runtime,
            ledger,
            link,
            state,
            ending,
        };
        core.runtime.spawn(reconcile(Arc::clone(&core.ledger), 0, core.link.clone()));
        Ok(Self { core: Arc::new(core) })
    }
}

#[async_trait]
impl Tree for ZookeeperTree {
    fn address(&self) -> &str {
        &self.core.settings.address
    }

    fn ensure(&self, path: &str, data: Bytes, kind: NodeKind) {
        let path = self.core.settings.full_path(path);
        let added = self.core.ledger.lock().ensure(path, data, kind);
        if let Some(lane) = added {
            self.core.open_session(lane);
        }
    }

    fn withdraw(&self, path: &str) {
        self.core.ledger.lock().withdraw(&self.core.settings.full_path(path));
    }

    async fn settled(&self, path: &str, patience: Duration) -> Result<(), TreeError> {
        let core = &self.core;
        let path = core.settings.full_path(path);
        let deadline = Instant::now() + patience;
        loop {
            if core.ledger.lock().is_closed() {
                return Err(core.closed());
            }
            let standing = core.ledger.lock().standing(&path);
            let (changed, trouble) = match standing {
                Standing::Holds => return Ok(()),
                Standing::Refused(error) => return Err(error),
                Standing::Open(changed, trouble) => (changed, trouble),
            };
            let mut notified = std::pin::pin!(changed.notified());
            // From here on no notification is missed; what came before it is seen by asking again.
            notified.as_mut().enable();
            if !matches!(core.ledger.lock().standing(&path), Standing::Open(..)) {
                continue;
            }
            if timeout_at(deadline, notified).await.is_err() {
                return Err(trouble.unwrap_or_else(|| core.unreachable(patience)));
            }
        }
    }

    fn children(&self, path: &str, create: bool) -> watch::Receiver<Observation<Option<Children>>> {
        let core = &self.core;
        let (receiver, task) = core.children.watch(core.settings.full_path(path), create, core.link.clone());
        task.map(|task| core.runtime.spawn(task));
        receiver
    }

    fn data(&self, path: &str) -> watch::Receiver<Observation<Option<NodeData>>> {
        let core = &self.core;
        let (receiver, task) = core.data.watch(core.settings.full_path(path), false, core.link.clone());
        task.map(|task| core.runtime.spawn(task));
        receiver
    }

    async fn list(&self, path: &str) -> Result<Option<Children>, TreeError> {
        let step = |up: Arc<Up>, path: Arc<str>, _| -> BoxFuture<'static, _> {
            Box::pin(async move { up.list(&path).await })
        };
        self.core.ask(path, step).await
    }

    async fn read(&self, path: &str) -> Result<Option<NodeData>, TreeError> {
        let step = |up: Arc<Up>, path: Arc<str>, _| -> BoxFuture<'static, _> {
            Box::pin(async move { up.read(&path).await })
        };
        self.core.ask(path, step).await
    }

    async fn create(&self, path: &str, data: Bytes) -> Result<bool, TreeError> {
        let step = move |up: Arc<Up>, path: Arc<str>, again: bool| -> BoxFuture<'static, _> {
            let data = data.clone();
            Box::pin(async move {
                let created = up.create(&path, &data).await?;
                // The node may be the work of a former try whose answer was lost.
                Ok(created || again && is_first_version(up.read(&path).await?, &data))
            })
        };
        self.core.ask(path, step).await
    }

    async fn set(&self, path: &str, data: Bytes, expected: Option<i32>) -> Result<bool, TreeError> {
        let step = move |up: Arc<Up>, path: Arc<str>, again: bool| -> BoxFuture<'static, _> {
            let data = data.clone();
            Box::pin(async move {
                let done = up.set(&path, &data, expected).await?;
                let next = expected.map(|version| version.wrapping_add(1));
                Ok(done
                    || again
                        && up
                            .read(&path)
                            .await?
                            .is_some_and(|node| Some(node.version) == next && node.bytes == data))
            })
        };
        self.core.ask(path, step).await
    }

    async fn delete(&self, path: &str) -> Result<bool, TreeError> {
        let step = |up: Arc<Up>, path: Arc<str>, again: bool| -> BoxFuture<'static, _> {
            // If a former try lost its answer, it may have been the one that deleted the node.
            Box::pin(async move { Ok(up.remove(&path).await? || again) })
        };
        self.core.ask(path, step).await
    }

    fn session(&self) -> watch::Receiver<SessionState> {
        self.core.state.subscribe()
    }

    async fn close(&self) {
        let first = {
            let mut ledger = self.core.ledger.lock();
            let first = !ledger.is_closed();
            ledger.close();
            first
        };
        let mut state = self.core.state.subscribe();
        if first {
            // A task of its own: it goes on when the caller does not wait for it.
            self.core.runtime.spawn(Arc::clone(&self.core).end());
        }
        let _ = state.wait_for(|state| *state == SessionState::Closed).await;
    }
}

impl Drop for ZookeeperTree {
    fn drop(&mut self) {
        self.core.ending.send_replace(true);
        self.core.state.send_replace(SessionState::Closed);
    }
}

impl Core {
    /// A further session, for ephemeral nodes only.
    fn open_session(&self, lane: usize) {
        tracing::info!(registry.addr = %self.settings.address, sessions = lane + 1, "a further session is opened");
        let state = watch::Sender::new(SessionState::Connecting);
        let (owner, link) = Owner::new(Arc::clone(&self.settings), state, self.ending.subscribe());
        self.owners.lock().push(self.runtime.spawn(owner.run()));
        self.runtime.spawn(reconcile(Arc::clone(&self.ledger), lane, link));
    }

    /// Takes own nodes away, then ends all sessions.
    async fn end(self: Arc<Self>) {
        let drained = async {
            loop {
                let Err(changed) = self.ledger.lock().drained() else { break };
                let mut notified = std::pin::pin!(changed.notified());
                notified.as_mut().enable();
                if self.ledger.lock().drained().is_err() {
                    notified.await;
                }
            }
        };
        let _ = timeout(FAREWELL, drained).await;
        self.ending.send_replace(true);
        let owners = std::mem::take(&mut *self.owners.lock());
        for owner in owners {
            let _ = owner.await;
        }
        self.state.send_replace(SessionState::Closed);
    }

    /// Repeats a step until its outcome is known or time is over. The step learns whether a former try may have been
    /// executed.
    async fn ask<T>(
        &self,
        path: &str,
        mut step: impl FnMut(Arc<Up>, Arc<str>, bool) -> BoxFuture<'static, Result<T, Failure>> + Send,
    ) -> Result<T, TreeError> {
        let patience = self.settings.timeout;
        let deadline = Instant::now() + patience;
        let path = self.settings.full_path(path);
        let mut link = self.link.clone();
        let mut failures = 0;
        let mut trouble = None;
        let outcome = async {
            loop {
                let Some(up) = up(&mut link).await else { return Err(self.closed()) };
                let address = &self.settings.address;
                match step(up, Arc::clone(&path), failures > 0).await {
                    Ok(value) => return Ok(value),
                    Err(failure) if failure.is_definite() => {
                        return Err(failure.into_tree_error(address, &path));
                    }
                    Err(failure) => trouble = Some(failure.into_tree_error(address, &path)),
                }
                failures += 1;
                sleep(AGAIN.delay(failures)).await;
            }
        };
        match timeout_at(deadline, outcome).await {
            Ok(outcome) => outcome,
            Err(_) => Err(trouble.unwrap_or_else(|| self.unreachable(patience))),
        }
    }

    fn closed(&self) -> TreeError {
        TreeError::Closed(self.settings.address.clone())
    }

    fn unreachable(&self, patience: Duration) -> TreeError {
        let reason = self.link.borrow().trouble();
        let reason = reason.map_or_else(|| "no answer".to_owned(), |reason| reason.to_string());
        let reason = format!("{reason}; gave up after {} ms", patience.as_millis());
        TreeError::Unreachable { address: self.settings.address.clone(), reason }
    }
}

fn is_first_version(node: Option<NodeData>, data: &Bytes) -> bool {
    node.is_some_and(|node| node.version == 0 && node.bytes == *data)
}
