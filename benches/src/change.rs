//! What does an address change cost, from the notification to a routable list? No TCP.

use std::sync::Arc;

use async_trait::async_trait;
use dubhe_common::{Url, UrlFactory};
use dubhe_core::directory::Directory;
use dubhe_core::registry::{Category, Registry, RegistryError, ServiceView, Subscription};
use dubhe_directory::{RegistryDirectory, RegistryDirectoryParts};
use dubhe_router::{Chain, ConditionRouter};
use tokio::sync::watch;

use crate::doubles::{consumer, protocols, provider_text};
use crate::pick::RULE;

/// A directory of `n` providers whose registry view the bench sets.
#[derive(Debug)]
pub struct Changes {
    directory: Arc<RegistryDirectory>,
    view: watch::Sender<Arc<ServiceView>>,
    factory: UrlFactory,
    names: Vec<String>,
    urls: Vec<Url>,
    next: usize,
}

/// A registry whose only view is set from outside.
#[derive(Debug)]
struct Pushed {
    url: Url,
    view: watch::Receiver<Arc<ServiceView>>,
}

#[async_trait]
impl Registry for Pushed {
    fn url(&self) -> &Url {
        &self.url
    }

    fn is_available(&self) -> bool {
        true
    }

    async fn register(&self, _: &Url) -> Result<(), RegistryError> {
        Ok(())
    }

    async fn unregister(&self, _: &Url) -> Result<(), RegistryError> {
        Ok(())
    }

    async fn subscribe(&self, _: &Url) -> Result<Subscription, RegistryError> {
        Ok(Subscription::new(self.view.clone(), ()))
    }

    async fn lookup(&self, _: &Url) -> Result<Vec<Url>, RegistryError> {
        Ok(Vec::new())
    }

    async fn close(&self) {}
}

impl Changes {
    /// A directory with a condition rule and no provider yet, and the names of `n` of them.
    pub async fn new(n: usize) -> anyhow::Result<Self> {
        let (view, receiver) = watch::channel(Arc::default());
        let registry = Pushed { url: Url::builder("memory", "local", 0).build(), view: receiver };
        let chain = Chain::builder(consumer()).rule(ConditionRouter::parse(RULE)?).build();
        let parts = RegistryDirectoryParts {
            registry: Arc::new(registry),
            consumer: consumer(),
            subscribe: consumer(),
            register: None,
            protocols: protocols(),
            filters: Vec::new(),
            chain: Arc::new(chain),
        };
        let directory = RegistryDirectory::subscribe(parts).await?;
        let names = (0..n).map(|index| dubhe_common::encode(&provider_text(index))).collect();
        Ok(Self { directory, view, factory: UrlFactory::new(), names, urls: Vec::new(), next: n })
    }

    /// The first list: parses all names, notifies, and waits until all are routable.
    pub async fn first(&mut self) {
        self.urls = self.names.iter().filter_map(|name| self.factory.parse_encoded(name).ok()).collect();
        self.notify().await;
    }

    /// One provider leaves and another one comes: parses one name, notifies, and waits until it is routable.
    pub async fn one_changed(&mut self) {
        let name = dubhe_common::encode(&provider_text(self.next));
        let at = self.next % self.urls.len();
        self.next += 1;
        if let Ok(url) = self.factory.parse_encoded(&name) {
            self.urls[at] = url;
        }
        self.notify().await;
    }

    async fn notify(&self) {
        let mut status = self.directory.status();
        status.borrow_and_update();
        let urls: Arc<[Url]> = self.urls.as_slice().into();
        let providers = Category::Known { total: urls.len(), urls };
        self.view.send_replace(Arc::new(ServiceView { providers, ..ServiceView::default() }));
        // The directory publishes once per view.
        let _ = status.changed().await;
    }
}
