//! Sharing of equal text, equal parameters and equal halves between URLs.
//!
//! A registry holds many addresses that differ in host and start time only. A [`UrlFactory`] gives them one set of
//! parameters and one half that names the service, so that an address costs what is its own.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use foldhash::fast::SeedableRandomState;
use parking_lot::Mutex;
use smallvec::SmallVec;
use smol_str::SmolStr;

use crate::common_text::{Cut, Cutter, Texts};
use crate::encode::decode;
use crate::error::UrlError;
use crate::params::{Entry, Params, hash_entries, hasher};
use crate::parse::{self, Form, Pairs};
use crate::url::{Place, Service, Url};

/// Unused entries a factory may hold beyond as many as are in use.
const SWEEP_SLACK: usize = 1_024;

/// Hosts up to this length lie in the URL itself.
const INLINE_HOST: usize = 23;

/// Makes URLs that share their strings and parameter sets.
///
/// A value, not a global: one per registry, or one for a process, cloned handles share the tables.
/// What no URL uses any more is removed when the tables have doubled since the last look, and by
/// [`UrlFactory::sweep`]; so unused entries never outnumber those in use by more than a constant.
///
/// Parameters in the names of nodes are read once for all instances of a service: of a set of parameters that was met
/// twice the escaped text is kept, and names are compared with it.
#[derive(Clone)]
pub struct UrlFactory(Arc<Shared>);

struct Shared {
    tables: Mutex<Tables>,
    cutter: Cutter,
}

/// How much a factory holds; see [`UrlFactory::interned`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Interned {
    /// Different strings: protocols, long hosts, paths, names and values of parameters.
    pub strings: usize,
    /// Different sets of parameters.
    pub param_sets: usize,
    /// Different combinations of protocol, path, parameters and `pid`.
    pub services: usize,
    /// Different combinations of user info, host, port and `timestamp`, of [`UrlFactory::adopt_all`].
    pub places: usize,
}

impl UrlFactory {
    /// An empty factory.
    pub fn new() -> Self {
        Self(Arc::new(Shared { tables: Mutex::default(), cutter: Cutter::new() }))
    }

    /// Reads the name of a provider node.
    ///
    /// `pid` is left out: it says nothing about the address, and without it a provider that registers again is
    /// the same URL. `timestamp` is kept for warm-up; equality ignores its value. Only whole parameters of these
    /// names are meant (Dubbo Java cuts text, and takes `xpid` and `remote.timestamp` along).
    ///
    /// # Errors
    /// As [`Url::parse`].
    pub fn parse_encoded(&self, name: &str) -> Result<Url, UrlError> {
        if let Form::Encoded { body, params } = parse::form(name)?
            && let Some(cut) = self.0.cutter.cut(params)
        {
            return self.make_like(name, body, &cut);
        }
        self.make(parse::encoded(name)?)
    }

    /// As [`UrlFactory::parse_encoded`] for the decoded form.
    ///
    /// # Errors
    /// As [`Url::parse`].
    pub fn parse(&self, text: &str) -> Result<Url, UrlError> {
        self.make(parse::decoded(text)?)
    }

    /// The same parameters, shared with every equal set this factory has seen.
    pub fn share(&self, params: &Params) -> Params {
        self.0.tables.lock().shared(params)
    }

    /// The same URL with all but host, port, user info and `timestamp` shared, for one that was made by changing another.
    pub fn adopt(&self, url: &Url) -> Url {
        Url::of(Arc::clone(url.place()), self.share_service(url.service()))
    }

    /// The same URL with the rest shared as well: for the URLs of many services at one address. The value of `timestamp`
    /// stays what it is, although equality ignores it.
    pub fn adopt_all(&self, url: &Url) -> Url {
        let mut tables = self.0.tables.lock();
        Url::of(tables.place(url.place()), tables.service_like(url.service()))
    }

    pub(crate) fn share_service(&self, service: &Service) -> Arc<Service> {
        self.0.tables.lock().service_like(service)
    }

    /// Drops what no URL uses.
    pub fn sweep(&self) {
        self.0.tables.lock().sweep();
    }

    /// How many strings and parameter sets are in use. Sweeps first.
    pub fn interned(&self) -> Interned {
        let mut tables = self.0.tables.lock();
        tables.sweep();
        Interned {
            strings: tables.strings.len(),
            param_sets: tables.sets_len,
            services: tables.services.len(),
            places: tables.places.len(),
        }
    }

    fn make(&self, halves: parse::Halves<'_>) -> Result<Url, UrlError> {
        Url::from_halves(halves, &mut Source::Shared(&mut self.0.tables.lock()))
    }

    /// Makes the URL from parameters that were read before, or reads them.
    fn make_like(&self, name: &str, body: &str, cut: &Cut<'_>) -> Result<Url, UrlError> {
        let hash = cut.hash();
        let known = self.0.tables.lock().texts.get(hash, cut).cloned();
        if let Some(params) = known {
            let body = decode(body);
            let body = parse::body(&body)?;
            let timestamp = cut.timestamp.map(decode);
            let mut tables = self.0.tables.lock();
            let source = &mut Source::Shared(&mut tables);
            return Ok(Url::from_body(&body, params, None, timestamp.as_deref(), source));
        }
        let url = self.make(parse::encoded(name)?)?;
        self.0.tables.lock().met(hash, cut, url.shared_params());
        Ok(url)
    }
}

impl Default for UrlFactory {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for UrlFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tables = self.0.tables.lock();
        f.debug_struct("UrlFactory")
            .field("strings", &tables.strings.len())
            .field("param_sets", &tables.sets_len)
            .field("services", &tables.services.len())
            .field("places", &tables.places.len())
            .field("texts", &tables.texts.len())
            .finish()
    }
}

/// Where the strings of a new URL come from.
pub(crate) enum Source<'a> {
    /// Made anew.
    Fresh,
    /// Looked up in a factory.
    Shared(&'a mut Tables),
}

impl Source<'_> {
    pub(crate) fn text(&mut self, text: &str) -> Arc<str> {
        match self {
            Self::Fresh => Arc::from(text),
            Self::Shared(tables) => tables.text(text),
        }
    }

    pub(crate) fn host(&mut self, host: &str) -> SmolStr {
        if host.len() <= INLINE_HOST { SmolStr::new(host) } else { SmolStr::from(self.text(host)) }
    }

    pub(crate) fn params(&mut self, pairs: &Pairs<'_>) -> Params {
        match self {
            Self::Fresh => Params::from_sorted(
                pairs.iter().map(|(name, value)| (Arc::from(&**name), Arc::from(&**value))).collect(),
            ),
            Self::Shared(tables) => tables.params(pairs),
        }
    }

    pub(crate) fn service(
        &mut self,
        protocol: &str,
        path: Option<&str>,
        params: Params,
        pid: Option<&str>,
    ) -> Arc<Service> {
        let (protocol, path) = (self.text(protocol), path.map(|path| self.text(path)));
        let service = Service::new(protocol, path, params, pid.map(SmolStr::new));
        match self {
            Self::Fresh => Arc::new(service),
            Self::Shared(tables) => tables.service(service),
        }
    }

    pub(crate) fn drops_pid(&self) -> bool {
        matches!(self, Self::Shared(_))
    }
}

/// The tables hold what they share; an entry nobody else holds is unused. All under one lock, so a count of one
/// cannot grow while it is looked at.
pub(crate) struct Tables {
    strings: HashSet<Arc<str>, SeedableRandomState>,
    sets: HashMap<u64, SmallVec<[Set; 1]>, SeedableRandomState>,
    texts: Texts,
    services: HashSet<Arc<Service>, SeedableRandomState>,
    places: HashSet<Arc<Place>, SeedableRandomState>,
    sets_len: usize,
    sweep_at: usize,
}

struct Set {
    params: Params,
    /// Hash of the text that it was last read from.
    text: u64,
}

impl Default for Tables {
    fn default() -> Self {
        Self {
            strings: HashSet::with_hasher(hasher()),
            sets: HashMap::with_hasher(hasher()),
            texts: Texts::new(),
            services: HashSet::with_hasher(hasher()),
            places: HashSet::with_hasher(hasher()),
            sets_len: 0,
            sweep_at: SWEEP_SLACK,
        }
    }
}

impl Tables {
    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.strings.get(text) {
            return Arc::clone(known);
        }
        self.sweep_if_grown();
        let new: Arc<str> = Arc::from(text);
        self.strings.insert(Arc::clone(&new));
        new
    }

    /// As [`Tables::text`] for one that need not be copied.
    fn kept(&mut self, text: &Arc<str>) -> Arc<str> {
        if let Some(known) = self.strings.get(text) {
            return Arc::clone(known);
        }
        self.sweep_if_grown();
        self.strings.insert(Arc::clone(text));
        Arc::clone(text)
    }

    fn params(&mut self, pairs: &Pairs<'_>) -> Params {
        let hash = hash_entries(pairs.iter().map(|(name, value)| (&**name, &**value)));
        let same = |set: &&Set| {
            set.params.len() == pairs.len()
                && set.params.iter().zip(pairs).all(|((n, v), (name, value))| n == name && v == value)
        };
        if let Some(known) = self.sets.get(&hash).and_then(|sets| sets.iter().find(same)) {
            return known.params.clone();
        }
        let entries = pairs.iter().map(|(name, value)| (self.text(name), self.text(value))).collect();
        self.add(entries)
    }

    fn shared(&mut self, params: &Params) -> Params {
        if let Some(known) =
            self.sets.get(&params.hash_value()).and_then(|sets| sets.iter().find(|set| set.params == *params))
        {
            return known.params.clone();
        }
        let entries =
            params.entries().iter().map(|(name, value)| (self.kept(name), self.kept(value))).collect();
        self.add(entries)
    }

    fn service_like(&mut self, service: &Service) -> Arc<Service> {
        if let Some(known) = self.services.get(service) {
            return Arc::clone(known);
        }
        let (protocol, path) =
            (self.kept(&service.protocol), service.path.as_ref().map(|path| self.kept(path)));
        let params = self.shared(&service.params);
        self.service(Service::new(protocol, path, params, service.pid.clone()))
    }

    fn service(&mut self, service: Service) -> Arc<Service> {
        if let Some(known) = self.services.get(&service) {
            return Arc::clone(known);
        }
        self.sweep_if_grown();
        let new = Arc::new(service);
        self.services.insert(Arc::clone(&new));
        new
    }

    fn place(&mut self, place: &Arc<Place>) -> Arc<Place> {
        if let Some(known) = self.places.get(place) {
            return Arc::clone(known);
        }
        self.sweep_if_grown();
        self.places.insert(Arc::clone(place));
        Arc::clone(place)
    }

    fn add(&mut self, entries: Vec<Entry>) -> Params {
        self.sweep_if_grown();
        let new = Params::from_sorted(entries);
        self.sets.entry(new.hash_value()).or_default().push(Set { params: new.clone(), text: 0 });
        self.sets_len += 1;
        new
    }

    /// Keeps the text of a set that was read from it twice; one that is never met again costs nothing.
    fn met(&mut self, hash: u64, cut: &Cut<'_>, params: &Params) {
        let sets = self.sets.get_mut(&params.hash_value());
        let Some(set) = sets.and_then(|sets| sets.iter_mut().find(|set| set.params.ptr_eq(params))) else {
            return;
        };
        if set.text == hash {
            self.texts.remember(hash, cut, params);
        } else {
            self.texts.forget(set.text, params);
            set.text = hash;
        }
    }

    fn sweep_if_grown(&mut self) {
        if self.entries() >= self.sweep_at {
            self.sweep();
        }
    }

    fn entries(&self) -> usize {
        self.strings.len() + self.sets_len + self.services.len() + self.places.len()
    }

    fn sweep(&mut self) {
        // From what uses others to what is used.
        retain_used(&mut self.places);
        retain_used(&mut self.services);
        self.texts.sweep();
        self.sets.retain(|_, sets| {
            sets.retain(|set| set.params.holders() > 1);
            !sets.is_empty()
        });
        self.sets_len = self.sets.values().map(SmallVec::len).sum();
        self.sets.shrink_to(self.sets.len() * 2);
        retain_used(&mut self.strings);
        self.sweep_at = 2 * self.entries() + SWEEP_SLACK;
    }
}

fn retain_used<T: ?Sized + Eq + Hash>(table: &mut HashSet<Arc<T>, SeedableRandomState>) {
    table.retain(|one| Arc::strong_count(one) > 1);
    table.shrink_to(table.len() * 2);
}
