//! The dubbo protocol against frames that Java's consumer and provider (Dubbo 3.1.11) exchanged: our consumer must send
//! what Java's sent and understand what Java's provider answered; our provider must answer what Java's answered.
//!
//! Run: all frames of `all`, `heartbeat`, `pool`, `big`, `clientpayload`, `groupversion`, `executes`, `token` and those
//! of `raw` that are not listed in [`DIFFERENT`], with the reasons there.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use dubhe_common::Url;
use dubhe_core::BoxFuture;
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::invocation::{Arguments, Attachments, Invocation, Method};
use dubhe_core::invoker::Invoker;
use dubhe_core::protocol::{Exported, Exporter, Protocol};
use dubhe_core::response::{Outcome, Payload, Response};
use dubhe_core::serialize::{ObjectReader, Serialization, SerializeError};
use dubhe_core::service::{MethodDefinition, ReadArguments, ServiceDefinition};
use dubhe_core::value::Value;
use dubhe_exchange::HeaderExchanger;
use dubhe_protocol_dubbo::DubboProtocol;
use dubhe_serialize_hessian2::Hessian2;
use dubhe_transport::TcpTransporter;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const SERVICE: &str = "org.apache.dubbo.demo.DemoService";
const HEADER: usize = 16;

/// Labels of `raw` that we answer otherwise, each with the reason.
const DIFFERENT: [(&str, &str); 6] = [
    ("telnet text: status", "no telnet: text closes the connection"),
    ("telnet text: ls", "no telnet: text closes the connection"),
    (
        "junk before magic then a good request",
        "junk closes the connection instead of being searched for a magic",
    ),
    (
        "payload length negative (0x80000000)",
        "closes the connection (the reference stops reading it for good)",
    ),
    ("payload length over 8 MiB, only header sent", "answered with status 40 at once, the body is skipped"),
    ("heartbeat two-way, empty body", "an empty body is a heartbeat too: dubbo-go may send it"),
];

// ---- The recorded frames.

#[derive(Clone, Debug)]
struct Frame {
    section: String,
    name: String,
    bytes: Vec<u8>,
    request: bool,
    from_consumer: bool,
}

impl Frame {
    fn id(&self) -> &[u8] {
        &self.bytes[4..12]
    }

    fn status(&self) -> u8 {
        self.bytes[3]
    }

    fn is_event(&self) -> bool {
        self.bytes[2] & 0x20 != 0
    }

    fn is_two_way(&self) -> bool {
        self.bytes[2] & 0x40 != 0
    }

    fn body(&self) -> Bytes {
        Bytes::copy_from_slice(&self.bytes[HEADER..])
    }

    fn label(&self) -> String {
        format!("{}: {}", self.section, self.name)
    }
}

/// The whole frames of a section, in order.
fn section(name: &str) -> Vec<Frame> {
    let all: serde_json::Value =
        serde_json::from_str(include_str!("../../exchange/tests/vectors/frames.json")).unwrap();
    let frames = all[name].as_array().unwrap().iter().filter_map(|frame| {
        let text = |key: &str| frame[key].as_str().map(str::to_owned);
        Some(Frame {
            section: name.to_owned(),
            name: text("step").or_else(|| text("label")).unwrap_or_default(),
            bytes: hex::decode(frame["hex"].as_str()?).unwrap(),
            request: frame["header"]["kind"] == "request",
            from_consumer: frame["dir"] == "c2p",
        })
    });
    let frames: Vec<_> = frames.filter(|frame| frame.bytes.starts_with(&[0xda, 0xbb])).collect();
    assert!(!frames.is_empty());
    frames
}

/// Calls of a section with their answers; one-way calls have none.
fn calls(name: &str) -> Vec<(Frame, Option<Frame>)> {
    let frames = section(name);
    let requests = frames.iter().filter(|frame| frame.from_consumer && frame.request && !frame.is_event());
    let answer =
        |request: &Frame| frames.iter().find(|one| !one.request && one.id() == request.id()).cloned();
    requests.map(|request| (request.clone(), answer(request))).collect()
}

/// A request's body, taken apart.
#[derive(Clone, Debug)]
struct Call {
    head: Vec<String>,
    arguments: Vec<Value>,
    attachments: Attachments,
    /// Bytes before the attachments.
    before_attachments: usize,
}

fn take_apart(body: &Bytes) -> Call {
    let mut reader = Hessian2::new().reader(body.clone());
    let head: Vec<_> = (0..5).map(|_| reader.read_str().unwrap().unwrap_or_default()).collect();
    let arguments = (0..parameters(&head[4])).map(|_| reader.read_value().unwrap()).collect();
    let before_attachments = body.len() - reader.remaining();
    let attachments = reader.read_attachments().unwrap();
    Call { head, arguments, attachments, before_attachments }
}

/// How many parameters a descriptor names.
fn parameters(descriptor: &str) -> usize {
    let mut count = 0;
    let mut rest = descriptor.chars();
    while let Some(kind) = rest.next() {
        match kind {
            '[' => continue,
            'L' => drop(rest.by_ref().find(|one| *one == ';')),
            _ => {}
        }
        count += 1;
    }
    count
}

/// What a status-20 body says.
fn outcome(body: Bytes) -> (i32, Response) {
    let mut reader = Hessian2::new().reader(body);
    let flag = reader.read_int().unwrap();
    let outcome = match flag % 3 {
        0 => Outcome::Exception(reader.read_exception().unwrap()),
        1 => Outcome::Value(Payload::value(reader.read_value().unwrap())),
        _ => Outcome::Value(Payload::null()),
    };
    let mut attachments = if flag > 2 { reader.read_attachments().unwrap() } else { Attachments::new() };
    attachments.remove("dubbo");
    (flag, Response { outcome, attachments })
}

fn error_text(body: Bytes) -> String {
    Hessian2::new().reader(body).read_str().unwrap().unwrap_or_default()
}

fn protocol() -> DubboProtocol {
    let exchanger = Arc::new(HeaderExchanger::new(Arc::new(TcpTransporter::new())));
    // Java writes what it has written before as a reference.
    DubboProtocol::new(exchanger, vec![Arc::new(Hessian2::new().with_sharing(true))])
}

async fn read_frame(stream: &mut TcpStream) -> Vec<u8> {
    let reading = async {
        let mut frame = vec![0; HEADER];
        stream.read_exact(&mut frame).await.unwrap();
        let length = (&frame[12..]).get_u32() as usize;
        frame.resize(HEADER + length, 0);
        stream.read_exact(&mut frame[HEADER..]).await.unwrap();
        frame
    };
    tokio::time::timeout(Duration::from_secs(20), reading).await.expect("no frame came")
}

// ---- Our consumer against Java's provider.

/// A provider that plays recorded answers.
struct Recorded {
    listener: TcpListener,
    url: Url,
}

impl Recorded {
    async fn start(call: &Call, more: &str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let text = |key| call.attachments.get_str(key).unwrap_or_default();
        let url = format!(
            "dubbo://127.0.0.1:{port}/{}?interface={}&application={}&timeout={}&version={}&group={}&{more}",
            text("path"),
            text("interface"),
            text("remote.application"),
            text("timeout"),
            text("version"),
            text("group"),
        );
        Self { listener, url: Url::parse(&url).unwrap() }
    }
}

/// The recorded request as an invocation of ours.
fn invocation(call: &Call, one_way: bool) -> Invocation {
    const OF_THE_PROTOCOL: [&str; 6] =
        ["path", "interface", "version", "timeout", "group", "remote.application"];
    let mut method = Method::new(call.head[3].as_str(), call.head[4].as_str());
    method.one_way = one_way;
    let mut invocation = Invocation::new(Arc::new(method), Arc::new(call.arguments.clone()));
    let own = call.attachments.iter().filter(|(key, _)| !OF_THE_PROTOCOL.contains(key));
    for (key, value) in own {
        invocation.attachments_mut().set(key.to_owned(), value.clone());
    }
    invocation
}

fn sorted(attachments: &Attachments) -> Vec<(String, Value)> {
    let mut all: Vec<_> = attachments.iter().map(|(key, value)| (key.to_owned(), value.clone())).collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

/// Sends the recorded call with our consumer, compares what goes out, and plays the recorded answer.
async fn call_as_recorded(request: &Frame, answer: Option<&Frame>, more: &str) -> Result<Response, RpcError> {
    let call = take_apart(&request.body());
    let provider = Recorded::start(&call, more).await;
    let invoker = protocol().refer(&provider.url).unwrap();
    let calling = invoker.invoke(invocation(&call, !request.is_two_way()));
    let providing = async {
        let (mut stream, _) = provider.listener.accept().await.unwrap();
        let sent = read_frame(&mut stream).await;
        assert_eq!(sent[..4], request.bytes[..4], "{}", request.label());
        let same = call.before_attachments;
        let body = Bytes::copy_from_slice(&sent[HEADER..]);
        let ours = take_apart(&body);
        assert_eq!((&ours.head, &ours.arguments), (&call.head, &call.arguments), "{}", request.label());
        // Where Java ends a chunk of a long byte array depends on its buffer.
        let has_one_form = request.section != "big";
        if has_one_form {
            assert!(body[..same] == request.body()[..same], "{}: fields and arguments", request.label());
        }
        assert_eq!(sorted(&ours.attachments), sorted(&call.attachments), "{}", request.label());
        let only_fixed = call.attachments.len() <= 6 && call.attachments.get("generic").is_none();
        if only_fixed && has_one_form {
            assert!(sent[12..] == request.bytes[12..], "{}: byte by byte", request.label());
        }
        if let Some(answer) = answer {
            let mut bytes = answer.bytes.clone();
            bytes[4..12].copy_from_slice(&sent[4..12]);
            stream.write_all(&bytes).await.unwrap();
        }
        stream
    };
    let (outcome, _stream) = tokio::join!(calling, providing);
    outcome
}

fn assert_same(ours: &Response, recorded: &Response, label: &str) {
    match (&ours.outcome, &recorded.outcome) {
        (Outcome::Exception(ours), Outcome::Exception(recorded)) => assert_eq!(ours, recorded, "{label}"),
        (Outcome::Value(ours), Outcome::Value(recorded)) => {
            let value = |payload: &Payload| payload.get::<Value>().cloned().unwrap_or_default();
            assert_eq!(value(ours), value(recorded), "{label}");
        }
        (ours, recorded) => panic!("{label}: {ours:?} instead of {recorded:?}"),
    }
}

#[tokio::test]
async fn our_consumer_sends_what_javas_sent_and_understands_what_javas_provider_answered() {
    let mut run = 0;
    for name in ["all", "heartbeat", "pool", "groupversion", "executes", "token", "big"] {
        for (request, answer) in calls(name) {
            let called = call_as_recorded(&request, answer.as_ref(), "").await;
            let label = request.label();
            run += 1;
            let Some(answer) = answer else {
                assert!(called.is_ok() && !request.is_two_way(), "{label}: {called:?}");
                continue;
            };
            if answer.status() == 20 {
                let ours = called.unwrap_or_else(|error| panic!("{label}: {error}"));
                let (flag, recorded) = outcome(answer.body());
                assert_same(&ours, &recorded, &label);
                assert_eq!(ours.attachments.get_str("dubbo"), (flag > 2).then_some("2.0.2"), "{label}");
            } else {
                let error = called.unwrap_err();
                assert_eq!(error.status(), Some(answer.status()), "{label}");
                assert!(error.message().ends_with(&error_text(answer.body())), "{label}: {error}");
            }
        }
    }
    assert!(run >= 45, "{run}");
}

// C77
#[tokio::test]
async fn a_java_answer_over_our_limit_fails_its_call_and_not_the_next() {
    let calls = calls("clientpayload");
    let (small, large) = (&calls[0], &calls[1]);
    let error = call_as_recorded(&large.0, large.1.as_ref(), "payload=8192").await.unwrap_err();
    let text = "Data length too large: 10839, max payload: 8192, channel: ";
    assert!(error.message().contains(text), "{error}");
    assert_eq!(error.code(), ErrorCode::Serialization);
    call_as_recorded(&small.0, small.1.as_ref(), "payload=8192").await.unwrap();
}

// ---- Our provider against Java's consumer.

/// Answers each method once with what the test says; without that, it never answers.
#[derive(Debug)]
struct Playing {
    url: Url,
    next: Mutex<HashMap<String, Result<Response, RpcError>>>,
    served: Mutex<Vec<Invocation>>,
}

impl Invoker for Playing {
    fn url(&self) -> &Url {
        &self.url
    }

    fn is_available(&self) -> bool {
        true
    }

    fn invoke(&self, call: Invocation) -> BoxFuture<'_, Result<Response, RpcError>> {
        let next = self.next.lock().remove(&*call.method().name);
        self.served.lock().push(call);
        Box::pin(async move {
            match next {
                Some(next) => next,
                // A slow service.
                None => std::future::pending().await,
            }
        })
    }
}

fn read_values<const N: usize>(reader: &mut dyn ObjectReader) -> Result<Arc<dyn Arguments>, SerializeError> {
    let values: Result<Vec<_>, _> = (0..N).map(|_| reader.read_value()).collect();
    Ok(Arc::new(values?))
}

fn read_text(reader: &mut dyn ObjectReader) -> Result<Arc<dyn Arguments>, SerializeError> {
    let text = reader.read_as::<Option<String>>()?;
    Ok(Arc::new(vec![text.map_or(Value::Null, Value::from)]))
}

fn read_ints(reader: &mut dyn ObjectReader) -> Result<Arc<dyn Arguments>, SerializeError> {
    let ints = (reader.read_as::<i32>()?, reader.read_as::<i32>()?);
    Ok(Arc::new(vec![Value::Int(ints.0), Value::Int(ints.1)]))
}

/// The methods of the recorded calls that were served.
fn definition() -> ServiceDefinition {
    let mut methods: Vec<MethodDefinition> = Vec::new();
    let served = ["all", "pool", "big"].into_iter().flat_map(calls);
    for (request, answer) in served {
        let call = take_apart(&request.body());
        let (name, descriptor) = (call.head[3].as_str(), call.head[4].as_str());
        let refused = answer.is_some_and(|answer| answer.status() == 40);
        let known = methods.iter().any(|one| *one.name == *name && *one.descriptor == *descriptor);
        if refused || known || name.starts_with('$') {
            continue;
        }
        let read: ReadArguments = match (descriptor, parameters(descriptor)) {
            ("Ljava/lang/String;", _) => read_text,
            ("II", _) => read_ints,
            (_, 0) => read_values::<0>,
            (_, 1) => read_values::<1>,
            (_, 2) => read_values::<2>,
            (_, 3) => read_values::<3>,
            (_, 8) => read_values::<8>,
            (_, count) => panic!("{name} has {count} parameters"),
        };
        methods.push(MethodDefinition {
            name: name.into(),
            descriptor: descriptor.into(),
            parameter_types: Vec::new(),
            read,
            convert: |values| Ok(Arc::new(values)),
        });
    }
    ServiceDefinition::new(SERVICE, methods)
}

struct Provider {
    _protocol: DubboProtocol,
    playing: Arc<Playing>,
    exporter: Box<dyn Exporter>,
}

impl Provider {
    async fn start(parameters: &str) -> Self {
        let url = format!("dubbo://127.0.0.1:0/{SERVICE}?interface={SERVICE}&{parameters}");
        let url = Url::parse(&url).unwrap();
        let playing =
            Arc::new(Playing { url: url.clone(), next: Mutex::default(), served: Mutex::default() });
        let protocol = protocol();
        let exported =
            Exported { url, definition: Arc::new(definition()), invoker: Arc::clone(&playing) as _ };
        let exporter = protocol.export(exported).await.unwrap();
        Self { _protocol: protocol, playing, exporter }
    }

    async fn connect(&self) -> TcpStream {
        let address = SocketAddr::from(([127, 0, 0, 1], self.exporter.url().port()));
        TcpStream::connect(address).await.unwrap()
    }

    /// Has `request` answered with what `answer` holds.
    fn plays(&self, request: &Frame, answer: &Frame) {
        self.plays_result(request, Ok(outcome(answer.body()).1));
    }

    fn plays_result(&self, request: &Frame, result: Result<Response, RpcError>) {
        let method = take_apart(&request.body()).head.swap_remove(3);
        self.playing.next.lock().insert(method, result);
    }
}

async fn ask(stream: &mut TcpStream, request: &Frame) -> Vec<u8> {
    stream.write_all(&request.bytes).await.unwrap();
    read_frame(stream).await
}

/// The first line of a recorded text, without the second telling of it that Java's stack traces begin with.
fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Compares our answer with Java's. Exceptions and texts differ by their stack traces only.
fn assert_answers_as(ours: &[u8], recorded: &Frame, label: &str) {
    assert_eq!(ours[..12], recorded.bytes[..12], "{label}: header");
    let body = Bytes::copy_from_slice(&ours[HEADER..]);
    if recorded.status() != 20 {
        let (ours, recorded) = (error_text(body), error_text(recorded.body()));
        let recorded = first_line(&recorded);
        // Where the cause is an exception of Java's own codec, the text after it is its own too.
        let own = recorded.split("com.alibaba.com.caucho.").next().unwrap_or(recorded);
        assert!(ours.starts_with(own), "{label}: {ours}\ninstead of {own}");
    } else if recorded.is_event() {
        assert!(ours == recorded.bytes, "{label}");
    } else {
        let (ours_flag, ours_is) = outcome(body);
        let (flag, response) = outcome(recorded.body());
        assert_eq!(ours_flag, flag, "{label}");
        match (&ours_is.outcome, &response.outcome) {
            (Outcome::Exception(ours), Outcome::Exception(recorded)) => {
                assert_eq!((&ours.class, &ours.message), (&recorded.class, &recorded.message), "{label}");
            }
            // With several attachments their order in Java's map would have to be guessed.
            _ if !response.attachments.is_empty() => {
                assert_same(&ours_is, &response, label);
                assert_eq!(sorted(&ours_is.attachments), sorted(&response.attachments), "{label}");
            }
            _ => assert!(
                ours == recorded.bytes,
                "{label}: {} instead of {}",
                hex::encode(ours),
                hex::encode(&recorded.bytes)
            ),
        }
    }
}

#[tokio::test]
async fn our_provider_answers_javas_consumer_as_javas_provider_did() {
    let provider = Provider::start("").await;
    let mut stream = provider.connect().await;
    for (request, answer) in calls("all") {
        let label = request.label();
        match answer {
            // A business of the generic call's own code, not of the protocol.
            Some(answer) if answer.status() == 70 => {
                let text = error_text(answer.body());
                let error = RpcError::new(ErrorCode::MethodNotFound, first_line(&text));
                provider.plays_result(&request, Err(error));
                assert_answers_as(&ask(&mut stream, &request).await, &answer, &label);
            }
            Some(answer) => {
                if answer.status() == 20 {
                    provider.plays(&request, &answer);
                }
                assert_answers_as(&ask(&mut stream, &request).await, &answer, &label);
            }
            None => {
                provider.plays_result(&request, Ok(Response::of(Payload::value("nobody reads it".into()))));
                stream.write_all(&request.bytes).await.unwrap();
                while provider.playing.served.lock().is_empty() {
                    tokio::task::yield_now().await;
                }
            }
        }
        let served = provider.playing.served.lock().pop();
        if let Some(served) = served {
            let recorded = take_apart(&request.body());
            assert_eq!(*served.method().name, *recorded.head[3], "{label}");
            let arguments =
                (0..served.arguments().len()).map(|index| served.arguments().value(index).unwrap());
            assert_eq!(arguments.collect::<Vec<_>>(), recorded.arguments, "{label}");
            for (key, value) in recorded.attachments.iter() {
                assert_eq!(served.attachments().get(key), Some(value), "{label}");
            }
        }
    }
}

#[tokio::test]
async fn heartbeats_and_read_only_are_byte_by_byte_those_of_java() {
    let provider = Provider::start("").await;
    let mut stream = provider.connect().await;
    let frames = section("heartbeat");
    let mut beats = 0;
    for request in frames.iter().filter(|frame| frame.from_consumer && frame.is_event()) {
        let answer = frames.iter().find(|one| !one.request && one.id() == request.id()).unwrap();
        assert!(ask(&mut stream, request).await == answer.bytes);
        beats += 1;
    }
    assert_eq!(beats, 4);
    let read_only = frames.iter().find(|frame| frame.request && !frame.from_consumer).unwrap();
    let (exporter, protocol) = (provider.exporter, provider._protocol);
    let (ours, ()) = tokio::join!(read_frame(&mut stream), protocol.drain(Duration::from_secs(5)));
    assert_eq!((&ours[..4], &ours[12..]), (&read_only.bytes[..4], &read_only.bytes[12..]));
    drop(exporter);
    protocol.close().await;
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap(), 0);
}

#[tokio::test]
async fn a_full_provider_refuses_with_the_words_of_java() {
    let provider = Provider::start("threads=1").await;
    let mut stream = provider.connect().await;
    let calls = calls("pool");
    // Nothing is played: the first call takes the only permit and keeps it.
    stream.write_all(&calls[0].0.bytes).await.unwrap();
    for (request, answer) in &calls[1..] {
        let (ours, recorded) = (ask(&mut stream, request).await, answer.as_ref().unwrap());
        assert_eq!(ours[..12], recorded.bytes[..12]);
        let text = error_text(Bytes::copy_from_slice(&ours[HEADER..]));
        let port = provider.exporter.url().port();
        let recorded = error_text(recorded.body())
            .replace("192.0.2.10", "127.0.0.1")
            .replace("20880", &port.to_string());
        let (begin, end) = recorded.split_once(", Task: ").unwrap();
        assert!(text.starts_with(begin), "{text}\ninstead of {recorded}");
        assert!(text.ends_with(end.split_once("), ").unwrap().1), "{text}\ninstead of {recorded}");
    }
}

// C77
#[tokio::test]
async fn an_answer_over_the_limit_is_the_small_error_of_java_and_the_next_call_goes_on() {
    let provider = Provider::start("payload=8192").await;
    let mut stream = provider.connect().await;
    let mut too_large = 0;
    for (request, answer) in calls("big") {
        let answer = answer.unwrap();
        if answer.status() == 20 {
            provider.plays(&request, &answer);
        } else {
            let result = Value::Bytes(Bytes::from(vec![0; 10_839 - 18]));
            provider.plays_result(&request, Ok(Response::of(Payload::value(result))));
            too_large += 1;
        }
        let ours = ask(&mut stream, &request).await;
        assert_eq!(ours[..12], answer.bytes[..12], "{}", request.label());
        if answer.status() != 20 {
            let text = error_text(Bytes::copy_from_slice(&ours[HEADER..]));
            assert!(text.starts_with("Data length too large: 108"), "{text}");
            assert!(text.contains(", max payload: 8192, channel: "), "{text}");
        }
    }
    assert_eq!(too_large, 1);
}

#[tokio::test]
async fn group_version_token_and_executes_are_looked_at_as_java_does() {
    let provider = Provider::start("group=g1&version=1.0.0").await;
    let (request, answer) = &calls("groupversion")[0];
    let answer = answer.as_ref().unwrap();
    provider.plays(request, answer);
    let ours = ask(&mut provider.connect().await, request).await;
    assert_answers_as(&ours, answer, &request.label());

    let provider = Provider::start("token=secret").await;
    let (request, answer) = &calls("token")[0];
    let ours = ask(&mut provider.connect().await, request).await;
    assert_eq!(ours[..12], answer.as_ref().unwrap().bytes[..12]);
    let text = error_text(Bytes::copy_from_slice(&ours[HEADER..]));
    let recorded = error_text(answer.as_ref().unwrap().body());
    let words = recorded.split(" from consumer ").next().unwrap();
    assert!(text.starts_with(words), "{text}\ninstead of {words}");
    assert!(!text.contains("incorrect token"), "the token that was sent is not told");

    let provider = Provider::start("executes=1").await;
    let mut stream = provider.connect().await;
    let calls = calls("executes");
    let refused: Vec<_> =
        calls.iter().filter(|(_, answer)| answer.as_ref().unwrap().status() == 70).collect();
    let served = calls.iter().find(|(_, answer)| answer.as_ref().unwrap().status() == 20).unwrap();
    stream.write_all(&served.0.bytes).await.unwrap();
    assert_eq!(refused.len(), 2);
    for (request, answer) in refused {
        let ours = ask(&mut stream, request).await;
        assert_eq!(ours[..12], answer.as_ref().unwrap().bytes[..12]);
        let text = error_text(Bytes::copy_from_slice(&ours[HEADER..]));
        let begin = "org.apache.dubbo.rpc.RpcException: Failed to invoke method sleep in provider dubbo://";
        assert!(text.starts_with(begin), "{text}");
        let recorded = error_text(answer.as_ref().unwrap().body());
        let end = first_line(&recorded).rsplit_once(", cause: ").unwrap().1;
        assert!(text.ends_with(end), "{text}\ninstead of {end}");
    }
}

#[tokio::test]
async fn odd_requests_are_answered_as_java_does_and_leave_the_connection_open() {
    let provider = Provider::start("").await;
    let frames = section("raw");
    let alive = calls("raw").into_iter().find(|(request, _)| request.name == "$echo").unwrap();
    let mut run = 0;
    for request in frames.iter().filter(|frame| frame.from_consumer) {
        if DIFFERENT.iter().any(|(label, _)| *label == request.name) {
            continue;
        }
        run += 1;
        let answers: Vec<_> = frames
            .iter()
            .filter(|one| !one.from_consumer && one.name == request.name && !one.request)
            .collect();
        let mut stream = provider.connect().await;
        provider.playing.next.lock().clear();
        let at = |answer: &&&Frame| answer.id() == request.id();
        let Some(answer) = answers.iter().find(at) else {
            stream.write_all(&request.bytes).await.unwrap();
            // The connection is alive, and what comes next is the answer to what was asked next.
            provider.plays(&alive.0, alive.1.as_ref().unwrap());
            let ours = ask(&mut stream, &alive.0).await;
            assert_answers_as(&ours, alive.1.as_ref().unwrap(), &request.label());
            continue;
        };
        match answer.status() {
            20 if !answer.is_event() => provider.plays(request, answer),
            70 => {
                let text = error_text(answer.body());
                provider
                    .plays_result(request, Err(RpcError::new(ErrorCode::MethodNotFound, first_line(&text))));
            }
            _ => {}
        }
        assert_answers_as(&ask(&mut stream, request).await, answer, &request.label());
    }
    assert!(run >= 25, "{run}");
}

#[tokio::test]
async fn what_we_answer_otherwise_harms_nobody() {
    let provider = Provider::start("").await;
    let mut good = provider.connect().await;
    for odd in ["status -l\r\n".as_bytes(), &[0xda, 0xbb, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x80, 0, 0, 0]] {
        let mut stream = provider.connect().await;
        stream.write_all(odd).await.unwrap();
        assert_eq!(stream.read(&mut [0; 1]).await.unwrap_or(0), 0, "closed");
    }
    let mut stream = provider.connect().await;
    let header = [0xda, 0xbb, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0x80, 0, 1];
    stream.write_all(&header).await.unwrap();
    assert_eq!(read_frame(&mut stream).await[3], 40);
    let (request, answer) = calls("all").into_iter().next().unwrap();
    let answer = answer.unwrap();
    provider.plays(&request, &answer);
    assert_answers_as(&ask(&mut good, &request).await, &answer, "all");
}
