//! Each transition of the state machine.

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use dubhe_migration::{MigrationStep, SideState};
use support::{Application, Interface, Setup, call};
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn from_nothing_to_application_first_makes_both_sides_and_prefers_application() {
    let reference = Setup::new(2, 1, "").ready().await;
    assert_eq!(reference.step(), "APPLICATION_FIRST");
    assert_eq!(reference.call().await.unwrap(), Application);
    assert_eq!((reference.factory.interface.made(), reference.factory.application.made()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn application_first_is_reached_at_once_and_calls_use_the_side_that_is_there() {
    let setup = Setup::new(1, 1, "");
    setup.factory.application.hold_making(true);
    let reference = setup.start();
    reference.until(|state| state.interface == SideState::Present).await;
    assert_eq!(reference.step(), "APPLICATION_FIRST");
    assert_eq!(reference.call().await.unwrap(), Interface);
    reference.factory.application.hold_making(false);
    reference.until(|state| state.preferred == Application).await;
    assert_eq!(reference.call().await.unwrap(), Application);
}

#[tokio::test(start_paused = true)]
async fn from_nothing_to_a_forced_step_makes_that_side_only_and_compares_nothing() {
    for (rule, kind) in [("FORCE_INTERFACE", Interface), ("FORCE_APPLICATION", Application)] {
        let setup = Setup::new(0, 0, &format!("step: {rule}\nthreshold: 5"));
        setup.factory.of(kind.other()).set(9);
        let reference = setup.ready().await;
        assert_eq!(reference.step(), rule);
        assert_eq!(reference.factory.of(kind.other()).begun.load(Ordering::SeqCst), 0);
        assert!(reference.call().await.is_err());
        reference.factory.of(kind).set(1);
        reference.rest().await;
        assert_eq!(reference.call().await.unwrap(), kind);
    }
}

#[tokio::test(start_paused = true)]
async fn application_first_to_a_forced_step_closes_the_other_side() {
    for (rule, kind) in [("FORCE_INTERFACE", Interface), ("FORCE_APPLICATION", Application)] {
        let reference = Setup::new(2, 2, "").ready().await;
        reference.rule(&format!("step: {rule}"));
        reference.until_step(rule).await;
        assert_eq!(reference.call().await.unwrap(), kind);
        reference.until_absent(kind.other()).await;
        assert!(reference.is_closed(kind.other()) && !reference.is_closed(kind));
    }
}

#[tokio::test(start_paused = true)]
async fn a_forced_step_to_the_opposite_one_stays_while_the_new_side_is_made_then_switches() {
    for (from, to, old) in support::OPPOSITE {
        let reference = Setup::new(2, 2, &format!("step: {from}")).ready().await;
        reference.factory.of(old.other()).hold_making(true);
        reference.rule(&format!("step: {to}"));
        let state = reference.until(|state| *state.side(old.other()) == SideState::Making).await;
        assert_eq!(state.step.map(MigrationStep::name), Some(from));
        assert!(state.blocked.unwrap().contains("being made"));
        assert_eq!(reference.call().await.unwrap(), old);
        reference.factory.of(old.other()).hold_making(false);
        reference.until_step(to).await;
        assert_eq!(reference.call().await.unwrap(), old.other());
        reference.until_absent(old).await;
        assert!(reference.is_closed(old));
    }
}

#[tokio::test(start_paused = true)]
async fn a_forced_step_to_application_first_makes_the_missing_side_without_waiting() {
    for (from, old) in [("FORCE_INTERFACE", Interface), ("FORCE_APPLICATION", Application)] {
        let reference = Setup::new(1, 1, &format!("step: {from}")).ready().await;
        reference.factory.of(old.other()).hold_making(true);
        reference.rule("step: APPLICATION_FIRST\ndelay: 100");
        reference.until_step("APPLICATION_FIRST").await;
        assert_eq!(reference.call().await.unwrap(), old);
        reference.factory.of(old.other()).hold_making(false);
        reference.until(|state| *state.side(old.other()) == SideState::Present).await;
        assert_eq!(reference.call().await.unwrap(), Application);
        assert!(!reference.is_closed(Interface) && !reference.is_closed(Application));
    }
}

#[tokio::test(start_paused = true)]
async fn a_switch_that_finds_too_few_addresses_is_blocked_and_happens_when_they_come() {
    let reference = Setup::new(4, 1, "step: FORCE_INTERFACE").ready().await;
    reference.rule("step: FORCE_APPLICATION\nthreshold: 0.5");
    let state = reference
        .until(|state| state.blocked.as_ref().is_some_and(|why| why.contains("threshold 0.5")))
        .await;
    assert_eq!(state.step, Some(MigrationStep::ForceInterface));
    assert_eq!(reference.call().await.unwrap(), Interface);
    reference.factory.application.set(2);
    let state = reference.until_step("FORCE_APPLICATION").await;
    assert_eq!(state.blocked, None);
    assert_eq!(reference.call().await.unwrap(), Application);
}

#[tokio::test(start_paused = true)]
async fn a_blocked_switch_happens_when_the_old_side_loses_its_addresses() {
    let reference = Setup::new(4, 1, "step: FORCE_INTERFACE").ready().await;
    reference.rule("step: FORCE_APPLICATION\nthreshold: 1.0");
    reference.until(|state| state.application == SideState::Present && state.blocked.is_some()).await;
    reference.factory.interface.set(0);
    reference.rest().await;
    assert_eq!(reference.step(), "FORCE_APPLICATION");
}

#[tokio::test(start_paused = true)]
async fn a_blocked_switch_that_is_taken_back_closes_the_new_side_and_leaves_the_old_one_alone() {
    let reference = Setup::new(4, 1, "step: FORCE_INTERFACE").ready().await;
    reference.rule("step: FORCE_APPLICATION\nthreshold: 1.0");
    reference.until(|state| state.application == SideState::Present).await;
    reference.rule("step: FORCE_INTERFACE");
    reference.until_absent(Application).await;
    assert!(reference.is_closed(Application));
    assert_eq!((reference.factory.interface.made(), reference.call().await.unwrap()), (1, Interface));
    assert_eq!(reference.state().blocked, None);
}

#[tokio::test(start_paused = true)]
async fn a_blocked_switch_from_application_first_keeps_deciding_per_call() {
    let reference = Setup::new(4, 1, "").ready().await;
    reference.rule("step: FORCE_APPLICATION\nthreshold: 1.0");
    reference.until(|state| state.blocked.is_some()).await;
    assert_eq!(reference.step(), "APPLICATION_FIRST");
    assert_eq!(reference.call().await.unwrap(), Interface);
    reference.factory.interface.set(0);
    assert_eq!(reference.call().await.unwrap(), Application);
}

#[tokio::test(start_paused = true)]
async fn a_switch_waits_for_addresses_no_longer_than_they_take() {
    let reference = Setup::new(1, 0, "step: FORCE_INTERFACE").ready().await;
    reference.rule("step: FORCE_APPLICATION\ndelay: 60\nforce: true");
    let start = Instant::now();
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(reference.step(), "FORCE_INTERFACE");
    reference.factory.application.set(1);
    reference.until_step("FORCE_APPLICATION").await;
    assert_eq!(start.elapsed(), Duration::from_secs(20));
}

// The reference waits up to twice as long (governance.md 2.4).
#[tokio::test(start_paused = true)]
async fn a_forced_switch_happens_when_the_delay_is_over_once() {
    let reference = Setup::new(1, 0, "step: FORCE_INTERFACE").ready().await;
    let start = Instant::now();
    reference.rule("step: FORCE_APPLICATION\ndelay: 60\nforce: true");
    let state =
        reference.until(|state| state.blocked.as_ref().is_some_and(|why| why.contains("forced"))).await;
    assert_eq!(state.step, Some(MigrationStep::ForceInterface));
    assert_eq!(reference.call().await.unwrap(), Interface);
    reference.until_step("FORCE_APPLICATION").await;
    assert_eq!(start.elapsed().as_secs(), 60);
    reference.until_absent(Interface).await;
    assert!(reference.call().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_forced_switch_without_delay_happens_at_once() {
    let reference = Setup::new(3, 0, "step: FORCE_INTERFACE").ready().await;
    reference.rule("step: FORCE_APPLICATION\nforce: true\nthreshold: 1");
    let start = Instant::now();
    reference.until_step("FORCE_APPLICATION").await;
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn without_force_the_end_of_the_delay_switches_nothing_and_addresses_still_do() {
    let reference = Setup::new(1, 0, "step: FORCE_INTERFACE").ready().await;
    reference.rule("step: FORCE_APPLICATION\ndelay: 5");
    tokio::time::sleep(Duration::from_secs(500)).await;
    assert_eq!(reference.step(), "FORCE_INTERFACE");
    assert!(reference.state().blocked.unwrap().contains("goes on when that changes"));
    reference.factory.application.set(1);
    reference.until_step("FORCE_APPLICATION").await;
}

#[tokio::test(start_paused = true)]
async fn a_switch_waits_for_a_connection_on_the_new_side() {
    let setup = Setup::new(1, 1, "step: FORCE_INTERFACE");
    setup.factory.application.set_connected(false);
    let reference = setup.ready().await;
    reference.rule("step: FORCE_APPLICATION");
    let state = reference
        .until(|state| state.blocked.as_ref().is_some_and(|why| why.contains("no connection")))
        .await;
    assert_eq!(state.step, Some(MigrationStep::ForceInterface));
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(reference.call().await.unwrap(), Interface);
    reference.factory.application.set_connected(true);
    reference.until_step("FORCE_APPLICATION").await;
    assert_eq!(reference.call().await.unwrap(), Application);
}

#[tokio::test(start_paused = true)]
async fn of_several_quick_rules_the_last_wins() {
    let reference = Setup::new(1, 1, "").ready().await;
    for step in
        ["FORCE_APPLICATION", "FORCE_INTERFACE", "APPLICATION_FIRST", "FORCE_APPLICATION", "FORCE_INTERFACE"]
    {
        reference.rule(&format!("step: {step}"));
    }
    reference.until_step("FORCE_INTERFACE").await;
    reference.until_absent(Application).await;
    assert_eq!(reference.factory.interface.made(), 1, "the interface side was never touched");
    assert_eq!(reference.call().await.unwrap(), Interface);
}

#[tokio::test(start_paused = true)]
async fn rules_that_follow_each_other_at_any_pace_end_where_the_last_says() {
    const STEPS: [&str; 3] = ["FORCE_INTERFACE", "APPLICATION_FIRST", "FORCE_APPLICATION"];
    for yields in 0..12 {
        let reference = Setup::new(1, 1, "").ready().await;
        for turn in 0..30 {
            reference.rule(&format!("step: {}", STEPS[(turn * 7 + turn / 3) % 3]));
            for _ in 0..yields {
                tokio::task::yield_now().await;
            }
            assert!(
                reference.call().await.is_ok(),
                "turn {turn} at pace {yields}: {}",
                reference.invoker.explain()
            );
        }
        reference.rule("step: FORCE_APPLICATION");
        reference.until_step("FORCE_APPLICATION").await;
        reference.until_absent(Interface).await;
        assert!(reference.is_closed(Interface));
        assert_eq!(reference.factory.application.open(), 1);
        assert!(!reference.factory.interface.overlapped() && !reference.factory.application.overlapped());
    }
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_changes_its_mind_stops_the_making_of_a_side() {
    let reference = Setup::new(1, 1, "step: FORCE_INTERFACE").ready().await;
    reference.factory.application.hold_making(true);
    reference.rule("step: FORCE_APPLICATION");
    reference.until(|state| state.application == SideState::Making).await;
    reference.rule("step: FORCE_INTERFACE");
    reference.until_absent(Application).await;
    let application = &reference.factory.application;
    assert_eq!(
        (application.begun.load(Ordering::SeqCst), application.dropped.load(Ordering::SeqCst)),
        (1, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_side_is_closed_only_after_its_calls_ended() {
    let reference = Setup::new(1, 1, "step: FORCE_INTERFACE").ready().await;
    reference.factory.interface.hold_calls(true);
    let invoker = Arc::clone(&reference.invoker);
    let running = tokio::spawn(async move { call(&invoker).await });
    reference.rest().await;
    reference.rule("step: FORCE_APPLICATION");
    reference.until_step("FORCE_APPLICATION").await;
    assert_eq!(reference.call().await.unwrap(), Application);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!reference.is_closed(Interface));
    assert_eq!(reference.state().interface, SideState::Leaving);
    reference.factory.interface.hold_calls(false);
    assert_eq!(running.await.unwrap().unwrap(), Interface);
    reference.until_absent(Interface).await;
    assert!(reference.is_closed(Interface));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_never_ends_does_not_keep_a_side_forever() {
    let reference = Setup::new(1, 1, "step: FORCE_INTERFACE").ready().await;
    reference.factory.interface.hold_calls(true);
    let invoker = Arc::clone(&reference.invoker);
    let running = tokio::spawn(async move { call(&invoker).await });
    reference.rest().await;
    reference.rule("step: FORCE_APPLICATION");
    reference.until_absent(Interface).await;
    assert!(reference.is_closed(Interface));
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_gives_its_place_on_the_side_back() {
    let reference = Setup::new(1, 1, "step: FORCE_INTERFACE").ready().await;
    reference.factory.interface.hold_calls(true);
    let cancelled = tokio::time::timeout(Duration::from_secs(1), reference.call()).await;
    assert!(cancelled.is_err());
    assert_eq!(reference.invoker.explain().interface.calls, 0);
    let start = Instant::now();
    reference.rule("step: FORCE_APPLICATION");
    reference.until_absent(Interface).await;
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_leaving_side_is_taken_back_when_the_rule_goes_back() {
    let reference = Setup::new(1, 1, "step: FORCE_INTERFACE").ready().await;
    reference.factory.interface.hold_calls(true);
    let invoker = Arc::clone(&reference.invoker);
    let running = tokio::spawn(async move { call(&invoker).await });
    reference.rest().await;
    reference.rule("step: FORCE_APPLICATION");
    reference.until(|state| state.interface == SideState::Leaving).await;
    reference.rule("step: FORCE_INTERFACE");
    reference.until_step("FORCE_INTERFACE").await;
    reference.until_absent(Application).await;
    assert_eq!(reference.factory.interface.made(), 1);
    reference.factory.interface.hold_calls(false);
    assert_eq!(running.await.unwrap().unwrap(), Interface);
    assert_eq!(reference.call().await.unwrap(), Interface);
}

#[tokio::test(start_paused = true)]
async fn a_side_that_cannot_be_made_is_tried_again_with_growing_pauses_while_the_other_serves() {
    let setup = Setup::new(1, 1, "step: FORCE_INTERFACE");
    setup.factory.application.set_broken(Some("registry r1 is down"));
    let reference = setup.ready().await;
    reference.rule("step: FORCE_APPLICATION");
    let state = reference.until(|state| matches!(state.application, SideState::Failed(_))).await;
    assert!(state.blocked.unwrap().contains("registry r1 is down"));
    tokio::time::sleep(Duration::from_secs(8)).await;
    // At 0, 1, 3 and 7 s.
    assert_eq!(reference.factory.application.begun.load(Ordering::SeqCst), 4);
    assert_eq!(reference.call().await.unwrap(), Interface);
    reference.factory.application.set_broken(None);
    reference.until_step("FORCE_APPLICATION").await;
}

#[tokio::test(start_paused = true)]
async fn a_side_that_failed_and_is_not_wanted_any_more_is_forgotten() {
    let setup = Setup::new(1, 1, "");
    setup.factory.interface.set_broken(Some("down"));
    setup.factory.application.hold_making(true);
    let reference = setup.start();
    reference.until(|state| matches!(state.interface, SideState::Failed(_))).await;
    reference.rule("step: FORCE_APPLICATION");
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(reference.factory.interface.begun.load(Ordering::SeqCst), 1);
    reference.factory.application.hold_making(false);
    reference.until_step("FORCE_APPLICATION").await;
}

#[tokio::test(start_paused = true)]
async fn a_side_that_is_closed_from_outside_is_made_again() {
    let reference = Setup::new(1, 1, "step: FORCE_INTERFACE").ready().await;
    reference.factory.interface.sides()[0].close_from_outside();
    reference.rest().await;
    assert!(matches!(reference.state().interface, SideState::Failed(_)));
    reference.until(|state| state.interface == SideState::Present).await;
    assert_eq!(reference.factory.interface.made(), 2);
    assert_eq!(reference.call().await.unwrap(), Interface);
}

#[tokio::test(start_paused = true)]
async fn closing_ends_calls_then_sides_and_refuses_what_comes_later() {
    let reference = Setup::new(1, 1, "").ready().await;
    reference.factory.application.hold_calls(true);
    let invoker = Arc::clone(&reference.invoker);
    let running = tokio::spawn(async move { call(&invoker).await });
    reference.rest().await;
    let invoker = Arc::clone(&reference.invoker);
    let closing = tokio::spawn(async move { invoker.close().await });
    reference.rest().await;
    assert!(reference.call().await.unwrap_err().message().contains("was closed"));
    assert!(!reference.is_closed(Application));
    reference.factory.application.hold_calls(false);
    assert_eq!(running.await.unwrap().unwrap(), Application);
    closing.await.unwrap();
    assert!(reference.is_closed(Interface) && reference.is_closed(Application));
    assert!(reference.state().closed);
    reference.invoker.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_dropped_invoker_closes_its_sides() {
    let reference = Setup::new(1, 1, "").ready().await;
    let (factory, mut state) = (Arc::clone(&reference.factory), reference.invoker.state());
    drop(reference);
    let _ = state.wait_for(|state| state.closed).await;
    assert_eq!((factory.interface.open(), factory.application.open()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn closing_stops_the_making_of_a_side() {
    let setup = Setup::new(1, 1, "");
    setup.factory.application.hold_making(true);
    let reference = setup.start();
    reference.rest().await;
    reference.invoker.close().await;
    assert_eq!(reference.factory.application.dropped.load(Ordering::SeqCst), 1);
    assert!(reference.is_closed(Interface));
}

#[tokio::test(start_paused = true)]
async fn closing_goes_on_when_nobody_waits_for_it_any_more() {
    let reference = Setup::new(1, 1, "").ready().await;
    reference.factory.application.hold_calls(true);
    let invoker = Arc::clone(&reference.invoker);
    let running = tokio::spawn(async move { call(&invoker).await });
    reference.rest().await;
    let waited = tokio::time::timeout(Duration::from_secs(1), reference.invoker.close()).await;
    assert!(waited.is_err() && !reference.is_closed(Application));
    reference.factory.application.hold_calls(false);
    reference.until(|state| state.closed).await;
    assert_eq!(running.await.unwrap().unwrap(), Application);
    assert!(reference.is_closed(Application));
}

#[tokio::test(start_paused = true)]
async fn every_step_is_told_once_in_order() {
    let reference = Setup::new(1, 1, "").ready().await;
    let mut state = reference.invoker.state();
    let mut told = vec![reference.step()];
    for step in ["FORCE_APPLICATION", "APPLICATION_FIRST", "FORCE_INTERFACE", "FORCE_APPLICATION"] {
        reference.rule(&format!("step: {step}"));
        reference.until_step(step).await;
        reference.rest().await;
        told.extend(state.borrow_and_update().step.map(MigrationStep::name));
    }
    assert_eq!(
        told,
        [
            "APPLICATION_FIRST",
            "FORCE_APPLICATION",
            "APPLICATION_FIRST",
            "FORCE_INTERFACE",
            "FORCE_APPLICATION"
        ]
    );
    // The same rule again is no news.
    reference.rule("step: FORCE_APPLICATION");
    reference.rest().await;
    assert!(!state.has_changed().unwrap());
}
