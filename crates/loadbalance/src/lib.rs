//! Load balancers of the cluster layer: each picks one provider among those that routing left over.
//!
//! What a pick needs of a list is prepared once per list and kept with it ([`Candidates::prepared`]): picking is a few loads, whatever
//! the number of providers, and does not allocate. Chance and time are parameters: [`RandomSource`], [`Clock`].
//!
//! ```
//! use dubhe_core::extension::Extensions;
//! use dubhe_loadbalance::LoadBalance;
//!
//! let mut balancers: Extensions<dyn LoadBalance> = Extensions::new("loadbalance");
//! dubhe_loadbalance::builtin(&mut balancers)?;
//! assert_eq!(balancers.get("roundrobin")?.name(), "roundrobin");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Here: random and smooth round robin, both by weight with warm-up. Not here: health and retries (see `cluster`), address lists (see
//! `directory`), which providers may be picked (see `router`).

use std::sync::Arc;

use dubhe_core::extension::{DuplicateExtension, Extensions};

pub use dubhe_core::load_balance::{Candidates, LoadBalance};

mod random;
pub use random::Random;

mod round_robin;
pub use round_robin::RoundRobin;

pub mod weight;

mod source;
pub use source::{Clock, RandomSource, SeededRandom, SystemClock, ThreadRandom};

mod alias;
mod by_method;
mod rotation;
mod schedule;
mod warmup;
mod weight_table;

/// Registers the balancers of this crate under their names: `random`, `roundrobin`.
///
/// # Errors
/// One of the names is taken.
pub fn builtin(balancers: &mut Extensions<dyn LoadBalance>) -> Result<(), DuplicateExtension> {
    balancers.register(Random::NAME, || Arc::new(Random::default()))?;
    balancers.register(RoundRobin::NAME, || Arc::new(RoundRobin::default()))
}
