//! A consumer that calls when told to: so one process, Java's above all, is asked about many providers.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Deserialize;

use super::peer::{Peer, Role};
use super::program::Program;
use super::report::Outcome;

/// Longest time of one call: twice what providers allow.
const CALL: Duration = Duration::from_secs(20);

/// Pause between two calls that wait for a change.
const PAUSE: Duration = Duration::from_millis(100);

/// A running `Finder` of Java, or its like in Rust.
pub(super) struct Finder {
    program: Program,
}

impl Finder {
    /// Starts it without waiting; its log and its home are called `name`.
    pub(super) fn begin(peer: Peer, name: &str, options: &[&str]) -> Result<Self> {
        let mut command = peer.command(Role::Find, name)?;
        if let Peer::Java(_) = peer {
            // Java 3.1 keeps the addresses of providers that have all gone, and looks after lost connections once per heartbeat
            // interval, by default each minute.
            command.args(["--param", "heartbeat=3000"]);
        }
        Ok(Self { program: Program::start(command.args(options), name)? })
    }

    pub(super) fn ready(&self) -> Result<()> {
        self.program.ready().map(drop)
    }

    /// Has one call made.
    pub(super) fn ask(&mut self, command: &str, group: &str) -> Outcome {
        match self.answer(command, group) {
            Ok(Answer { ok: true, detail }) => Ok(detail),
            Ok(Answer { ok: false, detail }) => Err(detail),
            Err(error) => Err(format!("{error:#}")),
        }
    }

    /// Asks until the outcome is as wished, and returns that one, or why the wish did not come true until `deadline`.
    pub(super) fn await_outcome(
        &mut self,
        command: &str,
        group: &str,
        deadline: Instant,
        wish: impl Fn(&Outcome) -> bool,
    ) -> Outcome {
        loop {
            let outcome = self.ask(command, group);
            if wish(&outcome) {
                return Ok(outcome.unwrap_or_else(|error| error));
            }
            if Instant::now() >= deadline {
                return Err(match outcome {
                    Ok(answer) => format!("still answered: {answer}"),
                    Err(error) => error,
                });
            }
            thread::sleep(PAUSE);
        }
    }

    fn answer(&mut self, command: &str, group: &str) -> Result<Answer> {
        self.program.say(&format!("{command}\t{group}"))?;
        let line = self.program.line_with(CALL, |line| line.starts_with('{'))?;
        serde_json::from_str(&line).with_context(|| format!("not an answer: {line}"))
    }
}

#[derive(Debug, Deserialize)]
struct Answer {
    ok: bool,
    detail: String,
}
