//! As much of protobuf as the messages need: fields of a message, one after the other. Messages in messages are read where they are
//! known, so no input decides how deep reading goes.

use bytes::{BufMut, BytesMut};
use dubhe_core::serialize::SerializeError;

/// A field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field<'a> {
    /// An integer; a negative one has all upper bits set.
    Number(u64),
    /// A string, bytes or a message.
    Bytes(&'a [u8]),
    /// Of a fixed size: nothing that is known here has one.
    Fixed,
}

impl<'a> Field<'a> {
    /// The bytes of a string or message.
    pub(crate) fn bytes(self) -> Result<&'a [u8], SerializeError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            other => Err(SerializeError::new(format!("a string or message expected, found {other:?}"))),
        }
    }

    pub(crate) fn text(self) -> Result<String, SerializeError> {
        std::str::from_utf8(self.bytes()?)
            .map(str::to_owned)
            .map_err(|error| SerializeError::new(format!("a string is not UTF-8: {error}")))
    }

    /// A 32-bit integer: what is beyond that is cut off, as protobuf does.
    pub(crate) fn int32(self) -> Result<i32, SerializeError> {
        match self {
            Self::Number(number) => Ok(number as i32),
            other => Err(SerializeError::new(format!("an integer expected, found {other:?}"))),
        }
    }
}

/// The fields of a message, in their order, by number. Ends after the first error.
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    fn read(&mut self) -> Result<(u64, Field<'a>), SerializeError> {
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => Field::Number(self.varint()?),
            1 => self.take(8).map(|_| Field::Fixed)?,
            2 => {
                let length = self.varint()?;
                Field::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Field::Fixed)?,
            other => return Err(SerializeError::new(format!("unknown wire type {other} in a message"))),
        };
        match tag >> 3 {
            0 => Err(SerializeError::new("a field of a message has the number 0")),
            number => Ok((number, value)),
        }
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], SerializeError> {
        let split = usize::try_from(length).ok().and_then(|length| self.rest.split_at_checked(length));
        let (taken, rest) = split.ok_or_else(|| {
            let left = self.rest.len();
            SerializeError::new(format!("a field has {length} bytes in a message of which {left} are left"))
        })?;
        self.rest = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, SerializeError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(SerializeError::new("an integer of more than 10 bytes in a message"))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Field<'a>), SerializeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.read();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

/// Appends a field with a string, bytes or a message; one without content too.
pub(crate) fn put_bytes(out: &mut BytesMut, number: u8, bytes: &[u8]) {
    debug_assert!((1..16).contains(&number), "the tag of a field is one byte here");
    out.put_u8(number << 3 | 2);
    let mut length = bytes.len();
    while length >= 0x80 {
        out.put_u8(length as u8 | 0x80);
        length >>= 7;
    }
    out.put_u8(length as u8);
    out.put_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_every_kind_are_read_and_unknown_ones_can_be_skipped() {
        // 1: 150; 2: "ab"; 3: fixed64; 4: fixed32; 16: -1.
        let message = b"\x08\x96\x01\x12\x02ab\x19\0\0\0\0\0\0\0\0\x25\0\0\0\0\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
        let fields: Vec<_> = Fields::of(message).map(Result::unwrap).collect();
        let minus_one = Field::Number(u64::MAX);
        assert_eq!(
            fields,
            [
                (1, Field::Number(150)),
                (2, Field::Bytes(b"ab")),
                (3, Field::Fixed),
                (4, Field::Fixed),
                (16, minus_one)
            ]
        );
        assert_eq!(minus_one.int32().unwrap(), -1);
        assert!(
            minus_one.text().is_err()
                && Field::Fixed.int32().is_err()
                && Field::Bytes(b"\xff").text().is_err()
        );
    }

    #[test]
    fn malformed_messages_are_errors_and_end_there() {
        let endless = [0x08; 1].iter().chain(&[0xff; 20]).copied().collect::<Vec<u8>>();
        let huge = b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01".to_vec();
        for message in
            [b"\x0a\x05abc".to_vec(), b"\x0b".to_vec(), b"\x08".to_vec(), b"\x02\0".to_vec(), endless, huge]
        {
            let fields: Vec<_> = Fields::of(&message).collect();
            assert!(matches!(fields.as_slice(), [Err(_)]), "{message:?}: {fields:?}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        for length in [0, 1, 127, 128, 300, 20_000] {
            let (bytes, mut out) = (vec![7; length], BytesMut::new());
            put_bytes(&mut out, 3, &bytes);
            let fields: Vec<_> = Fields::of(&out).map(Result::unwrap).collect();
            assert_eq!(fields, [(3, Field::Bytes(&bytes))]);
        }
    }
}
