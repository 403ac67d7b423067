//! What an application exports, with its revision, and what it exported before.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use dubhe_common::Url;
use dubhe_core::metadata::MetadataInfo;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::revision::{revision, service_info};

/// Former revisions beyond this number may be forgotten. Origin: `metadata-info-cache.size`.
const KEPT: usize = 16;
/// How long a former revision can be asked for at least. Origin: `metadata-info-cache.expire`.
const KEPT_FOR: Duration = Duration::from_millis(600_000);

/// An application's exported services: the metadata of now, and of former revisions, for consumers ask for the
/// revision that they saw.
///
/// Revisions that were handed out ([`OwnMetadata::current`]) stay for ten minutes at least, and the last sixteen for
/// ever. Unlike in Dubbo, an application that changes faster than that does not hang.
pub struct OwnMetadata {
    application: Arc<str>,
    state: Mutex<State>,
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    /// Registered provider URLs by match key. Of several with one key, such as before and after a change of
    /// parameters, the last counts.
    services: BTreeMap<String, Vec<Url>>,
    current: Option<Arc<MetadataInfo>>,
    /// Handed out, the oldest first.
    published: VecDeque<(Instant, Arc<MetadataInfo>)>,
}

impl OwnMetadata {
    /// An application without services.
    pub fn new(application: impl Into<Arc<str>>) -> Self {
        Self { application: application.into(), state: Mutex::default(), changes: watch::Sender::new(0) }
    }

    /// The application's name.
    pub fn application(&self) -> &Arc<str> {
        &self.application
    }

    /// Adds a registered provider URL. It stands before others of the same service and protocol until it is taken out.
    /// `true` if something changed.
    pub fn add(&self, url: &Url) -> bool {
        let mut state = self.state.lock();
        let registered = state.services.entry(service_info(url).match_key()).or_default();
        let is_changed = registered.last() != Some(url);
        registered.retain(|known| known != url);
        registered.push(url.clone());
        if is_changed {
            state.current = None;
            self.changes.send_modify(|count| *count += 1);
        }
        is_changed
    }

    /// Takes exactly this provider URL out. `true` if it was there.
    pub fn remove(&self, url: &Url) -> bool {
        let mut state = self.state.lock();
        let key = service_info(url).match_key();
        let Some(registered) = state.services.get_mut(&key) else { return false };
        let before = registered.len();
        registered.retain(|known| known != url);
        let was_there = registered.len() < before;
        if registered.is_empty() {
            state.services.remove(&key);
        }
        if was_there {
            state.current = None;
            self.changes.send_modify(|count| *count += 1);
        }
        was_there
    }

    /// Counts the changes, now and from now on.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The metadata of now. From here on its revision can be asked for.
    pub fn current(&self) -> Arc<MetadataInfo> {
        let mut state = self.state.lock();
        if let Some(current) = &state.current {
            return Arc::clone(current);
        }
        let named = |(key, urls): (&String, &Vec<Url>)| Some((key.clone(), service_info(urls.last()?)));
        let services = state.services.iter().filter_map(named).collect();
        let revision = revision(Some(&self.application), &services);
        let app = Some(self.application.to_string());
        let current = Arc::new(MetadataInfo { app, revision: Some(revision), services });
        state.current = Some(Arc::clone(&current));
        state.publish(&current);
        current
    }

    /// The metadata of a revision; `None` for one that was never handed out, or long ago.
    pub fn of_revision(&self, revision: &str) -> Option<Arc<MetadataInfo>> {
        let state = self.state.lock();
        let found = state.published.iter().find(|(_, info)| info.revision.as_deref() == Some(revision));
        found.map(|(_, info)| Arc::clone(info))
    }

    /// All revisions that can be asked for.
    pub fn revisions(&self) -> Vec<Arc<MetadataInfo>> {
        self.state.lock().published.iter().map(|(_, info)| Arc::clone(info)).collect()
    }

    /// Whether a service is exported, by its match key (`[group/]interface[:version]:protocol`).
    pub fn contains(&self, match_key: &str) -> bool {
        self.state.lock().services.contains_key(match_key)
    }

    /// Whether nothing is exported.
    pub fn is_empty(&self) -> bool {
        self.state.lock().services.is_empty()
    }

    /// The registered provider URLs of now, in the order of their services.
    pub fn exported(&self) -> Vec<Url> {
        self.state.lock().services.values().filter_map(|urls| urls.last().cloned()).collect()
    }
}

impl State {
    fn publish(&mut self, info: &Arc<MetadataInfo>) {
        let now = Instant::now();
        self.published.retain(|(_, known)| known.revision != info.revision);
        self.published.push_back((now, Arc::clone(info)));
        while self.published.len() > KEPT
            && self.published.front().is_some_and(|(since, _)| now.duration_since(*since) >= KEPT_FOR)
        {
            self.published.pop_front();
        }
    }
}

impl fmt::Debug for OwnMetadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("OwnMetadata")
            .field("application", &self.application)
            .field("services", &state.services.len())
            .field("revisions", &state.published.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(name: &str) -> Url {
        Url::parse(&format!("dubbo://192.0.2.1:20880/{name}?interface={name}")).unwrap()
    }

    #[test]
    fn the_revision_follows_what_is_exported() {
        let own = OwnMetadata::new("demo");
        assert_eq!(own.current().revision.as_deref(), Some("0"));
        assert!(own.add(&url("a.A")));
        let one = own.current();
        assert!(!own.add(&url("a.A")), "the same again is no change");
        assert!(Arc::ptr_eq(&one, &own.current()));
        assert!(own.add(&url("a.B")));
        let two = own.current();
        assert_ne!(one.revision, two.revision);
        assert_eq!(two.services.keys().collect::<Vec<_>>(), ["a.A:dubbo", "a.B:dubbo"]);
        assert!(own.remove(&url("a.B")));
        assert!(!own.remove(&url("a.B")));
        assert_eq!(own.current().revision, one.revision);
    }

    #[test]
    fn a_url_that_follows_another_stays_when_that_is_taken_out() {
        let own = OwnMetadata::new("demo");
        let (old, new) = (url("a.A"), url("a.A").with_param("timeout", "5"));
        own.add(&old);
        let one = own.current();
        assert!(own.add(&new));
        assert!(own.remove(&old));
        assert_eq!(own.exported(), std::slice::from_ref(&new));
        assert_eq!(own.current().services["a.A:dubbo"].params["timeout"], "5");
        assert!(!own.remove(&old));
        // The other way round: what is left counts again.
        own.add(&old);
        assert!(own.remove(&old));
        assert_eq!(own.exported(), std::slice::from_ref(&new));
        assert!(own.add(&old) && own.remove(&new));
        assert_eq!(own.current().revision, one.revision);
        assert!(own.remove(&old) && own.exported().is_empty());
    }

    #[test]
    fn former_revisions_can_be_asked_for() {
        let own = OwnMetadata::new("demo");
        own.add(&url("a.A"));
        let one = own.current();
        own.add(&url("a.B"));
        let two = own.current();
        assert_eq!(own.of_revision(one.revision.as_ref().unwrap()), Some(one));
        assert_eq!(own.of_revision(two.revision.as_ref().unwrap()), Some(two));
        assert_eq!(own.of_revision("unknown"), None);
        assert_eq!(own.of_revision(""), None);
    }

    #[tokio::test(start_paused = true)]
    async fn many_young_revisions_are_all_kept_and_old_ones_forgotten() {
        let own = OwnMetadata::new("demo");
        for number in 0..40 {
            own.add(&url(&format!("a.A{number}")));
            own.current();
        }
        assert_eq!(own.revisions().len(), 40);
        tokio::time::advance(KEPT_FOR).await;
        own.add(&url("a.B"));
        own.current();
        assert_eq!(own.revisions().len(), KEPT);
    }
}
