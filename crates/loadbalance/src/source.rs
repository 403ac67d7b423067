use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Where a balancer's chance comes from. May be asked by many threads at once.
pub trait RandomSource: Send + Sync + Debug {
    /// 64 random bits.
    fn next_u64(&self) -> u64;
}

/// A generator of each thread's own. The default.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadRandom;

impl RandomSource for ThreadRandom {
    fn next_u64(&self) -> u64 {
        fastrand::u64(..)
    }
}

/// The same numbers for the same seed (SplitMix64), without a lock. For tests.
#[derive(Debug)]
pub struct SeededRandom(AtomicU64);

impl SeededRandom {
    /// The numbers of this seed.
    pub const fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }
}

impl RandomSource for SeededRandom {
    fn next_u64(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut mixed = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// The time of day, for warm-up. Asked at most once per pick, and only while a candidate is warming up.
pub trait Clock: Send + Sync + Debug {
    /// Milliseconds since 1970.
    fn now_millis(&self) -> u64;
}

/// The system's clock. The default.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_millis(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}
