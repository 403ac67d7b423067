//! The two ways to the providers of one service: each a directory over the registry's model, joined to one invoker.

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use dubhe_common::Url;
use dubhe_core::cluster::Cluster;
use dubhe_core::directory::Directory;
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::filter::{Filter, FilterSide};
use dubhe_core::registry::Registry;
use dubhe_directory::{RegistryDirectory, RegistryDirectoryParts};
use dubhe_migration::{DirectorySide, Side, SideFactory, SideKind};
use dubhe_registry::registered_url::{
    Dialect, Form, registered_consumer_url, registers_consumer, subscribe_url,
};
use dubhe_router::ConditionRouter;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{OwnedMutexGuard, oneshot};
use tokio::task::JoinError;
use tracing::Instrument;

use crate::application::Dubhe;
use crate::registries::OpenRegistry;

/// Makes the sides of one reference when the migration asks for them.
#[derive(Debug)]
pub(crate) struct Sides {
    dubhe: Dubhe,
    consumer: Url,
    registry: Arc<OpenRegistry>,
    cluster: Arc<dyn Cluster>,
    rules: Vec<ConditionRouter>,
    /// Whether the consumer is registered, where consumers are.
    register: bool,
    interface: Made,
    application: Made,
}

/// The directory of one kind that was made last.
#[derive(Debug, Default)]
struct Made {
    directory: Mutex<Option<Weak<dyn Directory>>>,
    /// Held while one is made: what was given up takes itself back before the next one starts.
    making: Arc<tokio::sync::Mutex<()>>,
}

impl Sides {
    pub(crate) fn new(
        dubhe: &Dubhe,
        consumer: &Url,
        registry: Arc<OpenRegistry>,
        cluster: Arc<dyn Cluster>,
        rules: Vec<ConditionRouter>,
        register: bool,
    ) -> Self {
        Self {
            dubhe: dubhe.clone(),
            consumer: consumer.clone(),
            registry,
            cluster,
            rules,
            register,
            interface: Made::default(),
            application: Made::default(),
        }
    }

    /// The directory of a kind, while there is one.
    pub(crate) fn directory(&self, kind: SideKind) -> Option<Arc<dyn Directory>> {
        let directory = self.made(kind).directory.lock().as_ref()?.upgrade()?;
        let is_open = !directory.status().borrow().closed;
        is_open.then_some(directory)
    }

    fn made(&self, kind: SideKind) -> &Made {
        match kind {
            SideKind::Interface => &self.interface,
            SideKind::Application => &self.application,
        }
    }

    /// The registry in the model of a kind.
    fn registry(&self, kind: SideKind) -> Result<Arc<dyn Registry>, RpcError> {
        let registry = match kind {
            SideKind::Interface => self.registry.interfaces.clone(),
            SideKind::Application => {
                self.registry.applications.as_ref().map(|one| Arc::clone(one.registry()))
            }
        };
        registry.ok_or_else(|| {
            let registry = self.registry.url.to_plain_string();
            RpcError::new(ErrorCode::Registry, format!("the registry {registry} has no {kind} providers"))
        })
    }

    fn parts(&self, kind: SideKind) -> Result<RegistryDirectoryParts, RpcError> {
        let registry = self.registry(kind)?;
        let consumer = &self.consumer;
        // A consumer is a node in the interface-level model only.
        let registers =
            kind == SideKind::Interface && self.register && registers_consumer(consumer, registry.url());
        let form = Form::of_registry(registry.url(), Dialect::default());
        Ok(RegistryDirectoryParts {
            consumer: consumer.clone(),
            subscribe: subscribe_url(consumer),
            register: registers.then(|| registered_consumer_url(consumer, &form)),
            protocols: Arc::clone(self.dubhe.protocols()),
            filters: self.consumer_filters(),
            chain: self.dubhe.router_chain(consumer, &self.rules),
            registry,
        })
    }

    fn consumer_filters(&self) -> Vec<Arc<dyn Filter>> {
        self.dubhe.extensions().filters(FilterSide::Consumer)
    }
}

#[async_trait]
impl SideFactory for Sides {
    async fn make(&self, kind: SideKind) -> Result<Arc<dyn Side>, RpcError> {
        let parts = self.parts(kind)?;
        let (done, made) = oneshot::channel();
        let making = Arc::clone(&self.made(kind).making);
        // A task of its own: when this future is dropped, what was done so far is taken back.
        let task = async move {
            let making = making.lock_owned().await;
            let directory = RegistryDirectory::subscribe(parts).await;
            let _ = done.send(directory.map(|made| Unclaimed(Some((made, making)))));
        };
        let task = tokio::spawn(task.in_current_span());
        let Ok(made) = made.await else { return Err(ended_early(kind, task.await)) };
        let directory = made.map_err(|error| RpcError::new(ErrorCode::Registry, error.to_string()))?.claim();
        *self.made(kind).directory.lock() = Some(Arc::downgrade(&directory));
        let invoker = self.cluster.join(Arc::clone(&directory), self.dubhe.balancers());
        Ok(Arc::new(DirectorySide::new(directory, invoker)))
    }
}

/// Why the task that makes a directory ended without one.
fn ended_early(kind: SideKind, ended: Result<(), JoinError>) -> RpcError {
    match ended {
        Err(error) if error.is_panic() => RpcError::new(
            ErrorCode::Unknown,
            format!("looking for {kind} providers panicked, a fault of the registry or of a router: {error}"),
        ),
        _ => RpcError::new(ErrorCode::Unknown, "the runtime is shutting down"),
    }
}

/// A directory that nobody has taken yet: then it leaves the registry by itself, before the next of its kind is made.
struct Unclaimed(Option<(Arc<RegistryDirectory>, OwnedMutexGuard<()>)>);

impl Unclaimed {
    fn claim(mut self) -> Arc<dyn Directory> {
        let (directory, _making) = self.0.take().expect("it is taken once, here");
        directory
    }
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        if let (Some((directory, making)), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(async move {
                directory.close().await;
                drop(making);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_that_ends_early_panicked_or_was_ended_with_the_runtime() {
        let panicked = tokio::spawn(async { panic!("index out of bounds") }).await;
        let told = ended_early(SideKind::Application, panicked).to_string();
        assert!(told.contains("application-level providers panicked"), "{told}");
        assert!(told.contains("index out of bounds"), "{told}");
        let task = tokio::spawn(std::future::pending());
        task.abort();
        let told = ended_early(SideKind::Application, task.await).to_string();
        assert!(told.contains("the runtime is shutting down"), "{told}");
    }
}
