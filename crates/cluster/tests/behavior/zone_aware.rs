//! Zone-aware: which registry a call goes to.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use dubhe_cluster::ZoneAware;
use dubhe_core::error::{Attempt, Delivery, ErrorCode, RpcError};
use dubhe_core::invocation::Invocation;

use crate::doubles::{Fleet, Log, Pointer, Provider, call, called, join, shared};

fn in_zone(zone: &str, force: bool) -> Invocation {
    let call = call().with_attachment("registry_zone", zone);
    if force { call.with_attachment("registry_zone_force", "TRUE") } else { call }
}

fn nobody_here() -> RpcError {
    RpcError::new(ErrorCode::Forbidden, "nobody here").with_delivery(Delivery::NotSent)
}

// C72
#[tokio::test]
async fn the_preferred_registry_is_used_while_it_has_somebody_and_then_that_of_the_zone() {
    let log = Log::default();
    let hz = Provider::new("hz", "zone=hz&weight=100", &log);
    let bj = Provider::new("bj", "zone=bj&weight=10&preferred=true", &log);
    let fleet = Fleet::new("", shared(&[Arc::clone(&hz), Arc::clone(&bj)]));
    let joined = join(&ZoneAware, &fleet, &Pointer::at([]));
    joined.invoke(in_zone("hz", false)).await.unwrap();
    assert_eq!(called(&log), ["bj"]);
    bj.available.store(false, Ordering::Relaxed);
    joined.invoke(in_zone("hz", false)).await.unwrap();
    assert_eq!(called(&log), ["hz"]);
    assert!(joined.is_available());
}

// C72
#[tokio::test]
async fn a_zone_without_anybody_is_left_unless_that_is_forbidden() {
    let log = Log::default();
    let z1 = Provider::new("z1", "zone=Z1", &log);
    let z2 = Provider::new("z2", "zone=Z2", &log);
    let fleet = Fleet::new("", shared(&[Arc::clone(&z1), Arc::clone(&z2)]));
    let joined = join(&ZoneAware, &fleet, &Pointer::at([1]));
    joined.invoke(in_zone("Z1", true)).await.unwrap();
    joined.invoke(in_zone("Z2", true)).await.unwrap();
    assert_eq!(called(&log), ["z1", "z2"]);
    z1.available.store(false, Ordering::Relaxed);
    joined.invoke(in_zone("Z1", false)).await.unwrap();
    assert_eq!(called(&log), ["z2"]);
    let refused = joined.invoke(in_zone("Z1", true)).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::NoInvokerAvailableAfterFilter);
    for part in ["the zone Z1", "z1:20880 (zone Z1), z2:20880 (zone Z2)"] {
        assert!(refused.message().contains(part), "{part}: {refused}");
    }
    assert!(called(&log).is_empty());
}

#[tokio::test]
async fn otherwise_registries_are_balanced() {
    let log = Log::default();
    let registries = ["a", "b", "c"].map(|name| Provider::new(name, "", &log));
    let fleet = Fleet::new("", shared(&registries));
    let pointer = Pointer::at([1, 2, 1]);
    let joined = join(&ZoneAware, &fleet, &pointer);
    joined.invoke(call()).await.unwrap();
    joined.invoke(in_zone("elsewhere", false)).await.unwrap();
    assert_eq!(called(&log), ["b", "c"]);
    registries[1].available.store(false, Ordering::Relaxed);
    joined.invoke(call()).await.unwrap();
    assert_ne!(called(&log), ["b"], "never one that has nobody");
    registries[0].available.store(false, Ordering::Relaxed);
    let picks = pointer.picks.load(Ordering::Relaxed);
    joined.invoke(call()).await.unwrap();
    assert_eq!(called(&log), ["c"]);
    assert_eq!(pointer.picks.load(Ordering::Relaxed), picks, "one that is left needs no balancer");
}

// C31
#[tokio::test]
async fn when_nobody_has_anybody_each_registry_is_asked_and_all_answers_are_told() {
    let log = Log::default();
    let a = Provider::new("a", "", &log).fails_with(nobody_here()).down();
    let b = Provider::new("b", "", &log).fails_with(nobody_here()).down();
    let fleet = Fleet::new("", shared(&[a, Arc::clone(&b)]));
    let joined = join(&ZoneAware, &fleet, &Pointer::at([]));
    let refused = joined.invoke(call()).await.unwrap_err();
    assert_eq!(called(&log), ["a", "b"]);
    assert_eq!(
        (refused.code(), refused.delivery()),
        (ErrorCode::NoInvokerAvailableAfterFilter, Delivery::NotSent)
    );
    assert!(refused.message().contains("a:20880: nobody here; b:20880: nobody here"), "{refused}");
    // What was perhaps sent is never sent again in another registry.
    let lost = RpcError::new(ErrorCode::Network, "connection lost").with_delivery(Delivery::Sent);
    let c = Provider::new("c", "", &log).fails_with(lost).down();
    fleet.set(shared(&[c, b]));
    let failed = joined.invoke(call()).await.unwrap_err();
    assert_eq!(called(&log), ["c"]);
    assert_eq!(failed.code(), ErrorCode::Network);
}

// C31
#[tokio::test]
async fn a_chosen_registry_that_has_nobody_after_all_costs_no_call() {
    let log = Log::default();
    let a = Provider::new("a", "zone=Z1", &log).down();
    let b = Provider::new("b", "zone=Z2", &log);
    let c = Provider::new("c", "zone=Z2", &log);
    let fleet = Fleet::new("", shared(&[Arc::clone(&a), Arc::clone(&b), Arc::clone(&c)]));
    // Balanced: the one that seems to have somebody is asked before the one that does not.
    let joined = join(&ZoneAware, &fleet, &Pointer::at([1, 1, 2]));
    let _ = Arc::clone(&b).fails_with(nobody_here());
    joined.invoke(call()).await.unwrap();
    assert_eq!(called(&log), ["b", "c"]);
    // The only one that seems to.
    c.available.store(false, Ordering::Relaxed);
    let _ = Arc::clone(&b).fails_with(nobody_here());
    joined.invoke(call()).await.unwrap();
    assert_eq!(called(&log), ["b", "a"]);
    // That of the zone.
    let _ = Arc::clone(&b).fails_with(nobody_here());
    joined.invoke(in_zone("Z2", false)).await.unwrap();
    assert_eq!(called(&log), ["b", "a"]);
    // Nobody anywhere: all of them are told.
    for one in [&a, &b, &c] {
        let _ = Arc::clone(one).fails_with(nobody_here());
    }
    let refused = joined.invoke(call()).await.unwrap_err();
    assert_eq!(called(&log), ["b", "a", "c"]);
    assert!(
        refused.message().contains("b:20880: nobody here; a:20880: nobody here; c:20880: nobody here"),
        "{refused}"
    );
}

// C72
#[tokio::test]
async fn a_forced_call_whose_registry_has_nobody_is_asked_within_its_zone_only() {
    let log = Log::default();
    let a = Provider::new("a", "zone=Z1", &log);
    let b = Provider::new("b", "zone=Z2", &log);
    let c = Provider::new("c", "zone=Z1", &log).down();
    let fleet = Fleet::new("", shared(&[Arc::clone(&a), b, Arc::clone(&c)]));
    let joined = join(&ZoneAware, &fleet, &Pointer::at([]));
    let _ = Arc::clone(&a).fails_with(nobody_here());
    joined.invoke(in_zone("Z1", true)).await.unwrap();
    assert_eq!(called(&log), ["a", "c"]);
    let _ = (a.fails_with(nobody_here()), c.fails_with(nobody_here()));
    let refused = joined.invoke(in_zone("Z1", true)).await.unwrap_err();
    assert_eq!(called(&log), ["a", "c"]);
    assert_eq!(refused.delivery(), Delivery::NotSent);
}

#[tokio::test]
async fn a_call_that_was_tried_on_a_provider_is_not_made_in_another_registry() {
    let log = Log::default();
    let tried = Attempt { provider: "p:20880".into(), code: ErrorCode::Timeout, message: "no answer".into() };
    let tried = RpcError::new(ErrorCode::NoInvokerAvailableAfterFilter, "none is left")
        .with_delivery(Delivery::NotSent)
        .with_attempts(vec![tried]);
    let a = Provider::new("a", "preferred=true", &log).fails_with(tried);
    let fleet = Fleet::new("", shared(&[a, Provider::new("b", "", &log)]));
    let refused = join(&ZoneAware, &fleet, &Pointer::at([])).invoke(call()).await.unwrap_err();
    assert_eq!(called(&log), ["a"]);
    assert_eq!(refused.message(), "none is left");
}

// C72
#[tokio::test]
async fn a_registry_that_was_set_aside_and_is_back_is_found_by_preference_and_zone() {
    let log = Log::default();
    let here = Provider::new("here", "zone=Z1", &log);
    let fleet = Fleet::new("", shared(&[here]));
    let joined = join(&ZoneAware, &fleet, &Pointer::at([]));
    let zone = Provider::new("zone", "zone=Z2", &log);
    fleet.set_aside(shared(&[Arc::clone(&zone)]));
    joined.invoke(in_zone("Z2", true)).await.unwrap();
    joined.invoke(call()).await.unwrap();
    assert_eq!(called(&log), ["zone", "here"], "balanced is what is not set aside");
    zone.available.store(false, Ordering::Relaxed);
    let refused = joined.invoke(in_zone("Z2", true)).await.unwrap_err();
    assert!(refused.message().contains("zone:20880 (zone Z2), here:20880 (zone Z1)"), "{refused}");
    fleet.set_aside(shared(&[Provider::new("preferred", "preferred=true", &log)]));
    joined.invoke(in_zone("Z1", false)).await.unwrap();
    assert_eq!(called(&log), ["preferred"]);
}
