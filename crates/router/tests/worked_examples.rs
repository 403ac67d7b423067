//! Condition rules worked through by hand and checked with the router classes of Dubbo 3.1 and 3.3.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use dubhe_common::Url;
use dubhe_core::router::RouterChain;
use dubhe_core::value::Value;
use dubhe_router::{Chain, ConditionRouter, Dialect};
use support::{addresses, call_with, providers};

/// Rule, force, the providers kept by 3.1 and by 3.3. What only 3.3 has (ranges, attachments) we have in both; an open range works, and
/// an argument that is not there fits nothing.
#[rustfmt::skip]
const EXAMPLES: &[(&str, bool, &str, &str)] = &[
    (r"=> region=hz", false, "13", "13"),
    (r"region=hz => region=hz", false, "13", "13"),
    (r"region=bj => region=hz", false, "1234", "1234"),
    (r"=> region=sh", false, "1234", "1234"),
    (r"=> region=sh", true, "", ""),
    (r"=> region!=hz", false, "24", "2"),
    (r"=> region!=hz,bj", false, "4", "1234"),
    (r"=> env!=prod", false, "1234", "3"),
    (r"=> region=hz,bj", false, "123", "123"),
    (r"=> region=hz & region!=hz", true, "", ""),
    (r"=> region=hz & region!=hz", false, "1234", "1234"),
    (r"=> region=h*", false, "13", "13"),
    (r"=> region=*z", false, "13", "13"),
    (r"=> address=10.*:20880", false, "12", "12"),
    (r"=> host=10.0.0.*", false, "123", "123"),
    (r"=> host!=10.0.0.*", false, "4", "4"),
    (r"=> address=*:20881", false, "34", "34"),
    (r"=> port=20881", false, "34", "34"),
    (r"=> host=$host", true, "", ""),
    (r"=> region=$region", false, "13", "13"),
    (r"=> region=$zone", true, "", ""),
    (r"host=$host => region=hz", false, "1234", "1234"),
    (r"method=get => region=hz", false, "13", "13"),
    (r"method=get,set => region=bj", false, "2", "2"),
    (r"method!=get => region=bj", false, "1234", "1234"),
    (r"method=g* => region=bj", false, "2", "2"),
    (r"method=find* => false", false, "1234", "1234"),
    (r"method=get => false", false, "", ""),
    (r"method=get =>", false, "", ""),
    (r"=>", false, "", ""),
    (r"true => false", false, "", ""),
    (r"host = 10.0.0.9 =>", false, "", ""),
    (r"host != 10.0.0.9 =>", false, "1234", "1234"),
    (r"host != 10.0.0.8,10.0.0.7 =>", false, "", ""),
    (r"region=hz", false, "13", "13"),
    (r"application=shop => application=bar-app", false, "1234", "1234"),
    (r"consumer.application=shop => provider.region=bj", false, "2", "2"),
    (r"arguments[0]=1 => region=hz", false, "13", "13"),
    (r"arguments[0]=2 => region=hz", false, "1234", "1234"),
    (r"arguments[1]=a* => region=bj", false, "2", "2"),
    (r"arguments[5]=x => region=hz", false, "1234", "1234"),
    (r"arguments[5]!=x => region=hz", false, "1234", "1234"),
    (r"arguments[0].name=1 => region=bj", false, "2", "2"),
    (r"attachments[uid]=7 => region=bj", false, "2", "2"),
    (r"attachments[uid]=1~10 => region=bj", false, "2", "2"),
    (r"attachments[none]!=1 => region=bj", false, "2", "1234"),
    (r"attachments[uid]=~5 => region=bj", false, "1234", "1234"),
    (r"attachments[uid]=5~ => region=bj", false, "2", "2"),
    (r"attachments[city]=hz & method=get => region=hz", false, "13", "13"),
    (r"=> port=20000~20880", false, "12", "12"),
    (r"=> env", true, "124", ""),
    (r"region => region=hz", false, "1234", "1234"),
    (r"zone => region=hz", false, "13", "1234"),
    (r"zone!=a => region=bj", false, "2", "1234"),
    (r"host ! = 10.0.0.9 => region=bj", false, "2", "2"),
    (r"region=hz&method,get => region=bj", false, "1234", "1234"),
    (r"host=10.0.0.8 host=10.0.0.9 => region=bj", false, "2", "2"),
    (r"method=get => region=hz => env=test", false, "3", "3"),
    (r"=> methods=get", true, "", ""),
    (r"=> methods=get*", true, "1234", "1234"),
    (r"=> method=get", true, "", ""),
    (r"=> method!=get", true, "1234", ""),
    (r"version=1.0 => version=1.0", false, "1234", "1234"),
    (r"version=2.0 => version=2.0", false, "1234", "1234"),
];

#[test]
fn every_example_keeps_what_it_says() {
    let mut failures = Vec::new();
    for (rule, force, in_31, in_33) in EXAMPLES {
        for (dialect, expected) in [(Dialect::Dubbo31, in_31), (Dialect::Dubbo33, in_33)] {
            let found = kept(rule, *force, dialect);
            if found != **expected {
                failures.push(format!("`{rule}` {dialect:?}: {found}, not {expected}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn errors_name_the_separator_and_its_place() {
    let errors = [
        (
            "a == b => region=hz",
            "Illegal route rule \"a == b\", The error char '==' at index 2 before \"b\".",
        ),
        ("= a => region=hz", "Illegal route rule \"= a\", The error char '=' at index 0 before \"a\"."),
        ("a ! b =>", "Illegal route rule \"a ! b\", The error char '!' at index 2 before \"b\"."),
        ("a,b=c =>", "Illegal route rule \"a,b=c\", The error char ',' at index 1 before \"b\"."),
        ("=> a=b,,c", "Illegal route rule \"a=b,,c\", The error char ',,' at index 3 before \"c\"."),
        (" ", "Illegal route rule!"),
    ];
    for (rule, expected) in errors {
        assert_eq!(ConditionRouter::parse(rule).unwrap_err().to_string(), expected);
    }
}

/// The numbers of the providers that are kept.
fn kept(rule: &str, force: bool, dialect: Dialect) -> String {
    let consumer = Url::parse(
        "consumer://10.0.0.9/com.foo.Bar?application=shop&interface=com.foo.Bar&version=1.0&side=consumer&region=hz&methods=get,set",
    )
    .unwrap();
    let common = "application=bar-app&interface=com.foo.Bar&version=1.0&methods=get,set";
    let list = providers(&[
        format!("dubbo://10.0.0.1:20880/com.foo.Bar?{common}&region=hz"),
        format!("dubbo://10.0.0.2:20880/com.foo.Bar?{common}&region=bj&dubbo.tag=gray"),
        format!("dubbo://10.0.0.3:20881/com.foo.Bar?{common}&region=hz&env=test"),
        format!("dubbo://10.0.1.4:20881/com.foo.Bar?{common}&dubbo.tag=blue"),
    ]);
    let rule = ConditionRouter::parse(rule).unwrap().with_force(force).with_dialect(dialect);
    let routes = Chain::builder(consumer).rule(rule).build().bind(&list);
    let call = call_with("get", vec![Value::from("1"), Value::from("abc")])
        .with_attachment("uid", "7")
        .with_attachment("city", "hz");
    let kept = addresses(&routes.candidates(&call).unwrap());
    let number = |address: &String| list.iter().position(|one| one.url().address() == *address).unwrap() + 1;
    kept.iter().map(|address| number(address).to_string()).collect()
}
