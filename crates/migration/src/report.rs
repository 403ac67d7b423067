//! Reports of a migration's changes.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use dubhe_common::Url;
use dubhe_core::migration::MigrationStep;
use dubhe_core::status_report::{Consumed, Reference, StatusReport, StatusReporter};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tracing::Instrument;

use crate::side::SideKind;
use crate::state::{MigrationState, SideState};

/// How much longer than its delay a switch may take before it is reported as failed: sides are made and connections open meanwhile.
pub const REPORT_GRACE: Duration = Duration::from_secs(1);

/// Reports the changes of the migration that `state` follows, until it is closed. To be spawned: it has no effect on the migration.
///
/// - Consumption: the side that calls go to first, as soon as it is there, and whenever it is another one. (Java reports each address
///   change of each side.)
/// - Migration: each step that is reached; and each wanted step that is not reached within its delay and [`REPORT_GRACE`], once however
///   often it is tried again. It is reported again when it is reached after all.
///
/// Reporters are called on a thread where they may block, one after the other: a slow one delays the reports of this reference, and
/// states that pass meanwhile are not reported. One that panics is logged.
pub fn report_changes(
    mut state: watch::Receiver<MigrationState>,
    consumer: &Url,
    reporters: Arc<[Arc<dyn StatusReporter>]>,
) -> impl Future<Output = ()> + Send + use<> {
    let span = tracing::info_span!("migration", rpc.service = %consumer.service_key());
    let mut reported = Reported::new(Reference::of(consumer));
    let task = async move {
        loop {
            let now = state.borrow_and_update().clone();
            if now.closed {
                return;
            }
            for report in reported.take(&now, Instant::now()) {
                tell(&reporters, report).await;
            }
            tokio::select! {
                changed = state.changed() => if changed.is_err() { return },
                () = until(reported.due()) => {}
            }
        }
    };
    task.instrument(span)
}

/// Gives a report to all reporters, in order, on a thread where they may block; returns when they did. One that panics is logged.
pub async fn tell(reporters: &Arc<[Arc<dyn StatusReporter>]>, report: StatusReport) {
    let reporters = Arc::clone(reporters);
    let span = tracing::Span::current();
    let tell_each = move || {
        let _entered = span.entered();
        for reporter in reporters.iter() {
            // A reporter that broke itself keeps its own state only, which is its own affair.
            if catch_unwind(AssertUnwindSafe(|| reporter.report(&report))).is_err() {
                tracing::warn!(?reporter, kind = report.kind(), "status reporter panicked");
            }
        }
    };
    if let Err(error) = tokio::task::spawn_blocking(tell_each).await {
        tracing::debug!(%error, "status not reported to all");
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// What was reported of one reference.
#[derive(Debug)]
struct Reported {
    reference: Reference,
    preferred: Option<SideKind>,
    step: Option<MigrationStep>,
    attempt: Option<Attempt>,
}

/// A step that is wanted and not reached.
#[derive(Debug)]
struct Attempt {
    step: MigrationStep,
    began: Instant,
    delay: Duration,
    told: bool,
}

impl Attempt {
    /// `None` when there is no such moment.
    fn due(&self) -> Option<Instant> {
        self.began.checked_add(self.delay)?.checked_add(REPORT_GRACE)
    }
}

impl Reported {
    fn new(reference: Reference) -> Self {
        Self { reference, preferred: None, step: None, attempt: None }
    }

    /// What is to be reported of `state`, as of `now`.
    fn take(&mut self, state: &MigrationState, now: Instant) -> Vec<StatusReport> {
        let mut reports = Vec::new();
        let is_there = *state.side(state.preferred) == SideState::Present;
        if is_there && self.preferred != Some(state.preferred) {
            self.preferred = Some(state.preferred);
            let status = match state.preferred {
                SideKind::Interface => Consumed::Interface,
                SideKind::Application => Consumed::Application,
            };
            reports.push(StatusReport::Consumption { reference: self.reference.clone(), status });
        }
        if let Some(reached) = state.step.filter(|step| self.step != Some(*step)) {
            reports.push(self.migration(reached, true));
            self.step = Some(reached);
        }
        if state.is_settled() {
            self.attempt = None;
            return reports;
        }
        let (step, delay) = (state.wanted.step, state.wanted.delay);
        if self.attempt.as_ref().is_none_or(|attempt| attempt.step != step) {
            self.attempt = Some(Attempt { step, began: now, delay, told: false });
        }
        if let Some(attempt) = &mut self.attempt {
            attempt.delay = delay;
            if !attempt.told && attempt.due().is_some_and(|due| due <= now) {
                attempt.told = true;
                reports.push(self.migration(step, false));
            }
        }
        reports
    }

    /// When a step that is not reached by then counts as failed.
    fn due(&self) -> Option<Instant> {
        self.attempt.as_ref().filter(|attempt| !attempt.told)?.due()
    }

    fn migration(&self, new_step: MigrationStep, success: bool) -> StatusReport {
        StatusReport::Migration {
            reference: self.reference.clone(),
            origin_step: self.step,
            new_step,
            success,
        }
    }
}
