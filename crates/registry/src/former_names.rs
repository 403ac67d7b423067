//! The names of a list that was read before, without the names.

use std::collections::HashMap;
use std::hash::BuildHasher;

/// How far ahead a name is looked for when others before it have left.
const AHEAD: usize = 8;
/// So many names are looked for by going through all, more of them in a table.
const FEW: usize = 4;

/// Stands for a name. Two names with one 128-bit hash would be taken for one; the seeds are random, so nobody can aim
/// at that.
pub(crate) type Key = (u64, u64);

/// Makes the keys of names.
#[derive(Debug, Default)]
pub(crate) struct Keys(foldhash::quality::RandomState, foldhash::quality::RandomState);

impl Keys {
    pub(crate) fn of(&self, name: &str) -> Key {
        (self.0.hash_one(name), self.1.hash_one(name))
    }
}

/// Former names, walked along with those of now: as a rule they are the same in the same order, but for a few that came
/// or left.
pub(crate) struct FormerNames<'a> {
    keys: &'a [Key],
    at: usize,
    missed: usize,
    /// Made when the walk has lost its way.
    table: Option<HashMap<Key, usize, foldhash::fast::RandomState>>,
}

impl<'a> FormerNames<'a> {
    pub(crate) fn new(keys: &'a [Key]) -> Self {
        Self { keys, at: 0, missed: 0, table: None }
    }

    /// Where the name stood.
    pub(crate) fn find(&mut self, key: Key) -> Option<usize> {
        let ahead = self.keys[self.at..].iter().take(AHEAD);
        let found = match ahead.zip(self.at..).find(|(former, _)| **former == key) {
            Some((_, at)) => at,
            None => self.find_anywhere(key)?,
        };
        self.at = found + 1;
        Some(found)
    }

    fn find_anywhere(&mut self, key: Key) -> Option<usize> {
        self.missed += 1;
        if self.missed <= FEW || self.keys.is_empty() {
            return self.keys.iter().position(|former| *former == key);
        }
        let table = self.table.get_or_insert_with(|| self.keys.iter().copied().zip(0..).collect());
        table.get(&key).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_in_whatever_order_the_names_come() {
        let keys: Vec<Key> = (0..40).map(|number| (number, number)).collect();
        let orders: [Vec<usize>; 4] = [
            (0..40).collect(),
            (0..40).rev().collect(),
            (0..40).map(|at| at * 7 % 40).collect(),
            [39, 0, 1, 2, 20, 3].into(),
        ];
        for order in orders {
            let mut former = FormerNames::new(&keys);
            for (at, missing) in order.iter().zip(1_000..) {
                assert_eq!(former.find(keys[*at]), Some(*at), "{order:?}");
                assert_eq!(former.find((missing, missing)), None);
            }
        }
        assert_eq!(FormerNames::new(&[]).find(keys[0]), None);
    }
}
