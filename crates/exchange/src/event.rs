//! Events: heartbeat, read-only, writeable.

use bytes::{Bytes, BytesMut};

use crate::frame::{HEADER_LENGTH, Header};
use crate::status;

/// Serialization id of the events that this side begins: hessian2, which every peer knows.
const HESSIAN2: u8 = 2;
/// Null in hessian2.
const NULL: &[u8] = b"N";
/// `"R"` in hessian2.
const READ_ONLY: &[u8] = b"\x01R";

/// What an event asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Heartbeat,
    /// No more calls, please.
    ReadOnly,
    /// Calls again (Dubbo 3.3).
    Writeable,
}

impl Event {
    /// What a body says; `None` for what is to be ignored. A one-letter string ends with its letter in every
    /// serialization that is met (hessian2 `01 52`), or with a quote behind it (JSON). Null has a form of its own in each
    /// serialization, so that outside of hessian2 all else is a heartbeat.
    pub(crate) fn of(serialization: u8, body: &[u8]) -> Option<Self> {
        let letter = match body {
            [.., letter, b'"'] | [_, letter] => Some(letter),
            _ => None,
        };
        match letter {
            Some(b'R') => Some(Self::ReadOnly),
            Some(b'W') => Some(Self::Writeable),
            _ if serialization != HESSIAN2 || body.is_empty() || body == NULL => Some(Self::Heartbeat),
            _ => None,
        }
    }
}

/// A two-way heartbeat.
pub(crate) fn heartbeat(id: i64) -> Bytes {
    frame(Header::request(id, HESSIAN2, true).of_event(), NULL)
}

/// The answer to a heartbeat: same id, same serialization, same null (the reference answers in a serialization of its
/// own choice in 3.1).
pub(crate) fn heartbeat_answer(request: &Header, body: &[u8]) -> Bytes {
    frame(Header::response(request.id, request.serialization, status::OK).of_event(), body)
}

/// The one-way event that asks for no more calls.
pub(crate) fn read_only(id: i64) -> Bytes {
    frame(Header::request(id, HESSIAN2, false).of_event(), READ_ONLY)
}

fn frame(header: Header, body: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(HEADER_LENGTH + body.len());
    frame.resize(HEADER_LENGTH, 0);
    frame.extend_from_slice(body);
    header.write(&mut frame);
    frame.freeze()
}
