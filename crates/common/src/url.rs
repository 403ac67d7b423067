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
use crate::volatile::Volatile;

/// A Dubbo URL: `protocol://user:password@host:port/path?name=value&…`.
///
/// Immutable and cheap to clone. `Debug` and `Display` print the plain string, without user info.
/// Two URLs are equal if everything but the value of `timestamp` is equal (`URLParam.equals` of Dubbo);
/// a URL with and one without a `timestamp` differ. The hash is computed once.
#[derive(Clone)]
pub struct Url(Arc<Hashed>);

pub(crate) struct Inner {
    pub(crate) protocol: Arc<str>,
    pub(crate) login: Option<Box<Login>>,
    pub(crate) host: SmolStr,
    pub(crate) path: Option<Arc<str>>,
    pub(crate) params: Params,
    pub(crate) volatile: Volatile,
    pub(crate) port: u16,
}

struct Hashed {
    inner: Inner,
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
        &self.0.inner.protocol
    }

    /// The user, if any.
    pub fn user(&self) -> Option<&str> {
        self.0.inner.login.as_ref().map(|login| &*login.user)
    }

    /// The password, if any.
    pub fn password(&self) -> Option<&str> {
        self.0.inner.login.as_ref().and_then(|login| login.password.as_deref())
    }

    /// The host as written, an IPv6 address with its brackets; empty if there is none.
    /// See [`Url::connect_host`] for what to hand to the operating system.
    pub fn host(&self) -> &str {
        &self.0.inner.host
    }

    /// The port; 0 if there is none.
    pub fn port(&self) -> u16 {
        self.0.inner.port
    }

    /// The path without leading slash, if any.
    pub fn path(&self) -> Option<&str> {
        self.0.inner.path.as_deref()
    }

    /// Whether both are the same value in memory.
    #[inline]
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Value of a parameter if it is there and not empty.
    pub fn param(&self, key: &str) -> Option<&str> {
        self.raw_param(key).filter(|value| !value.is_empty())
    }

    /// Value of a parameter if it is there, even when empty.
    pub fn raw_param(&self, key: &str) -> Option<&str> {
        if Volatile::owns(key) { self.0.inner.volatile.get(key) } else { self.0.inner.params.raw(key) }
    }

    /// All parameters by name in UTF-16 order, the order of the text form.
    pub fn params(&self) -> impl Iterator<Item = (&str, &str)> {
        Merged {
            shared: self.0.inner.params.iter().peekable(),
            volatile: self.0.inner.volatile.iter().peekable(),
        }
    }

    /// How many parameters there are.
    pub fn params_len(&self) -> usize {
        self.0.inner.params.len() + self.0.inner.volatile.iter().count()
    }

    /// All parameters but `timestamp` and `pid`: the part that addresses made by one
    /// [`UrlFactory`](crate::UrlFactory) share in memory.
    #[inline]
    pub fn shared_params(&self) -> &Params {
        &self.0.inner.params
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

    pub(crate) fn inner(&self) -> &Inner {
        &self.0.inner
    }

    pub(crate) fn from_inner(inner: Inner) -> Self {
        let mut state = hasher().build_hasher();
        inner.params.hash(&mut state);
        (inner.port, &inner.host, &inner.path, &inner.protocol, &inner.login).hash(&mut state);
        (inner.volatile.pid(), inner.volatile.timestamp().is_some()).hash(&mut state);
        Self(Arc::new(Hashed { hash: state.finish(), inner }))
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
        let volatile = Volatile::new(pid.as_deref(), timestamp.as_deref());
        let params = source.params(&pairs);
        Ok(Self::from_body(&body, params, volatile, source))
    }

    pub(crate) fn from_body(
        body: &parse::Body<'_>,
        params: Params,
        volatile: Volatile,
        source: &mut Source<'_>,
    ) -> Self {
        Self::from_inner(Inner {
            protocol: source.text(body.protocol),
            login: body.user.map(|user| {
                Box::new(Login { user: Box::from(user), password: body.password.map(Box::from) })
            }),
            host: source.host(body.host),
            path: body.path.map(|path| source.text(path)),
            params,
            volatile,
            port: body.port,
        })
    }
}

impl PartialEq for Url {
    fn eq(&self, other: &Self) -> bool {
        if self.ptr_eq(other) {
            return true;
        }
        let (a, b) = (self.inner(), other.inner());
        self.0.hash == other.0.hash
            && a.port == b.port
            && a.params == b.params
            && a.host == b.host
            && a.path == b.path
            && a.protocol == b.protocol
            && a.login == b.login
            && a.volatile.pid() == b.volatile.pid()
            && a.volatile.timestamp().is_some() == b.volatile.timestamp().is_some()
    }
}

impl Eq for Url {}

impl Hash for Url {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
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
