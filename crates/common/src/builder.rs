//! Making a URL from parts or from another one.

use std::fmt::{self, Display};
use std::sync::Arc;

use smol_str::SmolStr;

use crate::address::bracketed;
use crate::error::UrlError;
use crate::keys;
use crate::params::{Entry, Params, cmp_names, set_sorted};
use crate::url::{Login, Place, Service, Url};
use crate::volatile::Volatile;

/// Collects the parts of a URL. Made by [`Url::builder`] and [`Url::to_builder`].
#[derive(Clone)]
pub struct UrlBuilder {
    protocol: Arc<str>,
    user: Option<Box<str>>,
    password: Option<Box<str>>,
    host: SmolStr,
    port: u16,
    path: Option<Arc<str>>,
    params: Draft,
    volatile: Volatile,
    /// Halves of the URL that this was started from, as long as nothing in them was changed.
    of_place: Option<Arc<Place>>,
    of_service: Option<Arc<Service>>,
}

/// Parameters are copied at the first change only.
#[derive(Clone)]
enum Draft {
    Shared(Params),
    Own(Vec<Entry>),
}

impl UrlBuilder {
    pub(crate) fn new(protocol: &str, host: &str, port: u16) -> Self {
        Self {
            protocol: Arc::from(protocol),
            user: None,
            password: None,
            host: SmolStr::new(bracketed(host)),
            port,
            path: None,
            params: Draft::Own(Vec::new()),
            volatile: Volatile::default(),
            of_place: None,
            of_service: None,
        }
    }

    pub(crate) fn from_url(url: &Url) -> Self {
        let (place, service) = (url.place(), url.service());
        Self {
            protocol: Arc::clone(&service.protocol),
            user: url.user().map(Box::from),
            password: url.password().map(Box::from),
            host: place.host.clone(),
            port: place.port,
            path: service.path.clone(),
            params: Draft::Shared(service.params.clone()),
            volatile: Volatile { pid: service.pid.clone(), timestamp: place.timestamp.clone() },
            of_place: Some(Arc::clone(place)),
            of_service: Some(Arc::clone(service)),
        }
    }

    /// Sets the protocol.
    #[must_use]
    pub fn protocol(mut self, protocol: &str) -> Self {
        self.of_service = None;
        self.protocol = Arc::from(protocol);
        self
    }

    /// Sets the user; empty for none.
    #[must_use]
    pub fn user(mut self, user: &str) -> Self {
        self.of_place = None;
        self.user = Some(user).filter(|user| !user.is_empty()).map(Box::from);
        self
    }

    /// Sets the password; counts only together with a user.
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        self.of_place = None;
        self.password = Some(password).filter(|password| !password.is_empty()).map(Box::from);
        self
    }

    /// Sets the host. A bare IPv6 address gets brackets.
    #[must_use]
    pub fn host(mut self, host: &str) -> Self {
        self.of_place = None;
        self.host = SmolStr::new(bracketed(host));
        self
    }

    /// Sets the port; 0 for none.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.of_place = None;
        self.port = port;
        self
    }

    /// Sets the path without its leading slashes; empty for none.
    #[must_use]
    pub fn path(mut self, path: &str) -> Self {
        self.of_service = None;
        self.path = Some(path.trim_start_matches('/')).filter(|path| !path.is_empty()).map(Arc::from);
        self
    }

    /// Sets a parameter. Does nothing if the name or the value is empty.
    #[must_use]
    pub fn param(mut self, key: &str, value: impl Display) -> Self {
        self.set(key, &value.to_string());
        self
    }

    /// Sets a parameter if there is none of that name.
    #[must_use]
    pub fn param_if_absent(self, key: &str, value: impl Display) -> Self {
        if self.get(key).is_some_and(|value| !value.is_empty()) { self } else { self.param(key, value) }
    }

    /// Sets several parameters.
    #[must_use]
    pub fn params<K: AsRef<str>, V: Display>(mut self, params: impl IntoIterator<Item = (K, V)>) -> Self {
        for (key, value) in params {
            self.set(key.as_ref(), &value.to_string());
        }
        self
    }

    /// Removes a parameter.
    #[must_use]
    pub fn without_param(mut self, key: &str) -> Self {
        self.remove(key);
        self
    }

    /// Removes every parameter whose name and value `keep` refuses.
    #[must_use]
    pub fn retain_params(mut self, mut keep: impl FnMut(&str, &str) -> bool) -> Self {
        let mut dropped: Vec<&'static str> = Vec::new();
        for (name, value) in self.volatile.iter() {
            if !keep(name, value) {
                dropped.push(name);
            }
        }
        for name in dropped {
            self.set_volatile(name, None);
        }
        self.entries().retain(|(name, value)| keep(name, value));
        self
    }

    /// Removes all parameters.
    #[must_use]
    pub fn clear_params(mut self) -> Self {
        self.params = Draft::Own(Vec::new());
        self.volatile = Volatile::default();
        (self.of_place, self.of_service) = (None, None);
        self
    }

    /// The URL. A password without a user is left out.
    pub fn build(self) -> Url {
        let Self { protocol, user, password, host, port, path, params, volatile, of_place, of_service } =
            self;
        let place = of_place.unwrap_or_else(|| {
            let login = user.map(|user| Box::new(Login { user, password }));
            Arc::new(Place::new(login, host, port, volatile.timestamp))
        });
        let service = of_service.unwrap_or_else(|| {
            let params = match params {
                Draft::Shared(params) => params,
                Draft::Own(entries) => Params::from_sorted(entries),
            };
            Arc::new(Service::new(protocol, path, params, volatile.pid))
        });
        Url::of(place, service)
    }

    /// The URL, or an error where [`UrlBuilder::build`] leaves something out.
    ///
    /// # Errors
    /// A password without a user.
    pub fn try_build(self) -> Result<Url, UrlError> {
        if self.password.is_some() && self.user.is_none() {
            return Err(UrlError::PasswordWithoutUser { address: format!("{}:{}", self.host, self.port) });
        }
        Ok(self.build())
    }

    /// Takes a whole set in place of all parameters but `pid` and `timestamp`.
    pub(crate) fn shared_params(mut self, params: Params) -> Self {
        self.params = Draft::Shared(params);
        self.of_service = None;
        self
    }

    fn get(&self, key: &str) -> Option<&str> {
        if Volatile::owns(key) {
            return self.volatile.get(key);
        }
        match &self.params {
            Draft::Shared(params) => params.raw(key),
            Draft::Own(entries) => {
                let at = entries.binary_search_by(|(name, _)| cmp_names(name, key)).ok()?;
                Some(&entries[at].1)
            }
        }
    }

    fn set(&mut self, key: &str, value: &str) {
        if key.is_empty() || value.is_empty() || self.get(key) == Some(value) {
            return;
        }
        if Volatile::owns(key) {
            self.set_volatile(key, Some(value));
        } else {
            set_sorted(self.entries(), key, Arc::from(value));
        }
    }

    fn remove(&mut self, key: &str) {
        if self.get(key).is_none() {
            return;
        }
        if Volatile::owns(key) {
            self.set_volatile(key, None);
        } else {
            self.entries().retain(|(name, _)| &**name != key);
        }
    }

    fn set_volatile(&mut self, key: &str, value: Option<&str>) {
        self.volatile.set(key, value);
        if key == keys::PID {
            self.of_service = None;
        } else {
            self.of_place = None;
        }
    }

    fn entries(&mut self) -> &mut Vec<Entry> {
        self.of_service = None;
        if let Draft::Shared(params) = &self.params {
            self.params = Draft::Own(params.entries().to_vec());
        }
        match &mut self.params {
            Draft::Own(entries) => entries,
            Draft::Shared(_) => unreachable!("replaced above"),
        }
    }
}

impl fmt::Debug for UrlBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UrlBuilder({})", self.clone().build())
    }
}
