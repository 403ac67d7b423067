//! Strings and binary data: one chunk or several.

use bytes::{Bytes, BytesMut};
use dubhe_core::value::Value;

use super::{Reader, Result};
use crate::tag;

/// A string as it came: a Rust string where that is possible.
pub(super) enum Text {
    Str(String),
    Utf16(Vec<u16>),
}

impl From<Text> for Value {
    fn from(text: Text) -> Self {
        match text {
            Text::Str(text) => text.into(),
            Text::Utf16(units) => Self::Utf16(units.into()),
        }
    }
}

impl Reader {
    /// The string whose first chunk has tag `first`, without a copy, when it is one chunk that is the same in UTF-8: no
    /// characters beyond U+FFFF.
    pub(super) fn plain(&mut self, first: u8) -> Result<Option<&str>> {
        if first == tag::STRING_CHUNK {
            return Ok(None);
        }
        let back = self.at;
        let (units, _) = self.string_chunk(back, first)?;
        let start = self.at;
        let end = match self.input.get(start..start + units) {
            Some(bytes) if bytes.is_ascii() => Some(start + units),
            _ => after_units(&self.input, start, units),
        };
        let bytes = end.and_then(|end| self.input.get(start..end));
        match bytes.and_then(|bytes| std::str::from_utf8(bytes).ok()) {
            Some(text) => {
                self.at = start + text.len();
                Ok(Some(text))
            }
            None => {
                self.at = back;
                Ok(None)
            }
        }
    }

    /// The string whose first chunk has tag `first`; an error when it is not valid Unicode.
    pub(super) fn string(&mut self, first: u8) -> Result<String> {
        let at = self.at;
        match self.text(first)? {
            Text::Str(text) => Ok(text),
            Text::Utf16(_) => Err(self.error(
                at,
                "a string with a lone surrogate, which no Rust string holds: read it as a dynamic value",
            )),
        }
    }

    /// The string whose first chunk has tag `first`.
    pub(super) fn text(&mut self, first: u8) -> Result<Text> {
        if let Some(text) = self.plain(first)? {
            return Ok(Text::Str(text.to_owned()));
        }
        let mut units = Units::default();
        let mut first = first;
        loop {
            let at = self.at;
            let (len, last) = self.string_chunk(at, first)?;
            self.units(len, &mut units)?;
            if last {
                return Ok(units.finish());
            }
            first = self.byte()?;
        }
    }

    /// Length in UTF-16 units of a chunk, and whether it is the last.
    fn string_chunk(&mut self, at: usize, first: u8) -> Result<(usize, bool)> {
        let (len, last) = match first {
            0x00..=0x1f => (usize::from(first), true),
            0x30..=0x33 => {
                let [low] = self.bytes()?;
                (usize::from(first - tag::STRING_SHORT) << 8 | usize::from(low), true)
            }
            tag::STRING_CHUNK | tag::STRING_LAST => {
                (usize::from(u16::from_be_bytes(self.bytes()?)), first == tag::STRING_LAST)
            }
            _ => return Err(self.error(at, format_args!("byte {first:#04x} where a string goes on"))),
        };
        // Each unit takes a byte at least, except in 4-byte UTF-8, where two units take four.
        if len > self.left() { Err(self.truncated()) } else { Ok((len, last)) }
    }

    /// Decodes `len` UTF-16 units: one to three bytes each, or real UTF-8 of four bytes for two.
    fn units(&mut self, len: usize, out: &mut Units) -> Result<()> {
        let input = self.input.clone();
        let mut left = len;
        while left > 0 {
            let rest = &input[self.at..];
            let run = rest[..left.min(rest.len())].iter().position(|byte| !byte.is_ascii());
            let run = run.unwrap_or(left.min(rest.len()));
            if run > 0 {
                out.ascii(&rest[..run]);
                self.at += run;
                left -= run;
                continue;
            }
            let continuation = |index: usize| match rest.get(index) {
                Some(byte) if byte & 0xc0 == 0x80 => Ok(u32::from(byte & 0x3f)),
                Some(_) => Err(self.error(self.at, "a string has bytes that are no character")),
                None => Err(self.truncated()),
            };
            let Some(first) = rest.first().copied() else { return Err(self.truncated()) };
            let lead = u32::from(first);
            match first {
                0xc0..=0xdf => {
                    out.unit(((lead & 0x1f) << 6 | continuation(1)?) as u16);
                    self.at += 2;
                    left -= 1;
                }
                0xe0..=0xef => {
                    out.unit(((lead & 0x0f) << 12 | continuation(1)? << 6 | continuation(2)?) as u16);
                    self.at += 3;
                    left -= 1;
                }
                0xf0..=0xf7 => {
                    let code = (lead & 0x07) << 18
                        | continuation(1)? << 12
                        | continuation(2)? << 6
                        | continuation(3)?;
                    let character = char::from_u32(code)
                        .ok_or_else(|| self.error(self.at, "a string has bytes that are no character"))?;
                    character.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.unit(*unit));
                    self.at += 4;
                    // Some writers count such a character once; at the end of a string that can be told.
                    left = left.saturating_sub(2);
                }
                _ => return Err(self.error(self.at, "a string has bytes that are no character")),
            }
        }
        Ok(())
    }

    /// The binary data whose first chunk has tag `first`; one chunk is not copied.
    pub(super) fn binary(&mut self, first: u8) -> Result<Bytes> {
        let (chunk, last) = self.binary_chunk(first)?;
        if last {
            return Ok(chunk);
        }
        let mut whole = BytesMut::from(chunk);
        loop {
            let next = self.byte()?;
            let (chunk, last) = self.binary_chunk(next)?;
            whole.extend_from_slice(&chunk);
            if last {
                return Ok(whole.freeze());
            }
        }
    }

    fn binary_chunk(&mut self, first: u8) -> Result<(Bytes, bool)> {
        let (len, last) = match first {
            0x20..=0x2f => (usize::from(first - tag::BINARY_DIRECT), true),
            0x34..=0x37 => {
                let [low] = self.bytes()?;
                (usize::from(first - tag::BINARY_SHORT) << 8 | usize::from(low), true)
            }
            tag::BINARY_CHUNK | tag::BINARY_LAST => {
                (usize::from(u16::from_be_bytes(self.bytes()?)), first == tag::BINARY_LAST)
            }
            _ => {
                return Err(
                    self.error(self.at - 1, format_args!("byte {first:#04x} where binary data goes on"))
                );
            }
        };
        if len > self.left() {
            return Err(self.truncated());
        }
        self.at += len;
        Ok((self.input.slice(self.at - len..self.at), last))
    }
}

/// Where `units` characters end that begin at `at`, going by their first bytes; `None` if one is not as in UTF-8, that
/// is half of a pair, or of four bytes.
fn after_units(input: &[u8], at: usize, units: usize) -> Option<usize> {
    (0..units).try_fold(at, |at, _| match input.get(at)? {
        0xc0..=0xdf => Some(at + 2),
        0xed if input.get(at + 1)? >= &0xa0 => None,
        0xe0..=0xef => Some(at + 3),
        0xf0.. => None,
        _ => Some(at + 1),
    })
}

/// UTF-16 units on their way into a string. Surrogates of a pair may come from two chunks.
#[derive(Default)]
struct Units {
    text: String,
    high: Option<u16>,
    /// From the first lone surrogate on, all units.
    wide: Option<Vec<u16>>,
}

impl Units {
    fn ascii(&mut self, run: &[u8]) {
        self.flush();
        match (&mut self.wide, std::str::from_utf8(run)) {
            (None, Ok(run)) => self.text.push_str(run),
            (wide, _) => wide.get_or_insert_default().extend(run.iter().map(|byte| u16::from(*byte))),
        }
    }

    fn unit(&mut self, unit: u16) {
        match (unit, self.high) {
            (0xdc00..=0xdfff, Some(high)) => {
                self.high = None;
                self.push(0x1_0000 + (u32::from(high & 0x3ff) << 10 | u32::from(unit & 0x3ff)));
            }
            (0xd800..=0xdbff, _) => {
                self.flush();
                self.high = Some(unit);
            }
            _ => {
                self.flush();
                self.push(u32::from(unit));
            }
        }
    }

    /// A high surrogate that no low one follows is lone.
    fn flush(&mut self) {
        if let Some(high) = self.high.take() {
            self.push(u32::from(high));
        }
    }

    fn push(&mut self, code: u32) {
        match (&mut self.wide, char::from_u32(code)) {
            (None, Some(character)) => self.text.push(character),
            (Some(wide), Some(character)) => wide.extend_from_slice(character.encode_utf16(&mut [0; 2])),
            (wide, None) => {
                wide.get_or_insert_with(|| self.text.encode_utf16().collect()).push(code as u16);
            }
        }
    }

    fn finish(mut self) -> Text {
        self.flush();
        match self.wide {
            None => Text::Str(self.text),
            Some(units) => Text::Utf16(units),
        }
    }
}
