//! Who decides what when a consumer's, a provider's and an operator's settings meet.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use dubhe_common::{AddressMerger, Params, Url, UrlFactory, merge_address, merge_consumer_into_provider};

fn provider(params: &str) -> Url {
    Url::parse(&format!("dubbo://192.0.2.1:20880/demo.Foo?{params}")).unwrap()
}

fn consumer(params: &str) -> Url {
    Url::parse(&format!("consumer://192.0.2.9/demo.Foo?interface=demo.Foo&side=consumer&{params}")).unwrap()
}

fn none() -> Params {
    Params::new()
}

// C65. The order is that of Dubbo 3.1: what a consumer has as its default is a plain parameter of its URL, so it
// comes before the provider's plain value.
#[test]
fn the_timeout_of_a_call_is_decided_method_before_service_and_consumer_before_provider() {
    let full = ("m.timeout=1&timeout=3", "m.timeout=2&timeout=4");
    for (consumer_params, provider_params, expected) in [
        (full.0, full.1, "1"),
        ("timeout=3", full.1, "2"),
        ("timeout=3", "timeout=4", "3"),
        ("", "timeout=4", "4"),
        ("default.timeout=5", "timeout=4", "5"),
        ("default.timeout=5&timeout=3", "timeout=4", "3"),
        ("", "default.timeout=6", "6"),
        ("", "default.timeout=6&timeout=4", "4"),
        ("", "default.timeout=6&m.timeout=2", "2"),
    ] {
        let (provider, consumer) = (provider(provider_params), consumer(consumer_params));
        let row = format!("consumer `{consumer_params}`, provider `{provider_params}`");
        let address = merge_address(&provider, &consumer, &none());
        assert_eq!(address.method_param("m", "timeout"), Some(expected), "{row}");
        let direct = merge_consumer_into_provider(&provider, &consumer);
        assert_eq!(direct.method_param("m", "timeout"), Some(expected), "given by hand: {row}");
    }
}

// C65
#[test]
fn an_override_wins_over_both_sides_on_its_level() {
    let overrides: Params = [("timeout", "9"), ("m.retries", "0")].into_iter().collect();
    let address = merge_address(&provider("timeout=4"), &consumer("timeout=3&m.retries=5"), &overrides);
    assert_eq!(address.param("timeout"), Some("9"));
    assert_eq!(address.method_param("m", "retries"), Some("0"));
}

// C65
#[test]
fn a_provider_never_widens_retries_nor_chooses_the_cluster() {
    let provider =
        provider("retries=3&cluster=failfast&loadbalance=roundrobin&m.retries=7&default.retries=9");
    let silent = merge_address(&provider, &consumer(""), &none());
    for key in ["retries", "cluster"] {
        assert_eq!(silent.method_param("m", key), None, "{key}");
    }
    assert_eq!(
        silent.method_param("m", "loadbalance"),
        Some("roundrobin"),
        "a provider's balancer is taken over"
    );
    let address =
        merge_address(&provider, &consumer("retries=0&m.loadbalance=random&cluster=failover"), &none());
    assert_eq!(address.method_param("m", "retries"), Some("0"));
    assert_eq!(address.method_param("m", "loadbalance"), Some("random"));
    assert_eq!(address.param("cluster"), Some("failover"));
}

#[test]
fn every_kind_of_name_comes_from_its_side() {
    let provider = provider(
        "group=g&version=1&application=shop&side=provider&interface=demo.Impl&category=x&release=3.1.11&dubbo=2.0.2\
         &methods=m&timestamp=5&pid=1&dubbo.tag=gray&check=true&reference.filter=a&weight=50&token=t",
    );
    let consumer = consumer(
        "group=*&version=*&application=web&category=providers,routers&release=2.7&dubbo=2.0.1&methods=z&timestamp=7&pid=2\
         &dubbo.tag=blue&check=true&reference.filter=b&weight=",
    );
    let address = merge_address(&provider, &consumer, &none());
    for (name, expected) in [
        ("group", "g"),
        ("version", "1"),
        ("application", "shop"),
        ("remote.application", "shop"),
        ("side", "consumer"),
        ("interface", "demo.Foo"),
        ("category", "providers"),
        ("release", "3.1.11"),
        ("dubbo", "2.0.2"),
        ("methods", "m"),
        ("timestamp", "5"),
        ("pid", "2"),
        ("dubbo.tag", "gray"),
        ("check", "false"),
        ("reference.filter", "a,b"),
        ("weight", "50"),
        ("token", "t"),
    ] {
        assert_eq!(address.param(name), Some(expected), "{name}");
    }
    assert_eq!((address.host(), address.port(), address.path()), ("192.0.2.1", 20880, Some("demo.Foo")));
}

#[test]
fn an_address_without_a_path_takes_that_of_the_consumer() {
    let bare = Url::parse("dubbo://192.0.2.1:20880").unwrap();
    assert_eq!(merge_address(&bare, &consumer(""), &none()).path(), Some("demo.Foo"));
}

#[test]
fn merged_addresses_share_their_parameters_over_notifications() {
    let factory = UrlFactory::new();
    let consumer = consumer("timeout=3&pid=2");
    let merge = |text: &str| {
        let mut merger = AddressMerger::new(&consumer, &none()).with_factory(&factory);
        merger.merge(&factory.parse(text).unwrap())
    };
    let first = merge("dubbo://192.0.2.1:20880/demo.Foo?weight=5&timestamp=1&pid=8");
    let restarted = merge("dubbo://192.0.2.1:20880/demo.Foo?weight=5&timestamp=2&pid=9");
    let second = merge("dubbo://192.0.2.2:20880/demo.Foo?weight=5&timestamp=3&pid=8");
    assert!(first.shared_params().ptr_eq(second.shared_params()));
    assert_eq!(first, restarted, "a restart changes nothing that an invoker depends on");
    assert_eq!(restarted.param("timestamp"), Some("2"), "warm-up starts with the new process");
}
