//! An exchanger without connections: a client's request is given to the server of that port, or to the test's script.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use dubhe_core::BoxFuture;
use dubhe_core::exchange::{
    ClientOptions, ConnectionState, ExchangeClient, ExchangeError, ExchangeServer, Exchanger, HEADROOM,
    RequestFrame, RequestHandler, ResponseFrame, ServerOptions,
};
use dubhe_core::transport::Endpoint;
use parking_lot::Mutex;
use tokio::sync::watch;

type Script = Box<dyn Fn(Sent) -> Result<ResponseFrame, ExchangeError> + Send + Sync>;

/// A request as a client sent it.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) two_way: bool,
    pub(super) serialization: u8,
    pub(super) body: Bytes,
    pub(super) timeout: Duration,
}

#[derive(Default)]
pub(super) struct Loopback {
    handlers: Mutex<HashMap<u16, Arc<dyn RequestHandler>>>,
    script: Mutex<Option<Script>>,
    sent: Mutex<Vec<Sent>>,
    connected: Mutex<Vec<Connected>>,
    next_port: Mutex<u16>,
}

/// A client that was made.
#[derive(Clone, Debug)]
pub(super) struct Connected {
    pub(super) endpoint: Endpoint,
    pub(super) options: ClientOptions,
    pub(super) state: Arc<watch::Sender<ConnectionState>>,
    pub(super) callbacks: Arc<dyn RequestHandler>,
    pub(super) retries: Arc<Mutex<usize>>,
}

impl std::fmt::Debug for Loopback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Loopback")
    }
}

impl Loopback {
    pub(super) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Lets the test answer all requests.
    pub(super) fn answer(
        &self,
        script: impl Fn(Sent) -> Result<ResponseFrame, ExchangeError> + Send + Sync + 'static,
    ) {
        *self.script.lock() = Some(Box::new(script));
    }

    pub(super) fn sent(&self) -> Vec<Sent> {
        self.sent.lock().clone()
    }

    pub(super) fn clients(&self) -> Vec<Connected> {
        self.connected.lock().clone()
    }

    /// Clients that are not closed.
    pub(super) fn open(&self) -> usize {
        self.clients().iter().filter(|one| *one.state.borrow() != ConnectionState::Closed).count()
    }

    /// Gives a request to the server of `port`, as from a foreign client.
    pub(super) async fn request(&self, port: u16, serialization: u8, body: Bytes) -> ResponseFrame {
        let handler = self.handlers.lock().get(&port).cloned().expect("nobody listens");
        let (peer, local) = (([127, 0, 0, 1], 50_000).into(), ([127, 0, 0, 1], port).into());
        let reply = handler.handle(RequestFrame { two_way: true, serialization, body, peer, local }).await;
        let body = reply.frame.freeze().slice(HEADROOM..);
        ResponseFrame { status: reply.status, serialization: reply.serialization, body }
    }

    pub(super) fn listens(&self, port: u16) -> bool {
        self.handlers.lock().contains_key(&port)
    }
}

#[derive(Debug)]
pub(super) struct Exchange(pub(super) Arc<Loopback>);

#[async_trait]
impl Exchanger for Exchange {
    fn connect(
        &self,
        endpoint: Endpoint,
        options: ClientOptions,
        callbacks: Arc<dyn RequestHandler>,
    ) -> Arc<dyn ExchangeClient> {
        let first = if options.lazy { ConnectionState::Connecting } else { ConnectionState::Connected };
        let state = Arc::new(watch::Sender::new(first));
        let connected = Connected { endpoint, options, state, callbacks, retries: Arc::default() };
        self.0.connected.lock().push(connected.clone());
        Arc::new(Client { connected, net: Arc::clone(&self.0) })
    }

    async fn bind(
        &self,
        address: SocketAddr,
        _options: ServerOptions,
        handler: Arc<dyn RequestHandler>,
    ) -> Result<Arc<dyn ExchangeServer>, ExchangeError> {
        let mut address = address;
        if address.port() == 0 {
            let mut next = self.0.next_port.lock();
            *next += 1;
            address.set_port(30_000 + *next);
        }
        if self.0.handlers.lock().insert(address.port(), handler).is_some() {
            return Err(ExchangeError::Bind { address, source: std::io::ErrorKind::AddrInUse.into() });
        }
        Ok(Arc::new(Server { address, net: Arc::clone(&self.0) }))
    }
}

#[derive(Debug)]
struct Client {
    connected: Connected,
    net: Arc<Loopback>,
}

impl Client {
    async fn exchange(&self, sent: Sent) -> Result<ResponseFrame, ExchangeError> {
        if *self.connected.state.borrow() == ConnectionState::Closed {
            return Err(ExchangeError::Closed(self.connected.endpoint.to_string()));
        }
        self.net.sent.lock().push(sent.clone());
        if let Some(script) = &*self.net.script.lock() {
            return script(sent);
        }
        Ok(self.net.request(self.connected.endpoint.port, sent.serialization, sent.body).await)
    }
}

fn body(frame: BytesMut) -> Bytes {
    frame.freeze().slice(HEADROOM..)
}

impl ExchangeClient for Client {
    fn request(
        &self,
        serialization: u8,
        frame: BytesMut,
        timeout: Duration,
    ) -> BoxFuture<'_, Result<ResponseFrame, ExchangeError>> {
        Box::pin(self.exchange(Sent { two_way: true, serialization, body: body(frame), timeout }))
    }

    fn send(
        &self,
        serialization: u8,
        frame: BytesMut,
        timeout: Duration,
    ) -> BoxFuture<'_, Result<(), ExchangeError>> {
        let sent = Sent { two_way: false, serialization, body: body(frame), timeout };
        Box::pin(async move { self.exchange(sent).await.map(|_| ()) })
    }

    fn state(&self) -> ConnectionState {
        *self.connected.state.borrow()
    }

    fn states(&self) -> watch::Receiver<ConnectionState> {
        self.connected.state.subscribe()
    }

    fn retry_now(&self) {
        *self.connected.retries.lock() += 1;
    }

    fn close(&self, _grace: Duration) -> BoxFuture<'_, ()> {
        self.connected.state.send_replace(ConnectionState::Closed);
        Box::pin(std::future::ready(()))
    }
}

#[derive(Debug)]
struct Server {
    address: SocketAddr,
    net: Arc<Loopback>,
}

#[async_trait]
impl ExchangeServer for Server {
    fn local_addr(&self) -> SocketAddr {
        self.address
    }

    async fn drain(&self, _grace: Duration) {}

    async fn close(&self) {
        self.net.handlers.lock().remove(&self.address.port());
    }
}
