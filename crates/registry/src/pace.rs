//! How fast changes of providers are passed on.

use std::time::Duration;

use dubhe_common::defaults::DEFAULT_DELAY_NOTIFICATION;
use dubhe_common::{Url, keys};
use tokio::time::Instant;

/// Changes passed on without waiting after a quiet time. Origin: ours; `RegistryNotifier` of Dubbo starts to delay
/// after ten immediate runs, and then delays for ever.
const BURST: u32 = 10;

/// Lets changes through at once while they are rare, and [`BURST`] per `delay-notification` when they come thick and
/// fast. So a change waits for a tenth of `delay-notification` at most, and a redeployment of a thousand providers
/// makes a few lists, not a thousand.
#[derive(Debug)]
pub(crate) struct Pace {
    interval: Duration,
    /// When all tokens will be there again.
    full_at: Option<Instant>,
}

impl Pace {
    /// The pace for one subscription: `delay-notification` of its URL, else of the registry's, in milliseconds, else
    /// [`DEFAULT_DELAY_NOTIFICATION`]. Zero or less: never wait.
    pub(crate) fn new(consumer: &Url, registry: &Url) -> Self {
        let text = consumer.param(keys::DELAY_NOTIFICATION).or(registry.param(keys::DELAY_NOTIFICATION));
        let delay = match text.map(str::parse::<i64>) {
            Some(Ok(millis)) => Duration::from_millis(millis.try_into().unwrap_or(0)),
            Some(Err(_)) | None => DEFAULT_DELAY_NOTIFICATION,
        };
        Self { interval: delay / BURST, full_at: None }
    }

    /// When the next change may be passed on.
    pub(crate) fn due(&self, now: Instant) -> Instant {
        let slack = self.interval * (BURST - 1);
        self.full_at.and_then(|full| full.checked_sub(slack)).map_or(now, |due| due.max(now))
    }

    /// A change was passed on.
    pub(crate) fn passed(&mut self, now: Instant) {
        self.full_at = Some(self.full_at.map_or(now, |full| full.max(now)) + self.interval);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(params: &str) -> Pace {
        let consumer = Url::parse(&format!("consumer://192.0.2.9/demo.Foo?{params}")).unwrap();
        Pace::new(&consumer, &Url::parse("memory://local").unwrap())
    }

    #[test]
    fn ten_changes_pass_at_once_and_the_eleventh_waits_a_tenth_of_the_delay() {
        let (mut pace, now) = (pace(""), Instant::now());
        for _ in 0..10 {
            assert_eq!(pace.due(now), now);
            pace.passed(now);
        }
        assert_eq!(pace.due(now), now + Duration::from_millis(500));
    }

    #[test]
    fn a_quiet_time_restores_the_burst() {
        let (mut pace, now) = (pace("delay-notification=1000"), Instant::now());
        (0..10).for_each(|_| pace.passed(now));
        assert!(pace.due(now) > now);
        let later = now + Duration::from_secs(1);
        for _ in 0..10 {
            assert_eq!(pace.due(later), later);
            pace.passed(later);
        }
    }

    #[test]
    fn no_delay_never_waits() {
        for params in ["delay-notification=0", "delay-notification=-1"] {
            let (mut pace, now) = (pace(params), Instant::now());
            (0..100).for_each(|_| pace.passed(now));
            assert_eq!(pace.due(now), now);
        }
    }
}
