//! The two text forms of a URL, cut into borrowed parts.
//!
//! Follows `URLStrParser` of Dubbo 3.1, with its faults mended: in the encoded form a pair without a value keeps
//! its whole name, and raw and escaped separators are treated alike.

use std::borrow::Cow;
use std::net::Ipv6Addr;

use crate::defaults::{MAX_URL_BYTES, MAX_URL_PARAMS};
use crate::encode::{decode, escaped_byte};
use crate::error::{UrlError, excerpt};
use crate::keys;
use crate::params::sort_last_wins;

/// Names with values, sorted, each name once.
pub(crate) type Pairs<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

/// What stands before the parameters.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Body<'a> {
    pub(crate) protocol: &'a str,
    pub(crate) user: Option<&'a str>,
    pub(crate) password: Option<&'a str>,
    pub(crate) host: &'a str,
    pub(crate) port: u16,
    pub(crate) path: Option<&'a str>,
}

/// A text split into the part before the parameters and the parameters.
pub(crate) struct Halves<'a> {
    pub(crate) body: Cow<'a, str>,
    pub(crate) pairs: Pairs<'a>,
}

/// Where the parameters of a node's name begin, and how they are written.
pub(crate) enum Form<'a> {
    /// The whole name is percent-encoded once. Both parts are still escaped.
    Encoded { body: &'a str, params: &'a str },
    /// The name is a URL as it is.
    Decoded,
}

/// Splits the decoded form. Values keep their escapes.
pub(crate) fn decoded(text: &str) -> Result<Halves<'_>, UrlError> {
    check_length(text)?;
    let (body, params) = text.split_once('?').unwrap_or((text, ""));
    let pairs = params.split(['&', ';']).map(|pair| {
        let pair = pair.trim_start_matches('=');
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (Cow::Borrowed(name), Cow::Borrowed(value))
    });
    Ok(Halves { body: Cow::Borrowed(body), pairs: settle(pairs, text)? })
}

/// Splits the encoded form: one whole URL percent-encoded once, as a registry node is named.
///
/// A text whose first `?` is not escaped is taken for the decoded form, as registries of old versions hold it.
pub(crate) fn encoded(text: &str) -> Result<Halves<'_>, UrlError> {
    match form(text)? {
        Form::Decoded => decoded(text),
        Form::Encoded { body, params } => {
            Ok(Halves { body: decode(body), pairs: encoded_pairs(params, text)? })
        }
    }
}

/// Tells the two forms apart and finds the parameters.
pub(crate) fn form(text: &str) -> Result<Form<'_>, UrlError> {
    check_length(text)?;
    let escaped = find_escape(text, b'?');
    let (at, width) = match (escaped, text[..escaped.unwrap_or(text.len())].find('?')) {
        (_, Some(raw)) if is_escaped_body(&text[..raw]) => (raw, 1),
        (_, Some(_)) => return Ok(Form::Decoded),
        (Some(escaped), _) => (escaped, 3),
        (None, _) => (text.len(), 0),
    };
    Ok(Form::Encoded { body: &text[..at], params: &text[at + width..] })
}

/// Cuts the part before the parameters.
pub(crate) fn body(text: &str) -> Result<Body<'_>, UrlError> {
    let whole = text.split('#').next().unwrap_or_default();
    let (protocol, mut rest) = match protocol_ends(whole) {
        (Some(0), _) | (None, Some(0)) => return Err(UrlError::MissingProtocol { text: excerpt(text) }),
        (Some(at), _) => (&whole[..at], &whole[at + 3..]),
        // The form `file:/path` keeps the slash of its path.
        (None, Some(at)) => (&whole[..at], &whole[at + 1..]),
        (None, None) => ("", whole),
    };
    let mut path = None;
    if let Some(at) = rest.find('/') {
        path = Some(rest[at..].trim_start_matches('/')).filter(|path| !path.is_empty());
        rest = &rest[..at];
    }
    let (mut user, mut password) = (None, None);
    if let Some(at) = rest.rfind('@') {
        let login = &rest[..at];
        rest = &rest[at + 1..];
        (user, password) = match login.split_once(':') {
            Some((user, password)) => (Some(user), Some(password)),
            None => (Some(login), None),
        };
        user = user.filter(|user| !user.is_empty());
        password = password.filter(|_| user.is_some());
    }
    let (host, port) = host_and_port(rest, whole)?;
    Ok(Body { protocol, user, password, host, port, path })
}

/// The first `://` and, unless that comes first, the first `:/`.
fn protocol_ends(whole: &str) -> (Option<usize>, Option<usize>) {
    let mut single = None;
    let double = whole.match_indices(':').map(|(at, _)| at).find(|at| {
        let behind = &whole.as_bytes()[at + 1..];
        if behind.starts_with(b"/") {
            single.get_or_insert(*at);
        }
        behind.starts_with(b"//")
    });
    (double, single)
}

/// Splits `host:port`. IPv6 literals are recognised with and without brackets and scope.
///
/// `fd00::1` alone is a host: the last colon separates a port only where a host is left over that can be one.
fn host_and_port<'a>(rest: &'a str, whole: &str) -> Result<(&'a str, u16), UrlError> {
    let bad = |port: &str| {
        // Both are parts of one text.
        let offset = port.as_ptr().addr() - whole.as_ptr().addr();
        UrlError::BadPort { port: excerpt(port), offset, text: excerpt(whole) }
    };
    if rest.starts_with('[')
        && let Some(end) = rest.find(']')
    {
        let (host, port) = rest.split_at(end + 1);
        return match port.strip_prefix(':') {
            Some(port) => Ok((host, port_number(port).ok_or_else(|| bad(port))?)),
            None if port.is_empty() => Ok((host, 0)),
            None => Err(bad(port)),
        };
    }
    let Some(at) = rest.rfind(':') else { return Ok((rest, 0)) };
    let (host, port) = (&rest[..at], &rest[at + 1..]);
    let ends_whole = port.is_empty() && whole.ends_with(rest);
    let scoped = port.contains('%');
    let bare_ipv6 = || is_ipv6(rest) && (!is_ipv6(host) || port_number(port).is_none());
    if ends_whole || scoped || bare_ipv6() {
        return Ok((rest, 0));
    }
    Ok((host, port_number(port).ok_or_else(|| bad(port))?))
}

/// A port as Java reads an `int`; what is below zero counts as "no port".
fn port_number(text: &str) -> Option<u16> {
    let number: i32 = text.parse().ok()?;
    u16::try_from(number.max(0)).ok()
}

pub(crate) fn is_ipv6(text: &str) -> bool {
    // The shortest has two colons, and most hosts have none.
    text.bytes().filter(|byte| *byte == b':').count() >= 2
        && text.split('%').next().unwrap_or_default().parse::<Ipv6Addr>().is_ok()
}

fn check_length(text: &str) -> Result<(), UrlError> {
    if text.len() <= MAX_URL_BYTES {
        return Ok(());
    }
    Err(UrlError::TooLong { length: text.len(), limit: MAX_URL_BYTES, text: excerpt(text) })
}

/// Pairs of the escaped parameters, sorted. `text` is the whole name, for the error.
pub(crate) fn encoded_pairs<'a>(params: &'a str, text: &str) -> Result<Pairs<'a>, UrlError> {
    let bytes = params.as_bytes();
    let mut pairs = Vec::new();
    let (mut start, mut at) = (0, 0);
    while at <= bytes.len() {
        let Some(width) = separator_at(&bytes[at..]) else {
            at += 1;
            continue;
        };
        pairs.push(encoded_pair(&params[start..at]));
        at += width;
        start = at;
        if width == 0 {
            break;
        }
    }
    settle(pairs.into_iter(), text)
}

/// Width of the separator at the start of `rest`, raw or escaped; the end counts as one of width zero.
pub(crate) fn separator_at(rest: &[u8]) -> Option<usize> {
    match rest {
        [] => Some(0),
        [b'&' | b';', ..] => Some(1),
        [b'%', ..] if matches!(escaped_byte(rest), Some(b'&' | b';')) => Some(3),
        _ => None,
    }
}

fn encoded_pair(mut pair: &str) -> (Cow<'_, str>, Cow<'_, str>) {
    loop {
        match equals_at(pair) {
            Some((0, width)) => pair = &pair[width..],
            Some((at, width)) => return (decode(&pair[..at]), decode(&pair[at + width..])),
            None => return (decode(pair), Cow::Borrowed("")),
        }
    }
}

/// The first `=`, raw or escaped, with its width.
fn equals_at(pair: &str) -> Option<(usize, usize)> {
    match (pair.find('='), find_escape(pair, b'=')) {
        (Some(raw), escaped) if escaped.is_none_or(|at| raw < at) => Some((raw, 1)),
        (_, Some(at)) => Some((at, 3)),
        (_, None) => None,
    }
}

/// Offset of the first escape of `byte`.
fn find_escape(text: &str, byte: u8) -> Option<usize> {
    let bytes = text.as_bytes();
    memchr::memchr_iter(b'%', bytes).find(|&at| escaped_byte(&bytes[at..]) == Some(byte))
}

/// Whether the text before a raw `?` is encoded all the same.
fn is_escaped_body(body: &str) -> bool {
    !body.contains("://") && find_escape(body, b':').is_some() && find_escape(body, b'/').is_some()
}

/// Sorts pairs in reading order: the last of one name wins, and `default.x` stands in for an `x` that is not there.
fn settle<'a>(
    pairs: impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)>,
    text: &str,
) -> Result<Pairs<'a>, UrlError> {
    let mut explicit = Pairs::new();
    for pair in pairs.filter(|(name, _)| !name.is_empty()) {
        if explicit.len() == MAX_URL_PARAMS {
            return Err(UrlError::TooManyParams { limit: MAX_URL_PARAMS, text: excerpt(text) });
        }
        explicit.push(pair);
    }
    // The first `default.x` in reading order counts, so the implied ones go in front in reverse.
    let mut all: Pairs<'a> =
        explicit.iter().rev().filter_map(|(name, value)| Some((plain_name(name)?, value.clone()))).collect();
    all.append(&mut explicit);
    sort_last_wins(&mut all);
    Ok(all)
}

/// `x` of `default.x`.
fn plain_name<'a>(name: &Cow<'a, str>) -> Option<Cow<'a, str>> {
    let plain = match name {
        Cow::Borrowed(name) => Cow::Borrowed(name.strip_prefix(keys::DEFAULT_PREFIX)?),
        Cow::Owned(name) => Cow::Owned(name.strip_prefix(keys::DEFAULT_PREFIX)?.to_owned()),
    };
    (!plain.is_empty()).then_some(plain)
}
