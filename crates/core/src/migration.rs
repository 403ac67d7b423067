//! Layer 6, migration: from interface-level to application-level discovery.

use std::fmt::Debug;

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
}
