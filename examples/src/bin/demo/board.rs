//! What the demo shows: a live table on a terminal, plain lines elsewhere.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program talks to its user")]

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

/// How often the table is drawn on a terminal; elsewhere a line is printed every second.
const TERMINAL_PERIOD: Duration = Duration::from_millis(200);
const PLAIN_PERIOD: Duration = Duration::from_secs(1);

/// Counts and shows. Clones share the counts.
#[derive(Clone, Debug)]
pub(crate) struct Board {
    state: Arc<Mutex<State>>,
    terminal: bool,
}

#[derive(Debug)]
struct State {
    started: Instant,
    scene: String,
    calls: BTreeMap<String, Calls>,
    failed: u64,
    drawn: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Calls {
    total: u64,
    at_last_look: u64,
}

/// The drawing task.
#[derive(Debug)]
pub(crate) struct Watch(JoinHandle<()>);

impl Board {
    pub(crate) fn new() -> Self {
        let state = State {
            started: Instant::now(),
            scene: String::new(),
            calls: BTreeMap::new(),
            failed: 0,
            drawn: 0,
        };
        Self { state: Arc::new(Mutex::new(state)), terminal: std::io::stdout().is_terminal() }
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

    pub(crate) fn answered(&self, provider: &str) {
        self.with(|state| match state.calls.get_mut(provider) {
            Some(calls) => calls.total += 1,
            None => {
                state.calls.insert(provider.to_owned(), Calls { total: 1, at_last_look: 0 });
            }
        });
    }

    pub(crate) fn failed(&self, error: &dubhe::Error) {
        let first = self.with(|state| {
            state.failed += 1;
            state.failed <= 3
        });
        if first {
            complain(&format!("failed: {error}"));
        }
    }

    /// Shows the counts from now on.
    pub(crate) fn watch(&self) -> Watch {
        let board = self.clone();
        Watch(tokio::spawn(async move {
            let period = if board.terminal { TERMINAL_PERIOD } else { PLAIN_PERIOD };
            let mut ticks = tokio::time::interval(period);
            ticks.tick().await;
            loop {
                ticks.tick().await;
                board.with(|state| state.show(board.terminal, period));
            }
        }))
    }

    /// Prints the totals; `true` when nothing failed.
    pub(crate) fn summary(&self) -> bool {
        self.with(|state| {
            println!();
            println!("{:<12} {:>9}", "provider", "calls");
            for (provider, calls) in &state.calls {
                println!("{provider:<12} {:>9}", calls.total);
            }
            let calls: u64 = state.calls.values().map(|calls| calls.total).sum::<u64>() + state.failed;
            println!("demo: {calls} calls, {} failed", state.failed);
            state.failed == 0
        })
    }

    fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    fn show(&mut self, terminal: bool, period: Duration) {
        let seconds = self.started.elapsed().as_secs();
        let rates: Vec<(String, u64, u64)> = self
            .calls
            .iter_mut()
            .map(|(provider, calls)| {
                let new = calls.total - std::mem::replace(&mut calls.at_last_look, calls.total);
                (provider.clone(), calls.total, (new as f64 / period.as_secs_f64()) as u64)
            })
            .collect();
        if !terminal {
            let parts: Vec<String> = rates.iter().map(|(name, _, rate)| format!("{name} {rate}/s")).collect();
            println!("{seconds:>3} s  {}  failed {}", parts.join("  "), self.failed);
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
        println!("  failed {}", self.failed);
        self.drawn = rates.len() + 2;
    }
}

impl Watch {
    pub(crate) async fn stop(self) {
        self.0.abort();
        let _ = self.0.await;
    }
}

/// Prints to standard error.
pub(crate) fn complain(line: &str) {
    eprintln!("{line}");
}
