//! Medians, and allocations.

use std::time::{Duration, Instant};

/// Median time of one `act` in nanoseconds, over `samples` batches of `batch`.
pub fn median_ns(samples: usize, batch: usize, mut act: impl FnMut()) -> f64 {
    let mut times = Vec::with_capacity(samples);
    for _ in 0..samples {
        let start = Instant::now();
        for _ in 0..batch {
            act();
        }
        times.push(start.elapsed());
    }
    median(&mut times).as_nanos() as f64 / batch as f64
}

/// The median of `times`.
pub fn median(times: &mut [Duration]) -> Duration {
    percentile(times, 50)
}

/// The value below which `percent` of `times` lie.
pub fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times.get((times.len() * percent / 100).min(times.len().saturating_sub(1))).copied().unwrap_or_default()
}

/// Allocations and bytes allocated by `act` on this thread.
pub fn allocations(act: impl FnOnce()) -> (u64, u64) {
    let info = allocation_counter::measure(act);
    (info.count_total, info.bytes_total)
}

/// Resident bytes of this process.
pub fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()));
    pages.unwrap_or_default() * 4096
}
