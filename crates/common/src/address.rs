//! Addresses: those of a registry as a user writes them, further servers, and IPv6.

use std::borrow::Cow;

use crate::defaults::{DEFAULT_REGISTRY_PORT, REGISTRY_SERVICE};
use crate::error::{UrlError, excerpt};
use crate::keys;
use crate::matching::list_items;
use crate::parse;
use crate::url::Url;

/// Reads a configured registry address: one or more addresses separated by `|` or `;`.
///
/// Each is `protocol://host:port?backup=host:port,host:port`, or a comma list `host:port,host:port`, with or without
/// protocol. What an address does not say is taken from `defaults`: protocol (else `dubbo`), user, password, path,
/// port (else 9090) and each parameter. `N/A` in any case means no registry and gives nothing.
///
/// # Errors
/// An address is empty or cannot be read.
pub fn parse_registry_address(text: &str, defaults: &Url) -> Result<Vec<Url>, UrlError> {
    if text.trim().is_empty() {
        return Err(UrlError::EmptyAddress { text: excerpt(text) });
    }
    text.split(['|', ';'])
        .map(str::trim)
        .filter(|address| !address.is_empty() && !address.eq_ignore_ascii_case("N/A"))
        .map(|address| parse_one(address, defaults))
        .collect()
}

/// The URL a registry is configured by, made from its address: path and protocol are fixed, the real protocol moves
/// into the parameter `registry`. `registry-type=service` asks for discovery by application,
/// `registry-protocol-type` for a protocol of that name.
pub fn to_registry_url(address: &Url) -> Url {
    let protocol = if address.param(keys::REGISTRY_TYPE) == Some("service") {
        keys::protocol::SERVICE_DISCOVERY_REGISTRY
    } else {
        address.param_or(keys::REGISTRY_PROTOCOL_TYPE, keys::protocol::REGISTRY)
    };
    address
        .to_builder()
        .protocol(protocol)
        .path(REGISTRY_SERVICE)
        .param(keys::REGISTRY, address.protocol())
        .without_param(keys::REGISTRY_PROTOCOL_TYPE)
        .build()
}

/// The address of the registry that a URL made by [`to_registry_url`] stands for: its protocol is the parameter
/// `registry`, or `dubbo` without it.
pub fn to_real_registry_url(registry: &Url) -> Url {
    let protocol = registry.param_or(keys::REGISTRY, keys::protocol::DUBBO);
    registry.to_builder().protocol(protocol).without_param(keys::REGISTRY).build()
}

fn parse_one(address: &str, defaults: &Url) -> Result<Url, UrlError> {
    let (before, params) = address.split_once('?').map_or((address, ""), |(before, params)| (before, params));
    let (protocol, rest) = before.split_once("://").map_or(("", before), |(protocol, rest)| (protocol, rest));
    let (authority, path) = rest.split_once('/').map_or((rest, ""), |(authority, path)| (authority, path));
    // A comma in a password does not separate servers.
    let servers_at = authority.rfind('@').map_or(0, |at| at + 1);
    let (login, servers) = authority.split_at(servers_at);
    let mut servers = list_items(servers);
    let main = servers.next().ok_or_else(|| UrlError::EmptyAddress { text: excerpt(address) })?;
    let separator = if protocol.is_empty() { "" } else { "://" };
    let url = Url::parse(&format!("{protocol}{separator}{login}{main}/{path}?{params}"))?;
    if url.host().is_empty() {
        return Err(UrlError::EmptyAddress { text: excerpt(address) });
    }

    let mut backups: Vec<&str> = Vec::new();
    for server in servers.chain(url.param(keys::BACKUP).map(list_items).into_iter().flatten()) {
        if !backups.contains(&server) {
            backups.push(server);
        }
    }
    let mut builder = url.to_builder().host(url.host()).param(keys::BACKUP, backups.join(","));
    if url.protocol().is_empty() {
        let protocol = defaults.protocol();
        builder = builder.protocol(if protocol.is_empty() { keys::protocol::DUBBO } else { protocol });
    }
    if let (None, Some(user)) = (url.user(), defaults.user()) {
        builder = builder.user(user);
    }
    if let (None, Some(password)) = (url.password(), defaults.password()) {
        builder = builder.password(password);
    }
    if let (None, Some(path)) = (url.path(), defaults.path()) {
        builder = builder.path(path);
    }
    if url.port() == 0 {
        builder = builder.port(if defaults.port() == 0 { DEFAULT_REGISTRY_PORT } else { defaults.port() });
    }
    for (name, value) in defaults.params() {
        builder = builder.param_if_absent(name, value);
    }
    Ok(builder.build())
}

impl Url {
    /// This URL with another `host:port`; a host alone keeps the port.
    ///
    /// # Errors
    /// What follows the colon is not a port.
    pub fn with_address(&self, address: &str) -> Result<Self, UrlError> {
        let body = parse::body(address)?;
        let port = if body.port == 0 { self.port() } else { body.port };
        Ok(self.to_builder().host(body.host).port(port).build())
    }

    /// The main address and those of `backup`, each with `default_port` where it has none (0: leave it out).
    pub fn backup_addresses(&self, default_port: u16) -> Vec<String> {
        let main = self.address();
        let all =
            std::iter::once(&*main).chain(self.param(keys::BACKUP).map(list_items).into_iter().flatten());
        all.map(|address| with_default_port(address, default_port)).collect()
    }

    /// The host to connect to: an IPv6 address without brackets and without the scope that only its own machine
    /// understands.
    pub fn connect_host(&self) -> &str {
        connect_host(self.host())
    }

    /// Whether the host stands for every interface.
    pub fn is_any_host(&self) -> bool {
        self.host() == keys::ANYHOST_VALUE || self.bool_param(keys::ANYHOST, false)
    }

    /// Whether the host is this machine: `localhost` or `127.…`.
    pub fn is_local_host(&self) -> bool {
        self.host() == "localhost"
            || self.host().parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback())
            || self.bool_param("localhost", false)
    }
}

/// A host without brackets and scope.
pub fn connect_host(host: &str) -> &str {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    match bare.split_once('%') {
        Some((address, _)) if address.contains(':') => address,
        _ => bare,
    }
}

fn with_default_port(address: &str, default_port: u16) -> String {
    match parse::body(address) {
        Ok(body) if body.port == 0 && default_port > 0 => format!("{}:{default_port}", bracketed(body.host)),
        // With a port, or not an address we understand: what is there is what the user gets.
        _ => address.to_owned(),
    }
}

/// A bare IPv6 address with brackets, anything else as it is.
pub(crate) fn bracketed(host: &str) -> Cow<'_, str> {
    if parse::is_ipv6(host) { Cow::Owned(format!("[{host}]")) } else { Cow::Borrowed(host) }
}
