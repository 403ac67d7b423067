//! An immutable, shareable set of named values, sorted as the text form prints it.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use foldhash::SharedSeed;
use foldhash::fast::SeedableRandomState;

use crate::keys;
use crate::matching::list_items;

pub(crate) type Entry = (Arc<str>, Arc<str>);

/// Parameters of a URL: names with values, each name once, sorted by name in UTF-16 order.
///
/// Cloning is one reference count. Lookup is a binary search without allocation; the hash is computed once.
#[derive(Clone)]
pub struct Params(Arc<ParamSet>);

pub(crate) struct ParamSet {
    entries: Box<[Entry]>,
    hash: u64,
    ascii_names: bool,
    method_params: MethodParams,
}

/// What is known of the parameters of methods in a set, so that calls need not look again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum MethodParams {
    /// There are none, or of methods only that `methods` leaves out.
    None,
    /// There are some, all of methods that `methods` allows.
    Allowed,
    /// There are some that `methods` allows and some it leaves out.
    Mixed,
}

impl Params {
    /// The empty set.
    pub fn new() -> Self {
        Self::from_sorted(Vec::new())
    }

    /// Value of `name` if it is there and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.raw(name).filter(|value| !value.is_empty())
    }

    /// Value of `name` if it is there, even when empty.
    pub fn raw(&self, name: &str) -> Option<&str> {
        self.find(name).ok().map(|at| &*self.0.entries[at].1)
    }

    /// All names with their values, by name in UTF-16 order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.entries.iter().map(|(name, value)| (&**name, &**value))
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.0.entries.len()
    }

    /// Whether there is no name.
    pub fn is_empty(&self) -> bool {
        self.0.entries.is_empty()
    }

    /// Whether both are the same set in memory, not only equal.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Takes entries that are sorted by name and hold every name once.
    pub(crate) fn from_sorted(entries: Vec<Entry>) -> Self {
        let hash = hash_entries(entries.iter().map(|(name, value)| (&**name, &**value)));
        let ascii_names = entries.iter().all(|(name, _)| name.is_ascii());
        let method_params = method_params(&entries);
        Self(Arc::new(ParamSet { entries: entries.into_boxed_slice(), hash, ascii_names, method_params }))
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.0.entries
    }

    pub(crate) fn hash_value(&self) -> u64 {
        self.0.hash
    }
    #[inline]
    pub(crate) fn method_params(&self) -> MethodParams {
        self.0.method_params
    }

    /// How many holders this set has, for sweeping.
    pub(crate) fn holders(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    /// Value of `method.name`, looked up without building that text.
    pub(crate) fn raw_of_method(&self, method: &str, name: &str) -> Option<&str> {
        let found = if self.0.ascii_names {
            self.0.entries.binary_search_by(|(entry, _)| cmp_with_method(entry.as_bytes(), method, name))
        } else {
            self.find(&format!("{method}.{name}"))
        };
        found.ok().map(|at| &*self.0.entries[at].1)
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        // With ASCII names on one side the order of bytes and the order of UTF-16 units are the same.
        if self.0.ascii_names {
            self.0.entries.binary_search_by(|(entry, _)| entry.as_bytes().cmp(name.as_bytes()))
        } else {
            self.0.entries.binary_search_by(|(entry, _)| cmp_names(entry, name))
        }
    }
}

/// Collects pairs; the last of several with one name wins. Empty names and empty values are left out, as adding a
/// parameter to a URL does.
impl<N: AsRef<str>, V: AsRef<str>> FromIterator<(N, V)> for Params {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        let mut entries: Vec<Entry> = pairs
            .into_iter()
            .filter(|(name, value)| !name.as_ref().is_empty() && !value.as_ref().is_empty())
            .map(|(name, value)| (Arc::from(name.as_ref()), Arc::from(value.as_ref())))
            .collect();
        sort_last_wins(&mut entries);
        Self::from_sorted(entries)
    }
}

impl Default for Params {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Params {
    fn eq(&self, other: &Self) -> bool {
        self.ptr_eq(other) || (self.0.hash == other.0.hash && self.0.entries == other.0.entries)
    }
}

impl Eq for Params {}

impl Hash for Params {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

impl fmt::Debug for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Order of the text form: ascending UTF-16 code units, as `String.compareTo` of Java.
pub(crate) fn cmp_names(a: &str, b: &str) -> Ordering {
    if a.is_ascii() || b.is_ascii() { a.cmp(b) } else { a.encode_utf16().cmp(b.encode_utf16()) }
}

/// Sorts by name and keeps the last of the pairs with one name.
pub(crate) fn sort_last_wins<N: AsRef<str>, V>(pairs: &mut Vec<(N, V)>) {
    pairs.reverse();
    pairs.sort_by(|(a, _), (b, _)| cmp_names(a.as_ref(), b.as_ref()));
    pairs.dedup_by(|later, kept| later.0.as_ref() == kept.0.as_ref());
}

/// Sets one entry of a sorted list.
pub(crate) fn set_sorted(entries: &mut Vec<Entry>, name: &str, value: Arc<str>) {
    match entries.binary_search_by(|(entry, _)| cmp_names(entry, name)) {
        Ok(at) => entries[at].1 = value,
        Err(at) => entries.insert(at, (Arc::from(name), value)),
    }
}

pub(crate) fn hasher() -> SeedableRandomState {
    SeedableRandomState::with_seed(0, SharedSeed::global_random())
}

pub(crate) fn hash_entries<'a>(entries: impl Iterator<Item = (&'a str, &'a str)>) -> u64 {
    let mut state = hasher().build_hasher();
    for (name, value) in entries {
        name.hash(&mut state);
        value.hash(&mut state);
    }
    state.finish()
}

/// Compares `entry` with `method.name`.
fn cmp_with_method(entry: &[u8], method: &str, name: &str) -> Ordering {
    let method = method.as_bytes();
    let shared = entry.len().min(method.len());
    entry[..shared].cmp(&method[..shared]).then_with(|| match entry.get(method.len()) {
        None => Ordering::Less,
        Some(dot) => dot.cmp(&b'.').then_with(|| entry[method.len() + 1..].cmp(name.as_bytes())),
    })
}

fn method_params(entries: &[Entry]) -> MethodParams {
    let mut dotted = entries
        .iter()
        .filter_map(|(name, _)| Some((&**name, name.split_once('.')?.0)))
        .filter(|(name, _)| !name.starts_with(keys::DEFAULT_PREFIX))
        .peekable();
    if dotted.peek().is_none() {
        return MethodParams::None;
    }
    let methods = entries.iter().find(|(name, _)| &**name == keys::METHODS).map_or("", |(_, value)| value);
    // A set, since neither the list nor the parameters of a hostile URL need be short.
    let listed: HashSet<&str, SeedableRandomState> = {
        let mut listed = HashSet::with_hasher(hasher());
        listed.extend(list_items(methods));
        listed
    };
    let any_method = listed.is_empty() || listed.contains(keys::ANY);
    let (mut allowed, mut left_out) = (false, false);
    for (name, method) in dotted {
        if listed.contains(method) || (any_method && !keys::is_dotted_key(name)) {
            allowed = true;
        } else if !any_method {
            left_out = true;
        }
    }
    match (allowed, left_out) {
        (false, _) => MethodParams::None,
        (true, false) => MethodParams::Allowed,
        (true, true) => MethodParams::Mixed,
    }
}
