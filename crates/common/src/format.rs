//! The text forms of a URL and the keys made of its parts.

use crate::keys;
use crate::service_key::write_service_key;
use crate::url::Url;

impl Url {
    /// Everything, user info included. For registries, never for logs.
    pub fn to_full_string(&self) -> String {
        let mut text = self.to_identity_string();
        self.push_params(&mut text);
        text
    }

    /// Everything but the user info. For logs.
    pub fn to_plain_string(&self) -> String {
        let mut text = String::with_capacity(128);
        self.push_protocol(&mut text);
        self.push_address(&mut text);
        self.push_path(&mut text, self.path().unwrap_or_default());
        self.push_params(&mut text);
        text
    }

    /// The full string without parameters.
    pub fn to_identity_string(&self) -> String {
        self.without_params_and_with_path(self.path().unwrap_or_default())
    }

    /// The full string without parameters and with the service key as path: what a registry connection is known by.
    pub fn to_service_string(&self) -> String {
        self.without_params_and_with_path(&self.service_key())
    }

    /// The parameters, without `?`.
    pub fn to_parameter_string(&self) -> String {
        let mut text = String::new();
        self.push_params(&mut text);
        if !text.is_empty() {
            text.remove(0);
        }
        text
    }

    /// `host:port`, or the host alone if there is no port.
    pub fn address(&self) -> String {
        let mut text = String::with_capacity(self.host().len() + 6);
        self.push_address(&mut text);
        text
    }

    /// `user:password@host:port` as far as there is each.
    pub fn authority(&self) -> String {
        let login = self.user_information();
        if login.is_empty() { self.address() } else { format!("{login}@{}", self.address()) }
    }

    /// `user:password`, with the colon even if there is no password; empty if there is no user.
    pub fn user_information(&self) -> String {
        match self.user() {
            Some(user) => format!("{user}:{}", self.password().unwrap_or_default()),
            None => String::new(),
        }
    }

    /// Parameter `interface`, else the path, else empty.
    pub fn service_interface(&self) -> &str {
        self.param(keys::INTERFACE).or_else(|| self.path()).unwrap_or_default()
    }

    /// `group/interface:version`; what is empty is left out with its separator. Empty without an interface.
    pub fn service_key(&self) -> String {
        self.key_of(self.service_interface())
    }

    /// As [`Url::service_key`] with the path, or else the interface.
    pub fn path_key(&self) -> String {
        self.key_of(self.path().unwrap_or_else(|| self.service_interface()))
    }

    /// `interface:version`, without the group.
    pub fn display_service_key(&self) -> String {
        write_service_key(None, self.service_interface(), self.version())
    }

    /// The service key, `:` and the protocol; the service key alone for protocol `consumer`.
    pub fn protocol_service_key(&self) -> String {
        if self.protocol() == keys::protocol::CONSUMER {
            return self.service_key();
        }
        format!("{}:{}", self.service_key(), self.protocol())
    }

    /// `interface:version:group` with both colons always: what rules of a configuration centre are filed under.
    pub fn colon_separated_key(&self) -> String {
        let version = self.version().unwrap_or_default();
        format!("{}:{version}:{}", self.service_interface(), self.group().unwrap_or_default())
    }

    /// Parameter `group`.
    pub fn group(&self) -> Option<&str> {
        self.param(keys::GROUP)
    }

    /// Parameter `version`.
    pub fn version(&self) -> Option<&str> {
        self.param(keys::VERSION)
    }

    /// Parameter `category`; `providers` where it is missing.
    pub fn category(&self) -> &str {
        self.param_or(keys::CATEGORY, keys::category::PROVIDERS)
    }

    /// Parameter `side`: any text, not only the two known ones.
    pub fn side(&self) -> Option<&str> {
        self.param(keys::SIDE)
    }

    /// Parameter `application`.
    pub fn application(&self) -> Option<&str> {
        self.param(keys::APPLICATION)
    }

    fn key_of(&self, interface: &str) -> String {
        write_service_key(self.group(), interface, self.version())
    }

    fn without_params_and_with_path(&self, path: &str) -> String {
        let mut text = String::with_capacity(128);
        self.push_protocol(&mut text);
        if let Some(user) = self.user() {
            text.push_str(user);
            if let Some(password) = self.password().filter(|password| !password.is_empty()) {
                text.push(':');
                text.push_str(password);
            }
            text.push('@');
        }
        self.push_address(&mut text);
        self.push_path(&mut text, path);
        text
    }

    fn push_protocol(&self, text: &mut String) {
        if !self.protocol().is_empty() {
            text.push_str(self.protocol());
            text.push_str("://");
        }
    }

    fn push_address(&self, text: &mut String) {
        text.push_str(self.host());
        if self.port() > 0 {
            text.push(':');
            text.push_str(&self.port().to_string());
        }
    }

    fn push_path(&self, text: &mut String, path: &str) {
        if !path.is_empty() {
            text.push('/');
            text.push_str(path);
        }
    }

    fn push_params(&self, text: &mut String) {
        let mut separator = '?';
        for (name, value) in self.params() {
            text.push(separator);
            text.push_str(name);
            text.push('=');
            text.push_str(value.trim());
            separator = '&';
        }
    }
}
