//! Configurators and registered URLs.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use dubhe_common::registered::{
    accepts_protocol, consumer_to_register, consumer_to_subscribe, provider_to_register,
    provider_to_subscribe,
};
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

#[test]
fn a_provider_is_registered_without_what_concerns_its_machine_only() {
    let registry = url("zookeeper://192.0.2.1:2181");
    let provider = url(
        "dubbo://192.0.2.2:20880/com.foo.Bar?.secret=1&bind.ip=10.0.0.1&bind.port=1&qos.port=2&side=provider&timestamp=3",
    );
    assert_eq!(
        provider_to_register(&provider, &registry).to_full_string(),
        "dubbo://192.0.2.2:20880/com.foo.Bar?side=provider&timestamp=3"
    );
}

#[test]
fn a_short_provider_url_keeps_what_a_consumer_needs() {
    let registry = url("zookeeper://192.0.2.1:2181?simplified=true&extra-keys=threads,env");
    let provider = url(
        "dubbo://192.0.2.2:20880/com.foo.Bar?interface=com.foo.Bar&application=a&methods=say&say.timeout=1&sayings=2&env=x&queues=1\
         &threads=9&timeout=5&group=&timestamp=3",
    );
    assert_eq!(
        provider_to_register(&provider, &registry).to_full_string(),
        "dubbo://192.0.2.2:20880/com.foo.Bar?application=a&env=x&say.timeout=1&sayings=2&threads=9&timeout=5"
    );
    let elsewhere = provider_to_register(&provider.with_path("ctx/com.foo.Bar"), &registry);
    assert_eq!(elsewhere.param("interface"), Some("com.foo.Bar"));
}

#[test]
fn a_consumer_is_registered_without_check_and_subscribes_with_its_own() {
    let consumer = url(
        "consumer://127.0.0.1:1/com.foo.Bar?application=c&check=true&register.ip=10.0.0.9&side=consumer&version=1",
    );
    let registry = url("zookeeper://192.0.2.1:2181");
    assert_eq!(
        consumer_to_register(&consumer, &registry).to_full_string(),
        "consumer://10.0.0.9/com.foo.Bar?application=c&category=consumers&check=false&side=consumer&version=1"
    );
    assert_eq!(
        consumer_to_register(&consumer, &registry.with_param("simplified", true)).to_full_string(),
        "consumer://10.0.0.9/com.foo.Bar?application=c&category=consumers&check=false&version=1"
    );
    assert_eq!(
        consumer_to_subscribe(&consumer).to_full_string(),
        "consumer://10.0.0.9/com.foo.Bar?application=c&category=providers,configurators,routers&check=true&side=consumer&version=1"
    );
}

#[test]
fn a_provider_subscribes_for_rules_about_itself() {
    let provider = url("dubbo://192.0.2.2:20880/com.foo.Bar?side=provider");
    assert_eq!(
        provider_to_subscribe(&provider).to_full_string(),
        "provider://192.0.2.2:20880/com.foo.Bar?category=configurators&check=false&side=provider"
    );
}

#[test]
fn a_registry_takes_the_protocols_it_lists_or_all_but_those_it_excludes() {
    let registry = |accepts: &str| url("zookeeper://192.0.2.1:2181").with_param("accepts", accepts);
    for (accepts, protocol, expected) in [
        ("", "dubbo", true),
        ("dubbo,tri", "tri", true),
        ("dubbo", "tri", false),
        ("-tri", "tri", false),
        ("-tri", "dubbo", true),
        ("dubbo,-dubbo", "dubbo", true),
    ] {
        assert_eq!(accepts_protocol(&registry(accepts), protocol), expected, "{accepts} {protocol}");
    }
}
