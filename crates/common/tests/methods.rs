//! Parameters of methods and typed values.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::Duration;

use dubhe_common::Url;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_method_has_its_own_value_or_that_of_the_service() {
    let url = Url::parse("dubbo://h:1/p?timeout=10&sayHello.timeout=5&sayHello.async=TRUE").unwrap();
    assert_eq!(url.method_duration("sayHello", "timeout", SECOND), Duration::from_millis(5));
    assert_eq!(url.method_duration("other", "timeout", SECOND), Duration::from_millis(10));
    assert!(url.method_bool("sayHello", "async", false));
    assert_eq!(url.method_param_strict("other", "timeout"), None);
    assert!(url.has_method_params());
}

#[test]
fn a_method_is_looked_for_as_an_item_of_the_method_list() {
    let url = |methods: &str| Url::parse(&format!("dubbo://h:1/p?methods={methods}&say.timeout=5")).unwrap();
    assert_eq!(url("sayHello,add").method_param_strict("say", "timeout"), None);
    assert_eq!(url("sayHello,say").method_param_strict("say", "timeout"), Some("5"));
    assert_eq!(url("*").method_param_strict("say", "timeout"), Some("5"));
}

#[test]
fn a_dotted_name_added_later_is_found_at_its_first_dot() {
    let url = Url::parse("dubbo://h:1/p").unwrap().with_param("sayHello.0.callback", true);
    assert_eq!(url.method_param("sayHello", "0.callback"), Some("true"));
}

#[test]
fn names_with_a_dot_of_their_own_are_not_method_parameters() {
    let url = Url::parse(
        "dubbo://h:1/p?dubbo.tag=a&remote.application=b&reference.filter=c&default.timeout=1&connect.timeout=3",
    )
    .unwrap();
    assert!(!url.has_method_params());
    assert!(url.with_param("sayHello.timeout", 1).has_method_params());
    assert!(!url.with_params([("methods", "add"), ("sayHello.timeout", "1")]).has_method_params());
}

#[test]
fn a_method_may_be_called_like_the_start_of_another_name() {
    let url =
        Url::parse("dubbo://h:1/p?methods=remote,connect&remote.retries=1&connect.timeout=3&other.retries=2")
            .unwrap();
    assert_eq!(url.method_param_strict("remote", "retries"), Some("1"));
    assert_eq!(url.method_param_strict("connect", "timeout"), Some("3"));
    assert_eq!(url.method_param_strict("other", "retries"), None);
}

#[test]
fn malformed_values_do_not_stop_a_call() {
    let url = Url::parse("dubbo://h:1/p?timeout=soon&m.timeout=-1&retries=many&weight=99999999999999999999")
        .unwrap();
    assert_eq!(url.duration_param("timeout", SECOND), SECOND);
    assert_eq!(url.method_duration("m", "timeout", SECOND), SECOND);
    assert_eq!(url.method_int("m", "retries", 2), 2);
    assert!(url.int_param("retries", 2).unwrap_err().to_string().contains("`retries` is `many`"));
    assert!(url.positive_param("weight", 100).is_err());
    assert_eq!(url.int_param("absent", 7), Ok(7));
}

#[test]
fn an_empty_value_counts_as_missing_but_is_kept() {
    let url = Url::parse("dubbo://h:1/p?group=&x").unwrap();
    assert_eq!((url.param("group"), url.raw_param("group"), url.raw_param("x")), (None, Some(""), Some("")));
    assert_eq!(url.params_len(), 2);
    assert_eq!(url.param_or("group", "g"), "g");
}
