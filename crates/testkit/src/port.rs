//! Loopback ports that two tests never share, in one process or in several.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};

/// Ports handed out: below 32768, where Linux starts to take ports for outgoing connections, so that a server can
/// come back to its port after any time.
const FIRST: u16 = 12_000;
const COUNT: u16 = 20_000;

/// The address on which a port is marked as taken. All of 127/8 is the loopback device on Linux.
const MARK: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 53);

/// A TCP port of 127.0.0.1 that belongs to this value until it is dropped.
///
/// The mark is a listening socket on another loopback address, so it also holds between test processes and goes with
/// the process that made it. The port itself stays closed: connecting to it is refused until somebody listens there.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _mark: TcpListener,
}

impl Port {
    /// Takes a free port.
    ///
    /// # Errors
    /// When a thousand candidates in a row are taken.
    pub fn lease() -> io::Result<Self> {
        let start = RandomState::new().hash_one(std::process::id());
        for step in 0..1_000u64 {
            // 7,919 is prime and no divisor of COUNT: the walk meets every port once.
            let offset = start.wrapping_add(step * 7_919) % u64::from(COUNT);
            let number = FIRST + u16::try_from(offset).expect("COUNT fits into u16");
            let Ok(mark) = TcpListener::bind(SocketAddrV4::new(MARK, number)) else { continue };
            if TcpListener::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, number)).is_ok() {
                return Ok(Self { number, _mark: mark });
            }
        }
        Err(io::Error::new(io::ErrorKind::AddrInUse, "no free port found on 127.0.0.1"))
    }

    /// The port number.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// The port on 127.0.0.1.
    pub fn socket_address(&self) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::LOCALHOST, self.number)
    }

    /// `127.0.0.1:port`.
    pub fn address(&self) -> String {
        self.socket_address().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn leases_differ_while_they_are_held() {
        let leases: Vec<_> = (0..200).map(|_| Port::lease().unwrap()).collect();
        let numbers: HashSet<_> = leases.iter().map(Port::number).collect();
        assert_eq!(numbers.len(), leases.len());
    }

    #[test]
    fn a_leased_port_can_be_bound_by_its_holder() {
        let port = Port::lease().unwrap();
        TcpListener::bind(port.address()).unwrap();
    }
}
