//! What the demo shows: a live table on a terminal, plain lines elsewhere.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program talks to its user")]

use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

use crate::load::{Counts, Tally};

/// How often the table is drawn on a terminal; elsewhere a line is printed every second.
const TERMINAL_PERIOD: Duration = Duration::from_millis(200);
const PLAIN_PERIOD: Duration = Duration::from_secs(1);

/// Shows what was counted by provider.
#[derive(Clone, Debug)]
pub(crate) struct Board {
    state: Arc<Mutex<State>>,
    tally: Tally,
    terminal: bool,
}

#[derive(Debug)]
struct State {
    started: Instant,
    scene: String,
    last_look: Counts,
    drawn: usize,
}

/// A task that shows something again and again.
#[derive(Debug)]
pub(crate) struct Watch(JoinHandle<()>);

impl Board {
    pub(crate) fn new(tally: &Tally) -> Self {
        let (started, last_look) = (Instant::now(), Counts::default());
        let state = State { started, scene: String::new(), last_look, drawn: 0 };
        let terminal = std::io::stdout().is_terminal();
        Self { state: Arc::new(Mutex::new(state)), tally: tally.clone(), terminal }
    }

    pub(crate) fn say(&self, line: &str) {
        println!("{line}");
    }

    pub(crate) fn scene(&self, text: &str) {
        self.with(|state| {
            text.clone_into(&mut state.scene);
            if !self.terminal {
                println!("--- {text}");
            }
        });
    }

    /// Shows the counts from now on.
    pub(crate) fn watch(&self) -> Watch {
        let board = self.clone();
        let period = if board.terminal { TERMINAL_PERIOD } else { PLAIN_PERIOD };
        Watch::start(period, move || {
            let counts = board.tally.counts();
            board.with(|state| state.show(counts, board.terminal, period));
        })
    }

    /// Prints the totals; `true` when nothing failed.
    pub(crate) fn summary(&self) -> bool {
        let counts = self.tally.counts();
        println!();
        println!("{:<12} {:>9}", "provider", "calls");
        for (provider, calls) in &counts.answered {
            println!("{provider:<12} {calls:>9}");
        }
        total(&counts)
    }

    fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    fn show(&mut self, counts: Counts, terminal: bool, period: Duration) {
        let seconds = self.started.elapsed().as_secs();
        let before = |name: &String| self.last_look.answered.get(name).copied().unwrap_or_default();
        let rate = |(name, total): (&String, &u64)| {
            (name.clone(), *total, ((total - before(name)) as f64 / period.as_secs_f64()) as u64)
        };
        let rates: Vec<(String, u64, u64)> = counts.answered.iter().map(rate).collect();
        self.last_look = counts;
        let failed = self.last_look.failed;
        if !terminal {
            let parts: Vec<String> = rates.iter().map(|(name, _, rate)| format!("{name} {rate}/s")).collect();
            println!("{seconds:>3} s  {}  failed {failed}", parts.join("  "));
            return;
        }
        // Back to the first line of the former table, clearing what is below.
        if self.drawn > 0 {
            print!("\x1b[{}A\x1b[J", self.drawn);
        }
        println!("{seconds:>3} s  {}", self.scene);
        for (name, total, rate) in &rates {
            let bar = "#".repeat((*rate / 100).min(60) as usize);
            println!("  {name:<12} {total:>9} calls {rate:>6}/s {bar}");
        }
        println!("  failed {failed}");
        self.drawn = rates.len() + 2;
    }
}

impl Watch {
    /// Calls `look` each `period` from now on.
    pub(crate) fn start(period: Duration, mut look: impl FnMut() + Send + 'static) -> Self {
        Self(tokio::spawn(async move {
            let mut ticks = tokio::time::interval(period);
            ticks.tick().await;
            loop {
                ticks.tick().await;
                look();
            }
        }))
    }

    pub(crate) async fn stop(self) {
        self.0.abort();
        let _ = self.0.await;
    }
}

/// Prints the first errors and the last line; `true` when nothing failed.
pub(crate) fn total(counts: &Counts) -> bool {
    for error in &counts.errors {
        complain(&format!("failed: {error}"));
    }
    println!("demo: {} calls, {} failed", counts.calls(), counts.failed);
    counts.failed == 0
}

/// Prints to standard error.
pub(crate) fn complain(line: &str) {
    eprintln!("{line}");
}
