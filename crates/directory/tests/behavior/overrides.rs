//! Override rules of the registry: what they change, and that a change of them harms no call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use dubhe_core::directory::Directory;
use dubhe_core::invoker::same_invoker;

use crate::doubles::{World, call, hosts, known};

const ALL: &str = "override://0.0.0.0/demo.Greeter?category=configurators&dynamic=false";

fn timeouts(directory: &dyn Directory) -> Vec<String> {
    directory.invokers().iter().map(|one| one.url().param_or("timeout", "-").to_owned()).collect()
}

#[tokio::test]
async fn a_rule_makes_new_invokers_on_the_same_connections_and_its_removal_restores_them() {
    // C28
    let world = World::of(&["a", "b?timeout=3000"]);
    let directory = world.directory().await;
    let rule = format!("{ALL}&timeout=500");
    world.change(&directory, |view| view.configurators = known(&[&rule])).await;
    assert_eq!(timeouts(&*directory), ["500", "500"]);
    world.change(&directory, |view| view.configurators = known(&[])).await;
    assert_eq!(timeouts(&*directory), ["-", "3000"]);
    assert_eq!((world.wire.opened(), world.wire.live()), (2, 2));
    assert_eq!(world.wire.closed.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_rule_for_one_provider_leaves_the_invokers_of_the_others() {
    let world = World::of(&["a", "b"]);
    let directory = world.directory().await;
    let before = directory.invokers();
    let rule = "override://b:20880/demo.Greeter?category=configurators&dynamic=false&timeout=500";
    world.change(&directory, |view| view.configurators = known(&[rule])).await;
    assert_eq!(timeouts(&*directory), ["-", "500"]);
    assert!(same_invoker(&before[0], &directory.invokers()[0]));
}

#[tokio::test]
async fn a_rule_that_is_there_at_the_start_counts_for_the_first_list_and_for_providers_that_come_later() {
    let world = World::of(&["a"]);
    let rule = format!("{ALL}&timeout=500");
    world.board.edit(|view| view.configurators = known(&[&rule]));
    let directory = world.directory().await;
    assert_eq!(timeouts(&*directory), ["500"]);
    assert_eq!(world.wire.referred(), 1);
    world.list(&directory, &["a", "b"]).await;
    assert_eq!(timeouts(&*directory), ["500", "500"]);
    assert_eq!(world.wire.referred(), 2);
}

#[tokio::test]
async fn a_rule_disables_a_provider_and_its_removal_brings_it_back() {
    // C61
    let world = World::of(&["192.0.2.120", "b"]);
    let directory = world.directory().await;
    let rule = "override://192.0.2.120:20880/demo.Greeter?category=configurators&dynamic=false&disabled=true";
    world.change(&directory, |view| view.configurators = known(&[rule])).await;
    assert_eq!(hosts(&*directory), ["b"]);
    world.change(&directory, |view| view.configurators = known(&[])).await;
    assert_eq!(hosts(&*directory), ["192.0.2.120", "b"]);
}

#[tokio::test]
async fn a_rule_without_port_counts_where_the_consumers_host_is_meant() {
    // C61
    for (host, timeout) in [("192.0.2.9", "500"), ("192.0.2.120", "-"), ("0.0.0.0", "500")] {
        let world = World::of(&["192.0.2.120"]);
        let rule = format!("override://{host}/demo.Greeter?category=configurators&timeout=500");
        world.board.edit(|view| view.configurators = known(&[&rule]));
        assert_eq!(timeouts(&*world.directory().await), [timeout], "{host}");
    }
}

#[tokio::test]
async fn a_rule_that_disables_all_forbids_the_service_until_it_is_removed() {
    let world = World::of(&["a", "b"]);
    let directory = world.directory().await;
    let rule = format!("{ALL}&disabled=true");
    world.change(&directory, |view| view.configurators = known(&[&rule])).await;
    assert!(directory.list(&call()).unwrap_err().message().contains("all 2 providers are disabled"));
    world.change(&directory, |view| view.configurators = known(&[])).await;
    assert_eq!(hosts(&*directory), ["a", "b"]);
}

#[tokio::test]
async fn a_rule_does_not_open_a_service_that_the_registry_closed() {
    let world = World::of(&["a"]);
    let directory = world.directory().await;
    world.list(&directory, &[]).await;
    let rule = format!("{ALL}&timeout=500");
    world.change(&directory, |view| view.configurators = known(&[&rule])).await;
    assert!(directory.status().borrow().forbidden);
}

#[tokio::test]
async fn a_rule_for_an_application_matches_the_providers_or_the_consumers() {
    // C62: the providers are `stock`, the consumer is `shop`.
    for (application, timeout) in [("stock", "500"), ("shop", "500"), ("other", "-"), ("*", "500")] {
        let world = World::of(&["a"]);
        let rule = format!("{ALL}&timeout=500&application={application}");
        world.board.edit(|view| view.configurators = known(&[&rule]));
        let directory = world.directory().await;
        assert_eq!(timeouts(&*directory), [timeout], "{application}");
        let url = directory.invokers()[0].url().clone();
        assert_eq!((url.application(), url.param("remote.application")), (Some("stock"), Some("stock")));
    }
}

#[tokio::test]
async fn rules_apply_by_host_and_priority_and_the_last_one_wins() {
    let world = World::of(&["a"]);
    let rules = [
        "override://a:20880/demo.Greeter?category=configurators&timeout=3",
        "override://0.0.0.0/demo.Greeter?category=configurators&timeout=2&priority=5&weight=7",
        "override://0.0.0.0/demo.Greeter?category=configurators&timeout=1&weight=1",
    ];
    world.board.edit(|view| view.configurators = known(&rules));
    let url = world.directory().await.invokers()[0].url().clone();
    assert_eq!((url.param("timeout"), url.param("weight")), (Some("3"), Some("7")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_overrides_under_load_fail_no_call_and_open_no_connection() {
    // C28
    let world = World::of(&["a", "b", "c"]);
    let directory = world.directory().await;
    let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let callers: Vec<_> = (0..8)
        .map(|caller| {
            let (directory, stop, done) = (Arc::clone(&directory), Arc::clone(&stop), Arc::clone(&done));
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let candidates = directory.list(&call()).unwrap();
                    assert_eq!(candidates.len(), 3);
                    candidates.invokers()[caller % 3].invoke(call()).await.unwrap();
                    done.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let rule = format!("{ALL}&timeout=500");
    let mut status = directory.status();
    for round in 0..1_000 {
        let rules: &[&str] = if round % 2 == 0 { &[&rule] } else { &[] };
        status.mark_unchanged();
        world.board.edit(|view| view.configurators = known(rules));
        status.changed().await.unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.unwrap();
    }
    assert!(done.load(Ordering::Relaxed) > 0);
    assert_eq!((world.wire.opened(), world.wire.closed.load(Ordering::SeqCst)), (3, 0));
    assert_eq!(world.wire.live(), 3);
}
