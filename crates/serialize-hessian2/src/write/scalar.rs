//! Numbers, strings, dates and binary data, each in its shortest form.

use bytes::BufMut;

use super::Writer;
use crate::tag;

impl Writer<'_> {
    pub(super) fn bool(&mut self, value: bool) {
        self.out.put_u8(if value { tag::TRUE } else { tag::FALSE });
    }

    pub(super) fn int(&mut self, value: i32) {
        match value {
            -0x10..=0x2f => self.out.put_u8((i32::from(tag::INT_DIRECT_ZERO) + value) as u8),
            -0x800..=0x7ff => {
                self.out.put_slice(&[(i32::from(tag::INT_BYTE_ZERO) + (value >> 8)) as u8, value as u8]);
            }
            -0x4_0000..=0x3_ffff => {
                self.out.put_u8((i32::from(tag::INT_SHORT_ZERO) + (value >> 16)) as u8);
                self.out.put_u16(value as u16);
            }
            _ => {
                self.out.put_u8(tag::INT);
                self.out.put_i32(value);
            }
        }
    }

    pub(super) fn long(&mut self, value: i64) {
        match value {
            -0x08..=0x0f => self.out.put_u8((i64::from(tag::LONG_DIRECT_ZERO) + value) as u8),
            -0x800..=0x7ff => {
                self.out.put_slice(&[(i64::from(tag::LONG_BYTE_ZERO) + (value >> 8)) as u8, value as u8]);
            }
            -0x4_0000..=0x3_ffff => {
                self.out.put_u8((i64::from(tag::LONG_SHORT_ZERO) + (value >> 16)) as u8);
                self.out.put_u16(value as u16);
            }
            _ => match i32::try_from(value) {
                Ok(value) => {
                    self.out.put_u8(tag::LONG_INT);
                    self.out.put_i32(value);
                }
                Err(_) => {
                    self.out.put_u8(tag::LONG);
                    self.out.put_i64(value);
                }
            },
        }
    }

    pub(super) fn double(&mut self, value: f64) {
        // The sign of zero is only in the full form; Java loses it.
        let negative_zero = value == 0.0 && value.is_sign_negative();
        let whole = value as i32;
        if !negative_zero && f64::from(whole) == value {
            match whole {
                0 => return self.out.put_u8(tag::DOUBLE_ZERO),
                1 => return self.out.put_u8(tag::DOUBLE_ONE),
                -0x80..=0x7f => return self.out.put_slice(&[tag::DOUBLE_BYTE, whole as u8]),
                -0x8000..=0x7fff => {
                    self.out.put_u8(tag::DOUBLE_SHORT);
                    return self.out.put_i16(whole as i16);
                }
                _ => {}
            }
        }
        let thousandths = (value * 1_000.0) as i32;
        if !negative_zero && 0.001 * f64::from(thousandths) == value {
            self.out.put_u8(tag::DOUBLE_MILL);
            self.out.put_i32(thousandths);
        } else {
            self.out.put_u8(tag::DOUBLE);
            self.out.put_f64(value);
        }
    }

    pub(super) fn date(&mut self, millis: i64) {
        match i32::try_from(millis / 60_000) {
            Ok(minutes) if millis % 60_000 == 0 => {
                self.out.put_u8(tag::DATE_MINUTES);
                self.out.put_i32(minutes);
            }
            _ => {
                self.out.put_u8(tag::DATE_MILLIS);
                self.out.put_i64(millis);
            }
        }
    }

    pub(super) fn binary(&mut self, mut bytes: &[u8]) {
        while bytes.len() > tag::BINARY_CHUNK_BYTES {
            let (chunk, rest) = bytes.split_at(tag::BINARY_CHUNK_BYTES);
            self.out.put_u8(tag::BINARY_CHUNK);
            self.out.put_u16(chunk.len() as u16);
            self.out.put_slice(chunk);
            bytes = rest;
        }
        let len = bytes.len();
        if len <= tag::BINARY_DIRECT_MAX {
            self.out.put_u8(tag::BINARY_DIRECT + len as u8);
        } else if len <= tag::BINARY_SHORT_MAX {
            self.out.put_slice(&[tag::BINARY_SHORT + (len >> 8) as u8, len as u8]);
        } else {
            self.out.put_u8(tag::BINARY_LAST);
            self.out.put_u16(len as u16);
        }
        self.out.put_slice(bytes);
    }

    /// A string: its length counts UTF-16 units, and each unit is encoded on its own. So characters up to U+FFFF are
    /// the same bytes as in UTF-8, and those beyond are two units of three bytes each.
    pub(super) fn string(&mut self, text: &str) {
        let (mut units, same_bytes) = measure(text);
        let mut rest = text;
        while units > tag::STRING_CHUNK_UNITS {
            let (chunk, chunk_units) = first_units(rest, tag::STRING_CHUNK_UNITS);
            self.out.put_u8(tag::STRING_CHUNK);
            self.out.put_u16(chunk_units as u16);
            self.units_of(chunk, same_bytes);
            rest = &rest[chunk.len()..];
            units -= chunk_units;
        }
        self.last_string_head(units);
        self.units_of(rest, same_bytes);
    }

    /// A string that is not valid Unicode, by its units.
    pub(super) fn utf16(&mut self, units: &[u16]) {
        let mut rest = units;
        while rest.len() > tag::STRING_CHUNK_UNITS {
            let high = |unit: u16| (0xd800..0xdc00).contains(&unit);
            let len = tag::STRING_CHUNK_UNITS - usize::from(high(rest[tag::STRING_CHUNK_UNITS - 1]));
            let (chunk, tail) = rest.split_at(len);
            self.out.put_u8(tag::STRING_CHUNK);
            self.out.put_u16(len as u16);
            chunk.iter().for_each(|unit| self.unit(*unit));
            rest = tail;
        }
        self.last_string_head(rest.len());
        rest.iter().for_each(|unit| self.unit(*unit));
    }

    fn last_string_head(&mut self, units: usize) {
        if units <= tag::STRING_DIRECT_MAX {
            self.out.put_u8(tag::STRING_DIRECT + units as u8);
        } else if units <= tag::STRING_SHORT_MAX {
            self.out.put_slice(&[tag::STRING_SHORT + (units >> 8) as u8, units as u8]);
        } else {
            self.out.put_u8(tag::STRING_LAST);
            self.out.put_u16(units as u16);
        }
    }

    fn units_of(&mut self, text: &str, same_bytes: bool) {
        if same_bytes {
            return self.out.put_slice(text.as_bytes());
        }
        let mut start = 0;
        for (at, character) in text.char_indices().filter(|(_, character)| character.len_utf16() == 2) {
            self.out.put_slice(&text.as_bytes()[start..at]);
            for unit in character.encode_utf16(&mut [0; 2]) {
                self.unit(*unit);
            }
            start = at + 4;
        }
        self.out.put_slice(&text.as_bytes()[start..]);
    }

    fn unit(&mut self, unit: u16) {
        match unit {
            0..=0x7f => self.out.put_u8(unit as u8),
            0x80..=0x7ff => self.out.put_slice(&[0xc0 | (unit >> 6) as u8, 0x80 | (unit & 0x3f) as u8]),
            _ => self.out.put_slice(&[
                0xe0 | (unit >> 12) as u8,
                0x80 | (unit >> 6 & 0x3f) as u8,
                0x80 | (unit & 0x3f) as u8,
            ]),
        }
    }
}

/// UTF-16 units of a string (one per character, two from U+10000 on), and whether its bytes are the same in UTF-8.
fn measure(text: &str) -> (usize, bool) {
    if text.is_ascii() {
        return (text.len(), true);
    }
    let (mut characters, mut beyond) = (0, 0);
    for byte in text.bytes() {
        characters += usize::from(byte & 0xc0 != 0x80);
        beyond += usize::from(byte >= 0xf0);
    }
    (characters + beyond, beyond == 0)
}

/// The longest start of `text` of at most `most` units, and its units.
fn first_units(text: &str, most: usize) -> (&str, usize) {
    if text.is_ascii() {
        let len = text.len().min(most);
        return (&text[..len], len);
    }
    let mut units = 0;
    for (at, character) in text.char_indices() {
        let next = units + character.len_utf16();
        if next > most {
            return (&text[..at], units);
        }
        units = next;
    }
    (text, units)
}
