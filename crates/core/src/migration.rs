//! Layer 6, migration: from interface-level to application-level discovery.

use std::fmt::{self, Debug};
use std::str::FromStr;

use dubhe_common::Url;
use serde::Deserialize;

use crate::directory::DirectoryStatus;

/// Which discovery a reference uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum MigrationStep {
    /// Interface-level only.
    ForceInterface,
    /// Both; application-level is preferred when its addresses suffice. The default of the reference.
    #[default]
    ApplicationFirst,
    /// Application-level only.
    ForceApplication,
}

impl MigrationStep {
    /// The name in rules and parameters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ForceInterface => "FORCE_INTERFACE",
            Self::ApplicationFirst => "APPLICATION_FIRST",
            Self::ForceApplication => "FORCE_APPLICATION",
        }
    }
}

impl fmt::Display for MigrationStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for MigrationStep {
    type Err = UnknownStep;

    /// Reads the exact, upper-case name.
    fn from_str(text: &str) -> Result<Self, UnknownStep> {
        [Self::ForceInterface, Self::ApplicationFirst, Self::ForceApplication]
            .into_iter()
            .find(|step| step.name() == text)
            .ok_or_else(|| UnknownStep { text: text.chars().take(UnknownStep::SHOWN).collect() })
    }
}

/// A text that names no [`MigrationStep`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown migration step `{text}`: use FORCE_INTERFACE, APPLICATION_FIRST or FORCE_APPLICATION")]
pub struct UnknownStep {
    /// The beginning of the text.
    pub text: String,
}

impl UnknownStep {
    /// Characters of the text that are kept.
    const SHOWN: usize = 64;
}

/// Decides whether application-level addresses suffice (`MigrationAddressComparator`).
pub trait AddressComparator: Send + Sync + Debug {
    /// Whether calls to `consumer`'s service may go by `application` instead of `interface`; `threshold` is the least ratio of their
    /// usable addresses.
    fn suffices(
        &self,
        consumer: &Url,
        application: &DirectoryStatus,
        interface: &DirectoryStatus,
        threshold: f32,
    ) -> bool;

    /// The way back: whether calls may go by `interface` instead of `application`. By default the same question with the sides
    /// exchanged.
    fn suffices_back(
        &self,
        consumer: &Url,
        interface: &DirectoryStatus,
        application: &DirectoryStatus,
        threshold: f32,
    ) -> bool {
        self.suffices(consumer, interface, application, threshold)
    }
}
