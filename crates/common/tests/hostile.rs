//! Any text may come from a registry or a user; none may panic, and what is written is read back.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use dubhe_common::address::connect_host;
use dubhe_common::defaults::{MAX_URL_BYTES, MAX_URL_PARAMS};
use dubhe_common::{
    Params, ServiceKey, Url, UrlError, UrlFactory, decode, encode, glob, is_match, merge_address,
    merge_consumer_into_provider, parse_registry_address,
};
use proptest::prelude::*;

/// Text in which everything that has a meaning in a URL is likely.
fn nasty() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("://".to_owned()),
        Just("%3F".to_owned()),
        Just("%3f".to_owned()),
        Just("%26".to_owned()),
        Just("%3D".to_owned()),
        Just("%".to_owned()),
        Just("%2".to_owned()),
        Just("default.".to_owned()),
        Just("timestamp".to_owned()),
        Just("pid".to_owned()),
        Just("methods=".to_owned()),
        Just("[2001:db8::1]".to_owned()),
        "[:/?#@&;=%+,.|\\[\\]*-]",
        "[a-z0-9]{1,4}",
        "\\PC",
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Names and values that the text form can carry: it has no escape for its separators and trims values.
fn name() -> impl Strategy<Value = String> {
    "[a-zA-Z%+()\u{e9}\u{4e2d}\u{ff21}\u{1f600}~*]{1,8}"
        .prop_filter("volatile", |name| name != "pid" && name != "timestamp")
}

fn value() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9%+()=?#/:@,\u{e9}\u{4e2d}\u{1f600} ]{1,12}"
        .prop_filter("trimmed", |value| value.trim() == value && !value.is_empty())
}

fn url() -> impl Strategy<Value = Url> {
    let params = prop::collection::vec((name(), value()), 0..12);
    ("[a-z]{1,8}", "[a-z0-9.-]{1,16}", any::<u16>(), "[a-zA-Z][a-zA-Z0-9.$()_]{0,12}", params).prop_map(
        |(protocol, host, port, path, params)| {
            Url::builder(&protocol, &host, port).path(&path).params(params).param("timestamp", 1).build()
        },
    )
}

proptest! {
    // Failing cases are fixed and kept as tests of their own.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_a_parser_panic(text in nasty(), other in nasty()) {
        let _ = (decode(&text), encode(&text), connect_host(&text), glob(&text, &other), ServiceKey::parse(&text));
        let _ = parse_registry_address(&text, &Url::builder("zookeeper", &other, 1).build());
        let factory = UrlFactory::new();
        let urls: Vec<Url> = [
            Url::parse(&text), Url::parse_encoded(&text), factory.parse(&text), factory.parse_encoded(&text), Url::parse(&other),
        ].into_iter().flatten().collect();
        for a in &urls {
            let _ = (a.to_full_string(), a.to_plain_string(), a.to_service_string(), a.backup_addresses(1), a.encoded());
            let _ = (a.method_param(&text, &other), a.any_method_param(&other), a.int_param(&text, 1), a.has_params_of_method(&text));
            let _ = (a.with_param(&text, &other), a.without_param(&other), a.with_address(&text));
            for b in &urls {
                let _ = (is_match(a, b), merge_consumer_into_provider(a, b), merge_address(a, b, &Params::new()));
            }
        }
    }

    // C45
    #[test]
    fn encoding_what_was_decoded_gives_the_same_node_name(text in any::<String>()) {
        let node = encode(&text);
        prop_assert_eq!(&*decode(&node), &*text);
        prop_assert_eq!(encode(&decode(&node)), node);
    }

    // C45
    #[test]
    fn a_node_is_written_back_under_its_own_name(url in url()) {
        let node = url.encoded();
        let read = Url::parse_encoded(&node).unwrap();
        prop_assert_eq!(&read, &url);
        prop_assert_eq!(read.encoded(), node);
        prop_assert_eq!(Url::parse(&url.to_full_string()).unwrap(), url);
    }

    #[test]
    fn a_shared_address_equals_one_of_its_own(url in url()) {
        let factory = UrlFactory::new();
        let shared = factory.parse_encoded(&url.encoded()).unwrap();
        prop_assert_eq!(&shared, &url);
        prop_assert_eq!(shared.to_full_string(), url.to_full_string());
    }

    #[test]
    fn every_parameter_is_found_and_the_order_is_that_of_utf16(url in url()) {
        let names: Vec<&str> = url.params().map(|(name, _)| name).collect();
        prop_assert!(names.windows(2).all(|pair| pair[0].encode_utf16().lt(pair[1].encode_utf16())));
        for (name, value) in url.params() {
            prop_assert_eq!(url.raw_param(name), Some(value));
        }
    }

    #[test]
    fn the_value_of_a_method_is_found_under_its_joined_name(method in "[a-z\u{ff21}\u{1f600}]{1,4}", key in "[a-z.]{1,5}", url in url()) {
        let url = url.with_param(&format!("{method}.{key}"), "v");
        prop_assert_eq!(url.method_param_strict(&method, &key), Some("v"));
        prop_assert_eq!(url.method_param_strict(&format!("{method}x"), &key), None);
    }
}

// C45
#[test]
fn names_with_every_kind_of_letter_are_encoded_once() {
    for (text, node) in [
        ("demo.Impl.method()", "demo.Impl.method%28%29"),
        ("100%25", "100%2525"),
        ("a+b c", "a%2Bb+c"),
        ("接口", "%E6%8E%A5%E5%8F%A3"),
    ] {
        assert_eq!(encode(text), node);
        assert_eq!(decode(node), text);
    }
}

#[test]
fn an_encoded_pair_without_a_value_keeps_its_name() {
    let url = Url::parse_encoded("dubbo%3A%2F%2Fh%3A1%2Fp%3Flazy%26check%3Dfalse").unwrap();
    assert_eq!((url.raw_param("lazy"), url.param("check")), (Some(""), Some("false")));
}

#[test]
fn raw_and_escaped_separators_in_a_node_name_mean_the_same() {
    for name in [
        "dubbo%3A%2F%2Fh%3A1%2Fp%3Fa%3D1&b=2%3Bc%3d3",
        "dubbo%3A%2F%2Fh%3A1%2Fp?a=1%26b%3D2;c=3",
        "dubbo%3a%2f%2fh%3a1%2fp%3fa%3d1%26b%3d2%26c%3d3",
        "dubbo://h:1/p?a=1&b=2&c=3",
    ] {
        assert_eq!(Url::parse_encoded(name).unwrap().to_full_string(), "dubbo://h:1/p?a=1&b=2&c=3", "{name}");
    }
    let raw = Url::parse_encoded("dubbo://h:1/p?rule=a%2Cb%3Fc").unwrap();
    assert_eq!(raw.param("rule"), Some("a%2Cb%3Fc"), "a decoded text is not decoded again");
}

#[test]
fn limits_are_errors_that_say_so() {
    let long = format!("dubbo://h:1/p?a={}", "x".repeat(MAX_URL_BYTES));
    let error = Url::parse(&long).unwrap_err();
    assert!(matches!(error, UrlError::TooLong { limit: MAX_URL_BYTES, .. }));
    assert!(error.to_string().len() < 400, "{error}");
    let pairs = |count: usize| (0..count).map(|number| format!("p{number}=1")).collect::<Vec<_>>().join("&");
    let most = format!("dubbo://h:1/p?{}", pairs(MAX_URL_PARAMS));
    assert_eq!(Url::parse(&most).unwrap().params_len(), MAX_URL_PARAMS);
    let many = format!("dubbo://h:1/p?{}", pairs(MAX_URL_PARAMS + 1));
    for result in [Url::parse(&many), Url::parse_encoded(&encode(&many))] {
        assert!(matches!(result, Err(UrlError::TooManyParams { limit: MAX_URL_PARAMS, .. })));
    }
}

#[test]
fn a_service_key_without_an_interface_is_an_error() {
    for text in ["", "g/", "g/:1", ":1"] {
        assert!(matches!(ServiceKey::parse(text), Err(UrlError::BadServiceKey { .. })), "{text}");
    }
    let key = ServiceKey::parse("g/demo.Foo:1.0").unwrap();
    assert_eq!(key, ServiceKey::from_url(&Url::parse("dubbo://h:1/demo.Foo?group=g&version=1.0").unwrap()));
}
