//! The URL: one immutable value that names a service, an address or a rule and carries its settings.

use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::iter::Peekable;
use std::sync::Arc;

use smol_str::SmolStr;

use crate::builder::UrlBuilder;
use crate::encode::{decode, encode};
use crate::error::UrlError;
use crate::intern::Source;
use crate::keys;
use crate::params::{Params, cmp_names, hasher};
use crate::parse;

/// A Dubbo URL: `protocol://user:password@host:port/path?name=value&…`.
///
/// Immutable and cheap to clone. `Debug` and `Display` print the plain string, without user info.
/// Two URLs are equal if everything but the value of `timestamp` is equal (`URLParam.equals` of Dubbo);
/// a URL with and one without a `timestamp` differ. The hash is computed when it is made.
///
/// It has two halves, each of which other URLs may share: where it points to, and what is there. So a consumer of many
/// services of many instances holds each instance and each service once, and two pointers for each combination.
#[derive(Clone)]
pub struct Url {
    place: Arc<Place>,
    service: Arc<Service>,
}

/// Where a URL points to, and since when there is something. Equal if all is equal, the `timestamp`, too.
pub(crate) struct Place {
    pub(crate) login: Option<Box<Login>>,
    pub(crate) host: SmolStr,
    pub(crate) timestamp: Option<SmolStr>,
    pub(crate) port: u16,
    hash: u64,
}

/// What a URL points to.
pub(crate) struct Service {
    pub(crate) protocol: Arc<str>,
    pub(crate) path: Option<Arc<str>>,
    pub(crate) params: Params,
    pub(crate) pid: Option<SmolStr>,
    hash: u64,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Login {
    pub(crate) user: Box<str>,
    pub(crate) password: Option<Box<str>>,
}

impl Url {
    /// Reads the decoded form. Percent escapes in values stay as they are.
    ///
    /// # Errors
    /// No protocol before `://`, a port that is none, or a text beyond the limits in [`defaults`](crate::defaults).
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        Self::from_halves(parse::decoded(text)?, &mut Source::Fresh)
    }

    /// Reads the encoded form: a whole URL percent-encoded once, as the child of a registry node is named.
    ///
    /// A text that turns out to be in the decoded form is read as such.
    ///
    /// # Errors
    /// As [`Url::parse`].
    pub fn parse_encoded(name: &str) -> Result<Self, UrlError> {
        Self::from_halves(parse::encoded(name)?, &mut Source::Fresh)
    }

    /// Starts a URL from its parts. Port 0 means none.
    pub fn builder(protocol: &str, host: &str, port: u16) -> UrlBuilder {
        UrlBuilder::new(protocol, host, port)
    }

    /// Starts a URL from this one.
    pub fn to_builder(&self) -> UrlBuilder {
        UrlBuilder::from_url(self)
    }

    /// The protocol; empty if there is none.
    pub fn protocol(&self) -> &str {
        &self.service.protocol
    }

    /// The user, if any.
    pub fn user(&self) -> Option<&str> {
        self.place.login.as_ref().map(|login| &*login.user)
    }

    /// The password, if any.
    pub fn password(&self) -> Option<&str> {
        self.place.login.as_ref().and_then(|login| login.password.as_deref())
    }

    /// The host as written, an IPv6 address with its brackets; empty if there is none.
    /// See [`Url::connect_host`] for what to hand to the operating system.
    pub fn host(&self) -> &str {
        &self.place.host
    }

    /// The port; 0 if there is none.
    pub fn port(&self) -> u16 {
        self.place.port
    }

    /// The path without leading slash, if any.
    pub fn path(&self) -> Option<&str> {
        self.service.path.as_deref()
    }

    /// Whether both are the same value in memory.
    #[inline]
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.place, &other.place) && Arc::ptr_eq(&self.service, &other.service)
    }

    /// Value of a parameter if it is there and not empty.
    pub fn param(&self, key: &str) -> Option<&str> {
        self.raw_param(key).filter(|value| !value.is_empty())
    }

    /// Value of a parameter if it is there, even when empty.
    pub fn raw_param(&self, key: &str) -> Option<&str> {
        match key {
            keys::TIMESTAMP => self.place.timestamp.as_deref(),
            keys::PID => self.service.pid.as_deref(),
            _ => self.service.params.raw(key),
        }
    }

    /// All parameters by name in UTF-16 order, the order of the text form.
    pub fn params(&self) -> impl Iterator<Item = (&str, &str)> {
        Merged { shared: self.service.params.iter().peekable(), volatile: self.volatile().peekable() }
    }

    /// How many parameters there are.
    pub fn params_len(&self) -> usize {
        self.service.params.len() + self.volatile().count()
    }

    /// All parameters but `timestamp` and `pid`: the part that addresses made by one
    /// [`UrlFactory`](crate::UrlFactory) share in memory.
    #[inline]
    pub fn shared_params(&self) -> &Params {
        &self.service.params
    }

    /// Whether this is the notice that a category is empty.
    pub fn is_empty_protocol(&self) -> bool {
        self.protocol() == keys::protocol::EMPTY
    }

    /// The full string encoded once: the name of this URL's node in a registry.
    pub fn encoded(&self) -> String {
        encode(&self.to_full_string())
    }

    /// Value of a parameter, decoded once more.
    pub fn param_decoded(&self, key: &str) -> Option<String> {
        self.param(key).map(|value| decode(value).into_owned())
    }

    /// `pid` and `timestamp`, as far as there is each.
    fn volatile(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let pid = self.service.pid.as_deref().map(|pid| (keys::PID, pid));
        pid.into_iter().chain(self.place.timestamp.as_deref().map(|since| (keys::TIMESTAMP, since)))
    }

    pub(crate) fn place(&self) -> &Arc<Place> {
        &self.place
    }

    pub(crate) fn service(&self) -> &Arc<Service> {
        &self.service
    }

    pub(crate) fn of(place: Arc<Place>, service: Arc<Service>) -> Self {
        Self { place, service }
    }

    pub(crate) fn from_halves(halves: parse::Halves<'_>, source: &mut Source<'_>) -> Result<Self, UrlError> {
        let body = parse::body(&halves.body)?;
        let mut pairs = halves.pairs;
        let mut take = |key: &str| {
            let at = pairs.binary_search_by(|(name, _)| cmp_names(name, key)).ok()?;
            Some(pairs.remove(at).1)
        };
        let (pid, timestamp) = (take(keys::PID), take(keys::TIMESTAMP));
        let pid = pid.filter(|_| !source.drops_pid());
        let params = source.params(&pairs);
        Ok(Self::from_body(&body, params, pid.as_deref(), timestamp.as_deref(), source))
    }

    pub(crate) fn from_body(
        body: &parse::Body<'_>,
        params: Params,
        pid: Option<&str>,
        timestamp: Option<&str>,
        source: &mut Source<'_>,
    ) -> Self {
        let login = body
            .user
            .map(|user| Box::new(Login { user: Box::from(user), password: body.password.map(Box::from) }));
        let place = Place::new(login, source.host(body.host), body.port, timestamp.map(SmolStr::new));
        Self::of(Arc::new(place), source.service(body.protocol, body.path, params, pid))
    }
}

impl Place {
    pub(crate) fn new(
        login: Option<Box<Login>>,
        host: SmolStr,
        port: u16,
        timestamp: Option<SmolStr>,
    ) -> Self {
        let hash = hasher().hash_one((port, &host, &login, timestamp.is_some()));
        Self { login, host, timestamp, port, hash }
    }

    /// Equality but for the value of the `timestamp`.
    fn is_like(&self, other: &Self) -> bool {
        self.hash == other.hash
            && self.port == other.port
            && self.host == other.host
            && self.login == other.login
            && self.timestamp.is_some() == other.timestamp.is_some()
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        self.is_like(other) && self.timestamp == other.timestamp
    }
}

impl Eq for Place {}

impl Hash for Place {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.hash, &self.timestamp).hash(state);
    }
}

impl Service {
    pub(crate) fn new(
        protocol: Arc<str>,
        path: Option<Arc<str>>,
        params: Params,
        pid: Option<SmolStr>,
    ) -> Self {
        let hash = hasher().hash_one((&params, &path, &protocol, &pid));
        Self { protocol, path, params, pid, hash }
    }
}

impl PartialEq for Service {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
            && self.params == other.params
            && self.path == other.path
            && self.protocol == other.protocol
            && self.pid == other.pid
    }
}

impl Eq for Service {}

impl Hash for Service {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service")
            .field("protocol", &self.protocol)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl PartialEq for Url {
    fn eq(&self, other: &Self) -> bool {
        (Arc::ptr_eq(&self.place, &other.place) || self.place.is_like(&other.place))
            && (Arc::ptr_eq(&self.service, &other.service) || self.service == other.service)
    }
}

impl Eq for Url {}

impl Hash for Url {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.place.hash);
        state.write_u64(self.service.hash);
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain_string())
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Url({self})")
    }
}

impl std::str::FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        Self::parse(text)
    }
}

/// Two sorted lists as one.
struct Merged<A: Iterator, B: Iterator> {
    shared: Peekable<A>,
    volatile: Peekable<B>,
}

impl<'a, A, B> Iterator for Merged<A, B>
where
    A: Iterator<Item = (&'a str, &'a str)>,
    B: Iterator<Item = (&'static str, &'a str)>,
{
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        match (self.shared.peek(), self.volatile.peek()) {
            (Some((shared, _)), Some((volatile, _))) if cmp_names(shared, volatile).is_lt() => {
                self.shared.next()
            }
            (_, Some(_)) => self.volatile.next(),
            (_, None) => self.shared.next(),
        }
    }
}
