//! Requests given to services, and what is answered when they are not.

use dubhe_core::error::ErrorCode;
use dubhe_core::exchange::ResponseFrame;
use dubhe_core::invocation::{ECHO, ECHO_DESCRIPTOR, GENERIC_DESCRIPTOR};
use dubhe_core::protocol::Protocol;
use dubhe_core::serialize::Serialization;
use dubhe_core::value::{List, Value};

use super::echo_service::{Body, World, say, url};
use super::tagged::TAGGED;

const PORT: u16 = 20_880;

async fn ask(world: &World, body: &Body) -> ResponseFrame {
    world.net.request(PORT, 2, body.bytes()).await
}

fn text(frame: &ResponseFrame) -> String {
    TAGGED.reader(frame.body.clone()).read_str().unwrap().unwrap()
}

/// Asks, and checks the status and the beginning of the text.
async fn refused(world: &World, body: &Body, status: u8, begin: &str) -> String {
    let frame = ask(world, body).await;
    assert_eq!(frame.status, status, "{body:?}");
    let text = text(&frame);
    assert!(text.starts_with(begin), "{text}\nexpected {begin}");
    text
}

#[tokio::test]
async fn a_call_goes_through_and_comes_back_with_attachments() {
    let world = World::new();
    let (exporter, service) = world.export(PORT, "version=1.0.0&group=g").await.unwrap();
    assert_eq!(exporter.url().port(), PORT);
    let invoker = world.protocol.refer(&url(PORT, "version=1.0.0&group=g&application=shop")).unwrap();
    let response = invoker.invoke(say("hi").with_attachment("trace", "7")).await.unwrap();
    let dubhe_core::response::Outcome::Value(payload) = response.outcome else { panic!() };
    assert_eq!(payload.take::<Value>().unwrap(), Value::from("hi"));
    assert_eq!(response.attachments.get_str("served-by"), Some("echo"));
    assert_eq!(response.attachments.get_str("dubbo"), Some("2.0.2"));
    let calls = service.calls.lock();
    let seen = calls[0].attachments();
    let of = |key| seen.get_str(key).unwrap_or("none");
    assert_eq!(
        [of("trace"), of("dubbo"), of("remote.application"), of("group")],
        ["7", "2.0.2", "shop", "g"]
    );
}

// C74
#[tokio::test]
async fn attachments_go_back_only_to_peers_that_read_them() {
    let world = World::new();
    world.export(PORT, "").await.unwrap();
    for (dubbo, with) in [
        (Some("2.0.2"), true),
        (Some("2.0.1"), false),
        (Some("2.7.0"), false),
        (Some("3.1.0"), false),
        (Some("2.0.10"), false),
        (Some(""), false),
        (Some("\"\""), false),
        (Some("client"), false),
        (None, false),
    ] {
        for (method, flag) in [("say", 1), ("fail", 0), ("ping", 2)] {
            let body = match flag {
                2 => Body { dubbo, method, descriptor: "", arguments: vec![], ..Body::default() },
                _ => Body { dubbo, method, ..Body::default() },
            };
            let frame = ask(&world, &body).await;
            assert_eq!(frame.status, 20);
            let flag = if with { flag + 3 } else { flag };
            assert_eq!(TAGGED.reader(frame.body).read_int().unwrap(), flag, "{body:?}");
        }
    }
}

#[tokio::test]
async fn attachments_win_over_the_fields_of_the_body_in_finding_the_service() {
    let world = World::new();
    let (_one, first) = world.export(PORT, "version=1.0.0").await.unwrap();
    let (_two, second) = world.export(PORT, "version=2.0.0").await.unwrap();
    let body = Body { version: "1.0.0", attachments: vec![("version", "2.0.0".into())], ..Body::default() };
    assert_eq!(ask(&world, &body).await.status, 20);
    assert_eq!((first.calls.lock().len(), second.calls.lock().len()), (0, 1));
}

#[tokio::test]
async fn versions_that_say_nothing_are_no_version() {
    let world = World::new();
    world.export(PORT, "").await.unwrap();
    for version in ["0.0.0", "", "*"] {
        let body = Body { version, attachments: vec![("version", version.into())], ..Body::default() };
        assert_eq!(ask(&world, &body).await.status, 20, "{version}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_refused_as_the_reference_does() {
    let world = World::new();
    world.export(PORT, "group=g1&version=1.0.0").await.unwrap();
    let known = Body { version: "1.0.0", attachments: vec![("group", "g1".into())], ..Body::default() };
    assert_eq!(ask(&world, &known).await.status, 20);

    let path = Body { path: "demo.Nobody", ..known.clone() };
    let begin = "Fail to decode request due to: java.io.IOException: Service demo.Nobody with version 1.0.0 not found, \
                 invocation rejected.";
    refused(&world, &path, 40, begin).await;

    let version = Body { version: "9.9.9", ..known.clone() };
    let begin =
        "Fail to decode request due to: java.io.IOException: Service demo.Echo with version 9.9.9 not found";
    refused(&world, &version, 40, begin).await;

    let begin = "org.apache.dubbo.remoting.RemotingException: Not found exported service: g2/demo.Echo:1.0.0:20880, \
                 may be version or group mismatch , channel: consumer: 127.0.0.1:50000 --> provider: 127.0.0.1:20880";
    let group = Body { attachments: vec![("group", "g2".into())], ..known.clone() };
    let text = refused(&world, &group, 70, begin).await;
    assert!(!text.contains("g1"), "only the service asked for is named: {text}");

    let method = Body { method: "shout", ..known.clone() };
    let begin = "Fail to decode request due to: java.lang.IllegalArgumentException: Service not found:demo.Echo, shout";
    refused(&world, &method, 40, begin).await;
    let descriptor = Body { descriptor: "I", arguments: vec![1.into()], ..known.clone() };
    let begin =
        "Fail to decode request due to: java.lang.IllegalArgumentException: Service not found:demo.Echo, say";
    refused(&world, &descriptor, 40, begin).await;

    let no_argument = Body { method: "shout", descriptor: "", arguments: vec![], ..known.clone() };
    let begin =
        "org.apache.dubbo.rpc.RpcException: Failed to invoke remote proxy method shout to dubbo://127.0.0.1:";
    let text = refused(&world, &no_argument, 70, begin).await;
    assert!(text.ends_with(", cause: Not found method \"shout\" in class demo.Echo."), "{text}");
}

#[tokio::test]
async fn a_body_that_cannot_be_decoded_is_refused_and_harms_nobody() {
    let world = World::new();
    world.export(PORT, "").await.unwrap();
    let whole = Body::default().bytes();
    for end in 0..whole.len() {
        let frame = world.net.request(PORT, 2, whole.slice(..end)).await;
        assert_eq!(frame.status, 40, "cut at {end}");
        assert!(text(&frame).starts_with("Fail to decode request due to: java.io.IOException: "));
    }
    let wrong_argument = Body { arguments: vec![1.into()], ..Body::default() };
    refused(&world, &wrong_argument, 40, "Fail to decode request due to: ").await;
    let mut trailing = whole.to_vec();
    trailing.extend_from_slice(b"more");
    assert_eq!(world.net.request(PORT, 2, trailing.into()).await.status, 20);
}

#[tokio::test]
async fn a_dubbox_peer_is_told_that_its_form_is_not_supported() {
    let world = World::new();
    world.export(PORT, "").await.unwrap();
    let body = Body { dubbo: Some("2.8.4"), arguments: vec![1.into(), "hi".into()], ..Body::default() };
    let text = refused(&world, &body, 40, "Fail to decode request due to: ").await;
    assert!(text.ends_with("(dubbox 2.8.x peers write requests in another form: not supported)"), "{text}");
}

#[tokio::test]
async fn serializations_that_are_unknown_or_not_exported_are_refused_in_one_that_is_known() {
    let world = World::new();
    world.export(PORT, "").await.unwrap();
    let begin = "Fail to decode request due to: java.io.IOException: ";
    for (id, cause) in [
        (21, "Unrecognized serialize type from consumer: 21"),
        (
            6,
            "Unexpected serialization id:6 received from network, please check if the peer send the right id.",
        ),
    ] {
        let frame = world.net.request(PORT, id, Body::default().bytes()).await;
        assert_eq!((frame.status, text(&frame)), (40, format!("{begin}{cause}")));
    }
    let world = World::new();
    world.export(PORT, "serialization=other").await.unwrap();
    for id in [2, 6] {
        let frame = world.net.request(PORT, id, Body::default().bytes()).await;
        assert_eq!((frame.status, frame.serialization), (20, id));
    }
}

#[tokio::test]
async fn echo_and_generic_calls_are_decoded_to_dynamic_values() {
    let world = World::new();
    let (_exporter, service) = world.export(PORT, "").await.unwrap();
    let echo =
        Body { method: ECHO, descriptor: ECHO_DESCRIPTOR, arguments: vec![42.into()], ..Body::default() };
    let mut reader = TAGGED.reader(ask(&world, &echo).await.body);
    assert_eq!((reader.read_int().unwrap(), reader.read_value().unwrap()), (4, Value::Int(42)));
    let list = |items: Vec<Value>| Value::List(List { class: None, items }.into());
    for method in ["$invoke", "$invokeAsync"] {
        let arguments = vec!["say".into(), list(vec!["java.lang.String".into()]), list(vec!["hi".into()])];
        let generic = Body { method, descriptor: GENERIC_DESCRIPTOR, arguments, ..Body::default() };
        assert_eq!(ask(&world, &generic).await.status, 20);
        let call = service.calls.lock().pop().unwrap();
        assert!(call.is_generic());
        assert_eq!((call.method_name(), call.argument_text(0).as_deref()), ("say", Some("hi")));
    }
}

#[tokio::test]
async fn exceptions_errors_and_unwritable_results_are_three_different_answers() {
    let world = World::new();
    world.export(PORT, "").await.unwrap();
    let frame = ask(&world, &Body { method: "fail", ..Body::default() }).await;
    assert_eq!(frame.status, 20);
    let mut reader = TAGGED.reader(frame.body);
    assert_eq!(reader.read_int().unwrap(), 3);
    assert_eq!(reader.read_exception().unwrap().to_string(), "demo.Failure: no luck");
    let begin = "org.apache.dubbo.rpc.RpcException: too much";
    refused(&world, &Body { method: "refuse", ..Body::default() }, 70, begin).await;
    refused(&world, &Body { method: "unwritable", ..Body::default() }, 50, "Failed to send response: ").await;
}

#[tokio::test]
async fn a_wrong_token_is_refused_and_not_repeated() {
    let world = World::new();
    let (_exporter, service) = world.export(PORT, "token=secret").await.unwrap();
    for token in ["", "secreT", "secre", "secret2"] {
        let body = Body { attachments: vec![("token", token.into())], ..Body::default() };
        let begin = "org.apache.dubbo.rpc.RpcException: Invalid token! Forbid invoke remote service interface demo.Echo \
                     method say() from consumer 127.0.0.1 to provider 127.0.0.1";
        let text = refused(&world, &body, 70, begin).await;
        assert_eq!(text, begin);
    }
    refused(&world, &Body::default(), 70, "org.apache.dubbo.rpc.RpcException: Invalid token!").await;
    assert!(service.calls.lock().is_empty());
    let right = Body { attachments: vec![("token", "secret".into())], ..Body::default() };
    assert_eq!(ask(&world, &right).await.status, 20);
}

#[tokio::test]
async fn a_method_serves_as_many_calls_at_once_as_executes_says() {
    let world = World::new();
    let (_exporter, service) = world.export(PORT, "wait.executes=1").await.unwrap();
    let waiting = Body { method: "wait", ..Body::default() };
    let begin = "org.apache.dubbo.rpc.RpcException: Failed to invoke method wait in provider dubbo://127.0.0.1:20880/";
    let refused_meanwhile = async {
        while service.calls.lock().is_empty() {
            tokio::task::yield_now().await;
        }
        let text = refused(&world, &waiting, 70, begin).await;
        let end = "cause: The service using threads greater than <dubbo:service executes=\"1\" /> limited.";
        assert!(text.ends_with(end), "{text}");
        assert_eq!(ask(&world, &Body::default()).await.status, 20);
        service.go_on.notify_one();
    };
    let (first, ()) = tokio::join!(ask(&world, &waiting), refused_meanwhile);
    assert_eq!(first.status, 20);
    service.go_on.notify_one();
    assert_eq!(ask(&world, &waiting).await.status, 20);
}

#[tokio::test(start_paused = true)]
async fn the_time_that_a_consumer_has_left_becomes_the_deadline_of_nested_calls() {
    let world = World::new();
    let (_exporter, service) = world.export(PORT, "").await.unwrap();
    for left in [Value::Int(250), Value::from("250")] {
        ask(&world, &Body { attachments: vec![("_TO", left)], ..Body::default() }).await;
        let call = service.calls.lock().pop().unwrap();
        let left = call.deadline().unwrap() - tokio::time::Instant::now().into_std();
        assert_eq!(left.as_millis(), 250);
    }
    ask(&world, &Body::default()).await;
    assert_eq!(service.calls.lock().pop().unwrap().deadline(), None);
}

#[tokio::test]
async fn services_share_the_server_of_their_address_which_closes_with_the_last_one() {
    let world = World::new();
    let (one, _) = world.export(PORT, "group=a").await.unwrap();
    let (two, _) = world.export(PORT, "group=b").await.unwrap();
    let error = world.export(PORT, "group=a").await.map(|_| ()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Unknown);
    assert!(error.message().contains("cannot export a/demo.Echo: it is exported on 127.0.0.1:20880 already"));
    one.unexport().await;
    one.unexport().await;
    let gone = Body { attachments: vec![("group", "a".into())], ..Body::default() };
    refused(&world, &gone, 70, "org.apache.dubbo.remoting.RemotingException: Not found exported service: a/")
        .await;
    let there = Body { attachments: vec![("group", "b".into())], ..Body::default() };
    assert_eq!(ask(&world, &there).await.status, 20, "the other group is not lost with the first");
    two.unexport().await;
    assert!(!world.net.listens(PORT));
    world.export(PORT, "group=a").await.unwrap();
}

#[tokio::test]
async fn port_zero_is_replaced_by_a_free_port_of_its_own() {
    let world = World::new();
    let (one, _) = world.export(0, "").await.unwrap();
    let (two, _) = world.export(0, "").await.unwrap();
    assert_ne!(one.url().port(), 0);
    assert_ne!(one.url().port(), two.url().port());
}

// C93
#[tokio::test]
async fn a_closed_protocol_refuses_with_an_error_and_has_closed_everything() {
    let world = World::new();
    world.export(PORT, "").await.unwrap();
    let invoker = world.protocol.refer(&url(PORT, "")).unwrap();
    world.protocol.drain(std::time::Duration::from_secs(1)).await;
    world.protocol.close().await;
    world.protocol.close().await;
    assert!(!world.net.listens(PORT));
    assert_eq!(world.net.open(), 0);
    let error = invoker.invoke(say("x")).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Network);
    assert!(world.protocol.refer(&url(PORT, "")).is_err());
    assert!(world.export(PORT, "").await.is_err());
}
