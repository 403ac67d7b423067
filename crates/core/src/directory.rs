//! Layer 6, directory: the providers of one service as one immutable snapshot.

use std::fmt::{self, Debug};
use std::sync::Arc;

use async_trait::async_trait;
use dubhe_common::Url;
use tokio::sync::watch;

use crate::error::RpcError;
use crate::invocation::Invocation;
use crate::invoker::SharedInvoker;
use crate::load_balance::Candidates;
use crate::router::Explanation;

/// The providers of one service, kept current by one writer and read by every call.
///
/// Promises: a call sees providers and routes of one and the same snapshot; `list` does not lock, await or (but for the
/// first call of a kind after a change) allocate; a provider that left the list keeps serving the calls that chose it.
#[async_trait]
pub trait Directory: Send + Sync + Debug {
    /// The consumer's URL: what it asks for, with its parameters.
    fn consumer_url(&self) -> &Url;

    /// Where the providers come from, for messages: the registry's address, or `static`.
    fn origin(&self) -> &str;

    /// The routed candidates for a call. Errors: [`crate::error::ErrorCode::Forbidden`] when the registry says that there is no
    /// provider, [`crate::error::ErrorCode::Unknown`] when the directory was closed. An empty list is not an error here.
    fn list(&self, call: &Invocation) -> Result<Arc<Candidates>, RpcError>;

    /// All providers, unrouted.
    fn invokers(&self) -> Arc<[SharedInvoker]>;

    /// Tells that a picked provider was not available: it is left out of the list until it is available again. When no valid provider
    /// would be left, all are offered.
    fn invalidate(&self, invoker: &SharedInvoker);

    /// Whether a call has a chance: not closed, not forbidden, and some valid provider available.
    fn is_available(&self) -> bool;

    /// Counts and flags, now and from now on.
    fn status(&self) -> watch::Receiver<DirectoryStatus>;

    /// Why a call goes where it goes.
    fn explain(&self, call: &Invocation) -> Explanation;

    /// Unregisters the consumer, ends the subscription and lets the providers go. Idempotent.
    async fn close(&self);
}

/// The state of a directory in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectoryStatus {
    /// Providers in the list.
    pub total: usize,
    /// Providers that are not set aside as unavailable. When it is 0, calls are offered all of them.
    pub valid: usize,
    /// The registry said explicitly that there is none, and empty protection is off.
    pub forbidden: bool,
    /// Why the list is older than the registry's word: empty protection, addresses that cannot be used, or trouble with the registry.
    pub stale: Option<Arc<str>>,
    /// There are providers only because the registry's last word, an empty list, is not believed: by empty protection, or for some time
    /// after trouble with the registry. Never while the list is merely `stale`.
    pub kept: bool,
    /// Whether a first word from the registry (or its cache) has come.
    pub initialized: bool,
    /// Closed.
    pub closed: bool,
    /// Counts the snapshots.
    pub generation: u64,
}

impl fmt::Display for DirectoryStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} providers, {} valid", self.total, self.valid)?;
        if self.forbidden {
            f.write_str(", forbidden")?;
        }
        if self.kept {
            f.write_str(", kept against an empty list")?;
        }
        if let Some(reason) = &self.stale {
            write!(f, ", stale: {reason}")?;
        }
        Ok(())
    }
}
