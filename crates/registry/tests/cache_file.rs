//! A registry that cannot be reached at the start: addresses come from the cache file.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;

use dubhe_core::registry::Registry;
use dubhe_core::tree::SessionState;
use dubhe_registry::{MemoryStore, TreeRegistry};
use support::{ScriptedTree, consumer, hosts, provider, until, url};
use tempfile::TempDir;
use tokio::time::Instant;

fn address(folder: &TempDir, params: &str) -> dubhe_common::Url {
    url(&format!("memory://test?file={}&{params}", folder.path().join("test.cache").display()))
}

/// Lets a process see `numbers` and end.
async fn earlier_run(folder: &TempDir, numbers: &[usize], params: &str) {
    let registry = TreeRegistry::new(&address(folder, params), MemoryStore::new().connect());
    for number in numbers {
        registry.register(&provider(*number)).await.unwrap();
    }
    let subscription =
        registry.subscribe(&consumer("category=providers,configurators,routers")).await.unwrap();
    registry.close().await;
    drop(subscription);
}

// C100
#[tokio::test(start_paused = true)]
async fn a_start_without_the_registry_uses_the_file_until_the_first_real_list() {
    let folder = TempDir::new().unwrap();
    earlier_run(&folder, &[1, 2], "").await;
    let tree = ScriptedTree::new(SessionState::Connecting);
    let registry = TreeRegistry::new(&address(&folder, ""), Arc::clone(&tree) as _);
    let started = Instant::now();
    let mut subscription = registry.subscribe(&consumer("category=providers")).await.unwrap();
    assert_eq!(started.elapsed().as_secs(), 3, "the grace time, not the registry's timeout");
    let view = subscription.view();
    assert_eq!((hosts(&view).len(), view.from_cache, view.trouble.is_some()), (2, true, true));

    tree.session.send_replace(SessionState::Connected { epoch: 1 });
    tree.show("providers", &[Arc::from(provider(3).encoded())], 1);
    let view = until(&mut subscription, |view| !view.from_cache).await;
    assert_eq!((hosts(&view), view.trouble.is_some()), (vec!["10.0.0.3".to_owned()], false));
}

// C100
#[tokio::test(start_paused = true)]
async fn without_an_entry_in_the_file_the_registry_is_needed() {
    let folder = TempDir::new().unwrap();
    earlier_run(&folder, &[], "").await;
    let tree = ScriptedTree::new(SessionState::Connecting);
    let registry = TreeRegistry::new(&address(&folder, ""), tree);
    assert!(registry.subscribe(&consumer("")).await.is_err());
    let view = registry.subscribe(&consumer("check=false")).await.unwrap().view();
    assert!(view.providers.urls().is_none());
}

// C35, C100
#[tokio::test(start_paused = true)]
async fn an_explicit_empty_list_replaces_addresses_from_the_file() {
    let folder = TempDir::new().unwrap();
    earlier_run(&folder, &[1], "").await;
    let tree = ScriptedTree::new(SessionState::Connecting);
    let registry = TreeRegistry::new(&address(&folder, ""), Arc::clone(&tree) as _);
    let mut subscription = registry.subscribe(&consumer("")).await.unwrap();
    assert!(subscription.view().from_cache);
    tree.show("providers", &[], 1);
    let view = until(&mut subscription, |view| !view.from_cache).await;
    assert_eq!(view.providers.urls().map(|urls| urls.len()), Some(0));
}

// C100
#[tokio::test(start_paused = true)]
async fn file_cache_false_leaves_no_file() {
    let folder = TempDir::new().unwrap();
    earlier_run(&folder, &[1], "file.cache=false").await;
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

// C20
#[tokio::test(start_paused = true)]
async fn the_file_never_replaces_what_the_registry_said() {
    let folder = TempDir::new().unwrap();
    earlier_run(&folder, &[1], "").await;
    let store = MemoryStore::new();
    let tree = store.session("test");
    let registry = TreeRegistry::new(&address(&folder, ""), Arc::new(tree.clone()));
    registry.register(&provider(5)).await.unwrap();
    let mut first = registry.subscribe(&consumer("")).await.unwrap();
    tree.suspend();
    until(&mut first, |view| view.trouble.is_some()).await;
    let view = registry.subscribe(&consumer("")).await.unwrap().view();
    assert_eq!((hosts(&view), view.from_cache), (vec!["10.0.0.5".to_owned()], false));
}
