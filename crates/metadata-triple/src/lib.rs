//! Metadata layer: asks the metadata service of an instance over Triple (gRPC messages over cleartext HTTP/2).
//!
//! Java applications that serve Triple answer for their metadata over Triple alone, also when all else that they serve goes over the
//! dubbo protocol. [`TripleMetadataClient`] is what a consumer needs then:
//!
//! - version 2 of the service (`MetadataServiceV2`, from Dubbo 3.3), in protobuf;
//! - version 1 (`MetadataService`), in the wrapper messages of Triple with a serialization of Dubbo inside: where version 2 is not
//!   offered, or turns out to be unimplemented.
//!
//! A fetch is a connection of its own and at most one call for each version; [`TIME_LIMIT`] is for all of it, and an answer may have
//! [`MAX_MESSAGE`] bytes. No task outlives a fetch, and dropping its future ends it.
//!
//! Not here: which instance is asked, what it says of itself (see `dubhe-discovery`), and the Triple protocol for services.

mod protobuf;
mod status;
mod unary;
mod version1;
mod version2;

use std::sync::Arc;
use std::time::Duration;

use dubhe_common::Url;
use dubhe_core::error::{Delivery, ErrorCode, RpcError};
use dubhe_core::metadata::MetadataInfo;
use dubhe_core::serialize::{Serialization, SerializeError};

use unary::Caller;
pub use unary::MAX_MESSAGE;

/// How long a fetch may take, connecting included. Origin: `dubbo.application.metadata.proxy.delay`.
pub const TIME_LIMIT: Duration = Duration::from_secs(5);

/// What is asked for at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Version 1 alone.
    One,
    /// Version 2; and version 1, over the same connection, where version 2 is unimplemented.
    TwoElseOne,
}

/// Asks metadata services over Triple.
#[derive(Clone, Debug)]
pub struct TripleMetadataClient {
    application: Arc<str>,
    serialization: Arc<dyn Serialization>,
}

impl TripleMetadataClient {
    /// For the consumer `application`. `serialization` is what version 1 of the service wraps its values in (Hessian2).
    pub fn new(application: impl Into<Arc<str>>, serialization: Arc<dyn Serialization>) -> Self {
        Self { application: application.into(), serialization }
    }

    /// The metadata of `revision` from the service at `url`; `None` when it does not know that revision. (Version 2 of Dubbo 3.3 answers
    /// with status 2 then, which is an error here too.)
    ///
    /// `url` is that of version 1: host, port, path, `version` and `group` count.
    ///
    /// # Errors
    /// [`ErrorCode::Network`] when it cannot be reached or breaks off, [`ErrorCode::Timeout`] after [`TIME_LIMIT`],
    /// [`ErrorCode::Serialization`] for an answer that is too long or no metadata; else what its gRPC status means
    /// ([`ErrorCode::MethodNotFound`] for 12, unimplemented), with the number and the text that it sent.
    pub async fn fetch(
        &self,
        url: &Url,
        version: Version,
        revision: &str,
    ) -> Result<Option<MetadataInfo>, RpcError> {
        let ask = unary::over_connection(url, |caller| self.ask(caller, url, version, revision));
        tokio::time::timeout(TIME_LIMIT, ask).await.unwrap_or_else(|_| {
            Err(RpcError::new(
                ErrorCode::Timeout,
                format!(
                    "the metadata service at {} gave no answer over Triple in {TIME_LIMIT:?}",
                    url.address()
                ),
            ))
        })
    }

    async fn ask(
        &self,
        mut caller: Caller,
        url: &Url,
        version: Version,
        revision: &str,
    ) -> Result<Option<MetadataInfo>, RpcError> {
        if version == Version::TwoElseOne {
            match version2::ask(&mut caller, url, &self.application, revision).await {
                Err(error) if error.code() == ErrorCode::MethodNotFound => {}
                answer => return answer,
            }
        }
        version1::ask(&mut caller, url, &self.application, &*self.serialization, revision).await
    }
}

fn malformed(url: &Url, revision: &str, error: &SerializeError) -> RpcError {
    let address = url.address();
    RpcError::new(
        ErrorCode::Serialization,
        format!(
            "the metadata service at {address} answered revision {revision} with something else: {error}"
        ),
    )
    .with_delivery(Delivery::Executed)
}
