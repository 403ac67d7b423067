use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A bounded, append-only hash table that is read without a lock and without counting readers.
///
/// It lives as long as one snapshot of routes, so nothing is ever removed. The first few entries are found by looking at each;
/// most services never have more.
pub(crate) struct Table<E> {
    few: [OnceLock<Hashed<E>>; FEW],
    many: OnceLock<Box<[OnceLock<Hashed<E>>]>>,
    used: AtomicUsize,
    limit: usize,
}

const FEW: usize = 8;

struct Hashed<E> {
    hash: u64,
    entry: E,
}

impl<E> Table<E> {
    /// A table of at most about `limit` entries.
    pub(crate) fn new(limit: usize) -> Self {
        Self { few: Default::default(), many: OnceLock::new(), used: AtomicUsize::new(0), limit }
    }

    /// The entry of that hash for which `same` is true.
    pub(crate) fn find(&self, hash: u64, same: impl Fn(&E) -> bool) -> Option<&E> {
        for slot in &self.few {
            let found = slot.get()?;
            if found.hash == hash && same(&found.entry) {
                return Some(&found.entry);
            }
        }
        for slot in probe(self.many.get()?, hash) {
            let found = slot.get()?;
            if found.hash == hash && same(&found.entry) {
                return Some(&found.entry);
            }
        }
        None
    }

    /// Adds an entry, or gives the one that another thread added first. Gives the entry back when the table is full.
    pub(crate) fn insert(&self, hash: u64, entry: E, same: impl Fn(&E) -> bool) -> Result<&E, E> {
        if self.used.load(Ordering::Relaxed) >= self.limit {
            return Err(entry);
        }
        let mut entry = Hashed { hash, entry };
        // Two threads that add the same try the same slots in the same order, so that one of them finds the other's.
        for slot in &self.few {
            match self.put(slot, entry, &same) {
                Ok(kept) => return Ok(kept),
                Err(back) => entry = back,
            }
        }
        let slots = (2 * self.limit).next_power_of_two();
        for slot in probe(self.many.get_or_init(|| (0..slots).map(|_| OnceLock::new()).collect()), hash) {
            match self.put(slot, entry, &same) {
                Ok(kept) => return Ok(kept),
                Err(back) => entry = back,
            }
        }
        Err(entry.entry)
    }

    fn put<'a>(
        &self,
        slot: &'a OnceLock<Hashed<E>>,
        entry: Hashed<E>,
        same: impl Fn(&E) -> bool,
    ) -> Result<&'a E, Hashed<E>> {
        let hash = entry.hash;
        let mut entry = Some(entry);
        let kept = slot.get_or_init(|| {
            self.used.fetch_add(1, Ordering::Relaxed);
            entry.take().expect("a slot is filled at most once")
        });
        match entry {
            None => Ok(&kept.entry),
            Some(_) if kept.hash == hash && same(&kept.entry) => Ok(&kept.entry),
            Some(entry) => Err(entry),
        }
    }

    /// All entries.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &E> {
        let many = self.many.get().into_iter().flat_map(|slots| slots.iter());
        self.few.iter().chain(many).filter_map(OnceLock::get).map(|found| &found.entry)
    }
}

impl<E: std::fmt::Debug> std::fmt::Debug for Table<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The slots in the order in which an entry of that hash looks for its place.
fn probe<T>(slots: &[T], hash: u64) -> impl Iterator<Item = &T> {
    // The hash's upper bits: the lower ones of small numbers that were multiplied are the poorer ones.
    let start = (hash >> 32) as usize & (slots.len() - 1);
    slots[start..].iter().chain(&slots[..start])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_beyond_the_first_few_and_refused_beyond_the_limit() {
        let table = Table::new(20);
        for number in 0..20_u64 {
            assert!(table.insert(number << 32, number, |one| *one == number).is_ok());
        }
        assert_eq!(table.insert(99 << 32, 99, |_| false), Err(99));
        for number in 0..20_u64 {
            assert_eq!(table.find(number << 32, |one| *one == number), Some(&number));
        }
        assert_eq!(table.find(99 << 32, |one| *one == 99), None);
        assert_eq!(table.iter().count(), 20);
    }

    #[test]
    fn what_is_added_twice_is_kept_once() {
        let table = Table::new(20);
        for _ in 0..3 {
            assert_eq!(table.insert(7, "a", |one| *one == "a"), Ok(&"a"));
        }
        assert_eq!(table.insert(7, "b", |one| *one == "b"), Ok(&"b"));
        assert_eq!(table.iter().count(), 2);
    }
}
