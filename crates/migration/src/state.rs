//! Where a migration stands, for those who watch it.

use std::fmt;
use std::sync::Arc;

use dubhe_core::migration::MigrationStep;

use crate::lookup::Effective;
use crate::side::SideKind;

/// Where the migration of one reference stands.
#[derive(Clone, Debug, PartialEq)]
pub struct MigrationState {
    /// The step that is reached; `None` until the first side of a forced step is made.
    pub step: Option<MigrationStep>,
    /// What is asked for.
    pub wanted: Effective,
    /// Where calls go first.
    pub preferred: SideKind,
    /// The interface-level side.
    pub interface: SideState,
    /// The application-level side.
    pub application: SideState,
    /// Why the wanted step is not reached.
    pub blocked: Option<Arc<str>>,
    /// Whether the migration is over, because the invoker was closed.
    pub closed: bool,
}

/// Where one side stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SideState {
    /// It is not wanted.
    #[default]
    Absent,
    /// It is being made.
    Making,
    /// It could not be made; it is tried again.
    Failed(Arc<str>),
    /// Calls can go to it.
    Present,
    /// Nothing new goes to it; it ends its calls and is closed.
    Leaving,
}

impl MigrationState {
    /// Whether the wanted step is reached.
    pub fn is_settled(&self) -> bool {
        self.step == Some(self.wanted.step)
    }

    /// The state of one side.
    pub fn side(&self, kind: SideKind) -> &SideState {
        match kind {
            SideKind::Interface => &self.interface,
            SideKind::Application => &self.application,
        }
    }

    /// Whether each side that the wanted step needs was made, or failed to be.
    pub(crate) fn is_attempted(&self) -> bool {
        let attempted = |kind| matches!(self.side(kind), SideState::Present | SideState::Failed(_));
        match forced_side(self.wanted.step) {
            Some(kind) => attempted(kind),
            None => attempted(SideKind::Interface) && attempted(SideKind::Application),
        }
    }
}

/// The one side of a step; `None` for the step with both.
pub(crate) const fn forced_side(step: MigrationStep) -> Option<SideKind> {
    match step {
        MigrationStep::ForceInterface => Some(SideKind::Interface),
        MigrationStep::ForceApplication => Some(SideKind::Application),
        MigrationStep::ApplicationFirst => None,
    }
}

impl fmt::Display for SideState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("absent"),
            Self::Making => f.write_str("being made"),
            Self::Failed(why) => write!(f, "cannot be made ({why}), is tried again"),
            Self::Present => f.write_str("present"),
            Self::Leaving => f.write_str("leaving"),
        }
    }
}
