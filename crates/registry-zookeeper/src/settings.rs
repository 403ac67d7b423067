//! What a registry address says about ZooKeeper.

use std::fmt;
use std::time::Duration;

use dubhe_common::{Url, defaults, keys};
use dubhe_core::tree::TreeError;
use zookeeper_client::Acls;

/// Port of a server when the address has none. Origin: ZooKeeper's own default.
const DEFAULT_PORT: u16 = 2181;

/// Parameter of the packet limit; the name of the server's own setting.
const PACKET_LIMIT: &str = "jute.maxbuffer";

/// Parameter of the chroot.
const CHROOT: &str = "chroot";

/// Longest request in bytes that a server takes unless configured otherwise: it cuts the connection on anything longer.
/// Text form: `jute.maxbuffer`. Origin: `jute.maxbuffer` of ZooKeeper (0xfffff).
pub const DEFAULT_PACKET_LIMIT: usize = 0xf_ffff;

/// How to reach ZooKeeper, read from an address like
/// `zookeeper://user:password@h1:2181?backup=h2:2181,h3:2181&session=60000&timeout=30000`.
///
/// | part | meaning | default |
/// | --- | --- | --- |
/// | `host:port`, `backup` | the servers of one ensemble | port 2181 |
/// | `user:password` | digest authentication; nodes are then made for their creator only | none: open to anyone |
/// | `session` | session timeout, milliseconds | 60,000 (`DEFAULT_SESSION_TIMEOUT_MS`) |
/// | `timeout` | how long one operation may wait for the store, milliseconds | 30,000 (`DEFAULT_CONNECTION_TIMEOUT_MS`) |
/// | `chroot` | node under which all paths lie; made if missing; also as suffix of the last backup (`h2:2181/x`) | none |
/// | `jute.maxbuffer` | longest request that the servers take, bytes | 1,048,575 |
///
/// Answers are not limited: a list of 40,000 names of 1 kB is read as any other.
#[derive(Clone)]
pub struct Settings {
    /// For messages: `zookeeper://h1:2181,h2:2181/chroot`.
    pub(crate) address: String,
    /// For the client: `h1:2181,h2:2181`.
    pub(crate) servers: String,
    /// Put before every path; empty or `/x`.
    pub(crate) chroot: String,
    /// `user:password`.
    pub(crate) login: Option<String>,
    pub(crate) session: Duration,
    pub(crate) timeout: Duration,
    pub(crate) packet_limit: usize,
    pub(crate) session_budget: usize,
    /// Where the next client runs instead of here, so that a test can end it there.
    #[cfg(test)]
    pub(crate) doomed: std::sync::Arc<parking_lot::Mutex<Option<tokio::runtime::Handle>>>,
}

impl Settings {
    /// Reads an address.
    ///
    /// # Errors
    /// No host, an address that cannot be one, or a chroot that is no path.
    pub fn from_url(url: &Url) -> Result<Self, TreeError> {
        let invalid = |what: String| TreeError::Invalid(format!("registry address {url}: {what}"));
        if url.host().is_empty() {
            return Err(invalid("host is missing: write zookeeper://host:port".to_owned()));
        }
        let mut chroot = url.param(CHROOT).unwrap_or_default().to_owned();
        let mut servers = Vec::new();
        let main = url.address();
        for server in std::iter::once(&*main).chain(url.list_param(keys::BACKUP)) {
            let (server, suffix) = server.split_at(server.find('/').unwrap_or(server.len()));
            if !suffix.is_empty() {
                suffix.clone_into(&mut chroot);
            }
            servers.push(with_port(server).ok_or_else(|| invalid(format!("'{server}' is not host:port")))?);
        }
        let servers = servers.join(",");
        let chroot = match chroot.trim_matches('/') {
            "" => String::new(),
            path => format!("/{path}"),
        };
        if chroot.contains("//") {
            return Err(invalid(format!("chroot '{chroot}' is not a path")));
        }
        let login = Some(url.user_information()).filter(|login| !login.is_empty());
        let packet_limit =
            url.param(PACKET_LIMIT).and_then(|text| text.parse().ok()).unwrap_or(DEFAULT_PACKET_LIMIT);
        Ok(Self {
            address: format!("zookeeper://{servers}{chroot}"),
            servers,
            chroot,
            login,
            session: url.duration_param(keys::SESSION, defaults::DEFAULT_SESSION_TIMEOUT),
            timeout: url.duration_param(keys::TIMEOUT, defaults::DEFAULT_REGISTRY_TIMEOUT),
            packet_limit,
            session_budget: crate::ledger::SESSION_BUDGET,
            #[cfg(test)]
            doomed: std::sync::Arc::default(),
        })
    }

    /// Who may do what with the nodes we make. Origin: Curator's `CREATOR_ALL_ACL` as Dubbo sets it with a login.
    pub(crate) fn acls(&self) -> Acls<'static> {
        if self.login.is_some() { Acls::creator_all() } else { Acls::anyone_all() }
    }

    /// The path in the store of a path of ours.
    pub(crate) fn full_path(&self, path: &str) -> std::sync::Arc<str> {
        match path {
            _ if self.chroot.is_empty() => path.into(),
            "/" => self.chroot.as_str().into(),
            _ => format!("{}{path}", self.chroot).into(),
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("address", &self.address)
            .field("session", &self.session)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// `host:port` with the default port where there is none; `None` if it is neither.
fn with_port(server: &str) -> Option<String> {
    let (host, port) = match server.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port),
        _ => (server, ""),
    };
    let blank = |c: char| c.is_whitespace() || c.is_control();
    if host.is_empty() || host.contains(blank) {
        return None;
    }
    match port {
        "" => Some(format!("{host}:{DEFAULT_PORT}")),
        _ => port.parse::<u16>().ok().filter(|port| *port != 0).map(|port| format!("{host}:{port}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(address: &str) -> Settings {
        Settings::from_url(&Url::parse(address).unwrap()).unwrap()
    }

    #[test]
    fn reads_hosts_timeouts_login_and_chroot() {
        let read =
            settings("zookeeper://u:p@h1?backup=h2:2182,h3/a/b&session=4000&timeout=500&jute.maxbuffer=99");
        assert_eq!(read.servers, "h1:2181,h2:2182,h3:2181");
        assert_eq!(read.address, "zookeeper://h1:2181,h2:2182,h3:2181/a/b");
        assert_eq!(read.login.as_deref(), Some("u:p"));
        assert_eq!((read.session, read.timeout), (Duration::from_secs(4), Duration::from_millis(500)));
        assert_eq!(read.packet_limit, 99);
        assert_eq!(&*read.full_path("/dubbo"), "/a/b/dubbo");
        assert_eq!(&*read.full_path("/"), "/a/b");
    }

    #[test]
    fn has_the_defaults_of_dubbo() {
        let read = settings("zookeeper://192.0.2.1:2181");
        assert_eq!((read.session, read.timeout), (Duration::from_secs(60), Duration::from_secs(30)));
        assert_eq!((read.chroot.as_str(), read.login), ("", None));
    }

    #[test]
    fn the_password_is_in_no_message() {
        let read = settings("zookeeper://user:secret@h1:2181");
        assert!(!format!("{read:?} {}", read.address).contains("secret"));
    }

    #[test]
    fn an_address_that_can_never_work_is_refused() {
        for address in ["zookeeper://h1:2181?backup=h2:notaport", "zookeeper://h1:2181?chroot=/a//b"] {
            let error = Settings::from_url(&Url::parse(address).unwrap()).unwrap_err();
            assert!(matches!(error, TreeError::Invalid(_)), "{error}");
        }
    }
}
