use crate::error::RuleError;

/// The tokens of one part of a rule: a run of separators, white space, a run of anything else.
///
/// What cannot take part in a token is skipped, as the pattern search of Dubbo's `ConditionStateRouter` does.
pub(super) struct Tokens<'a> {
    text: &'a str,
    at: usize,
    /// Whether separators were skipped so far: `host ! = x`, `host =`.
    pub(super) skipped_separators: bool,
}

#[derive(Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) separator: &'a str,
    pub(super) content: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, at: 0, skipped_separators: false }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let bytes = self.text.as_bytes();
        let run = |from: usize, in_run: fn(u8) -> bool| {
            bytes[from..].iter().position(|byte| !in_run(*byte)).map_or(bytes.len(), |length| from + length)
        };
        loop {
            let at = self.at;
            let separator_end = run(at, is_separator);
            let content_start = run(separator_end, is_space);
            let content_end = run(content_start, is_content);
            if content_end > content_start {
                self.at = content_end;
                // All boundaries are next to an ASCII byte or an end of the text.
                let separator = &self.text[at..separator_end];
                return Some(Token { separator, content: &self.text[content_start..content_end], at });
            }
            self.skipped_separators |= separator_end > at;
            if content_start == bytes.len() {
                return None;
            }
            // Separators and white space, then separators again: the first ones lead nowhere.
            self.at = content_start;
        }
    }
}

impl Token<'_> {
    pub(super) fn refused(&self, part: &str) -> RuleError {
        RuleError::Separator {
            part: part.to_owned(),
            separator: self.separator.to_owned(),
            index: part[..self.at].encode_utf16().count(),
            content: self.content.to_owned(),
        }
    }
}

const fn is_separator(byte: u8) -> bool {
    matches!(byte, b'&' | b'!' | b'=' | b',')
}

/// White space of Java's regular expressions.
const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

const fn is_content(byte: u8) -> bool {
    !is_separator(byte) && !is_space(byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<(usize, &str, &str)> {
        Tokens::new(text).map(|token| (token.at, token.separator, token.content)).collect()
    }

    #[test]
    fn separators_and_content_alternate() {
        assert_eq!(
            tokens("a = b&c!=d , e"),
            [(0, "", "a"), (2, "=", "b"), (5, "&", "c"), (7, "!=", "d"), (11, ",", "e")]
        );
    }

    #[test]
    fn what_leads_nowhere_is_skipped() {
        assert_eq!(tokens("host ! = x"), [(0, "", "host"), (7, "=", "x")]);
        assert_eq!(tokens("env != "), [(0, "", "env")]);
        assert_eq!(tokens(" & "), []);
    }

    #[test]
    fn text_of_many_bytes_per_character_is_kept_whole() {
        assert_eq!(tokens("région=杭州,北京"), [(0, "", "région"), (7, "=", "杭州"), (14, ",", "北京")]);
    }
}
