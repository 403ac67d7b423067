/// A table that picks an index with a chance proportional to its weight in constant time (the alias method), exactly: all is integer.
///
/// Each index owns one of `n` equal cells and lends what it does not need of it to one other index.
#[derive(Debug)]
pub(crate) struct Alias {
    cells: Box<[Cell]>,
    total: u64,
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    /// Of `total` parts of the cell, how many are the owner's.
    own: u64,
    /// Whose the others are.
    other: u32,
}

impl Alias {
    /// `total` is the sum of `weights` and not 0.
    pub(crate) fn new(weights: &[u32], total: u64) -> Self {
        let count = weights.len() as u64;
        // A weight below 2^31 times a count below 2^32 fits.
        let mut cells: Vec<Cell> =
            weights.iter().map(|weight| Cell { own: u64::from(*weight) * count, other: 0 }).collect();
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            (0..weights.len() as u32).partition(|index| cells[*index as usize].own < total);
        while let (Some(poor), Some(rich)) = (small.pop(), large.last().copied()) {
            let missing = total - cells[poor as usize].own;
            cells[poor as usize].other = rich;
            let left = &mut cells[rich as usize].own;
            *left -= missing;
            if *left < total {
                large.pop();
                small.push(rich);
            }
        }
        Self { cells: cells.into(), total }
    }

    /// The index for 64 random bits.
    pub(crate) fn pick(&self, random: u64) -> usize {
        let (index, rest) = scale(random, self.cells.len() as u64);
        let cell = self.cells[index as usize];
        let (part, _) = scale(rest, self.total);
        if part < cell.own { index as usize } else { cell.other as usize }
    }
}

/// A number below `limit` for 64 random bits, and the bits that are left over.
pub(crate) const fn scale(random: u64, limit: u64) -> (u64, u64) {
    let product = random as u128 * limit as u128;
    ((product >> 64) as u64, product as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts of all cells that each index got.
    fn shares(weights: &[u32]) -> Vec<u64> {
        let total = weights.iter().map(|weight| u64::from(*weight)).sum();
        let alias = Alias::new(weights, total);
        let mut shares = vec![0; weights.len()];
        for (index, cell) in alias.cells.iter().enumerate() {
            shares[index] += cell.own.min(total);
            shares[cell.other as usize] += total - cell.own.min(total);
        }
        shares
    }

    #[test]
    fn every_index_gets_exactly_its_share() {
        for weights in [&[1_u32, 2, 3][..], &[0, 1], &[5], &[100, 1, 1, 50, 0, 7], &[i32::MAX as u32, 1, 1]] {
            let expected: Vec<u64> =
                weights.iter().map(|weight| u64::from(*weight) * weights.len() as u64).collect();
            assert_eq!(shares(weights), expected, "{weights:?}");
        }
    }

    #[test]
    fn a_weight_of_zero_is_never_picked() {
        let alias = Alias::new(&[0, 3, 0, 1], 4);
        for step in 0..1_000 {
            assert!([1, 3].contains(&alias.pick(step * (u64::MAX / 1_000))));
        }
    }
}
