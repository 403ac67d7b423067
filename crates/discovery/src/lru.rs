//! A small map that forgets what was not used for longest.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// Bounded; making room looks at every entry, so it is for maps that rarely overflow.
#[derive(Debug)]
pub(crate) struct Lru<K, V> {
    capacity: usize,
    clock: u64,
    entries: HashMap<K, (u64, V)>,
}

impl<K: Eq + Hash + Clone, V: Clone> Lru<K, V> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, clock: 0, entries: HashMap::new() }
    }

    /// The value; from now on it is the last one used.
    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.clock += 1;
        let (used, value) = self.entries.get_mut(key)?;
        *used = self.clock;
        Some(value.clone())
    }

    pub(crate) fn put(&mut self, key: K, value: V) {
        self.clock += 1;
        self.entries.insert(key, (self.clock, value));
        if self.entries.len() > self.capacity {
            let oldest = self.entries.iter().min_by_key(|(_, (used, _))| *used).map(|(key, _)| key.clone());
            if let Some(oldest) = oldest {
                self.entries.remove(&oldest);
            }
        }
    }

    /// All entries, that not used for longest first.
    pub(crate) fn entries(&self) -> Vec<(K, V)> {
        let mut entries: Vec<(u64, K, V)> =
            self.entries.iter().map(|(key, (used, value))| (*used, key.clone(), value.clone())).collect();
        entries.sort_unstable_by_key(|(used, ..)| *used);
        entries.into_iter().map(|(_, key, value)| (key, value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_for_longest_is_forgotten() {
        let mut lru = Lru::new(2);
        lru.put("a".to_owned(), 1);
        lru.put("b".to_owned(), 2);
        assert_eq!(lru.get("a"), Some(1));
        lru.put("c".to_owned(), 3);
        assert_eq!((lru.get("a"), lru.get("b"), lru.get("c")), (Some(1), None, Some(3)));
        lru.put("a".to_owned(), 4);
        assert_eq!(lru.entries(), [("c".to_owned(), 3), ("a".to_owned(), 4)]);
    }
}
