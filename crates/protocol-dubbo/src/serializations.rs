//! The serializations that this side knows, by number and by name.

use std::sync::Arc;

use bytes::Bytes;
use dubhe_common::defaults::DUBBO_VERSION;
use dubhe_common::{Url, keys};
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::serialize::Serialization;

use crate::constants::encode_strings;

#[derive(Debug)]
pub(crate) struct Serializations {
    known: Vec<Known>,
}

#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) serialization: Arc<dyn Serialization>,
    /// `dubbo` = the protocol version, which every response with attachments holds.
    pub(crate) version_entry: Bytes,
}

impl Serializations {
    pub(crate) fn new(known: Vec<Arc<dyn Serialization>>) -> Self {
        let known = known.into_iter().map(|serialization| Known {
            version_entry: encode_strings(&*serialization, std::iter::once((keys::DUBBO, DUBBO_VERSION)))
                .unwrap_or_default(),
            serialization,
        });
        Self { known: known.collect() }
    }

    pub(crate) fn by_id(&self, id: u8) -> Option<&Known> {
        self.known.iter().find(|one| one.serialization.id() == id)
    }

    /// The one for URLs that name none, and for answers to requests in one that is not known.
    pub(crate) fn default(&self) -> Option<&Known> {
        self.known.first()
    }

    /// The one in which a consumer writes to the provider of `url`: the first known one of `prefer.serialization`, else
    /// `serialization`, else the default.
    pub(crate) fn for_consumer(&self, url: &Url) -> Result<Arc<dyn Serialization>, RpcError> {
        let preferred = url.list_param(keys::PREFER_SERIALIZATION);
        if let Some(known) = preferred.into_iter().find_map(|name| self.by_name(name)) {
            return Ok(Arc::clone(&known.serialization));
        }
        let found = match url.param(keys::SERIALIZATION) {
            Some(name) => self.by_name(name),
            None => self.default(),
        };
        found.map(|one| Arc::clone(&one.serialization)).ok_or_else(|| {
            let known: Vec<&str> = self.known.iter().map(|one| one.serialization.name()).collect();
            let name = url.param(keys::SERIALIZATION).unwrap_or("(default)");
            let text =
                format!("cannot refer {url}: unknown serialization `{name}`: known are {}", known.join(", "));
            RpcError::new(ErrorCode::Serialization, text)
        })
    }

    /// The numbers that the provider of `url` reads, as bits: what the URL names, and the default (as 3.3).
    pub(crate) fn for_provider(&self, url: &Url) -> u32 {
        let named =
            url.list_param(keys::PREFER_SERIALIZATION).into_iter().chain(url.param(keys::SERIALIZATION));
        let named = named.filter_map(|name| self.by_name(name)).chain(self.default());
        named.fold(0, |bits, one| bits | 1 << (one.serialization.id() & 31))
    }

    fn by_name(&self, name: &str) -> Option<&Known> {
        self.known.iter().find(|one| one.serialization.name() == name)
    }
}
