//! The 16-byte header, and frames out of a stream of bytes. Pure: no socket, no clock.

use bytes::{Buf, Bytes, BytesMut};

/// First two bytes of every frame.
pub const MAGIC: u16 = 0xdabb;
/// Bytes of a header.
pub const HEADER_LENGTH: usize = dubhe_core::exchange::HEADROOM;
/// Largest body of an event. Origin: `deserialization.event.size` of Dubbo 3.1.
pub const EVENT_LIMIT: u32 = 15;

const REQUEST: u8 = 0x80;
const TWO_WAY: u8 = 0x40;
const EVENT: u8 = 0x20;
const SERIALIZATION: u8 = 0x1f;

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Request, else response.
    pub request: bool,
    /// Whether an answer is wanted.
    pub two_way: bool,
    /// Heartbeat, read-only or writeable.
    pub event: bool,
    /// Serialization id of the body, 0 to 31.
    pub serialization: u8,
    /// Status of a response; 0 in requests.
    pub status: u8,
    /// A response repeats the id of its request.
    pub id: i64,
    /// Bytes of the body.
    pub length: u32,
}

impl Header {
    /// The header of a request.
    pub const fn request(id: i64, serialization: u8, two_way: bool) -> Self {
        Self { request: true, two_way, event: false, serialization, status: 0, id, length: 0 }
    }

    /// The header of a response.
    pub const fn response(id: i64, serialization: u8, status: u8) -> Self {
        Self { request: false, two_way: false, event: false, serialization, status, id, length: 0 }
    }

    /// The same header of an event.
    pub const fn of_event(mut self) -> Self {
        self.event = true;
        self
    }

    /// Writes the header into the [`HEADER_LENGTH`] free bytes at the beginning of `frame`; the length is that of the
    /// rest. A shorter `frame` becomes a frame without a body.
    pub fn write(&self, frame: &mut BytesMut) {
        if frame.len() < HEADER_LENGTH {
            frame.resize(HEADER_LENGTH, 0);
        }
        let length = u32::try_from(frame.len() - HEADER_LENGTH).unwrap_or(u32::MAX);
        frame[..2].copy_from_slice(&MAGIC.to_be_bytes());
        frame[2] = self.flags();
        frame[3] = self.status;
        frame[4..12].copy_from_slice(&self.id.to_be_bytes());
        frame[12..16].copy_from_slice(&length.to_be_bytes());
    }

    fn flags(&self) -> u8 {
        let flag = |on: bool, bit: u8| if on { bit } else { 0 };
        flag(self.request, REQUEST)
            | flag(self.two_way, TWO_WAY)
            | flag(self.event, EVENT)
            | (self.serialization & SERIALIZATION)
    }

    fn parse(mut bytes: impl Buf) -> Result<Self, FrameError> {
        let magic = bytes.get_u16();
        if magic != MAGIC {
            return Err(FrameError::Magic(magic));
        }
        let (flags, status, id, length) = (bytes.get_u8(), bytes.get_u8(), bytes.get_i64(), bytes.get_i32());
        let request = flags & REQUEST != 0;
        Ok(Self {
            request,
            two_way: request && flags & TWO_WAY != 0,
            event: flags & EVENT != 0,
            serialization: flags & SERIALIZATION,
            status,
            id,
            length: u32::try_from(length).map_err(|_| FrameError::Length { id, length })?,
        })
    }
}

/// One step of decoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// A whole frame.
    Frame(Header, Bytes),
    /// The header of a frame over the limit; its body is skipped as it comes in.
    TooLarge(Header),
}

/// Bytes that are no frame: the connection cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Not the dubbo protocol, or the stream is out of step.
    #[error("no dubbo frame: it begins with {0:#06x} instead of {MAGIC:#06x}")]
    Magic(u16),
    /// A body length below 0.
    #[error("a dubbo frame (request id {id}) with the body length {length}")]
    Length {
        /// Request id in the header.
        id: i64,
        /// The length.
        length: i32,
    },
}

/// Takes frames off a growing buffer. Reserves nothing: what it holds is what came in.
#[derive(Debug)]
pub struct Decoder {
    limit: usize,
    header: Option<Header>,
    skip: usize,
}

impl Decoder {
    /// A decoder that skips bodies of more than `limit` bytes (0 = unlimited).
    pub const fn new(limit: usize) -> Self {
        Self { limit, header: None, skip: 0 }
    }

    /// The next step; `None` when more bytes are needed.
    pub fn decode(&mut self, buffer: &mut BytesMut) -> Result<Option<Decoded>, FrameError> {
        if self.skip > 0 {
            let skipped = self.skip.min(buffer.len());
            buffer.advance(skipped);
            self.skip -= skipped;
            if self.skip > 0 {
                return Ok(None);
            }
        }
        let header = match self.header {
            Some(header) => header,
            None => match Self::header(buffer)? {
                Some(header) => header,
                None => return Ok(None),
            },
        };
        let length = header.length as usize;
        if self.is_over_limit(&header) {
            self.skip = length;
            return Ok(Some(Decoded::TooLarge(header)));
        }
        if buffer.len() < length {
            self.header = Some(header);
            return Ok(None);
        }
        self.header = None;
        Ok(Some(Decoded::Frame(header, buffer.split_to(length).freeze())))
    }

    fn header(buffer: &mut BytesMut) -> Result<Option<Header>, FrameError> {
        if buffer.len() < HEADER_LENGTH {
            // Text or garbage shows in the first bytes: do not wait for sixteen of them.
            let begin = buffer.len().min(2);
            if buffer[..begin] != MAGIC.to_be_bytes()[..begin] {
                let mut two = [0; 2];
                two[..begin].copy_from_slice(&buffer[..begin]);
                return Err(FrameError::Magic(u16::from_be_bytes(two)));
            }
            return Ok(None);
        }
        Header::parse(buffer.split_to(HEADER_LENGTH)).map(Some)
    }

    fn is_over_limit(&self, header: &Header) -> bool {
        let limit = if self.limit == 0 { usize::MAX } else { self.limit };
        header.length as usize > limit || (header.event && header.length > EVENT_LIMIT)
    }
}

/// The text of the reference for a body over the payload limit.
pub(crate) fn too_large(length: usize, limit: usize, channel: &str) -> String {
    format!("Data length too large: {length}, max payload: {limit}, channel: {channel}")
}
