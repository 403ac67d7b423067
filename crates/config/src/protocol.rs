use std::collections::BTreeMap;

use serde::Deserialize;

/// The `protocol` section: how services are served.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ProtocolConfig {
    /// Name. Default `dubbo`.
    pub name: Option<String>,
    /// Address to listen on and to register. Default: all interfaces, and the machine's own address.
    pub host: Option<String>,
    /// Port. Default 20880; -1 or 0: a free one.
    pub port: Option<i32>,
    /// Calls served at once. Default 200.
    pub threads: Option<u32>,
    /// Largest message body, bytes. Default 8388608.
    pub payload: Option<u64>,
    /// Connections accepted at once. Default 0: unlimited.
    pub accepts: Option<u32>,
    /// Silence after which a heartbeat is sent, milliseconds. Default 60000.
    pub heartbeat: Option<u64>,
    /// Serialization. Default `hessian2`.
    pub serialization: Option<String>,
    /// More URL parameters.
    pub parameters: BTreeMap<String, String>,
}

impl ProtocolConfig {
    /// The `dubbo` protocol on `port` (0: a free one).
    pub fn dubbo(port: u16) -> Self {
        Self { name: Some("dubbo".to_owned()), port: Some(port.into()), ..Self::default() }
    }

    /// Parameters of the provider URLs served by this protocol.
    pub fn url_params(&self) -> BTreeMap<String, String> {
        let mut params = self.parameters.clone();
        let mut put = |key: &str, value: Option<String>| {
            if let Some(value) = value {
                params.insert(key.to_owned(), value);
            }
        };
        put("threads", self.threads.map(|one| one.to_string()));
        put("payload", self.payload.map(|one| one.to_string()));
        put("accepts", self.accepts.map(|one| one.to_string()));
        put("heartbeat", self.heartbeat.map(|one| one.to_string()));
        put("serialization", self.serialization.clone());
        params
    }
}
