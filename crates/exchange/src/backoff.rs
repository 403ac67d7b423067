//! Pauses between attempts to connect.

use std::time::Duration;

/// First pause. Ours: the reference waits 60 s (3.3) or 2 s (3.1) each time.
const SHORTEST: Duration = Duration::from_millis(500);
/// Longest pause.
const LONGEST: Duration = Duration::from_secs(30);

/// Doubling pauses with jitter, so that the consumers of a restarted provider do not come all at once.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
    random: fastrand::Rng,
}

impl Backoff {
    pub(crate) fn new(random: fastrand::Rng) -> Self {
        Self { next: SHORTEST, random }
    }

    /// The next pause: between half and the whole of 0.5 s, 1 s, 2 s ... 30 s.
    pub(crate) fn pause(&mut self) -> Duration {
        let whole = self.next;
        self.next = (whole * 2).min(LONGEST);
        whole / 2 + (whole / 2).mul_f64(self.random.f64())
    }

    /// Begins anew, after a connection that worked.
    pub(crate) fn reset(&mut self) {
        self.next = SHORTEST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_thirty_seconds_and_begin_anew_after_a_reset() {
        let mut backoff = Backoff::new(fastrand::Rng::with_seed(1));
        for whole in [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0] {
            let pause = backoff.pause().as_secs_f64();
            assert!((whole / 2.0..=whole).contains(&pause), "{pause} of {whole}");
        }
        backoff.reset();
        assert!(backoff.pause() <= SHORTEST);
    }
}
