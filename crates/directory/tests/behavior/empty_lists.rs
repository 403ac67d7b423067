//! Empty is not trouble, and neither is "none for this group": forbidden, protected, disabled, from the cache.

use std::sync::Arc;

use dubhe_core::directory::Directory;
use dubhe_core::error::ErrorCode;
use dubhe_core::registry::Category;
use dubhe_directory::RegistryDirectory;

use crate::doubles::{Board, World, call, hosts, known, listing, until};

fn refusal(directory: &RegistryDirectory) -> String {
    let error = directory.list(&call()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Forbidden);
    error.message().to_owned()
}

#[tokio::test]
async fn an_empty_list_forbids_the_service_and_lets_its_providers_go() {
    // C35
    let world = World::of(&["a"]);
    let directory = world.directory().await;
    assert!(directory.is_available());
    world.list(&directory, &[]).await;
    let text = refusal(&directory);
    for part in [
        "No provider available from registry zk1.example:2181 for service demo.Greeter on consumer 192.0.2.9",
        "please check status of providers(disabled, not registered or in blacklist)",
        "no provider is registered",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(directory.status().borrow().forbidden);
    assert!(!directory.is_available());
    assert_eq!((world.wire.live(), directory.invokers().len()), (0, 0));

    world.list(&directory, &["b"]).await;
    assert_eq!(hosts(&*directory), ["b"]);
    assert!(!directory.status().borrow().forbidden);
}

#[tokio::test]
async fn with_empty_protection_the_old_list_stays_and_is_marked_stale() {
    // C35
    let world = World::of(&["a"]).with_consumer("enable-empty-protection", "true");
    let directory = world.directory().await;
    let before = directory.invokers();
    world.list(&directory, &[]).await;
    assert!(Arc::ptr_eq(&before[0], &directory.invokers()[0]));
    assert_eq!(hosts(&*directory), ["a"]);
    let status = directory.status().borrow().clone();
    assert!(status.stale.as_deref().unwrap().contains("empty protection is on"), "{status}");
    assert!(status.kept && !status.forbidden);
    assert!(status.to_string().contains("kept against an empty list"), "{status}");

    world.list(&directory, &["b"]).await;
    assert_eq!(hosts(&*directory), ["b"]);
    let status = directory.status().borrow().clone();
    assert_eq!((status.stale, status.kept), (None, false));
}

// C10
#[tokio::test]
async fn a_list_kept_by_empty_protection_is_still_marked_when_the_registry_goes_away() {
    let world = World::of(&["a"]).with_consumer("enable-empty-protection", "true");
    let directory = world.directory().await;
    world.list(&directory, &[]).await;
    for trouble in [Some("connection lost"), None] {
        world.change(&directory, |view| view.trouble = trouble.map(Into::into)).await;
        assert!(directory.status().borrow().kept);
    }
    // Nor does a rule make it more than that.
    let rule = "override://0.0.0.0/demo.Greeter?category=configurators&dynamic=false&timeout=500";
    world.change(&directory, |view| view.configurators = known(&[rule])).await;
    assert_eq!(hosts(&*directory), ["a"]);
    assert!(directory.status().borrow().kept);
}

#[tokio::test]
async fn the_registry_decides_on_empty_protection_where_the_consumer_says_nothing() {
    // C35
    for (consumer, is_kept) in [("", true), ("false", false)] {
        let mut world = World::of(&[]).with_consumer("enable-empty-protection", consumer);
        let address = "zookeeper://zk1.example:2181?enable-empty-protection=true";
        world.board = Board::at(address, listing(&["a"]));
        let directory = world.directory().await;
        world.list(&directory, &[]).await;
        assert_eq!(directory.list(&call()).is_ok(), is_kept, "{consumer:?}");
    }
}

#[tokio::test]
async fn with_empty_protection_and_nothing_listed_before_the_list_is_empty_and_says_why() {
    let world = World::of(&[]).with_consumer("enable-empty-protection", "true");
    let directory = world.directory().await;
    assert!(hosts(&*directory).is_empty());
    let status = directory.status().borrow().clone();
    assert!(status.initialized && !status.kept);
    assert!(status.stale.as_deref().unwrap().contains("no provider is registered"), "{status}");
}

#[tokio::test]
async fn an_empty_list_of_others_says_how_many_are_registered() {
    // C35
    let world = World::of(&["a"]);
    let directory = world.directory().await;
    let none: Arc<[dubhe_common::Url]> = Arc::from([]);
    for total in [3, 0] {
        let urls = Arc::clone(&none);
        world.change(&directory, |view| view.providers = Category::Known { urls, total }).await;
        let text = refusal(&directory);
        let filtered = text.contains("3 providers are registered, none matches the group, version");
        assert_eq!(filtered, total == 3, "{text}");
    }
}

#[tokio::test]
async fn when_every_provider_is_disabled_the_service_is_forbidden() {
    let world = World::of(&["a", "b"]);
    let directory = world.directory().await;
    world.list(&directory, &["a?disabled=true", "b?enabled=false"]).await;
    assert!(refusal(&directory).contains("all 2 providers are disabled"));
    assert_eq!(world.wire.live(), 0);
    world.list(&directory, &["a", "b?enabled=false"]).await;
    assert_eq!(hosts(&*directory), ["a"]);
}

#[tokio::test]
async fn trouble_with_the_registry_keeps_the_list_and_says_so() {
    // C20
    let world = World::of(&["a", "b"]);
    let directory = world.directory().await;
    world.change(&directory, |view| view.trouble = Some("connection lost".into())).await;
    assert_eq!(hosts(&*directory), ["a", "b"]);
    let status = directory.status().borrow().clone();
    assert_eq!((status.stale.as_deref(), status.kept), (Some("connection lost"), false));
    assert!(directory.is_available());

    // Back, and b was replaced meanwhile.
    world
        .change(&directory, |view| {
            view.trouble = None;
            view.providers = known(&["a", "c"]);
        })
        .await;
    assert_eq!(hosts(&*directory), ["a", "c"]);
    assert_eq!(directory.status().borrow().stale, None);
}

#[tokio::test]
async fn a_registry_that_was_never_read_makes_no_provider_but_forbids_nothing() {
    // C20
    let world = World::of(&[]);
    world.board.edit(|view| {
        view.providers = Category::Unknown;
        view.trouble = Some("not reached yet".into());
    });
    let directory = world.directory().await;
    assert!(hosts(&*directory).is_empty());
    let status = directory.status().borrow().clone();
    assert!(!status.initialized && !status.forbidden);
    assert_eq!(status.stale.as_deref(), Some("not reached yet"));
}

#[tokio::test]
async fn addresses_from_the_cache_file_are_used_and_marked_until_the_registry_confirms() {
    let world = World::of(&["a"]);
    world.board.edit(|view| view.from_cache = true);
    let directory = world.directory().await;
    assert_eq!(hosts(&*directory), ["a"]);
    let status = directory.status().borrow().clone();
    assert!(status.stale.as_deref().unwrap().contains("cache file") && !status.kept, "{status}");
    let before = directory.invokers();
    world.change(&directory, |view| view.from_cache = false).await;
    assert_eq!(directory.status().borrow().stale, None);
    assert!(Arc::ptr_eq(&before, &directory.invokers()));
}

/// The registry is lost, and when it is back it has deleted what belonged to sessions that ended meanwhile.
async fn lose_the_registry_and_find_it_empty(world: &World, directory: &RegistryDirectory) {
    world.board.edit(|view| view.trouble = Some("the connection is lost".into()));
    until(directory, |status| status.stale.as_deref() == Some("the connection is lost")).await;
    world.board.edit(|view| (view.trouble, view.providers) = (None, known(&[])));
    until(directory, |status| status.stale.as_deref() != Some("the connection is lost")).await;
}

// C20
#[tokio::test(start_paused = true)]
async fn an_empty_list_right_after_trouble_waits_for_the_providers_to_return() {
    let world = World::of(&["a"]);
    let directory = world.directory().await;
    lose_the_registry_and_find_it_empty(&world, &directory).await;
    assert_eq!(hosts(&*directory), ["a"]);
    let status = directory.status().borrow().clone();
    assert!(status.kept && !status.forbidden);
    assert!(status.stale.as_deref().unwrap().contains("kept for 10 s"), "{status}");
    // They return in time: nothing was lost.
    world.board.edit(|view| view.providers = known(&["a"]));
    until(&*directory, |status| status.stale.is_none()).await;
    assert!(!directory.status().borrow().kept);
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(hosts(&*directory), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_after_trouble_is_believed_when_nobody_returns() {
    let world = World::of(&["a"]);
    let directory = world.directory().await;
    let started = tokio::time::Instant::now();
    lose_the_registry_and_find_it_empty(&world, &directory).await;
    until(&*directory, |status| status.forbidden).await;
    assert!(!directory.status().borrow().kept);
    assert_eq!(started.elapsed().as_secs(), 10);
    assert!(refusal(&directory).contains("also some time after the registry's return"));
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_long_after_trouble_is_believed_at_once() {
    let world = World::of(&["a"]);
    let directory = world.directory().await;
    world.board.edit(|view| view.trouble = Some("the connection is lost".into()));
    until(&*directory, |status| status.stale.is_some()).await;
    world.board.edit(|view| view.trouble = None);
    until(&*directory, |status| status.stale.is_none()).await;
    tokio::time::sleep(std::time::Duration::from_secs(11)).await;
    world.board.edit(|view| view.providers = known(&[]));
    until(&*directory, |status| status.forbidden || status.stale.is_some()).await;
    assert!(directory.status().borrow().forbidden);
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_in_trouble_is_not_believed_before_some_time_after_it() {
    let world = World::of(&["a"]);
    let directory = world.directory().await;
    world.board.edit(|view| view.trouble = Some("the connection is lost".into()));
    until(&*directory, |status| status.stale.is_some()).await;
    // One category is read again, another one is not yet.
    world.board.edit(|view| {
        view.trouble = Some("routers are not read yet".into());
        view.providers = known(&[]);
    });
    until(&*directory, |status| status.stale.as_deref() == Some("routers are not read yet")).await;
    tokio::time::sleep(std::time::Duration::from_secs(3_600)).await;
    assert_eq!(hosts(&*directory), ["a"]);
    assert!(directory.status().borrow().kept);
    let over = tokio::time::Instant::now();
    world.board.edit(|view| view.trouble = None);
    until(&*directory, |status| status.forbidden).await;
    assert_eq!(over.elapsed().as_secs(), 10);
}
