//! The place of one side: made, kept, left and closed, one after the other.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use dubhe_core::BoxFuture;
use dubhe_core::directory::DirectoryStatus;
use dubhe_core::error::RpcError;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::side::{Side, SideFactory, SideKind};
use crate::snapshot::Held;
use crate::state::SideState;

/// First pause before a side that could not be made is tried again.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How long a side that left may take to end its calls before its subscription ends nevertheless. Attempts that run then still end well:
/// they hold their connections.
pub(crate) const DRAIN_LIMIT: Duration = Duration::from_secs(10);

/// The place of the side of one kind. There are never two at work at once, so that an old one's unregistering cannot take away what a
/// new one registered.
pub(crate) struct Slot {
    kind: SideKind,
    factory: Arc<dyn SideFactory>,
    phase: Phase,
    pause: Duration,
}

enum Phase {
    Absent,
    Making(BoxFuture<'static, Result<Arc<dyn Side>, RpcError>>),
    Failed { error: Arc<str>, retry_at: Instant },
    Present(Present),
    Leaving { held: Arc<Held>, until: Instant },
    Closing { future: BoxFuture<'static, ()>, then: Option<Arc<str>> },
}

struct Present {
    held: Arc<Held>,
    status: watch::Receiver<DirectoryStatus>,
    /// Whether the status can still change.
    live: bool,
}

impl Slot {
    pub(crate) fn new(kind: SideKind, factory: Arc<dyn SideFactory>) -> Self {
        Self { kind, factory, phase: Phase::Absent, pause: FIRST_PAUSE }
    }

    pub(crate) fn held(&self) -> Option<&Arc<Held>> {
        match &self.phase {
            Phase::Present(present) => Some(&present.held),
            _ => None,
        }
    }

    pub(crate) fn state(&self) -> SideState {
        match &self.phase {
            Phase::Absent => SideState::Absent,
            Phase::Making(_) => SideState::Making,
            Phase::Failed { error, .. } => SideState::Failed(Arc::clone(error)),
            Phase::Present(_) => SideState::Present,
            Phase::Closing { then: Some(error), .. } => SideState::Failed(Arc::clone(error)),
            Phase::Leaving { .. } | Phase::Closing { .. } => SideState::Leaving,
        }
    }

    /// Begins to have the side: takes a leaving one back, makes one where there is none. Nothing new when that is under way.
    pub(crate) fn want(&mut self, now: Instant) {
        match &self.phase {
            Phase::Absent => self.make(),
            Phase::Failed { retry_at, .. } if *retry_at <= now => self.make(),
            Phase::Leaving { held, .. } => {
                tracing::debug!(side = %self.kind, "leaving side taken back");
                held.stay();
                self.phase = Phase::Present(Present::new(Arc::clone(held)));
            }
            // One that is being closed is made anew when that is done.
            _ => {}
        }
        self.drop_closed();
    }

    fn make(&mut self) {
        tracing::debug!(side = %self.kind, "side is being made");
        let (factory, kind) = (Arc::clone(&self.factory), self.kind);
        self.phase = Phase::Making(Box::pin(async move { factory.make(kind).await }));
    }

    /// Gives the side up. One that is there takes no new calls once the snapshot without it is published; it is closed when its calls ended.
    pub(crate) fn retire(&mut self, now: Instant) {
        match &self.phase {
            Phase::Present(present) => {
                self.phase = Phase::Leaving { held: Arc::clone(&present.held), until: now + DRAIN_LIMIT };
            }
            Phase::Making(_) | Phase::Failed { .. } => self.phase = Phase::Absent,
            Phase::Closing { .. } | Phase::Absent | Phase::Leaving { .. } => {}
        }
        if let Phase::Closing { then, .. } = &mut self.phase {
            *then = None;
        }
    }

    /// Notices that somebody else closed the side: then it is made again, after a pause.
    pub(crate) fn drop_closed(&mut self) {
        let Phase::Present(present) = &self.phase else { return };
        if present.status.borrow().closed {
            let side = Arc::clone(&present.held.side);
            tracing::warn!(side = %self.kind, "side was closed from outside, it is made again");
            self.phase = Phase::Closing { future: close(side), then: Some("it was closed".into()) };
        }
    }

    /// Waits for something to happen, and takes it over. Loses nothing when dropped.
    pub(crate) async fn event(&mut self) {
        match &mut self.phase {
            Phase::Absent => std::future::pending().await,
            Phase::Making(made) => {
                let made = made.await;
                self.made(made);
            }
            Phase::Failed { retry_at, .. } => tokio::time::sleep_until(*retry_at).await,
            Phase::Present(present) => present.changed().await,
            Phase::Leaving { held, until } => {
                if tokio::time::timeout_at(*until, held.leave()).await.is_err() {
                    tracing::warn!(side = %self.kind, calls = held.calls(), "side closed before its calls ended");
                }
                self.phase = Phase::Closing { future: close(Arc::clone(&held.side)), then: None };
            }
            Phase::Closing { future, then } => {
                future.await;
                tracing::debug!(side = %self.kind, "side closed");
                self.phase = match then.take() {
                    Some(error) => failed(error, &mut self.pause),
                    None => Phase::Absent,
                };
            }
        }
    }

    fn made(&mut self, made: Result<Arc<dyn Side>, RpcError>) {
        self.phase = match made {
            Ok(side) => {
                self.pause = FIRST_PAUSE;
                Phase::Present(Present::new(Arc::new(Held::new(self.kind, side))))
            }
            Err(error) => {
                tracing::warn!(side = %self.kind, %error, "side cannot be made, it is tried again");
                failed(error.to_string().into(), &mut self.pause)
            }
        };
    }

    /// Ends everything; calls that run are waited for.
    pub(crate) async fn close(&mut self) {
        self.retire(Instant::now());
        while !matches!(self.phase, Phase::Absent) {
            self.event().await;
        }
    }
}

impl Present {
    fn new(held: Arc<Held>) -> Self {
        let mut status = held.side.status();
        status.mark_unchanged();
        Self { held, status, live: true }
    }

    async fn changed(&mut self) {
        if self.live {
            self.live = self.status.changed().await.is_ok();
        } else {
            std::future::pending().await
        }
    }
}

fn close(side: Arc<dyn Side>) -> BoxFuture<'static, ()> {
    Box::pin(async move { side.close().await })
}

fn failed(error: Arc<str>, pause: &mut Duration) -> Phase {
    let retry_at = Instant::now() + *pause;
    *pause = (*pause * 2).min(LONGEST_PAUSE);
    Phase::Failed { error, retry_at }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("kind", &self.kind).field("state", &self.state()).finish()
    }
}
