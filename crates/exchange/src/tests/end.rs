//! The other end of a connection, in the test's hands.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use dubhe_core::BoxFuture;
use dubhe_core::exchange::{Reply, RequestFrame, RequestHandler};
use dubhe_core::transport::{Accept, Channel, Endpoint, Listener, Receiver, Transporter};
use tokio::sync::{mpsc, oneshot};

use super::pipe::Pipes;
use crate::frame::{Decoded, Decoder, HEADER_LENGTH, Header};
use crate::{ClientOptions, ExchangeClient, Exchanger, HeaderExchanger};

/// Longest wait for something that must happen; never reached in a passing test.
const PATIENCE: Duration = Duration::from_secs(3_600);

pub(super) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("it never happened")
}

/// A frame with room for its header.
pub(super) fn body(bytes: &[u8]) -> BytesMut {
    let mut frame = BytesMut::zeroed(HEADER_LENGTH);
    frame.extend_from_slice(bytes);
    frame
}

pub(super) fn frame(header: Header, bytes: &[u8]) -> Bytes {
    let mut frame = body(bytes);
    header.write(&mut frame);
    frame.freeze()
}

/// One connection, seen from the other side.
pub(super) struct Far {
    pub(super) channel: Arc<dyn Channel>,
    incoming: mpsc::UnboundedReceiver<Option<Bytes>>,
    buffer: BytesMut,
    decoder: Decoder,
}

impl Far {
    /// The next frame; `None` when the connection is closed.
    pub(super) async fn frame(&mut self) -> Option<(Header, Bytes)> {
        loop {
            match self.decoder.decode(&mut self.buffer).unwrap() {
                Some(Decoded::Frame(header, body)) => return Some((header, body)),
                Some(Decoded::TooLarge(header)) => panic!("too large: {header:?}"),
                None => {}
            }
            let bytes = soon(self.incoming.recv()).await??;
            self.buffer.extend_from_slice(&bytes);
        }
    }

    pub(super) async fn request(&mut self) -> (Header, Bytes) {
        let (header, body) = self.frame().await.expect("closed");
        assert!(header.request, "{header:?}");
        (header, body)
    }

    /// Whether nothing came in until now.
    pub(super) async fn is_quiet(&mut self) -> bool {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        self.buffer.is_empty() && self.incoming.is_empty()
    }

    pub(super) fn send(&self, header: Header, bytes: &[u8]) {
        self.channel.try_send(frame(header, bytes)).unwrap();
    }

    pub(super) fn answer(&self, request: &Header, bytes: &[u8]) {
        self.send(Header::response(request.id, 2, 20), bytes);
    }
}

#[derive(Debug)]
pub(super) struct Arrivals(mpsc::UnboundedSender<Far>);

struct FarReceiver(mpsc::UnboundedSender<Option<Bytes>>);

impl Accept for Arrivals {
    fn accept(&self, channel: &Arc<dyn Channel>) -> Option<Box<dyn Receiver>> {
        let (bytes, incoming) = mpsc::unbounded_channel();
        let far =
            Far { channel: Arc::clone(channel), incoming, buffer: BytesMut::new(), decoder: Decoder::new(0) };
        self.0.send(far).ok();
        Some(Box::new(FarReceiver(bytes)))
    }
}

impl Receiver for FarReceiver {
    fn received(&mut self, buffer: &mut BytesMut) -> Result<(), String> {
        self.0.send(Some(buffer.split().freeze())).ok();
        Ok(())
    }

    fn closed(&mut self, _reason: &str) {
        self.0.send(None).ok();
    }
}

/// A server in the test's hands.
pub(super) struct Provider {
    pub(super) pipes: Pipes,
    pub(super) listener: Box<dyn Listener>,
    arrivals: mpsc::UnboundedReceiver<Far>,
    sender: mpsc::UnboundedSender<Far>,
}

impl Provider {
    pub(super) async fn start() -> Self {
        let pipes = Pipes::default();
        let (sender, arrivals) = mpsc::unbounded_channel();
        let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = pipes.listen(anywhere, Arc::new(Arrivals(sender.clone()))).await.unwrap();
        Self { pipes, listener, arrivals, sender }
    }

    pub(super) async fn restart(&mut self) {
        let accept = Arc::new(Arrivals(self.sender.clone()));
        self.listener = self.pipes.listen(self.listener.local_addr(), accept).await.unwrap();
    }

    pub(super) fn endpoint(&self) -> Endpoint {
        Endpoint { host: "127.0.0.1".into(), port: self.listener.local_addr().port() }
    }

    pub(super) fn client(&self, options: ClientOptions) -> Arc<dyn ExchangeClient> {
        let exchanger = HeaderExchanger::new(Arc::new(self.pipes.clone()));
        exchanger.connect(self.endpoint(), options, Arc::new(Refusing))
    }

    pub(super) async fn connection(&mut self) -> Far {
        soon(self.arrivals.recv()).await.unwrap()
    }

    /// A client and the other end of its connection.
    pub(super) async fn connected(&mut self, options: ClientOptions) -> (Arc<dyn ExchangeClient>, Far) {
        let client = self.client(options);
        let far = self.connection().await;
        (client, far)
    }
}

/// Opens a connection to a server under test.
pub(super) async fn dial(pipes: &Pipes, address: SocketAddr) -> Far {
    let (sender, mut arrivals) = mpsc::unbounded_channel();
    let to = Endpoint { host: "127.0.0.1".into(), port: address.port() };
    pipes.connect(&to, PATIENCE, Arc::new(Arrivals(sender))).await.unwrap();
    soon(arrivals.recv()).await.unwrap()
}

fn refusal(status: u8, serialization: u8, text: &str) -> Reply {
    Reply { status, serialization, frame: body(text.as_bytes()) }
}

/// Refuses all requests.
#[derive(Debug)]
pub(super) struct Refusing;

impl RequestHandler for Refusing {
    fn handle(&self, request: RequestFrame) -> BoxFuture<'static, Reply> {
        Box::pin(std::future::ready(refusal(70, request.serialization, "no callbacks here")))
    }

    fn refuse(&self, status: u8, serialization: u8, text: &str) -> Reply {
        refusal(status, serialization, text)
    }
}

/// Gives requests to the test, which answers when it likes.
#[derive(Debug)]
pub(super) struct Asking(mpsc::UnboundedSender<(RequestFrame, oneshot::Sender<Reply>)>);

pub(super) type Asked = mpsc::UnboundedReceiver<(RequestFrame, oneshot::Sender<Reply>)>;

impl Asking {
    pub(super) fn new() -> (Arc<Self>, Asked) {
        let (sender, asked) = mpsc::unbounded_channel();
        (Arc::new(Self(sender)), asked)
    }
}

impl RequestHandler for Asking {
    fn handle(&self, request: RequestFrame) -> BoxFuture<'static, Reply> {
        let (sender, reply) = oneshot::channel();
        self.0.send((request, sender)).unwrap();
        // A test that drops the sender wants a panic.
        Box::pin(async move { reply.await.expect("the service failed") })
    }

    fn refuse(&self, status: u8, serialization: u8, text: &str) -> Reply {
        refusal(status, serialization, text)
    }
}

pub(super) fn reply(bytes: &[u8]) -> Reply {
    Reply { status: 20, serialization: 2, frame: body(bytes) }
}
