//! How long to wait before the next try.

use std::time::Duration;

/// Doubling delays with jitter, up to a limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    first: Duration,
    limit: Duration,
}

impl Backoff {
    pub(crate) const fn new(first: Duration, limit: Duration) -> Self {
        Self { first, limit }
    }

    /// The delay after `failures` failures in a row (from 1): between half of its nominal length and all of it, so that
    /// clients that failed together do not come back together.
    pub(crate) fn delay(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(20);
        let nominal = self.first.saturating_mul(1 << doublings).min(self.limit);
        nominal.mul_f64(0.5 + fastrand::f64() / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_with_jitter_up_to_the_limit() {
        let backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
        for (failures, nominal) in [(1, 100), (2, 200), (3, 400), (7, 5_000), (u32::MAX, 5_000)] {
            let nominal = Duration::from_millis(nominal);
            let delay = backoff.delay(failures);
            assert!(nominal / 2 <= delay && delay <= nominal, "{failures}: {delay:?}");
        }
    }
}
