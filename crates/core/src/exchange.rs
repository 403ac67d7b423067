//! Layer 3, exchange: requests and responses over one connection.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use tokio::sync::watch;

use crate::BoxFuture;
use crate::transport::Endpoint;

/// Bytes that every outgoing buffer leaves free at its beginning; the exchange layer puts the frame's header there, so that a message is
/// written from one buffer. The size of the dubbo header.
pub const HEADROOM: usize = 16;

/// Status bytes of responses.
pub mod status {
    /// The body is a result.
    pub const OK: u8 = 20;
    /// A value could not be encoded (3.3).
    pub const SERIALIZATION_ERROR: u8 = 25;
    /// Local: not written in time.
    pub const CLIENT_TIMEOUT: u8 = 30;
    /// Local: written, no answer in time.
    pub const SERVER_TIMEOUT: u8 = 31;
    /// Local: the connection went away.
    pub const CHANNEL_INACTIVE: u8 = 35;
    /// The provider could not decode the request, or refuses to look for a service.
    pub const BAD_REQUEST: u8 = 40;
    /// The provider could not encode its response.
    pub const BAD_RESPONSE: u8 = 50;
    /// The provider failed outside the service.
    pub const SERVICE_ERROR: u8 = 70;
    /// The provider could not dispatch the request.
    pub const SERVER_ERROR: u8 = 80;
    /// Local: the response could not be used.
    pub const CLIENT_ERROR: u8 = 90;
    /// The provider's pool is full.
    pub const THREADPOOL_EXHAUSTED: u8 = 100;
}

/// Opens and accepts connections that carry requests.
#[async_trait]
pub trait Exchanger: Send + Sync + Debug {
    /// A client of `endpoint`. Returns at once; it connects in the background (unless lazy) and again, with growing pauses, whenever the
    /// connection is lost, until it is closed or dropped. Requests that the server sends back (callbacks) are given to `callbacks`.
    /// Called within a tokio runtime.
    fn connect(
        &self,
        endpoint: Endpoint,
        options: ClientOptions,
        callbacks: Arc<dyn RequestHandler>,
    ) -> Arc<dyn ExchangeClient>;

    /// A server at `address`; every request is given to `handler`.
    async fn bind(
        &self,
        address: SocketAddr,
        options: ServerOptions,
        handler: Arc<dyn RequestHandler>,
    ) -> Result<Arc<dyn ExchangeServer>, ExchangeError>;
}

/// One client connection for many calls at once.
///
/// Promises: a dropped future removes its pending entry, and a late answer to it is dropped; when the connection is lost every pending
/// request fails at once; ids are private to the connection.
pub trait ExchangeClient: Send + Sync + Debug {
    /// Sends `frame` ([`HEADROOM`] free bytes, then the body) and waits for its response, at most `timeout` in all. While the first
    /// connection is being made it waits for that; while a lost one is being made again it fails at once.
    fn request(
        &self,
        serialization: u8,
        frame: BytesMut,
        timeout: Duration,
    ) -> BoxFuture<'_, Result<ResponseFrame, ExchangeError>>;

    /// Sends `frame` as a one-way request: done when it is queued for writing.
    fn send(
        &self,
        serialization: u8,
        frame: BytesMut,
        timeout: Duration,
    ) -> BoxFuture<'_, Result<(), ExchangeError>>;

    /// The connection's state: one atomic load.
    fn state(&self) -> ConnectionState;

    /// The state, now and from now on.
    fn states(&self) -> watch::Receiver<ConnectionState>;

    /// Tries a lost connection again now instead of at the end of the pause, because there is news of the server; without effect while
    /// it is open.
    fn retry_now(&self);

    /// Waits until no request is pending, at most `grace`, then closes; the rest fails. New requests fail at once.
    fn close(&self, grace: Duration) -> BoxFuture<'_, ()>;
}

/// The state of a client connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConnectionState {
    /// The first connection is being made, or will be at the first request (lazy).
    Connecting,
    /// Open.
    Connected,
    /// Open, but the peer wants no more calls: it is about to stop.
    ReadOnly,
    /// Lost, or the first attempt failed; it is tried again.
    Disconnected,
    /// Closed for good.
    Closed,
}

/// A response as it came in.
#[derive(Clone, Debug)]
pub struct ResponseFrame {
    /// See [`status`].
    pub status: u8,
    /// Serialization id of the body.
    pub serialization: u8,
    /// The body.
    pub body: Bytes,
}

/// A request as it came in.
#[derive(Clone, Debug)]
pub struct RequestFrame {
    /// Whether an answer is wanted.
    pub two_way: bool,
    /// Serialization id of the body.
    pub serialization: u8,
    /// The body.
    pub body: Bytes,
    /// Who sent it.
    pub peer: SocketAddr,
    /// Where it came in.
    pub local: SocketAddr,
}

/// An answer to a request.
#[derive(Debug)]
pub struct Reply {
    /// See [`status`].
    pub status: u8,
    /// Serialization id of the body.
    pub serialization: u8,
    /// [`HEADROOM`] free bytes, then the body.
    pub frame: BytesMut,
}

/// Serves the requests of a server, or those that a server sends back over a client's connection.
pub trait RequestHandler: Send + Sync + Debug {
    /// Handles one request. The answer to a one-way request is dropped. Runs in a task of its own, to its end even when the peer goes
    /// away meanwhile: what a service began is not cut off in the middle. A panic is answered with status 70.
    fn handle(&self, request: RequestFrame) -> BoxFuture<'static, Reply>;

    /// The answer to a request that the server does not give to [`RequestHandler::handle`], because `status` tells why (pool exhausted, over
    /// the payload limit): `text` in the serialization `serialization`.
    fn refuse(&self, status: u8, serialization: u8, text: &str) -> Reply;
}

/// A listening server.
#[async_trait]
pub trait ExchangeServer: Send + Sync + Debug {
    /// The address that it really listens on.
    fn local_addr(&self) -> SocketAddr;

    /// Stops accepting, tells all peers that no more calls are wanted (one-way read-only event), and waits until no request is being served,
    /// at most `grace`.
    async fn drain(&self, grace: Duration);

    /// Closes all connections. Idempotent.
    async fn close(&self);
}

/// Settings of a client connection. Defaults are Dubbo's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClientOptions {
    /// How long one attempt to connect may take (`connect.timeout`, 3 s).
    pub connect_timeout: Duration,
    /// Silence after which a heartbeat is sent (`heartbeat`, 60 s).
    pub heartbeat: Duration,
    /// Silence after which the connection is made anew (`heartbeat.timeout`, 3 heartbeats).
    pub heartbeat_timeout: Duration,
    /// Largest body in bytes, both ways (`payload`, 8 MiB; 0 = unlimited).
    pub payload: usize,
    /// Connect at the first request only (`lazy`, false).
    pub lazy: bool,
    /// Make a lost connection again (`reconnect`, true).
    pub reconnect: bool,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(3),
            heartbeat: Duration::from_secs(60),
            heartbeat_timeout: Duration::from_secs(180),
            payload: 8 * 1024 * 1024,
            lazy: false,
            reconnect: true,
        }
    }
}

/// Settings of a server. Defaults are Dubbo's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOptions {
    /// Silence in both directions after which a connection is closed (`heartbeat.timeout`, 180 s).
    pub idle_timeout: Duration,
    /// Largest body in bytes, both ways (`payload`, 8 MiB; 0 = unlimited).
    pub payload: usize,
    /// Requests served at once (`threads`, 200); beyond it the answer is status 100. Heartbeats do not count.
    pub threads: usize,
    /// Connections accepted at once (`accepts`, 0 = unlimited).
    pub accepts: usize,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self { idle_timeout: Duration::from_secs(180), payload: 8 * 1024 * 1024, threads: 200, accepts: 0 }
    }
}

/// Why an exchange failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExchangeError {
    /// No connection: nothing was written.
    #[error("not connected to {endpoint}: {reason}")]
    NotConnected {
        /// `host:port`.
        endpoint: String,
        /// Why, and what is being done.
        reason: String,
    },
    /// The connection was lost after the request was handed over.
    #[error("the connection to {endpoint} was lost: {reason}")]
    Lost {
        /// `host:port`.
        endpoint: String,
        /// Why.
        reason: String,
    },
    /// No answer in time. The text follows the reference.
    #[error("{text}")]
    Timeout {
        /// Start, end, elapsed, timeout and both addresses.
        text: String,
        /// Whether the request was written.
        sent: bool,
    },
    /// A message over the payload limit. The text follows the reference.
    #[error("{text}")]
    TooLarge {
        /// Length, limit and connection.
        text: String,
        /// Whether it was the response: the request was sent, and the provider ran it.
        sent: bool,
    },
    /// The client was closed.
    #[error("the connection to {0} is closed")]
    Closed(String),
    /// The server could not be started.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
}
