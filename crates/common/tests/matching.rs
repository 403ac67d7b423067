//! Which provider answers which consumer, and the patterns of rules.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use dubhe_common::matching::category_matches;
use dubhe_common::{Url, glob, is_match, list_contains};

fn consumer(params: &str) -> Url {
    Url::parse(&format!("consumer://192.0.2.9/demo.Foo?interface=demo.Foo&{params}")).unwrap()
}

fn provider(params: &str) -> Url {
    Url::parse(&format!("dubbo://192.0.2.10:20880/demo.Foo?interface=demo.Foo&{params}")).unwrap()
}

fn check(rows: &[(&str, &str, bool)]) {
    for (consumer_params, provider_params, expected) in rows {
        assert_eq!(
            is_match(&consumer(consumer_params), &provider(provider_params)),
            *expected,
            "consumer `{consumer_params}`, provider `{provider_params}`"
        );
    }
}

// C41
#[test]
fn defaults_of_old_providers_stand_in_for_plain_parameters() {
    let old = provider("default.version=1.0.0&default.group=g&default.timeout=2000");
    assert!(is_match(&consumer("version=1.0.0&group=g"), &old));
    assert_eq!(old.param("timeout"), Some("2000"));
    for order in ["default.version=1.0.0&version=2", "version=2&default.version=1.0.0"] {
        assert_eq!(provider(order).version(), Some("2"), "{order}");
        assert_eq!(
            Url::parse_encoded(&dubhe_common::encode(&format!("dubbo://h:1/p?{order}"))).unwrap().version(),
            Some("2")
        );
    }
}

// C41
#[test]
fn a_provider_of_another_category_or_out_of_use_does_not_match() {
    check(&[
        ("", "category=providers", true),
        ("", "category=configurators", false),
        ("category=providers,configurators,routers", "category=configurators", true),
        ("", "enabled=false", false),
        ("", "enabled=FALSE", false),
        ("", "enabled=true", true),
        ("enabled=*", "enabled=false", true),
    ]);
}

// C43
#[test]
fn an_exact_interface_with_any_group_and_version_receives_all_providers() {
    check(&[
        ("group=*&version=*", "group=g1&version=v1", true),
        ("group=*&version=*", "", true),
        ("group=g1,g2&version=v1", "group=g2&version=v1", true),
        ("group=g1 , g2", "group=g2", true),
        ("group=g1,g2", "", false),
        ("group=g1,g2", "group=g", false),
        ("group=ab", "group=a", false),
        ("", "group=g1", false),
        ("group=", "", false),
        ("version=1", "version=1.0", false),
        ("", "version=0.0.0", false),
        ("version=1,2", "version=1", false),
    ]);
}

#[test]
fn an_interface_wildcard_matches_every_interface() {
    let all = Url::parse("consumer://192.0.2.9/x?interface=*&group=*&version=*&category=*").unwrap();
    assert!(is_match(&all, &provider("group=g&version=1&category=routers")));
    assert!(!is_match(&Url::parse("consumer://192.0.2.9/demo.Bar").unwrap(), &provider("")));
    assert!(is_match(&consumer(""), &Url::parse("override://0.0.0.0/*?category=providers").unwrap()));
}

#[test]
fn a_classifier_must_be_equal_unless_one_side_has_any() {
    check(&[
        ("classifier=a", "classifier=a", true),
        ("classifier=a", "classifier=b", false),
        ("classifier=*", "classifier=b", true),
        ("", "classifier=b", true),
        ("classifier=a", "", false),
        ("classifier=a", "classifier=*", false),
    ]);
}

#[test]
fn categories_are_compared_item_by_item() {
    for (wanted, category, expected) in [
        ("", "providers", true),
        ("", "routers", false),
        ("*", "routers", true),
        ("dynamicconfigurators", "configurators", false),
        ("routers, configurators", "configurators", true),
        ("-routers", "configurators", true),
        ("-routers", "routers", false),
        ("-dynamicrouters", "routers", true),
    ] {
        assert_eq!(category_matches(wanted, category), expected, "{wanted} {category}");
    }
}

#[test]
fn globs_answer_as_java_does() {
    for (pattern, value, expected) in [
        ("*", "x", true),
        ("", "", true),
        ("", "a", false),
        ("a", "", false),
        ("a", "a", true),
        ("a*", "abc", true),
        ("*c", "abc", true),
        ("a*c", "abc", true),
        ("a*c", "ac", true),
        ("*b*", "abc", false),
        ("a*b*c", "axbxc", false),
        ("*", "", true),
        ("A", "a", false),
        ("a*", "a", true),
        ("**", "a", false),
        ("a**", "abc", false),
        ("ab*ba", "aba", true),
        ("ab*ba", "ab", false),
    ] {
        assert_eq!(glob(pattern, value), expected, "{pattern} {value}");
    }
}

#[test]
fn a_list_holds_items_not_substrings() {
    assert!(list_contains("sayHello, add", "add"));
    assert!(!list_contains("sayHello,add", "say"));
    assert!(!list_contains("", ""));
}
