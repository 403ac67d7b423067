//! What the names of a service's nodes have in common, found without reading their parameters.
//!
//! Two instances differ in host, `pid` and `timestamp`. The escaped parameters without the latter two are one text
//! for all of them, and a text that was read once need not be read again (as `CacheableFailbackRegistry` of Dubbo
//! does, which however cuts `xpid` and `remote.timestamp` as well).

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

use foldhash::fast::SeedableRandomState;
use memchr::memmem::Finder;

use crate::defaults::MAX_URL_PARAMS;
use crate::encode::escaped_byte;
use crate::keys;
use crate::params::{Params, cmp_names, hasher};
use crate::parse::{self, separator_at};

/// Longest text that is remembered. It cannot hold so many parameters that two more would be too many.
const MAX_TEXT: usize = 2 * (MAX_URL_PARAMS - 2);

/// Finds `pid` and `timestamp` in escaped parameters.
pub(crate) struct Cutter {
    pid: Finder<'static>,
    timestamp: Finder<'static>,
}

/// Escaped parameters without `pid` and `timestamp`.
pub(crate) struct Cut<'a> {
    /// The rest; each part begins where a parameter begins.
    rest: [&'a str; 3],
    /// Value of the timestamp, escaped.
    pub(crate) timestamp: Option<&'a str>,
}

/// A whole parameter.
struct Found<'a> {
    start: usize,
    /// Behind its separator.
    end: usize,
    value: &'a str,
}

impl Cutter {
    pub(crate) fn new() -> Self {
        Self { pid: Finder::new(keys::PID), timestamp: Finder::new(keys::TIMESTAMP) }
    }

    /// Takes out `pid` and `timestamp`. `None` where that is not simple: one is there twice, or the text is too long.
    ///
    /// Other spellings of the two names (`%70id`, `=pid`) stay in the rest; see [`Texts::remember`].
    pub(crate) fn cut<'a>(&self, params: &'a str) -> Option<Cut<'a>> {
        if params.len() > MAX_TEXT {
            return None;
        }
        let pid = find_whole(&self.pid, params).ok()?;
        let timestamp = find_whole(&self.timestamp, params).ok()?;
        let value = timestamp.as_ref().map(|found| found.value);
        let none = (params.len(), params.len());
        let [a, b] = [pid, timestamp].map(|found| found.map_or(none, |found| (found.start, found.end)));
        let (first, second) = if a.0 <= b.0 { (a, b) } else { (b, a) };
        let rest = [&params[..first.0], &params[first.1..second.0.max(first.1)], &params[second.1..]];
        Some(Cut { rest, timestamp: value })
    }
}

impl Cut<'_> {
    pub(crate) fn hash(&self) -> u64 {
        let mut state = hasher().build_hasher();
        for part in self.rest {
            state.write(part.as_bytes());
        }
        state.finish()
    }

    fn is(&self, text: &str) -> bool {
        let rest = self.rest.iter().try_fold(text, |text, part| text.strip_prefix(part));
        rest.is_some_and(str::is_empty)
    }
}

/// Texts of parameters with what they say, at most one of each set.
pub(crate) struct Texts(HashMap<u64, Known, SeedableRandomState>);

struct Known {
    text: Box<str>,
    params: Params,
}

impl Texts {
    pub(crate) fn new() -> Self {
        Self(HashMap::with_hasher(hasher()))
    }

    /// The parameters of a text that was read before. The whole text is compared: no hash can deceive.
    pub(crate) fn get(&self, hash: u64, cut: &Cut<'_>) -> Option<&Params> {
        self.0.get(&hash).filter(|known| cut.is(&known.text)).map(|known| &known.params)
    }

    /// Keeps a text that was read as `params`, unless `pid` or `timestamp` are in it in another spelling: then the text
    /// does not say all there is.
    pub(crate) fn remember(&mut self, hash: u64, cut: &Cut<'_>, params: &Params) {
        let text = cut.rest.concat();
        let Ok(pairs) = parse::encoded_pairs(&text, &text) else { return };
        let has = |key: &str| pairs.binary_search_by(|(name, _)| cmp_names(name, key)).is_ok();
        if !has(keys::PID) && !has(keys::TIMESTAMP) {
            self.0.insert(hash, Known { text: text.into_boxed_str(), params: params.clone() });
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Lets go of the text by which a set is known.
    pub(crate) fn forget(&mut self, hash: u64, params: &Params) {
        if self.0.get(&hash).is_some_and(|known| known.params.ptr_eq(params)) {
            self.0.remove(&hash);
        }
    }

    /// Drops texts of sets that nobody holds but this and the table of sets.
    pub(crate) fn sweep(&mut self) {
        self.0.retain(|_, known| known.params.holders() > 2);
        self.0.shrink_to(self.0.len() * 2);
    }
}

/// The parameter of exactly this name; an error if there are several.
fn find_whole<'a>(name: &Finder<'_>, params: &'a str) -> Result<Option<Found<'a>>, Several> {
    let bytes = params.as_bytes();
    let mut found = None;
    for start in name.find_iter(bytes) {
        let name_end = start + name.needle().len();
        let behind = &bytes[name_end..];
        let width = match behind {
            [b'=', ..] => 1,
            _ if escaped_byte(behind) == Some(b'=') => 3,
            _ if separator_at(behind).is_some() => 0,
            _ => continue,
        };
        if !starts_parameter(bytes, start) {
            continue;
        }
        if found.is_some() {
            return Err(Several);
        }
        let value_start = name_end + width;
        let (length, separator) = (0..=bytes.len() - value_start)
            .find_map(|length| Some((length, separator_at(&bytes[value_start + length..])?)))
            .unwrap_or_default();
        let value_end = value_start + length;
        found = Some(Found { start, end: value_end + separator, value: &params[value_start..value_end] });
    }
    Ok(found)
}

struct Several;

/// Whether a separator, which is never part of another one, stands before `at`.
fn starts_parameter(bytes: &[u8], at: usize) -> bool {
    at == 0
        || matches!(bytes[at - 1], b'&' | b';')
        || (at >= 3 && matches!(escaped_byte(&bytes[at - 3..at]), Some(b'&' | b';')))
}
