//! Which side has enough addresses.

use dubhe_common::Url;
use dubhe_core::directory::DirectoryStatus;
use dubhe_core::migration::AddressComparator;

/// Compares the counts of usable addresses with the threshold (`DefaultMigrationAddressComparator`).
///
/// No usable address on the new side: no. None on the old side: yes. Else whether new / old reaches the threshold.
///
/// Unlike the reference it does not count all addresses in the list but those that calls can use ([`usable`]), and a list counts as empty
/// beside one that is to be trusted more: calls better go by what is known, and no switch gives such a list up. A current list
/// is trusted most; then one that is not known to be current (incomplete, or during trouble with the registry); least one that is only
/// kept, against the registry's word that it is empty. Of two that are alike, as while the registry is away, both count as they are.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThresholdComparator;

impl AddressComparator for ThresholdComparator {
    fn suffices(
        &self,
        _consumer: &Url,
        new: &DirectoryStatus,
        old: &DirectoryStatus,
        threshold: f32,
    ) -> bool {
        let (new, old) = counts(new, old);
        match (new, old) {
            (0, _) => false,
            (_, 0) => true,
            // Counts of addresses are far below what a float holds exactly.
            (new, old) => new as f32 / old as f32 >= threshold,
        }
    }
}

/// How many addresses calls can use: none when closed or forbidden, and none of those set aside as unavailable.
pub fn usable(status: &DirectoryStatus) -> usize {
    if status.closed || status.forbidden { 0 } else { status.valid }
}

/// How much a list is to be trusted, least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Trust {
    /// The registry says otherwise.
    Kept,
    /// The registry may say otherwise by now.
    Stale,
    /// The registry says so.
    Current,
}

impl Trust {
    fn of(status: &DirectoryStatus) -> Self {
        match status {
            DirectoryStatus { kept: true, .. } => Self::Kept,
            DirectoryStatus { stale: Some(_), .. } => Self::Stale,
            _ => Self::Current,
        }
    }
}

/// The usable addresses of two sides as they compare with each other.
fn counts(one: &DirectoryStatus, other: &DirectoryStatus) -> (usize, usize) {
    let count = |status: &DirectoryStatus, beside: &DirectoryStatus| {
        if Trust::of(status) < Trust::of(beside) { 0 } else { usable(status) }
    };
    (count(one, other), count(other, one))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh(valid: usize) -> DirectoryStatus {
        DirectoryStatus { total: valid, valid, initialized: true, ..DirectoryStatus::default() }
    }

    fn stale(valid: usize) -> DirectoryStatus {
        DirectoryStatus { stale: Some("the connection is lost".into()), ..fresh(valid) }
    }

    fn kept(valid: usize) -> DirectoryStatus {
        DirectoryStatus { kept: true, stale: Some("empty protection is on".into()), ..fresh(valid) }
    }

    fn check(new: DirectoryStatus, old: DirectoryStatus, threshold: f32, expected: bool) {
        let consumer = Url::parse("consumer://192.0.2.9/demo.Greeter").unwrap();
        let answer = ThresholdComparator.suffices(&consumer, &new, &old, threshold);
        assert_eq!(answer, expected, "{new} / {old} at {threshold}");
    }

    #[test]
    fn the_ratio_of_usable_addresses_decides() {
        check(fresh(1), fresh(100), 0.0, true);
        check(fresh(0), fresh(1), 0.0, false);
        check(fresh(1), fresh(0), 5.0, true);
        check(fresh(0), fresh(0), 0.0, false);
        check(fresh(4), fresh(5), 0.8, true);
        check(fresh(3), fresh(5), 0.8, false);
        check(fresh(5), fresh(5), 1.0, true);
        check(fresh(5), fresh(3), 2.0, false);
    }

    #[test]
    fn addresses_set_aside_do_not_count() {
        check(DirectoryStatus { valid: 0, ..fresh(3) }, fresh(1), 0.0, false);
        check(DirectoryStatus { valid: 1, ..fresh(9) }, fresh(2), 1.0, false);
        check(fresh(1), DirectoryStatus { valid: 0, ..fresh(3) }, 1.0, true);
    }

    #[test]
    fn forbidden_and_closed_sides_have_none() {
        check(DirectoryStatus { forbidden: true, ..fresh(3) }, fresh(1), 0.0, false);
        check(DirectoryStatus { closed: true, ..fresh(3) }, fresh(1), 0.0, false);
        check(fresh(1), DirectoryStatus { forbidden: true, ..fresh(3) }, 1.0, true);
    }

    // C10
    #[test]
    fn a_protected_list_does_not_count_beside_a_current_one() {
        check(kept(3), fresh(1), 0.0, false);
        check(fresh(1), kept(3), 1.0, true);
        check(kept(3), fresh(0), 0.0, false);
    }

    // C10
    #[test]
    fn a_protected_list_does_not_count_beside_one_of_a_registry_that_is_away() {
        check(kept(3), stale(1), 0.0, false);
        check(stale(1), kept(3), 1.0, true);
    }

    #[test]
    fn a_list_of_a_registry_that_is_away_does_not_count_beside_a_current_one() {
        check(stale(3), fresh(1), 0.0, false);
        check(fresh(1), stale(3), 1.0, true);
    }

    #[test]
    fn of_two_protected_lists_both_count_as_they_are() {
        check(kept(3), kept(3), 1.0, true);
        check(kept(1), kept(3), 1.0, false);
    }

    #[test]
    fn while_the_registry_is_away_both_lists_count_as_they_are() {
        check(stale(3), stale(3), 1.0, true);
        check(stale(1), stale(3), 1.0, false);
    }
}
