//! Layer 5, monitor: what happened to calls.

use std::fmt::Debug;
use std::time::Duration;

use dubhe_common::Url;

use crate::error::ErrorCode;

/// Receives one record per finished call. Called on the call path: must not block.
pub trait Monitor: Send + Sync + Debug {
    /// Takes a record.
    fn record(&self, record: &CallRecord<'_>);
}

/// One finished call.
#[derive(Clone, Copy, Debug)]
pub struct CallRecord<'a> {
    /// The invoker's URL.
    pub url: &'a Url,
    /// Method name.
    pub method: &'a str,
    /// Whether this side called (`true`) or served.
    pub consumer: bool,
    /// How long it took.
    pub elapsed: Duration,
    /// How it failed; `None` when it did not.
    pub failure: Option<ErrorCode>,
}
