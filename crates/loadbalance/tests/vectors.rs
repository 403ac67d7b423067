//! Known answers of Apache Dubbo 3.1.11. The consistent hash cases wait for that balancer.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use dubhe_common::Url;
use dubhe_core::load_balance::Candidates;
use dubhe_loadbalance::RoundRobin;
use dubhe_loadbalance::weight::{Weight, warm_up_weight};
use serde_json::Value as Json;
use support::{picks, provider, weighing};

#[test]
fn warm_up_weights_are_those_of_dubbo() {
    let cases = section("calculateWarmupWeight");
    for case in &cases {
        let number = |key: &str| case[key].as_i64().unwrap();
        assert_eq!(
            warm_up_weight(number("uptime"), number("warmup"), number("weight")),
            number("result"),
            "{case}"
        );
    }
    assert_eq!(cases.len(), 27);
}

#[test]
fn weights_are_those_of_dubbo() {
    const NOW: i64 = 1_700_000_000_000;
    let cases = section("getWeight");
    for case in &cases {
        let parameters = timestamps(case["provider_params"].as_str().unwrap(), NOW);
        let url = Url::parse(&format!("dubbo://192.0.2.1:20880/com.foo.Bar?{parameters}")).unwrap();
        let found = Weight::of(&url, case["method"].as_str().unwrap()).at(NOW as u64);
        // Dubbo fails every call to a provider whose weight is no number; here it counts as not given.
        let expected = if case["throws"].is_null() { case["getWeight"].as_u64().unwrap() } else { 100 };
        assert_eq!(u64::from(found), expected, "{case}");
    }
    assert_eq!(cases.len(), 12);
}

#[test]
fn round_robin_picks_in_the_order_of_dubbo() {
    let mut checked = 0;
    for case in section("roundrobin").iter().filter(|case| !case["weights"].is_null()) {
        let weights: Vec<u32> = numbers(&case["weights"]).into_iter().map(|weight| weight as u32).collect();
        let mut expected = numbers(&case["picked_index_sequence"]);
        if weights == [0, 0] {
            // Dubbo gives all to the first.
            expected = (0..expected.len()).map(|pick| pick % 2).collect();
        }
        assert_eq!(
            picks(&RoundRobin::default(), &weighing(&weights), expected.len()),
            expected,
            "{weights:?}"
        );
        checked += 1;
    }
    assert_eq!(checked, 8);
}

#[test]
fn round_robin_keeps_turns_when_a_provider_comes_and_goes() {
    let case = &section("roundrobin")[8];
    let balancer = RoundRobin::default();
    for (phase, weights) in [("phase1", &[3, 1][..]), ("phase2", &[3, 1, 2]), ("phase3", &[3, 1])] {
        let expected = numbers(&case[phase]);
        assert_eq!(picks(&balancer, &weighing(weights), expected.len()), expected, "{phase}");
    }
}

#[test]
fn round_robin_starts_a_provider_anew_when_its_weight_is_set_anew() {
    let case = &section("roundrobin")[9];
    let balancer = RoundRobin::default();
    for (phase, weights) in [("phase1", &[5, 1]), ("phase2", &[1, 5])] {
        let expected = numbers(&case[phase]);
        assert_eq!(picks(&balancer, &weighing(weights), expected.len()), expected, "{phase}");
    }
}

#[test]
fn round_robin_forgets_who_left_and_remembers_who_comes_back_soon() {
    let clock = support::ManualClock::at(1_000_000);
    let balancer = RoundRobin::new(clock.clone());
    let both =
        || Candidates::new(vec![provider(0, "weight=5"), provider(1, "weight=1"), provider(2, "weight=1")]);
    let without = || Candidates::new(vec![provider(0, "weight=5"), provider(1, "weight=1")]);
    let fresh = picks(&RoundRobin::default(), &both(), 7);
    assert_eq!(picks(&balancer, &both(), 7), fresh);
    assert_eq!(picks(&balancer, &without(), 6).len(), 6);
    clock.advance(120_000);
    assert_eq!(picks(&balancer, &without(), 6).len(), 6);
    assert_eq!(picks(&balancer, &both(), 7), fresh);
}

/// `NOW-5000` as the number that it stands for.
fn timestamps(parameters: &str, now: i64) -> String {
    let Some((before, after)) = parameters.split_once("NOW") else { return parameters.to_owned() };
    let end = after.find('&').unwrap_or(after.len());
    let distance: i64 = after[..end].parse().unwrap();
    format!("{before}{}{}", now + distance, &after[end..])
}

fn section(name: &str) -> Vec<Json> {
    let all: Json = serde_json::from_str(include_str!("vectors/loadbalance.json")).unwrap();
    all[name].as_array().unwrap().clone()
}

fn numbers(json: &Json) -> Vec<usize> {
    json.as_array().unwrap().iter().map(|number| number.as_u64().unwrap() as usize).collect()
}
