//! The cases that call by name, with `$invoke`.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use dubhe::java::IntArray;
use dubhe::value::to_value;
use dubhe::{CallOptions, GenericService, ResponseAttachments, Value};

use crate::cases::{Cases, failure, same, same_fields, same_value};
use crate::fixtures::{self, BEYOND_BMP, DATE};
use crate::typed::{arrived, token};

const STRING: &str = "java.lang.String";
const LIST: &str = "java.util.List";
const USER: &str = "dev.dubhe.interop.api.User";

pub(crate) async fn run(cases: &mut Cases, generic: &GenericService) {
    values(cases, generic).await;
    beans(cases, generic).await;
    special(cases, generic).await;
    contexts(cases, generic).await;
    exceptions(cases, generic).await;
}

pub(crate) async fn greet(cases: &mut Cases, greet: &GenericService) {
    let call = greet.invoke("greet", &[STRING], vec!["Ada".into()]);
    cases.answers("generic/group-version", Value::from("hello, Ada"), call).await;
}

async fn values(cases: &mut Cases, generic: &GenericService) {
    let ints = to_value(&IntArray::from(vec![1, -1, 70_000])).expect("an array has a dynamic form");
    let echoed: [(&str, &str, &str, Value); 14] = [
        ("string", "echoString", STRING, BEYOND_BMP.into()),
        ("string-null", "echoString", STRING, Value::Null),
        ("boolean", "echoBoolean", "boolean", true.into()),
        ("int", "echoInt", "int", i32::MIN.into()),
        ("long", "echoLong", "long", 7_i64.into()),
        ("double", "echoDouble", "double", 12.25.into()),
        ("boxed-int", "echoBoxedInt", "java.lang.Integer", 5.into()),
        ("boxed-long-null", "echoBoxedLong", "java.lang.Long", Value::Null),
        ("bytes", "echoBytes", "byte[]", fixtures::pattern(256).into()),
        ("int-array", "echoIntArray", "int[]", ints),
        ("date", "echoDate", "java.util.Date", DATE.into()),
        ("big-decimal", "echoBigDecimal", "java.math.BigDecimal", fixtures::decimal("1.50")),
        ("string-list", "echoStringList", LIST, Value::list(["a".into(), Value::Null, "c".into()])),
        ("long-list", "echoLongList", LIST, Value::list([1_i64, 1 << 40].map(Value::from))),
    ];
    for (name, method, java_type, value) in echoed {
        let types = [java_type];
        let call = generic.invoke(method, &types, vec![value.clone()]);
        cases.run(&format!("generic/{name}"), async { same_value(&value, &call.await?) }).await;
    }
    cases
        .run("generic/string-array", async {
            let array = Value::typed_list("[string", ["a", "b"].map(Value::from));
            let answer = generic.invoke("echoStringArray", &["java.lang.String[]"], vec![array]).await?;
            ensure!(answer.class().is_some_and(|class| class.starts_with('[')), "not an array: {answer}");
            same(&Some(["a", "b"].map(Value::from).as_slice()), &answer.as_list())
        })
        .await;
    cases
        .run("generic/string-set", async {
            let set = Value::typed_list("java.util.HashSet", ["x", "y"].map(Value::from));
            let answer = generic.invoke("echoStringSet", &["java.util.Set"], vec![set]).await?;
            let items = answer.as_list().context("not a collection")?;
            let items: BTreeSet<_> = items.iter().map(|item| item.as_str().unwrap_or("?")).collect();
            same(&BTreeSet::from(["x", "y"]), &items)
        })
        .await;
    cases
        .run("generic/object-map", async {
            let map = Value::map([
                ("text", Value::from("t")),
                ("int", 7.into()),
                ("long", 7_i64.into()),
                ("null", Value::Null),
            ]);
            let answer = generic.invoke("echoObjectMap", &["java.util.Map"], vec![map.clone()]).await?;
            same_value(&map, &answer)
        })
        .await;
    let call = generic.invoke("echoColor", &["dev.dubhe.interop.api.Color"], vec!["BLUE".into()]);
    cases.answers("generic/enum", Value::from("BLUE"), call).await;
}

async fn beans(cases: &mut Cases, generic: &GenericService) {
    cases
        .run("generic/user", async {
            let answer = generic.invoke("echoUser", &[USER], vec![fixtures::user_map("Ada")]).await?;
            same_fields(&fixtures::user_map("Ada"), &answer, "")?;
            same(&Some(&Value::Null), &answer.get("nickname"))
        })
        .await;
    cases
        .run("generic/user-without-class", async {
            let user = Value::map([("name", Value::from("Ada")), ("age", 36.into())]);
            let answer = generic.invoke("echoUser", &[USER], vec![user.clone()]).await?;
            same_fields(&user, &answer, "")?;
            same(&Some(&Value::from(USER)), &answer.get("class"))
        })
        .await;
    cases
        .run("generic/user-list", async {
            let users = [fixtures::user_map("one"), fixtures::user_map("two")];
            let answer = generic.invoke("echoUserList", &[LIST], vec![Value::list(users.clone())]).await?;
            same(&Some(2), &answer.as_list().map(<[_]>::len))?;
            for (at, user) in users.iter().enumerate() {
                same_fields(user, answer.element(at).unwrap_or(&Value::Null), &format!("{at}."))?;
            }
            Ok(String::new())
        })
        .await;
    let arguments = vec!["a".into(), 1.into(), 2_i64.into(), true.into()];
    let call = generic.invoke("join", &[STRING, "int", "long", "boolean"], arguments);
    cases.answers("generic/join", Value::from("a/1/2/true"), call).await;
}

async fn special(cases: &mut Cases, generic: &GenericService) {
    let call = generic.invoke("returnNull", &[], Vec::new());
    cases.answers("generic/return-null", Value::Null, call).await;
    cases.answers("generic/void", Value::Null, generic.invoke("ping", &[], Vec::new())).await;
    let call = generic.invoke("echoString", &[], vec!["named".into()]);
    cases.answers("generic/types-null", Value::from("named"), call).await;
    cases
        .run("generic/one-way", async {
            let token = Value::from(token("generic-token"));
            generic.invoke("record", &[STRING], vec![token.clone()]).await?;
            arrived(async || {
                let recorded = generic.invoke("recorded", &[], Vec::new()).await?;
                Ok(recorded.as_list().is_some_and(|texts| texts.contains(&token)))
            })
            .await
        })
        .await;
}

async fn contexts(cases: &mut Cases, generic: &GenericService) {
    cases
        .run("generic/attachments", async {
            let seen = ResponseAttachments::new();
            let options = CallOptions::new().attachment("demo.a", "1").capture(&seen);
            let answer = generic.with(options).invoke("attachments", &[], Vec::new()).await?;
            same(&Some(&Value::from("1")), &answer.get("demo.a"))?;
            let answered = seen.get();
            let answer = answered.get_str("demo.answer").unwrap_or_default();
            ensure!(answer.starts_with("from "), "response attachment demo.answer is {answer:?}");
            Ok(answer.to_owned())
        })
        .await;
}

async fn exceptions(cases: &mut Cases, generic: &GenericService) {
    cases
        .run("generic/exception-checked", async {
            let arguments = vec!["no luck".into(), 42.into()];
            let call = generic.invoke("throwChecked", &[STRING, "int"], arguments);
            names("dev.dubhe.interop.api.DemoException", "no luck", &failure(call).await?)
        })
        .await;
    cases
        .run("generic/exception-runtime", async {
            let arguments = vec!["own class".into(), (-7).into()];
            let call = generic.invoke("throwRuntime", &[STRING, "int"], arguments);
            names("dev.dubhe.interop.api.DemoRuntimeException", "own class", &failure(call).await?)
        })
        .await;
    cases
        .run("generic/no-such-method", async {
            let error = failure(generic.invoke("noSuchMethod", &[STRING], vec!["x".into()])).await?;
            let text = error.to_string();
            ensure!(text.contains("noSuchMethod"), "the message does not name the method: {text}");
            Ok(text)
        })
        .await;
    cases
        .run("generic/timeout", async {
            let error = failure(generic.invoke("sleep", &["int"], vec![1_500.into()])).await?;
            ensure!(error.is_timeout(), "expected a timeout, got {error:?}");
            Ok(String::new())
        })
        .await;
}

/// A failed generic call ends with a GenericException (of either package) that names class and message, or, from some releases,
/// with the original exception.
fn names(class: &str, message: &str, error: &dubhe::Error) -> Result<String> {
    let exception = error.exception().with_context(|| format!("expected an exception, got {error:?}"))?;
    if &*exception.class == class {
        same(&Some(message), &exception.message.as_deref())?;
        return Ok("original exception".to_owned());
    }
    ensure!(exception.class.ends_with(".GenericException"), "got {exception}");
    same(&Some(&Value::from(class)), &exception.field("exceptionClass"))?;
    same(&Some(&Value::from(message)), &exception.field("exceptionMessage"))?;
    Ok(exception.class.to_string())
}
