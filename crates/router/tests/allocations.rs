//! Routing a call of a known kind does not allocate.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::hint::black_box;

use dubhe_core::invocation::{Invocation, Method};
use dubhe_core::router::RouterChain;
use dubhe_router::{Chain, ConditionRouter};
use support::{call, consumer, many};

const PICKS: usize = 10_000;

/// Allocations of many calls of kinds that were seen before.
fn allocations(rules: &[&str], providers: usize, calls: &[Invocation]) -> u64 {
    let mut builder = Chain::builder(consumer());
    for rule in rules {
        builder = builder.rule(ConditionRouter::parse(rule).unwrap());
    }
    let routes = builder.build().bind(&many(providers));
    let route_all = || {
        for call in calls {
            black_box(routes.candidates(call).unwrap());
        }
    };
    route_all();
    let counted = allocation_counter::measure(|| (0..PICKS / calls.len()).for_each(|_| route_all()));
    counted.count_total
}

#[test]
fn a_condition_rule_on_the_method_costs_no_allocation() {
    for providers in [10, 10_000] {
        assert_eq!(allocations(&["method=get => region=hz"], providers, &[call("get"), call("set")]), 0);
    }
}

#[test]
fn conditions_on_attachments_and_arguments_cost_no_allocation() {
    let arguments = (String::from("a1"), 42_i64, true);
    let method = std::sync::Arc::new(Method::new("get", "Ljava/lang/String;JZ"));
    let call = Invocation::new(method, std::sync::Arc::new(arguments)).with_attachment("city", "hz");
    let rules = [
        "attachments[city]=hz => region=hz",
        "arguments[0]=a* => host=10.*",
        "arguments[1]=1~100 => host=10.*",
        "arguments[2]=true => host=10.*",
        "arguments[2]=false => false",
        "method!=set => host=10.0.*",
    ];
    assert_eq!(allocations(&rules, 1_000, &[call]), 0);
}
