//! Which side a call goes to.

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use dubhe_core::directory::DirectoryStatus;
use dubhe_core::error::{Delivery, ErrorCode, RpcError};
use dubhe_core::invoker::Invoker;
use dubhe_core::mapping::Applications;
use dubhe_core::observation::Observation;
use dubhe_migration::{Dice, Effective, MigrationStep, SideState, property};
use support::{Application, Interface, Setup, addresses, call, kept_against_an_empty_list};
use tokio::sync::watch;

// C10
#[tokio::test(start_paused = true)]
async fn when_all_application_level_providers_go_the_next_call_goes_to_an_interface_level_one() {
    let reference = Setup::new(1, 1, "").ready().await;
    assert_eq!(reference.call().await.unwrap(), Application);
    reference.factory.application.set(0);
    assert_eq!(reference.call().await.unwrap(), Interface);
    reference.rest().await;
    assert_eq!(reference.state().preferred, Interface);
    assert_eq!(reference.call().await.unwrap(), Interface);
}

// C10
#[tokio::test(start_paused = true)]
async fn a_list_kept_by_empty_protection_does_not_hold_calls_on_the_application_side() {
    let reference = Setup::new(1, 1, "").ready().await;
    let kept = kept_against_an_empty_list(1);
    reference.factory.application.set_status(kept);
    reference.rest().await;
    assert_eq!(reference.state().preferred, Interface);
    assert_eq!(reference.call().await.unwrap(), Interface);
    reference.factory.application.set(1);
    reference.rest().await;
    assert_eq!(reference.call().await.unwrap(), Application);
}

// C10
#[tokio::test(start_paused = true)]
async fn a_switch_to_applications_waits_while_their_list_is_only_kept() {
    let setup = Setup::new(1, 1, "step: FORCE_INTERFACE");
    let kept = kept_against_an_empty_list(1);
    setup.factory.application.set_status(kept);
    let reference = setup.ready().await;
    reference.rule("step: FORCE_APPLICATION");
    let state =
        reference.until(|state| state.application == SideState::Present && state.blocked.is_some()).await;
    assert!(state.blocked.unwrap().contains("empty protection"));
    reference.factory.application.set(1);
    reference.until_step("FORCE_APPLICATION").await;
}

// C10
#[tokio::test(start_paused = true)]
async fn a_kept_list_does_not_win_calls_back_when_the_registry_goes_away() {
    let reference = Setup::new(1, 1, "").ready().await;
    reference.factory.application.set_status(kept_against_an_empty_list(1));
    reference.rest().await;
    let lost = |status| DirectoryStatus { stale: Some("the connection is lost".into()), ..status };
    reference.factory.application.set_status(lost(kept_against_an_empty_list(1)));
    reference.factory.interface.set_status(lost(addresses(1)));
    reference.rest().await;
    assert_eq!(reference.state().preferred, Interface);
    assert_eq!(reference.call().await.unwrap(), Interface);
}

#[tokio::test(start_paused = true)]
async fn while_the_registry_is_away_calls_stay_where_they_are() {
    let reference = Setup::new(1, 1, "").ready().await;
    for providers in [&reference.factory.application, &reference.factory.interface] {
        let lost = DirectoryStatus { stale: Some("the connection is lost".into()), ..addresses(1) };
        providers.set_status(lost);
    }
    reference.rest().await;
    assert_eq!(reference.call().await.unwrap(), Application);
}

#[tokio::test(start_paused = true)]
async fn when_both_lists_are_only_kept_calls_stay_where_they_are() {
    let reference = Setup::new(1, 3, "").ready().await;
    reference.factory.application.set_status(kept_against_an_empty_list(3));
    reference.factory.interface.set_status(kept_against_an_empty_list(1));
    reference.rest().await;
    assert_eq!(reference.call().await.unwrap(), Application);
}

#[tokio::test(start_paused = true)]
async fn a_switch_waits_when_both_lists_are_only_kept() {
    let setup = Setup::new(1, 1, "step: FORCE_INTERFACE");
    setup.factory.application.set_status(kept_against_an_empty_list(1));
    setup.factory.interface.set_status(kept_against_an_empty_list(1));
    let reference = setup.ready().await;
    reference.rule("step: FORCE_APPLICATION");
    let state =
        reference.until(|state| state.application == SideState::Present && state.blocked.is_some()).await;
    assert!(state.blocked.unwrap().contains("kept against an empty list"));
    reference.factory.application.set(1);
    reference.until_step("FORCE_APPLICATION").await;
}

#[tokio::test(start_paused = true)]
async fn calls_use_a_kept_list_when_the_other_side_has_nothing() {
    let reference = Setup::new(0, 1, "").ready().await;
    reference.factory.application.set_status(kept_against_an_empty_list(1));
    reference.rest().await;
    assert_eq!(reference.call().await.unwrap(), Application);
}

// C31
#[tokio::test(start_paused = true)]
async fn with_both_sides_unavailable_the_error_is_typed_and_calls_recover_when_either_returns() {
    for kind in [Interface, Application] {
        let reference = Setup::new(0, 0, "").ready().await;
        let error = reference.call().await.unwrap_err();
        assert!(matches!(error.code(), ErrorCode::Forbidden | ErrorCode::NoInvokerAvailableAfterFilter));
        assert!(error.message().contains("application-level side has 0 providers"), "{error}");
        assert!(!reference.invoker.is_available());
        reference.factory.of(kind).set(1);
        reference.rest().await;
        assert_eq!(reference.call().await.unwrap(), kind);
        assert!(reference.invoker.is_available());
    }
}

// C31
#[tokio::test(start_paused = true)]
async fn with_both_registries_down_at_start_the_error_is_typed_and_calls_recover_when_either_returns() {
    for kind in [Interface, Application] {
        let setup = Setup::new(1, 1, "");
        setup.factory.interface.set_broken(Some("r1 is down"));
        setup.factory.application.set_broken(Some("r2 is down"));
        let reference = setup.ready().await;
        let error = reference.call().await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::NoInvokerAvailableAfterFilter);
        assert!(error.message().contains("r1 is down") && error.message().contains("r2 is down"), "{error}");
        reference.factory.of(kind).set_broken(None);
        reference.until(|state| *state.side(kind) == SideState::Present).await;
        assert_eq!(reference.call().await.unwrap(), kind);
    }
}

// C33
#[tokio::test(start_paused = true)]
async fn without_a_mapping_calls_succeed_by_interface_and_switch_per_threshold_when_it_appears() {
    // Application-level, nothing is known until the mapping is there.
    let mut setup = Setup::new(4, 0, "threshold: 0.5");
    setup.factory.application.set_status(DirectoryStatus::default());
    let (mapping, applications) = watch::channel(Observation::<Applications>::unknown());
    setup.parts.applications = Some(applications);
    let reference = setup.ready().await;
    assert_eq!(reference.call().await.unwrap(), Interface);
    let names: BTreeSet<Arc<str>> = [Arc::from("stock")].into();
    mapping.send_replace(Observation { known: Some(Arc::new(names)), ..Observation::unknown() });
    reference.factory.application.set(1);
    reference.rest().await;
    assert_eq!(reference.call().await.unwrap(), Interface);
    reference.factory.application.set(2);
    reference.rest().await;
    assert_eq!(reference.call().await.unwrap(), Application);
}

// C34
#[tokio::test(start_paused = true)]
async fn with_default_settings_an_interface_level_only_fleet_is_found() {
    let mut setup = Setup::new(3, 0, "");
    setup.parts.rules = None;
    let reference = setup.ready().await;
    assert_eq!(reference.step(), "APPLICATION_FIRST");
    assert_eq!(reference.call().await.unwrap(), Interface);
}

// C34
#[tokio::test(start_paused = true)]
async fn an_old_fleet_is_found_while_application_level_discovery_hangs_or_fails() {
    for broken in [None, Some("no such node")] {
        let setup = Setup::new(3, 0, "");
        setup.factory.application.hold_making(broken.is_none());
        setup.factory.application.set_broken(broken);
        let reference = setup.start();
        reference.until(|state| state.interface == SideState::Present).await;
        for _ in 0..10 {
            assert_eq!(reference.call().await.unwrap(), Interface);
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_preference_follows_every_change_of_either_list() {
    let reference = Setup::new(4, 1, "threshold: 0.5").ready().await;
    for (interface, application, expected) in [
        (4, 1, Interface),
        (4, 2, Application),
        (5, 2, Interface),
        (0, 2, Application),
        (3, 0, Interface),
        (3, 3, Application),
    ] {
        reference.factory.interface.set(interface);
        reference.factory.application.set(application);
        reference.rest().await;
        assert_eq!(reference.state().preferred, expected, "{interface} and {application}");
        assert_eq!(reference.call().await.unwrap(), expected, "{interface} and {application}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_threshold_of_a_new_rule_changes_the_preference() {
    let reference = Setup::new(4, 1, "").ready().await;
    assert_eq!(reference.call().await.unwrap(), Application);
    reference.rule("threshold: 0.5");
    reference.until(|state| state.preferred == Interface).await;
    assert_eq!(reference.call().await.unwrap(), Interface);
}

#[tokio::test(start_paused = true)]
async fn a_side_whose_connections_are_all_down_is_passed_over() {
    let reference = Setup::new(1, 1, "").ready().await;
    reference.factory.application.set_connected(false);
    assert_eq!(reference.call().await.unwrap(), Interface);
    reference.factory.interface.set_connected(false);
    assert_eq!(reference.call().await.unwrap_err().code(), ErrorCode::Network);
    reference.factory.application.set_connected(true);
    assert_eq!(reference.call().await.unwrap(), Application);
}

#[tokio::test(start_paused = true)]
async fn the_proportion_sends_so_many_calls_by_application() {
    let mut setup = Setup::new(1, 1, "proportion: 30");
    let next = AtomicU8::new(0);
    setup.parts.dice = Dice::new(move || next.fetch_add(1, Ordering::SeqCst) % 100);
    let reference = setup.ready().await;
    let mut by_application = 0;
    for _ in 0..200 {
        by_application += usize::from(reference.call().await.unwrap() == Application);
    }
    assert_eq!(by_application, 60);
    for (proportion, expected) in [(0, Interface), (100, Application)] {
        reference.rule(&format!("proportion: {proportion}"));
        reference.rest().await;
        for _ in 0..100 {
            assert_eq!(reference.call().await.unwrap(), expected);
        }
    }
}

// The reference calls the interface side by proportion even when it is empty, or null (governance.md 2.6).
#[tokio::test(start_paused = true)]
async fn the_proportion_never_sends_a_call_to_a_side_without_providers() {
    let mut setup = Setup::new(0, 1, "proportion: 1");
    setup.parts.dice = Dice::new(|| 99);
    let reference = setup.ready().await;
    assert_eq!(reference.call().await.unwrap(), Application);
    reference.rule("step: FORCE_APPLICATION\nproportion: 1");
    reference.until_step("FORCE_APPLICATION").await;
    assert_eq!(reference.call().await.unwrap(), Application);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_found_no_provider_after_all_goes_to_the_other_side() {
    let reference = Setup::new(1, 1, "").ready().await;
    reference.factory.application.fail_with(Some(|| {
        RpcError::new(ErrorCode::NoInvokerAvailableAfterFilter, "gone since it was looked at")
    }));
    assert_eq!(reference.call().await.unwrap(), Interface);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_finds_nobody_ends_after_a_few_tries() {
    let reference = Setup::new(1, 1, "").ready().await;
    reference.factory.interface.fail_with(Some(|| RpcError::new(ErrorCode::Forbidden, "none here")));
    reference.factory.application.fail_with(Some(|| RpcError::new(ErrorCode::Forbidden, "none there")));
    assert_eq!(reference.call().await.unwrap_err().code(), ErrorCode::Forbidden);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_may_have_run_or_was_refused_never_goes_to_the_other_side() {
    let failures: [fn() -> RpcError; 4] = [
        || RpcError::new(ErrorCode::Timeout, "late").with_delivery(Delivery::Sent),
        || RpcError::new(ErrorCode::Network, "lost").with_delivery(Delivery::Sent),
        || RpcError::new(ErrorCode::LimitExceeded, "too many"),
        || RpcError::new(ErrorCode::Unknown, "refused by a filter"),
    ];
    for failure in failures {
        let reference = Setup::new(1, 1, "").ready().await;
        reference.factory.application.fail_with(Some(failure));
        assert_eq!(reference.call().await.unwrap_err().code(), failure().code());
    }
}

#[tokio::test(start_paused = true)]
async fn while_a_switch_is_pending_the_new_side_already_helps_out() {
    let reference = Setup::new(4, 1, "step: FORCE_INTERFACE").ready().await;
    reference.rule("step: FORCE_APPLICATION\nthreshold: 1.0");
    reference.until(|state| state.application == SideState::Present).await;
    assert_eq!(reference.call().await.unwrap(), Interface);
    // At once, before anybody was told.
    reference.factory.interface.set_connected(false);
    assert_eq!(reference.call().await.unwrap(), Application);
}

#[tokio::test(start_paused = true)]
async fn a_registry_of_applications_only_is_never_migrated() {
    let mut setup = Setup::new(5, 1, "step: FORCE_INTERFACE");
    setup.parts.fixed = Some(Effective::application_only());
    let reference = setup.ready().await;
    reference.rule("step: APPLICATION_FIRST");
    reference.rest().await;
    assert_eq!((reference.step(), reference.factory.interface.made()), ("FORCE_APPLICATION", 0));
    assert_eq!(reference.call().await.unwrap(), Application);
}

#[tokio::test(start_paused = true)]
async fn a_rule_for_an_application_counts_as_soon_as_the_interface_is_mapped_to_it() {
    let mut setup = Setup::new(1, 1, "applications: [{serviceKey: stock, step: FORCE_APPLICATION}]");
    let (mapping, applications) = watch::channel(Observation::<Applications>::unknown());
    setup.parts.applications = Some(applications);
    let reference = setup.ready().await;
    assert_eq!(reference.step(), "APPLICATION_FIRST");
    let names = |names: &[&str]| -> Observation<Applications> {
        let names: BTreeSet<Arc<str>> = names.iter().copied().map(Arc::from).collect();
        Observation { known: Some(Arc::new(names)), ..Observation::unknown() }
    };
    mapping.send_replace(names(&["stock"]));
    reference.until_step("FORCE_APPLICATION").await;
    mapping.send_replace(names(&["store"]));
    reference.until_step("APPLICATION_FIRST").await;
    drop(mapping);
    reference.rule("step: FORCE_INTERFACE");
    reference.until_step("FORCE_INTERFACE").await;
}

#[tokio::test(start_paused = true)]
async fn the_property_says_the_step_when_no_rule_does() {
    let reference =
        Setup::new(1, 1, "").with_properties(&[(property::STEP, "FORCE_INTERFACE")]).ready().await;
    assert_eq!((reference.step(), reference.call().await.unwrap()), ("FORCE_INTERFACE", Interface));
    reference.rule("step: FORCE_APPLICATION");
    reference.until_step("FORCE_APPLICATION").await;
}

#[tokio::test(start_paused = true)]
async fn the_explanation_shows_both_sides_the_decision_and_what_blocks() {
    let reference = Setup::new(4, 1, "").ready().await;
    reference.rule("step: FORCE_APPLICATION\nthreshold: 0.5\ndelay: 3");
    reference.until(|state| state.blocked.is_some()).await;
    let explanation = reference.invoker.explain();
    assert_eq!(explanation.state.wanted.step, MigrationStep::ForceApplication);
    assert_eq!(explanation.interface.addresses, ["i.example:20880"]);
    assert!(explanation.interface.available && explanation.application.available);
    let expected = "demo.Greeter: step APPLICATION_FIRST, FORCE_APPLICATION wanted (said by the rule)
  threshold 0.5, proportion 100 %, delay 3 s, force false
* interface-level: present, 4 providers, 4 valid, available, 0 calls: i.example:20880
  application-level: present, 1 providers, 1 valid, available, 0 calls: a.example:20880
  blocked: the application-level side has 1 providers, 1 valid, the interface-level side 4 providers, 4 valid; that does not suffice (threshold 0.5): it waits
";
    assert_eq!(explanation.to_string(), expected);
}

#[tokio::test(start_paused = true)]
async fn many_calls_at_once_share_one_decision_each() {
    let reference = Setup::new(1, 1, "").ready().await;
    let calls: Vec<_> = (0..64)
        .map(|_| {
            let invoker = Arc::clone(&reference.invoker);
            tokio::spawn(async move { call(&invoker).await })
        })
        .collect();
    for one in calls {
        assert_eq!(one.await.unwrap().unwrap(), Application);
    }
}
