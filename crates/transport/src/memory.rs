//! Connections inside one process.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use dubhe_core::transport::{Accept, Channel, Endpoint, Listener, TransportError, Transporter};
use parking_lot::Mutex;

use crate::connection;

/// Bytes in flight per direction, as a socket buffer has.
const PIPE: usize = 64 * 1024;

/// First port given out; the range is the one that operating systems use for the same purpose.
const FIRST_FREE_PORT: u16 = 49_152;

/// A network in memory: what listens on a port of it can be reached through it and its clones, by any host name.
///
/// Addresses are made up: loopback, with free ports from 49152 on.
#[derive(Clone, Debug, Default)]
pub struct MemoryTransporter {
    network: Arc<Network>,
}

#[derive(Debug, Default)]
struct Network {
    listening: Mutex<HashMap<u16, Arc<dyn Accept>>>,
    given_out: AtomicU16,
}

impl MemoryTransporter {
    /// A network where nobody listens yet.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Network {
    fn free_port(&self) -> u16 {
        let given_out = self.given_out.fetch_add(1, Ordering::Relaxed);
        FIRST_FREE_PORT + given_out % (u16::MAX - FIRST_FREE_PORT)
    }
}

#[async_trait]
impl Transporter for MemoryTransporter {
    async fn connect(
        &self,
        endpoint: &Endpoint,
        _timeout: Duration,
        receiver: Arc<dyn Accept>,
    ) -> Result<Arc<dyn Channel>, TransportError> {
        let failed = |reason: &str| TransportError::Connect {
            endpoint: endpoint.to_string(),
            reason: reason.to_owned(),
        };
        let listening = self.network.listening.lock().get(&endpoint.port).cloned();
        let accept = listening.ok_or_else(|| failed("connection refused"))?;
        let server = SocketAddr::from((Ipv4Addr::LOCALHOST, endpoint.port));
        let client = SocketAddr::from((Ipv4Addr::LOCALHOST, self.network.free_port()));
        let (near, far) = tokio::io::duplex(PIPE);
        let (reader, writer) = tokio::io::split(far);
        // The handle may be dropped by the acceptor: its business. A refusal shows as an end of stream, as with TCP.
        connection::open(reader, writer, client, server, &*accept);
        let (reader, writer) = tokio::io::split(near);
        connection::open(reader, writer, server, client, &*receiver)
            .ok_or_else(|| failed("refused by the receiver"))
    }

    async fn listen(
        &self,
        address: SocketAddr,
        accept: Arc<dyn Accept>,
    ) -> Result<Box<dyn Listener>, TransportError> {
        let mut listening = self.network.listening.lock();
        let port = match address.port() {
            0 => std::iter::repeat_with(|| self.network.free_port())
                .take(usize::from(u16::MAX - FIRST_FREE_PORT))
                .find(|port| !listening.contains_key(port))
                .unwrap_or(0),
            port => port,
        };
        if port == 0 || listening.contains_key(&port) {
            return Err(TransportError::Listen { address, source: io::ErrorKind::AddrInUse.into() });
        }
        listening.insert(port, accept);
        Ok(Box::new(Listening {
            network: Arc::clone(&self.network),
            local: SocketAddr::new(address.ip(), port),
        }))
    }
}

#[derive(Debug)]
struct Listening {
    network: Arc<Network>,
    local: SocketAddr,
}

impl Listening {
    fn end(&self) {
        self.network.listening.lock().remove(&self.local.port());
    }
}

#[async_trait]
impl Listener for Listening {
    fn local_addr(&self) -> SocketAddr {
        self.local
    }

    async fn stop(&self) {
        self.end();
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.end();
    }
}
