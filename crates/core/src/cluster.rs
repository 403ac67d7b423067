//! Layer 6, cluster: many providers behind one invoker, and what to do when one fails.

use std::fmt::Debug;
use std::sync::Arc;

use crate::directory::Directory;
use crate::extension::Extensions;
use crate::invoker::SharedInvoker;
use crate::load_balance::LoadBalance;

/// A policy for failures: `failover`, `failfast`, ...
pub trait Cluster: Send + Sync + Debug {
    /// The name in URLs.
    fn name(&self) -> &str;

    /// One invoker over the directory's providers. It picks with the balancer that the candidates' URLs name, from `balancers`.
    fn join(
        &self,
        directory: Arc<dyn Directory>,
        balancers: Arc<Extensions<dyn LoadBalance>>,
    ) -> SharedInvoker;
}
