//! Routers that users write: a list in, a list out.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dubhe_common::Url;
use dubhe_core::invocation::Invocation;
use dubhe_core::invoker::SharedInvoker;
use dubhe_core::router::{Dependence, Router, RouterChain, Routes};
use dubhe_router::{Chain, ConditionRouter};
use support::{addresses, call, consumer, many, provider};

type Route = for<'a> fn(&[&'a SharedInvoker], &Invocation) -> Vec<&'a SharedInvoker>;

/// Routes by a function and counts how often it is asked.
#[derive(Debug)]
struct ByFunction {
    depends_on: Dependence,
    priority: i32,
    route: Route,
    asked: Arc<AtomicUsize>,
}

impl Router for ByFunction {
    fn name(&self) -> &str {
        "mine"
    }

    fn priority(&self) -> i32 {
        self.priority
    }

    fn depends_on(&self) -> Dependence {
        self.depends_on
    }

    fn route<'a>(
        &self,
        input: &[&'a SharedInvoker],
        _consumer: &Url,
        call: &Invocation,
    ) -> Vec<&'a SharedInvoker> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        (self.route)(input, call)
    }
}

/// A chain over ten providers with one router, and how often that is asked.
fn chain(depends_on: Dependence, route: Route) -> (Arc<dyn Routes>, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let router = ByFunction { depends_on, priority: 0, route, asked: Arc::clone(&asked) };
    (Chain::builder(consumer()).router(router).build().bind(&many(10)), asked)
}

fn kept(routes: &Arc<dyn Routes>, call: &Invocation) -> Vec<String> {
    addresses(&routes.candidates(call).unwrap())
}

fn at(numbers: &[usize]) -> Vec<String> {
    numbers.iter().map(|number| format!("10.0.0.{number}:20880")).collect()
}

// C59
#[test]
fn a_fresh_list_keeps_exactly_what_is_in_it() {
    let (routes, _) = chain(Dependence::Anything, |input, _| vec![input[5], input[6], input[7]]);
    assert_eq!(kept(&routes, &call("get")), at(&[5, 6, 7]));
}

// C59
#[test]
fn a_fresh_list_is_matched_by_identity_after_another_router_left_gaps() {
    let router = ByFunction {
        depends_on: Dependence::Anything,
        priority: 200,
        route: |input, _| vec![input[2], input[0]],
        asked: Arc::default(),
    };
    let rule = ConditionRouter::parse("=> region=sh").unwrap();
    let routes = Chain::builder(consumer()).rule(rule).router(router).build().bind(&many(10));
    // Left by the rule: 1, 3, 5, 7, 9. The order of candidates is that of the directory.
    assert_eq!(kept(&routes, &call("get")), at(&[1, 5]));
}

// C59
#[test]
fn a_rule_behind_a_router_sees_only_what_it_returned() {
    let router = ByFunction {
        depends_on: Dependence::Anything,
        priority: 0,
        route: |input, _| input[..4].to_vec(),
        asked: Arc::default(),
    };
    let rule = ConditionRouter::parse("method=get => region=sh").unwrap();
    let routes = Chain::builder(consumer()).rule(rule).router(router).build().bind(&many(10));
    assert_eq!(kept(&routes, &call("get")), at(&[1, 3]));
    assert_eq!(kept(&routes, &call("set")), at(&[0, 1, 2, 3]));
}

// C59
#[test]
fn foreign_invokers_and_repeated_ones_are_dropped() {
    let (routes, _) = chain(Dependence::Anything, |input, _| {
        // Leaked: the signature allows only what lives as long as the input.
        let foreign: &'static SharedInvoker = Box::leak(Box::new(provider("dubbo://10.9.9.9:1/com.foo.Bar")));
        vec![input[3], foreign, input[1], input[3]]
    });
    assert_eq!(kept(&routes, &call("get")), at(&[1, 3]));
}

#[test]
fn a_router_that_may_depend_on_anything_runs_on_every_call() {
    let (routes, asked) = chain(Dependence::Anything, |input, call| {
        let wanted = if &*call.method().name == "get" { 0 } else { 1 };
        input.iter().copied().skip(wanted).step_by(2).collect()
    });
    for _ in 0..3 {
        assert_eq!(kept(&routes, &call("get")), at(&[0, 2, 4, 6, 8]));
        assert_eq!(kept(&routes, &call("set")), at(&[1, 3, 5, 7, 9]));
    }
    assert_eq!(asked.load(Ordering::Relaxed), 6);
    let (first, again) = (routes.candidates(&call("get")).unwrap(), routes.candidates(&call("get")).unwrap());
    assert!(Arc::ptr_eq(&first, &again), "equal lists share what balancers prepare");
}

#[test]
fn a_router_that_says_what_it_depends_on_runs_once_per_value_of_it() {
    let by_method: Route = |input, call| input[..call.method().name.len()].to_vec();
    let (routes, asked) = chain(Dependence::Method, by_method);
    for _ in 0..5 {
        assert_eq!(kept(&routes, &call("a")).len(), 1);
        assert_eq!(kept(&routes, &call("abc")).len(), 3);
    }
    assert_eq!(asked.load(Ordering::Relaxed), 2);

    let (routes, asked) = chain(Dependence::Nothing, |input, _| input[..2].to_vec());
    for method in ["a", "b", "c"] {
        assert_eq!(kept(&routes, &call(method)), at(&[0, 1]));
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1);

    let by_attachment: Route = |input, call| match call.attachments().get_str("zone") {
        Some(zone) => input[..zone.len()].to_vec(),
        None => input.to_vec(),
    };
    let (routes, asked) = chain(Dependence::Attachment("zone"), by_attachment);
    for _ in 0..5 {
        assert_eq!(kept(&routes, &call("a").with_attachment("zone", "xy")).len(), 2);
        assert_eq!(kept(&routes, &call("b").with_attachment("zone", "")).len(), 0);
        assert_eq!(kept(&routes, &call("c")).len(), 10);
    }
    assert_eq!(asked.load(Ordering::Relaxed), 3);

    let key: fn(&Invocation) -> u64 = |call| call.method().name.len() as u64;
    let (routes, asked) = chain(Dependence::Key(key), by_method);
    for _ in 0..5 {
        assert_eq!(kept(&routes, &call("ab")).len(), 2);
        assert_eq!(kept(&routes, &call("xy")).len(), 2);
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[test]
fn more_values_than_are_kept_are_still_answered_rightly() {
    let (routes, asked) = chain(Dependence::Method, |input, call| {
        let number: usize = call.method().name.parse().unwrap();
        vec![input[number % 10]]
    });
    for round in 1..=2 {
        for number in 0..1_000 {
            assert_eq!(kept(&routes, &call(&number.to_string())), at(&[number % 10]), "{round}");
        }
    }
    assert!(asked.load(Ordering::Relaxed) < 2_000, "some were kept");
}

#[test]
fn a_router_that_panics_fails_its_call_and_no_other() {
    let (routes, _) = chain(Dependence::Method, |input, call| {
        assert!(&*call.method().name != "bad", "on purpose");
        input.to_vec()
    });
    for _ in 0..3 {
        let error = routes.candidates(&call("bad")).unwrap_err();
        assert_eq!(error.message(), "router `mine` panicked while routing `bad`: no provider is chosen");
        assert_eq!(kept(&routes, &call("good")).len(), 10);
    }
    assert!(routes.explain(&call("bad")).remaining.is_empty());
}

#[test]
fn an_explanation_tells_what_a_router_returned() {
    let (routes, _) = chain(Dependence::Nothing, |input, _| vec![input[1]]);
    let explanation = routes.explain(&call("get"));
    assert_eq!(explanation.steps[1].router, "mine");
    assert_eq!(explanation.steps[1].decisions[0].reason, "router `mine` did not return it");
    assert_eq!(explanation.steps[1].decisions[1].reason, "router `mine` returned it");
    assert_eq!(explanation.remaining, at(&[1]));
}
