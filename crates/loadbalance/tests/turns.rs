//! What round robin promises beyond shares: even spreading, and turns that go on through changes.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::sync::Arc;

use dubhe_core::load_balance::Candidates;
use dubhe_loadbalance::{LoadBalance, RoundRobin};
use support::{ManualClock, call, counts, picks, provider, weighing};

#[test]
fn equal_weights_rotate_at_any_size() {
    for size in [2, 64, 65, 1_000] {
        let expected: Vec<usize> = (0..size).chain(0..size).collect();
        assert_eq!(picks(&RoundRobin::default(), &weighing(&vec![5; size]), 2 * size), expected);
    }
}

#[test]
fn a_new_list_goes_on_behind_the_last_pick() {
    let balancer = RoundRobin::default();
    let list = |numbers: std::ops::Range<usize>| {
        Candidates::new(numbers.map(|at| provider(at, "")).collect::<Vec<_>>())
    };
    assert_eq!(picks(&balancer, &list(0..10), 4), [0, 1, 2, 3]);
    // Provider 0 left, so that provider 4 is now at position 3.
    assert_eq!(picks(&balancer, &list(1..10), 3), [3, 4, 5]);
    assert_eq!(picks(&balancer, &list(0..12), 3), [7, 8, 9]);
    assert_eq!(picks(&balancer, &list(50..52), 2), [0, 1]);
}

#[test]
fn lists_used_by_turns_do_not_skip_each_other() {
    // Every second call goes to another list of the same service and method.
    let balancer = RoundRobin::default();
    let (a, b) = (weighing(&[1; 4]), weighing(&[1; 6]));
    let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
    for _ in 0..12 {
        of_a.extend(picks(&balancer, &a, 1));
        of_b.extend(picks(&balancer, &b, 1));
    }
    for list in [&mut of_a, &mut of_b] {
        list.sort_unstable();
    }
    assert_eq!(of_a, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]);
    assert_eq!(of_b, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
}

#[test]
fn methods_have_their_own_turns() {
    let (balancer, candidates) = (RoundRobin::default(), weighing(&[1, 1]));
    let address = |method: &str| balancer.select(&candidates, &call(method)).unwrap().url().address();
    assert_eq!(address("get"), address("set"));
    assert_ne!(address("get"), address("put"));
}

#[test]
fn balancers_do_not_take_each_others_turns() {
    let (one, other, candidates) = (RoundRobin::default(), RoundRobin::default(), weighing(&[1, 1, 1]));
    assert_eq!(picks(&one, &candidates, 2), [0, 1]);
    assert_eq!(picks(&other, &candidates, 2), [0, 1]);
}

#[test]
fn turns_are_spread_evenly_in_large_lists() {
    let weights: Vec<u32> = (0..200).map(|number| if number % 2 == 0 { 30 } else { 10 }).collect();
    let picks = picks(&RoundRobin::default(), &weighing(&weights), 4_000 * 3);
    // A provider of weight 30 has every 133rd call, one of weight 10 every 400th.
    for number in [0, 1, 98, 199] {
        let turns: Vec<usize> = (0..picks.len()).filter(|at| picks[*at] == number).collect();
        let distance = if number % 2 == 0 { 400 / 3 } else { 400 };
        assert!(turns.len() >= 29, "{}", turns.len());
        for pair in turns.windows(2) {
            assert!((pair[1] - pair[0]).abs_diff(distance) <= distance / 8, "{number}: {pair:?}");
        }
    }
}

#[test]
fn a_change_of_a_large_list_does_not_give_anyone_two_turns_at_once() {
    let balancer = RoundRobin::default();
    let weight = |number: usize| [100, 200][number % 2];
    let list = |numbers: std::ops::Range<usize>| {
        Candidates::new(numbers.map(|at| provider(at, &format!("weight={}", weight(at)))).collect::<Vec<_>>())
    };
    let mut counts = vec![0_usize; 300];
    // Ten changes within one round: positions are provider numbers minus the first.
    for first in 0..10 {
        for position in picks(&balancer, &list(first..300), 44) {
            counts[first + position] += 1;
        }
    }
    for (number, count) in counts.iter().enumerate().skip(10) {
        assert!(*count <= weight(number) / 100 + 1, "{number} had {count} turns in a round");
    }
}

#[test]
fn warming_up_does_not_start_turns_anew() {
    const NOW: u64 = 1_700_000_000_000;
    let clock = ManualClock::at(NOW);
    let balancer = RoundRobin::new(Arc::clone(&clock) as _);
    let candidates =
        Candidates::new(vec![provider(0, "weight=100"), provider(1, &format!("weight=100&timestamp={NOW}"))]);
    // 600 s of warm-up at a pick every 100 ms: its weight is half of the other's on average, so a third of the calls.
    let mut of_new = 0;
    for _ in 0..6_000 {
        of_new += counts(&balancer, &candidates, 1)[1];
        clock.advance(100);
    }
    // The share at time t (of 1) is t / (1 + t): over the whole, 1 - ln 2.
    let expected = (1.0 - 2.0_f64.ln()) * 6_000.0;
    assert!((of_new as f64 - expected).abs() < expected * 0.03, "{of_new}, not about {expected}");
}
