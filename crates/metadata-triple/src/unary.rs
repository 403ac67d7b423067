//! One connection and the calls over it, one after the other.

use std::pin::pin;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use dubhe_common::Url;
use dubhe_core::error::{Delivery, ErrorCode, RpcError};
use h2::client::SendRequest;
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use tokio::net::TcpStream;

use crate::{TIME_LIMIT, status};

/// How long an answer may be, bytes. Origin: `payload`.
pub const MAX_MESSAGE: usize = 8 << 20;
/// In front of each message: a byte of flags and its length.
const PREFIX: usize = 5;
/// How long the headers of an answer may be, bytes. Origin: Dubbo's own limit.
const MAX_HEADERS: u32 = 32 << 10;
/// What a peer may send before we read it, bytes. Origin: ours.
const WINDOW: u32 = 1 << 20;
/// How long taking leave of a peer may take, after its answer. Origin: ours.
const FAREWELL: Duration = Duration::from_millis(100);
/// Present and other than 0 where the message is an exception, from Dubbo 3.3.
const EXCEPTION_CODE: &str = "tri-exception-code";

/// Runs `ask` over a new connection to the host and port of `url`. The connection lives in this future, and ends with it.
pub(crate) async fn over_connection<T, F: Future<Output = Result<T, RpcError>>>(
    url: &Url,
    ask: impl FnOnce(Caller) -> F,
) -> Result<T, RpcError> {
    let address = url.address();
    let lost = |error: &dyn std::fmt::Display| {
        RpcError::new(
            ErrorCode::Network,
            format!("the metadata service at {address} cannot be reached over Triple: {error}"),
        )
    };
    let stream = TcpStream::connect((url.connect_host(), url.port())).await.map_err(|error| lost(&error))?;
    // A failure costs speed only.
    let _ = stream.set_nodelay(true);
    let (requests, connection) = h2::client::Builder::new()
        .enable_push(false)
        .initial_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_header_list_size(MAX_HEADERS)
        .handshake::<_, Bytes>(stream)
        .await
        .map_err(|error| lost(&error))?;
    let (mut connection, mut ask) =
        (pin!(connection), pin!(ask(Caller { requests, address: address.clone() })));
    tokio::select! {
        biased;
        answer = &mut ask => {
            // The caller is gone: the connection tells so to the peer, and closes.
            let _ = tokio::time::timeout(FAREWELL, connection).await;
            answer
        }
        // What arrived before can still be read; all else fails now.
        _ = &mut connection => ask.await,
    }
}

/// Makes calls over a connection.
pub(crate) struct Caller {
    requests: SendRequest<Bytes>,
    address: String,
}

/// What is called, and by whom.
pub(crate) struct Call<'a> {
    /// `/SERVICE/METHOD`.
    pub(crate) path: &'a str,
    pub(crate) group: Option<&'a str>,
    pub(crate) version: &'a str,
    /// The application that calls.
    pub(crate) application: &'a str,
}

/// A message that came with a good status.
pub(crate) struct Answer {
    pub(crate) message: Bytes,
    /// Whether it is an exception rather than the result.
    pub(crate) is_exception: bool,
}

impl Caller {
    /// One message there, one message back.
    pub(crate) async fn call(&mut self, call: &Call<'_>, message: &[u8]) -> Result<Answer, RpcError> {
        let asked = format!("{} at {}", call.path, self.address);
        let broken = |error: h2::Error| {
            RpcError::new(ErrorCode::Network, format!("{asked} gave no answer: {error}"))
                .with_delivery(Delivery::Sent)
                .with_source(error)
        };
        let request = request(&self.address, call).map_err(|error| {
            RpcError::new(ErrorCode::Unknown, format!("{asked} cannot be asked: {error}"))
        })?;
        let mut frame = BytesMut::with_capacity(PREFIX + message.len());
        frame.put_u8(0);
        frame.put_u32(u32::try_from(message.len()).map_err(|_| too_long(&asked))?);
        frame.put_slice(message);

        std::future::poll_fn(|context| self.requests.poll_ready(context)).await.map_err(broken)?;
        let (response, mut body) = self.requests.send_request(request, false).map_err(broken)?;
        body.send_data(frame.freeze(), true).map_err(broken)?;
        let (head, mut body) = response.await.map_err(broken)?.into_parts();
        let mut received = BytesMut::new();
        while let Some(chunk) = body.data().await {
            let chunk = chunk.map_err(broken)?;
            if received.len() + chunk.len() > PREFIX + MAX_MESSAGE {
                return Err(too_long(&asked));
            }
            received.extend_from_slice(&chunk);
            body.flow_control().release_capacity(chunk.len()).map_err(broken)?;
        }
        let trailers = body.trailers().await.map_err(broken)?;
        status::check(&asked, head.status, &head.headers, trailers.as_ref())?;
        let message = unframed(received.freeze()).map_err(|what| {
            RpcError::new(ErrorCode::Serialization, format!("{asked} answered with something else: {what}"))
        })?;
        Ok(Answer { message, is_exception: is_exception(&head.headers) })
    }
}

fn request(address: &str, call: &Call<'_>) -> Result<Request<()>, http::Error> {
    let uri = Uri::builder().scheme("http").authority(address).path_and_query(call.path).build()?;
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(uri)
        .header("content-type", "application/grpc+proto")
        .header("te", "trailers")
        .header("grpc-timeout", format!("{}m", TIME_LIMIT.as_millis()))
        .header("tri-service-version", call.version);
    // What no header can hold is left out: a service is found without its group, if it is the only one.
    for (name, text) in [("tri-service-group", call.group), ("tri-consumer-appname", Some(call.application))]
    {
        if let Some(value) = text.and_then(header) {
            request = request.header(name, value);
        }
    }
    request.body(())
}

fn header(text: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(text).ok().filter(|value| value.to_str().is_ok())
}

/// The one message of a body.
fn unframed(mut body: Bytes) -> Result<Bytes, String> {
    if body.len() < PREFIX {
        return Err(format!("a body of {} bytes has no message", body.len()));
    }
    let prefix = body.split_to(PREFIX);
    let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]);
    match prefix[0] {
        0 if body.len() == length as usize => Ok(body),
        0 => Err(format!("a message of {length} bytes in a body that has {}", body.len())),
        // Nothing was said to be understood.
        1 => Err("a compressed message".to_owned()),
        flags => Err(format!("a message with flags {flags:#04x}")),
    }
}

fn is_exception(headers: &HeaderMap) -> bool {
    headers.get(EXCEPTION_CODE).is_some_and(|code| code != "0")
}

fn too_long(asked: &str) -> RpcError {
    RpcError::new(ErrorCode::Serialization, format!("{asked} has a message of more than {MAX_MESSAGE} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_exactly_one_message() {
        assert_eq!(unframed(Bytes::from_static(b"\0\0\0\0\x02ab")).unwrap(), "ab");
        assert_eq!(unframed(Bytes::from_static(b"\0\0\0\0\0")).unwrap(), "");
        for body in [
            &b""[..],
            b"\0\0\0\0",
            b"\0\0\0\0\x03ab",
            b"\0\0\0\0\x01ab",
            b"\0\xff\xff\xff\xffab",
            b"\x01\0\0\0\x02ab",
            b"\x80\0\0\0\x02ab",
        ] {
            assert!(unframed(Bytes::from_static(body)).is_err(), "{body:?}");
        }
    }

    #[test]
    fn a_request_has_the_headers_of_triple() {
        let call = Call { path: "/a.B/c", group: Some("g"), version: "2.0.0", application: "me" };
        let request = request("h:1", &call).unwrap();
        assert_eq!(request.uri(), "http://h:1/a.B/c");
        let header = |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap());
        let names = [
            "content-type",
            "te",
            "grpc-timeout",
            "tri-service-version",
            "tri-service-group",
            "tri-consumer-appname",
        ];
        let expected = ["application/grpc+proto", "trailers", "5000m", "2.0.0", "g", "me"];
        assert_eq!(names.map(header), expected.map(Some));
    }

    #[test]
    fn what_cannot_be_a_header_is_no_panic() {
        let call = Call { path: "/a/b", group: Some("a\nb"), version: "1.0.0", application: "应用" };
        let headers = request("h:1", &call).unwrap().into_parts().0.headers;
        assert!(!headers.contains_key("tri-service-group") && !headers.contains_key("tri-consumer-appname"));
        for (address, path, version) in [("h h:1", "/a/b", "1"), ("h:1", "/a b", "1"), ("h:1", "/a/b", "1\n")]
        {
            assert!(request(address, &Call { path, version, ..call }).is_err(), "{address} {path} {version}");
        }
    }
}
