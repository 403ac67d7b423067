//! What the migration shows: a table with a row for each phase. On a terminal it is live; elsewhere a row is printed when its phase is
//! over.
#![expect(clippy::print_stdout, reason = "a program talks to its user")]

use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use dubhe::{Connected, MigrationExplanation};
use dubhe_examples::GreeterClient;

use crate::board::{self, Watch};
use crate::load::{Counts, Tally};
use crate::view::View;

/// How often the last row is brought up to date, and the table is drawn on a terminal.
const PERIOD: Duration = Duration::from_millis(100);

/// The table. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    state: Arc<Mutex<State>>,
    tally: Tally,
    greeter: Connected<GreeterClient>,
    terminal: bool,
}

#[derive(Debug, Default)]
struct State {
    rows: Vec<Row>,
    /// Lines of the table that are on the terminal.
    drawn: usize,
}

/// A phase.
#[derive(Debug)]
struct Row {
    phase: String,
    began: Instant,
    lasted: Duration,
    step: String,
    interface: String,
    application: String,
    /// Where calls were under way at the last look.
    calls_to: &'static str,
    /// When it began, and at the last look.
    before: Counts,
    counts: Counts,
}

impl Table {
    pub(crate) fn new(tally: &Tally, greeter: &Connected<GreeterClient>) -> Self {
        let terminal = std::io::stdout().is_terminal();
        Self { state: Arc::default(), tally: tally.clone(), greeter: greeter.clone(), terminal }
    }

    /// Ends the phase before and begins the next one.
    pub(crate) fn phase(&self, phase: &str) {
        self.with(|state| {
            self.end_row(state);
            state.rows.push(Row::new(phase, self.tally.counts()));
            self.draw(state);
        });
    }

    /// Prints text of any length above the table.
    pub(crate) fn say(&self, text: &str) {
        self.with(|state| {
            state.wipe();
            println!("{}", text.trim_end());
            self.draw(state);
        });
    }

    /// Keeps the last row current from now on.
    pub(crate) fn watch(&self) -> Watch {
        let table = self.clone();
        Watch::start(PERIOD, move || {
            table.with(|state| {
                table.look(state);
                table.draw(state);
            });
        })
    }

    /// Ends the last phase.
    pub(crate) fn end(&self) {
        self.with(|state| self.end_row(state));
    }

    /// Prints the totals; `true` when nothing failed.
    pub(crate) fn summary(&self) -> bool {
        println!();
        board::total(&self.tally.counts())
    }

    fn look(&self, state: &mut State) {
        let Some(row) = state.rows.last_mut() else { return };
        row.lasted = row.began.elapsed();
        row.counts = self.tally.counts();
        if let Some(migration) = self.greeter.migration() {
            row.show(&migration);
        }
    }

    /// Draws the table anew on a terminal.
    fn draw(&self, state: &mut State) {
        if self.terminal && !state.rows.is_empty() {
            state.wipe();
            // Lines too long for the terminal are cut instead of wrapped, as they are counted.
            print!("\x1b[?7l");
            println!("{}", heading());
            for row in &state.rows {
                println!("{}", row.line());
            }
            print!("\x1b[?7h");
            state.drawn = state.rows.len() + 1;
        }
    }

    /// Takes a last look, and prints the row if it was not seen before.
    fn end_row(&self, state: &mut State) {
        self.look(state);
        if self.terminal {
            self.draw(state);
        } else if let Some(row) = state.rows.last() {
            if state.rows.len() == 1 {
                println!("{}", heading());
            }
            println!("{}", row.line());
        }
    }

    fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    /// Takes the table off the terminal.
    fn wipe(&mut self) {
        if self.drawn > 0 {
            print!("\x1b[{}A\x1b[J", self.drawn);
            self.drawn = 0;
        }
    }
}

impl Row {
    fn new(phase: &str, counts: Counts) -> Self {
        Self {
            phase: phase.to_owned(),
            began: Instant::now(),
            lasted: Duration::ZERO,
            step: String::new(),
            interface: String::new(),
            application: String::new(),
            calls_to: "",
            before: counts.clone(),
            counts,
        }
    }

    fn show(&mut self, migration: &MigrationExplanation) {
        if let Some(side) = under_way(migration) {
            self.calls_to = side;
        }
        let Some(view) = View::from_explanation(migration) else { return };
        let said_by = match view.is_blocked {
            true => "the next is blocked".to_owned(),
            false => migration.state.wanted.step_origin.to_string(),
        };
        let addresses =
            |side: Option<usize>| side.map_or_else(|| "absent".to_owned(), |some| some.to_string());
        self.step = format!("{}, {said_by}", view.step);
        self.interface = addresses(view.interface);
        self.application = addresses(view.application);
    }

    fn line(&self) -> String {
        let seconds = self.lasted.as_secs_f64().max(f64::EPSILON);
        let rate = (self.counts.calls() - self.before.calls()) as f64 / seconds;
        let (interface, application) = (&self.interface, &self.application);
        columns(
            &self.phase,
            &self.step,
            [
                interface,
                application,
                self.calls_to,
                &self.counts.calls().to_string(),
                &format!("{rate:.0}"),
                &self.counts.failed.to_string(),
            ],
        )
    }
}

/// The side that calls are on at this moment; `None` between two calls.
const fn under_way(migration: &MigrationExplanation) -> Option<&'static str> {
    match (migration.interface.calls, migration.application.calls) {
        (0, 0) => None,
        (_, 0) => Some("interface"),
        (0, _) => Some("application"),
        _ => Some("both"),
    }
}

fn heading() -> String {
    let numbers = ["interface", "application", "calls go to", "calls", "calls/s", "failed"];
    columns("phase", "step, said by", numbers)
}

fn columns(phase: &str, step: &str, [interface, application, to, calls, rate, failed]: [&str; 6]) -> String {
    format!(
        "{phase:<32} {step:<38} {interface:>9} {application:>11}  {to:<11} {calls:>8} {rate:>7} {failed:>6}"
    )
}
