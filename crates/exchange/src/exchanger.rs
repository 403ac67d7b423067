//! The exchanger of the dubbo protocol.

use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;
use dubhe_core::exchange::{
    ClientOptions, ExchangeClient, ExchangeError, ExchangeServer, Exchanger, RequestHandler, ServerOptions,
};
use dubhe_core::transport::{Endpoint, Transporter};

use crate::client::Client;
use crate::server::Server;
use crate::serving::Serving;

/// Callbacks that run at once on one client; beyond it the answer is status 100. Ours: the consumer's pool of the
/// reference has no bound.
const CALLBACKS: usize = 200;

/// Exchange with the 16-byte header of the dubbo protocol, over any transport.
#[derive(Clone, Debug)]
pub struct HeaderExchanger {
    transporter: Arc<dyn Transporter>,
}

impl HeaderExchanger {
    /// An exchanger over `transporter`.
    pub fn new(transporter: Arc<dyn Transporter>) -> Self {
        Self { transporter }
    }
}

#[async_trait]
impl Exchanger for HeaderExchanger {
    fn connect(
        &self,
        endpoint: Endpoint,
        options: ClientOptions,
        callbacks: Arc<dyn RequestHandler>,
    ) -> Arc<dyn ExchangeClient> {
        let callbacks = Arc::new(Serving::new(callbacks, CALLBACKS, options.payload));
        Arc::new(Client::start(Arc::clone(&self.transporter), endpoint, options, callbacks))
    }

    async fn bind(
        &self,
        address: SocketAddr,
        options: ServerOptions,
        handler: Arc<dyn RequestHandler>,
    ) -> Result<Arc<dyn ExchangeServer>, ExchangeError> {
        Ok(Arc::new(Server::start(&*self.transporter, address, options, handler).await?))
    }
}
