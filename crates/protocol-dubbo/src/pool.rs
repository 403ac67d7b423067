//! Connections shared by invokers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use dubhe_common::Url;
use dubhe_core::exchange::{ClientOptions, ConnectionState, ExchangeClient, Exchanger};
use dubhe_core::transport::Endpoint;
use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::handler::NoCallbacks;
use crate::serializations::Serializations;
use crate::settings;

/// How long connections that no invoker holds wait for calls that are still pending. Calls hold their invoker and have
/// their own, shorter limits; this one is for what neither is true of.
const DRAIN_LIMIT: Duration = Duration::from_secs(600);

/// The connections of a protocol, by what they were asked for.
#[derive(Debug)]
pub(crate) struct Pool {
    exchanger: Arc<dyn Exchanger>,
    callbacks: Arc<NoCallbacks>,
    held: Mutex<HashMap<Key, Weak<Connections>>>,
    next_own: AtomicU64,
}

/// Everything that must be equal for connections to be shared. Other parameters of a URL do not matter: a change of
/// them keeps the connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    endpoint: Endpoint,
    options: ClientOptions,
    count: usize,
    /// Differs for each invoker that wants connections of its own.
    own: Option<u64>,
}

/// Connections to one provider. The last holder that lets go closes them, in the background.
#[derive(Debug)]
pub(crate) struct Connections {
    clients: Box<[Arc<dyn ExchangeClient>]>,
    next: AtomicUsize,
    key: Key,
    pool: Weak<Pool>,
    runtime: Handle,
}

impl Pool {
    pub(crate) fn new(exchanger: Arc<dyn Exchanger>, serializations: Arc<Serializations>) -> Self {
        let callbacks = Arc::new(NoCallbacks::new(serializations));
        Self { exchanger, callbacks, held: Mutex::default(), next_own: AtomicU64::new(0) }
    }

    /// The connections for an invoker of `url`: those that others hold, or new ones.
    pub(crate) fn lease(self: &Arc<Self>, url: &Url) -> Arc<Connections> {
        let own = settings::own_connections(url);
        let key = Key {
            endpoint: Endpoint { host: url.connect_host().into(), port: url.port() },
            options: settings::client_options(url),
            count: if own > 0 { own } else { settings::shared_connections(url) },
            own: (own > 0).then(|| self.next_own.fetch_add(1, Ordering::Relaxed)),
        };
        let mut held = self.held.lock();
        if let Some(connections) = held.get(&key).and_then(Weak::upgrade) {
            drop(held);
            // Somebody heard of this provider just now: it may have restarted.
            connections.clients.iter().for_each(|client| client.retry_now());
            return connections;
        }
        let connect = || {
            let callbacks = Arc::clone(&self.callbacks);
            self.exchanger.connect(key.endpoint.clone(), key.options.clone(), callbacks)
        };
        let connections = Arc::new(Connections {
            clients: (0..key.count).map(|_| connect()).collect(),
            next: AtomicUsize::new(0),
            key: key.clone(),
            pool: Arc::downgrade(self),
            runtime: Handle::current(),
        });
        held.insert(key, Arc::downgrade(&connections));
        connections
    }

    /// Closes all connections at once.
    pub(crate) async fn close(&self) {
        let held: Vec<_> = self.held.lock().values().filter_map(Weak::upgrade).collect();
        for connections in held {
            for client in &connections.clients {
                client.close(Duration::ZERO).await;
            }
        }
    }
}

impl Connections {
    /// The connection for one call: the next one in turn that can take it.
    pub(crate) fn pick(&self) -> &dyn ExchangeClient {
        if let [only] = &*self.clients {
            return &**only;
        }
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        let turn = |step: usize| &*self.clients[first.wrapping_add(step) % self.clients.len()];
        (0..self.clients.len()).map(turn).find(|client| self.takes_calls(*client)).unwrap_or_else(|| turn(0))
    }

    pub(crate) fn is_available(&self) -> bool {
        self.clients.iter().any(|client| self.takes_calls(&**client))
    }

    fn takes_calls(&self, client: &dyn ExchangeClient) -> bool {
        match client.state() {
            ConnectionState::Connected => true,
            // Connects when it is called.
            ConnectionState::Connecting => self.key.options.lazy,
            _ => false,
        }
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            let mut held = pool.held.lock();
            // The place may be taken by new connections already.
            if held.get(&self.key).is_some_and(|held| held.strong_count() == 0) {
                held.remove(&self.key);
            }
        }
        for client in std::mem::take(&mut self.clients) {
            self.runtime.spawn(async move { client.close(DRAIN_LIMIT).await });
        }
    }
}
