//! Layer 6, cluster: many providers behind one invoker, and what to do when one of them fails.
//!
//! | name | what it does |
//! | --- | --- |
//! | `failover` | tries other providers, `retries` (2) times more; the default |
//! | `failfast` | one attempt |
//! | `zone-aware` | one of several registries: preferred, of the call's zone, by weight |
//!
//! All pick in the same way ([`selection`]): the balancer that the candidates' URLs name, sticky choice, an availability
//! check, and for retries a provider that was not tried yet, or least and not last.
//!
//! Not here: which providers there are (see `directory`), which of them a call may go to (see `router`), how one is picked
//! from a list (see `loadbalance`).

pub use dubhe_core::cluster::Cluster;

mod failfast;
mod failover;
mod messages;
pub mod selection;
mod zone_aware;

pub use failfast::Failfast;
pub use failover::Failover;
pub use zone_aware::ZoneAware;

use std::sync::Arc;

use dubhe_core::extension::{DuplicateExtension, Extensions};

/// Registers the clusters of this crate under their names.
pub fn builtin(extensions: &mut Extensions<dyn Cluster>) -> Result<(), DuplicateExtension> {
    extensions.register(Failover::NAME, || Arc::new(Failover))?;
    extensions.register(Failfast::NAME, || Arc::new(Failfast))?;
    extensions.register(ZoneAware::NAME, || Arc::new(ZoneAware))
}
