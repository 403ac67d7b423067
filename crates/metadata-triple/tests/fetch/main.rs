//! Fetches from a server in this process that speaks HTTP/2, or something else.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod json;
mod server;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dubhe_common::Url;
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::metadata::MetadataInfo;
use dubhe_metadata_triple::{MAX_MESSAGE, TIME_LIMIT, TripleMetadataClient, Version};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use json::Json;
use server::{Reply, Server, framed};

const V1: &str = "/org.apache.dubbo.metadata.MetadataService/getMetadataInfo";
const V2: &str = "/org.apache.dubbo.metadata.MetadataServiceV2/GetMetadataInfo";

/// `MetadataInfoV2` as protobuf writes it: one service, with two parameters; a field 9 that nobody knows.
const INFO_V2: &[u8] = b"\x0a\x03app\x12\x02r1\x4a\x01x\x1a\x45\x0a\x0cg/S:v1:dubbo\x12\x35\
    \x0a\x01S\x12\x01g\x1a\x02v1\x22\x05dubbo\x28\xa0\xa3\x01\x32\x01S\
    \x3a\x10\x0a\x07timeout\x12\x055000\x20\x3a\x09\x0a\x04side\x12\x01p";

fn info() -> MetadataInfo {
    serde_json::from_str(
        r#"{"app":"app","revision":"r1","services":{"g/S:v1:dubbo":{"name":"S","group":"g","version":"v1",
            "protocol":"dubbo","port":20896,"path":"S","params":{"timeout":"5000 ","side":"p"}}}}"#,
    )
    .unwrap()
}

/// `TripleResponseWrapper` around this.
fn wrapped(name: &str, data: &str) -> Bytes {
    let mut out = Vec::new();
    for (number, text) in [(1, name), (2, data), (3, "org.apache.dubbo.metadata.MetadataInfo")] {
        out.push(number << 3 | 2);
        let length = u16::try_from(text.len()).unwrap();
        out.extend([(length & 0x7f) as u8 | 0x80, (length >> 7) as u8]);
        out.extend(text.as_bytes());
    }
    framed(&out)
}

fn url(port: u16) -> Url {
    Url::builder("tri", "127.0.0.1", port)
        .path("org.apache.dubbo.metadata.MetadataService")
        .param("version", "1.0.0")
        .param("group", "provider-app")
        .build()
}

async fn fetch(port: u16, version: Version) -> Result<Option<MetadataInfo>, RpcError> {
    TripleMetadataClient::new("consumer-app", Arc::new(Json)).fetch(&url(port), version, "r1").await
}

async fn fetch_error(server: &Server, version: Version) -> RpcError {
    let error = fetch(server.port, version).await.unwrap_err();
    assert!(error.message().contains(&server.port.to_string()), "{error} does not say where");
    error
}

// C15
#[tokio::test]
async fn version_2_is_asked_where_it_is_offered() {
    let mut server = Server::start(|_| Reply::good(framed(INFO_V2))).await;
    assert_eq!(fetch(server.port, Version::TwoElseOne).await.unwrap(), Some(info()));
    let [request] = server.ended().await.try_into().unwrap();
    assert_eq!((request.path(), request.body.as_ref()), (V2, &framed(b"\x0a\x02r1")[..]));
    assert_eq!(request.header("content-type"), "application/grpc+proto");
    assert_eq!(request.header("tri-service-version"), "2.0.0");
    assert_eq!(request.header("tri-service-group"), "provider-app");
    assert_eq!(request.header("tri-consumer-appname"), "consumer-app");
}

#[tokio::test]
async fn version_1_goes_in_wrapper_messages() {
    let json = serde_json::to_string(&info()).unwrap();
    let mut server = Server::start(move |_| Reply::good(wrapped("hessian4", &json))).await;
    assert_eq!(fetch(server.port, Version::One).await.unwrap(), Some(info()));
    let [request] = server.ended().await.try_into().unwrap();
    assert_eq!(request.path(), V1);
    assert_eq!(request.header("tri-service-version"), "1.0.0");
    assert_eq!(request.header("tri-service-group"), "provider-app");
    let message = b"\x0a\x08hessian4\x12\x04\"r1\"\x1a\x10java.lang.String";
    assert_eq!(request.body, framed(message));
}

// C15
#[tokio::test]
async fn where_version_2_is_unimplemented_version_1_is_asked_over_the_same_connection() {
    for unimplemented in
        [Reply::status(200, "12", ""), Reply::trailers_only(404, "12", ""), Reply::http(404, "no such thing")]
    {
        let mut server = Server::start(move |path| match path {
            V2 => unimplemented.clone(),
            _ => Reply::good(wrapped("hessian2", r#"{"app":"app","services":{}}"#)),
        })
        .await;
        let answer = fetch(server.port, Version::TwoElseOne).await.unwrap().unwrap();
        assert_eq!(answer.app.as_deref(), Some("app"));
        let paths: Vec<_> = server.ended().await.iter().map(|request| request.path().to_owned()).collect();
        assert_eq!(paths, [V2, V1]);
    }
}

#[tokio::test]
async fn version_1_is_not_asked_after_any_other_failure_of_version_2() {
    let mut server = Server::start(|_| Reply::status(200, "7", "not%20you")).await;
    let error = fetch_error(&server, Version::TwoElseOne).await;
    assert_eq!(error.code(), ErrorCode::Forbidden);
    assert!(error.message().ends_with("gRPC status 7: not you"), "{error}");
    assert_eq!(server.ended().await.len(), 1);
}

#[tokio::test]
async fn an_unknown_revision_is_none_in_both_versions() {
    let server = Server::start(|path| match path {
        V2 => Reply::good(framed(b"")),
        _ => Reply::good(wrapped("hessian4", "null")),
    })
    .await;
    for version in [Version::One, Version::TwoElseOne] {
        assert_eq!(fetch(server.port, version).await.unwrap(), None);
    }
}

#[tokio::test]
async fn what_the_service_throws_is_told() {
    let server = Server::start(|_| {
        Reply::good(wrapped("hessian4", r#""no memory""#)).with_header("tri-exception-code", "3")
    })
    .await;
    let error = fetch(server.port, Version::One).await.unwrap_err();
    assert!(error.is_business() && error.message().contains("no memory"), "{error}");
}

#[tokio::test]
async fn an_error_status_is_told_with_its_text() {
    let server = Server::start(|_| Reply::trailers_only(500, "2", "Server error")).await;
    let error = fetch_error(&server, Version::One).await;
    assert_eq!(error.code(), ErrorCode::Unknown);
    assert!(error.message().ends_with("gRPC status 2: Server error"), "{error}");
}

#[tokio::test]
async fn answers_that_are_no_metadata_are_errors() {
    let garbage = [
        framed(b"\x0a\xff\xff\xff\xff\x0f"),
        framed(b"\x1a\x03\x0a\x05x"),
        framed(b"\x0b\x0b\x0b"),
        framed(b"hello"),
        Bytes::from_static(b"<html>"),
        Bytes::new(),
        wrapped("fastjson2", "null"),
        wrapped("hessian4", "[1]"),
    ];
    for body in garbage {
        let sent = body.clone();
        let server = Server::start(move |_| Reply::good(sent.clone())).await;
        for version in [Version::One, Version::TwoElseOne] {
            // A wrapper message is a message of version 2 that has but its first two fields.
            if let Err(error) = fetch(server.port, version).await {
                assert_eq!(error.code(), ErrorCode::Serialization, "{body:?} {version:?}: {error}");
            } else {
                assert!(body.len() > 40 && version == Version::TwoElseOne, "{body:?} {version:?}");
            }
        }
    }
}

#[tokio::test]
async fn an_endless_answer_ends_at_the_limit() {
    let mut server = Server::start(|_| Reply::endless()).await;
    let error = fetch_error(&server, Version::TwoElseOne).await;
    assert_eq!(error.code(), ErrorCode::Serialization);
    assert!(error.message().contains(&MAX_MESSAGE.to_string()), "{error}");
    assert_eq!(server.ended().await.len(), 1);
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_an_error() {
    let mut server = Server::start(|_| Reply::reset()).await;
    assert_eq!(fetch_error(&server, Version::TwoElseOne).await.code(), ErrorCode::Network);
    assert_eq!(server.ended().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_costs_the_time_limit() {
    let mut server = Server::start(|_| Reply::never()).await;
    let began = tokio::time::Instant::now();
    assert_eq!(fetch_error(&server, Version::TwoElseOne).await.code(), ErrorCode::Timeout);
    assert_eq!(began.elapsed().as_secs(), TIME_LIMIT.as_secs());
    // The connection ends with the fetch.
    server.ended().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_speaks_not_at_all_costs_the_time_limit() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (error, _) = tokio::join!(fetch(port, Version::One), listener.accept());
    assert_eq!(error.unwrap_err().code(), ErrorCode::Timeout);
}

#[tokio::test]
async fn a_server_that_speaks_something_else_is_an_error() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let speak = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut some = [0; 24];
        stream.read_exact(&mut some).await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        // Until the client has closed.
        let _ = stream.read_to_end(&mut Vec::new()).await;
    };
    let (answer, ()) = tokio::join!(fetch(port, Version::TwoElseOne), speak);
    assert_eq!(answer.unwrap_err().code(), ErrorCode::Network);
}

#[tokio::test]
async fn where_nobody_listens_the_address_is_told() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let error = fetch(port, Version::One).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Network);
    assert!(error.message().contains(&format!("127.0.0.1:{port}")), "{error}");
}

#[tokio::test]
async fn giving_up_a_fetch_ends_its_connection() {
    let mut server = Server::start(|_| Reply::never()).await;
    let fetching = tokio::spawn(fetch(server.port, Version::One));
    server.asked().await;
    fetching.abort();
    let ended = tokio::time::timeout(Duration::from_secs(10), server.ended()).await;
    assert_eq!(ended.unwrap().len(), 1);
}
