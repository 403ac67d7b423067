//! Providers that calls found unavailable: out, back, and all offered when none is left.

use dubhe_core::directory::Directory;
use dubhe_core::invoker::SharedInvoker;
use dubhe_core::router::RouterChain;
use dubhe_directory::StaticDirectory;
use std::sync::Arc;

use crate::doubles::{World, call, hosts, known, until};

fn invoker(directory: &dyn Directory, host: &str) -> SharedInvoker {
    directory.invokers().iter().find(|one| one.url().host() == host).cloned().unwrap()
}

async fn set_aside(world: &World, directory: &dyn Directory, host: &str) {
    let valid = directory.status().borrow().valid;
    world.wire.set_open(host, false);
    directory.invalidate(&invoker(directory, host));
    until(directory, |status| status.valid < valid).await;
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_provider_is_left_out_until_it_is_available_again() {
    let world = World::of(&["a", "b"]);
    let directory = world.directory().await;
    set_aside(&world, &*directory, "a").await;
    assert_eq!(hosts(&*directory), ["b"]);
    assert_eq!(directory.invokers().len(), 2);
    let explained = directory.explain(&call()).to_string();
    assert!(explained.contains("[connectivity]\n  drops a:20880: not available"), "{explained}");

    world.wire.set_open("a", true);
    until(&*directory, |status| status.valid == 2).await;
    assert_eq!(hosts(&*directory), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn when_none_is_available_all_are_offered() {
    let world = World::of(&["a", "b"]);
    let directory = world.directory().await;
    set_aside(&world, &*directory, "a").await;
    set_aside(&world, &*directory, "b").await;
    assert_eq!(hosts(&*directory), ["a", "b"]);
    assert_eq!(directory.status().borrow().valid, 0);
    assert!(!directory.is_available());
    assert!(directory.explain(&call()).to_string().contains("keeps a:20880: not available, but kept"));

    world.wire.set_open("b", true);
    until(&*directory, |status| status.valid == 1).await;
    assert_eq!(hosts(&*directory), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn the_pause_between_looks_grows_to_a_second_however_often_calls_report() {
    let world = World::of(&["a", "b"]);
    let directory = world.directory().await;
    set_aside(&world, &*directory, "a").await;
    // Long enough that looks are a second apart; reports go on all the time.
    for _ in 0..500 {
        directory.invalidate(&invoker(&*directory, "a"));
        tokio::time::advance(std::time::Duration::from_millis(10)).await;
        tokio::task::yield_now().await;
    }
    world.wire.set_open("a", true);
    let opened = tokio::time::Instant::now();
    until(&*directory, |status| status.valid == 2).await;
    let waited = opened.elapsed();
    assert!(waited.as_millis() <= 1_001, "{waited:?}");
    assert!(waited.as_millis() > 20, "reports must not make it look at once again: {waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_report_about_a_provider_that_is_available_or_gone_changes_nothing() {
    let world = World::of(&["a", "b"]);
    let directory = world.directory().await;
    let gone = invoker(&*directory, "a");
    directory.invalidate(&invoker(&*directory, "b"));
    world.list(&directory, &["b", "c"]).await;
    world.wire.set_open("a", false);
    directory.invalidate(&gone);
    world.change(&directory, |_| {}).await;
    let status = directory.status().borrow().clone();
    assert_eq!((status.total, status.valid), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_is_set_aside_stays_so_over_changes_of_others_and_is_forgotten_when_it_leaves() {
    let world = World::of(&["a", "b"]);
    let directory = world.directory().await;
    set_aside(&world, &*directory, "a").await;
    world.list(&directory, &["a", "b", "c"]).await;
    assert_eq!(hosts(&*directory), ["b", "c"]);
    world.list(&directory, &["b", "c"]).await;
    let status = directory.status().borrow().clone();
    assert_eq!((status.total, status.valid), (2, 2));
    tokio::task::yield_now().await;
    assert_eq!(world.wire.live(), 2);
    // A new one of that address is not the old one.
    world.list(&directory, &["a", "b"]).await;
    assert_eq!(hosts(&*directory), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_fixed_list_is_routed_and_watched_in_the_same_way() {
    // C60: references by address pass through routers, too.
    let world = World::of(&["a", "b", "c"]);
    let invokers = world.directory().await.invokers().to_vec();
    let chain = Arc::clone(&world.gate) as Arc<dyn RouterChain>;
    let directory = StaticDirectory::new(world.consumer.clone(), invokers, chain);
    assert!(directory.status().borrow().initialized);
    assert_eq!((directory.origin(), hosts(&*directory).len()), ("static", 3));

    let before = directory.status().borrow().generation;
    world.gate.only("b");
    until(&*directory, |status| status.generation > before).await;
    assert_eq!(hosts(&*directory), ["b"]);

    set_aside(&world, &*directory, "a").await;
    world.wire.set_open("a", true);
    until(&*directory, |status| status.valid == 3).await;

    directory.close().await;
    directory.close().await;
    assert!(directory.list(&call()).unwrap_err().message().contains("already destroyed"));
    assert!(!directory.is_available());
}

#[tokio::test(start_paused = true)]
async fn providers_come_back_even_after_the_registry_was_closed() {
    let world = World::of(&["a", "b"]);
    let directory = world.directory().await;
    set_aside(&world, &*directory, "a").await;
    world.board.edit(|view| view.providers = known(&["a", "b"]));
    world.board.end();
    world.wire.set_open("a", true);
    until(&*directory, |status| status.valid == 2).await;
    assert_eq!(hosts(&*directory), ["a", "b"]);
}
