//! A transport for tests: queues between tasks.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use dubhe_core::BoxFuture;
use dubhe_core::transport::{
    Accept, Channel, Endpoint, Listener, Receiver, SendError, TransportError, Transporter,
};
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};

#[derive(Clone, Debug, Default)]
pub(super) struct Pipes(Arc<Network>);

#[derive(Debug)]
struct Network {
    listening: Mutex<HashMap<u16, Arc<dyn Accept>>>,
    next_port: AtomicU16,
    attempts: watch::Sender<usize>,
    /// Attempts to connect do not end.
    black_hole: AtomicBool,
}

impl Default for Network {
    fn default() -> Self {
        Self {
            listening: Mutex::default(),
            next_port: AtomicU16::new(40_000),
            attempts: watch::Sender::new(0),
            black_hole: AtomicBool::new(false),
        }
    }
}

impl Pipes {
    pub(super) fn attempts(&self) -> watch::Receiver<usize> {
        self.0.attempts.subscribe()
    }

    pub(super) fn swallow_attempts(&self, swallow: bool) {
        self.0.black_hole.store(swallow, Ordering::SeqCst);
    }

    fn port(&self) -> u16 {
        self.0.next_port.fetch_add(1, Ordering::SeqCst)
    }
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

#[async_trait]
impl Transporter for Pipes {
    async fn connect(
        &self,
        endpoint: &Endpoint,
        timeout: Duration,
        receiver: Arc<dyn Accept>,
    ) -> Result<Arc<dyn Channel>, TransportError> {
        self.0.attempts.send_modify(|attempts| *attempts += 1);
        let failed = |reason: &str| TransportError::Connect {
            endpoint: endpoint.to_string(),
            reason: reason.to_owned(),
        };
        if self.0.black_hole.load(Ordering::SeqCst) {
            tokio::time::sleep(timeout).await;
            return Err(failed("no answer"));
        }
        let accept = self.0.listening.lock().get(&endpoint.port).cloned();
        let accept = accept.ok_or_else(|| failed("connection refused"))?;
        let (near, far) = (loopback(self.port()), loopback(endpoint.port));
        let (to_far, far_inbox) = mpsc::unbounded_channel();
        let (to_near, near_inbox) = mpsc::unbounded_channel();
        let open = Arc::new(AtomicBool::new(true));
        let pipe =
            |own: &mpsc::UnboundedSender<_>, peer: &mpsc::UnboundedSender<_>, at, to| -> Arc<dyn Channel> {
                let (own, peer, open) = (own.clone(), peer.clone(), Arc::clone(&open));
                Arc::new(Pipe { own, peer, open, local: at, remote: to })
            };
        let far_channel = pipe(&to_far, &to_near, far, near);
        match accept.accept(&far_channel) {
            Some(receiver) => drop(tokio::spawn(deliver(far_inbox, receiver))),
            None => far_channel.close(true),
        }
        let near_channel = pipe(&to_near, &to_far, near, far);
        let receiver = receiver.accept(&near_channel).ok_or_else(|| failed("refused"))?;
        tokio::spawn(deliver(near_inbox, receiver));
        Ok(near_channel)
    }

    async fn listen(
        &self,
        address: SocketAddr,
        accept: Arc<dyn Accept>,
    ) -> Result<Box<dyn Listener>, TransportError> {
        let port = if address.port() == 0 { self.port() } else { address.port() };
        self.0.listening.lock().insert(port, accept);
        Ok(Box::new(Listening(self.clone(), loopback(port))))
    }
}

#[derive(Debug)]
struct Listening(Pipes, SocketAddr);

#[async_trait]
impl Listener for Listening {
    fn local_addr(&self) -> SocketAddr {
        self.1
    }

    async fn stop(&self) {
        self.0.0.listening.lock().remove(&self.1.port());
    }
}

enum Item {
    Bytes(Bytes),
    Close(&'static str),
}

#[derive(Debug)]
struct Pipe {
    own: mpsc::UnboundedSender<Item>,
    peer: mpsc::UnboundedSender<Item>,
    open: Arc<AtomicBool>,
    local: SocketAddr,
    remote: SocketAddr,
}

impl Channel for Pipe {
    fn try_send(&self, bytes: Bytes) -> Result<(), SendError> {
        if !self.is_open() {
            return Err(SendError::Closed);
        }
        self.peer.send(Item::Bytes(bytes)).map_err(|_| SendError::Closed)
    }

    fn send(&self, bytes: Bytes) -> BoxFuture<'_, Result<(), SendError>> {
        Box::pin(std::future::ready(self.try_send(bytes)))
    }

    fn peer_addr(&self) -> SocketAddr {
        self.remote
    }

    fn local_addr(&self) -> SocketAddr {
        self.local
    }

    fn is_open(&self) -> bool {
        self.open.load(Ordering::SeqCst)
    }

    fn close(&self, _flush: bool) {
        if self.open.swap(false, Ordering::SeqCst) {
            self.peer.send(Item::Close("closed by the peer")).ok();
            self.own.send(Item::Close("closed by this side")).ok();
        }
    }
}

async fn deliver(mut inbox: mpsc::UnboundedReceiver<Item>, mut receiver: Box<dyn Receiver>) {
    let mut buffer = BytesMut::new();
    let mut reason = "dropped".to_owned();
    while let Some(item) = inbox.recv().await {
        match item {
            Item::Bytes(bytes) => {
                buffer.extend_from_slice(&bytes);
                if let Err(error) = receiver.received(&mut buffer) {
                    reason = error;
                    break;
                }
            }
            Item::Close(why) => {
                reason = why.to_owned();
                break;
            }
        }
    }
    receiver.closed(&reason);
}
