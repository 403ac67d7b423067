//! What every transporter promises, run over TCP and over memory.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use dubhe_transport::{
    Accept, Channel, Endpoint, MemoryTransporter, QUEUE_LIMIT, Receiver, SendError, TcpTransporter,
    Transporter,
};
use tokio::sync::mpsc;

/// Runs each function for both transporters.
macro_rules! suite {
    ($($name:ident),* $(,)?) => {
        mod tcp {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(std::sync::Arc::new(super::TcpTransporter::new())).await;
            })*
        }
        mod memory {
            $(#[tokio::test]
            async fn $name() {
                super::$name(std::sync::Arc::new(super::MemoryTransporter::new())).await;
            })*
        }
    };
}

suite! {
    bytes_arrive_in_order_in_both_directions,
    a_flushing_close_writes_what_is_queued,
    a_close_at_once_reaches_both_receivers,
    dropping_the_handle_closes_after_flushing,
    a_receiver_error_closes_the_connection_with_its_text,
    a_peer_that_does_not_read_fills_the_queue_and_nothing_more,
    a_stopped_listener_accepts_no_more_but_keeps_open_connections,
    a_refused_connection_ends,
    connecting_to_a_port_where_nobody_listens_fails_with_the_address,
    a_port_is_taken_once,
}

#[derive(Debug)]
enum Event {
    Opened(Arc<dyn Channel>),
    Bytes(Bytes),
    Closed(String),
}

/// Reports all that happens to its connections.
#[derive(Debug)]
struct Report {
    events: mpsc::UnboundedSender<Event>,
    refuse: bool,
    error: Option<&'static str>,
}

struct Reporting {
    events: mpsc::UnboundedSender<Event>,
    error: Option<&'static str>,
}

impl Accept for Report {
    fn accept(&self, channel: &Arc<dyn Channel>) -> Option<Box<dyn Receiver>> {
        if self.refuse {
            return None;
        }
        self.events.send(Event::Opened(Arc::clone(channel))).ok();
        Some(Box::new(Reporting { events: self.events.clone(), error: self.error }))
    }
}

impl Receiver for Reporting {
    fn received(&mut self, buffer: &mut BytesMut) -> Result<(), String> {
        self.events.send(Event::Bytes(buffer.split().freeze())).ok();
        self.error.map_or(Ok(()), |text| Err(text.to_owned()))
    }

    fn closed(&mut self, reason: &str) {
        self.events.send(Event::Closed(reason.to_owned())).ok();
    }
}

struct End {
    accept: Arc<Report>,
    events: mpsc::UnboundedReceiver<Event>,
}

impl End {
    fn new() -> Self {
        Self::with(false, None)
    }

    fn with(refuse: bool, error: Option<&'static str>) -> Self {
        let (sender, events) = mpsc::unbounded_channel();
        Self { accept: Arc::new(Report { events: sender, refuse, error }), events }
    }

    async fn next(&mut self) -> Event {
        tokio::time::timeout(Duration::from_secs(10), self.events.recv()).await.unwrap().unwrap()
    }

    async fn opened(&mut self) -> Arc<dyn Channel> {
        match self.next().await {
            Event::Opened(channel) => channel,
            other => panic!("not opened: {other:?}"),
        }
    }

    async fn read(&mut self, count: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while all.len() < count {
            match self.next().await {
                Event::Bytes(bytes) => all.extend_from_slice(&bytes),
                other => panic!("no bytes: {other:?}"),
            }
        }
        all
    }

    async fn closed(&mut self) -> String {
        loop {
            if let Event::Closed(reason) = self.next().await {
                return reason;
            }
        }
    }
}

fn anywhere() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn endpoint(port: u16) -> Endpoint {
    Endpoint { host: "127.0.0.1".into(), port }
}

async fn pair(
    transporter: &Arc<dyn Transporter>,
    client: &End,
    server: &End,
) -> (Arc<dyn Channel>, Box<dyn dubhe_transport::Listener>) {
    let listener = transporter.listen(anywhere(), server.accept.clone()).await.unwrap();
    let to = endpoint(listener.local_addr().port());
    let channel = transporter.connect(&to, Duration::from_secs(5), client.accept.clone()).await.unwrap();
    (channel, listener)
}

async fn bytes_arrive_in_order_in_both_directions(transporter: Arc<dyn Transporter>) {
    let (mut client, mut server) = (End::new(), End::new());
    let (channel, _listener) = pair(&transporter, &client, &server).await;
    let far = server.opened().await;
    client.opened().await;
    assert_eq!(far.local_addr().port(), channel.peer_addr().port());
    assert_eq!(far.peer_addr().port(), channel.local_addr().port());
    let sent: Vec<u8> = (0..200_000_u32).map(|n| n as u8).collect();
    for part in sent.chunks(777) {
        channel.try_send(Bytes::copy_from_slice(part)).unwrap();
    }
    assert!(server.read(sent.len()).await == sent);
    far.send(Bytes::from_static(b"back")).await.unwrap();
    assert_eq!(client.read(4).await, b"back");
}

async fn a_flushing_close_writes_what_is_queued(transporter: Arc<dyn Transporter>) {
    let (client, mut server) = (End::new(), End::new());
    let (channel, _listener) = pair(&transporter, &client, &server).await;
    let _far = server.opened().await;
    let sent = vec![7; 1_000_000];
    channel.try_send(Bytes::from(sent.clone())).unwrap();
    channel.close(true);
    assert!(!channel.is_open());
    assert!(matches!(channel.try_send(Bytes::from_static(b"late")), Err(SendError::Closed)));
    assert!(server.read(sent.len()).await == sent);
    assert_eq!(server.closed().await, "closed by the peer");
}

async fn a_close_at_once_reaches_both_receivers(transporter: Arc<dyn Transporter>) {
    let (mut client, mut server) = (End::new(), End::new());
    let (channel, _listener) = pair(&transporter, &client, &server).await;
    let far = server.opened().await;
    channel.close(false);
    assert_eq!(client.closed().await, "closed by this side");
    server.closed().await;
    assert!(!far.is_open());
    assert!(matches!(far.send(Bytes::from_static(b"late")).await, Err(SendError::Closed)));
}

async fn dropping_the_handle_closes_after_flushing(transporter: Arc<dyn Transporter>) {
    let (mut client, mut server) = (End::new(), End::new());
    let (channel, _listener) = pair(&transporter, &client, &server).await;
    let _far = server.opened().await;
    drop(client.opened().await);
    channel.try_send(Bytes::from_static(b"last words")).unwrap();
    drop(channel);
    assert_eq!(server.read(10).await, b"last words");
    server.closed().await;
    client.closed().await;
}

async fn a_receiver_error_closes_the_connection_with_its_text(transporter: Arc<dyn Transporter>) {
    let (mut client, mut server) = (End::new(), End::with(false, Some("wrong magic")));
    let (channel, _listener) = pair(&transporter, &client, &server).await;
    let _far = server.opened().await;
    channel.try_send(Bytes::from_static(b"x")).unwrap();
    assert_eq!(server.closed().await, "wrong magic");
    client.closed().await;
}

async fn a_peer_that_does_not_read_fills_the_queue_and_nothing_more(transporter: Arc<dyn Transporter>) {
    #[derive(Debug)]
    struct Stuck(std::sync::Mutex<Option<std::sync::mpsc::Receiver<()>>>, mpsc::UnboundedSender<usize>);
    struct StuckReceiver(
        Option<std::sync::mpsc::Receiver<()>>,
        mpsc::UnboundedSender<usize>,
        // Held, because a connection without handles closes.
        #[expect(dead_code, reason = "held only")] Arc<dyn Channel>,
    );
    impl Accept for Stuck {
        fn accept(&self, channel: &Arc<dyn Channel>) -> Option<Box<dyn Receiver>> {
            Some(Box::new(StuckReceiver(self.0.lock().unwrap().take(), self.1.clone(), channel.clone())))
        }
    }
    impl Receiver for StuckReceiver {
        fn received(&mut self, buffer: &mut BytesMut) -> Result<(), String> {
            // A reading task that stands still; only this test may block like that.
            if let Some(go_on) = self.0.take() {
                tokio::task::block_in_place(|| go_on.recv()).ok();
            }
            self.1.send(buffer.len()).ok();
            buffer.clear();
            Ok(())
        }
        fn closed(&mut self, _reason: &str) {}
    }

    let in_one_thread =
        tokio::runtime::Handle::current().runtime_flavor() == tokio::runtime::RuntimeFlavor::CurrentThread;
    let (go_on, gate) = std::sync::mpsc::channel();
    let (counts, mut counted) = mpsc::unbounded_channel();
    let gate = (!in_one_thread).then_some(gate);
    let accept = Arc::new(Stuck(std::sync::Mutex::new(gate), counts));
    let listener = transporter.listen(anywhere(), accept).await.unwrap();
    let client = End::new();
    let to = endpoint(listener.local_addr().port());
    let channel = transporter.connect(&to, Duration::from_secs(5), client.accept.clone()).await.unwrap();
    // In one thread nobody reads while this loop does not await.
    let part = Bytes::from(vec![0; 64 * 1024]);
    let mut sent = 0;
    loop {
        match channel.try_send(part.clone()) {
            Ok(()) => sent += part.len(),
            Err(SendError::Full(back)) => {
                assert_eq!(back.len(), part.len());
                break;
            }
            Err(other) => panic!("{other}"),
        }
        assert!(sent < 64 * QUEUE_LIMIT, "the queue has no bound");
    }
    let waiting = tokio::spawn({
        let (channel, part) = (channel.clone(), part.clone());
        async move { channel.send(part).await }
    });
    go_on.send(()).ok();
    waiting.await.unwrap().unwrap();
    sent += part.len();
    let mut read = 0;
    while read < sent {
        read += tokio::time::timeout(Duration::from_secs(10), counted.recv()).await.unwrap().unwrap();
    }
}

async fn a_stopped_listener_accepts_no_more_but_keeps_open_connections(transporter: Arc<dyn Transporter>) {
    let (client, mut server) = (End::new(), End::new());
    let (channel, listener) = pair(&transporter, &client, &server).await;
    let _far = server.opened().await;
    listener.stop().await;
    listener.stop().await;
    let to = endpoint(listener.local_addr().port());
    assert!(transporter.connect(&to, Duration::from_secs(5), client.accept.clone()).await.is_err());
    channel.try_send(Bytes::from_static(b"still here")).unwrap();
    assert_eq!(server.read(10).await, b"still here");
    // The port is free again.
    let again = SocketAddr::from(([127, 0, 0, 1], listener.local_addr().port()));
    drop(transporter.listen(again, server.accept.clone()).await.unwrap());
}

async fn a_refused_connection_ends(transporter: Arc<dyn Transporter>) {
    let (mut client, server) = (End::new(), End::with(true, None));
    let (_channel, _listener) = pair(&transporter, &client, &server).await;
    client.closed().await;
}

async fn connecting_to_a_port_where_nobody_listens_fails_with_the_address(transporter: Arc<dyn Transporter>) {
    let (client, server) = (End::new(), End::new());
    let listener = transporter.listen(anywhere(), server.accept.clone()).await.unwrap();
    let to = endpoint(listener.local_addr().port());
    listener.stop().await;
    let error = transporter.connect(&to, Duration::from_secs(5), client.accept.clone()).await.unwrap_err();
    assert!(error.to_string().starts_with(&format!("failed to connect to server {to}: ")), "{error}");
}

async fn a_port_is_taken_once(transporter: Arc<dyn Transporter>) {
    let server = End::new();
    let listener = transporter.listen(anywhere(), server.accept.clone()).await.unwrap();
    let taken = SocketAddr::from(([127, 0, 0, 1], listener.local_addr().port()));
    let error = transporter.listen(taken, server.accept.clone()).await.unwrap_err();
    assert!(error.to_string().starts_with(&format!("cannot listen on {taken}: ")), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listening_everywhere_by_ipv6_is_reached_by_both_families_under_their_own_addresses() {
    let transporter = TcpTransporter::new();
    let (client, mut server) = (End::new(), End::new());
    let listener = transporter.listen("[::]:0".parse().unwrap(), server.accept.clone()).await.unwrap();
    let port = listener.local_addr().port();
    assert_eq!(listener.local_addr(), SocketAddr::from(([0_u16; 8], port)));
    for host in ["::1", "127.0.0.1"] {
        let to = Endpoint { host: host.into(), port };
        let near = transporter.connect(&to, Duration::from_secs(5), client.accept.clone()).await.unwrap();
        let far = server.opened().await;
        assert_eq!(near.peer_addr(), SocketAddr::new(host.parse().unwrap(), port));
        assert_eq!((far.peer_addr(), far.local_addr()), (near.local_addr(), near.peer_addr()));
        near.try_send(Bytes::from_static(b"hello")).unwrap();
        assert_eq!(server.read(5).await, b"hello");
        near.close(true);
        server.closed().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_address_of_ipv6_is_no_address_of_ipv4() {
    let transporter = TcpTransporter::new();
    let (client, server) = (End::new(), End::new());
    let listener = transporter.listen("[::1]:0".parse().unwrap(), server.accept.clone()).await.unwrap();
    let to = endpoint(listener.local_addr().port());
    assert!(transporter.connect(&to, Duration::from_secs(5), client.accept.clone()).await.is_err());
}
