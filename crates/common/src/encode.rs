//! Form encoding as the registry writes node names, and its inverse.
//!
//! The alphabet is that of `java.net.URLEncoder`: `A-Z a-z 0-9 . - * _` stay, a space becomes `+`, every other byte
//! of the UTF-8 text becomes `%XX` in upper case. Encoders after RFC 3986 differ on `*`, `~` and the space, and a
//! node written by one of them is another node for everybody else.

use std::borrow::Cow;

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Encodes `text` once. Encoding an already encoded name encodes its `%` again; do it only when writing.
pub fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' | b'*' | b'_' => out.push(char::from(byte)),
            b' ' => out.push('+'),
            _ => {
                out.push('%');
                out.push(char::from(HEX[usize::from(byte >> 4)]));
                out.push(char::from(HEX[usize::from(byte & 15)]));
            }
        }
    }
    out
}

/// Decodes `text` once: `+` is a space, `%XX` a byte (either case). Borrows when there is nothing to decode.
///
/// Never fails: an escape that is cut off or not hexadecimal stays as it is, bytes that are not UTF-8 become
/// U+FFFD. (`java.net.URLDecoder` throws on the former; a whole provider list must not be lost to one bad child.)
pub fn decode(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let Some(mut at) = memchr::memchr2(b'%', b'+', bytes) else { return Cow::Borrowed(text) };
    let mut out = Vec::with_capacity(bytes.len());
    out.extend_from_slice(&bytes[..at]);
    while at < bytes.len() {
        let (byte, width) = match bytes[at] {
            b'+' => (b' ', 1),
            b'%' => escaped_byte(&bytes[at..]).map_or((b'%', 1), |byte| (byte, 3)),
            byte => (byte, 1),
        };
        out.push(byte);
        at += width;
        let plain = memchr::memchr2(b'%', b'+', &bytes[at..]).unwrap_or(bytes.len() - at);
        out.extend_from_slice(&bytes[at..at + plain]);
        at += plain;
    }
    Cow::Owned(
        String::from_utf8(out).unwrap_or_else(|bad| String::from_utf8_lossy(bad.as_bytes()).into_owned()),
    )
}

/// The byte that the escape at the start of `rest` stands for.
pub(crate) fn escaped_byte(rest: &[u8]) -> Option<u8> {
    match rest {
        [b'%', high, low, ..] => Some(hex_value(*high)? << 4 | hex_value(*low)?),
        _ => None,
    }
}

fn hex_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}
