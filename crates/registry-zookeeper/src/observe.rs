//! The observations: what is known of watched paths, and the task per path that keeps it so.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use dubhe_core::observation::{Observation, Stamp};
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::sleep;

use crate::backoff::Backoff;
use crate::failure::Failure;
use crate::link::{Link, Up};
use crate::store::{Armed, Look, Observable};

/// Reads under way at the same time, per tree.
pub(crate) const READS: usize = 256;

/// Between tries to read a path while the session is alive.
const REREAD: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10));

/// All watched paths of one kind.
#[derive(Debug)]
pub(crate) struct Table<V> {
    paths: Mutex<HashMap<Arc<str>, Arc<Watched<V>>>>,
    reads: Arc<Semaphore>,
}

/// One watched path.
#[derive(Debug)]
struct Watched<V> {
    path: Arc<str>,
    sender: watch::Sender<Observation<Option<V>>>,
    create: AtomicBool,
    nudge: Notify,
}

impl<V: Observable> Table<V> {
    pub(crate) fn new(reads: Arc<Semaphore>) -> Self {
        Self { paths: Mutex::default(), reads }
    }

    /// Watches `path`. The task that this takes is returned if there is none yet; whoever has it must run it.
    pub(crate) fn watch(
        self: &Arc<Self>,
        path: Arc<str>,
        create: bool,
        link: watch::Receiver<Link>,
    ) -> (watch::Receiver<Observation<Option<V>>>, Option<impl Future<Output = ()> + Send + use<V>>) {
        let mut paths = self.paths.lock();
        if let Some(watched) = paths.get(&path) {
            if create && !watched.create.swap(true, Ordering::Relaxed) {
                watched.nudge.notify_one();
            }
            return (watched.sender.subscribe(), None);
        }
        let (sender, receiver) = watch::channel(Observation::unknown());
        let create = AtomicBool::new(create);
        let watched = Arc::new(Watched { path: Arc::clone(&path), sender, create, nudge: Notify::new() });
        paths.insert(path, Arc::clone(&watched));
        (receiver, Some(follow(watched, Arc::clone(self), link)))
    }

    /// Forgets a path that nobody looks at; false if somebody came meanwhile.
    fn forget(&self, watched: &Watched<V>) -> bool {
        let mut paths = self.paths.lock();
        let unused = watched.sender.receiver_count() == 0;
        if unused {
            paths.remove(&watched.path);
        }
        unused
    }
}

/// Keeps one observation current until nobody looks at it or the session is closed.
async fn follow<V: Observable>(
    watched: Arc<Watched<V>>,
    table: Arc<Table<V>>,
    mut link: watch::Receiver<Link>,
) {
    // Kept over a reconnect: replacing a watch is cheaper than removing it and setting another one.
    let mut armed: Option<Armed> = None;
    let mut created = false;
    loop {
        let now = link.borrow_and_update().clone();
        let closed = matches!(now, Link::Closed);
        if let Some(trouble) = now.trouble() {
            watched.trouble(&trouble);
        }
        if closed {
            table.paths.lock().remove(&watched.path);
            return;
        }
        let stay = async {
            match &now {
                Link::Up(up) => watched.stay(up, &table.reads, &mut armed, &mut created).await,
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            changed = link.changed() => if changed.is_err() {
                watched.trouble(&"the session is closed".into());
                table.paths.lock().remove(&watched.path);
                return;
            },
            () = watched.sender.closed() => if table.forget(&watched) { return },
            () = stay => {}
        }
    }
}

impl<V: Observable> Watched<V> {
    /// Reads, waits for the watch, reads again, for as long as one connection lasts. One read at a time: an older one
    /// can never overtake a newer one.
    async fn stay(&self, up: &Up, reads: &Semaphore, armed: &mut Option<Armed>, created: &mut bool) {
        let mut failures = 0;
        loop {
            let permit = reads.acquire().await;
            let result = self.look_patiently(up, created).await;
            drop(permit);
            match result {
                Ok(look) => {
                    failures = 0;
                    self.publish(up.at.epoch, look.value, look.sequence);
                    let fired = armed.insert(look.armed);
                    tokio::select! {
                        () = fired => *armed = None,
                        () = self.nudge.notified() => {}
                    }
                }
                Err(failure) => {
                    failures += 1;
                    let error = failure.into_tree_error(&up.settings.address, &self.path);
                    tracing::debug!(registry.addr = %up.settings.address, path = %self.path, %error, "reading failed");
                    self.trouble(&error.to_string().into());
                    sleep(REREAD.delay(failures)).await;
                }
            }
        }
    }

    /// One read. A slow one is reported, not repeated: the client ends it when the connection ends.
    async fn look_patiently(&self, up: &Up, created: &mut bool) -> Result<Look<V>, Failure> {
        let mut look = std::pin::pin!(self.look(up, created));
        loop {
            tokio::select! {
                look = &mut look => return look,
                () = sleep(up.settings.timeout) => {
                    let waited = up.settings.timeout.as_millis();
                    self.trouble(&format!("no answer within {waited} ms").into());
                }
            }
        }
    }

    async fn look(&self, up: &Up, created: &mut bool) -> Result<Look<V>, Failure> {
        if !*created && self.create.load(Ordering::Relaxed) {
            let mut look = V::look_at_present(up, &self.path).await;
            if matches!(look, Err(Failure::Missing)) {
                // Sent together, executed in order.
                let none = Bytes::new();
                let (made, again) =
                    futures::join!(up.create(&self.path, &none), V::look_at_present(up, &self.path));
                made?;
                look = again;
            }
            // Once: if it is deleted later on, somebody means it.
            *created = matches!(look, Ok(_) | Err(Failure::Missing));
            if !matches!(look, Err(Failure::Missing)) {
                return look;
            }
        }
        V::look(up, &self.path).await
    }

    fn publish(&self, epoch: u64, value: Option<V>, sequence: Option<i64>) {
        self.sender.send_if_modified(|observation| {
            let before = observation.stamp;
            // The store does not say when a node went missing. Reads of a path follow each other, so it is not older.
            let known = if before.epoch == epoch { before.sequence } else { 0 };
            let stamp = Stamp { epoch, sequence: sequence.unwrap_or(known) };
            if observation.known.is_some() && stamp < before {
                return false;
            }
            observation.stamp = stamp;
            let changed = observation.known.as_ref() != Some(&value) || observation.trouble.is_some();
            if changed {
                observation.known = Some(value);
                observation.trouble = None;
            }
            changed
        });
    }

    fn trouble(&self, trouble: &Arc<str>) {
        self.sender.send_if_modified(|observation| {
            let changed = observation.trouble.as_ref() != Some(trouble);
            if changed {
                observation.trouble = Some(Arc::clone(trouble));
            }
            changed
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dubhe_core::tree::Children;

    fn watched() -> Watched<Children> {
        let sender = watch::Sender::new(Observation::unknown());
        Watched { path: "/a".into(), sender, create: AtomicBool::new(false), nudge: Notify::new() }
    }

    fn children(names: &[&str]) -> Option<Children> {
        Some(names.iter().map(|name| Arc::from(*name)).collect())
    }

    /// C05, C06
    #[test]
    fn an_older_read_that_arrives_late_changes_nothing() {
        let watched = watched();
        watched.publish(1, children(&["a", "b"]), Some(5));
        watched.publish(1, children(&[]), Some(4));
        assert_eq!(watched.sender.borrow().known, Some(children(&["a", "b"])));
        watched.publish(2, children(&["c"]), Some(3));
        assert_eq!(watched.sender.borrow().known, Some(children(&["c"])), "a later session is newer");
    }

    #[test]
    fn trouble_keeps_what_is_known_and_the_next_read_ends_it() {
        let watched = watched();
        watched.publish(1, children(&["a"]), Some(1));
        watched.trouble(&"lost".into());
        let observation = watched.sender.borrow().clone();
        assert_eq!(
            (observation.known, observation.trouble.as_deref()),
            (Some(children(&["a"])), Some("lost"))
        );
        watched.publish(1, children(&["a"]), Some(1));
        assert_eq!(watched.sender.borrow().trouble, None);
    }

    #[test]
    fn a_missing_node_and_an_empty_list_are_two_things() {
        let watched = watched();
        watched.publish(1, children(&["a"]), Some(7));
        watched.publish(1, None, None);
        assert_eq!(watched.sender.borrow().known, Some(None));
        watched.publish(1, children(&[]), Some(8));
        assert_eq!(watched.sender.borrow().known, Some(children(&[])));
    }
}
