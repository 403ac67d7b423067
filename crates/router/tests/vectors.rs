//! Known answers of Apache Dubbo 3.1.11 and 3.3.6, case by case.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::sync::Arc;

use dubhe_common::{Url, encode, glob, keys};
use dubhe_core::invocation::{GENERIC_DESCRIPTOR, Invocation, Method};
use dubhe_core::router::RouterChain;
use dubhe_core::value::{List, Value};
use dubhe_router::{Chain, ConditionRouter, Dialect, address_fits};
use serde_json::Value as Json;
use support::{addresses, providers};

/// What only Dubbo 3.3 can, we can in both dialects: ranges, and attachments of the call.
const ADDED_BY_33: [&str; 3] =
    ["arguments[1] = 1~10 => env = gray", "=> weight = 10~60", "attachments[foo] = a => region = sh"];

/// Kinds whose rules are YAML documents: they wait for the rules of a config centre and for the tag router.
const WAITING: [(&str, usize); 3] = [("app", 12), ("service", 1), ("tag", 31)];

const CONDITIONS: usize = 71;

#[test]
fn condition_rules_keep_the_providers_that_dubbo_keeps() {
    let (mut checked, mut failures) = (0, Vec::new());
    for case in cases("condition") {
        for dialect in [Dialect::Dubbo31, Dialect::Dubbo33] {
            for origin in [routed_by_code, routed_by_registry] {
                let found = origin(&case, dialect);
                let expected = expected(&case, dialect);
                if found != expected {
                    failures.push(format!("{} {dialect:?}: {found:?}, not {expected:?}", case["rule"]));
                }
            }
        }
        checked += 1;
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(checked, CONDITIONS);
}

#[test]
fn malformed_rules_are_refused_with_the_text_of_dubbo() {
    let mut checked = 0;
    for case in cases("condition") {
        let parsed = ConditionRouter::parse(text(&case["rule"]));
        match case["throws"].as_str() {
            Some(thrown) => {
                let (_, message) = thrown.split_once(": ").unwrap();
                assert_eq!(parsed.unwrap_err().to_string(), message);
                checked += 1;
            }
            None => assert!(parsed.is_ok(), "{}", case["rule"]),
        }
    }
    assert_eq!(checked, 6);
}

#[test]
fn the_cases_that_wait_are_those_with_documents() {
    let all = vectors()["cases"].as_array().unwrap().len();
    for (kind, count) in WAITING {
        assert_eq!(cases(kind).len(), count, "{kind}");
    }
    assert_eq!(all, CONDITIONS + WAITING.iter().map(|(_, count)| count).sum::<usize>());
}

#[test]
fn globs_fit_what_dubbo_fits() {
    let cases = &vectors()["UrlUtils.isMatchGlobPattern"];
    for case in cases.as_array().unwrap() {
        let (pattern, value) = (text(&case["pattern"]), text(&case["value"]));
        assert_eq!(glob(pattern, value), case["match"].as_bool().unwrap(), "{pattern} {value}");
    }
    assert_eq!(cases.as_array().unwrap().len(), 16);
}

#[test]
fn addresses_fit_what_dubbo_fits() {
    let cases = &vectors()["NetUtils.matchIpExpression(pattern,host,port)"];
    for case in cases.as_array().unwrap() {
        let (pattern, host) = (text(&case["pattern"]), text(&case["host"]));
        let found = address_fits(pattern, host, case["port"].as_u64().unwrap() as u16);
        match case["throws"].as_str() {
            Some(thrown) => assert_eq!(found.unwrap_err().to_string(), thrown.split_once(": ").unwrap().1),
            None => assert_eq!(found.unwrap(), case["match"].as_bool().unwrap(), "{pattern} {host}"),
        }
    }
    assert_eq!(cases.as_array().unwrap().len(), 20);
}

/// `None`: the rule is refused.
fn expected(case: &Json, dialect: Dialect) -> Option<Vec<String>> {
    let newer = &case["result_3_3_6"];
    let is_added = ADDED_BY_33.contains(&text(&case["rule"]));
    let result =
        if (dialect == Dialect::Dubbo33 || is_added) && !newer.is_null() { newer } else { &case["result"] };
    Some(result.as_array()?.iter().map(|address| text(address).to_owned()).collect())
}

fn routed_by_code(case: &Json, dialect: Dialect) -> Option<Vec<String>> {
    let settings = Url::parse(&format!("condition://0.0.0.0/a?{}", text(&case["url_params"]))).unwrap();
    let rule = ConditionRouter::parse(text(&case["rule"])).ok()?.with_dialect(dialect);
    let rule = rule.with_force(settings.bool_param(keys::FORCE, false));
    let rule = rule.with_enabled(settings.bool_param(keys::ENABLED, true));
    let chain = Chain::builder(Url::parse(text(&case["consumer"])).unwrap()).rule(rule).build();
    Some(route(&chain, case))
}

fn routed_by_registry(case: &Json, dialect: Dialect) -> Option<Vec<String>> {
    let settings = text(&case["url_params"]);
    let rule = encode(text(&case["rule"]));
    let url = format!("route://0.0.0.0/com.foo.Bar?category=routers&router=condition&{settings}");
    let url = Url::parse(&url).unwrap().with_param(keys::RULE, &rule);
    let chain = Chain::builder(Url::parse(text(&case["consumer"])).unwrap()).dialect(dialect).build();
    let is_new = chain.set_registry_rules(&[url]);
    let kept = route(&chain, case);
    if !is_new && !settings.contains("enabled=false") {
        // A refused rule has no effect.
        assert_eq!(kept.len(), case["invokers"].as_array().unwrap().len());
        return None;
    }
    Some(kept)
}

fn route(chain: &Chain, case: &Json) -> Vec<String> {
    let urls: Vec<&str> = case["invokers"].as_array().unwrap().iter().map(text).collect();
    let routes = chain.bind(&providers(&urls));
    let call = call(case);
    let kept = addresses(&routes.candidates(&call).unwrap());
    assert_eq!(routes.explain(&call).remaining, kept);
    kept
}

fn call(case: &Json) -> Invocation {
    let arguments: Vec<Value> = case["arguments"].as_array().unwrap().iter().map(value).collect();
    let method = text(&case["method"]);
    let descriptor = if method == "$invoke" { GENERIC_DESCRIPTOR } else { "" };
    let mut call = Invocation::new(Arc::new(Method::new(method, descriptor)), Arc::new(arguments));
    for (key, value) in case["attachments"].as_object().unwrap() {
        call = call.with_attachment(key.clone(), text(value));
    }
    call
}

fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(flag) => Value::Bool(*flag),
        Json::Number(number) => Value::Int(number.as_i64().unwrap() as i32),
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => {
            Value::List(Arc::new(List { class: None, items: items.iter().map(value).collect() }))
        }
        Json::Object(_) => panic!("no case has an object as argument"),
    }
}

fn cases(kind: &str) -> Vec<Json> {
    let all = vectors()["cases"].as_array().unwrap().clone();
    all.into_iter().filter(|case| case["kind"] == kind).collect()
}

fn vectors() -> Json {
    serde_json::from_str(include_str!("vectors/routers.json")).unwrap()
}

fn text(json: &Json) -> &str {
    json.as_str().unwrap()
}
