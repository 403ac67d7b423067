//! The send queue of one connection, and the connection's state.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};

use bytes::Bytes;
use dubhe_core::transport::SendError;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Bytes that may wait for writing on one connection; the message that crosses the limit is still taken, so that a
/// message of any size can be sent. Ours: Netty's default water marks (64 KiB) are checked by nobody in the reference.
pub const QUEUE_LIMIT: usize = 4 * 1024 * 1024;

/// What senders, the reading task and the writing task of a connection share.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    open: AtomicBool,
    /// Somebody waits for room.
    room: Notify,
    /// One permit each, for the one task that listens.
    flush: Notify,
    halt_writer: Notify,
    halt_reader: Notify,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Bytes>,
    /// Queued or being written.
    bytes: usize,
    phase: Phase,
    writer: Option<Waker>,
    reason: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Open,
    /// What is queued is still written, nothing more is taken.
    Flushing,
    Closed,
}

impl Queue {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::default(),
            open: AtomicBool::new(true),
            room: Notify::new(),
            flush: Notify::new(),
            halt_writer: Notify::new(),
            halt_reader: Notify::new(),
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    pub(crate) fn try_send(&self, bytes: Bytes) -> Result<(), SendError> {
        let mut state = self.state.lock();
        if state.phase != Phase::Open {
            return Err(SendError::Closed);
        }
        if state.bytes >= QUEUE_LIMIT {
            return Err(SendError::Full(bytes));
        }
        state.bytes += bytes.len();
        state.waiting.push_back(bytes);
        let writer = state.writer.take();
        drop(state);
        if let Some(writer) = writer {
            writer.wake();
        }
        Ok(())
    }

    pub(crate) async fn send(&self, mut bytes: Bytes) -> Result<(), SendError> {
        loop {
            let room = self.room.notified();
            tokio::pin!(room);
            // Listen before looking: room that comes in between is not missed.
            room.as_mut().enable();
            match self.try_send(bytes) {
                Err(SendError::Full(back)) => bytes = back,
                done => return done,
            }
            room.await;
        }
    }

    /// Ends the connection after what is queued is written.
    pub(crate) fn close_after_flush(&self, reason: &str) {
        let mut state = self.state.lock();
        if state.phase == Phase::Open {
            state.phase = Phase::Flushing;
            state.reason.get_or_insert_with(|| reason.to_owned());
            let writer = state.writer.take();
            drop(state);
            self.open.store(false, Ordering::Release);
            self.flush.notify_one();
            self.room.notify_waiters();
            if let Some(writer) = writer {
                writer.wake();
            }
        }
    }

    /// Ends the connection now.
    pub(crate) fn close_now(&self, reason: &str) {
        let mut state = self.state.lock();
        if state.phase != Phase::Closed {
            state.phase = Phase::Closed;
            state.reason.get_or_insert_with(|| reason.to_owned());
            state.waiting.clear();
            let writer = state.writer.take();
            drop(state);
            self.open.store(false, Ordering::Release);
            self.room.notify_waiters();
            self.halt_writer.notify_one();
            self.halt_reader.notify_one();
            if let Some(writer) = writer {
                writer.wake();
            }
        }
    }

    /// Why the connection is closed.
    pub(crate) fn reason(&self) -> String {
        self.state.lock().reason.clone().unwrap_or_default()
    }

    /// For the writing task: waits until something is queued; false when there is nothing more to write, ever.
    pub(crate) async fn wait(&self) -> bool {
        std::future::poll_fn(|context| {
            let mut state = self.state.lock();
            if !state.waiting.is_empty() {
                return Poll::Ready(true);
            }
            if state.phase != Phase::Open {
                return Poll::Ready(false);
            }
            match &mut state.writer {
                Some(writer) => writer.clone_from(context.waker()),
                none => *none = Some(context.waker().clone()),
            }
            Poll::Pending
        })
        .await
    }

    /// For the writing task: moves what is queued into the empty `batch`.
    pub(crate) fn take(&self, batch: &mut VecDeque<Bytes>) {
        std::mem::swap(&mut self.state.lock().waiting, batch);
    }

    /// For the writing task: `bytes` of what was taken are written.
    pub(crate) fn written(&self, bytes: usize) {
        let mut state = self.state.lock();
        let was_full = state.bytes >= QUEUE_LIMIT;
        state.bytes = state.bytes.saturating_sub(bytes);
        let is_full = state.bytes >= QUEUE_LIMIT;
        drop(state);
        if was_full && !is_full {
            self.room.notify_waiters();
        }
    }

    /// Done when a flushing close began.
    pub(crate) async fn flushing(&self) {
        self.flush.notified().await;
    }

    /// Done when the writing task must stop at once.
    pub(crate) async fn writer_halted(&self) {
        self.halt_writer.notified().await;
    }

    /// Done when the reading task must stop.
    pub(crate) async fn reader_halted(&self) {
        self.halt_reader.notified().await;
    }
}
