//! The text format of `java.util.Properties`, as far as the cache file needs it.

use std::collections::BTreeMap;
use std::fmt::Write;

/// Entries as text, sorted by key. Everything beyond ASCII is escaped, as Java reads the file as ISO-8859-1.
pub(crate) fn write(entries: &BTreeMap<String, String>, comments: &[&str]) -> String {
    let mut text = String::new();
    for comment in comments {
        text.push('#');
        text.push_str(comment);
        text.push('\n');
    }
    for (key, value) in entries {
        escape(key, true, &mut text);
        text.push('=');
        escape(value, false, &mut text);
        text.push('\n');
    }
    text
}

/// Entries of a text. Never fails: a malformed escape stands for itself, a later key wins.
pub(crate) fn read(bytes: &[u8]) -> BTreeMap<String, String> {
    let text: String = bytes.iter().map(|&byte| char::from(byte)).collect();
    let mut entries = BTreeMap::new();
    for line in logical_lines(&text) {
        let (key, value) = split(&line);
        entries.insert(unescape(key), unescape(value));
    }
    entries
}

fn escape(text: &str, is_key: bool, out: &mut String) {
    for (at, unit) in text.encode_utf16().enumerate() {
        match u8::try_from(unit).map(char::from) {
            Ok(' ') if is_key || at == 0 => out.push_str("\\ "),
            Ok('\t') => out.push_str("\\t"),
            Ok('\n') => out.push_str("\\n"),
            Ok('\r') => out.push_str("\\r"),
            Ok(special @ ('\\' | ':' | '=' | '#' | '!')) => {
                out.push('\\');
                out.push(special);
            }
            Ok(plain @ ' '..='~') => out.push(plain),
            _ => {
                // Writing to a string does not fail.
                let _ = write!(out, "\\u{unit:04X}");
            }
        }
    }
}

/// Lines without comments and blank ones, those that end in a backslash joined with the next.
fn logical_lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut open: Option<String> = None;
    for line in text.split(['\n', '\r']) {
        let line = line.trim_start_matches([' ', '\t', '\x0c']);
        if open.is_none() && (line.is_empty() || line.starts_with(['#', '!'])) {
            continue;
        }
        let mut whole = open.take().unwrap_or_default();
        let backslashes = line.bytes().rev().take_while(|byte| *byte == b'\\').count();
        if backslashes % 2 == 1 {
            whole.push_str(&line[..line.len() - 1]);
            open = Some(whole);
        } else {
            whole.push_str(line);
            lines.push(whole);
        }
    }
    lines.extend(open);
    lines
}

/// Splits at the first separator that is not escaped.
fn split(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let blank = [' ', '\t', '\x0c'];
    for (at, char) in line.char_indices() {
        match char {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '=' | ':' => return (&line[..at], line[at + 1..].trim_start_matches(blank)),
            ' ' | '\t' | '\x0c' => {
                let rest = line[at..].trim_start_matches(blank);
                let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest);
                return (&line[..at], rest.trim_start_matches(blank));
            }
            _ => {}
        }
    }
    (line, "")
}

fn unescape(text: &str) -> String {
    let mut units: Vec<u16> = Vec::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(char) = rest.next() {
        if char != '\\' {
            units.extend(char.encode_utf16(&mut [0; 2]).iter());
            continue;
        }
        match rest.next() {
            Some('t') => units.push(9),
            Some('n') => units.push(10),
            Some('r') => units.push(13),
            Some('f') => units.push(12),
            Some('u') => {
                let digits = rest.as_str().get(..4).and_then(|digits| u16::from_str_radix(digits, 16).ok());
                match digits {
                    Some(unit) => {
                        units.push(unit);
                        rest.nth(3);
                    }
                    None => units.push(u16::from(b'u')),
                }
            }
            Some(other) => units.extend(other.encode_utf16(&mut [0; 2]).iter()),
            None => {}
        }
    }
    String::from_utf16_lossy(&units)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_are_escaped_as_java_escapes_them() {
        let entries =
            BTreeMap::from([("g/demo.Foo:1.0".to_owned(), "dubbo://h:1/demo.Foo?a=é x".to_owned())]);
        let text = write(&entries, &["Dubbo Registry Cache"]);
        assert_eq!(text, "#Dubbo Registry Cache\ng/demo.Foo\\:1.0=dubbo\\://h\\:1/demo.Foo?a\\=\\u00E9 x\n");
        assert_eq!(read(text.as_bytes()), entries);
    }

    #[test]
    fn what_java_writes_is_read() {
        let text = b"#c\r\n! c\n  k1 : v1\nk\\:2=a\\\n   b\nk3\nk4 v\\u00e94 \n";
        let expected = [("k1", "v1"), ("k3", ""), ("k4", "v\u{e9}4 "), ("k:2", "ab")];
        assert_eq!(read(text), expected.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(entries: BTreeMap<String, String>) {
            prop_assert_eq!(read(write(&entries, &[]).as_bytes()), entries);
        }

        #[test]
        fn any_bytes_are_read_without_harm(bytes: Vec<u8>) {
            read(&bytes);
        }
    }
}
