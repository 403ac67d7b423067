//! TCP.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dubhe_core::transport::{Accept, Channel, Endpoint, Listener, TransportError, Transporter};
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::connection;

/// Silence of one address after which the next one of the same host is tried beside it (RFC 8305).
const NEXT_ADDRESS: Duration = Duration::from_millis(250);

/// Pause after a failed accept (out of file descriptors), so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Connections that wait to be accepted, at most: what tokio and the standard library ask for.
const BACKLOG: u32 = 1_024;

/// Connections over TCP: no delay, keep-alive, IPv4 and IPv6.
///
/// Listening on `[::]` is listening on all IPv4 addresses too, where the system can do that. Addresses of such IPv4 connections
/// are told as IPv4 addresses.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpTransporter;

impl TcpTransporter {
    /// A TCP transporter.
    pub const fn new() -> Self {
        Self
    }
}

#[async_trait]
impl Transporter for TcpTransporter {
    async fn connect(
        &self,
        endpoint: &Endpoint,
        timeout: Duration,
        receiver: Arc<dyn Accept>,
    ) -> Result<Arc<dyn Channel>, TransportError> {
        let failed = |reason: String| TransportError::Connect { endpoint: endpoint.to_string(), reason };
        let stream = match tokio::time::timeout(timeout, dial(endpoint)).await {
            Ok(dialled) => dialled.map_err(|error| failed(error.to_string()))?,
            Err(_) => return Err(failed(format!("no answer within {} ms", timeout.as_millis()))),
        };
        serve(stream, &*receiver)
            .map_err(|error| failed(error.to_string()))?
            .ok_or_else(|| failed("refused by the receiver".to_owned()))
    }

    async fn listen(
        &self,
        address: SocketAddr,
        accept: Arc<dyn Accept>,
    ) -> Result<Box<dyn Listener>, TransportError> {
        let failed = |source| TransportError::Listen { address, source };
        let listener = bind(address).map_err(failed)?;
        let local = listener.local_addr().map_err(failed)?;
        let (stop, stopped) = watch::channel(false);
        let accepting = tokio::spawn(accept_all(listener, accept, stopped));
        Ok(Box::new(Listening { local, stop, accepting: Mutex::new(Some(accepting)) }))
    }
}

/// Connects to the first address of `endpoint` that answers.
async fn dial(endpoint: &Endpoint) -> io::Result<TcpStream> {
    let resolved = tokio::net::lookup_host((&*endpoint.host, endpoint.port)).await?;
    let mut addresses = in_turns(resolved);
    let mut attempts = JoinSet::new();
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    loop {
        if let Some(address) = addresses.pop_front() {
            attempts.spawn(TcpStream::connect(address));
        } else if attempts.is_empty() {
            return Err(failure);
        }
        let last = addresses.is_empty();
        tokio::select! {
            Some(attempt) = attempts.join_next() => match attempt {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => failure = error,
                Err(error) => failure = io::Error::other(error),
            },
            () = tokio::time::sleep(NEXT_ADDRESS), if !last => {}
        }
    }
}

/// The families in turns, the first one as the resolver prefers it.
fn in_turns(addresses: impl Iterator<Item = SocketAddr>) -> VecDeque<SocketAddr> {
    let addresses: Vec<_> = addresses.collect();
    let prefer_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == prefer_v6);
    let mut turns = VecDeque::with_capacity(first.len() + second.len());
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    loop {
        match (first.next(), second.next()) {
            (None, None) => return turns,
            (a, b) => turns.extend(a.into_iter().chain(b)),
        }
    }
}

fn serve(stream: TcpStream, accept: &dyn Accept) -> io::Result<Option<Arc<dyn Channel>>> {
    stream.set_nodelay(true)?;
    socket2::SockRef::from(&stream).set_keepalive(true)?;
    let (peer, local) = (canonical(stream.peer_addr()?), canonical(stream.local_addr()?));
    let (reader, writer) = stream.into_split();
    Ok(connection::open(reader, writer, peer, local, accept))
}

/// An IPv4 address that an IPv6 socket tells as `::ffff:a.b.c.d`, as what it is.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
        IpAddr::V6(_) => address,
    }
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // On Windows it would let others take the port.
    #[cfg(not(windows))]
    socket.set_reuseaddr(true)?;
    if address.is_ipv6() && address.ip().is_unspecified() {
        let both = socket2::SockRef::from(&socket).set_only_v6(false);
        if let Err(error) = both {
            tracing::debug!(%error, local.addr = %address, "listening on IPv6 only");
        }
    }
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

async fn accept_all(listener: TcpListener, accept: Arc<dyn Accept>, mut stopped: watch::Receiver<bool>) {
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stopped.wait_for(|stop| *stop) => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                if let Err(error) = serve(stream, &*accept) {
                    tracing::debug!(%error, peer.addr = %peer, "accepted connection failed");
                }
            }
            Err(error) => {
                tracing::warn!(%error, "accepting failed");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

#[derive(Debug)]
struct Listening {
    local: SocketAddr,
    /// Dropped with the listener, which ends the accepting task too.
    stop: watch::Sender<bool>,
    accepting: Mutex<Option<JoinHandle<()>>>,
}

#[async_trait]
impl Listener for Listening {
    fn local_addr(&self) -> SocketAddr {
        self.local
    }

    async fn stop(&self) {
        self.stop.send_replace(true);
        let accepting = self.accepting.lock().take();
        if let Some(accepting) = accepting {
            let _ = accepting.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_families_of_a_host_are_tried_in_turns() {
        let addresses = ["[::1]:1", "[::2]:1", "[::3]:1", "127.0.0.1:1"].map(|text| text.parse().unwrap());
        let turns: Vec<String> =
            in_turns(addresses.into_iter()).iter().map(|address: &SocketAddr| address.to_string()).collect();
        assert_eq!(turns, ["[::1]:1", "127.0.0.1:1", "[::2]:1", "[::3]:1"]);
    }
}
