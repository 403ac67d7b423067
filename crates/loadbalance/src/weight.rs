//! How large a share of calls a provider gets, by its URL.

use dubhe_common::defaults::{DEFAULT_WARMUP, DEFAULT_WEIGHT, REGISTRY_SERVICE};
use dubhe_common::{Url, keys};

pub use crate::warmup::warm_up_weight;

/// Largest weight: larger ones count as this. Origin: weights are 32-bit integers in Java.
pub const MAX_WEIGHT: i64 = i32::MAX as i64;

/// The weight parameters of one provider for one method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weight {
    /// `weight` (default 100), at least 0 and at most [`MAX_WEIGHT`].
    pub configured: u32,
    /// `timestamp`: when the provider started, milliseconds since 1970; 0 if it does not say.
    pub started: i64,
    /// `warmup`, milliseconds (default 600,000).
    pub warmup: i64,
}

impl Weight {
    /// What a provider's effective URL says for a method. Malformed numbers count as missing: a call must not fail for them.
    ///
    /// Of a whole registry as a candidate, the registry's `weight` counts and there is no warm-up.
    pub fn of(url: &Url, method: &str) -> Self {
        let number =
            |value: Option<&str>, default: i64| value.and_then(|value| value.parse().ok()).unwrap_or(default);
        if url.service_interface() == REGISTRY_SERVICE {
            let weight = number(url.param(keys::WEIGHT), DEFAULT_WEIGHT);
            return Self { configured: clamp(weight), started: 0, warmup: 0 };
        }
        Self {
            configured: clamp(number(url.method_param(method, keys::WEIGHT), DEFAULT_WEIGHT)),
            started: number(url.param(keys::TIMESTAMP), 0),
            warmup: number(url.param(keys::WARMUP), DEFAULT_WARMUP.as_millis() as i64),
        }
    }

    /// The weight at a time in milliseconds since 1970.
    ///
    /// As `AbstractLoadBalance.getWeight` of Dubbo, except that a provider that started in this very millisecond weighs 1 and not the
    /// full weight. A provider from the future (clocks out of step) weighs 1.
    pub fn at(&self, now: u64) -> u32 {
        if self.configured == 0 || self.started <= 0 {
            return self.configured;
        }
        let uptime = i64::try_from(now).unwrap_or(i64::MAX).saturating_sub(self.started);
        if uptime < 0 {
            return 1;
        }
        if uptime >= self.warmup {
            return self.configured;
        }
        clamp(warm_up_weight(uptime, self.warmup, self.configured.into()))
    }

    /// When the full weight is reached, milliseconds since 1970; 0 where it is from the start.
    pub fn settled_from(&self) -> u64 {
        if self.configured <= 1 || self.started <= 0 {
            return 0;
        }
        // A start in the future weighs 1 until then, even without warm-up.
        u64::try_from(self.started.saturating_add(self.warmup.max(0))).unwrap_or(0)
    }
}

fn clamp(weight: i64) -> u32 {
    weight.clamp(0, MAX_WEIGHT) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_700_000_000_000;

    fn weight(parameters: &str) -> u32 {
        let url = Url::parse(&format!("dubbo://192.0.2.1:20880/com.foo.Bar?{parameters}")).unwrap();
        Weight::of(&url, "get").at(NOW)
    }

    // C66
    #[test]
    fn warm_up_goes_by_the_providers_start_and_never_over_or_under_flows() {
        assert_eq!(weight(&format!("weight=100&warmup=600000&timestamp={}", NOW - 60_000)), 10);
        assert_eq!(weight(&format!("weight=100&warmup=600000&timestamp={}", NOW - 600_000)), 100);
        assert_eq!(weight(&format!("weight=100&warmup=600000&timestamp={}", NOW + 60_000)), 1);
        assert_eq!(weight("weight=100&warmup=600000"), 100);
        assert_eq!(weight(&format!("timestamp={}", i64::MAX)), 1);
        assert_eq!(weight(&format!("timestamp={}", i64::MIN)), 100);
        assert_eq!(weight(&format!("warmup={}&timestamp=1", i64::MAX)), 1);
    }

    #[test]
    fn a_provider_that_starts_this_very_moment_weighs_one() {
        assert_eq!(weight(&format!("timestamp={NOW}")), 1);
        assert_eq!(weight(&format!("warmup=0&timestamp={NOW}")), 100);
    }

    #[test]
    fn the_full_weight_is_reached_when_it_says() {
        for parameters in ["", "weight=1&timestamp=1700000000000", "timestamp=1700000000000", "weight=0"] {
            let url = Url::parse(&format!("dubbo://192.0.2.1:20880/com.foo.Bar?{parameters}")).unwrap();
            let weight = Weight::of(&url, "get");
            assert_eq!(weight.at(weight.settled_from()), weight.configured, "{parameters}");
        }
    }
}
