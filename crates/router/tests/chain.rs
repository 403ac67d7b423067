//! The chain as a whole: order, empty results, rules put and removed, explanations.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::sync::Arc;

use dubhe_common::Url;
use dubhe_core::router::{Explanation, RouterChain, Routes};
use dubhe_router::{Chain, ConditionRouter, NEED_MOCK};
use support::{addresses, call, consumer, many, merged_provider, providers};

fn two_regions() -> Arc<[dubhe_core::invoker::SharedInvoker]> {
    providers(&[
        "dubbo://10.0.0.1:20880/com.foo.Bar?region=hz",
        "dubbo://10.0.0.2:20880/com.foo.Bar?region=bj",
    ])
}

fn kept(routes: &Arc<dyn Routes>, method: &str) -> Vec<String> {
    addresses(&routes.candidates(&call(method)).unwrap())
}

fn condition(rule: &str) -> ConditionRouter {
    ConditionRouter::parse(rule).unwrap()
}

#[test]
fn without_rules_all_providers_stay_in_their_order() {
    let routes = Chain::builder(consumer()).build().bind(&two_regions());
    assert_eq!(kept(&routes, "get"), ["10.0.0.1:20880", "10.0.0.2:20880"]);
}

#[test]
fn a_call_of_the_same_kind_gets_the_same_candidates() {
    let routes =
        Chain::builder(consumer()).rule(condition("method=get => region=hz")).build().bind(&two_regions());
    let first = routes.candidates(&call("get")).unwrap();
    assert!(Arc::ptr_eq(&first, &routes.candidates(&call("get")).unwrap()));
    assert!(!Arc::ptr_eq(&first, &routes.candidates(&call("set")).unwrap()));
    assert!(Arc::ptr_eq(
        &routes.candidates(&call("set")).unwrap(),
        &routes.candidates(&call("put")).unwrap()
    ));
}

#[test]
fn kinds_of_calls_that_end_in_the_same_list_share_its_candidates() {
    let chain = Chain::builder(consumer()).rule(condition("method=get => region=*")).build();
    let routes = chain.bind(&two_regions());
    assert!(Arc::ptr_eq(
        &routes.candidates(&call("get")).unwrap(),
        &routes.candidates(&call("set")).unwrap()
    ));
}

// C60
#[test]
fn an_empty_list_and_an_empty_result_are_lists_and_no_panic() {
    let chain = Chain::builder(consumer()).rule(condition("=> region=sh").with_force(true)).build();
    for list in [providers::<&str>(&[]), two_regions()] {
        let routes = chain.bind(&list);
        assert!(routes.candidates(&call("get")).unwrap().is_empty());
        assert_eq!(routes.explain(&call("get")).remaining, Vec::<String>::new());
    }
}

// C60
#[test]
fn a_malformed_rule_is_refused_and_the_one_before_it_stays() {
    let chain = Chain::builder(consumer()).build();
    chain.set_rule("region", condition("=> region=bj"));
    assert!(ConditionRouter::parse("a == b => region=hz").is_err());
    assert_eq!(kept(&chain.bind(&two_regions()), "get"), ["10.0.0.2:20880"]);
}

#[test]
fn an_empty_result_ends_the_chain_unless_fail_fast_is_off() {
    let build = |fail_fast| {
        Chain::builder(consumer())
            .fail_fast(fail_fast)
            .rule(condition("=> region=sh").with_force(true))
            .rule(condition("=> region=hz").with_priority(150))
            .build()
            .bind(&two_regions())
    };
    let routers = |routes: &Arc<dyn Routes>| routes.explain(&call("get")).steps.len();
    assert_eq!(routers(&build(true)), 2, "mock and the first rule");
    assert_eq!(routers(&build(false)), 3);
    assert!(kept(&build(false), "get").is_empty());
}

#[test]
fn rules_run_by_ascending_priority() {
    // The first leaves only hz; then the second finds nothing and, not being forced, lets all that is left stay.
    let chain = Chain::builder(consumer())
        .rule(condition("=> region=bj").with_priority(150))
        .rule(condition("=> region=hz").with_priority(140))
        .build();
    assert_eq!(kept(&chain.bind(&two_regions()), "get"), ["10.0.0.1:20880"]);
}

#[test]
fn a_rule_put_at_run_time_tells_to_bind_again_and_counts_from_then_on() {
    let chain = Chain::builder(consumer()).build();
    let mut changes = chain.changes();
    let before = chain.bind(&two_regions());

    chain.set_rule("region", condition("=> region=bj"));
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    assert_eq!(kept(&before, "get").len(), 2, "what is bound does not change");
    assert_eq!(kept(&chain.bind(&two_regions()), "get"), ["10.0.0.2:20880"]);

    chain.set_rule("region", condition("=> region=hz"));
    assert_eq!(chain.rule_names(), ["region"]);
    assert_eq!(kept(&chain.bind(&two_regions()), "get"), ["10.0.0.1:20880"]);

    assert!(chain.remove_rule("region"));
    assert!(!chain.remove_rule("region"));
    assert!(changes.has_changed().unwrap());
    assert_eq!(kept(&chain.bind(&two_regions()), "get").len(), 2);
}

#[test]
fn mock_providers_are_kept_for_calls_that_ask_for_them() {
    let list = providers(&["dubbo://10.0.0.1:20880/com.foo.Bar", "mock://10.0.0.2:20880/com.foo.Bar"]);
    let routes = Chain::builder(consumer()).build().bind(&list);
    let asking =
        |word: &str| addresses(&routes.candidates(&call("get").with_attachment(NEED_MOCK, word)).unwrap());
    assert_eq!(kept(&routes, "get"), ["10.0.0.1:20880"]);
    assert_eq!(asking("TRUE"), ["10.0.0.2:20880"]);
    assert_eq!(asking("false"), ["10.0.0.1:20880", "10.0.0.2:20880"]);
}

#[test]
fn the_consumer_can_leave_out_routers_by_name() {
    let list = providers(&["mock://10.0.0.2:20880/com.foo.Bar"]);
    let without = |router: &str| {
        let chain = Chain::builder(consumer().with_param("router", router)).build();
        kept(&chain.bind(&list), "get").len()
    };
    assert_eq!((without("-mock"), without("-default"), without("-tag")), (1, 1, 0));
}

// C52
#[test]
fn host_is_the_consumers_own_before_the_arrow_and_the_providers_behind_it() {
    let chain = Chain::builder(consumer()).rule(condition("host=10.0.0.9 => host=10.0.0.2")).build();
    assert_eq!(kept(&chain.bind(&two_regions()), "get"), ["10.0.0.2:20880"]);
    let chain = Chain::builder(consumer()).rule(condition("host=10.0.0.1 => host=10.0.0.2")).build();
    assert_eq!(kept(&chain.bind(&two_regions()), "get").len(), 2);
}

#[test]
fn a_rule_sees_what_the_provider_registered_and_not_what_the_consumer_laid_over_it() {
    let list: Arc<[_]> = [
        merged_provider(
            "dubbo://10.0.0.1:20880/com.foo.Bar?application=bar&region=hz",
            "dubbo://10.0.0.1:20880/com.foo.Bar?application=shop&region=hz",
        ),
        merged_provider(
            "dubbo://10.0.0.2:20880/com.foo.Bar?application=bar&region=bj",
            "dubbo://10.0.0.2:20880/com.foo.Bar?application=shop&region=hz",
        ),
    ]
    .into();
    let of =
        |rule: &str| Chain::builder(consumer()).rule(condition(rule).with_force(true)).build().bind(&list);
    assert_eq!(kept(&of("=> region=$region"), "get"), ["10.0.0.1:20880"]);
    assert_eq!(kept(&of("=> application=bar"), "get").len(), 2);
}

#[test]
fn a_document_applies_each_condition_to_what_the_one_before_left() {
    let list = providers(&[
        "dubbo://10.0.0.1:20880/com.foo.Bar?region=hz",
        "dubbo://10.0.0.2:20880/com.foo.Bar?region=bj",
        "dubbo://10.0.0.3:20880/com.foo.Bar?region=hz&env=test",
    ]);
    let rule =
        ConditionRouter::of_conditions(["method=get => region=hz", "=> env=test", "method=del => false"])
            .unwrap();
    let routes = Chain::builder(consumer()).rule(rule).build().bind(&list);
    assert_eq!(kept(&routes, "get"), ["10.0.0.3:20880"]);
    assert_eq!(kept(&routes, "set"), ["10.0.0.3:20880"]);
    assert!(kept(&routes, "del").is_empty());
    let nothing = ConditionRouter::of_conditions([]).unwrap();
    assert_eq!(kept(&Chain::builder(consumer()).rule(nothing).build().bind(&list), "get").len(), 3);
}

#[test]
fn a_document_that_tells_too_many_kinds_of_calls_apart_is_refused() {
    let conditions =
        |count: usize| (0..count).map(|at| format!("method=m{at} => region=hz")).collect::<Vec<_>>();
    let of = |count| ConditionRouter::of_conditions(conditions(count).iter().map(String::as_str));
    assert!(of(64).is_ok());
    assert_eq!(
        of(65).unwrap_err().to_string(),
        "route rule tells 65 kinds of calls apart, at most 64 fit: split it into several rules"
    );
}

#[test]
fn more_rules_than_fit_into_a_key_still_tell_calls_apart() {
    let mut builder = Chain::builder(consumer());
    for at in 0..12 {
        builder = builder.rule(condition(&format!("method=m{at} => host=10.0.0.{at}")));
    }
    let routes = builder.build().bind(&many(20));
    for _ in 0..2 {
        for at in 0..12 {
            assert_eq!(kept(&routes, &format!("m{at}")), [format!("10.0.0.{at}:20880")]);
        }
        assert_eq!(kept(&routes, "other").len(), 20);
    }
}

#[test]
fn an_explanation_names_the_rule_and_the_part_that_decided() {
    let chain = Chain::builder(consumer()).rule(condition("method=get => region=hz")).build();
    let explanation = chain.bind(&two_regions()).explain(&call("get"));
    assert_eq!(
        explanation.to_string(),
        "[mock]\n  keeps 10.0.0.1:20880: a real provider\n  keeps 10.0.0.2:20880: a real provider\n\
         [condition]\n  keeps 10.0.0.1:20880: `method=get => region=hz`: `region=hz` holds\n\
         \x20 drops 10.0.0.2:20880: `method=get => region=hz`: `region=hz` does not hold, region is `bj`\n\
         remaining: 10.0.0.1:20880"
    );
}

#[test]
fn an_explanation_tells_when_a_rule_does_not_apply_or_would_leave_nobody() {
    let reason = |rule: ConditionRouter| -> String {
        let explanation: Explanation =
            Chain::builder(consumer()).rule(rule).build().bind(&two_regions()).explain(&call("get"));
        explanation.steps[1].decisions[0].reason.clone()
    };
    assert_eq!(
        reason(condition("method=set => region=bj")),
        "`method=set => region=bj`: the call is not concerned"
    );
    assert_eq!(reason(condition("=> zone=a").with_enabled(false)), "the rule is disabled");
    assert_eq!(reason(condition("method=get =>")), "`method=get =>` allows no provider");
    assert_eq!(
        reason(condition("=> zone=a")),
        "`=> zone=a`: `zone=a` does not hold, zone is missing; no provider fits and the rule is not forced"
    );
}

#[test]
fn candidates_and_explanation_agree_whatever_the_rule() {
    let rules =
        ["=> region=hz", "=> region=sh", "method=get =>", "region=hz => host=10.0.0.*", "=> &", "=> env"];
    for first in rules {
        for second in rules {
            for force in [false, true] {
                let rule = ConditionRouter::of_conditions([first, second]).unwrap().with_force(force);
                let routes = Chain::builder(consumer()).rule(rule).build().bind(&many(10));
                assert_eq!(routes.explain(&call("get")).remaining, kept(&routes, "get"), "{first}; {second}");
            }
        }
    }
}

#[test]
fn url_is_that_of_the_consumer() {
    let own = Url::parse("consumer://10.0.0.9/com.foo.Bar?region=bj").unwrap();
    let chain = Chain::builder(own).rule(condition("region=bj => region=$region")).build();
    assert_eq!(kept(&chain.bind(&two_regions()), "get"), ["10.0.0.2:20880"]);
}
