//! Why a call failed, and whether trying again is right.

use std::fmt;
use std::sync::Arc;

use crate::BoxError;
use crate::value::Value;

/// Dubbo's numbers for the failure of a call (`RpcException`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum ErrorCode {
    /// Anything unclassified, and refusals of a provider's filters.
    Unknown = 0,
    /// Sending failed, the connection was lost, or the provider answered with an error status.
    Network = 1,
    /// No answer in time.
    Timeout = 2,
    /// The service itself failed: its exception.
    Biz = 3,
    /// The registry says that there is no provider.
    Forbidden = 4,
    /// A value could not be encoded or decoded.
    Serialization = 5,
    /// Routing left no provider.
    NoInvokerAvailableAfterFilter = 6,
    /// A concurrency or rate limit was hit.
    LimitExceeded = 7,
    /// The time budget was spent before the request was sent.
    TimeoutTerminate = 8,
    /// Registering or subscribing failed.
    Registry = 9,
    /// Reserved by the reference.
    RouterCacheNotBuilt = 10,
    /// The provider has no such method.
    MethodNotFound = 11,
    /// Arguments were refused by validation.
    Validation = 12,
    /// The caller is not allowed.
    Authorization = 13,
}

/// How far a failed call came: what decides whether another provider may be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// Nothing was written, or the provider refused it before running it: trying again cannot run it twice.
    NotSent,
    /// It was written and no definite answer came: the provider may have run it.
    Sent,
    /// The service ran it and answered.
    Executed,
}

/// An exception as Java peers send and expect it.
#[derive(Clone, Debug, PartialEq)]
pub struct Exception {
    /// Java class name, e.g. `com.example.OrderException`.
    pub class: Arc<str>,
    /// `detailMessage`.
    pub message: Option<Arc<str>>,
    /// The class's own fields, beyond those of Throwable.
    pub fields: Vec<(Arc<str>, Value)>,
    /// The cause, if there is one that is not the exception itself.
    pub cause: Option<Box<Self>>,
    /// `class.method(file:line)` of the peer's stack, innermost first; empty from non-Java peers.
    pub stack_trace: Vec<Arc<str>>,
}

impl Exception {
    /// An exception of `class` that says `message`.
    pub fn new(class: impl Into<Arc<str>>, message: impl Into<Arc<str>>) -> Self {
        Self {
            class: class.into(),
            message: Some(message.into()),
            fields: Vec::new(),
            cause: None,
            stack_trace: Vec::new(),
        }
    }

    /// The same exception with a field of its class set.
    pub fn with_field(mut self, name: impl Into<Arc<str>>, value: impl Into<Value>) -> Self {
        self.fields.push((name.into(), value.into()));
        self
    }

    /// A field of the exception's class.
    pub fn field(&self, name: &str) -> Option<&Value> {
        self.fields.iter().find(|(field, _)| &**field == name).map(|(_, value)| value)
    }
}

impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.message {
            Some(message) => write!(f, "{}: {message}", self.class),
            None => f.write_str(&self.class),
        }
    }
}

impl std::error::Error for Exception {}

/// One try at one provider, as the final error lists it.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// `host:port`.
    pub provider: Arc<str>,
    /// How it failed.
    pub code: ErrorCode,
    /// What it said.
    pub message: Arc<str>,
}

/// The failure of a call: code, how far it came, where, after which attempts. One pointer wide.
pub struct RpcError(Box<Inner>);

struct Inner {
    code: ErrorCode,
    delivery: Delivery,
    message: String,
    status: Option<u8>,
    provider: Option<Arc<str>>,
    attempts: Vec<Attempt>,
    exception: Option<Exception>,
    source: Option<BoxError>,
}

impl RpcError {
    /// A failure before anything was sent, with what went wrong, where, and what to do.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            code,
            delivery: Delivery::NotSent,
            message: message.into(),
            status: None,
            provider: None,
            attempts: Vec::new(),
            exception: None,
            source: None,
        }))
    }

    /// The service's own exception, as the error that a typed client returns.
    pub fn business(exception: Exception) -> Self {
        let mut error = Self::new(ErrorCode::Biz, exception.to_string());
        error.0.delivery = Delivery::Executed;
        error.0.exception = Some(exception);
        error
    }

    /// The same error with how far the call came.
    pub fn with_delivery(mut self, delivery: Delivery) -> Self {
        self.0.delivery = delivery;
        self
    }

    /// The same error with the status byte of the dubbo protocol that caused it.
    pub fn with_status(mut self, status: u8) -> Self {
        self.0.status = Some(status);
        self
    }

    /// The same error with the provider's address.
    pub fn with_provider(mut self, address: impl Into<Arc<str>>) -> Self {
        self.0.provider = Some(address.into());
        self
    }

    /// The same error with the attempts that led to it.
    pub fn with_attempts(mut self, attempts: Vec<Attempt>) -> Self {
        self.0.attempts = attempts;
        self
    }

    /// The same error with what caused it.
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// The same error with another text.
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.0.message = message.into();
        self
    }

    /// Dubbo's number for it.
    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// How far the call came.
    pub fn delivery(&self) -> Delivery {
        self.0.delivery
    }

    /// The text, without attempts and source.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The response status byte behind it, if one came over the dubbo protocol or was set locally in its terms.
    pub fn status(&self) -> Option<u8> {
        self.0.status
    }

    /// `host:port` of the provider that failed last.
    pub fn provider(&self) -> Option<&str> {
        self.0.provider.as_deref()
    }

    /// The tries made, oldest first; empty when only one was made or none.
    pub fn attempts(&self) -> &[Attempt] {
        &self.0.attempts
    }

    /// What the service threw, when it is the service's own failure.
    pub fn exception(&self) -> Option<&Exception> {
        self.0.exception.as_ref()
    }

    /// Whether this is the service's own failure rather than a failure of the call.
    pub fn is_business(&self) -> bool {
        self.0.code == ErrorCode::Biz
    }

    /// Whether the call ran out of time.
    pub fn is_timeout(&self) -> bool {
        self.0.code == ErrorCode::Timeout
    }

    /// Whether trying another provider can help: network failures, timeouts, limits and unclassified refusals.
    /// Never what the service threw, a forbidden service, or a request that no provider can read.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self.0.code,
            ErrorCode::Unknown | ErrorCode::Network | ErrorCode::Timeout | ErrorCode::LimitExceeded
        )
    }
}

impl From<Exception> for RpcError {
    fn from(exception: Exception) -> Self {
        Self::business(exception)
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("RpcError");
        out.field("code", &self.0.code).field("delivery", &self.0.delivery).field("message", &self.0.message);
        if let Some(status) = self.0.status {
            out.field("status", &status);
        }
        if let Some(provider) = &self.0.provider {
            out.field("provider", provider);
        }
        if !self.0.attempts.is_empty() {
            out.field("attempts", &self.0.attempts);
        }
        if let Some(source) = &self.0.source {
            out.field("source", source);
        }
        out.finish()
    }
}

impl std::error::Error for RpcError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        if let Some(exception) = &self.0.exception {
            return Some(exception);
        }
        self.0.source.as_ref().map(|source| source.as_ref() as &(dyn std::error::Error + 'static))
    }
}
