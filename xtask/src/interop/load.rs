//! A consumer under load: what it says each second, and what must be true of it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::peer::{Peer, Role};
use super::program::Program;

/// How long a change of providers or rules may take to show in the calls. Java 3.3 looks after a lost connection once a
/// minute.
pub(super) const CHANGE: Duration = Duration::from_secs(90);

/// Time-out of the calls under load, in milliseconds: a machine that starts a Java process beside them may stall for
/// some seconds, which is no fault of the peers.
const TIMEOUT: &str = "10000";

/// A consumer that calls at a steady rate.
pub(super) struct Load {
    pub(super) program: Program,
}

impl Load {
    /// Starts the consumer; its log and its home are called `name`.
    pub(super) fn start(consumer: Peer, name: &str, options: &[&str]) -> Result<Self> {
        let mut command = consumer.command(Role::Load, name)?;
        command.args(options).args(["--rate", "50", "--timeout", TIMEOUT]);
        if let Peer::Java(_) = consumer {
            // Java 2.7 and 3.1 look after a lost connection once per heartbeat interval, by default each minute.
            command.args(["--param", "heartbeat=3000"]);
        }
        let program = Program::start(&mut command, name)?;
        program.ready()?;
        Ok(Self { program })
    }

    /// Waits until two seconds in a row are as wished. Failed calls do not matter.
    pub(super) fn until(&mut self, wish: &str, as_wished: &dyn Fn(&Second) -> bool) -> Result<String> {
        self.watch(wish, as_wished).map(|(remark, _)| remark)
    }

    /// As [`Self::until`], and no call may fail from the last look to then.
    pub(super) fn without_failure(
        &mut self,
        wish: &str,
        as_wished: &dyn Fn(&Second) -> bool,
    ) -> Result<String> {
        let (remark, failures) = self.watch(wish, as_wished)?;
        if !failures.is_empty() {
            bail!("calls failed: {failures:?}");
        }
        Ok(remark)
    }

    fn watch(
        &mut self,
        wish: &str,
        as_wished: &dyn Fn(&Second) -> bool,
    ) -> Result<(String, BTreeMap<String, u64>)> {
        let start = Instant::now();
        let mut failures = BTreeMap::new();
        let (mut seconds, mut in_a_row) = (0, 0);
        let mut last = String::new();
        while start.elapsed() < CHANGE {
            last = self.program.line_with(CHANGE, |line| line.contains("\"second\""))?;
            let second: Second =
                serde_json::from_str(&last).with_context(|| format!("not a second: {last}"))?;
            seconds += 1;
            in_a_row = if as_wished(&second) { in_a_row + 1 } else { 0 };
            if second.failed > 0 && second.errors.is_empty() {
                *failures.entry("unknown".to_owned()).or_default() += second.failed;
            }
            for (error, count) in second.errors {
                *failures.entry(error).or_default() += count;
            }
            if in_a_row == 2 {
                return Ok((format!("{wish} after {} s", seconds - in_a_row), failures));
            }
        }
        bail!("within {CHANGE:?} it did not come to this: {wish}; last: {last}; failures: {failures:?}")
    }

    /// Passes over what has come until now.
    pub(super) fn forget(&mut self) {
        while self.program.pending().is_some() {}
    }
}

/// What a load consumer did in one second.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Second {
    failed: u64,
    by: BTreeMap<String, u64>,
    errors: BTreeMap<String, u64>,
}

impl Second {
    /// Whether a provider of this name, or name and process number, answered calls.
    pub(super) fn by(&self, provider: &str) -> bool {
        self.by.keys().any(|name| name == provider || name.split('#').next() == Some(provider))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_are_known_by_name_and_by_process() {
        let line = r#"{"second":3,"ok":50,"failed":1,"by":{"A#12":49,"B#7":1},"errors":{"x":1}}"#;
        let second: Second = serde_json::from_str(line).unwrap();
        assert!(second.by("A") && second.by("B") && second.by("A#12"));
        assert!(!second.by("A#1") && !second.by("C"));
        assert_eq!(second.failed, 1);
    }
}
