//! A migration as people read it.

use std::fmt;
use std::sync::Arc;

use dubhe_common::Url;
use dubhe_core::directory::DirectoryStatus;

use crate::side::SideKind;
use crate::snapshot::{Held, Snapshot};
use crate::state::{MigrationState, SideState};

/// Both sides of a reference, where its calls go, and what blocks a switch. Its text form is for people.
#[derive(Clone, Debug, PartialEq)]
pub struct MigrationExplanation {
    /// The service's key.
    pub service: String,
    /// Steps, preference and obstacles.
    pub state: MigrationState,
    /// The interface-level side.
    pub interface: SideReport,
    /// The application-level side.
    pub application: SideReport,
}

/// One side of a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideReport {
    /// Where it stands.
    pub state: SideState,
    /// Its directory in numbers, while it is present.
    pub status: Option<DirectoryStatus>,
    /// Its addresses.
    pub addresses: Vec<String>,
    /// Whether a call sent to it now has a chance.
    pub available: bool,
    /// Calls that run on it.
    pub calls: usize,
}

impl MigrationExplanation {
    pub(crate) fn new(consumer: &Url, state: MigrationState, snapshot: &Snapshot) -> Self {
        let report = |kind| SideReport::new(state.side(kind).clone(), snapshot.side(kind));
        Self {
            service: consumer.service_key(),
            interface: report(SideKind::Interface),
            application: report(SideKind::Application),
            state,
        }
    }
}

impl SideReport {
    fn new(state: SideState, held: Option<&Arc<Held>>) -> Self {
        Self {
            state,
            status: held.map(|held| held.status()),
            addresses: held.map(|held| held.side.addresses()).unwrap_or_default(),
            available: held.is_some_and(|held| held.is_available()),
            calls: held.map_or(0, |held| held.calls()),
        }
    }
}

impl fmt::Display for MigrationExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (state, wanted) = (&self.state, &self.state.wanted);
        write!(f, "{}: ", self.service)?;
        match state.step {
            Some(step) => write!(f, "step {step}")?,
            None => f.write_str("no step yet")?,
        }
        if !state.is_settled() {
            write!(f, ", {} wanted", wanted.step)?;
        }
        writeln!(f, " (said by {})", wanted.step_origin)?;
        writeln!(
            f,
            "  threshold {}, proportion {} %, delay {} s, force {}",
            wanted.threshold,
            wanted.proportion,
            wanted.delay.as_secs(),
            wanted.force
        )?;
        for (kind, side) in
            [(SideKind::Interface, &self.interface), (SideKind::Application, &self.application)]
        {
            let mark = if state.preferred == kind && side.status.is_some() { "*" } else { " " };
            write!(f, "{mark} {kind}: {}", side.state)?;
            if let Some(status) = &side.status {
                let available = if side.available { "available" } else { "not available" };
                write!(f, ", {status}, {available}, {} calls: {}", side.calls, side.addresses.join(", "))?;
            }
            writeln!(f)?;
        }
        if let Some(why) = &state.blocked {
            writeln!(f, "  blocked: {why}")?;
        }
        Ok(())
    }
}
