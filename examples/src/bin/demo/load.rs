//! The steady load, and what came of it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dubhe::{Connected, RpcError};
use dubhe_examples::{Greeter, GreeterClient};
use tokio::task::JoinSet;

/// Callers at the same time, and the pause of each between two calls.
const CALLERS: usize = 16;
const PAUSE: Duration = Duration::from_millis(2);
/// So many failures are told in full.
const TOLD: usize = 3;

/// The running load.
#[derive(Debug)]
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    callers: JoinSet<()>,
}

impl Load {
    pub(crate) fn start(greeter: &Connected<GreeterClient>, tally: &Tally) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut callers = JoinSet::new();
        for caller in 0..CALLERS {
            let (greeter, tally, stop) = (greeter.clone(), tally.clone(), Arc::clone(&stop));
            callers.spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    match greeter.client.say_hello(format!("caller {caller}")).await {
                        Ok(greeting) => tally.answered(&greeting.provider),
                        Err(error) => tally.failed(&error, &greeter),
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            });
        }
        Self { stop, callers }
    }

    /// Lets every caller finish its call.
    pub(crate) async fn stop(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        while self.callers.join_next().await.is_some() {}
    }
}

/// Counts of calls. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally(Arc<Mutex<Counts>>);

/// What was counted so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    /// Answered calls, by provider.
    pub(crate) answered: BTreeMap<String, u64>,
    pub(crate) failed: u64,
    /// Why the first of them failed.
    pub(crate) errors: Vec<String>,
}

impl Counts {
    /// All calls.
    pub(crate) fn calls(&self) -> u64 {
        self.answered.values().sum::<u64>() + self.failed
    }
}

impl Tally {
    pub(crate) fn counts(&self) -> Counts {
        self.with(|counts| counts.clone())
    }

    fn answered(&self, provider: &str) {
        self.with(|counts| match counts.answered.get_mut(provider) {
            Some(calls) => *calls += 1,
            None => {
                counts.answered.insert(provider.to_owned(), 1);
            }
        });
    }

    fn failed(&self, error: &RpcError, greeter: &Connected<GreeterClient>) {
        let migration = greeter.migration().map(|one| one.to_string()).unwrap_or_default();
        self.with(|counts| {
            counts.failed += 1;
            if counts.errors.len() < TOLD {
                counts.errors.push(format!("{error}\n{migration}"));
            }
        });
    }

    fn with<R>(&self, act: impl FnOnce(&mut Counts) -> R) -> R {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
