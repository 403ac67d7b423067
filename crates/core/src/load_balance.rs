//! Layer 6, load balance: picks one of the candidates for one call.

use std::fmt::Debug;

use crate::invocation::Invocation;
use crate::invoker::SharedInvoker;

pub use crate::candidates::{Candidates, PreparedRef};

/// A policy that picks one of the candidates for one call.
///
/// Promises: does not block or await; returns one of the candidates; returns `None` only for an empty list; may be called
/// from many threads; does not allocate once what it needs per list is prepared ([`Candidates::prepared`]).
pub trait LoadBalance: Send + Sync + Debug {
    /// The name in URLs: `random`, `roundrobin`.
    fn name(&self) -> &str;

    /// Picks one.
    fn select<'a>(&self, candidates: &'a Candidates, call: &Invocation) -> Option<&'a SharedInvoker>;
}
