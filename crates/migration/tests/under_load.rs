//! Calls go on while sides come and go: none fails that had a live side.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use dubhe_migration::SideKind;
use support::{Application, Interface, Reference, Setup, call};

const STEPS: [&str; 3] = ["FORCE_INTERFACE", "APPLICATION_FIRST", "FORCE_APPLICATION"];

#[tokio::test(start_paused = true)]
async fn no_call_fails_that_had_a_live_side_with_tasks_in_any_order() {
    for seed in 0..8 {
        roam(seed, 400).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_call_fails_that_had_a_live_side_on_several_threads() {
    roam(106, 1_500).await;
}

/// Changes rules and providers at random while eight tasks call.
///
/// A kind's providers leave only while the other's are there, on a side, and the rule does not insist on the first kind.
async fn roam(seed: u64, rounds: usize) {
    let mut random = fastrand::Rng::with_seed(seed);
    let reference = Setup::new(1, 1, "").ready().await;
    let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let callers: Vec<_> = (0..8)
        .map(|_| {
            let (invoker, stop, done) =
                (Arc::clone(&reference.invoker), Arc::clone(&stop), Arc::clone(&done));
            tokio::spawn(async move {
                while !stop.load(Ordering::SeqCst) {
                    call(&invoker).await?;
                    done.fetch_add(1, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                }
                Ok::<_, dubhe_core::error::RpcError>(())
            })
        })
        .collect();
    let mut step = "APPLICATION_FIRST";
    for _ in 0..rounds {
        let kind = if random.bool() { Interface } else { Application };
        match random.u8(..10) {
            0..=3 => {
                step = random.choice(STEPS).expect("there are three");
                if let Some(kind) = forced(step) {
                    reference.factory.of(kind).set(1);
                }
                reference.rule(&format!("step: {step}\nthreshold: {}", random.f32()));
            }
            4..=6 => reference.factory.of(kind).set(random.usize(1..5)),
            _ => {
                // Only then is no older rule at work any more.
                reference.until(|state| state.wanted.step.name() == step).await;
                if may_leave(&reference, kind, step) {
                    reference.factory.of(kind).set(0);
                }
            }
        }
        for _ in 0..random.usize(..6) {
            tokio::task::yield_now().await;
        }
    }
    stop.store(true, Ordering::SeqCst);
    for caller in callers {
        let outcome = caller.await.expect("a caller does not panic");
        assert!(outcome.is_ok(), "seed {seed}: {outcome:?}");
    }
    assert!(done.load(Ordering::SeqCst) > rounds, "calls were made all the time");
    let (interface, application) = (&reference.factory.interface, &reference.factory.application);
    assert!(!interface.overlapped() && !application.overlapped(), "seed {seed}: never two sides of one kind");
    assert!(interface.made() > 1 && application.made() > 1, "seed {seed}: sides came and went");
    reference.invoker.close().await;
    assert_eq!((interface.open(), application.open()), (0, 0));
}

fn forced(step: &str) -> Option<SideKind> {
    match step {
        "FORCE_INTERFACE" => Some(Interface),
        "FORCE_APPLICATION" => Some(Application),
        _ => None,
    }
}

fn may_leave(reference: &Reference, kind: SideKind, step: &str) -> bool {
    let explanation = reference.invoker.explain();
    let other = if kind == Interface { &explanation.application } else { &explanation.interface };
    forced(step) != Some(kind) && reference.factory.of(kind.other()).is_live() && other.available
}
