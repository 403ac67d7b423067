//! Drives one session's part of the store towards the ledger.

use std::sync::Arc;
use std::time::Duration;

use dubhe_core::tree::TreeError;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use crate::failure::Failure;
use crate::ledger::{Job, Ledger};
use crate::link::{Link, Up};
use crate::store::request_size;

/// Jobs under way at the same time, per session.
const IN_FLIGHT: usize = 256;

/// Failures in a row after which a large request is taken to be what the server cuts the connection for.
const TELLING: u32 = 3;

/// A request below this length is no suspect.
const LARGE: usize = 64 * 1024;

/// Works on one lane of the ledger until the session is closed.
pub(crate) async fn reconcile(ledger: Arc<Mutex<Ledger>>, lane: usize, mut link: watch::Receiver<Link>) {
    let wake = ledger.lock().wake(lane);
    let mut jobs = FuturesUnordered::new();
    loop {
        let up = match &*link.borrow_and_update() {
            Link::Closed => break,
            link => link.up().cloned(),
        };
        let retry = {
            let mut ledger = ledger.lock();
            ledger.attend(lane, up.as_ref().map(|up| up.at), Instant::now());
            let retry = ledger.due(lane, Instant::now());
            if let Some(up) = &up {
                while jobs.len() < IN_FLIGHT {
                    let Some(job) = ledger.take(lane) else { break };
                    jobs.push(perform(Arc::clone(up), job));
                }
            }
            // Without a session nothing can be tried, whatever is due.
            retry.filter(|_| up.is_some())
        };
        let due = async {
            match retry {
                Some(retry) => sleep_until(retry).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = link.changed() => if changed.is_err() { break },
            () = wake.notified() => {}
            () = due => {}
            Some((job, up, result)) = jobs.next() => {
                let result = result.map_err(|failure| explain(&up, &job, failure));
                ledger.lock().finish(&job, up.at, result, Instant::now());
            }
        }
    }
    ledger.lock().attend(lane, None, Instant::now());
}

async fn perform(up: Arc<Up>, job: Job) -> (Job, Arc<Up>, Result<(), Failure>) {
    let result = {
        let step = async {
            match &job.wanted {
                Some(wanted) if job.verify => up.verify(&job.path, &wanted.data, wanted.kind).await,
                Some(wanted) => up.hold(&job.path, &wanted.data, wanted.kind).await,
                None => up.release(&job.path, job.kind).await,
            }
        };
        let patience = up.settings.timeout;
        timeout(patience, step).await.unwrap_or_else(|_| Err(no_answer(patience)))
    };
    (job, up, result)
}

fn no_answer(patience: Duration) -> Failure {
    Failure::Unknown(format!("no answer within {} ms", patience.as_millis()))
}

/// The failure for the user, and whether it is a definite one.
fn explain(up: &Up, job: &Job, failure: Failure) -> (TreeError, bool) {
    let address = &up.settings.address;
    let path = &job.path;
    let size = request_size(path, job.wanted.as_ref().map_or(0, |wanted| wanted.data.len()));
    if let Failure::Unknown(reason) = &failure
        && job.failures + 1 >= TELLING
        && size >= LARGE
    {
        let times = job.failures + 1;
        tracing::warn!(registry.addr = %address, %path, size, reason, "large node is put off");
        let invalid = Failure::Invalid(format!(
            "a request of {size} bytes failed {times} times ({reason}); if jute.maxbuffer of the servers is smaller, store \
             less or raise it"
        ));
        return (invalid.into_tree_error(address, path), true);
    }
    let definite = failure.is_definite();
    let error = failure.into_tree_error(address, path);
    if definite {
        tracing::warn!(registry.addr = %address, %error, "node cannot be written");
    } else {
        tracing::debug!(registry.addr = %address, %path, %error, "node is tried again");
    }
    (error, definite)
}
