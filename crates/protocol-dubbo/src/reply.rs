//! Bodies of responses.

use bytes::BytesMut;
use dubhe_common::keys;
use dubhe_core::error::Exception;
use dubhe_core::exchange::{HEADROOM, Reply, ResponseFrame, status};
use dubhe_core::invocation::{Attachments, ReplyDecoder};
use dubhe_core::response::{Outcome, Payload, Response};
use dubhe_core::serialize::{Serialization, SerializeError};

use crate::memo::{Memo, read_attachments};
use crate::serializations::Known;

/// What follows the flag, and the flag without attachments. With attachments it is 3 more.
const EXCEPTION: i32 = 0;
const VALUE: i32 = 1;
const NULL: i32 = 2;
const WITH_ATTACHMENTS: i32 = 3;

/// Reads the body of a response with status 20, which must be in the serialization of its request.
pub(crate) fn decode(
    serialization: &dyn Serialization,
    frame: ResponseFrame,
    read: ReplyDecoder,
    memo: &Memo<Attachments>,
) -> Result<Response, SerializeError> {
    if frame.serialization != serialization.id() {
        return Err(SerializeError::new(format!(
            "Unexpected serialization id:{} received from network, please check if the peer send the right id.",
            frame.serialization
        )));
    }
    let mut reader = serialization.reader(frame.body.clone());
    let flag = reader.read_int()?;
    let outcome = match flag % WITH_ATTACHMENTS {
        _ if !(0..=NULL + WITH_ATTACHMENTS).contains(&flag) => {
            return Err(SerializeError::new(format!(
                "Unknown result flag, expect '0' '1' '2' '3' '4' '5', but received: {flag}"
            )));
        }
        EXCEPTION => Outcome::Exception(reader.read_exception()?),
        VALUE => Outcome::Value(read(&mut *reader)?),
        _ => Outcome::Value(Payload::null()),
    };
    let attachments = if flag >= WITH_ATTACHMENTS {
        read_attachments(memo, frame.serialization, &frame.body, &mut *reader, |sent| sent)?
    } else {
        Attachments::new()
    };
    Ok(Response { outcome, attachments })
}

/// Writes responses in one serialization.
#[derive(Debug)]
pub(crate) struct Answers<'a> {
    known: &'a Known,
}

impl<'a> Answers<'a> {
    pub(crate) const fn written_with(known: &'a Known) -> Self {
        Self { known }
    }

    /// What the service answered. A result that cannot be written becomes an error answer.
    pub(crate) fn response(&self, response: &Response, with_attachments: bool) -> Reply {
        match self.encode(response, with_attachments) {
            Ok(frame) => Reply { status: status::OK, serialization: self.known.serialization.id(), frame },
            Err(error) => {
                let text = format!("Failed to send response: {:?}, cause: {error}", response.outcome);
                self.error(status::BAD_RESPONSE, &text)
            }
        }
    }

    /// An exception of the service.
    pub(crate) fn exception(&self, exception: Exception, with_attachments: bool) -> Reply {
        self.response(&Response::exception(exception), with_attachments)
    }

    /// An error status and its text.
    pub(crate) fn error(&self, status: u8, text: &str) -> Reply {
        let mut frame = room(text.len());
        // A text that cannot be written leaves an empty body: the status says enough.
        if self.known.serialization.encode(&mut frame, &mut |writer| writer.write_str(text)).is_err() {
            frame.truncate(HEADROOM);
        }
        Reply { status, serialization: self.known.serialization.id(), frame }
    }

    fn encode(&self, response: &Response, with_attachments: bool) -> Result<BytesMut, SerializeError> {
        let flag = match &response.outcome {
            Outcome::Exception(_) => EXCEPTION,
            Outcome::Value(payload) if payload.is_null() => NULL,
            Outcome::Value(_) => VALUE,
        };
        let flag = if with_attachments { flag + WITH_ATTACHMENTS } else { flag };
        let mut frame = room(512);
        let more = other_than_version(&response.attachments);
        let more = more.as_ref().unwrap_or(&response.attachments);
        self.known.serialization.encode(&mut frame, &mut |writer| {
            writer.write_int(flag)?;
            match &response.outcome {
                Outcome::Exception(exception) => writer.write_exception(exception)?,
                Outcome::Value(payload) if payload.is_null() => {}
                Outcome::Value(payload) => payload.write(writer)?,
            }
            if with_attachments {
                writer.write_attachments_with(&self.known.version_entry, more)
            } else {
                Ok(())
            }
        })?;
        Ok(frame)
    }
}

fn room(body: usize) -> BytesMut {
    let mut frame = BytesMut::with_capacity(HEADROOM + body + 16);
    frame.resize(HEADROOM, 0);
    frame
}

fn other_than_version(attachments: &Attachments) -> Option<Attachments> {
    attachments.get(keys::DUBBO)?;
    let mut others = attachments.clone();
    others.remove(keys::DUBBO);
    Some(others)
}
