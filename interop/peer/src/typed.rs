//! The cases that call through the interface.

use std::collections::{BTreeMap, HashMap};
use std::f64::consts::PI;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use dubhe::java::{BigDecimal, BigInteger, IntArray, JavaBytes, LocalDateTime, LocalTime};
use dubhe::value::from_value;
use dubhe::{CallOptions, ResponseAttachments, Value};
use futures::future::try_join_all;

use crate::api::{Color, Echo, EchoClient, Greet, GreetClient, NODE, User};
use crate::cases::{Cases, failure, same, same_value, thrown};
use crate::consumer::SLEEP_TIMEOUT;
use crate::fixtures::{self, BEYOND_BMP, DATE, LEAP_DAY, text};

/// How many of the 500 concurrent calls are under way at once: fewer than a Java provider has threads.
const AT_ONCE: usize = 100;

pub(crate) async fn run(cases: &mut Cases, echo: &EchoClient) {
    strings(cases, echo).await;
    numbers(cases, echo).await;
    arrays(cases, echo).await;
    times(cases, echo).await;
    collections(cases, echo).await;
    beans(cases, echo).await;
    special(cases, echo).await;
    exceptions(cases, echo).await;
    contexts(cases, echo).await;
    load(cases, echo).await;
}

pub(crate) async fn greet(cases: &mut Cases, greet: &GreetClient) {
    cases.answers("typed/group-version", "hello, Ada".to_owned(), greet.greet("Ada".to_owned())).await;
}

pub(crate) async fn wrong_group(cases: &mut Cases, nobody: &GreetClient) {
    cases
        .run("typed/wrong-group", async {
            let error = failure(nobody.greet("Ada".to_owned())).await?;
            ensure!(!error.is_timeout(), "timed out instead of a refusal: {error}");
            let text = error.to_string();
            ensure!(text.contains("Not found exported service"), "not refused by the provider: {text}");
            Ok("refused by the provider".to_owned())
        })
        .await;
}

async fn strings(cases: &mut Cases, echo: &EchoClient) {
    cases.answers("typed/string", text("hello"), echo.echo_string(text("hello"))).await;
    cases.answers("typed/string-empty", text(""), echo.echo_string(text(""))).await;
    cases.answers("typed/string-null", None, echo.echo_string(None)).await;
    cases.answers("typed/string-beyond-bmp", text(BEYOND_BMP), echo.echo_string(text(BEYOND_BMP))).await;
    let long = Some(fixtures::long_text());
    cases.answers("typed/string-long", long.clone(), echo.echo_string(long)).await;
}

async fn numbers(cases: &mut Cases, echo: &EchoClient) {
    cases
        .run("typed/boolean", async {
            same(&true, &echo.echo_boolean(true).await?)?;
            same(&false, &echo.echo_boolean(false).await?)
        })
        .await;
    for value in [0, 1, -1, i8::MIN, i8::MAX] {
        cases.answers(&format!("typed/byte/{value}"), value, echo.echo_byte(value)).await;
    }
    for value in [0, -1, i16::MIN, i16::MAX] {
        cases.answers(&format!("typed/short/{value}"), value, echo.echo_short(value)).await;
    }
    for value in [0, 47, 48, -2049, 262_144, i32::MIN, i32::MAX] {
        cases.answers(&format!("typed/int/{value}"), value, echo.echo_int(value)).await;
    }
    for value in [0, 15, 16, -2049, 1 << 31, i64::MIN, i64::MAX] {
        cases.answers(&format!("typed/long/{value}"), value, echo.echo_long(value)).await;
    }
    // Compared by their bits, for NaN; names as Java prints the values.
    #[expect(clippy::approx_constant, reason = "a float with many digits, as in the Java consumer")]
    let floats = [
        ("0.0", 0.0),
        ("1.0", 1.0),
        ("-0.5", -0.5),
        ("3.14159", 3.14159),
        ("3.4028235E38", f32::MAX),
        ("NaN", f32::NAN),
    ];
    for (name, value) in floats {
        let call = async { Ok(echo.echo_float(value).await?.to_bits()) };
        cases.answers(&format!("typed/float/{name}"), value.to_bits(), call).await;
    }
    let doubles = [
        ("0.0", 0.0),
        ("1.0", 1.0),
        ("127.0", 127.0),
        ("0.001", 0.001),
        ("12.25", 12.25),
        ("-3.141592653589793", -PI),
        ("1.7976931348623157E308", f64::MAX),
        ("-Infinity", f64::NEG_INFINITY),
    ];
    for (name, value) in doubles {
        let call = async { Ok(echo.echo_double(value).await?.to_bits()) };
        cases.answers(&format!("typed/double/{name}"), value.to_bits(), call).await;
    }
    cases
        .run("typed/boxed", async {
            same(&Some(true), &echo.echo_boxed_boolean(Some(true)).await?)?;
            same(&Some(-7), &echo.echo_boxed_byte(Some(-7)).await?)?;
            same(&Some(300), &echo.echo_boxed_short(Some(300)).await?)?;
            same(&Some(70_000), &echo.echo_boxed_int(Some(70_000)).await?)?;
            same(&Some(7), &echo.echo_boxed_long(Some(7)).await?)?;
            same(&Some(1.5), &echo.echo_boxed_float(Some(1.5)).await?)?;
            same(&Some(-2.25), &echo.echo_boxed_double(Some(-2.25)).await?)
        })
        .await;
    cases
        .run("typed/boxed-null", async {
            same(&None, &echo.echo_boxed_boolean(None).await?)?;
            same(&None, &echo.echo_boxed_byte(None).await?)?;
            same(&None, &echo.echo_boxed_short(None).await?)?;
            same(&None, &echo.echo_boxed_int(None).await?)?;
            same(&None, &echo.echo_boxed_long(None).await?)?;
            same(&None, &echo.echo_boxed_float(None).await?)?;
            same(&None, &echo.echo_boxed_double(None).await?)
        })
        .await;
    let decimal = Some(BigDecimal("-12345678901234567890.0123456789".to_owned()));
    cases.answers("typed/big-decimal", decimal.clone(), echo.echo_big_decimal(decimal)).await;
    for value in ["0", "-1", "123456789012345678901234567890", "-340282366920938463463374607431768211456"] {
        let integer = Some(BigInteger(value.to_owned()));
        let call = echo.echo_big_integer(integer.clone());
        cases.answers(&format!("typed/big-integer/{value}"), integer, call).await;
    }
}

async fn arrays(cases: &mut Cases, echo: &EchoClient) {
    let sizes = [("typed/bytes", 256), ("typed/bytes-empty", 0), ("typed/bytes-large", 300_000)];
    for (name, size) in sizes {
        let bytes = Some(fixtures::pattern(size));
        cases.answers(name, bytes.clone(), echo.echo_bytes(bytes)).await;
    }
    cases.answers("typed/bytes-null", None, echo.echo_bytes(None)).await;
    let ints = IntArray::from(vec![1, -1, 100_000, i32::MIN]);
    cases.answers("typed/int-array", ints.clone(), echo.echo_int_array(ints)).await;
    let strings = vec![text("a"), None, text(BEYOND_BMP)];
    cases.answers("typed/string-array", strings.clone().into(), echo.echo_string_array(strings.into())).await;
}

async fn times(cases: &mut Cases, echo: &EchoClient) {
    cases.answers("typed/date", Some(DATE), echo.echo_date(Some(DATE))).await;
    cases.answers("typed/date-null", None, echo.echo_date(None)).await;
    cases.answers("typed/local-date", Some(LEAP_DAY), echo.echo_local_date(Some(LEAP_DAY))).await;
    let time = LocalTime { hour: 23, minute: 59, second: 58, nano: 123_456_789 };
    let time = Some(LocalDateTime { date: LEAP_DAY, time });
    cases.answers("typed/local-date-time", time, echo.echo_local_date_time(time)).await;
}

async fn collections(cases: &mut Cases, echo: &EchoClient) {
    let strings = Some(vec![text("a"), text(""), None, text(BEYOND_BMP)]);
    cases.answers("typed/string-list", strings.clone(), echo.echo_string_list(strings)).await;
    cases.answers("typed/list-empty", Some(Vec::new()), echo.echo_string_list(Some(Vec::new()))).await;
    cases.answers("typed/list-null", None, echo.echo_string_list(None)).await;
    let longs = Some(vec![Some(1), Some(-1), Some(i64::MAX), None]);
    cases.answers("typed/long-list", longs.clone(), echo.echo_long_list(longs)).await;
    // In Java another class than the list before; here the same.
    let longs = Some(vec![Some(1), Some(2)]);
    cases.answers("typed/long-list-as-list", longs.clone(), echo.echo_long_list(longs)).await;
    let set = Some(["x", "y", "z"].map(str::to_owned).into_iter().collect());
    cases
        .answers::<Option<dubhe::java::Set<String>>>(
            "typed/string-set",
            set.clone(),
            echo.echo_string_set(set),
        )
        .await;
    cases
        .run("typed/object-map", async {
            let mut expected = fixtures::object_map();
            let answer = echo.echo_object_map(Some(expected.clone())).await?;
            let mut answer = answer.context("the answer is null")?;
            // Field by field: an object's fields have an order, which is the sender's.
            expected.remove("user");
            let user = answer.remove("user").context("no user in the answer")?;
            same(&Some("dev.dubhe.interop.api.User"), &user.class())?;
            same(&fixtures::user("inner"), &from_value::<User>(user)?)?;
            same_value(&Value::map(expected), &Value::map(answer))
        })
        .await;
    let empty = Some(HashMap::new());
    cases.answers("typed/map-empty", empty.clone(), echo.echo_object_map(empty)).await;
    cases.answers("typed/map-null", None, echo.echo_object_map(None)).await;
    let longs = Some(BTreeMap::from([("one".to_owned(), 1), ("large".to_owned(), 1 << 40)]));
    cases.answers("typed/long-map", longs.clone(), echo.echo_long_map(longs)).await;
}

async fn beans(cases: &mut Cases, echo: &EchoClient) {
    cases.answers("typed/enum", Some(Color::Blue), echo.echo_color(Some(Color::Blue))).await;
    cases.answers("typed/enum-null", None, echo.echo_color(None)).await;
    let ada = Some(fixtures::user("Ada"));
    cases.answers("typed/user", ada.clone(), echo.echo_user(ada)).await;
    cases.answers("typed/user-unset", Some(User::default()), echo.echo_user(Some(User::default()))).await;
    cases.answers("typed/user-null", None, echo.echo_user(None)).await;
    let users = Some(vec![Some(fixtures::user("one")), None, Some(fixtures::user("two"))]);
    cases.answers("typed/user-list", users.clone(), echo.echo_user_list(users)).await;
    let twice = Some(vec![Some(fixtures::user("shared")), Some(fixtures::user("shared"))]);
    cases.answers("typed/user-list-shared", twice.clone(), echo.echo_user_list(twice)).await;
    cases
        .run("typed/node-self-cycle", async {
            let node = |name: &str, next, children: Vec<Value>| {
                Value::object(NODE, [("name", name.into()), ("next", next), ("children", children.into())])
            };
            // The node is the first compound value of the whole, so `Ref(0)` is the node itself.
            let leaf = node("leaf", Value::Null, Vec::new());
            let answer = echo.echo_node(node("loop", Value::Ref(0), vec![Value::Ref(0), leaf])).await?;
            same(&Some("loop"), &answer.field("name").and_then(Value::as_str))?;
            same(&Some(&Value::Ref(0)), &answer.field("next"))?;
            let children = answer.field("children").and_then(Value::as_list).context("no children")?;
            same(&2, &children.len())?;
            same(&Value::Ref(0), &children[0])?;
            same(&Some("leaf"), &children[1].field("name").and_then(Value::as_str))
        })
        .await;
    let joined = echo.join(text("a"), 1, 9_000_000_000, true);
    cases.answers("typed/join", "a/1/9000000000/true".to_owned(), joined).await;
}

async fn special(cases: &mut Cases, echo: &EchoClient) {
    cases.answers("typed/return-null", None, echo.return_null()).await;
    cases.answers("typed/void", (), echo.ping()).await;
    let probe = Value::from("are you there");
    cases.answers("typed/$echo", probe.clone(), echo.client().echo(probe)).await;
    cases
        .run("typed/who", async {
            let who = echo.who().await?;
            ensure!(who.contains('#'), "expected NAME#PID, got {who}");
            Ok(who)
        })
        .await;
    cases
        .run("typed/one-way", async {
            let token = token("token");
            echo.record(Some(token.clone())).await?;
            arrived(async || Ok(echo.recorded().await?.contains(&Some(token.clone())))).await
        })
        .await;
    cases
        .run("typed/async", async {
            let echo = echo.clone();
            let call = tokio::spawn(async move { echo.join(text("b"), 2, 3, false).await });
            same("b/2/3/false", &*tokio::time::timeout(Duration::from_secs(3), call).await???)
        })
        .await;
}

async fn exceptions(cases: &mut Cases, echo: &EchoClient) {
    cases
        .run("typed/exception-checked", async {
            let call = echo.throw_checked("no luck".to_owned(), 42);
            let exception = thrown("dev.dubhe.interop.api.DemoException", call).await?;
            same(&Some("no luck"), &exception.message.as_deref())?;
            same(&Some(&Value::Int(42)), &exception.field("code"))?;
            same(&Some("asked for"), &exception.field("reason").and_then(Value::as_str))
        })
        .await;
    cases
        .run("typed/exception-illegal-argument", async {
            let message = format!("not this {BEYOND_BMP}");
            let call = echo.throw_illegal_argument(message.clone());
            let exception = thrown("java.lang.IllegalArgumentException", call).await?;
            same(&Some(&*message), &exception.message.as_deref())
        })
        .await;
    cases
        .run("typed/exception-runtime", async {
            let call = echo.throw_runtime("own class".to_owned(), -7);
            let exception = thrown("dev.dubhe.interop.api.DemoRuntimeException", call).await?;
            same(&Some("own class"), &exception.message.as_deref())?;
            same(&Some(&Value::Int(-7)), &exception.field("code"))
        })
        .await;
    cases
        .run("typed/exception-undeclared", async {
            let error = failure(echo.throw_undeclared("never announced".to_owned())).await?;
            match error.exception() {
                Some(exception) => {
                    let text = exception.to_string();
                    ensure!(text.contains("never announced"), "the message got lost: {text}");
                    Ok(exception.class.to_string())
                }
                // Dubbo 3.3 cannot write a class that no signature reaches, and says so instead.
                None if error.to_string().contains("UndeclaredException") => {
                    Ok(format!("the class is not on the provider's trusted list: {error}"))
                }
                None => bail!("the exception got lost: {error:?}"),
            }
        })
        .await;
    cases
        .run("typed/timeout", async {
            let start = Instant::now();
            let error = failure(echo.sleep(1_500)).await?;
            let millis = start.elapsed().as_millis();
            ensure!(error.is_timeout(), "expected a timeout, got {error:?}");
            ensure!((u128::from(SLEEP_TIMEOUT) - 20..1_400).contains(&millis), "after {millis} ms");
            Ok(format!("after {millis} ms"))
        })
        .await;
    cases.answers("typed/after-timeout", 50, echo.sleep(50)).await;
}

async fn contexts(cases: &mut Cases, echo: &EchoClient) {
    cases
        .run("typed/attachments", async {
            let seen = ResponseAttachments::new();
            let options = CallOptions::new()
                .attachment("demo.a", "1")
                .attachment("demo.text", BEYOND_BMP)
                .capture(&seen);
            let expected = [("demo.a", "1"), ("demo.text", BEYOND_BMP)];
            let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
            same(&BTreeMap::from(expected), &echo.with(options).attachments().await?)?;
            let answered = seen.get();
            let answer = answered.get_str("demo.answer").unwrap_or_default();
            ensure!(answer.starts_with("from "), "response attachment demo.answer is {answer:?}");
            same(&Some("2"), &answered.get_str("demo.count"))?;
            Ok(answer.to_owned())
        })
        .await;
    cases.answers("typed/attachments-only-once", BTreeMap::new(), echo.attachments()).await;
}

async fn load(cases: &mut Cases, echo: &EchoClient) {
    let expected: JavaBytes = fixtures::pattern(1_000_000);
    cases.answers("typed/answer-1mb", expected, echo.big(1_000_000)).await;
    cases
        .run("typed/concurrent", async {
            let callers = (0..AT_ONCE).map(async |first| {
                for number in (first..500).step_by(AT_ONCE) {
                    let sent = Some(format!("call {number}"));
                    same(&sent, &echo.echo_string(sent.clone()).await?)?;
                }
                Ok::<_, anyhow::Error>(())
            });
            try_join_all(callers).await?;
            Ok(String::new())
        })
        .await;
}

/// A text that no other run sends.
pub(crate) fn token(kind: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    format!("{kind}-{now}")
}

/// Looks until what a one-way call sent is there.
pub(crate) async fn arrived(look: impl AsyncFn() -> Result<bool>) -> Result<String> {
    for looks in 0..100 {
        if look().await? {
            return Ok(format!("seen after {looks} looks"));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    bail!("the one-way call did not arrive")
}
