//! The requests of one connection that wait for their response.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use dubhe_core::exchange::ResponseFrame;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How a request ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    Response(ResponseFrame),
    /// The response is over the payload limit; the text says so.
    TooLarge(String),
    TimedOut,
    Lost(Arc<str>),
}

/// A table of slots. A request's id holds its slot and the slot's generation, so that an answer finds its request
/// without hashing and a late or foreign answer finds nothing. Nothing is allocated per request.
#[derive(Debug)]
pub(crate) struct Pending {
    table: Mutex<Table>,
    /// Ids look random from outside, as those of the reference, and differ between connections.
    mask: u64,
    /// The table became empty.
    empty: Notify,
    /// The earliest deadline moved forward.
    sooner: Notify,
}

#[derive(Debug, Default)]
struct Table {
    slots: Vec<Slot>,
    free: Vec<u32>,
    used: usize,
    /// When [`Pending::expire`] will be called next, at the latest.
    checked_at: Option<Instant>,
    lost: Option<Arc<str>>,
}

#[derive(Debug)]
struct Slot {
    generation: u32,
    deadline: Instant,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Free,
    Waiting(Option<Waker>),
    Done(Outcome),
}

impl Pending {
    pub(crate) fn new(mask: u64) -> Self {
        Self { table: Mutex::default(), mask, empty: Notify::new(), sooner: Notify::new() }
    }

    /// A new request; an error says why the connection is lost already.
    pub(crate) fn insert(&self, deadline: Instant) -> Result<Ticket<'_>, Arc<str>> {
        let mut table = self.table.lock();
        if let Some(reason) = &table.lost {
            return Err(Arc::clone(reason));
        }
        let index = match table.free.pop() {
            Some(index) => index,
            None => {
                let index = u32::try_from(table.slots.len())
                    .map_err(|_| Arc::<str>::from("too many pending requests"))?;
                table.slots.push(Slot { generation: 0, deadline, stage: Stage::Free });
                index
            }
        };
        let slot = &mut table.slots[index as usize];
        slot.deadline = deadline;
        slot.stage = Stage::Waiting(None);
        let generation = slot.generation;
        table.used += 1;
        let sooner = table.checked_at.is_none_or(|checked_at| deadline < checked_at);
        if sooner {
            table.checked_at = Some(deadline);
        }
        drop(table);
        if sooner {
            self.sooner.notify_one();
        }
        Ok(Ticket { pending: self, index, generation })
    }

    /// Ends request `id`; false when nobody waits for it.
    pub(crate) fn complete(&self, id: i64, outcome: Outcome) -> bool {
        let bits = id.cast_unsigned() ^ self.mask;
        let (index, generation) = ((bits & u64::from(u32::MAX)) as usize, (bits >> 32) as u32);
        let mut table = self.table.lock();
        let Some(slot) = table.slots.get_mut(index).filter(|slot| slot.generation == generation) else {
            return false;
        };
        let Stage::Waiting(waker) = &mut slot.stage else {
            return false;
        };
        let waker = waker.take();
        slot.stage = Stage::Done(outcome);
        drop(table);
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    /// Ends all requests, and those to come: the connection is gone.
    pub(crate) fn lose(&self, reason: &str) {
        let reason: Arc<str> = reason.into();
        let mut table = self.table.lock();
        table.lost.get_or_insert_with(|| Arc::clone(&reason));
        let wakers = table.end(|_| true, || Outcome::Lost(Arc::clone(&reason)));
        drop(table);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Ends the requests whose time is over at `now`, and tells when to look again.
    pub(crate) fn expire(&self, now: Instant) -> Option<Instant> {
        let mut table = self.table.lock();
        let wakers = table.end(|slot| slot.deadline <= now, || Outcome::TimedOut);
        let waiting = table.slots.iter().filter(|slot| matches!(slot.stage, Stage::Waiting(_)));
        let next = waiting.map(|slot| slot.deadline).min();
        table.checked_at = next;
        drop(table);
        wakers.into_iter().for_each(Waker::wake);
        next
    }

    /// Done when a request came that ends before the next [`Pending::expire`].
    pub(crate) async fn sooner(&self) {
        self.sooner.notified().await;
    }

    /// Done when no request is pending.
    pub(crate) async fn empty(&self) {
        loop {
            let empty = self.empty.notified();
            tokio::pin!(empty);
            empty.as_mut().enable();
            if self.len() == 0 {
                return;
            }
            empty.await;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.table.lock().used
    }
}

impl Table {
    /// Ends the waiting requests that `which` picks.
    fn end(&mut self, which: impl Fn(&Slot) -> bool, outcome: impl Fn() -> Outcome) -> Vec<Waker> {
        let mut wakers = Vec::new();
        for slot in &mut self.slots {
            if which(slot)
                && let Stage::Waiting(waker) = &mut slot.stage
            {
                wakers.extend(waker.take());
                slot.stage = Stage::Done(outcome());
            }
        }
        wakers
    }
}

/// One pending request; a future of its outcome. Dropping it forgets the request.
#[derive(Debug)]
pub(crate) struct Ticket<'a> {
    pending: &'a Pending,
    index: u32,
    generation: u32,
}

impl Ticket<'_> {
    pub(crate) fn id(&self) -> i64 {
        let bits = (u64::from(self.generation) << 32) | u64::from(self.index);
        (bits ^ self.pending.mask).cast_signed()
    }
}

impl Future for Ticket<'_> {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let mut table = self.pending.table.lock();
        let slot = &mut table.slots[self.index as usize];
        match &mut slot.stage {
            Stage::Waiting(waker) => {
                match waker {
                    Some(waker) => waker.clone_from(context.waker()),
                    none => *none = Some(context.waker().clone()),
                }
                Poll::Pending
            }
            _ => match std::mem::replace(&mut slot.stage, Stage::Free) {
                Stage::Done(outcome) => Poll::Ready(outcome),
                _ => Poll::Ready(Outcome::Lost("the request was waited for twice".into())),
            },
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut table = self.pending.table.lock();
        let slot = &mut table.slots[self.index as usize];
        slot.generation = slot.generation.wrapping_add(1);
        // A response that nobody took is dropped after the lock.
        let stage = std::mem::replace(&mut slot.stage, Stage::Free);
        table.free.push(self.index);
        table.used -= 1;
        let empty = table.used == 0;
        drop(table);
        drop(stage);
        if empty {
            self.pending.empty.notify_waiters();
        }
    }
}
