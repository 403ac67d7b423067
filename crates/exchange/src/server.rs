//! A server: accepts connections, serves their requests, drains, closes.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::BytesMut;
use dubhe_core::exchange::{ExchangeError, ExchangeServer, RequestHandler, ServerOptions};
use dubhe_core::transport::{Accept, Channel, Listener, Receiver, TransportError, Transporter};
use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::event::{self, Event};
use crate::frame::{Decoded, Decoder, Header};
use crate::line::Line;
use crate::serving::Serving;

/// Time in which requests that were on their way when the read-only event was sent arrive. Ours; the reference waits
/// for the peers to disconnect, which they do not do.
const ARRIVING: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct Server {
    local: SocketAddr,
    listener: Box<dyn Listener>,
    shared: Arc<Shared>,
    sweeper: AbortHandle,
}

#[derive(Debug)]
struct Shared {
    options: ServerOptions,
    serving: Arc<Serving>,
    lines: Mutex<HashMap<u64, Arc<Line>>>,
    next: AtomicU64,
    closed: AtomicBool,
}

impl Server {
    pub(crate) async fn start(
        transporter: &dyn Transporter,
        address: SocketAddr,
        options: ServerOptions,
        handler: Arc<dyn RequestHandler>,
    ) -> Result<Self, ExchangeError> {
        let shared = Arc::new(Shared {
            serving: Arc::new(Serving::new(handler, options.threads, options.payload)),
            options,
            lines: Mutex::default(),
            next: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        });
        let accept = Arc::new(Accepting(Arc::clone(&shared)));
        let listener = transporter.listen(address, accept).await.map_err(|error| match error {
            TransportError::Listen { address, source } => ExchangeError::Bind { address, source },
            other => ExchangeError::Bind { address, source: std::io::Error::other(other) },
        })?;
        let sweeper = tokio::spawn(Arc::clone(&shared).close_idle_lines()).abort_handle();
        Ok(Self { local: listener.local_addr(), listener, shared, sweeper })
    }
}

#[async_trait]
impl ExchangeServer for Server {
    fn local_addr(&self) -> SocketAddr {
        self.local
    }

    async fn drain(&self, grace: Duration) {
        let until = Instant::now() + grace;
        self.listener.stop().await;
        for line in self.shared.lines() {
            // A peer that does not read would not see it anyway.
            let _ = line.try_send(event::read_only(fastrand::i64(..)));
        }
        tokio::time::sleep(ARRIVING.min(grace)).await;
        if tokio::time::timeout_at(until, self.shared.serving.idle()).await.is_err() {
            tracing::warn!(local.addr = %self.local, "requests still being served after the grace period");
        }
    }

    async fn close(&self) {
        self.sweeper.abort();
        self.shared.close();
        self.listener.stop().await;
        // One that was accepted in between.
        self.shared.close();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.sweeper.abort();
        self.shared.close();
    }
}

impl Shared {
    fn lines(&self) -> Vec<Arc<Line>> {
        self.lines.lock().values().cloned().collect()
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Release);
        for line in self.lines() {
            line.channel().close(true);
        }
    }

    /// Ends with its task.
    async fn close_idle_lines(self: Arc<Self>) {
        let limit = self.options.idle_timeout;
        // A quarter late at most; never in a spin, however small the limit.
        let tick = (limit / 4).max(Duration::from_millis(10));
        loop {
            tokio::time::sleep(tick).await;
            for line in self.lines() {
                if line.last_used().elapsed() >= limit {
                    tracing::info!(peer.addr = %line.channel().peer_addr(), "idle connection closed");
                    line.channel().close(true);
                }
            }
        }
    }
}

#[derive(Debug)]
struct Accepting(Arc<Shared>);

impl Accept for Accepting {
    fn accept(&self, channel: &Arc<dyn Channel>) -> Option<Box<dyn Receiver>> {
        let shared = &self.0;
        let mut lines = shared.lines.lock();
        let limit = shared.options.accepts;
        if shared.closed.load(Ordering::Acquire) || (limit > 0 && lines.len() >= limit) {
            tracing::warn!(peer.addr = %channel.peer_addr(), limit, "connection refused");
            return None;
        }
        let key = shared.next.fetch_add(1, Ordering::Relaxed);
        let line = Arc::new(Line::new(Arc::clone(channel)));
        lines.insert(key, Arc::clone(&line));
        tracing::debug!(peer.addr = %channel.peer_addr(), "accepted");
        let decoder = Decoder::new(shared.options.payload);
        Some(Box::new(LineReceiver { key, line, shared: Arc::clone(shared), decoder }))
    }
}

struct LineReceiver {
    key: u64,
    line: Arc<Line>,
    shared: Arc<Shared>,
    decoder: Decoder,
}

impl Receiver for LineReceiver {
    fn received(&mut self, buffer: &mut BytesMut) -> Result<(), String> {
        self.line.note_read();
        while let Some(decoded) = self.decoder.decode(buffer).map_err(|error| error.to_string())? {
            match decoded {
                Decoded::Frame(header, body) if header.event => self.event(&header, &body),
                Decoded::Frame(header, body) if header.request => {
                    self.shared.serving.serve(&self.line, &header, body);
                }
                Decoded::TooLarge(header) if header.request && !header.event => {
                    self.shared.serving.refuse_too_large(&self.line, &header);
                }
                Decoded::Frame(header, _) | Decoded::TooLarge(header) => {
                    tracing::debug!(request.id = header.id, "frame that a server has no use for");
                }
            }
        }
        Ok(())
    }

    fn closed(&mut self, reason: &str) {
        self.shared.lines.lock().remove(&self.key);
        tracing::debug!(peer.addr = %self.line.channel().peer_addr(), reason, "connection closed");
    }
}

impl LineReceiver {
    fn event(&self, header: &Header, body: &[u8]) {
        let event = Event::of(header.serialization, body);
        if header.request && header.two_way && event == Some(Event::Heartbeat) {
            let _ = self.line.try_send(event::heartbeat_answer(header, body));
        }
    }
}
