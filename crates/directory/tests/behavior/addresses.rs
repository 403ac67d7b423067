//! Keyed diffs: which invokers stay, which are new, which addresses are skipped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dubhe_common::Url;
use dubhe_core::BoxFuture;
use dubhe_core::directory::Directory;
use dubhe_core::error::RpcError;
use dubhe_core::filter::Filter;
use dubhe_core::invocation::Invocation;
use dubhe_core::invoker::{Invoker, SharedInvoker, same_invoker};
use dubhe_core::registry::Category;
use dubhe_core::response::Response;

use crate::doubles::{Warnings, World, call, hosts, known, url};

/// Shows `before`, then `after`; `expected` are the hosts then, with `*` behind those whose invoker is new.
async fn check(row: &str, before: &[&str], after: &[&str], expected: &[&str]) {
    let world = World::of(before);
    let directory = world.directory().await;
    let old = directory.invokers();
    world.list(&directory, after).await;
    let new = directory.invokers();
    let is_old = |one: &SharedInvoker| old.iter().any(|other| same_invoker(one, other));
    let found: Vec<String> =
        new.iter().map(|one| format!("{}{}", one.url().host(), if is_old(one) { "" } else { "*" })).collect();
    assert_eq!(found, expected, "{row}");
    let made = found.iter().filter(|one| one.ends_with('*')).count();
    drop(old);
    assert_eq!(world.wire.referred(), before.len() + made, "{row}: only new ones are referred");
    assert_eq!(world.wire.live(), found.len(), "{row}: the others are let go");
}

#[tokio::test]
async fn only_what_changed_gets_new_invokers() {
    check("unchanged", &["a", "b"], &["a", "b"], &["a", "b"]).await;
    check("added", &["a"], &["a", "b"], &["a", "b*"]).await;
    check("added in front", &["b"], &["a", "b"], &["a*", "b"]).await;
    check("removed", &["a", "b"], &["b"], &["b"]).await;
    check("changed", &["a", "b"], &["a?timeout=5", "b"], &["a*", "b"]).await;
    check("started again", &["a", "b"], &["a", "b@2"], &["a", "b*"]).await;
    check("another order", &["a", "b"], &["b", "a"], &["b", "a"]).await;
    check("duplicate", &["a"], &["a", "b", "a", "b"], &["a", "b*"]).await;
    check("all others", &["a", "b"], &["c", "d"], &["c*", "d*"]).await;
    check("disabled", &["a", "b"], &["a?disabled=true", "b"], &["b"]).await;
    check("not enabled", &["a", "b"], &["a?enabled=false", "b"], &["b"]).await;
    check("disabled wins", &["b"], &["a?enabled=false&disabled=false", "b"], &["a*", "b"]).await;
}

#[tokio::test]
async fn the_same_view_again_costs_nothing() {
    let world = World::of(&["a", "b"]);
    let directory = world.directory().await;
    let (bound, invokers) = (world.gate.bound.load(Ordering::SeqCst), directory.invokers());
    world.change(&directory, |_| {}).await;
    assert_eq!(world.gate.bound.load(Ordering::SeqCst), bound, "nothing is bound again");
    assert!(Arc::ptr_eq(&directory.invokers(), &invokers));
}

#[tokio::test]
async fn a_provider_that_restarts_at_its_address_gets_a_new_invoker_on_the_same_connection() {
    // C29
    let world = World::of(&["a@1000"]);
    let directory = world.directory().await;
    let before = Arc::clone(&directory.invokers()[0]);
    world.list(&directory, &["a@2000"]).await;
    let after = Arc::clone(&directory.invokers()[0]);
    assert!(!same_invoker(&before, &after));
    assert_eq!(after.url().param("timestamp"), Some("2000"), "warm-up starts again");
    assert_eq!(after.registered_url().param("timestamp"), Some("2000"));
    assert_eq!(world.wire.opened(), 1);
    assert_eq!(world.wire.closed.load(Ordering::SeqCst), 0);
    assert!(before.invoke(call()).await.is_ok(), "calls that chose the old one are served");

    // Its clock went back: still another start.
    world.list(&directory, &["a@500"]).await;
    assert_eq!(directory.invokers()[0].url().param("timestamp"), Some("500"));
}

#[tokio::test]
async fn a_node_that_a_dead_session_left_behind_does_not_double_its_provider() {
    // C29
    for both in [["a@1000", "a@2000"], ["a@2000", "a@1000"]] {
        let world = World::of(&["a@1000"]);
        let directory = world.directory().await;
        world.list(&directory, &both).await;
        assert_eq!(hosts(&*directory), ["a"]);
        let restarted = Arc::clone(&directory.invokers()[0]);
        assert_eq!(restarted.url().param("timestamp"), Some("2000"));
        world.list(&directory, &[both[0], both[1], "b"]).await;
        assert!(same_invoker(&directory.invokers()[0], &restarted), "and no new one at each change");
        world.list(&directory, &["a@2000"]).await;
        assert!(same_invoker(&directory.invokers()[0], &restarted));
    }
}

#[tokio::test]
async fn both_nodes_at_once_at_the_start_make_one_invoker_of_the_later_one() {
    for both in [["a@1000", "a@2000", "b"], ["a@2000", "a@1000", "b"]] {
        let world = World::of(&both);
        let directory = world.directory().await;
        assert_eq!(hosts(&*directory), ["a", "b"]);
        assert_eq!(directory.invokers()[0].url().param("timestamp"), Some("2000"));
        assert_eq!(world.wire.live(), 2);
    }
}

#[tokio::test]
async fn an_invoker_has_the_merged_url_and_knows_what_was_registered() {
    let world = World::of(&["a?timeout=3000&retries=5"]).with_consumer("timeout", "800");
    let directory = world.directory().await;
    let invoker = &directory.invokers()[0];
    assert_eq!(invoker.url().param("timeout"), Some("800"));
    assert_eq!(invoker.url().param("retries"), None, "the consumer decides");
    assert_eq!(invoker.registered_url(), &url("a?timeout=3000&retries=5"));
    assert_eq!(invoker.registered_url().param("timeout"), Some("3000"));
}

#[tokio::test]
async fn providers_of_several_groups_are_listed_with_their_own_groups_and_routed() {
    let world = World::of(&["a?group=blue", "b?group=green"]).with_consumer("group", "*");
    let directory = world.directory().await;
    let groups: Vec<_> =
        directory.invokers().iter().map(|one| one.url().group().map(str::to_owned)).collect();
    assert_eq!(groups, [Some("blue".to_owned()), Some("green".to_owned())]);
    world.gate.only("b");
    crate::doubles::until(&*directory, |status| status.generation > 1).await;
    assert_eq!(hosts(&*directory), ["b"]);
}

#[tokio::test]
async fn equal_settings_are_held_once_over_all_addresses_and_notifications() {
    // C95
    let world = World::of(&["a?timeout=3000", "b?timeout=3000"]);
    let directory = world.directory().await;
    world.list(&directory, &["a?timeout=3000", "b@2?timeout=3000", "c?timeout=3000"]).await;
    let invokers = directory.invokers();
    let first = invokers[0].url().shared_params();
    assert!(invokers.iter().all(|one| one.url().shared_params().ptr_eq(first)));
}

#[tokio::test]
async fn a_reference_with_protocol_skips_other_protocols_silently() {
    let (warnings, _guard) = Warnings::listen();
    let other = "tri://b:50051/demo.Greeter?interface=demo.Greeter";
    let world = World::of(&["a", other]).with_consumer("protocol", "rest, dubbo");
    let directory = world.directory().await;
    assert_eq!(hosts(&*directory), ["a"]);
    assert!(warnings.with("").is_empty());
}

#[tokio::test]
async fn an_unknown_protocol_is_skipped_with_one_warning_and_the_rest_goes_on() {
    let (warnings, _guard) = Warnings::listen();
    let others = ["x", "y"].map(|host| format!("rest://{host}:8080/demo.Greeter?interface=demo.Greeter"));
    let world = World::of(&["a", &others[0], &others[1]]);
    let directory = world.directory().await;
    world.list(&directory, &[&others[1], "a", "b"]).await;
    assert_eq!(hosts(&*directory), ["a", "b"]);
    let warned = warnings.with("Unsupported protocol rest in notified url, supported protocol: [\"dubbo\"]");
    assert_eq!(warned.len(), 1, "{warned:?}");
}

#[tokio::test]
async fn an_address_that_can_never_work_is_skipped_with_one_warning_and_the_rest_goes_on() {
    let (warnings, _guard) = Warnings::listen();
    let world = World::of(&["bad?refuse=true", "a"]);
    let directory = world.directory().await;
    world.list(&directory, &["bad?refuse=true", "a", "b"]).await;
    assert_eq!(hosts(&*directory), ["a", "b"]);
    let warned = warnings.with("bad:20880: this address can never work");
    assert_eq!(warned.len(), 1, "{warned:?}");
}

#[tokio::test]
async fn a_provider_that_registered_every_interface_as_its_host_is_skipped_with_a_clear_message() {
    // C109
    let (warnings, _guard) = Warnings::listen();
    let world = World::of(&["0.0.0.0", "[::]", "a"]);
    let directory = world.directory().await;
    assert_eq!(hosts(&*directory), ["a"]);
    for host in ["0.0.0.0:20880", "[::]:20880"] {
        let warned = warnings.with(&format!("{host} is not an address to connect to"));
        assert_eq!(warned.len(), 1, "{host}: {warned:?}");
    }
}

#[tokio::test]
async fn a_list_without_any_usable_address_keeps_the_old_one_and_says_so() {
    let (warnings, _guard) = Warnings::listen();
    let world = World::of(&["a"]);
    let directory = world.directory().await;
    world.list(&directory, &["bad?refuse=true", "rest://x:8080/demo.Greeter"]).await;
    assert_eq!(hosts(&*directory), ["a"]);
    let status = directory.status().borrow().clone();
    assert!(
        status.stale.as_deref().unwrap().contains("none of the listed addresses can be used"),
        "{status}"
    );
    assert!(!status.kept, "there are some: {status}");
    assert_eq!(warnings.with("urls to invokers error").len(), 1);
    world.list(&directory, &["b"]).await;
    assert_eq!(hosts(&*directory), ["b"]);
    assert_eq!(directory.status().borrow().stale, None);
}

#[tokio::test]
async fn a_category_that_is_not_known_yet_changes_nothing() {
    let world = World::of(&["a"]);
    let directory = world.directory().await;
    world.change(&directory, |view| view.providers = Category::Unknown).await;
    assert_eq!(hosts(&*directory), ["a"]);
}

#[tokio::test]
async fn rules_of_the_registry_reach_the_chain_before_the_providers_are_bound() {
    let world = World::of(&["a"]);
    let directory = world.directory().await;
    let rule = "condition://0.0.0.0/demo.Greeter?category=routers&rule=x";
    world
        .change(&directory, |view| {
            view.routers = known(&[rule]);
            view.providers = known(&["a", "b"]);
        })
        .await;
    assert_eq!(*world.gate.registry_rules.lock().unwrap(), [Url::parse(rule).unwrap()]);
    assert_eq!(hosts(&*directory), ["a", "b"]);
    world.change(&directory, |view| view.routers = known(&[])).await;
    assert!(world.gate.registry_rules.lock().unwrap().is_empty());
}

/// Counts the attempts that pass.
#[derive(Debug, Default)]
struct Counter(AtomicUsize);

impl Filter for Counter {
    fn invoke<'a>(
        &'a self,
        next: &'a dyn Invoker,
        call: Invocation,
    ) -> BoxFuture<'a, Result<Response, RpcError>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        next.invoke(call)
    }
}

#[tokio::test]
async fn filters_stand_around_each_provider() {
    let counter = Arc::new(Counter::default());
    let mut world = World::of(&["a", "b"]);
    world.filters = vec![Arc::clone(&counter) as Arc<dyn Filter>];
    let directory = world.directory().await;
    for invoker in &*directory.invokers() {
        assert!(invoker.invoke(call()).await.is_ok());
        assert_eq!(invoker.registered_url().host(), invoker.url().host());
    }
    assert_eq!(counter.0.load(Ordering::SeqCst), 2);
}
