//! Every recorded answer of Dubbo Java 3.1.11 about URLs, case by case.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use dubhe_common::{Params, ServiceKey, Url, decode, encode, keys, merge_consumer_into_provider};
use serde_json::{Map, Value};

fn vectors(section: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(include_str!("vectors/url.json")).unwrap();
    let (_, cases) = all.as_object().unwrap().iter().find(|(name, _)| name.starts_with(section)).unwrap();
    cases.as_array().unwrap().clone()
}

fn text<'a>(case: &'a Value, key: &str) -> Option<&'a str> {
    case.get(key).and_then(Value::as_str)
}

fn params_of(url: &Url) -> Value {
    Value::Object(
        url.params().map(|(name, value)| (name.to_owned(), Value::from(value))).collect::<Map<_, _>>(),
    )
}

/// Java answers `null` or prints "null" where this crate has an empty text.
fn or_empty(expected: Option<&str>) -> String {
    expected.unwrap_or_default().trim_start_matches("null").to_owned()
}

/// Inputs that Java rejects and this crate reads, since IPv6 addresses must not be lost (C48).
const READ_HERE_ONLY: [&str; 1] = ["dubbo://[2001:db8::1]/com.foo.Bar"];
/// Inputs that Java reads and this crate rejects: a port no connection can be made to.
const READ_BY_JAVA_ONLY: [&str; 1] = ["dubbo://192.0.2.1:99999/x"];

#[test]
fn parses_and_prints_as_java_does() {
    let mut seen = 0;
    for case in vectors("valueOf") {
        let input = text(&case, "input").unwrap();
        let parsed = Url::parse(input);
        if READ_BY_JAVA_ONLY.contains(&input)
            || (case.get("throws").is_some() && !READ_HERE_ONLY.contains(&input))
        {
            assert!(parsed.is_err(), "{input} must be rejected");
            seen += 1;
            continue;
        }
        let url = parsed.unwrap_or_else(|error| panic!("{input}: {error}"));
        if READ_HERE_ONLY.contains(&input) {
            assert_eq!(url.to_full_string(), input);
            seen += 1;
            continue;
        }
        parts_agree(&case, &url, input);
        text_forms_agree(&case, &url, input);
        keys_agree(&case, &url, input);
        getters_agree(&case, &url, input);
        seen += 1;
    }
    assert_eq!(seen, 65);
}

fn parts_agree(case: &Value, url: &Url, input: &str) {
    assert_eq!(url.protocol(), text(case, "protocol").unwrap_or_default(), "protocol of {input}");
    assert_eq!(url.user(), text(case, "username"), "user of {input}");
    assert_eq!(url.password(), text(case, "password"), "password of {input}");
    assert_eq!(url.host(), text(case, "host").unwrap_or_default(), "host of {input}");
    assert_eq!(u64::from(url.port()), case["port"].as_u64().unwrap(), "port of {input}");
    assert_eq!(url.path(), text(case, "path"), "path of {input}");
    assert_eq!(params_of(url), case["parameters"], "parameters of {input}");
    assert_eq!(url.is_any_host(), case["isAnyHost"].as_bool().unwrap(), "any host of {input}");
    assert_eq!(url.is_local_host(), case["isLocalHost"].as_bool().unwrap(), "local host of {input}");
}

fn text_forms_agree(case: &Value, url: &Url, input: &str) {
    let same =
        |name: &str, got: String| assert_eq!(got, text(case, name).unwrap_or_default(), "{name} of {input}");
    same("toFullString", url.to_full_string());
    same("toString", url.to_string());
    same("toIdentityString", url.to_identity_string());
    same("toServiceStringWithoutResolving", url.to_service_string());
    same("toParameterString", url.to_parameter_string());
    same("address", url.address());
    same("authority", url.authority());
    same("userInformation", url.user_information());
    same("encode(toFullString)", url.encoded());
    // Java throws for a missing host and for IPv6; what this crate answers then is tested with its addresses.
    for (name, port) in [("backupAddress", 0), ("backupAddress(2181)", 2181)] {
        if !text(case, name).unwrap_or_default().starts_with("throws") {
            same(name, url.backup_addresses(port).join(","));
        }
    }
    let again = Url::parse(&url.to_full_string()).unwrap();
    assert_eq!(again == *url, case["reparse_equal"].as_bool().unwrap(), "reparse of {input}");
}

fn keys_agree(case: &Value, url: &Url, input: &str) {
    let same = |name: &str, got: String| assert_eq!(got, or_empty(text(case, name)), "{name} of {input}");
    same("serviceKey", url.service_key());
    same("colonSeparatedKey", url.colon_separated_key());
    same("displayServiceKey", url.display_service_key());
    same("pathKey", url.path_key());
    same("serviceInterface", url.service_interface().to_owned());
    let expected = text(case, "protocolServiceKey").unwrap();
    let expected = expected.strip_suffix(":null").map_or(expected.to_owned(), |key| format!("{key}:"));
    assert_eq!(
        url.protocol_service_key(),
        expected.trim_start_matches("null"),
        "protocol service key of {input}"
    );
    assert_eq!(url.group(), text(case, "group"), "group of {input}");
    assert_eq!(url.version(), text(case, "version"), "version of {input}");
    assert_eq!(url.side(), text(case, "side"), "side of {input}");
    assert_eq!(url.application(), text(case, "application"), "application of {input}");
    assert_eq!(
        url.param(keys::REMOTE_APPLICATION),
        text(case, "remoteApplication").filter(|name| !name.is_empty()),
        "remote application of {input}"
    );
    assert_eq!(Value::from(vec![url.category()]), case["category_default_list"], "category of {input}");
}

fn getters_agree(case: &Value, url: &Url, input: &str) {
    let same = |name: &str, got: Value| assert_eq!(got, case[name], "{name} of {input}");
    same("getParameter(timeout,1000)", url.int_param("timeout", 1000).unwrap().into());
    same("getPositiveParameter(timeout,1000)", url.positive_param("timeout", 1000).unwrap().into());
    same("getParameter(check,true)", url.bool_param("check", true).into());
    same("getParameterAndDecoded(enc)", url.param_decoded("enc").unwrap_or_default().into());
    same("getParameter(enc)", url.raw_param("enc").into());
    same("getMethodParameter(sayHello,timeout)", url.method_param("sayHello", "timeout").into());
    same("getMethodParameter(sayHello,timeout,1000)", url.method_int("sayHello", "timeout", 1000).into());
    same("getMethodParameterStrict(sayHello,timeout)", url.method_param_strict("sayHello", "timeout").into());
    let retries = url.method_int("sayHello", "retries", 2);
    same("getMethodPositiveParameter(sayHello,retries,2)", if retries > 0 { retries } else { 2 }.into());
    same("hasMethodParameter(sayHello)", url.has_params_of_method("sayHello").into());
    same(
        "hasMethodParameter(sayHello,timeout)",
        url.method_param_strict("sayHello", "timeout").is_some().into(),
    );
    same("getAnyMethodParameter(timeout)", url.any_method_param("timeout").into());
    same("getParameter(methods,list)", url.list_param("methods").into());
}

#[test]
fn parses_encoded_node_names_as_java_does() {
    let cases = vectors("parseEncodedStr");
    assert_eq!(cases.len(), 8);
    for case in cases {
        let name = text(&case, "encoded").unwrap();
        let url = Url::parse_encoded(name).unwrap();
        assert_eq!(url.to_full_string(), text(&case, "parseEncodedStr.toFullString").unwrap());
        assert_eq!(url.to_full_string(), text(&case, "valueOf(encoded,true)").unwrap());
        assert_eq!(params_of(&url), case["parameters"], "{name}");
        assert_eq!(encode(text(&case, "decoded").unwrap()), name);
        assert_eq!(url, Url::parse(text(&case, "decoded").unwrap()).unwrap());
    }
}

#[test]
fn encodes_and_decodes_as_java_does() {
    let cases = vectors("encode_decode");
    assert_eq!(cases.len(), 16);
    for case in cases {
        let input = text(&case, "input").unwrap_or_default();
        assert_eq!(encode(input), text(&case, "encode").unwrap(), "{input}");
        let expected = text(&case, "decode").unwrap();
        // Java throws where an escape is cut off; here the text stays, so that one bad node cannot hide the others.
        let expected = if expected.starts_with("throws") { input } else { expected };
        assert_eq!(decode(input), expected, "{input}");
    }
}

#[test]
fn changes_urls_as_java_does() {
    let all: Value = serde_json::from_str(include_str!("vectors/url.json")).unwrap();
    let base = Url::parse(all["operations_on"].as_str().unwrap()).unwrap();
    let cases = all["operations"].as_array().unwrap().clone();
    assert_eq!(cases.len(), 21);
    for case in cases {
        let op = text(&case, "op").unwrap();
        let changed = apply(&base, op);
        assert_eq!(changed.to_full_string(), text(&case, "toFullString").unwrap(), "{op}");
    }
}

fn apply(url: &Url, op: &str) -> Url {
    match op {
        "addParameter(timeout,2000)" => url.with_param("timeout", 2000),
        "addParameter(x,\"\")" | "addParameter(x,null)" => url.with_param("x", ""),
        "addParameterIfAbsent(timeout,9)" => url.with_param_if_absent("timeout", 9),
        "addParameterIfAbsent(y,9)" => url.with_param_if_absent("y", 9),
        "addParameters({p:1,q:2})" => url.with_params([("p", 1), ("q", 2)]),
        "addParametersIfAbsent({timeout:1,q:2})" => {
            url.with_param_if_absent("timeout", 1).with_param_if_absent("q", 2)
        }
        "addParameterString(k=v&z=1)" => url.with_params(Url::parse("?k=v&z=1").unwrap().params()),
        "addParameterAndEncoded(r,a=b c)" => url.with_param("r", encode("a=b c")),
        "removeParameter(timeout)" => url.without_param("timeout"),
        "removeParameters(group,version)" => url.without_params(["group", "version"]),
        "clearParameters()" => url.clear_params(),
        "setProtocol(tri)" => url.with_protocol("tri"),
        "setHost(h)" => url.with_host("h"),
        "setPort(0)" => url.with_port(0),
        "setPath(/a/b)" => url.with_path("/a/b"),
        "setAddress(h2:9)" => url.with_address("h2:9").unwrap(),
        "setAddress(h3)" => url.with_address("h3").unwrap(),
        "setUsername(u).setPassword(p)" => url.to_builder().user("u").password("p").build(),
        "setServiceInterface(com.x.Y)" => url.with_param("interface", "com.x.Y"),
        // Kept: names that start with the first list, and those of the second.
        "valueOf(url,[timeout],[group])" => {
            url.retain_params(|name, _| name.starts_with("timeout") || name == "group")
        }
        other => panic!("a new operation, {other}, has no counterpart in this test"),
    }
}

#[test]
fn builds_service_keys_as_java_does() {
    let cases = vectors("buildKey");
    assert_eq!(cases.len(), 7);
    for case in cases {
        let key = ServiceKey::new(text(&case, "group"), text(&case, "path").unwrap(), text(&case, "version"));
        assert_eq!(key.to_string(), text(&case, "buildKey").unwrap());
        assert_eq!(ServiceKey::parse(&key.to_string()).unwrap(), key);
    }
}

#[test]
fn compares_urls_as_java_does() {
    let cases = vectors("equals");
    assert_eq!(cases.len(), 6);
    for case in cases {
        let (a, b) =
            (Url::parse(text(&case, "a").unwrap()).unwrap(), Url::parse(text(&case, "b").unwrap()).unwrap());
        assert_eq!(a == b, case["equals"].as_bool().unwrap(), "{case}");
    }
}

#[test]
fn merges_consumer_into_provider_as_java_does() {
    let cases = vectors("mergeUrl");
    assert_eq!(cases.len(), 10);
    for case in cases {
        let provider = Url::parse(text(&case, "provider_url").unwrap()).unwrap();
        let params = case["consumer_params"].as_object().unwrap();
        let params: Params = params.iter().map(|(name, value)| (name, value.as_str().unwrap())).collect();
        let consumer = Url::builder("consumer", "192.0.2.9", 0).params(params.iter()).build();
        let merged = merge_consumer_into_provider(&provider, &consumer);
        assert_eq!(merged.to_full_string(), text(&case, "merged_toFullString").unwrap(), "{case}");
    }
}

/// Names of nodes that Dubbo Java 2.7.23, 3.1.11 and 3.3.6 wrote into ZooKeeper.
fn nodes() -> Vec<String> {
    serde_json::from_str(include_str!("vectors/nodes.json")).unwrap()
}

// C45
#[test]
fn a_node_written_by_java_is_written_back_under_its_own_name() {
    let nodes = nodes();
    assert!(nodes.len() > 5);
    for node in nodes {
        assert_eq!(encode(&decode(&node)), node);
        assert_eq!(Url::parse_encoded(&node).unwrap().encoded(), node);
    }
}
