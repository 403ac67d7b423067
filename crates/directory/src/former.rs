use std::collections::HashMap;
use std::ops::Range;

use dubhe_common::Url;

/// How far ahead an address is looked for when others before it have left.
const AHEAD: usize = 8;
/// So many new addresses are looked for by going through a list, more of them in a table.
const FEW: usize = 4;

type Table<'a> = HashMap<&'a Url, usize, foldhash::fast::RandomState>;

/// A former list, walked along with the present one: as a rule they are the same values in the same order, but for a few that came
/// or left.
pub(crate) struct Former<'a> {
    urls: &'a [Url],
    at: usize,
    missed: usize,
    /// Made when the walk has lost its way.
    table: Option<Table<'a>>,
}

impl<'a> Former<'a> {
    pub(crate) fn new(urls: &'a [Url]) -> Self {
        Self { urls, at: 0, missed: 0, table: None }
    }

    /// Where the next addresses of the present list stood, as long as they stand there in a row; may be nowhere.
    pub(crate) fn run(&mut self, urls: &[Url]) -> Range<usize> {
        let start = self.at;
        self.at += self.urls[start..].iter().zip(urls).take_while(|(former, url)| former.ptr_eq(url)).count();
        start..self.at
    }

    /// Where the next address of the present list stood, behind all that were found. Not finding it proves nothing.
    pub(crate) fn next(&mut self, url: &Url) -> Option<usize> {
        let ahead = self.urls[self.at..].iter().take(AHEAD);
        let found = match ahead.zip(self.at..).find(|(former, _)| former.ptr_eq(url)) {
            Some((_, at)) => at,
            None => self.find(url).filter(|at| *at >= self.at)?,
        };
        self.at = found + 1;
        Some(found)
    }

    fn find(&mut self, url: &Url) -> Option<usize> {
        self.missed += 1;
        if self.missed <= FEW || self.at == self.urls.len() {
            return None;
        }
        let table = self.table.get_or_insert_with(|| self.urls.iter().zip(0..).collect());
        table.get(url).copied()
    }
}

/// Finds addresses of a list by value.
pub(crate) struct Places<'a> {
    urls: &'a [Url],
    /// `None`: few are looked for.
    table: Option<Table<'a>>,
}

impl<'a> Places<'a> {
    /// Those places of `urls` that count. `wanted`: how many addresses will be looked for.
    pub(crate) fn new(urls: &'a [Url], wanted: usize, counts: impl Fn(usize) -> bool) -> Self {
        let counting = || urls.iter().zip(0..).filter(|(_, at)| counts(*at));
        Self { urls, table: (wanted > FEW).then(|| counting().collect()) }
    }

    /// The place of an address equal to `url` that counts now.
    pub(crate) fn find(&self, url: &Url, counts: impl Fn(usize) -> bool) -> Option<usize> {
        match &self.table {
            Some(table) => table.get(url).copied(),
            // What counts is known without a look at the URL.
            None => self.urls.iter().zip(0..).find(|(one, at)| counts(*at) && *one == url).map(|(_, at)| at),
        }
    }

    /// Says that `url` counts, at this place and no other.
    pub(crate) fn set(&mut self, url: &'a Url, at: usize) {
        if let Some(table) = &mut self.table {
            table.insert(url, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urls(count: usize) -> Vec<Url> {
        (0..count).map(|number| Url::builder("dubbo", "192.0.2.1", 1 + number as u16).build()).collect()
    }

    /// Where each of `now` was found in `before`.
    fn walk(before: &[Url], now: &[Url]) -> Vec<Option<usize>> {
        let mut former = Former::new(before);
        now.iter().map(|url| former.next(url)).collect()
    }

    #[test]
    fn what_stands_in_a_row_is_found_at_once() {
        let all = urls(6);
        let now: Vec<Url> = [0, 1, 3, 4].map(|at: usize| all[at].clone()).into();
        let mut former = Former::new(&all);
        assert_eq!(former.run(&now), 0..2);
        assert_eq!(former.run(&now[2..]), 2..2);
        assert_eq!(former.next(&now[2]), Some(3));
        assert_eq!(former.run(&now[3..]), 4..5);
        assert_eq!(former.run(&[]), 5..5);
    }

    #[test]
    fn what_stays_is_found_around_what_comes_and_leaves() {
        let all = urls(40);
        let rows: [(&[usize], &[usize]); 6] = [
            (&[0, 1, 2, 3], &[0, 1, 2, 3]),
            (&[0, 2, 3], &[0, 1, 2, 3]),
            (&[0, 1, 2, 3], &[0, 3]),
            (&[], &[1, 2]),
            (&[1, 2], &[]),
            (&[0, 1, 5], &[2, 3, 4, 5, 6]),
        ];
        for (before, now) in rows {
            let pick = |places: &[usize]| places.iter().map(|at| all[*at].clone()).collect::<Vec<_>>();
            let expected: Vec<Option<usize>> =
                now.iter().map(|at| before.iter().position(|former| former == at)).collect();
            assert_eq!(walk(&pick(before), &pick(now)), expected, "{before:?} {now:?}");
        }
    }

    #[test]
    fn a_walk_that_has_lost_its_way_finds_it_again() {
        let before = urls(40);
        let found = walk(&before, &before[20..]);
        // The first few are looked for by value later.
        assert_eq!(found[..FEW], [None; FEW]);
        assert_eq!(found[FEW..], (20 + FEW..40).map(Some).collect::<Vec<_>>());
    }

    #[test]
    fn no_place_is_found_twice() {
        let before = urls(40);
        let now: Vec<Url> = before.iter().chain(&before).chain(&before).cloned().collect();
        let mut found: Vec<usize> = walk(&before, &now).into_iter().flatten().collect();
        assert_eq!(found.len(), 40);
        found.dedup();
        assert_eq!(found.len(), 40);
    }

    #[test]
    fn addresses_are_found_by_value_whether_few_are_looked_for_or_many() {
        let list = urls(40);
        for wanted in [1, FEW + 1] {
            let mut places = Places::new(&list, wanted, |at| at != 7);
            let again = urls(40);
            assert_eq!(places.find(&again[3], |at| at != 7), Some(3));
            assert_eq!(places.find(&again[7], |at| at != 7), None);
            places.set(&list[7], 7);
            assert_eq!(places.find(&again[7], |_| true), Some(7));
        }
    }
}
