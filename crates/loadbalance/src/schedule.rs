/// Whose turn it is among many of different weights: the one that is due first in a virtual time in which each is due once per
/// `1 / weight` (earliest deadline first). A pick costs the logarithm of the count.
///
/// Smooth: within any stretch of picks each gets its share to within about one. What weights are is read at each pick, so that weights
/// that move while candidates warm up change the distance to the next turn and nothing else.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// A heap with four children per node: the first is due first.
    heap: Vec<Turn>,
    now: u64,
}

#[derive(Clone, Copy, Debug)]
struct Turn {
    /// In virtual time, which wraps: all deadlines are within one [`PERIOD`] of each other.
    deadline: u64,
    index: u32,
    /// The weight at its last turn.
    weight: u32,
}

/// Distance of two turns of weight 1, in virtual time: fine enough for the largest weight.
const PERIOD: u64 = 1 << 44;

/// 2^64 over the golden ratio: multiples of it, modulo 2^64, lie as evenly as can be.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

const CHILDREN: usize = 4;

impl Schedule {
    /// A schedule of these weights. `seed` gives, of what was in an earlier schedule, how much of its period is left (of 1); others
    /// begin spread evenly.
    pub(crate) fn new(weights: &[u32], seed: impl Fn(usize) -> Option<f64>) -> Self {
        let turn = |(index, weight): (usize, &u32)| {
            let period = PERIOD.checked_div((*weight).into())?;
            let left = match seed(index) {
                Some(left) => (period as f64 * left.clamp(0.0, 1.0)) as u64,
                None => crate::alias::scale((index as u64).wrapping_mul(GOLDEN), period).0,
            };
            Some(Turn { deadline: left, index: index as u32, weight: *weight })
        };
        let mut schedule = Self { heap: weights.iter().enumerate().filter_map(turn).collect(), now: 0 };
        for at in (0..schedule.heap.len().div_ceil(CHILDREN)).rev() {
            schedule.sink(at);
        }
        schedule
    }

    /// The next one. `None` if all weigh 0.
    pub(crate) fn pick(&mut self, weights: &[u32]) -> Option<usize> {
        let first = self.heap.first_mut()?;
        let index = first.index as usize;
        self.now = first.deadline;
        // A weight does not become 0 during the life of a list; were it so, it would wait as long as the lightest.
        let weight = weights.get(index).copied().unwrap_or(1).max(1);
        first.weight = weight;
        first.deadline = first.deadline.wrapping_add(PERIOD / u64::from(weight));
        self.sink(0);
        Some(index)
    }

    /// Of each that is scheduled, how much of its period is left (of 1).
    pub(crate) fn left(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        self.heap.iter().map(|turn| {
            let period = PERIOD / u64::from(turn.weight);
            (turn.index as usize, turn.deadline.wrapping_sub(self.now) as f64 / period as f64)
        })
    }

    fn sink(&mut self, mut at: usize) {
        loop {
            let first = CHILDREN * at + 1;
            let children = first..self.heap.len().min(first + CHILDREN);
            let mut least = at;
            for child in children {
                if self.heap[child].is_before(self.heap[least]) {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.heap.swap(at, least);
            at = least;
        }
    }
}

impl Turn {
    const fn is_before(self, other: Self) -> bool {
        match self.deadline.wrapping_sub(other.deadline) {
            0 => self.index < other.index,
            distance => distance > u64::MAX / 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_gets_its_share_within_any_stretch() {
        let weights: Vec<u32> = (0..300).map(|index| [1, 2, 7, 100][index % 4]).collect();
        let total: u32 = weights.iter().sum();
        let mut schedule = Schedule::new(&weights, |_| None);
        let mut counts = vec![0_i64; weights.len()];
        for pick in 1..=3 * i64::from(total) {
            counts[schedule.pick(&weights).unwrap()] += 1;
            if pick % 97 == 0 {
                for (count, weight) in counts.iter().zip(&weights) {
                    let share = pick as f64 * f64::from(*weight) / f64::from(total);
                    assert!(
                        (*count as f64 - share).abs() < 2.0,
                        "{count} for a share of {share} after {pick}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_wrap_of_virtual_time_changes_nothing() {
        let weights = [1, 2];
        let mut schedule = Schedule::new(&weights, |_| None);
        for turn in &mut schedule.heap {
            turn.deadline = turn.deadline.wrapping_sub(PERIOD * 2);
        }
        let picks: Vec<usize> = (0..30).map(|_| schedule.pick(&weights).unwrap()).collect();
        assert_eq!(picks.iter().filter(|index| **index == 1).count(), 20);
    }

    #[test]
    fn a_weight_of_zero_has_no_turn() {
        let mut schedule = Schedule::new(&[0, 1, 1], |_| None);
        assert!((0..10).all(|_| schedule.pick(&[0, 1, 1]) != Some(0)));
        assert_eq!(Schedule::new(&[0, 0], |_| None).pick(&[0, 0]), None);
    }
}
