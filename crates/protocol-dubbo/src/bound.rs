//! One server and the services on it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use dubhe_common::Url;
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::exchange::{ExchangeServer, Exchanger, ServerOptions};

use crate::handler::Handler;
use crate::serializations::Serializations;
use crate::served::Services;
use crate::settings;

#[derive(Debug)]
pub(crate) struct Bound {
    server: Arc<dyn ExchangeServer>,
    options: ServerOptions,
    services: Arc<Services>,
}

impl Bound {
    pub(crate) async fn start(
        exchanger: &dyn Exchanger,
        address: SocketAddr,
        options: ServerOptions,
        serializations: Arc<Serializations>,
    ) -> Result<Arc<Self>, RpcError> {
        let services = Arc::<Services>::default();
        let handler = Arc::new(Handler::new(Arc::clone(&services), serializations));
        let server = exchanger.bind(address, options.clone(), handler).await.map_err(|error| {
            RpcError::new(ErrorCode::Network, format!("cannot serve on {address}: {error}"))
                .with_source(error)
        })?;
        Ok(Arc::new(Self { server, options, services }))
    }

    pub(crate) fn services(&self) -> &Services {
        &self.services
    }

    /// The address that it really listens on.
    pub(crate) fn address(&self) -> SocketAddr {
        self.server.local_addr()
    }

    /// The settings of the service that came first are those of the server.
    pub(crate) fn warn_of_other_options(&self, url: &Url) {
        let asked = settings::server_options(url);
        if asked != self.options {
            tracing::warn!(rpc.service = %url.service_key(), local.addr = %self.address(), used = ?self.options, ?asked,
                "the server of this address has the settings of its first service");
        }
    }

    pub(crate) async fn drain(&self, grace: Duration) {
        self.server.drain(grace).await;
    }

    pub(crate) async fn close(&self) {
        self.server.close().await;
    }
}
