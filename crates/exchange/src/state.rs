//! The state of a client connection: one atomic for the call plane, one watch for those who wait.

use std::sync::atomic::{AtomicU8, Ordering};

use dubhe_core::exchange::ConnectionState;
use tokio::sync::watch;

use ConnectionState::{Closed, Connected, Connecting, Disconnected, ReadOnly};

#[derive(Debug)]
pub(crate) struct State {
    fast: AtomicU8,
    slow: watch::Sender<ConnectionState>,
}

impl State {
    pub(crate) fn new() -> Self {
        Self { fast: AtomicU8::new(Connecting as u8), slow: watch::Sender::new(Connecting) }
    }

    pub(crate) fn get(&self) -> ConnectionState {
        const ALL: [ConnectionState; 5] = [Connecting, Connected, ReadOnly, Disconnected, Closed];
        let fast = self.fast.load(Ordering::Acquire);
        ALL.into_iter().find(|state| *state as u8 == fast).unwrap_or(Closed)
    }

    pub(crate) fn watch(&self) -> watch::Receiver<ConnectionState> {
        self.slow.subscribe()
    }

    /// Goes from the present state to what `next` says; false when it stays. Closed is for good.
    pub(crate) fn change(&self, next: impl FnOnce(ConnectionState) -> ConnectionState) -> bool {
        self.slow.send_if_modified(|state| {
            if *state == Closed {
                return false;
            }
            let next = next(*state);
            let changed = *state != next;
            *state = next;
            self.fast.store(next as u8, Ordering::Release);
            changed
        })
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.get() == Closed
    }

    /// Done when the client was closed.
    pub(crate) async fn closed(&self) {
        // The sender lives in `self`: waiting cannot fail.
        let _ = self.watch().wait_for(|state| *state == Closed).await;
    }
}
