//! The URLs of one category, parsed once each.

use std::collections::HashSet;
use std::sync::Arc;

use dubhe_common::{Url, UrlError, UrlFactory, is_match, keys};

use crate::former_names::{FormerNames, Key, Keys};

/// Decides which children of a category belong to one subscription, and parses them.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    /// The subscription's URL, asking for every category: the category is that of the node.
    consumer: Url,
    factory: UrlFactory,
    registry: Arc<str>,
}

impl Reader {
    pub(crate) fn new(consumer: &Url, factory: &UrlFactory, registry: &str) -> Self {
        Self {
            consumer: consumer.with_param(keys::CATEGORY, keys::ANY),
            factory: factory.clone(),
            registry: Arc::from(registry),
        }
    }

    /// The URLs of those children that concern the subscription. All malformed ones together cost one warning.
    pub(crate) fn read_all(&self, category: &str, names: &[Arc<str>]) -> Vec<Url> {
        let mut skipped = Skipped::default();
        let urls =
            names.iter().filter_map(|name| skipped.unless_malformed(self.read(category, name))).collect();
        self.warn_of(&skipped, category);
        urls
    }

    /// The URL that stands in a child's name; `None` if it does not concern the subscription.
    fn read(&self, category: &str, name: &str) -> Result<Option<Url>, Malformed> {
        let is_provider = category == keys::category::PROVIDERS;
        if !is_provider && !name.contains("%3A%2F%2F") && !name.contains("://") {
            return Ok(None);
        }
        let mut url = self.factory.parse_encoded(name)?;
        if url.service_interface().is_empty() || url.host().is_empty() {
            return Err(Malformed::Nameless);
        }
        if url.protocol().is_empty() {
            url = url.with_protocol(keys::protocol::DUBBO);
        }
        let own_category = url.param(keys::CATEGORY).is_none_or(|own| own == category);
        Ok((own_category && is_match(&self.consumer, &url)).then_some(url))
    }

    /// Whether a URL read from the cache file concerns the subscription.
    pub(crate) fn matches(&self, url: &Url) -> bool {
        is_match(&self.consumer, url)
    }

    fn warn_of(&self, skipped: &Skipped, category: &str) {
        let Some(error) = &skipped.first else { return };
        tracing::warn!(
            registry.addr = %self.registry,
            registry.category = category,
            rpc.service = self.consumer.service_interface(),
            entries = skipped.count,
            %error,
            "skipping malformed entries of the registry"
        );
    }
}

/// Why a child is not a URL of a service.
#[derive(Debug, thiserror::Error)]
enum Malformed {
    #[error(transparent)]
    Url(#[from] UrlError),
    #[error("an entry names no interface or no host")]
    Nameless,
}

/// Malformed children of one reading.
#[derive(Debug, Default)]
struct Skipped {
    count: usize,
    first: Option<Malformed>,
}

impl Skipped {
    fn unless_malformed(&mut self, read: Result<Option<Url>, Malformed>) -> Option<Url> {
        read.unwrap_or_else(|malformed| {
            self.count += 1;
            self.first.get_or_insert(malformed);
            None
        })
    }
}

/// Children of a category's node, as URLs.
///
/// A child that stays keeps its `Url`. The names, a kilobyte each, are not kept: keys stand for them.
#[derive(Debug)]
pub(crate) struct Listing {
    /// Those of `urls`, at the same places.
    keys: Box<[Key]>,
    urls: Arc<[Url]>,
    /// Those of children that were read and do not concern the subscription, or are malformed.
    left_out: HashSet<Key>,
    total: usize,
    by: Keys,
}

impl Listing {
    pub(crate) fn new() -> Self {
        Self {
            keys: Box::default(),
            urls: Arc::from([]),
            left_out: HashSet::new(),
            total: 0,
            by: Keys::default(),
        }
    }

    /// Takes the names that are there now.
    pub(crate) fn update(&mut self, names: &[Arc<str>], category: &str, reader: &Reader) {
        let expected = names.len().min(self.urls.len() + 64);
        let (mut keys, mut urls) = (Vec::with_capacity(expected), Vec::with_capacity(expected));
        let (mut left_out, mut skipped) = (HashSet::new(), Skipped::default());
        let mut former = FormerNames::new(&self.keys);
        for name in names {
            let key = self.by.of(name);
            let url = if self.left_out.contains(&key) {
                None
            } else if let Some(at) = former.find(key) {
                Some(self.urls[at].clone())
            } else {
                skipped.unless_malformed(reader.read(category, name))
            };
            match url {
                Some(url) => {
                    keys.push(key);
                    urls.push(url);
                }
                None => {
                    left_out.insert(key);
                }
            }
        }
        reader.warn_of(&skipped, category);
        (self.keys, self.left_out, self.total) = (keys.into(), left_out, names.len());
        self.urls = same_or_new(&self.urls, urls);
    }

    pub(crate) fn urls(&self) -> &Arc<[Url]> {
        &self.urls
    }

    /// How many there are, matching or not.
    pub(crate) fn total(&self) -> usize {
        self.total
    }
}

/// The old list if the new one is the same values in the same order.
pub(crate) fn same_or_new(old: &Arc<[Url]>, new: Vec<Url>) -> Arc<[Url]> {
    let same = old.len() == new.len() && old.iter().zip(&new).all(|(a, b)| a.ptr_eq(b));
    if same { Arc::clone(old) } else { Arc::from(new) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(consumer: &str) -> Reader {
        Reader::new(&Url::parse(consumer).unwrap(), &UrlFactory::new(), "memory://test")
    }

    fn names(urls: &[&str]) -> Vec<Arc<str>> {
        urls.iter().map(|url| Arc::from(dubhe_common::encode(url))).collect()
    }

    #[test]
    fn an_update_keeps_what_stays_and_forgets_what_left() {
        let reader = reader("consumer://192.0.2.9/demo.Foo");
        let (a, b, c) =
            ("dubbo://192.0.2.1:1/demo.Foo", "dubbo://192.0.2.2:1/demo.Foo", "dubbo://192.0.2.3:1/demo.Foo");
        let mut listing = Listing::new();
        let rows: &[(&[&str], &[&str])] =
            &[(&[a, b], &[]), (&[a, b, c], &[a, b]), (&[b, c], &[b, c]), (&[], &[]), (&[a], &[])];
        for (now, kept) in rows {
            let before = Arc::clone(listing.urls());
            listing.update(&names(now), "providers", &reader);
            assert_eq!(listing.urls().len(), now.len());
            assert_eq!(listing.total(), now.len());
            assert_eq!(listing.keys.len(), now.len());
            let survivors = listing.urls().iter().filter(|url| before.iter().any(|old| old.ptr_eq(url)));
            assert_eq!(survivors.map(|url| url.to_full_string()).collect::<Vec<_>>(), *kept);
        }
    }

    #[test]
    fn the_same_names_give_the_same_list() {
        let reader = reader("consumer://192.0.2.9/demo.Foo");
        let names = names(&["dubbo://192.0.2.1:1/demo.Foo", "dubbo://192.0.2.2:1/demo.Other"]);
        let mut listing = Listing::new();
        listing.update(&names, "providers", &reader);
        let first = Arc::clone(listing.urls());
        listing.update(&names, "providers", &reader);
        assert!(Arc::ptr_eq(&first, listing.urls()));
        assert_eq!((listing.urls().len(), listing.total(), listing.left_out.len()), (1, 2, 1));
    }

    #[test]
    fn a_url_of_another_category_is_left_out_even_if_it_lies_here() {
        let reader = reader("consumer://192.0.2.9/demo.Foo");
        let provider = "dubbo%3A%2F%2F192.0.2.1%3A1%2Fdemo.Foo%3Fcategory%3Dconfigurators";
        assert!(reader.read("providers", provider).unwrap().is_none());
        assert!(reader.read("configurators", provider).unwrap().is_some());
    }
}
