//! Parts of messages that come again and again, remembered in decoded form.
//!
//! A consumer repeats the fields before the arguments for each call of a method, and mostly the attachments too. To
//! compare bytes is an order of magnitude cheaper than to decode them. This rests on what
//! [`dubhe_core::serialize::Serialization`] promises of strings: they are read alike wherever they stand.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use arc_swap::ArcSwap;
use bytes::Bytes;
use dubhe_common::keys;
use dubhe_core::invocation::Attachments;
use dubhe_core::serialize::{ObjectReader, SerializeError};
use dubhe_core::value::Value;

/// Things remembered in one place; all are looked at, so that more would not be faster.
const MOST: usize = 32;
/// Longest bytes that are remembered.
const LONGEST: usize = 1024;
/// When all places are taken, one of so many unknown things takes a place: bytes that never come again cost little.
const REPLACE_EVERY: u32 = 64;

/// Decoded things by their bytes and serialization. Bounded, shared, without locks.
#[derive(Debug)]
pub(crate) struct Memo<T> {
    entries: ArcSwap<Vec<Entry<T>>>,
    unknown: AtomicU32,
}

#[derive(Debug)]
struct Entry<T> {
    serialization: u8,
    bytes: Bytes,
    value: Arc<T>,
}

impl<T> Clone for Entry<T> {
    fn clone(&self) -> Self {
        Self { serialization: self.serialization, bytes: self.bytes.clone(), value: Arc::clone(&self.value) }
    }
}

impl<T> Memo<T> {
    pub(crate) fn new() -> Self {
        Self { entries: ArcSwap::default(), unknown: AtomicU32::new(0) }
    }

    /// What `bytes` begin with, and its length.
    pub(crate) fn beginning(&self, serialization: u8, bytes: &[u8]) -> Option<(Arc<T>, usize)> {
        self.find(serialization, |known| bytes.starts_with(known))
    }

    /// What `bytes` are.
    pub(crate) fn whole(&self, serialization: u8, bytes: &[u8]) -> Option<Arc<T>> {
        self.find(serialization, |known| known == bytes).map(|(value, _)| value)
    }

    /// Remembers `value`, if there is a place for it.
    pub(crate) fn keep(&self, serialization: u8, bytes: &[u8], value: &Arc<T>) {
        let unknown = self.unknown.fetch_add(1, Ordering::Relaxed);
        let entries = self.entries.load();
        let is_full = entries.len() >= MOST;
        if bytes.is_empty() || bytes.len() > LONGEST || (is_full && !unknown.is_multiple_of(REPLACE_EVERY)) {
            return;
        }
        // A copy: the message's buffer is much larger. Two that store at once lose one entry, which comes again.
        let entry = Entry { serialization, bytes: Bytes::copy_from_slice(bytes), value: Arc::clone(value) };
        let mut entries = Vec::clone(&entries);
        if is_full {
            entries[(unknown / REPLACE_EVERY) as usize % MOST] = entry;
        } else {
            entries.push(entry);
        }
        self.entries.store(Arc::new(entries));
    }

    fn find(&self, serialization: u8, matches: impl Fn(&[u8]) -> bool) -> Option<(Arc<T>, usize)> {
        let entries = self.entries.load();
        let found = entries.iter().find(|one| one.serialization == serialization && matches(&one.bytes))?;
        Some((Arc::clone(&found.value), found.bytes.len()))
    }
}

/// Reads the attachments at the end of `body`, where `reader` stands; `complete` adds what belongs to them. Remembered
/// when all of them are strings.
pub(crate) fn read_attachments(
    memo: &Memo<Attachments>,
    serialization: u8,
    body: &[u8],
    reader: &mut dyn ObjectReader,
    complete: impl FnOnce(Attachments) -> Attachments,
) -> Result<Attachments, SerializeError> {
    let rest = body.get(body.len().saturating_sub(reader.remaining())..).unwrap_or_default();
    if let Some(known) = memo.whole(serialization, rest) {
        return Ok(Attachments::clone(&known));
    }
    let sent = reader.read_attachments()?;
    if reader.remaining() > 0 {
        tracing::debug!(bytes = reader.remaining(), "bytes after the attachments of a message");
    }
    let attachments = complete(sent);
    if attachments.iter().all(|(_, value)| matches!(value, Value::Str(_))) {
        let shared = attachments.iter().map(|(key, value)| (shared_key(key), value.clone())).collect();
        memo.keep(serialization, rest, &Arc::new(shared));
    }
    Ok(attachments)
}

/// The usual keys without an allocation for each copy.
fn shared_key(key: &str) -> Cow<'static, str> {
    const USUAL: [&str; 9] = [
        keys::PATH,
        keys::INTERFACE,
        keys::VERSION,
        keys::GROUP,
        keys::TOKEN,
        keys::TIMEOUT,
        keys::REMOTE_APPLICATION,
        keys::DUBBO,
        keys::GENERIC,
    ];
    match USUAL.into_iter().find(|usual| *usual == key) {
        Some(usual) => Cow::Borrowed(usual),
        None => Cow::Owned(key.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_bytes_are_found_by_their_beginning_and_as_a_whole_in_their_own_serialization() {
        let memo = Memo::new();
        memo.keep(2, b"head", &Arc::new(7));
        assert_eq!(memo.beginning(2, b"head and more"), Some((Arc::new(7), 4)));
        assert_eq!(memo.whole(2, b"head"), Some(Arc::new(7)));
        assert_eq!(memo.whole(2, b"head and more"), None);
        assert_eq!(memo.beginning(6, b"head"), None);
        assert_eq!(memo.beginning(2, b"hea"), None);
    }

    #[test]
    fn bytes_that_never_come_again_neither_grow_the_memory_nor_keep_others_out_for_good() {
        let memo = Memo::new();
        for n in 0..10_000_u32 {
            memo.keep(2, &n.to_be_bytes(), &Arc::new(n));
        }
        assert_eq!(memo.entries.load().len(), MOST);
        memo.keep(2, &[0; LONGEST + 1], &Arc::new(0));
        memo.keep(2, b"", &Arc::new(0));
        assert_eq!(memo.whole(2, b""), None);
        for _ in 0..REPLACE_EVERY {
            memo.keep(2, b"regular", &Arc::new(1));
        }
        assert!(memo.whole(2, b"regular").is_some());
    }
}
