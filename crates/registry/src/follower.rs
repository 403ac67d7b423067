//! The task behind a subscription: follows the nodes and publishes views.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use dubhe_common::{Url, keys};
use dubhe_core::observation::{Observation, Stamp};
use dubhe_core::registry::{Category, ServiceView};
use dubhe_core::tree::{Children, Tree};
use futures::future::{AbortHandle, Abortable, Aborted};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::cache_file::Recorder;
use crate::listing::{Listing, Reader, same_or_new};
use crate::pace::Pace;
use crate::paths::{self, Paths};

/// How long the first view waits for categories that cannot be read when others were. Origin: ours.
const PARTIAL_PATIENCE: Duration = Duration::from_secs(3);
/// Observations taken in before a due view is published although more are waiting. Origin: ours.
const MAX_TAKEN: usize = 256;

/// Follows the categories of one subscription: of one interface, or of all that come to be (`interface=*`).
///
/// Single writer of the view. Only the last state of each node counts; names are parsed when a view is made, not
/// before.
pub(crate) struct Follower {
    tree: Arc<dyn Tree>,
    paths: Paths,
    reader: Reader,
    categories: Vec<Arc<str>>,
    /// By encoded name.
    interfaces: BTreeMap<Arc<str>, Interface>,
    /// The list of interfaces, when all are asked for.
    all: Option<All>,
    watches: FuturesUnordered<Abortable<Next>>,
    pace: Pace,
    due: Option<Instant>,
    taken: usize,
    started: bool,
    sender: Arc<watch::Sender<Arc<ServiceView>>>,
    recorder: Option<Recorder>,
}

/// One node that is followed.
struct Part {
    listing: Listing,
    /// Read and not made into URLs yet.
    pending: Option<Option<Children>>,
    known: bool,
    trouble: Option<Arc<str>>,
    stamp: Stamp,
    stop: AbortHandle,
}

struct Interface {
    /// One per category, in the order of `Follower::categories`.
    parts: Vec<Part>,
}

#[derive(Default)]
struct All {
    known: bool,
    trouble: Option<Arc<str>>,
}

/// Which node an observation is of.
#[derive(Clone)]
enum Node {
    Root,
    Category(Arc<str>, usize),
}

type Watch = watch::Receiver<Observation<Option<Children>>>;
type Next = Pin<Box<dyn Future<Output = (Node, Watch, bool)> + Send>>;

impl Follower {
    pub(crate) fn new(
        tree: Arc<dyn Tree>,
        paths: Paths,
        url: &Url,
        reader: Reader,
        pace: Pace,
        sender: Arc<watch::Sender<Arc<ServiceView>>>,
        recorder: Option<Recorder>,
    ) -> Self {
        let mut follower = Self {
            tree,
            paths,
            reader,
            categories: paths::categories(url).into_iter().map(Arc::from).collect(),
            interfaces: BTreeMap::new(),
            all: None,
            watches: FuturesUnordered::new(),
            pace,
            due: None,
            taken: 0,
            started: false,
            sender,
            recorder,
        };
        match Paths::name(url) {
            Ok(name) if !paths::is_wildcard(url) => follower.follow(Arc::from(name), true),
            _ => follower.follow_all(),
        }
        follower
    }

    /// Takes in what the tree knows already, so that a subscription to it does not depend on the store's health.
    pub(crate) fn catch_up(&mut self) {
        while let Some(Some(next)) = self.watches.next().now_or_never() {
            if let Ok((node, watch, alive)) = next {
                self.take(node, watch, alive);
            }
        }
        if self.due.is_some_and(|due| due <= Instant::now()) {
            self.publish();
        }
    }

    /// Runs until the subscription is dropped, the registry is closed or the tree ends its watches.
    pub(crate) async fn run(mut self, mut closed: watch::Receiver<bool>) {
        let sender = Arc::clone(&self.sender);
        loop {
            let due = self.due;
            tokio::select! {
                biased;
                _ = closed.wait_for(|closed| *closed) => break,
                () = sender.closed() => break,
                next = self.watches.next() => match next {
                    Some(Ok((node, watch, alive))) => self.take(node, watch, alive),
                    Some(Err(Aborted)) => {}
                    None => break,
                },
                () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => self.publish(),
            }
        }
    }

    /// Watches an interface's categories. Only a named interface has its nodes made.
    fn follow(&mut self, name: Arc<str>, create: bool) {
        let parts = (0..self.categories.len())
            .map(|at| {
                let watch = self.tree.children(&self.paths.category(&name, &self.categories[at]), create);
                Part {
                    listing: Listing::new(),
                    pending: None,
                    known: false,
                    trouble: None,
                    stamp: Stamp::default(),
                    stop: self.await_first(Node::Category(Arc::clone(&name), at), watch),
                }
            })
            .collect();
        self.interfaces.insert(name, Interface { parts });
    }

    fn follow_all(&mut self) {
        self.all = Some(All::default());
        let watch = self.tree.children(self.paths.root(), false);
        let _ = self.await_first(Node::Root, watch);
    }

    fn await_first(&self, node: Node, mut watch: Watch) -> AbortHandle {
        watch.mark_changed();
        self.await_change(node, watch)
    }

    fn await_change(&self, node: Node, mut watch: Watch) -> AbortHandle {
        let next: Next = Box::pin(async move {
            let alive = watch.changed().await.is_ok();
            (node, watch, alive)
        });
        let (handle, registration) = AbortHandle::new_pair();
        self.watches.push(Abortable::new(next, registration));
        handle
    }

    /// Takes one observation in; what comes of it is published when it is due.
    fn take(&mut self, node: Node, mut watch: Watch, alive: bool) {
        let seen = watch.borrow_and_update().clone();
        let urgent = match &node {
            Node::Root => self.take_interfaces(&seen),
            Node::Category(name, at) => self.take_children(name, *at, &seen),
        };
        if alive {
            let stop = self.await_change(node.clone(), watch);
            if let Node::Category(name, at) = &node
                && let Some(interface) = self.interfaces.get_mut(name)
            {
                interface.parts[*at].stop = stop;
            }
        }
        self.schedule(urgent);
    }

    /// Returns whether the view must not wait.
    fn take_children(&mut self, name: &Arc<str>, at: usize, seen: &Observation<Option<Children>>) -> bool {
        let Some(interface) = self.interfaces.get_mut(name) else { return false };
        let part = &mut interface.parts[at];
        let trouble_changed = part.trouble != seen.trouble;
        part.trouble.clone_from(&seen.trouble);
        if let Some(children) = &seen.known
            && (seen.stamp >= part.stamp || !part.known)
        {
            part.stamp = seen.stamp;
            part.known = true;
            part.pending = Some(children.clone());
        }
        trouble_changed || &*self.categories[at] != keys::category::PROVIDERS
    }

    fn take_interfaces(&mut self, seen: &Observation<Option<Children>>) -> bool {
        if let Some(all) = &mut self.all {
            all.trouble.clone_from(&seen.trouble);
            all.known |= seen.known.is_some();
        }
        let Some(children) = &seen.known else { return true };
        let now: &[Arc<str>] = children.as_deref().unwrap_or_default();
        self.interfaces.retain(|name, interface| {
            let stays = now.binary_search(name).is_ok();
            if !stays {
                interface.parts.iter().for_each(|part| part.stop.abort());
            }
            stays
        });
        for name in now {
            if !self.interfaces.contains_key(name) {
                self.follow(Arc::clone(name), false);
            }
        }
        true
    }

    fn schedule(&mut self, urgent: bool) {
        let now = Instant::now();
        let mut due = if urgent { now } else { self.pace.due(now) };
        if !self.started && !self.is_complete() {
            if !self.parts().any(|part| part.known) {
                return;
            }
            due = now + PARTIAL_PATIENCE;
        } else if !self.started {
            // The first view is complete: no reason to wait any longer.
            self.due = None;
        }
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
        self.taken += 1;
        if self.taken > MAX_TAKEN && self.due.is_some_and(|due| due <= now) {
            self.publish();
        }
    }

    fn publish(&mut self) {
        self.started = true;
        self.due = None;
        self.taken = 0;
        let mut providers_changed = false;
        for interface in self.interfaces.values_mut() {
            for (part, category) in interface.parts.iter_mut().zip(&self.categories) {
                if let Some(children) = part.pending.take() {
                    part.listing.update(children.as_deref().unwrap_or_default(), category, &self.reader);
                    providers_changed |= &**category == keys::category::PROVIDERS;
                }
            }
        }
        if providers_changed {
            self.pace.passed(Instant::now());
        }
        let before = Arc::clone(&self.sender.borrow());
        let view = ServiceView {
            configurators: self.category(keys::category::CONFIGURATORS, &before.configurators),
            routers: self.category(keys::category::ROUTERS, &before.routers),
            providers: self.category(keys::category::PROVIDERS, &before.providers),
            consumers: self.category(keys::category::CONSUMERS, &before.consumers),
            trouble: self.trouble(),
            from_cache: false,
        };
        let news = is_news(&before, &view);
        let view = Arc::new(view);
        if let Some(recorder) = &self.recorder {
            recorder.record(&view);
        }
        self.sender.send_if_modified(|current| {
            *current = view;
            news
        });
    }

    fn category(&self, category: &str, before: &Category) -> Category {
        let Some(at) = self.categories.iter().position(|each| &**each == category) else {
            return Category::Unknown;
        };
        let mut known =
            self.interfaces.values().map(|interface| &interface.parts[at]).filter(|part| part.known);
        if self.all.is_none() {
            return known.next().map_or(Category::Unknown, |part| Category::Known {
                urls: Arc::clone(part.listing.urls()),
                total: part.listing.total(),
            });
        }
        let (mut urls, mut total) = (Vec::new(), 0);
        for part in known {
            urls.extend(part.listing.urls().iter().cloned());
            total += part.listing.total();
        }
        Category::Known {
            urls: match before.urls() {
                Some(before) => same_or_new(before, urls),
                None => Arc::from(urls),
            },
            total,
        }
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        self.interfaces.values().flat_map(|interface| &interface.parts)
    }

    fn is_complete(&self) -> bool {
        self.all.as_ref().is_none_or(|all| all.known) && self.parts().all(|part| part.known)
    }

    fn trouble(&self) -> Option<Arc<str>> {
        let all = self.all.as_ref().and_then(|all| all.trouble.clone());
        all.or_else(|| self.parts().find_map(|part| part.trouble.clone()))
    }
}

/// Whether a reader has to look again: another list, other trouble, or another reason for an empty list.
fn is_news(before: &ServiceView, now: &ServiceView) -> bool {
    before.trouble != now.trouble
        || before.from_cache != now.from_cache
        || differs(&before.configurators, &now.configurators)
        || differs(&before.routers, &now.routers)
        || differs(&before.providers, &now.providers)
        || differs(&before.consumers, &now.consumers)
}

fn differs(before: &Category, now: &Category) -> bool {
    match (before, now) {
        (Category::Unknown, Category::Unknown) => false,
        (Category::Known { urls: a, total: total_a }, Category::Known { urls: b, total: total_b }) => {
            !Arc::ptr_eq(a, b) || (b.is_empty() && (*total_a == 0) != (*total_b == 0))
        }
        _ => true,
    }
}
