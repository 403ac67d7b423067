//! Configurators.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use dubhe_common::{Configurators, RuleTarget, Url};

const LOCAL: &str = "192.0.2.9";

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn timeout_after(rule: &str, side: &str) -> String {
    let (side, application) = if side == "p" { ("provider", "bar-app") } else { ("consumer", "shop") };
    let before = url(&format!(
        "dubbo://10.0.0.1:20880/com.foo.Bar?application={application}&side={side}&timeout=1&region=hz"
    ));
    let target = RuleTarget { side, application, local_host: LOCAL };
    let rules = Configurators::from_notified(&[url(rule)]).unwrap();
    rules.apply(&before, &target).param("timeout").unwrap().to_owned()
}

#[test]
fn worked_examples_of_overrides_hold() {
    for (rule, side, expected) in [
        ("override://0.0.0.0/com.foo.Bar?side=provider&configVersion=v2.7&timeout=9", "p", "9"),
        ("override://0.0.0.0:20880/com.foo.Bar?side=provider&configVersion=v2.7&timeout=9", "p", "9"),
        ("override://10.0.0.1:20880/com.foo.Bar?side=provider&configVersion=null&timeout=9", "p", "9"),
        ("override://0.0.0.0/com.foo.Bar?configVersion=v2.7&timeout=9", "p", "1"),
        ("override://0.0.0.0/com.foo.Bar?timeout=9", "p", "9"),
        ("override://0.0.0.0/com.foo.Bar?side=consumer&configVersion=v2.7&timeout=9", "c", "9"),
        ("override://192.0.2.9/com.foo.Bar?side=consumer&configVersion=v2.7&timeout=9", "c", "9"),
        ("override://192.0.2.8/com.foo.Bar?side=consumer&configVersion=v2.7&timeout=9", "c", "1"),
        (
            "override://0.0.0.0/x?side=consumer&configVersion=v2.7&timeout=9&providerAddresses=110.0.0.1:208801",
            "c",
            "1",
        ),
        (
            "override://0.0.0.0/x?side=consumer&configVersion=v2.7&timeout=9&providerAddresses=10.0.0.1",
            "c",
            "9",
        ),
        (
            "override://0.0.0.0/x?side=consumer&configVersion=v2.7&timeout=9&providerAddresses=1.1.1.1,0.0.0.0:*",
            "c",
            "9",
        ),
        (
            "override://0.0.0.0/x?side=consumer&configVersion=v2.7&timeout=9&providerAddresses=0.0.0.0:20880",
            "c",
            "9",
        ),
        (
            "override://0.0.0.0/x?side=consumer&configVersion=v2.7&timeout=9&providerAddresses=0.0.0.0:1",
            "c",
            "1",
        ),
        ("override://0.0.0.0/com.foo.Bar?~region=hz&timeout=9", "c", "9"),
        ("override://0.0.0.0/com.foo.Bar?~region=bj&timeout=9", "c", "1"),
        ("override://0.0.0.0/com.foo.Bar?~region=*&timeout=9", "c", "9"),
        ("override://0.0.0.0/com.foo.Bar?application=bar-app&timeout=9", "c", "1"),
        ("override://shop@0.0.0.0/com.foo.Bar?timeout=9", "c", "9"),
        ("override://10.0.0.1:20880/com.foo.Bar?timeout=9", "c", "9"),
        ("override://10.0.0.1:20881/com.foo.Bar?timeout=9", "c", "1"),
        ("override://0.0.0.0/com.foo.Bar?enabled=false&timeout=9", "c", "1"),
        ("override://0.0.0.0/com.foo.Bar?compatible_config=true&timeout=9", "c", "1"),
        ("absent://0.0.0.0/com.foo.Bar?timeout=9&x=1", "c", "1"),
    ] {
        assert_eq!(timeout_after(rule, side), expected, "{rule} on {side}");
    }
}

#[test]
fn a_rule_sets_only_what_is_a_setting() {
    let rule = url(
        "override://0.0.0.0/com.foo.Bar?category=configurators&check=false&dynamic=false&priority=3&timeout=9&weight=5\
         &providerAddresses=10.0.0.1",
    );
    let before = url("dubbo://10.0.0.1:20880/com.foo.Bar?timeout=1");
    let target = RuleTarget { side: "consumer", application: "shop", local_host: LOCAL };
    let after = Configurators::from_notified(&[rule]).unwrap().apply(&before, &target);
    assert_eq!(after.to_full_string(), "dubbo://10.0.0.1:20880/com.foo.Bar?timeout=9&weight=5");
}

#[test]
fn the_more_special_and_the_more_urgent_rule_wins() {
    let rules = [
        url("override://192.0.2.9/x?timeout=3"),
        url("override://0.0.0.0/x?timeout=2&priority=5"),
        url("override://0.0.0.0/x?timeout=1&weight=7"),
    ];
    let target = RuleTarget { side: "consumer", application: "shop", local_host: LOCAL };
    let apply = |rules: &[Url]| {
        Configurators::from_notified(rules).unwrap().apply(&url("dubbo://10.0.0.1:1/x"), &target)
    };
    assert_eq!(apply(&rules).to_parameter_string(), "timeout=3&weight=7");
    assert_eq!(apply(&rules[1..]).to_parameter_string(), "timeout=2&weight=7");
}

#[test]
fn an_empty_notice_clears_rules_and_no_notice_keeps_them() {
    assert_eq!(Configurators::from_notified(&[]), None);
    let cleared = Configurators::from_notified(&[
        url("override://0.0.0.0/x?timeout=1"),
        url("empty://192.0.2.9/x?category=configurators"),
    ]);
    assert!(cleared.unwrap().is_empty());
    let useless = Configurators::from_notified(&[
        url("override://0.0.0.0/x?anyhost=true"),
        url("nonsense://0.0.0.0/x?timeout=1"),
    ]);
    assert!(useless.unwrap().is_empty());
}
