//! Requests that came in: counted, run in a task each, answered.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::Poll;

use bytes::Bytes;
use dubhe_core::BoxFuture;
use dubhe_core::exchange::{HEADROOM, Reply, RequestFrame, RequestHandler, status};
use tokio::sync::Notify;

use crate::frame::{Header, too_large};
use crate::line::Line;
use crate::text;

/// Serves the requests of any number of connections, at most `limit` at a time.
#[derive(Debug)]
pub(crate) struct Serving {
    handler: Arc<dyn RequestHandler>,
    limit: usize,
    payload: usize,
    active: AtomicUsize,
    completed: AtomicU64,
    idle: Notify,
}

impl Serving {
    pub(crate) fn new(handler: Arc<dyn RequestHandler>, limit: usize, payload: usize) -> Self {
        Self {
            handler,
            limit,
            payload,
            active: AtomicUsize::new(0),
            completed: AtomicU64::new(0),
            idle: Notify::new(),
        }
    }

    /// Serves one request; refuses it at once when all permits are taken. Does not block.
    pub(crate) fn serve(self: &Arc<Self>, line: &Arc<Line>, header: &Header, body: Bytes) {
        let active = self.active.fetch_add(1, Ordering::AcqRel);
        let permit = Permit(Arc::clone(self));
        if active >= self.limit {
            let completed = self.completed.load(Ordering::Relaxed);
            let local = line.channel().local_addr();
            let text = text::pool_exhausted(local, self.limit, active, completed);
            self.refuse(line, header, status::THREADPOOL_EXHAUSTED, &text);
            return;
        }
        let (line, header) = (Arc::clone(line), *header);
        tokio::spawn(async move {
            let serving = &permit.0;
            let request = RequestFrame {
                two_way: header.two_way,
                serialization: header.serialization,
                body,
                peer: line.channel().peer_addr(),
                local: line.channel().local_addr(),
            };
            let reply = serving.handle(request).await;
            if header.two_way {
                let frame = serving.frame(&line, &header, reply);
                // Closed meanwhile: nobody is there to tell.
                let _ = line.send(frame).await;
            }
            serving.completed.fetch_add(1, Ordering::Relaxed);
        });
    }

    /// Answers a request whose body is over the limit and is not read.
    pub(crate) fn refuse_too_large(&self, line: &Line, header: &Header) {
        let text = too_large(header.length as usize, self.payload, &line.describe());
        let text = format!("Fail to decode request due to: java.io.IOException: {text}");
        self.refuse(line, header, status::BAD_REQUEST, &text);
    }

    /// Done when no request is being served.
    pub(crate) async fn idle(&self) {
        loop {
            let idle = self.idle.notified();
            tokio::pin!(idle);
            idle.as_mut().enable();
            if self.active.load(Ordering::Acquire) == 0 {
                return;
            }
            idle.await;
        }
    }

    async fn handle(&self, request: RequestFrame) -> Reply {
        let serialization = request.serialization;
        let handling = contain(|| self.handler.handle(request));
        match handling.await {
            Some(reply) => reply,
            None => {
                let text = "java.lang.RuntimeException: the provider's code panicked";
                self.handler.refuse(status::SERVICE_ERROR, serialization, text)
            }
        }
    }

    fn refuse(&self, line: &Line, header: &Header, status: u8, text: &str) {
        if header.two_way {
            let reply = self.handler.refuse(status, header.serialization, text);
            let frame = self.frame(line, header, reply);
            if line.try_send(frame).is_err() {
                tracing::debug!(request.id = header.id, "refusal dropped: the peer does not read");
            }
        } else {
            tracing::debug!(status, text, "one-way request refused");
        }
    }

    /// The answer as it goes out; a small error instead when it is over the limit.
    fn frame(&self, line: &Line, header: &Header, mut reply: Reply) -> Bytes {
        let length = reply.frame.len().saturating_sub(HEADROOM);
        if self.payload > 0 && length > self.payload {
            let text = too_large(length, self.payload, &line.describe());
            reply = self.handler.refuse(status::BAD_RESPONSE, header.serialization, &text);
        }
        let mut frame = reply.frame;
        Header::response(header.id, reply.serialization, reply.status).write(&mut frame);
        frame.freeze()
    }
}

/// Runs what `make` makes; `None` when either panics. The panic hook has printed it.
async fn contain<T>(make: impl FnOnce() -> BoxFuture<'static, T>) -> Option<T> {
    let mut future = catch_unwind(AssertUnwindSafe(make)).ok()?;
    std::future::poll_fn(move |context| {
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(Poll::Ready(value)) => Poll::Ready(Some(value)),
            Ok(Poll::Pending) => Poll::Pending,
            // Not polled again: a future that panicked is never resumed.
            Err(_) => Poll::Ready(None),
        }
    })
    .await
}

/// One of the requests being served; given back when it ends in whatever way.
struct Permit(Arc<Serving>);

impl Drop for Permit {
    fn drop(&mut self) {
        if self.0.active.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.idle.notify_waiters();
        }
    }
}
