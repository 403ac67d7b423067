//! What an answer of the store means.

use dubhe_core::tree::TreeError;
use zookeeper_client::Error;

/// Why a request did not do what it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The node (or, for a create, its parent) does not exist.
    Missing,
    /// The node exists already.
    Exists,
    /// The node has another version.
    Version,
    /// The node has children.
    NotEmpty,
    /// The store refuses.
    Denied(String),
    /// It can never work.
    Invalid(String),
    /// Anything else: the request may have been executed or not. The errors of a broken connection are not uniform, so
    /// what is not known to be definite lands here.
    Unknown(String),
}

impl Failure {
    /// What this means to the caller of an operation on `path`.
    pub(crate) fn into_tree_error(self, address: &str, path: &str) -> TreeError {
        let address = address.to_owned();
        match self {
            Self::Denied(reason) => TreeError::Denied { address, path: path.to_owned(), reason },
            Self::Invalid(reason) => TreeError::Invalid(format!("{path} at {address} cannot be: {reason}")),
            Self::NotEmpty => {
                TreeError::Invalid(format!("{path} at {address} has children: delete them first"))
            }
            Self::Missing => unsettled(address, path, "it keeps disappearing"),
            Self::Exists | Self::Version => unsettled(address, path, "somebody else keeps changing it"),
            Self::Unknown(reason) => TreeError::Unreachable { address, reason },
        }
    }

    /// Trying again at once, or after a reconnect, would change nothing.
    pub(crate) fn is_definite(&self) -> bool {
        matches!(self, Self::Denied(_) | Self::Invalid(_) | Self::NotEmpty)
    }
}

fn unsettled(address: String, path: &str, what: &str) -> TreeError {
    TreeError::Unreachable { address, reason: format!("{path} could not be settled: {what}") }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::NoNode => Self::Missing,
            Error::NodeExists => Self::Exists,
            Error::BadVersion => Self::Version,
            Error::NotEmpty => Self::NotEmpty,
            Error::NoAuth | Error::AuthFailed | Error::InvalidAcl | Error::QuotaExceeded => {
                Self::Denied(error.to_string())
            }
            Error::NoChildrenForEphemerals => Self::Invalid("the parent node is ephemeral".to_owned()),
            Error::BadArguments(reason) => Self::Invalid(format!("malformed path or request ({reason})")),
            other => Self::Unknown(other.to_string()),
        }
    }
}
