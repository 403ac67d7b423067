//! What every balancer promises, checked with each of them.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use dubhe_core::extension::Extensions;
use dubhe_core::invoker::same_invoker;
use dubhe_core::load_balance::Candidates;
use dubhe_loadbalance::{LoadBalance, builtin};
use support::{
    ManualClock, assert_shares, balancers, balancers_with, call, counts, provider, provider_at, weighing,
};

const NOW: u64 = 1_700_000_000_000;

#[test]
fn the_builtin_balancers_are_found_by_their_names() {
    let mut extensions: Extensions<dyn LoadBalance> = Extensions::new("loadbalance");
    builtin(&mut extensions).unwrap();
    let names: Vec<String> =
        extensions.activated().into_iter().map(|(_, one)| one.name().to_owned()).collect();
    assert_eq!(names, ["random", "roundrobin"]);
    assert_eq!(
        names,
        balancers().iter().map(|one| one.name()).collect::<Vec<_>>(),
        "the suite runs over all"
    );
    assert!(builtin(&mut extensions).is_err());
}

// C60
#[test]
fn an_empty_list_gives_none() {
    for balancer in balancers() {
        assert!(balancer.select(&weighing(&[]), &call("get")).is_none(), "{}", balancer.name());
    }
}

#[test]
fn a_single_candidate_is_picked_whatever_it_weighs() {
    for balancer in balancers() {
        assert_eq!(counts(&*balancer, &weighing(&[0]), 5), [5]);
    }
}

// C108
#[test]
fn all_three_of_three_nodes_are_used() {
    for balancer in balancers() {
        assert_shares(balancer.name(), &counts(&*balancer, &weighing(&[100; 3]), 3_000), &[100; 3], 0.1);
    }
}

#[test]
fn shares_follow_the_weights() {
    for weights in [vec![1, 2, 3], vec![100, 50, 10], vec![0, 1, 1], vec![7, 3], vec![100, 200]] {
        for balancer in balancers() {
            let counts = counts(&*balancer, &weighing(&weights), 60_000);
            assert_shares(balancer.name(), &counts, &weights, 0.05);
        }
    }
}

#[test]
fn shares_follow_the_weights_in_large_lists() {
    let weights: Vec<u32> = (0..500).map(|number| [10, 20, 30, 40, 0][number % 5]).collect();
    for balancer in balancers() {
        let counts = counts(&*balancer, &weighing(&weights), 100_000);
        let by_weight: Vec<usize> = (0..5).map(|kind| counts.iter().skip(kind).step_by(5).sum()).collect();
        assert_shares(balancer.name(), &by_weight, &[10, 20, 30, 40, 0], 0.03);
    }
}

#[test]
fn candidates_that_all_weigh_nothing_share_the_calls() {
    for balancer in balancers() {
        assert_shares(balancer.name(), &counts(&*balancer, &weighing(&[0, 0]), 2_000), &[1, 1], 0.1);
    }
}

#[test]
fn the_last_candidate_is_as_good_as_the_first() {
    for balancer in balancers() {
        let counts = counts(&*balancer, &weighing(&[1, 1, 1, 97]), 20_000);
        assert_shares(balancer.name(), &counts[3..], &[97], 0.05);
        assert_shares(balancer.name(), &counts, &[1, 1, 1, 97], 0.25);
    }
}

#[test]
fn the_weight_of_a_method_counts_for_that_method_only() {
    let of_get = Candidates::new(vec![provider(0, "weight=100&get.weight=300"), provider(1, "weight=100")]);
    for balancer in balancers() {
        let mut shares = [[0_usize; 2]; 2];
        for (kind, method) in ["get", "set"].into_iter().enumerate() {
            for _ in 0..8_000 {
                let picked = balancer.select(&of_get, &call(method)).unwrap();
                shares[kind][usize::from(same_invoker(picked, &of_get.invokers()[1]))] += 1;
            }
        }
        assert_shares(balancer.name(), &shares[0], &[3, 1], 0.05);
        assert_shares(balancer.name(), &shares[1], &[1, 1], 0.05);
    }
}

// C67
#[test]
fn equal_weights_of_which_one_warms_up_are_not_equal() {
    let clock = ManualClock::at(NOW);
    let old = provider(0, &format!("weight=100&timestamp={}", NOW - 600_000));
    let new = provider(1, &format!("weight=100&timestamp={}", NOW - 60_000));
    for balancer in balancers_with(clock) {
        let candidates = Candidates::new(vec![Arc::clone(&old), Arc::clone(&new)]);
        assert_shares(balancer.name(), &counts(&*balancer, &candidates, 22_000), &[100, 10], 0.05);
    }
}

// C67
#[test]
fn a_lone_new_provider_gets_calls_without_drawing_them_all() {
    let clock = ManualClock::at(NOW);
    let all =
        (0..9).map(|number| provider(number, "weight=100")).chain([provider(9, &format!("timestamp={NOW}"))]);
    let candidates = Candidates::new(all.collect::<Vec<_>>());
    for balancer in balancers_with(clock) {
        let counts = counts(&*balancer, &candidates, 90_100);
        assert_shares(balancer.name(), &counts[..9], &[100; 9], 0.05);
        assert!((50..200).contains(&counts[9]), "{}: {counts:?}", balancer.name());
    }
}

#[test]
fn a_provider_that_warmed_up_has_its_full_share_in_the_same_list() {
    for at in 0..balancers().len() {
        let clock = ManualClock::at(NOW);
        let balancer = &balancers_with(Arc::clone(&clock) as _)[at];
        let candidates = Candidates::new(vec![provider(0, ""), provider(1, &format!("timestamp={NOW}"))]);
        assert_shares(balancer.name(), &counts(&**balancer, &candidates, 20_200), &[100, 1], 0.25);
        clock.advance(300_000);
        assert_shares(balancer.name(), &counts(&**balancer, &candidates, 30_000), &[100, 50], 0.05);
        clock.advance(300_000);
        assert_shares(balancer.name(), &counts(&**balancer, &candidates, 30_000), &[100, 100], 0.05);
    }
}

#[test]
fn a_whole_registry_as_candidate_weighs_what_the_registry_says() {
    let registry = |number: usize, weight: u32| {
        let service = "org.apache.dubbo.registry.RegistryService";
        provider_at(&format!(
            "zookeeper://10.0.0.{number}:2181/{service}?interface={service}&weight={weight}&timestamp={NOW}"
        ))
    };
    let candidates = Candidates::new(vec![registry(1, 300), registry(2, 100)]);
    for balancer in balancers_with(ManualClock::at(NOW)) {
        assert_shares(balancer.name(), &counts(&*balancer, &candidates, 8_000), &[3, 1], 0.06);
    }
}

#[test]
fn nonsense_in_urls_does_not_fail_a_call() {
    let odd = [
        "weight=abc",
        "weight=-7",
        "weight=99999999999999999999",
        "timestamp=x&warmup=-1",
        "timestamp=9223372036854775807",
    ];
    let candidates =
        Candidates::new(odd.iter().enumerate().map(|(at, url)| provider(at, url)).collect::<Vec<_>>());
    for balancer in balancers() {
        assert_eq!(counts(&*balancer, &candidates, 1_000).iter().sum::<usize>(), 1_000);
    }
}

#[test]
fn what_was_picked_is_one_of_the_candidates_from_many_threads() {
    for balancer in balancers() {
        let candidates = weighing(&[3, 0, 1, 7, 7, 2]);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        let picked = balancer.select(&candidates, &call("get")).unwrap();
                        assert!(candidates.invokers().iter().any(|one| same_invoker(one, picked)));
                        assert!(!same_invoker(picked, &candidates.invokers()[1]), "it weighs nothing");
                    }
                });
            }
        });
    }
}

// C107
#[test]
fn a_thousand_first_calls_at_once_all_get_an_answer() {
    const CALLS: usize = 1_000;
    for balancer in balancers() {
        for weights in [vec![100; 300], (0..300).map(|number| number % 7).collect(), vec![1, 2, 3]] {
            let (candidates, answered) = (weighing(&weights), AtomicUsize::new(0));
            thread::scope(|scope| {
                for number in 0..CALLS {
                    let (balancer, candidates, answered) = (&balancer, &candidates, &answered);
                    scope.spawn(move || {
                        let method = ["get", "set", "put"][number % 3];
                        answered.fetch_add(
                            usize::from(balancer.select(candidates, &call(method)).is_some()),
                            Ordering::Relaxed,
                        );
                    });
                }
            });
            assert_eq!(answered.load(Ordering::Relaxed), CALLS, "{}", balancer.name());
        }
    }
}

#[test]
fn methods_beyond_what_is_told_apart_are_still_balanced() {
    let candidates = weighing(&[1, 1]);
    for balancer in balancers() {
        let mut first = 0;
        for number in 0..3_000 {
            let picked = balancer.select(&candidates, &call(&format!("m{number}"))).unwrap();
            first += usize::from(same_invoker(picked, &candidates.invokers()[0]));
        }
        assert!(first > 0);
    }
}
