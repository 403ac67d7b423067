use std::collections::HashMap;

use dubhe_config::ProtocolConfig;
use parking_lot::Mutex;

/// The ports that were found free for protocols configured without one, so that all services of such a protocol share a server.
#[derive(Debug, Default)]
pub(crate) struct Ports {
    found: Mutex<HashMap<(String, Option<String>), u16>>,
    finding: tokio::sync::Mutex<()>,
}

impl Ports {
    /// Held while a service is exported on a port that is to be found: the next one shall share it.
    pub(crate) async fn find(&self, protocol: &ProtocolConfig) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        if is_to_be_found(protocol) { Some(self.finding.lock().await) } else { None }
    }

    /// The protocol with the port that was found for it before, if its configuration names none.
    pub(crate) fn with_found(&self, protocol: &ProtocolConfig) -> ProtocolConfig {
        let mut protocol = protocol.clone();
        if is_to_be_found(&protocol)
            && let Some(port) = self.found.lock().get(&key(&protocol))
        {
            protocol.port = Some((*port).into());
        }
        protocol
    }

    /// Remembers the port that was found for the services of `protocol`, if its configuration names none.
    pub(crate) fn note(&self, protocol: &ProtocolConfig, port: u16) {
        if is_to_be_found(protocol) {
            self.found.lock().insert(key(protocol), port);
        }
    }
}

fn is_to_be_found(protocol: &ProtocolConfig) -> bool {
    protocol.port.is_some_and(|port| port <= 0)
}

fn key(protocol: &ProtocolConfig) -> (String, Option<String>) {
    (protocol.name.clone().unwrap_or_else(|| "dubbo".to_owned()), protocol.host.clone())
}
