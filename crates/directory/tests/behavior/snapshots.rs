//! Calls see one list at a time, and nothing that is told is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use dubhe_core::directory::Directory;

use crate::doubles::{World, call, hosts, known, listing, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_see_all_of_one_list_or_all_of_the_other_while_lists_are_swapped() {
    // C09
    let names = |kind: &str| (0..20).map(|at| format!("{kind}{at}")).collect::<Vec<_>>();
    let (a, b) = (names("a"), names("b"));
    let (a, b): (Vec<&str>, Vec<&str>) =
        (a.iter().map(String::as_str).collect(), b.iter().map(String::as_str).collect());
    let views = [listing(&a), listing(&b)];
    let world = World::of(&a);
    let directory = world.directory().await;
    let (stop, looks) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let callers: Vec<_> = (0..64)
        .map(|_| {
            let (directory, stop, looks) = (Arc::clone(&directory), Arc::clone(&stop), Arc::clone(&looks));
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let candidates = directory.list(&call()).unwrap();
                    assert_eq!(candidates.len(), 20);
                    let first = &candidates.invokers()[0].url().host()[..1];
                    assert!(candidates.invokers().iter().all(|one| one.url().host().starts_with(first)));
                    looks.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    let mut status = directory.status();
    for round in 0..3_000 {
        status.mark_unchanged();
        world.board.show(views[(round + 1) % 2].clone());
        status.changed().await.unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.unwrap();
    }
    assert!(looks.load(Ordering::Relaxed) > 0);
    assert!(directory.status().borrow().generation >= 3_000);
}

#[tokio::test]
async fn a_view_that_comes_together_with_other_news_is_not_lost() {
    let world = World::of(&["a", "b"]);
    let directory = world.directory().await;
    for round in 0..64_usize {
        let (now, gone) = if round.is_multiple_of(2) { ("c", "b") } else { ("b", "c") };
        // Both are there when the writer wakes up; it may look at either first.
        world.board.edit(|view| view.providers = known(&["a", now]));
        world.gate.only(now);
        until(&*directory, |_| hosts(&*directory) == [now]).await;
        assert!(!directory.invokers().iter().any(|one| one.url().host() == gone));
    }
}

#[tokio::test]
async fn a_rule_that_changes_while_the_directory_starts_counts() {
    let world = World::of(&["a", "b"]);
    let directory = world.directory().await;
    // The writer's task has not run yet on this one thread.
    world.gate.only("b");
    until(&*directory, |_| hosts(&*directory) == ["b"]).await;
}
