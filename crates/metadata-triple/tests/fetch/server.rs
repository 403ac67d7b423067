//! A server of one connection after the other, which answers each request as a test says.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{HeaderMap, Request, Response};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

pub(crate) struct Server {
    pub(crate) port: u16,
    events: mpsc::UnboundedReceiver<Event>,
    seen: Vec<Seen>,
}

/// A request; nothing when a connection is closed.
type Event = Option<Seen>;

/// A request.
#[derive(Debug)]
pub(crate) struct Seen {
    head: Request<()>,
    pub(crate) body: Bytes,
}

#[derive(Clone)]
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(&'static str, &'static str)>,
    body: Body,
    trailers: Option<HeaderMap>,
}

#[derive(Clone, PartialEq)]
enum Body {
    Is(Bytes),
    Endless,
    Reset,
    Never,
}

/// The only message of a body.
pub(crate) fn framed(message: &[u8]) -> Bytes {
    let mut out = BytesMut::new();
    out.put_u8(0);
    out.put_u32(u32::try_from(message.len()).unwrap());
    out.put_slice(message);
    out.freeze()
}

impl Reply {
    pub(crate) fn good(body: Bytes) -> Self {
        Self { body: Body::Is(body), ..Self::status(200, "0", "") }
    }

    /// A status after the headers.
    pub(crate) fn status(http: u16, grpc: &str, message: &str) -> Self {
        let trailers = [("grpc-status", grpc), ("grpc-message", message)];
        let trailers = trailers.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        Self { trailers: Some(trailers.into_iter().collect()), ..Self::http(http, "") }
    }

    /// A status in the only headers.
    pub(crate) fn trailers_only(http: u16, grpc: &'static str, message: &'static str) -> Self {
        Self::http(http, "").with_header("grpc-status", grpc).with_header("grpc-message", message)
    }

    pub(crate) fn http(status: u16, body: &'static str) -> Self {
        Self { status, headers: Vec::new(), body: Body::Is(body.into()), trailers: None }
    }

    pub(crate) fn endless() -> Self {
        Self { body: Body::Endless, ..Self::http(200, "") }
    }

    pub(crate) fn reset() -> Self {
        Self { body: Body::Reset, ..Self::http(200, "") }
    }

    pub(crate) fn never() -> Self {
        Self { body: Body::Never, ..Self::http(200, "") }
    }

    pub(crate) fn with_header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }
}

impl Seen {
    pub(crate) fn path(&self) -> &str {
        self.head.uri().path()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.head.headers()[name].to_str().unwrap()
    }
}

impl Server {
    pub(crate) async fn start(reply: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, events) = mpsc::unbounded_channel();
        let reply = Arc::new(reply);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                serve(stream, &*reply, &tell).await;
                let _ = tell.send(None);
            }
        });
        Self { port, events, seen: Vec::new() }
    }

    /// Returns when a request has come.
    pub(crate) async fn asked(&mut self) {
        match self.events.recv().await {
            Some(Some(seen)) => self.seen.push(seen),
            _ => panic!("a connection ended without a request"),
        }
    }

    /// The requests of a connection, once it is closed.
    pub(crate) async fn ended(&mut self) -> Vec<Seen> {
        while let Some(Some(seen)) = self.events.recv().await {
            self.seen.push(seen);
        }
        std::mem::take(&mut self.seen)
    }
}

async fn serve(
    stream: TcpStream,
    reply: &(dyn Fn(&str) -> Reply + Sync),
    tell: &mpsc::UnboundedSender<Event>,
) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    let mut answering = tokio::task::JoinSet::new();
    // Accepting is what drives the connection.
    while let Some(Ok((request, respond))) = connection.accept().await {
        let (head, body) = request.into_parts();
        let reply = reply(head.uri.path());
        answering.spawn(answer(Request::from_parts(head, ()), body, respond, reply, tell.clone()));
    }
}

async fn answer(
    head: Request<()>,
    mut body: RecvStream,
    mut respond: SendResponse<Bytes>,
    reply: Reply,
    tell: mpsc::UnboundedSender<Event>,
) {
    let mut received = BytesMut::new();
    while let Some(chunk) = body.data().await {
        received.extend_from_slice(&chunk.unwrap());
    }
    let _ = tell.send(Some(Seen { head, body: received.freeze() }));
    if reply.body == Body::Never {
        return std::future::pending().await;
    }
    let mut response = Response::builder().status(reply.status);
    for (name, value) in reply.headers {
        response = response.header(name, value);
    }
    let mut out = respond.send_response(response.body(()).unwrap(), false).unwrap();
    match reply.body {
        Body::Is(bytes) => out.send_data(bytes, reply.trailers.is_none()).unwrap(),
        Body::Reset => out.send_reset(Reason::INTERNAL_ERROR),
        Body::Endless => loop {
            let piece = Bytes::from_static(&[0; 16 << 10]);
            out.reserve_capacity(piece.len());
            while out.capacity() < piece.len() {
                match std::future::poll_fn(|context| out.poll_capacity(context)).await {
                    Some(Ok(_)) => {}
                    _ => return,
                }
            }
            if out.send_data(piece, false).is_err() {
                return;
            }
        },
        Body::Never => {}
    }
    if let Some(trailers) = reply.trailers {
        out.send_trailers(trailers).unwrap();
    }
}
