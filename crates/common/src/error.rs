//! What can be wrong with the text of a URL.

use thiserror::Error;

/// Why a text is not a URL, or a parameter is not what was asked for.
///
/// Messages never hold the password of the text they complain about.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UrlError {
    /// The text starts with `://` or `:/`.
    #[error("url `{text}` has no protocol before `:` at offset 0; write it as `protocol://host:port/path`")]
    MissingProtocol {
        /// The text, shortened.
        text: String,
    },
    /// What follows the last `:` of the address is not a port.
    #[error(
        "`{port}` at offset {offset} of url `{text}` is not a port; use a number from 0 to 65535, \
         and brackets around an IPv6 address"
    )]
    BadPort {
        /// What stands where the port should be.
        port: String,
        /// Byte offset of it in the (decoded) text before the parameters.
        offset: usize,
        /// The text, shortened.
        text: String,
    },
    /// The text is longer than [`MAX_URL_BYTES`](crate::defaults::MAX_URL_BYTES).
    #[error(
        "url of {length} bytes starting `{text}` is longer than the limit of {limit}; shorten its parameters"
    )]
    TooLong {
        /// Bytes of the text.
        length: usize,
        /// The limit in bytes.
        limit: usize,
        /// The text, shortened.
        text: String,
    },
    /// There are more parameters than [`MAX_URL_PARAMS`](crate::defaults::MAX_URL_PARAMS).
    #[error("url `{text}` has more than {limit} parameters; remove some")]
    TooManyParams {
        /// The limit.
        limit: usize,
        /// The text, shortened.
        text: String,
    },
    /// A password was given to a builder without a user.
    #[error("url to {address} has a password but no user; set the user as well or drop the password")]
    PasswordWithoutUser {
        /// `host:port`.
        address: String,
    },
    /// A parameter that should be a number is not one.
    #[error("parameter `{name}` is `{value}`, which is not a whole number; correct it or remove it")]
    NotANumber {
        /// Name of the parameter.
        name: String,
        /// Its value, shortened.
        value: String,
    },
    /// A service key without an interface.
    #[error("service key `{text}` names no interface; write it as `group/interface:version`")]
    BadServiceKey {
        /// The text, shortened.
        text: String,
    },
    /// A registry address without a server.
    #[error("registry address `{text}` names no server; write it as `protocol://host:port?backup=host:port`")]
    EmptyAddress {
        /// The text, shortened.
        text: String,
    },
}

/// Longest excerpt of a text in a message, in bytes.
const MAX_EXCERPT_BYTES: usize = 160;

/// The start of `text` without user info and parameters, fit for a message.
pub(crate) fn excerpt(text: &str) -> String {
    let params_at = [text.find('?'), text.find("%3F"), text.find("%3f")].into_iter().flatten().min();
    let body = &text[..params_at.unwrap_or(text.len())];
    let after_protocol = body.find("://").map_or(0, |at| at + 3);
    let shown = match (body[after_protocol..].rfind('@'), body.rfind("%40")) {
        (Some(at), _) => format!("{}***{}", &body[..after_protocol], &body[after_protocol + at..]),
        // The encoded form of the same.
        (None, Some(at)) => format!("***{}", &body[at..]),
        (None, None) => body.to_owned(),
    };
    let mut end = shown.len().min(MAX_EXCERPT_BYTES);
    while !shown.is_char_boundary(end) {
        end -= 1;
    }
    if end < shown.len() || params_at.is_some() { format!("{}…", &shown[..end]) } else { shown }
}
