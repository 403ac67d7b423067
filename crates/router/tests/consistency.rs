//! Routing while the list is swapped.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use arc_swap::ArcSwap;
use dubhe_core::invoker::SharedInvoker;
use dubhe_core::router::{RouterChain, Routes};
use dubhe_router::{Chain, ConditionRouter};
use support::{call, consumer, providers};

struct Snapshot {
    providers: Arc<[SharedInvoker]>,
    routes: Arc<dyn Routes>,
}

// C09
#[test]
fn calls_that_route_while_lists_are_swapped_see_one_list_or_the_other_whole() {
    const SWAPS: usize = 10_000;
    let chain =
        Chain::builder(consumer()).rule(ConditionRouter::parse("method=get => env=a").unwrap()).build();
    let list = |net: u8| {
        let url = |at: usize| format!("dubbo://10.0.{net}.{at}:20880/com.foo.Bar?env={}", ["a", "b"][at % 2]);
        providers(&(0..6).map(url).collect::<Vec<_>>())
    };
    let (a, b) = (list(1), list(2));
    let snapshot = |providers: &Arc<[SharedInvoker]>| {
        Arc::new(Snapshot { providers: Arc::clone(providers), routes: chain.bind(providers) })
    };
    let current = ArcSwap::new(snapshot(&a));
    let (over, routed) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for number in 0..64 {
            let (current, over, routed) = (&current, &over, &routed);
            scope.spawn(move || {
                let call = call(if number % 2 == 0 { "get" } else { "set" });
                let expected = if number % 2 == 0 { 3 } else { 6 };
                while !over.load(Ordering::Relaxed) {
                    let snapshot = current.load();
                    let candidates = snapshot.routes.candidates(&call).unwrap();
                    assert_eq!(candidates.len(), expected);
                    for one in candidates.invokers() {
                        assert!(snapshot.providers.iter().any(|known| Arc::ptr_eq(known, one)));
                    }
                    routed.fetch_add(1, Ordering::Relaxed);
                    // Sixty-four spinning readers would starve the one who swaps.
                    thread::yield_now();
                }
            });
        }
        for swap in 0..SWAPS {
            current.store(snapshot(if swap % 2 == 0 { &b } else { &a }));
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(routed.load(Ordering::Relaxed) > 0);
}

#[test]
fn many_first_calls_at_once_end_with_one_list_per_kind() {
    let mut builder = Chain::builder(consumer());
    for at in 0..6 {
        builder = builder.rule(ConditionRouter::parse(&format!("method=m{at} => host=10.0.1.{at}")).unwrap());
    }
    let list =
        providers(&(0..6).map(|at| format!("dubbo://10.0.1.{at}:20880/com.foo.Bar")).collect::<Vec<_>>());
    let routes = builder.build().bind(&list);
    let start = std::sync::Barrier::new(48);
    let all: Vec<_> = thread::scope(|scope| {
        let spawn = |number: usize| {
            let (routes, start) = (&routes, &start);
            scope.spawn(move || {
                let call = call(&format!("m{}", number % 6));
                start.wait();
                (number % 6, routes.candidates(&call).unwrap())
            })
        };
        let threads: Vec<_> = (0..48).map(spawn).collect();
        threads.into_iter().map(|one| one.join().unwrap()).collect()
    });
    for (kind, candidates) in all {
        let known = routes.candidates(&call(&format!("m{kind}"))).unwrap();
        assert_eq!(candidates.len(), 1);
        assert!(Arc::ptr_eq(&candidates, &known));
    }
}
