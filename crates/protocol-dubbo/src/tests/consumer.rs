//! Requests as they are sent, answers as they are read, failures as they are told.

use std::time::Duration;

use bytes::Bytes;
use dubhe_core::error::{Delivery, ErrorCode};
use dubhe_core::exchange::{ConnectionState, ExchangeError, ResponseFrame, status};
use dubhe_core::invocation::{Attachments, Invocation, Method};
use dubhe_core::protocol::Protocol;
use dubhe_core::response::Outcome;
use dubhe_core::serialize::{ObjectReader, ObjectWriter, Serialization, SerializeError};
use dubhe_core::value::Value;

use super::echo_service::{INTERFACE, TEXT, World, call, encode, say, url};
use super::loopback::Sent;
use super::tagged::TAGGED;

fn ok(write: &mut dyn FnMut(&mut dyn ObjectWriter) -> Result<(), SerializeError>) -> ResponseFrame {
    ResponseFrame { status: status::OK, serialization: 2, body: encode(write) }
}

fn null() -> ResponseFrame {
    ok(&mut |writer| writer.write_int(2))
}

fn error(status: u8, text: &'static str) -> ResponseFrame {
    ResponseFrame { status, ..ok(&mut |writer| writer.write_str(text)) }
}

fn head(reader: &mut dyn ObjectReader) -> Vec<String> {
    (0..5).map(|_| reader.read_str().unwrap().unwrap()).collect()
}

/// The attachments of a request with one argument.
fn attachments(sent: &Sent) -> Attachments {
    let mut reader = TAGGED.reader(sent.body.clone());
    head(&mut *reader);
    reader.read_value().unwrap();
    let attachments = reader.read_attachments().unwrap();
    assert_eq!(reader.remaining(), 0);
    attachments
}

fn texts(attachments: &Attachments) -> Vec<(String, String)> {
    attachments.iter().map(|(key, value)| (key.to_owned(), value.to_java_text())).collect()
}

fn pairs<const N: usize>(pairs: [(&str, &str); N]) -> Vec<(String, String)> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// What is sent for `call` at `dubbo://127.0.0.1:1/demo.Echo?PARAMETERS`.
async fn sent(parameters: &str, call: Invocation) -> Sent {
    let world = World::new();
    world.net.answer(|sent| Ok(ResponseFrame { serialization: sent.serialization, ..null() }));
    let invoker = world.protocol.refer(&url(1, parameters)).unwrap();
    invoker.invoke(call).await.unwrap();
    world.net.sent().pop().unwrap()
}

#[tokio::test]
async fn a_request_holds_version_interface_method_types_arguments_and_attachments_in_that_order() {
    let sent = sent("version=1.0.0&group=g1&application=shop&timeout=2000", say("hi")).await;
    assert!(sent.two_way);
    assert_eq!(sent.serialization, 2);
    let mut reader = TAGGED.reader(sent.body.clone());
    assert_eq!(head(&mut *reader), ["2.0.2", INTERFACE, "1.0.0", "say", TEXT]);
    assert_eq!(reader.read_value().unwrap(), Value::from("hi"));
    let expected = pairs([
        ("path", INTERFACE),
        ("remote.application", "shop"),
        ("interface", INTERFACE),
        ("version", "1.0.0"),
        ("timeout", "2000"),
        ("group", "g1"),
    ]);
    assert_eq!(texts(&attachments(&sent)), expected);
}

#[tokio::test]
async fn a_service_without_a_version_is_called_as_0_0_0() {
    let sent = sent("", say("hi")).await;
    assert_eq!(head(&mut *TAGGED.reader(sent.body.clone()))[2], "0.0.0");
    assert_eq!(attachments(&sent).get_str("version"), Some("0.0.0"));
    assert_eq!(attachments(&sent).get_str("timeout"), Some("1000"));
}

// C44
#[tokio::test]
async fn a_request_names_the_group_version_and_token_of_the_provider_it_goes_to() {
    let call = say("hi")
        .with_attachment("group", "g1,g2")
        .with_attachment("token", "stale")
        .with_attachment("mine", "x");
    let sent = sent("group=g2&version=2.0.0&token=secret", call).await;
    let attachments = attachments(&sent);
    let of = |key| attachments.get_str(key).unwrap_or("none").to_owned();
    assert_eq!([of("group"), of("version"), of("token"), of("mine")], ["g2", "2.0.0", "secret", "x"]);
    assert_eq!(attachments.iter().filter(|(key, _)| *key == "group").count(), 1);
}

// C44
#[tokio::test]
async fn what_one_attempt_adds_does_not_reach_the_next_provider() {
    let world = World::new();
    world.net.answer(|_| Ok(null()));
    let call = say("hi");
    for (parameters, token) in [("token=one", Some("one")), ("", None)] {
        let invoker = world.protocol.refer(&url(1, parameters)).unwrap();
        invoker.invoke(call.clone()).await.unwrap();
        let sent = world.net.sent().pop().unwrap();
        assert_eq!(attachments(&sent).get_str("token"), token);
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_call_is_the_callers_then_the_methods_then_the_services_and_ends_with_the_deadline() {
    let parameters = "timeout=3000&say.timeout=500";
    let with = |call: Invocation| async move {
        let sent = sent(parameters, call).await;
        let said = attachments(&sent).get_str("timeout").unwrap().parse::<u128>().unwrap();
        assert_eq!(said, sent.timeout.as_millis());
        said
    };
    assert_eq!(with(say("x")).await, 500);
    assert_eq!(with(call("other", "x")).await, 3_000);
    assert_eq!(with(say("x").with_attachment("timeout", "700")).await, 700);
    assert_eq!(with(say("x").with_attachment("timeout", 800)).await, 800);
    assert_eq!(with(say("x").with_attachment("timeout", "junk")).await, 500);
    let own = say("x").with_attachment("timeout", "700").with_timeout(Duration::from_millis(40));
    assert_eq!(with(own).await, 40);
    let in_200_ms = tokio::time::Instant::now().into_std() + Duration::from_millis(200);
    assert_eq!(with(say("x").with_deadline(in_200_ms)).await, 200);
    let soon = say("x").with_timeout(Duration::from_millis(40)).with_deadline(in_200_ms);
    assert_eq!(with(soon).await, 40);
}

#[tokio::test(start_paused = true)]
async fn a_call_without_time_left_is_not_sent() {
    let world = World::new();
    let invoker = world.protocol.refer(&url(1, "")).unwrap();
    let now = tokio::time::Instant::now().into_std();
    let error = invoker.invoke(say("x").with_deadline(now)).await.unwrap_err();
    assert_eq!((error.code(), error.delivery()), (ErrorCode::TimeoutTerminate, Delivery::NotSent));
    let text = "No time left for making the following call: demo.Echo.say, terminate directly.";
    assert_eq!(error.message(), text);
    assert!(world.net.sent().is_empty());
}

#[tokio::test]
async fn a_countdown_tells_the_provider_how_much_time_is_left() {
    let sent = sent("enable-timeout-countdown=true&timeout=900", say("x")).await;
    assert_eq!(attachments(&sent).get("_TO"), Some(&Value::Int(900)));
}

#[tokio::test]
async fn a_one_way_call_ends_when_it_is_handed_over() {
    let world = World::new();
    world.net.answer(|_| Ok(null()));
    let one_way = Invocation::new(
        Method::new("say", TEXT).one_way().into(),
        std::sync::Arc::new(vec![Value::from("x")]),
    );
    for (parameters, call) in [
        ("", one_way),
        ("say.return=false", say("x")),
        ("return=false", say("x")),
        ("", say("x").with_attachment("return", "false")),
    ] {
        let invoker = world.protocol.refer(&url(1, parameters)).unwrap();
        let response = invoker.invoke(call).await.unwrap();
        assert!(matches!(response.outcome, Outcome::Value(payload) if payload.is_null()));
        assert!(!world.net.sent().pop().unwrap().two_way, "{parameters}");
    }
    let two_way = world.protocol.refer(&url(1, "other.return=false")).unwrap();
    two_way.invoke(say("x")).await.unwrap();
    assert!(world.net.sent().pop().unwrap().two_way);
}

// C74
#[tokio::test]
async fn all_six_result_flags_are_read() {
    for flag in 0..6 {
        let world = World::new();
        world.net.answer(move |_| {
            Ok(ok(&mut |writer| {
                writer.write_int(flag)?;
                match flag % 3 {
                    0 => writer
                        .write_exception(&dubhe_core::error::Exception::new("demo.Failure", "no luck"))?,
                    1 => writer.write_str("value")?,
                    _ => {}
                }
                let attachments = std::iter::once(("dubbo", "2.0.2")).collect();
                if flag > 2 { writer.write_attachments(&attachments) } else { Ok(()) }
            }))
        });
        let response = world.protocol.refer(&url(1, "")).unwrap().invoke(say("x")).await.unwrap();
        assert_eq!(response.attachments.get_str("dubbo"), (flag > 2).then_some("2.0.2"), "{flag}");
        match (flag % 3, response.outcome) {
            (0, Outcome::Exception(exception)) => assert_eq!(exception.to_string(), "demo.Failure: no luck"),
            (1, Outcome::Value(payload)) => {
                assert_eq!(payload.take::<Value>().unwrap(), Value::from("value"))
            }
            (2, Outcome::Value(payload)) => assert!(payload.is_null()),
            (_, other) => panic!("{flag}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_no_network_failure_because_the_service_ran() {
    let bad: [(ResponseFrame, &str); 4] = [
        (
            ok(&mut |writer| writer.write_int(6)),
            "Unknown result flag, expect '0' '1' '2' '3' '4' '5', but received: 6",
        ),
        (ok(&mut |writer| writer.write_int(1)), "the body ends too early"),
        (
            ResponseFrame { serialization: 6, ..null() },
            "Unexpected serialization id:6 received from network, please check if the peer send the right id.",
        ),
        (ResponseFrame { body: Bytes::new(), ..null() }, "the body ends too early"),
    ];
    for (frame, cause) in bad {
        let world = World::new();
        world.net.answer(move |_| Ok(frame.clone()));
        let error = world.protocol.refer(&url(1, "")).unwrap().invoke(say("x")).await.unwrap_err();
        let text = error.message();
        assert!(
            text.starts_with("Failed to invoke remote method: say, provider: dubbo://127.0.0.1:1/"),
            "{text}"
        );
        assert!(text.ends_with(&format!(", cause: {cause}")), "{text}");
        assert_eq!(error.code(), ErrorCode::Serialization);
        assert_eq!(
            (error.delivery(), error.status(), error.is_retryable()),
            (Delivery::Executed, Some(90), false)
        );
    }
}

#[tokio::test]
async fn an_error_status_keeps_its_number_its_text_and_how_far_the_call_came() {
    let known = [
        (25, ErrorCode::Serialization, Delivery::Executed),
        (31, ErrorCode::Timeout, Delivery::Sent),
        (40, ErrorCode::Network, Delivery::NotSent),
        (50, ErrorCode::Network, Delivery::Executed),
        (70, ErrorCode::Network, Delivery::Sent),
        (80, ErrorCode::Network, Delivery::NotSent),
        (100, ErrorCode::Network, Delivery::NotSent),
        (0, ErrorCode::Network, Delivery::Sent),
        (255, ErrorCode::Network, Delivery::Sent),
    ];
    for (number, code, delivery) in known {
        let world = World::new();
        // Error answers may come in another serialization than the request's.
        world.net.answer(move |_| Ok(ResponseFrame { serialization: 6, ..error(number, "why not") }));
        let error = world.protocol.refer(&url(1, "")).unwrap().invoke(say("x")).await.unwrap_err();
        assert_eq!((error.status(), error.code(), error.delivery()), (Some(number), code, delivery));
        assert!(error.message().ends_with(", cause: why not"), "{error}");
        assert_eq!(error.provider(), Some("127.0.0.1:1"));
    }
    for body in [Bytes::new(), Bytes::from_static(b"N"), Bytes::from_static(b"\xff")] {
        let world = World::new();
        world.net.answer(move |_| Ok(ResponseFrame { body: body.clone(), ..error(70, "") }));
        let error = world.protocol.refer(&url(1, "")).unwrap().invoke(say("x")).await.unwrap_err();
        assert!(error.message().contains("status 70 with"), "{error}");
    }
}

#[tokio::test]
async fn a_failure_of_the_connection_says_whether_the_request_was_sent() {
    let timeout = |sent| ExchangeError::Timeout { text: "too slow".to_owned(), sent };
    let lost = || ExchangeError::Lost { endpoint: "e".to_owned(), reason: "r".to_owned() };
    let down = || ExchangeError::NotConnected { endpoint: "e".to_owned(), reason: "r".to_owned() };
    let large = |sent| ExchangeError::TooLarge { text: "Data length too large: 9".to_owned(), sent };
    type Make = Box<dyn Fn() -> ExchangeError + Send + Sync>;
    let known: [(Make, ErrorCode, Delivery, u8); 6] = [
        (Box::new(move || timeout(true)), ErrorCode::Timeout, Delivery::Sent, 31),
        (Box::new(move || timeout(false)), ErrorCode::Timeout, Delivery::NotSent, 30),
        (Box::new(lost), ErrorCode::Network, Delivery::Sent, 35),
        (Box::new(down), ErrorCode::Network, Delivery::NotSent, 35),
        (Box::new(move || large(true)), ErrorCode::Serialization, Delivery::Executed, 90),
        (Box::new(move || large(false)), ErrorCode::Serialization, Delivery::NotSent, 25),
    ];
    for (make, code, delivery, status) in known {
        let world = World::new();
        world.net.answer(move |_| Err(make()));
        let error =
            world.protocol.refer(&url(1, "token=secret")).unwrap().invoke(say("x")).await.unwrap_err();
        assert_eq!(
            (error.code(), error.delivery(), error.status()),
            (code, delivery, Some(status)),
            "{error}"
        );
        let begin = if code == ErrorCode::Timeout {
            "Invoke remote method timeout. method: say, provider: dubbo://127.0.0.1:1/"
        } else {
            "Failed to invoke remote method: say, provider: dubbo://127.0.0.1:1/"
        };
        assert!(error.message().starts_with(begin), "{error}");
        assert!(!error.message().contains("secret"), "{error}");
    }
}

#[tokio::test]
async fn arguments_that_cannot_be_written_are_told_before_anything_is_sent() {
    let world = World::new();
    let invoker = world.protocol.refer(&url(1, "")).unwrap();
    let call = Invocation::dynamic("say", TEXT, vec![Value::Double(1.5)]);
    let error = invoker.invoke(call).await.unwrap_err();
    assert_eq!((error.code(), error.delivery()), (ErrorCode::Serialization, Delivery::NotSent));
    assert!(world.net.sent().is_empty());
}

#[tokio::test]
async fn a_provider_is_available_while_its_connection_is_open_and_not_read_only() {
    let world = World::new();
    let invoker = world.protocol.refer(&url(1, "")).unwrap();
    let state = &world.net.clients()[0].state;
    for (next, available) in [
        (ConnectionState::Connecting, false),
        (ConnectionState::Connected, true),
        (ConnectionState::ReadOnly, false),
        (ConnectionState::Disconnected, false),
        (ConnectionState::Closed, false),
    ] {
        state.send_replace(next);
        assert_eq!(invoker.is_available(), available, "{next:?}");
    }
    assert!(world.protocol.refer(&url(2, "lazy=true")).unwrap().is_available());
}

#[tokio::test]
async fn a_url_names_the_serialization_and_an_unknown_one_is_refused() {
    for (parameters, id) in [
        ("serialization=other", 6),
        ("prefer.serialization=fastjson2,other,tagged", 6),
        ("prefer.serialization=fastjson2&serialization=tagged", 2),
        ("", 2),
    ] {
        assert_eq!(sent(parameters, say("x")).await.serialization, id, "{parameters}");
    }
    let error = World::new().protocol.refer(&url(1, "serialization=kryo")).unwrap_err();
    assert!(error.message().ends_with("unknown serialization `kryo`: known are tagged, other"), "{error}");
}
