//! What a call came to: the gRPC status, or the HTTP status of a peer that sends none.

use dubhe_core::error::{Delivery, ErrorCode, RpcError};
use http::{HeaderMap, StatusCode};

const STATUS: &str = "grpc-status";
const MESSAGE: &str = "grpc-message";
const OK: u16 = 0;
const UNKNOWN: u16 = 2;
const UNIMPLEMENTED: u16 = 12;
/// As much of a peer's text is told.
const MAX_TEXT: usize = 1024;

/// Fails unless the status is that of a success. It is in `trailers`, or in `headers` when nothing followed them. A gRPC status
/// counts whatever the HTTP status says.
pub(crate) fn check(
    asked: &str,
    http: StatusCode,
    headers: &HeaderMap,
    trailers: Option<&HeaderMap>,
) -> Result<(), RpcError> {
    let said = trailers.into_iter().chain([headers]).find(|map| map.contains_key(STATUS));
    let Some(said) = said else {
        let text = format!("{asked} answered without a gRPC status, with HTTP status {}", http.as_u16());
        return Err(failed(of_http(http), text));
    };
    let number = said.get(STATUS).and_then(|number| number.to_str().ok()?.trim().parse().ok());
    match number {
        Some(OK) => Ok(()),
        Some(number) => {
            let text = said.get(MESSAGE).map(|text| readable(text.as_bytes())).unwrap_or_default();
            Err(failed(number, format!("{asked} answered with gRPC status {number}: {text}")))
        }
        None => Err(failed(UNKNOWN, format!("{asked} answered with a malformed gRPC status"))),
    }
}

/// Origin: `TriRpcStatus`.
fn failed(grpc: u16, text: String) -> RpcError {
    let (code, delivery) = match grpc {
        4 => (ErrorCode::Timeout, Delivery::Sent),
        7 => (ErrorCode::Forbidden, Delivery::NotSent),
        UNIMPLEMENTED => (ErrorCode::MethodNotFound, Delivery::NotSent),
        14 => (ErrorCode::Network, Delivery::Sent),
        _ => (ErrorCode::Unknown, Delivery::Sent),
    };
    RpcError::new(code, text).with_delivery(delivery)
}

/// The gRPC status that an HTTP status alone stands for.
fn of_http(http: StatusCode) -> u16 {
    match http.as_u16() {
        100..=199 | 400 | 431 => 13,
        401 => 16,
        403 => 7,
        404 => UNIMPLEMENTED,
        429 | 502 | 503 | 504 => 14,
        _ => UNKNOWN,
    }
}

/// Percent-encoded text of a peer, fit for a log: bounded, without control characters.
fn readable(encoded: &[u8]) -> String {
    let mut bytes = Vec::new();
    let mut rest = encoded;
    while let [first, tail @ ..] = rest {
        let hex = tail.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    text.chars().take(MAX_TEXT).map(|one| if one.is_control() { ' ' } else { one }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(entries: &[(&'static str, &'static str)]) -> HeaderMap {
        entries.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[track_caller]
    fn error(
        http: u16,
        headers: &[(&'static str, &'static str)],
        trailers: &[(&'static str, &'static str)],
    ) -> RpcError {
        check("S", StatusCode::from_u16(http).unwrap(), &map(headers), Some(&map(trailers))).unwrap_err()
    }

    #[test]
    fn the_grpc_status_counts_wherever_it_is_and_whatever_the_http_status_says() {
        let none = HeaderMap::new();
        assert!(check("S", StatusCode::OK, &none, Some(&map(&[("grpc-status", "0")]))).is_ok());
        assert!(check("S", StatusCode::INTERNAL_SERVER_ERROR, &map(&[("grpc-status", "0")]), None).is_ok());
        let unimplemented =
            error(200, &[], &[("grpc-status", "12"), ("grpc-message", "Service%20not+found%3A%E4%BD%A0%")]);
        assert_eq!(unimplemented.code(), ErrorCode::MethodNotFound);
        assert_eq!(unimplemented.message(), "S answered with gRPC status 12: Service not+found:你%");
        assert_eq!(error(404, &[("grpc-status", "14")], &[]).code(), ErrorCode::Network);
        assert_eq!(error(200, &[], &[("grpc-status", "x")]).code(), ErrorCode::Unknown);
    }

    #[test]
    fn without_a_grpc_status_the_http_status_counts() {
        let codes = [404, 503, 403, 500, 200].map(|http| error(http, &[], &[]).code());
        use ErrorCode::{Forbidden, MethodNotFound, Network, Unknown};
        assert_eq!(codes, [MethodNotFound, Network, Forbidden, Unknown, Unknown]);
    }

    #[test]
    fn a_text_is_bounded_and_has_no_control_characters() {
        assert_eq!(readable(b"a%0Ab%zz%4"), "a b%zz%4");
        assert_eq!(readable(&[b'x'; 5_000]).len(), MAX_TEXT);
    }
}
