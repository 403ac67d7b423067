//! The address that this machine is known by.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};

/// The address that is registered when the configuration names none.
///
/// In this order: the environment variable `DUBBO_IP_TO_REGISTRY`; the address that the machine would use to reach `target`
/// (`host:port` of the registry; nothing is sent); the loopback address.
pub(crate) fn to_register(target: Option<&str>) -> String {
    if let Ok(ip) = std::env::var("DUBBO_IP_TO_REGISTRY")
        && !ip.trim().is_empty()
    {
        return ip.trim().to_owned();
    }
    let ip = target.and_then(towards).unwrap_or(IpAddr::from([127, 0, 0, 1]));
    match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

/// The own address of a datagram socket that is connected to `target`: connecting one sends nothing.
fn towards(target: &str) -> Option<IpAddr> {
    let target = target.to_socket_addrs().ok()?.next()?;
    let any: SocketAddr = if target.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0_u16; 8], 0).into() };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(target).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_on_loopback_is_reached_from_loopback() {
        assert_eq!(towards("127.0.0.1:2181"), Some(IpAddr::from([127, 0, 0, 1])));
    }

    #[test]
    fn an_unknown_target_falls_back() {
        assert_eq!(towards("not an address"), None);
    }
}
