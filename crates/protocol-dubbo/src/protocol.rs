//! The protocol: referring and exporting.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use dubhe_common::Url;
use dubhe_common::defaults::{DEFAULT_DUBBO_PORT, DEFAULT_SHUTDOWN_WAIT};
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::exchange::Exchanger;
use dubhe_core::invoker::SharedInvoker;
use dubhe_core::protocol::{Exported, Exporter, Protocol};
use dubhe_core::serialize::Serialization;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::bound::Bound;
use crate::invoker::DubboInvoker;
use crate::pool::Pool;
use crate::serializations::Serializations;
use crate::served::Served;
use crate::settings;

/// The dubbo protocol.
///
/// A value of an application: connections and servers belong to it and are shared by what it refers and exports.
#[derive(Debug)]
pub struct DubboProtocol {
    exchanger: Arc<dyn Exchanger>,
    serializations: Arc<Serializations>,
    pool: Arc<Pool>,
    servers: Arc<Servers>,
    application: Option<Box<str>>,
    closed: AtomicBool,
}

/// The lock is held while a server starts, so that two exports of one address make one server.
type Servers = Mutex<HashMap<SocketAddr, Arc<Bound>>>;

impl DubboProtocol {
    /// The name in URLs.
    pub const NAME: &str = "dubbo";

    /// The protocol over `exchanger`, with the serializations that it knows; the first one is for URLs that name none.
    pub fn new(exchanger: Arc<dyn Exchanger>, serializations: Vec<Arc<dyn Serialization>>) -> Self {
        let serializations = Arc::new(Serializations::new(serializations));
        Self {
            pool: Arc::new(Pool::new(Arc::clone(&exchanger), Arc::clone(&serializations))),
            exchanger,
            serializations,
            servers: Arc::default(),
            application: None,
            closed: AtomicBool::new(false),
        }
    }

    /// The same protocol, which tells providers this name of the calling application (`remote.application`). Without it they
    /// are told the `application` of the URL referred, which on an address from a registry is the provider's own.
    pub fn with_application(mut self, name: &str) -> Self {
        self.application = Some(name.into());
        self
    }

    fn check_open(&self, what: &str) -> Result<(), RpcError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(RpcError::new(ErrorCode::Unknown, format!("{what}: the dubbo protocol is closed")));
        }
        Ok(())
    }
}

#[async_trait]
impl Protocol for DubboProtocol {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn default_port(&self) -> u16 {
        DEFAULT_DUBBO_PORT
    }

    fn refer(&self, url: &Url) -> Result<SharedInvoker, RpcError> {
        self.check_open("cannot refer a service")?;
        if url.host().is_empty() {
            let text = format!("cannot refer {url}: it names no host");
            return Err(RpcError::new(ErrorCode::Unknown, text));
        }
        let serialization = self.serializations.for_consumer(url)?;
        let connections = self.pool.lease(url);
        Ok(Arc::new(DubboInvoker::new(
            url.clone(),
            self.application.as_deref(),
            connections,
            serialization,
            &self.serializations,
        )?))
    }

    async fn export(&self, exported: Exported) -> Result<Box<dyn Exporter>, RpcError> {
        self.check_open("cannot export a service")?;
        let asked = settings::bind_address(&exported.url);
        let mut servers = self.servers.lock().await;
        let bound = match servers.get(&asked).filter(|_| asked.port() != 0) {
            Some(bound) => Arc::clone(bound),
            None => {
                let options = settings::server_options(&exported.url);
                Bound::start(&*self.exchanger, asked, options, Arc::clone(&self.serializations)).await?
            }
        };
        let address = bound.address();
        let url = if exported.url.port() == 0 {
            exported.url.with_port(address.port())
        } else {
            exported.url.clone()
        };
        let served = Arc::new(Served::new(url.clone(), exported, &self.serializations));
        bound.services().add(Arc::clone(&served), address)?;
        bound.warn_of_other_options(&url);
        servers.insert(address, bound);
        tracing::info!(rpc.service = %url.service_key(), local.addr = %address, "exported");
        Ok(Box::new(Export { url, served, address, servers: Arc::clone(&self.servers) }))
    }

    async fn drain(&self, grace: Duration) {
        let mut draining = JoinSet::new();
        for bound in self.servers.lock().await.values() {
            let bound = Arc::clone(bound);
            draining.spawn(async move { bound.drain(grace).await });
        }
        draining.join_all().await;
    }

    async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let servers = std::mem::take(&mut *self.servers.lock().await);
        for bound in servers.into_values() {
            bound.close().await;
        }
        self.pool.close().await;
    }
}

#[derive(Debug)]
struct Export {
    url: Url,
    served: Arc<Served>,
    address: SocketAddr,
    servers: Arc<Servers>,
}

#[async_trait]
impl Exporter for Export {
    fn url(&self) -> &Url {
        &self.url
    }

    async fn unexport(&self) {
        let last = {
            let mut servers = self.servers.lock().await;
            let Some(bound) = servers.get(&self.address) else { return };
            bound.services().remove(&self.served);
            if !bound.services().is_empty() {
                return;
            }
            servers.remove(&self.address)
        };
        if let Some(bound) = last {
            bound.drain(DEFAULT_SHUTDOWN_WAIT).await;
            bound.close().await;
        }
    }
}
