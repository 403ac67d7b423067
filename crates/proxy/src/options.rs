use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use dubhe_core::invocation::{Attachments, Invocation};
use dubhe_core::value::Value;

/// What goes along with some calls: attachments, time limits, and where the response's attachments go.
///
/// A client with options is another handle of the same reference: `client.with(options)`.
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    attachments: Attachments,
    timeout: Option<Duration>,
    overall: Option<Duration>,
    hash: Option<u64>,
    capture: Option<ResponseAttachments>,
}

impl CallOptions {
    /// No options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends an attachment with each request.
    pub fn attachment(mut self, key: impl Into<Cow<'static, str>>, value: impl Into<Value>) -> Self {
        self.attachments.set(key, value);
        self
    }

    /// Limits each attempt; it beats `timeout` of every URL and rule.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Limits a whole call, all attempts together, counted from its start.
    pub fn overall_timeout(mut self, timeout: Duration) -> Self {
        self.overall = Some(timeout);
        self
    }

    /// The hash that consistent hashing goes by, instead of the arguments.
    pub fn hash(mut self, hash: u64) -> Self {
        self.hash = Some(hash);
        self
    }

    /// Puts the attachments of each response into `into`.
    pub fn capture(mut self, into: &ResponseAttachments) -> Self {
        self.capture = Some(into.clone());
        self
    }

    pub(crate) fn apply(&self, mut call: Invocation) -> Invocation {
        for (key, value) in self.attachments.iter() {
            call.attachments_mut().set(key.to_owned(), value.clone());
        }
        if let Some(timeout) = self.timeout {
            call = call.with_timeout(timeout);
        }
        if let Some(overall) = self.overall {
            // A limit beyond what the clock can tell is none.
            if let Some(deadline) = Instant::now().checked_add(overall) {
                call = call.with_deadline(deadline);
            }
        }
        if let Some(hash) = self.hash {
            call = call.with_hash(hash);
        }
        call
    }

    pub(crate) fn received(&self, attachments: Attachments) {
        if let Some(capture) = &self.capture {
            capture.put(attachments);
        }
    }
}

/// A place for the attachments of the latest response.
#[derive(Clone, Debug, Default)]
pub struct ResponseAttachments(Arc<Mutex<Attachments>>);

impl ResponseAttachments {
    /// An empty place.
    pub fn new() -> Self {
        Self::default()
    }

    /// The attachments of the latest response that was captured here.
    pub fn get(&self) -> Attachments {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn put(&self, attachments: Attachments) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = attachments;
    }
}
