/// Weight of a provider that has been up for less than its warm-up time, all times in milliseconds: it grows from 1 to `weight`, never less
/// and never more, whatever the numbers.
///
/// As `AbstractLoadBalance.calculateWarmupWeight` of Dubbo, in its single precision.
pub fn warm_up_weight(uptime: i64, warmup: i64, weight: i64) -> i64 {
    let share = uptime as f32 / (warmup as f32 / weight as f32);
    // A conversion to an integer cuts the fraction off and saturates, as in Java.
    (share as i64).clamp(1, weight.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_from_one_to_the_full_weight() {
        assert_eq!(warm_up_weight(0, 600_000, 100), 1);
        assert_eq!(warm_up_weight(60_000, 600_000, 100), 10);
        assert_eq!(warm_up_weight(599_999, 600_000, 100), 99);
        assert_eq!(warm_up_weight(700_000, 600_000, 100), 100);
    }

    #[test]
    fn absurd_numbers_stay_within_one_and_the_weight() {
        for uptime in [i64::MIN, -1, 0, 1, i64::MAX] {
            for warmup in [i64::MIN, -1, 0, 1, i64::MAX] {
                assert!((1..=100).contains(&warm_up_weight(uptime, warmup, 100)));
            }
        }
    }
}
