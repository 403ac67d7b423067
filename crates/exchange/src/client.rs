//! A client: one connection at a time, made again whenever it is lost.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use bytes::{Bytes, BytesMut};
use dubhe_core::BoxFuture;
use dubhe_core::exchange::{
    ClientOptions, ConnectionState, ExchangeClient, ExchangeError, HEADROOM, ResponseFrame,
};
use dubhe_core::transport::{Endpoint, SendError, TransportError, Transporter};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::frame::{Header, too_large};
use crate::link::{Dialling, Link};
use crate::pending::Outcome;
use crate::serving::Serving;
use crate::state::State;
use crate::text::TimedOut;

/// Least time between two attempts to connect, however much news there is of the server.
const LEAST_PAUSE: Duration = Duration::from_millis(500);

/// Life of a connection that shows that the server works: after it, a loss is followed by an attempt at once. A shorter
/// one (a server that accepts and closes) is followed by a pause.
const PROVEN: Duration = Duration::from_secs(1);

/// Handle of a client; dropping it closes the connection.
#[derive(Debug)]
pub(crate) struct Client(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    transporter: Arc<dyn Transporter>,
    endpoint: Endpoint,
    name: String,
    options: ClientOptions,
    callbacks: Arc<Serving>,
    state: Arc<State>,
    link: ArcSwapOption<Link>,
    /// There is news of the server, or the first request of a lazy client.
    news: Notify,
    /// Why there is no connection.
    trouble: Mutex<String>,
}

impl Client {
    pub(crate) fn start(
        transporter: Arc<dyn Transporter>,
        endpoint: Endpoint,
        options: ClientOptions,
        callbacks: Arc<Serving>,
    ) -> Self {
        let shared = Arc::new(Shared {
            transporter,
            name: endpoint.to_string(),
            endpoint,
            options,
            callbacks,
            state: Arc::new(State::new()),
            link: ArcSwapOption::empty(),
            news: Notify::new(),
            trouble: Mutex::new("the connection was not made yet".to_owned()),
        });
        tokio::spawn(Arc::clone(&shared).stay_connected());
        Self(shared)
    }
}

impl ExchangeClient for Client {
    fn request(
        &self,
        serialization: u8,
        frame: BytesMut,
        timeout: Duration,
    ) -> BoxFuture<'_, Result<ResponseFrame, ExchangeError>> {
        Box::pin(self.0.request(serialization, frame, timeout))
    }

    fn send(
        &self,
        serialization: u8,
        frame: BytesMut,
        timeout: Duration,
    ) -> BoxFuture<'_, Result<(), ExchangeError>> {
        Box::pin(self.0.send(serialization, frame, timeout))
    }

    fn state(&self) -> ConnectionState {
        self.0.state.get()
    }

    fn states(&self) -> watch::Receiver<ConnectionState> {
        self.0.state.watch()
    }

    fn retry_now(&self) {
        if self.0.state.get() == ConnectionState::Disconnected {
            self.0.news.notify_one();
        }
    }

    fn close(&self, grace: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.0.state.change(|_| ConnectionState::Closed);
            if let Some(link) = self.0.link.load_full() {
                let _ = tokio::time::timeout(grace, link.pending.empty()).await;
                link.line.channel().close(true);
                link.pending.lose("the client was closed");
            }
        })
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.0.state.change(|_| ConnectionState::Closed);
        if let Some(link) = self.0.link.load_full() {
            link.line.channel().close(true);
        }
    }
}

/// Requests.
impl Shared {
    async fn request(
        &self,
        serialization: u8,
        mut frame: BytesMut,
        timeout: Duration,
    ) -> Result<ResponseFrame, ExchangeError> {
        let started = Instant::now();
        let deadline = started + timeout;
        self.check_size(&frame)?;
        let link = self.connected(started, deadline).await?;
        let ticket = link.pending.insert(deadline).map_err(|reason| self.not_connected(&reason))?;
        let id = ticket.id();
        Header::request(id, serialization, true).write(&mut frame);
        let timed_out = |sent_after: Option<Duration>| {
            let channel = link.line.describe();
            let elapsed = started.elapsed();
            let text = TimedOut { elapsed, sent_after, timeout, id, channel: &channel }.text();
            ExchangeError::Timeout { text, sent: sent_after.is_some() }
        };
        let sent_after = match self.hand_over(&link, frame.freeze(), deadline).await? {
            Handed::AtOnce => Duration::ZERO,
            Handed::Later => started.elapsed(),
            Handed::TimedOut => return Err(timed_out(None)),
        };
        match ticket.await {
            Outcome::Response(response) => Ok(response),
            Outcome::TooLarge(text) => Err(ExchangeError::TooLarge { text, sent: true }),
            Outcome::TimedOut => Err(timed_out(Some(sent_after))),
            Outcome::Lost(reason) => {
                Err(ExchangeError::Lost { endpoint: self.name.clone(), reason: reason.to_string() })
            }
        }
    }

    async fn send(
        &self,
        serialization: u8,
        mut frame: BytesMut,
        timeout: Duration,
    ) -> Result<(), ExchangeError> {
        let started = Instant::now();
        let deadline = started + timeout;
        self.check_size(&frame)?;
        let link = self.connected(started, deadline).await?;
        let id = fastrand::i64(..);
        Header::request(id, serialization, false).write(&mut frame);
        match self.hand_over(&link, frame.freeze(), deadline).await? {
            Handed::AtOnce | Handed::Later => Ok(()),
            Handed::TimedOut => {
                let channel = link.line.describe();
                let elapsed = started.elapsed();
                let text = TimedOut { elapsed, sent_after: None, timeout, id, channel: &channel }.text();
                Err(ExchangeError::Timeout { text, sent: false })
            }
        }
    }

    fn check_size(&self, frame: &BytesMut) -> Result<(), ExchangeError> {
        let (length, limit) = (frame.len().saturating_sub(HEADROOM), self.options.payload);
        if limit > 0 && length > limit {
            let text = too_large(length, limit, &self.name);
            return Err(ExchangeError::TooLarge { text, sent: false });
        }
        Ok(())
    }

    /// The open connection. Waits only for the first one.
    async fn connected(&self, started: Instant, deadline: Instant) -> Result<Arc<Link>, ExchangeError> {
        let closed = || ExchangeError::Closed(self.name.clone());
        if self.state.get() == ConnectionState::Connecting {
            self.news.notify_one();
            let mut states = self.state.watch();
            let first = states.wait_for(|state| *state != ConnectionState::Connecting);
            if tokio::time::timeout_at(deadline, first).await.is_err() {
                let waited = started.elapsed().as_millis();
                return Err(self.not_connected(&format!("the first connection took longer than {waited} ms")));
            }
        }
        if self.state.is_closed() {
            return Err(closed());
        }
        match self.link.load_full() {
            Some(link) => Ok(link),
            None => {
                self.news.notify_one();
                let reason = self.trouble.lock().clone();
                Err(self.not_connected(&reason))
            }
        }
    }

    async fn hand_over(&self, link: &Link, frame: Bytes, deadline: Instant) -> Result<Handed, ExchangeError> {
        let lost = || self.not_connected("it was lost just now");
        match link.line.try_send(frame) {
            Ok(()) => Ok(Handed::AtOnce),
            Err(SendError::Closed) => Err(lost()),
            Err(SendError::Full(frame)) => {
                match tokio::time::timeout_at(deadline, link.line.channel().send(frame)).await {
                    Ok(Ok(())) => Ok(Handed::Later),
                    Ok(Err(_)) => Err(lost()),
                    Err(_) => Ok(Handed::TimedOut),
                }
            }
        }
    }

    fn not_connected(&self, reason: &str) -> ExchangeError {
        ExchangeError::NotConnected { endpoint: self.name.clone(), reason: reason.to_owned() }
    }
}

enum Handed {
    AtOnce,
    /// After waiting for the peer to read.
    Later,
    TimedOut,
}

/// The connection.
impl Shared {
    async fn stay_connected(self: Arc<Self>) {
        tokio::select! {
            () = self.state.closed() => {}
            () = self.connect_again_and_again() => {}
        }
    }

    async fn connect_again_and_again(&self) {
        let mut backoff = Backoff::new(fastrand::Rng::new());
        if self.options.lazy {
            self.news.notified().await;
        }
        loop {
            let attempt_at = Instant::now();
            match self.connect().await {
                Ok(link) => {
                    let reason = self.hold(&link).await;
                    let proven = link.line.age() >= PROVEN;
                    tracing::info!(peer.addr = %self.name, %reason, "connection lost");
                    self.down(&format!("the connection was lost ({reason}) and is being made again"));
                    if proven {
                        backoff.reset();
                        if self.options.reconnect {
                            continue;
                        }
                    }
                }
                Err(error) => {
                    tracing::warn!(peer.addr = %self.name, %error, "connecting failed");
                    self.down(&error.to_string());
                }
            }
            self.pause(backoff.pause(), attempt_at).await;
        }
    }

    async fn connect(&self) -> Result<Arc<Link>, TransportError> {
        let dialling = Arc::new(Dialling::new(
            Arc::clone(&self.state),
            Arc::clone(&self.callbacks),
            self.options.payload,
        ));
        let timeout = self.options.connect_timeout;
        self.transporter.connect(&self.endpoint, timeout, Arc::clone(&dialling) as _).await?;
        dialling.take().ok_or_else(|| TransportError::Connect {
            endpoint: self.name.clone(),
            reason: "the transport opened no connection".to_owned(),
        })
    }

    /// Offers the connection to requests until it is lost; why it was.
    async fn hold(&self, link: &Arc<Link>) -> Arc<str> {
        // A read-only event may come in before this line and after it: whoever is second sees the other.
        self.link.store(Some(Arc::clone(link)));
        let opened = self.state.change(|_| {
            if link.is_read_only() { ConnectionState::ReadOnly } else { ConnectionState::Connected }
        });
        if self.state.is_closed() && !opened {
            link.line.channel().close(true);
        }
        tracing::info!(peer.addr = %self.name, "connected");
        tokio::spawn(Arc::clone(link).keep(self.options.heartbeat, self.options.heartbeat_timeout));
        link.lost().await
    }

    fn down(&self, trouble: &str) {
        *self.trouble.lock() = trouble.to_owned();
        self.link.store(None);
        self.state.change(|_| ConnectionState::Disconnected);
    }

    /// Waits until the next attempt: at the end of `pause`, or soon when there is news of the server.
    async fn pause(&self, pause: Duration, attempt_at: Instant) {
        let news = async {
            self.news.notified().await;
            tokio::time::sleep_until(attempt_at + LEAST_PAUSE).await;
        };
        if self.options.reconnect {
            let _ = tokio::time::timeout(pause, news).await;
        } else {
            news.await;
        }
    }
}
