//! What URLs say about connections and servers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use dubhe_common::address::connect_host;
use dubhe_common::defaults::{
    DEFAULT_CONNECT_TIMEOUT, DEFAULT_HEARTBEAT, DEFAULT_HEARTBEAT_MISSES, DEFAULT_PAYLOAD, DEFAULT_THREADS,
};
use dubhe_common::{Url, keys};
use dubhe_core::exchange::{ClientOptions, ServerOptions};

/// Most connections to one provider that a URL may ask for: a registry must not make a process run out of sockets.
const MOST_CONNECTIONS: i64 = 64;

/// The settings of a consumer's connection. What is malformed has its default.
pub(crate) fn client_options(url: &Url) -> ClientOptions {
    let heartbeat = url.duration_param(keys::HEARTBEAT, DEFAULT_HEARTBEAT);
    let silence = url.duration_param(keys::HEARTBEAT_TIMEOUT, heartbeat * DEFAULT_HEARTBEAT_MISSES);
    ClientOptions {
        connect_timeout: url.duration_param(keys::CONNECT_TIMEOUT, DEFAULT_CONNECT_TIMEOUT),
        heartbeat,
        // Less would end connections between two heartbeats. The reference refuses such a URL.
        heartbeat_timeout: silence.max(heartbeat * 2),
        payload: payload(url),
        lazy: url.bool_param(keys::LAZY, false),
        reconnect: url.param(keys::RECONNECT).is_none_or(|value| !value.eq_ignore_ascii_case("false")),
    }
}

/// Connections of the invoker's own; 0 to share.
pub(crate) fn own_connections(url: &Url) -> usize {
    count(url, keys::CONNECTIONS, 0)
}

/// Connections to one address that are shared.
pub(crate) fn shared_connections(url: &Url) -> usize {
    count(url, keys::SHARE_CONNECTIONS, 1).max(1)
}

/// The settings of a server.
pub(crate) fn server_options(url: &Url) -> ServerOptions {
    let client = client_options(url);
    ServerOptions {
        idle_timeout: client.heartbeat_timeout,
        payload: client.payload,
        threads: positive(url, keys::THREADS).unwrap_or(DEFAULT_THREADS),
        accepts: positive(url, keys::ACCEPTED_CONNECTIONS).unwrap_or(0),
    }
}

/// Where a service is to be served: `bind.ip` and `bind.port`, else the URL's own; everywhere when it says so or when
/// its host is a name. Everywhere is `[::]` (IPv4 too, where the system can do that) if the address that consumers are given
/// is one of IPv6 or if `bind.ip` says so, else `0.0.0.0`.
pub(crate) fn bind_address(url: &Url) -> SocketAddr {
    let told = url.connect_host();
    let host = url.param(keys::BIND_IP).map_or(told, connect_host);
    let port = url.int_param(keys::BIND_PORT, 0).ok().and_then(|port| u16::try_from(port).ok());
    let port = port.filter(|port| *port != 0).unwrap_or_else(|| url.port());
    let everywhere = if is_v6(told) || is_v6(host) {
        IpAddr::V6(Ipv6Addr::UNSPECIFIED)
    } else {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED)
    };
    let ip = match host.parse::<IpAddr>() {
        _ if url.bool_param(keys::ANYHOST, false) => everywhere,
        Ok(ip) if ip.is_unspecified() => everywhere,
        Ok(ip) => ip,
        Err(_) if host.eq_ignore_ascii_case("localhost") => IpAddr::V4(Ipv4Addr::LOCALHOST),
        Err(_) => everywhere,
    };
    SocketAddr::new(ip, port)
}

fn is_v6(host: &str) -> bool {
    host.parse::<Ipv6Addr>().is_ok()
}

fn payload(url: &Url) -> usize {
    match url.int_param(keys::PAYLOAD, DEFAULT_PAYLOAD as i64) {
        Ok(bytes) => usize::try_from(bytes).unwrap_or(0),
        Err(_) => DEFAULT_PAYLOAD,
    }
}

fn count(url: &Url, key: &str, default: i64) -> usize {
    let count = url.int_param(key, default).unwrap_or(default).clamp(0, MOST_CONNECTIONS);
    usize::try_from(count).unwrap_or(0)
}

fn positive(url: &Url, key: &str) -> Option<usize> {
    url.int_param(key, 0).ok().and_then(|value| usize::try_from(value).ok()).filter(|value| *value > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_listens_where_its_consumers_are_sent() {
        for (url, bound) in [
            ("dubbo://192.0.2.1:20880/a.B", "192.0.2.1:20880"),
            ("dubbo://192.0.2.1:20880/a.B?anyhost=true&bind.ip=0.0.0.0", "0.0.0.0:20880"),
            ("dubbo://192.0.2.1:20880/a.B?bind.ip=0.0.0.0&bind.port=20990", "0.0.0.0:20990"),
            ("dubbo://provider.example:20880/a.B", "0.0.0.0:20880"),
            ("dubbo://localhost:20880/a.B", "127.0.0.1:20880"),
            ("dubbo://[2001:db8::1]:20880/a.B", "[2001:db8::1]:20880"),
            ("dubbo://[2001:db8::1]:20880/a.B?bind.ip=::1", "[::1]:20880"),
            ("dubbo://[2001:db8::1]:20880/a.B?anyhost=true", "[::]:20880"),
            ("dubbo://[2001:db8::1]:20880/a.B?anyhost=true&bind.ip=0.0.0.0", "[::]:20880"),
            ("dubbo://[fe80::1%25eth0]:20880/a.B?anyhost=true", "[::]:20880"),
            ("dubbo://192.0.2.1:20880/a.B?anyhost=true&bind.ip=::", "[::]:20880"),
            ("dubbo://192.0.2.1:20880/a.B?anyhost=true&bind.ip=[::]", "[::]:20880"),
        ] {
            assert_eq!(bind_address(&Url::parse(url).unwrap()).to_string(), bound, "{url}");
        }
    }
}
