//! Layer 7, service-name mapping: which applications provide an interface.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::watch;

use crate::observation::Observation;
use crate::tree::TreeError;

/// Application names of one interface; exact, trimmed, none empty.
pub type Applications = Arc<BTreeSet<Arc<str>>>;

/// The mapping from interfaces to applications (`/dubbo/mapping/<interface>`, data `app-a,app-b`).
#[async_trait]
pub trait ServiceNameMapping: Send + Sync + Debug {
    /// Adds `application` to the interface's names by compare-and-set; success when it is there already.
    async fn map(&self, interface: &str, application: &str) -> Result<(), TreeError>;

    /// The names now and from now on; known and empty: nobody has mapped the interface.
    fn applications(&self, interface: &str) -> watch::Receiver<Observation<Applications>>;
}
