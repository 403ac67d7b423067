//! A connection and when it was last used.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use dubhe_core::transport::{Channel, SendError};
use tokio::time::Instant;

#[derive(Debug)]
pub(crate) struct Line {
    channel: Arc<dyn Channel>,
    born: Instant,
    /// Milliseconds from `born`.
    read: AtomicU64,
    written: AtomicU64,
}

impl Line {
    pub(crate) fn new(channel: Arc<dyn Channel>) -> Self {
        Self { channel, born: Instant::now(), read: AtomicU64::new(0), written: AtomicU64::new(0) }
    }

    pub(crate) fn channel(&self) -> &dyn Channel {
        &*self.channel
    }

    pub(crate) fn age(&self) -> Duration {
        self.born.elapsed()
    }

    pub(crate) fn note_read(&self) {
        self.read.store(self.now(), Ordering::Relaxed);
    }

    /// When something came in last.
    pub(crate) fn last_read(&self) -> Instant {
        self.born + Duration::from_millis(self.read.load(Ordering::Relaxed))
    }

    /// When something came in or was sent last.
    pub(crate) fn last_used(&self) -> Instant {
        let last = self.read.load(Ordering::Relaxed).max(self.written.load(Ordering::Relaxed));
        self.born + Duration::from_millis(last)
    }

    /// Sends without waiting. Not noted as use: requests are a client's, which watches what comes in, and answers to
    /// events follow what came in just now.
    pub(crate) fn try_send(&self, bytes: Bytes) -> Result<(), SendError> {
        self.channel.try_send(bytes)
    }

    /// Sends, waiting for room only when there is none.
    pub(crate) async fn send(&self, bytes: Bytes) -> Result<(), SendError> {
        self.written.store(self.now(), Ordering::Relaxed);
        match self.channel.try_send(bytes) {
            Err(SendError::Full(bytes)) => self.channel.send(bytes).await,
            done => done,
        }
    }

    /// `local -> peer`, as the reference prints a channel.
    pub(crate) fn describe(&self) -> String {
        format!("{} -> {}", self.channel.local_addr(), self.channel.peer_addr())
    }

    fn now(&self) -> u64 {
        u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
