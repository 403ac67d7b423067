//! Failures of a consumer's calls, as errors that say how far the call came.

use std::fmt::Display;
use std::sync::Arc;

use dubhe_common::{Url, keys};
use dubhe_core::error::{Delivery, ErrorCode, RpcError};
use dubhe_core::exchange::{ExchangeError, ResponseFrame, status};
use dubhe_core::invocation::Invocation;
use dubhe_core::serialize::SerializeError;

use crate::serializations::Serializations;

/// Makes the errors of one provider's calls.
#[derive(Debug)]
pub(crate) struct Failures {
    /// Without the token.
    provider: String,
    address: Arc<str>,
    serializations: Arc<Serializations>,
}

impl Failures {
    pub(crate) fn new(url: &Url, serializations: Arc<Serializations>) -> Self {
        let shown =
            if url.param(keys::TOKEN).is_some() { url.without_param(keys::TOKEN) } else { url.clone() };
        Self { provider: shown.to_string(), address: url.address().into(), serializations }
    }

    /// The arguments could not be written.
    pub(crate) fn encoding(&self, call: &Invocation, error: SerializeError) -> RpcError {
        let text = self.failed(call, &error);
        self.located(RpcError::new(ErrorCode::Serialization, text))
            .with_status(status::SERIALIZATION_ERROR)
            .with_source(error)
    }

    /// The response could not be read. The service ran: another attempt would run it again, so that this is no network
    /// failure as in the reference.
    pub(crate) fn decoding(&self, call: &Invocation, error: SerializeError) -> RpcError {
        let text = self.failed(call, &error);
        self.located(RpcError::new(ErrorCode::Serialization, text))
            .with_delivery(Delivery::Executed)
            .with_status(status::CLIENT_ERROR)
            .with_source(error)
    }

    /// The exchange failed on this side.
    pub(crate) fn exchange(&self, call: &Invocation, error: ExchangeError) -> RpcError {
        let (code, delivery, status) = match &error {
            ExchangeError::Timeout { sent: true, .. } => {
                (ErrorCode::Timeout, Delivery::Sent, status::SERVER_TIMEOUT)
            }
            ExchangeError::Timeout { sent: false, .. } => {
                (ErrorCode::Timeout, Delivery::NotSent, status::CLIENT_TIMEOUT)
            }
            ExchangeError::Lost { .. } => (ErrorCode::Network, Delivery::Sent, status::CHANNEL_INACTIVE),
            ExchangeError::TooLarge { sent: true, .. } => {
                (ErrorCode::Serialization, Delivery::Executed, status::CLIENT_ERROR)
            }
            ExchangeError::TooLarge { sent: false, .. } => {
                (ErrorCode::Serialization, Delivery::NotSent, status::SERIALIZATION_ERROR)
            }
            _ => (ErrorCode::Network, Delivery::NotSent, status::CHANNEL_INACTIVE),
        };
        let text = if code == ErrorCode::Timeout {
            format!(
                "Invoke remote method timeout. method: {}, provider: {}, cause: {error}",
                call.method_name(),
                self.provider
            )
        } else {
            self.failed(call, &error)
        };
        self.located(RpcError::new(code, text)).with_delivery(delivery).with_status(status).with_source(error)
    }

    /// The provider answered with an error status.
    pub(crate) fn status(&self, call: &Invocation, frame: ResponseFrame) -> RpcError {
        let (code, delivery) = match frame.status {
            status::CLIENT_TIMEOUT | status::SERVER_TIMEOUT => (ErrorCode::Timeout, Delivery::Sent),
            // It ran, and its result cannot be sent.
            status::SERIALIZATION_ERROR => (ErrorCode::Serialization, Delivery::Executed),
            status::BAD_RESPONSE => (ErrorCode::Network, Delivery::Executed),
            // Refused before it ran.
            status::BAD_REQUEST | status::SERVER_ERROR | status::THREADPOOL_EXHAUSTED => {
                (ErrorCode::Network, Delivery::NotSent)
            }
            // A refusal or a failure: nothing but the text would tell.
            _ => (ErrorCode::Network, Delivery::Sent),
        };
        let number = frame.status;
        let text = self.text_of(frame);
        self.located(RpcError::new(code, self.failed(call, &text)))
            .with_delivery(delivery)
            .with_status(number)
    }

    pub(crate) fn located(&self, error: RpcError) -> RpcError {
        error.with_provider(Arc::clone(&self.address))
    }

    fn failed(&self, call: &Invocation, cause: &dyn Display) -> String {
        format!(
            "Failed to invoke remote method: {}, provider: {}, cause: {cause}",
            call.method_name(),
            self.provider
        )
    }

    /// The text in an error response, read in its own serialization: 3.x providers answer errors in another one.
    fn text_of(&self, frame: ResponseFrame) -> String {
        let status = frame.status;
        let read = self.serializations.by_id(frame.serialization);
        let read = read.map(|one| one.serialization.reader(frame.body).read_str());
        match read {
            Some(Ok(Some(text))) => text,
            Some(Ok(None)) => format!("status {status} without a text"),
            Some(Err(error)) => format!("status {status} with an unreadable text: {error}"),
            None => {
                format!("status {status} with a text in the unknown serialization {}", frame.serialization)
            }
        }
    }
}
