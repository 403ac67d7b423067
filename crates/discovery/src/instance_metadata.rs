//! What the metadata of an instance says: endpoints, and where its metadata service is.

use std::collections::BTreeMap;

use dubhe_common::{Url, keys};
use dubhe_core::discovery::{
    ENDPOINTS, METADATA_SERVICE_PARAMS, METADATA_SERVICE_URLS, METADATA_SERVICE_VERSION, ServiceInstance,
};
use serde::{Deserialize, Serialize};

/// Interface of the metadata service. Origin: `org.apache.dubbo.metadata.MetadataService`.
pub const METADATA_SERVICE: &str = "org.apache.dubbo.metadata.MetadataService";
/// Version of the metadata service that every release answers for.
pub const METADATA_SERVICE_V1: &str = "1.0.0";
/// Version of the metadata service over Triple, from 3.3.
pub const METADATA_SERVICE_V2: &str = "2.0.0";
/// The protocol that version 2 of the metadata service goes over.
const TRIPLE: &str = "tri";
/// How long a consumer waits for a metadata service, milliseconds. Origin: `dubbo.application.metadata.proxy.delay`.
const METADATA_SERVICE_TIMEOUT: u64 = 5_000;

/// Where an instance offers a protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// The port.
    pub port: u16,
    /// The protocol: `dubbo`, `tri`.
    pub protocol: String,
}

/// The endpoints of an instance; none when it does not say, or malformed.
pub fn endpoints(instance: &ServiceInstance) -> Vec<Endpoint> {
    let Some(text) = instance.metadata.get(ENDPOINTS) else { return Vec::new() };
    serde_json::from_str(text).unwrap_or_else(|error| {
        tracing::warn!(instance = %instance.address(), %error, "ignoring malformed endpoints of an instance");
        Vec::new()
    })
}

/// The port of an instance for a protocol: its endpoint's, else the instance's own.
pub fn port_for(instance: &ServiceInstance, protocol: &str) -> u16 {
    let endpoint = endpoints(instance).into_iter().find(|endpoint| endpoint.protocol == protocol);
    endpoint.filter(|endpoint| endpoint.port != 0).map_or(instance.port, |endpoint| endpoint.port)
}

/// Parameters of the instance's metadata service; `None` when it does not say. Spring Cloud's way of saying it (whole
/// URLs, the first counts) goes before, unless it is malformed.
pub fn metadata_service_params(instance: &ServiceInstance) -> Option<BTreeMap<String, String>> {
    let first_url = |urls: &String| {
        let first = serde_json::from_str::<Vec<String>>(urls).ok()?.into_iter().next()?;
        Url::parse(&first).ok().filter(|url| url.port() != 0)
    };
    if let Some(url) = instance.metadata.get(METADATA_SERVICE_URLS).and_then(first_url) {
        let mut params: BTreeMap<String, String> =
            url.params().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        params.insert(keys::PROTOCOL.to_owned(), url.protocol().to_owned());
        params.insert(keys::PORT.to_owned(), url.port().to_string());
        return Some(params);
    }
    let params: BTreeMap<String, String> =
        serde_json::from_str(instance.metadata.get(METADATA_SERVICE_PARAMS)?).ok()?;
    (!params.is_empty()).then_some(params)
}

/// Where a consumer asks the instance for its metadata: version 1 of the service, which every provider answers for,
/// at the protocol and port that the instance names. `default_port`: the consumer's `metadata-service-port`, for
/// instances that name none; else it is the instance's own port.
///
/// That the instance also has version 2 (`meta-v`) says nothing about where: only what it names counts.
pub fn metadata_service_url(instance: &ServiceInstance, default_port: Option<u16>) -> Url {
    let params = metadata_service_params(instance);
    let named = params.is_some();
    let params = params.unwrap_or_default();
    let port = params.get(keys::PORT).and_then(|port| port.parse().ok()).filter(|port| *port != 0);
    let port = port.or(default_port).unwrap_or(instance.port);
    let protocol = params.get(keys::PROTOCOL).map(String::as_str).filter(|name| !name.is_empty());
    let mut url = Url::builder(protocol.unwrap_or(keys::protocol::DUBBO), &instance.host, port)
        .path(METADATA_SERVICE)
        .param(keys::INTERFACE, METADATA_SERVICE)
        .param(keys::TIMEOUT, METADATA_SERVICE_TIMEOUT)
        .param(keys::RETRIES, 0);
    url = if named { url.param(keys::CONNECTIONS, 1) } else { url.param("reconnect", false) };
    let version = params.get(keys::VERSION).map_or(METADATA_SERVICE_V1, String::as_str).to_owned();
    url = url.params(params.into_iter().filter(|(name, _)| name != keys::PORT && name != keys::PROTOCOL));
    // Those who only name version 2 have version 1 at the same port.
    let version = if version == METADATA_SERVICE_V2 { METADATA_SERVICE_V1 } else { &version };
    url.param(keys::VERSION, version)
        .param(keys::GROUP, &instance.application)
        .param(keys::SIDE, keys::side::CONSUMER)
        .build()
}

/// Whether the instance says that version 2 of the metadata service is what it names, over Triple.
pub fn offers_metadata_service_v2(instance: &ServiceInstance) -> bool {
    instance.metadata.get(METADATA_SERVICE_VERSION).is_some_and(|version| version == METADATA_SERVICE_V2)
        && metadata_service_params(instance)
            .is_some_and(|params| params.get(keys::PROTOCOL).is_some_and(|name| name == TRIPLE))
}
