//! The tasks that follow the instances of an application.

use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::sync::Arc;

use dubhe_core::discovery::{Instances, ServiceInstance};
use dubhe_core::observation::{Observation, Stamp};
use dubhe_core::tree::{Children, NodeData, Tree};
use futures::future::{AbortHandle, Abortable};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use parking_lot::Mutex;
use tokio::sync::watch;
use tracing::Instrument;

use crate::instance_node;

/// Changes taken in before a list is published although more are waiting. Origin: ours.
const MAX_TAKEN: usize = 256;

type Sender = watch::Sender<Observation<Instances>>;
type DataWatch = watch::Receiver<Observation<Option<NodeData>>>;

/// One task per application, for all who follow it.
#[derive(Default)]
pub(crate) struct Shared {
    open: Mutex<HashMap<Arc<str>, Arc<Sender>>>,
}

impl Shared {
    pub(crate) fn len(&self) -> usize {
        self.open.lock().len()
    }

    /// Joins the application's task, or starts it.
    pub(crate) fn follow(
        self: &Arc<Self>,
        tree: &Arc<dyn Tree>,
        application: &str,
        path: String,
    ) -> watch::Receiver<Observation<Instances>> {
        let mut open = self.open.lock();
        if let Some(sender) = open.get(application) {
            return sender.subscribe();
        }
        let application: Arc<str> = Arc::from(application);
        let sender = Arc::new(Sender::new(Observation::unknown()));
        let receiver = sender.subscribe();
        open.insert(Arc::clone(&application), Arc::clone(&sender));
        drop(open);
        let mut follower = Follower::new(Arc::clone(tree), &application, path, Arc::clone(&sender));
        follower.catch_up();
        let (shared, span) =
            (Arc::clone(self), tracing::debug_span!("instances", application = &*application));
        let task = async move {
            loop {
                follower.run().await;
                let mut open = shared.open.lock();
                // Somebody may have come between the last leaving and here.
                if follower.is_over || sender.receiver_count() == 0 {
                    if open.get(&application).is_some_and(|known| Arc::ptr_eq(known, &sender)) {
                        open.remove(&application);
                    }
                    return;
                }
            }
        };
        tokio::spawn(task.instrument(span));
        receiver
    }
}

/// Follows the list of an application's nodes and the data of each. Single writer of what is seen.
struct Follower {
    tree: Arc<dyn Tree>,
    application: Arc<str>,
    path: String,
    list: watch::Receiver<Observation<Option<Children>>>,
    list_is_known: bool,
    trouble: Option<Arc<str>>,
    nodes: BTreeMap<Arc<str>, Node>,
    watches: FuturesUnordered<Abortable<Next>>,
    stamp: Stamp,
    sender: Arc<Sender>,
    /// The tree has ended its watches.
    is_over: bool,
}

type Next = Pin<Box<dyn Future<Output = (Arc<str>, DataWatch, bool)> + Send>>;

/// One child of the application's node.
struct Node {
    /// `None`: not read yet, and nothing is wrong.
    seen: Option<Seen>,
    trouble: Option<Arc<str>>,
    stop: AbortHandle,
}

struct Seen {
    data: Option<NodeData>,
    /// `None`: it has no data, or it cannot be read as an instance.
    instance: Option<Arc<ServiceInstance>>,
}

impl Follower {
    fn new(tree: Arc<dyn Tree>, application: &Arc<str>, path: String, sender: Arc<Sender>) -> Self {
        let mut list = tree.children(&path, false);
        list.mark_changed();
        Self {
            tree,
            application: Arc::clone(application),
            path,
            list,
            list_is_known: false,
            trouble: None,
            nodes: BTreeMap::new(),
            watches: FuturesUnordered::new(),
            stamp: Stamp::default(),
            sender,
            is_over: false,
        }
    }

    /// Takes in what the tree knows already.
    fn catch_up(&mut self) {
        self.take_list();
        self.take_waiting();
        self.publish();
    }

    /// Runs until nobody follows any more, or the tree ends its watches.
    async fn run(&mut self) {
        let sender = Arc::clone(&self.sender);
        loop {
            tokio::select! {
                biased;
                () = sender.closed() => return,
                changed = self.list.changed() => match changed {
                    Ok(()) => self.take_list(),
                    Err(_) => {
                        self.is_over = true;
                        return;
                    }
                },
                Some(next) = self.watches.next() => {
                    if let Ok((name, watch, alive)) = next {
                        self.take_node(name, watch, alive);
                    }
                }
            }
            self.take_waiting();
            self.publish();
        }
    }

    fn take_waiting(&mut self) {
        for _ in 0..MAX_TAKEN {
            match self.watches.next().now_or_never() {
                Some(Some(Ok((name, watch, alive)))) => self.take_node(name, watch, alive),
                Some(Some(Err(_))) => {}
                Some(None) | None => break,
            }
        }
    }

    fn take_list(&mut self) {
        let seen = self.list.borrow_and_update().clone();
        self.trouble = seen.trouble;
        let Some(children) = seen.known else { return };
        self.list_is_known = true;
        self.stamp = self.stamp.max(seen.stamp);
        let children = children.unwrap_or_default();
        self.nodes.retain(|name, node| {
            let stays = children.binary_search(name).is_ok();
            if !stays {
                node.stop.abort();
            }
            stays
        });
        for name in &*children {
            if !self.nodes.contains_key(name) {
                let mut watch = self.tree.data(&format!("{}/{name}", self.path));
                watch.mark_changed();
                let stop = self.wait(Arc::clone(name), watch);
                self.nodes.insert(Arc::clone(name), Node { seen: None, trouble: None, stop });
            }
        }
    }

    fn wait(&self, name: Arc<str>, mut watch: DataWatch) -> AbortHandle {
        let next: Next = Box::pin(async move {
            let alive = watch.changed().await.is_ok();
            (name, watch, alive)
        });
        let (next, stop) = futures::future::abortable(next);
        self.watches.push(next);
        stop
    }

    fn take_node(&mut self, name: Arc<str>, mut watch: DataWatch, alive: bool) {
        if !alive || !self.nodes.contains_key(&name) {
            return;
        }
        let observed = watch.borrow_and_update().clone();
        let stop = self.wait(Arc::clone(&name), watch);
        let Some(node) = self.nodes.get_mut(&name) else { return };
        node.stop = stop;
        node.trouble = observed.trouble;
        let Some(data) = observed.known else { return };
        self.stamp = self.stamp.max(observed.stamp);
        let before = node.seen.as_ref().and_then(|seen| seen.data.as_ref());
        if node.seen.is_some() && before.map(|data| &data.bytes) == data.as_ref().map(|data| &data.bytes) {
            return;
        }
        // Listed, but gone: it is being made anew, as Java does with one of a former session, or the list without it is
        // on its way.
        if data.is_none() && node.seen.as_ref().is_some_and(|seen| seen.instance.is_some()) {
            return;
        }
        let instance = data.as_ref().and_then(|data| {
            instance_node::read(&self.application, &data.bytes)
                .inspect_err(|reason| {
                    let path = format!("{}/{name}", self.path);
                    tracing::warn!(registry.addr = self.tree.address(), %path, %reason, "skipping a malformed instance");
                })
                .ok()
        });
        node.seen = Some(Seen { data, instance: instance.map(Arc::new) });
    }

    /// Shows what is known, unless that would be a list that is short only because nodes are still being read.
    fn publish(&self) {
        let trouble =
            self.trouble.clone().or_else(|| self.nodes.values().find_map(|node| node.trouble.clone()));
        let is_unread = |node: &Node| node.seen.is_none();
        let is_reading = self.nodes.values().any(|node| is_unread(node) && node.trouble.is_none());
        let instances: Vec<Arc<ServiceInstance>> =
            self.nodes.values().filter_map(|node| node.seen.as_ref()?.instance.clone()).collect();
        let is_first = self.sender.borrow().known.is_none();
        let is_short = self.nodes.values().any(is_unread) && instances.is_empty();
        let holds = !self.list_is_known || is_short || (is_first && is_reading);
        self.sender.send_if_modified(|shown| {
            let mut is_news = shown.trouble != trouble;
            shown.trouble = trouble;
            if !holds {
                shown.stamp = shown.stamp.max(self.stamp);
                let same = shown.known.as_ref().is_some_and(|known| {
                    known.len() == instances.len()
                        && known.iter().zip(&instances).all(|(one, other)| Arc::ptr_eq(one, other))
                });
                if !same {
                    shown.known = Some(instances.into());
                    is_news = true;
                }
            }
            is_news
        });
    }
}

#[cfg(test)]
mod tests;
