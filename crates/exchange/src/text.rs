//! Texts that users search for, as the reference writes them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A request that got no answer in time.
pub(crate) struct TimedOut<'a> {
    /// From the request's beginning to its end.
    pub(crate) elapsed: Duration,
    /// From its beginning until it was handed to the connection; `None` when it never was.
    pub(crate) sent_after: Option<Duration>,
    pub(crate) timeout: Duration,
    pub(crate) id: i64,
    pub(crate) channel: &'a str,
}

impl TimedOut<'_> {
    pub(crate) fn text(&self) -> String {
        let end = SystemTime::now();
        let start = end.checked_sub(self.elapsed).unwrap_or(UNIX_EPOCH);
        let (side, elapsed) = match self.sent_after {
            Some(client) => (
                "Waiting server-side response timeout",
                format!(
                    "client elapsed: {} ms, server elapsed: {} ms",
                    client.as_millis(),
                    self.elapsed.saturating_sub(client).as_millis()
                ),
            ),
            None => (
                "Sending request timeout in client-side",
                format!("elapsed: {} ms", self.elapsed.as_millis()),
            ),
        };
        format!(
            "{side} by scan timer. start time: {}, end time: {}, {elapsed}, timeout: {} ms, request: Request [id={}, \
             twoWay=true, event=false], channel: {}",
            moment(start),
            moment(end),
            self.timeout.as_millis(),
            self.id,
            self.channel,
        )
    }
}

/// The text of a refusal because all of `limit` permits are taken.
pub(crate) fn pool_exhausted(
    local: std::net::SocketAddr,
    limit: usize,
    active: usize,
    completed: u64,
) -> String {
    let (ip, port) = (local.ip(), local.port());
    format!(
        "Server side({ip},{port}) thread pool is exhausted, detail msg:Thread pool is EXHAUSTED! Thread Name: \
         DubboServerHandler-{ip}:{port}, Pool Size: {limit} (active: {active}, core: {limit}, max: {limit}, largest: \
         {limit}), Task: {} (completed: {completed}), Executor status:(isShutdown:false, isTerminated:false, \
         isTerminating:false), in dubbo://{ip}:{port}!",
        completed + active as u64,
    )
}

/// `yyyy-MM-dd HH:mm:ss.SSS`, in UTC (the reference prints local time).
fn moment(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date(days);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}.{:03}",
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60,
        since.subsec_millis()
    )
}

/// Year, month and day of the day that many days after 1970-01-01, Gregorian calendar.
fn date(days: u64) -> (u64, u64, u64) {
    // Counted from 0000-03-01, so that the leap day ends a year; 146,097 days are 400 years.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_java_writes_them() {
        let at = |seconds, millis: u32| moment(UNIX_EPOCH + Duration::new(seconds, millis * 1_000_000));
        assert_eq!(at(0, 0), "1970-01-01 00:00:00.000");
        assert_eq!(at(951_827_696, 7), "2000-02-29 12:34:56.007");
        assert_eq!(at(1_796_083_199, 999), "2026-11-30 23:59:59.999");
    }

    #[test]
    fn a_timeout_says_which_side_was_slow() {
        let timed_out = |sent_after| {
            TimedOut {
                elapsed: Duration::from_millis(1_005),
                sent_after,
                timeout: Duration::from_secs(1),
                id: 7,
                channel: "127.0.0.1:1 -> 127.0.0.1:2",
            }
            .text()
        };
        let server = timed_out(Some(Duration::from_millis(3)));
        assert!(server.starts_with("Waiting server-side response timeout by scan timer. start time: "));
        assert!(
            server.contains(", client elapsed: 3 ms, server elapsed: 1002 ms, timeout: 1000 ms, request: ")
        );
        let client = timed_out(None);
        assert!(client.starts_with("Sending request timeout in client-side by scan timer. start time: "));
        assert!(client.contains(", elapsed: 1005 ms, timeout: 1000 ms, request: Request [id=7, "));
        assert!(client.ends_with(", channel: 127.0.0.1:1 -> 127.0.0.1:2"));
    }
}
