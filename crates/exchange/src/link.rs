//! One connection of a client, from its being open to its loss.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use dubhe_core::exchange::{ConnectionState, ResponseFrame};
use dubhe_core::transport::{Accept, Channel, Receiver};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::event::{self, Event};
use crate::frame::{Decoded, Decoder, Header, too_large};
use crate::line::Line;
use crate::pending::{Outcome, Pending};
use crate::serving::Serving;
use crate::state::State;

/// An open connection with its pending requests.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) line: Arc<Line>,
    pub(crate) pending: Pending,
    read_only: std::sync::atomic::AtomicBool,
    /// Why the connection is lost, once it is.
    lost: watch::Sender<Option<Arc<str>>>,
    /// Why this side gives it up; goes before the transport's own words.
    given_up: Mutex<Option<String>>,
}

impl Link {
    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only.load(std::sync::atomic::Ordering::Acquire)
    }

    /// Done when the connection is lost, with the reason.
    pub(crate) async fn lost(&self) -> Arc<str> {
        let mut lost = self.lost.subscribe();
        // The sender lives in `self`: waiting cannot fail.
        let reason = lost.wait_for(Option::is_some).await.ok().and_then(|reason| reason.clone());
        reason.unwrap_or_else(|| "closed".into())
    }

    /// Closes the connection at once, because of `reason`.
    pub(crate) fn give_up(&self, reason: String) {
        self.given_up.lock().get_or_insert(reason);
        self.line.channel().close(false);
    }

    /// Ends what is over its time and keeps the connection alive, until it is lost.
    pub(crate) async fn keep(self: Arc<Self>, heartbeat: Duration, silence_limit: Duration) {
        let lost = self.lost();
        tokio::pin!(lost);
        let mut beat_at = self.line.last_read() + heartbeat;
        loop {
            let now = Instant::now();
            let expiry = self.pending.expire(now);
            if now >= beat_at {
                beat_at = match self.beat(now, heartbeat, silence_limit) {
                    Some(next) => next,
                    None => return,
                };
            }
            let wake_at = expiry.map_or(beat_at, |expiry| expiry.min(beat_at));
            tokio::select! {
                _ = &mut lost => return,
                () = self.pending.sooner() => {}
                () = tokio::time::sleep_until(wake_at) => {}
            }
        }
    }

    /// Sends a heartbeat if it is time for one; when to look again, `None` when the connection is given up.
    fn beat(&self, now: Instant, heartbeat: Duration, silence_limit: Duration) -> Option<Instant> {
        let last_read = self.line.last_read();
        let silence = now.saturating_duration_since(last_read);
        if silence >= silence_limit {
            self.give_up(format!("nothing was read for {} ms", silence.as_millis()));
            return None;
        }
        if silence < heartbeat {
            return Some(last_read + heartbeat);
        }
        tracing::trace!(peer.addr = %self.line.channel().peer_addr(), "heartbeat");
        // A full queue means that the peer does not read; the silence limit decides.
        let _ = self.line.try_send(event::heartbeat(fastrand::i64(..)));
        Some((now + heartbeat).min(last_read + silence_limit))
    }
}

/// Makes the link of the connection that a client opens.
#[derive(Debug)]
pub(crate) struct Dialling {
    pub(crate) state: Arc<State>,
    pub(crate) callbacks: Arc<Serving>,
    pub(crate) payload: usize,
    made: Mutex<Option<Arc<Link>>>,
}

impl Dialling {
    pub(crate) fn new(state: Arc<State>, callbacks: Arc<Serving>, payload: usize) -> Self {
        Self { state, callbacks, payload, made: Mutex::new(None) }
    }

    /// The link of the open connection.
    pub(crate) fn take(&self) -> Option<Arc<Link>> {
        self.made.lock().take()
    }
}

impl Accept for Dialling {
    fn accept(&self, channel: &Arc<dyn Channel>) -> Option<Box<dyn Receiver>> {
        let link = Arc::new(Link {
            line: Arc::new(Line::new(Arc::clone(channel))),
            pending: Pending::new(fastrand::u64(..)),
            read_only: std::sync::atomic::AtomicBool::new(false),
            lost: watch::Sender::new(None),
            given_up: Mutex::new(None),
        });
        *self.made.lock() = Some(Arc::clone(&link));
        Some(Box::new(LinkReceiver {
            link,
            state: Arc::clone(&self.state),
            callbacks: Arc::clone(&self.callbacks),
            decoder: Decoder::new(self.payload),
            payload: self.payload,
        }))
    }
}

struct LinkReceiver {
    link: Arc<Link>,
    state: Arc<State>,
    callbacks: Arc<Serving>,
    decoder: Decoder,
    payload: usize,
}

impl Receiver for LinkReceiver {
    fn received(&mut self, buffer: &mut BytesMut) -> Result<(), String> {
        self.link.line.note_read();
        while let Some(decoded) = self.decoder.decode(buffer).map_err(|error| error.to_string())? {
            match decoded {
                Decoded::Frame(header, body) if header.event => self.event(&header, &body),
                Decoded::Frame(header, body) if header.request => {
                    self.callbacks.serve(&self.link.line, &header, body);
                }
                Decoded::Frame(header, body) => self.response(&header, body),
                Decoded::TooLarge(header) => self.too_large(&header),
            }
        }
        Ok(())
    }

    fn closed(&mut self, reason: &str) {
        let given_up = self.link.given_up.lock().take();
        let reason = given_up.as_deref().unwrap_or(reason);
        self.link.pending.lose(reason);
        self.link.lost.send_replace(Some(reason.into()));
    }
}

impl LinkReceiver {
    fn response(&self, header: &Header, body: Bytes) {
        let frame = ResponseFrame { status: header.status, serialization: header.serialization, body };
        if !self.link.pending.complete(header.id, Outcome::Response(frame)) {
            tracing::debug!(request.id = header.id, "response that nobody waits for");
        }
    }

    fn event(&self, header: &Header, body: &[u8]) {
        if !header.request {
            // The answer to a heartbeat: that it came is all it says.
            return;
        }
        let changed = match Event::of(header.serialization, body) {
            None => return,
            Some(Event::Heartbeat) => {
                if header.two_way {
                    let _ = self.link.line.try_send(event::heartbeat_answer(header, body));
                }
                return;
            }
            Some(Event::ReadOnly) => {
                self.read_only(true, ConnectionState::Connected, ConnectionState::ReadOnly)
            }
            Some(Event::Writeable) => {
                self.read_only(false, ConnectionState::ReadOnly, ConnectionState::Connected)
            }
        };
        if changed {
            tracing::info!(peer.addr = %self.link.line.channel().peer_addr(), read_only = self.link.is_read_only(),
                "provider changed whether it takes calls");
        }
    }

    fn read_only(&self, read_only: bool, from: ConnectionState, to: ConnectionState) -> bool {
        self.link.read_only.store(read_only, std::sync::atomic::Ordering::Release);
        self.state.change(|state| if state == from { to } else { state })
    }

    fn too_large(&self, header: &Header) {
        let length = header.length as usize;
        if header.event {
            tracing::debug!(length, "event data too long");
        } else if header.request {
            self.callbacks.refuse_too_large(&self.link.line, header);
        } else {
            let text = too_large(length, self.payload, &self.link.line.describe());
            if !self.link.pending.complete(header.id, Outcome::TooLarge(text)) {
                tracing::debug!(request.id = header.id, length, "large response that nobody waits for");
            }
        }
    }
}
