//! Where the consumer's migration stands, in what the story is about.

use dubhe::core::migration::MigrationStep;
use dubhe::{MigrationExplanation, SideKind};

/// Step in force, addresses of both sides, and where calls go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) step: MigrationStep,
    /// Addresses of each side; `None`: it is not there.
    pub(crate) interface: Option<usize>,
    pub(crate) application: Option<usize>,
    pub(crate) preferred: SideKind,
    /// Whether another step is wanted and cannot be reached.
    pub(crate) is_blocked: bool,
}

impl View {
    pub(crate) const fn of(
        step: MigrationStep,
        interface: Option<usize>,
        application: Option<usize>,
        preferred: SideKind,
    ) -> Self {
        Self { step, interface, application, preferred, is_blocked: false }
    }

    /// The same, with another step that cannot be reached.
    pub(crate) fn blocked(self) -> Self {
        Self { is_blocked: true, ..self }
    }

    /// `None` until a first step is reached.
    pub(crate) fn from_explanation(migration: &MigrationExplanation) -> Option<Self> {
        let (state, interface, application) =
            (&migration.state, &migration.interface, &migration.application);
        Some(Self {
            step: state.step?,
            interface: interface.status.as_ref().map(|_| interface.addresses.len()),
            application: application.status.as_ref().map(|_| application.addresses.len()),
            preferred: state.preferred,
            is_blocked: state.blocked.is_some(),
        })
    }
}
