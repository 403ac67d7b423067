//! Rules of the registry's `routers` category, as the old admin consoles write them.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use dubhe_common::{Url, encode};
use dubhe_core::router::RouterChain;
use dubhe_router::Chain;
use support::{addresses, call, consumer, many};

fn rule(parameters: &str, rule: &str) -> Url {
    let url =
        format!("route://0.0.0.0/com.foo.Bar?category=routers&dynamic=false&router=condition{parameters}");
    Url::parse(&url).unwrap().with_param("rule", encode(rule))
}

fn kept(rules: &[Url]) -> Vec<String> {
    let chain = Chain::builder(consumer()).build();
    chain.set_registry_rules(rules);
    addresses(&chain.bind(&many(4)).candidates(&call("get")).unwrap())
}

#[test]
fn a_condition_rule_of_the_registry_works() {
    let expected = ["10.0.0.2:20880"];
    assert_eq!(kept(&[rule("", "host=10.0.0.9 => host=10.0.0.2")]), expected);
    let by_protocol = Url::parse("condition://0.0.0.0/com.foo.Bar?category=routers")
        .unwrap()
        .with_param("rule", encode("=> host=10.0.0.2"));
    assert_eq!(kept(&[by_protocol]), expected);
}

#[test]
fn force_and_enabled_of_the_url_count() {
    assert_eq!(kept(&[rule("&force=true", "=> region=bj")]).len(), 0);
    assert_eq!(kept(&[rule("&force=false", "=> region=bj")]).len(), 4);
    assert_eq!(kept(&[rule("&force=true&enabled=false", "=> region=bj")]).len(), 4);
}

#[test]
fn rules_written_for_old_consumers_only_are_ignored() {
    assert_eq!(kept(&[rule("&compatible_config=true", "=> host=10.0.0.2")]).len(), 4);
}

#[test]
fn rules_run_by_ascending_priority_of_their_urls() {
    let first = rule("&priority=1", "=> region=hz");
    let second = rule("&priority=2", "=> region=sh");
    let hz = ["10.0.0.0:20880", "10.0.0.2:20880"];
    assert_eq!(kept(&[second.clone(), first.clone()]), hz, "the second would leave none and lets all stay");
    assert_eq!(kept(&[first, second]), hz);
}

#[test]
fn malformed_and_unsupported_rules_are_skipped_and_the_rest_goes_on() {
    let odd = [
        rule("", "a == b => region=hz"),
        rule("", ""),
        rule("&priority=high", "=> host=10.0.0.1"),
        rule("", "=> region=%zz%"),
        Url::parse("script://0.0.0.0/com.foo.Bar?category=routers&rule=function()").unwrap(),
        Url::parse("file:///etc/rule.js?category=routers").unwrap(),
        Url::parse("route://0.0.0.0/com.foo.Bar?category=routers&router=quantum").unwrap(),
        Url::parse("empty://0.0.0.0/com.foo.Bar?category=routers").unwrap(),
    ];
    let mut all = odd.to_vec();
    all.push(rule("", "=> host=10.0.0.2"));
    assert_eq!(kept(&all), ["10.0.0.2:20880"]);
}

#[test]
fn only_a_different_list_is_a_change() {
    let chain = Chain::builder(consumer()).build();
    let (a, b) = (rule("", "=> region=hz"), rule("", "=> region=sh"));
    assert!(!chain.set_registry_rules(&[]));
    assert!(chain.set_registry_rules(&[a.clone(), b.clone()]));
    assert!(
        !chain.set_registry_rules(&[b.clone(), a.clone(), a.clone()]),
        "order and repetition mean nothing"
    );
    assert!(!chain.set_registry_rules(&[a.clone(), b, rule("", "a == b")]), "nor do rules that are skipped");
    assert!(chain.set_registry_rules(&[a]));
    assert!(chain.set_registry_rules(&[]), "an empty list removes all");
    assert!(!chain.changes().has_changed().unwrap(), "the caller knows");
}
