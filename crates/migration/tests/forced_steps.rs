//! From one forced step to the other, row by row, in both directions.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dubhe_common::Url;
use dubhe_core::directory::DirectoryStatus;
use dubhe_migration::{AddressComparator, MigrationState, SideState};
use support::{Application, Interface, OPPOSITE, Setup};
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn each_forced_step_waits_for_the_ratio_of_its_own_side_to_the_other() {
    for (from, to, old) in OPPOSITE {
        let setup = Setup::new(0, 0, &format!("step: {from}"));
        setup.factory.of(old).set(4);
        setup.factory.of(old.other()).set(1);
        let reference = setup.ready().await;
        reference.rule(&format!("step: {to}\nthreshold: 0.5"));
        let blocked =
            |state: &MigrationState| state.blocked.as_ref().is_some_and(|why| why.contains("threshold 0.5"));
        reference.until(blocked).await;
        assert_eq!((reference.step(), reference.call().await.unwrap()), (from, old));
        reference.factory.of(old.other()).set(2);
        reference.until_step(to).await;
        assert_eq!(reference.call().await.unwrap(), old.other());
        reference.until_absent(old).await;
    }
}

#[tokio::test(start_paused = true)]
async fn each_forced_step_is_forced_after_its_delay_and_not_before() {
    for (from, to, old) in OPPOSITE {
        let setup = Setup::new(0, 0, &format!("step: {from}"));
        setup.factory.of(old).set(1);
        let reference = setup.ready().await;
        let start = Instant::now();
        reference.rule(&format!("step: {to}\nforce: true\ndelay: 7"));
        tokio::time::sleep(Duration::from_millis(6_900)).await;
        assert_eq!((reference.step(), reference.call().await.unwrap()), (from, old));
        reference.until_step(to).await;
        assert_eq!(start.elapsed().as_secs(), 7);
        reference.until_absent(old).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_side_with_nothing_takes_nothing_over_from_another_with_nothing() {
    for (from, to, old) in OPPOSITE {
        let reference = Setup::new(0, 0, &format!("step: {from}")).ready().await;
        reference.rule(&format!("step: {to}"));
        reference.until(|state| *state.side(old.other()) == SideState::Present).await;
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert_eq!(reference.step(), from);
        // Whichever side gets a provider, calls find it.
        reference.factory.of(old).set(1);
        reference.rest().await;
        assert_eq!(reference.call().await.unwrap(), old);
        reference.factory.of(old).set(0);
        reference.factory.of(old.other()).set(1);
        reference.until_step(to).await;
        assert_eq!(reference.call().await.unwrap(), old.other());
    }
}

#[tokio::test(start_paused = true)]
async fn another_rule_during_a_delay_starts_it_anew_and_the_same_one_does_not() {
    let reference = Setup::new(1, 0, "step: FORCE_INTERFACE").ready().await;
    let rule = "step: FORCE_APPLICATION\nforce: true\ndelay: 10";
    reference.rule(rule);
    tokio::time::sleep(Duration::from_secs(8)).await;
    let start = Instant::now();
    reference.rule("step: FORCE_APPLICATION\nforce: true\ndelay: 20");
    tokio::time::sleep(Duration::from_secs(15)).await;
    reference.rule("step: FORCE_APPLICATION\nforce: true\ndelay: 20");
    reference.until_step("FORCE_APPLICATION").await;
    assert_eq!(start.elapsed().as_secs(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_no_longer_asks_for_a_step_ends_the_wait_for_it() {
    let reference = Setup::new(4, 1, "step: FORCE_INTERFACE").ready().await;
    reference.rule("step: FORCE_APPLICATION\nthreshold: 1\nforce: true\ndelay: 60");
    reference.until(|state| state.blocked.is_some()).await;
    // As when the rule is removed.
    reference.rule("");
    let state = reference.until_step("APPLICATION_FIRST").await;
    assert_eq!(state.blocked, None);
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(reference.step(), "APPLICATION_FIRST");
    assert!(!reference.is_closed(Interface) && !reference.is_closed(Application));
    assert_eq!(reference.call().await.unwrap(), Application);
}

/// Agrees when it is told to.
#[derive(Debug, Default)]
struct Agrees(AtomicBool);

impl AddressComparator for Agrees {
    fn suffices(&self, _: &Url, _: &DirectoryStatus, _: &DirectoryStatus, _: f32) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

#[tokio::test(start_paused = true)]
async fn a_switch_needs_every_comparator() {
    for (from, to, old) in OPPOSITE {
        let agrees = Arc::new(Agrees::default());
        let mut setup = Setup::new(1, 1, &format!("step: {from}"));
        setup.parts.comparators.push(Arc::clone(&agrees) as _);
        let reference = setup.ready().await;
        reference.rule(&format!("step: {to}"));
        reference.until(|state| *state.side(old.other()) == SideState::Present).await;
        assert_eq!((reference.step(), reference.call().await.unwrap()), (from, old));
        reference.rule("step: APPLICATION_FIRST");
        reference.until_step("APPLICATION_FIRST").await;
        reference.rest().await;
        assert_eq!(reference.call().await.unwrap(), Interface, "they decide on the preference, too");
        agrees.0.store(true, Ordering::SeqCst);
        reference.rule(&format!("step: {to}"));
        reference.until_step(to).await;
        assert_eq!(reference.call().await.unwrap(), old.other());
    }
}
