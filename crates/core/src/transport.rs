//! Layer 2, transport: bytes over connections.

use std::fmt::{self, Debug};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};

use crate::BoxFuture;

/// Where a server is: a host name or address, and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// Host name or IP address, IPv6 without brackets.
    pub host: Arc<str>,
    /// Port.
    pub port: u16,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Opens and accepts connections: TCP, or memory.
#[async_trait]
pub trait Transporter: Send + Sync + Debug {
    /// Connects within `timeout`. `receiver` makes the connection's receiver when it is open.
    async fn connect(
        &self,
        endpoint: &Endpoint,
        timeout: Duration,
        receiver: Arc<dyn Accept>,
    ) -> Result<Arc<dyn Channel>, TransportError>;

    /// Listens on `address`; each accepted connection gets a receiver from `accept`.
    async fn listen(
        &self,
        address: SocketAddr,
        accept: Arc<dyn Accept>,
    ) -> Result<Box<dyn Listener>, TransportError>;
}

/// Makes a receiver for a new connection.
pub trait Accept: Send + Sync + Debug {
    /// The receiver of `channel`; `None` refuses the connection, which is then closed.
    fn accept(&self, channel: &Arc<dyn Channel>) -> Option<Box<dyn Receiver>>;
}

/// Takes what comes in over one connection. Called by the connection's reading task only, in order.
pub trait Receiver: Send {
    /// New bytes were appended to `buffer`; take off what is complete. Must not block. An error closes the connection with its text.
    fn received(&mut self, buffer: &mut BytesMut) -> Result<(), String>;

    /// The connection is closed, by whoever; `reason` for people. Called once, last.
    fn closed(&mut self, reason: &str);
}

/// The sending half of a connection. Dropping all handles closes it after what was queued is written.
pub trait Channel: Send + Sync + Debug {
    /// Queues `bytes` for writing; what is queued at the same time is written together, in order. Fails when the connection is closed
    /// or the queue is over its limit.
    fn try_send(&self, bytes: Bytes) -> Result<(), SendError>;

    /// As [`Channel::try_send`], but waits for room.
    fn send(&self, bytes: Bytes) -> BoxFuture<'_, Result<(), SendError>>;

    /// The peer's address.
    fn peer_addr(&self) -> SocketAddr;

    /// The own address.
    fn local_addr(&self) -> SocketAddr;

    /// Whether it is open.
    fn is_open(&self) -> bool;

    /// Closes it: at once, or after what is queued was written (`flush`).
    fn close(&self, flush: bool);
}

/// Bytes could not be queued.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The connection is closed.
    #[error("the connection is closed")]
    Closed,
    /// The peer does not read: the queue is over its limit. The bytes come back.
    #[error("the send queue is full: the peer does not read")]
    Full(Bytes),
}

/// A listening socket.
#[async_trait]
pub trait Listener: Send + Sync + Debug {
    /// The address that it really listens on.
    fn local_addr(&self) -> SocketAddr;

    /// Accepts no more connections; open ones stay.
    async fn stop(&self);
}

/// Why a connection could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The text of the reference, then the cause.
    #[error("failed to connect to server {endpoint}: {reason}")]
    Connect {
        /// `host:port`.
        endpoint: String,
        /// Why.
        reason: String,
    },
    /// Listening failed.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
}
