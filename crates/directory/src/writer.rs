use std::sync::Arc;
use std::time::Duration;

use dubhe_common::{Url, keys};
use dubhe_core::invoker::SharedInvoker;
use dubhe_core::registry::{Category, ServiceView, Subscription};
use dubhe_core::router::RouterChain;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::connectivity::Aside;
use crate::providers::{Providers, Refreshed};
use crate::registry_directory::Shared;
use crate::snapshot::Snapshot;

/// Whether an empty list from the registry is ignored when neither the consumer's nor the registry's URL says. Text form:
/// `enable-empty-protection`. Origin: false in Dubbo 3.3 (true in 3.1).
const DEFAULT_EMPTY_PROTECTION: bool = false;

/// How long an empty list does not count after trouble with the registry is over. When ZooKeeper was away for longer than sessions
/// last, it has deleted the providers' nodes, and the providers are about to register again. Ours; the reference believes the empty list.
pub(crate) const RETURN_GRACE: Duration = Duration::from_secs(10);

/// The one writer of a directory's snapshots.
pub(crate) struct Writer {
    shared: Arc<Shared>,
    subscription: Subscription,
    chain: Arc<dyn RouterChain>,
    rules: watch::Receiver<u64>,
    providers: Providers,
    aside: Aside,
    all: Arc<[SharedInvoker]>,
    applied: Applied,
    protection: bool,
}

/// What the published snapshot was made from.
#[derive(Default)]
struct Applied {
    /// The registry's last word on providers, with how many entries it holds.
    word: Option<(Arc<[Url]>, usize)>,
    /// The last list that was taken over; with empty protection, or when the last one was of no use, older than the last word.
    providers: Arc<[Url]>,
    configurators: Option<Arc<[Url]>>,
    routers: Option<Arc<[Url]>>,
    forbidden: Option<Arc<str>>,
    /// Why the list is older than the registry's word, apart from trouble with the registry.
    kept: Option<Arc<str>>,
    /// Trouble with the registry.
    trouble: Option<Arc<str>>,
    /// Whether that is trouble with a live registry, and not only a list that is not confirmed yet.
    in_trouble: bool,
    /// When the last such trouble was over.
    recovered: Option<Instant>,
    /// Whether an empty list that came in trouble or soon after it is not believed yet.
    doubts_empty: bool,
}

impl Applied {
    fn last_word_is_empty(&self) -> bool {
        self.word.as_ref().is_some_and(|(urls, _)| urls.is_empty())
    }
}

impl Writer {
    pub(crate) fn new(
        shared: Arc<Shared>,
        registry: &Url,
        subscription: Subscription,
        chain: Arc<dyn RouterChain>,
        providers: Providers,
    ) -> Self {
        let of_registry = registry.bool_param(keys::ENABLE_EMPTY_PROTECTION, DEFAULT_EMPTY_PROTECTION);
        Self {
            protection: shared.consumer.bool_param(keys::ENABLE_EMPTY_PROTECTION, of_registry),
            shared,
            subscription,
            // Before the first binding, so that no change in between is missed.
            rules: chain.changes(),
            chain,
            providers,
            aside: Aside::default(),
            all: Arc::from([]),
            applied: Applied::default(),
        }
    }

    pub(crate) async fn run(mut self) {
        let (mut registry_live, mut rules_live) = (true, true);
        loop {
            let recheck = self.aside.next_due();
            let believe = self.believe_empty_at();
            tokio::select! {
                alive = self.subscription.changed(), if registry_live => {
                    registry_live = alive;
                    if alive {
                        self.apply_view();
                    } else {
                        tracing::debug!("registry closed, the list stays as it is");
                    }
                }
                change = self.rules.changed(), if rules_live => {
                    rules_live = change.is_ok();
                    if rules_live {
                        self.publish();
                    }
                }
                () = self.shared.reports.reported() => {
                    if self.aside.accept(&self.shared.reports, &self.all) {
                        self.publish();
                    }
                }
                () = sleep_until(believe), if believe.is_some() => self.believe_empty(),
                () = sleep_until(recheck), if recheck.is_some() => {
                    if self.aside.recheck() {
                        self.publish();
                    }
                }
            }
        }
    }

    /// Applies the latest view: rules first, then providers, then one publication.
    pub(crate) fn apply_view(&mut self) {
        let view = self.subscription.view();
        if self.applied.in_trouble && view.trouble.is_none() {
            self.applied.recovered = Some(Instant::now());
        }
        self.applied.in_trouble = view.trouble.is_some();
        self.applied.trouble = trouble(&view);
        let overrides_changed = self.apply_overrides(&view.configurators);
        let routers_changed = self.apply_routers(&view.routers);
        let providers_changed = self.apply_providers(&view.providers, overrides_changed);
        if routers_changed || providers_changed {
            self.publish();
        } else {
            self.shared.published.set_stale(self.stale());
        }
    }

    fn apply_overrides(&mut self, configurators: &Category) -> bool {
        match news(configurators, self.applied.configurators.as_ref()) {
            Some(urls) => {
                self.applied.configurators = Some(Arc::clone(urls));
                self.providers.set_overrides(urls)
            }
            None => false,
        }
    }

    fn apply_routers(&mut self, routers: &Category) -> bool {
        match news(routers, self.applied.routers.as_ref()) {
            Some(urls) => {
                self.applied.routers = Some(Arc::clone(urls));
                self.chain.set_registry_rules(urls)
            }
            None => false,
        }
    }

    fn apply_providers(&mut self, providers: &Category, overrides_changed: bool) -> bool {
        if let Category::Known { urls, total } = providers
            && !self.applied.word.as_ref().is_some_and(|word| is_same_word(word, urls, *total))
        {
            self.applied.word = Some((Arc::clone(urls), *total));
            self.applied.doubts_empty = false;
            if urls.is_empty() {
                return self.apply_empty(*total) | (overrides_changed && self.apply_list());
            }
            self.applied.providers = Arc::clone(urls);
            self.applied.kept = None;
            return self.apply_list();
        }
        overrides_changed && self.apply_list()
    }

    /// Makes the list of what the registry listed, by the rules that are in force.
    fn apply_list(&mut self) -> bool {
        if self.applied.providers.is_empty() {
            return false;
        }
        let urls = Arc::clone(&self.applied.providers);
        let (outcome, invokers) = self.providers.refresh(&urls);
        match outcome {
            Refreshed::Some => {
                self.applied.forbidden = None;
                self.all = invokers;
            }
            Refreshed::AllDisabled => self.forbid(format!("all {} providers are disabled", urls.len())),
            Refreshed::NoneUsable => {
                tracing::error!(providers = urls.len(), "urls to invokers error, no address can be used");
                self.applied.kept = Some("none of the listed addresses can be used: see the warnings".into());
            }
        }
        true
    }

    /// The registry's explicit empty list.
    fn apply_empty(&mut self, total: usize) -> bool {
        let why = match total {
            0 => "no provider is registered".to_owned(),
            _ => format!(
                "{total} providers are registered, none matches the group, version and interface asked for"
            ),
        };
        if self.protection {
            tracing::warn!(
                providers = self.all.len(),
                "empty list from the registry ignored, empty protection is on"
            );
            self.applied.kept =
                Some(format!("{why}; what was listed before is kept: empty protection is on").into());
        } else if total == 0 && self.may_return() {
            tracing::warn!(
                providers = self.all.len(),
                "empty list from the registry after trouble, the providers may register again"
            );
            let grace = RETURN_GRACE.as_secs();
            let text = format!(
                "{why} after trouble with the registry; what was listed before is kept for {grace} s"
            );
            self.applied.kept = Some(text.into());
            self.applied.doubts_empty = true;
        } else {
            self.applied.providers = Arc::from([]);
            self.forbid(why);
        }
        true
    }

    /// Whether there are providers that may be about to register again: in trouble, and some time after it.
    fn may_return(&self) -> bool {
        let soon_after =
            self.applied.recovered.is_some_and(|recovered| Instant::now() < recovered + RETURN_GRACE);
        !self.all.is_empty() && (self.applied.in_trouble || soon_after)
    }

    /// When an empty list that is not believed yet will be; not as long as the trouble lasts.
    fn believe_empty_at(&self) -> Option<Instant> {
        let doubted = self.applied.doubts_empty && !self.applied.in_trouble;
        self.applied.recovered.filter(|_| doubted).map(|recovered| recovered + RETURN_GRACE)
    }

    /// No provider has come back.
    fn believe_empty(&mut self) {
        self.applied.doubts_empty = false;
        self.applied.providers = Arc::from([]);
        self.forbid("no provider is registered, also some time after the registry's return".to_owned());
        self.publish();
    }

    fn forbid(&mut self, why: String) {
        self.providers.clear();
        self.all = Arc::from([]);
        self.applied.forbidden = Some(why.into());
        self.applied.kept = None;
    }

    fn publish(&mut self) {
        self.aside.retain(&self.all);
        let mut snapshot = Snapshot::bind(Arc::clone(&self.all), &*self.chain, &self.aside);
        snapshot.forbidden.clone_from(&self.applied.forbidden);
        snapshot.kept = !self.all.is_empty() && self.applied.last_word_is_empty();
        let initialized = self.applied.word.is_some();
        tracing::debug!(providers = snapshot.all.len(), aside = snapshot.aside.len(), "addresses published");
        self.shared.published.publish(snapshot, self.stale(), initialized);
    }

    fn stale(&self) -> Option<Arc<str>> {
        self.applied.trouble.clone().or_else(|| self.applied.kept.clone())
    }
}

/// The list of a category, if it is another than the one that was applied.
fn news<'a>(category: &'a Category, applied: Option<&Arc<[Url]>>) -> Option<&'a Arc<[Url]>> {
    category.urls().filter(|urls| !applied.is_some_and(|applied| Arc::ptr_eq(applied, urls)))
}

/// An empty list says something else when the number of entries that do not match changes.
fn is_same_word((urls, total): &(Arc<[Url]>, usize), new_urls: &Arc<[Url]>, new_total: usize) -> bool {
    Arc::ptr_eq(urls, new_urls) && (!urls.is_empty() || *total == new_total)
}

fn trouble(view: &ServiceView) -> Option<Arc<str>> {
    let unconfirmed = || {
        view.from_cache
            .then(|| "the addresses are from the cache file: the registry was not reached yet".into())
    };
    view.trouble.clone().or_else(unconfirmed)
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
