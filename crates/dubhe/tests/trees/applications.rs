//! Applications set up as the recorded ones were.

use std::sync::Arc;

use dubhe::config::{ProtocolConfig, RegistryConfig};
use dubhe::{Dubhe, DubheBuilder, ExportedService};
use dubhe_discovery::{METADATA_SERVICE, METADATA_SERVICE_V1, MetadataInfo, ask_metadata_service};

use crate::services::{DemoClient, DemoService, GreetService, Recorded};
use crate::stores::{LONG, Store};

pub(crate) const PROVIDER: &str = "demo-provider";
pub(crate) const CONSUMER: &str = "demo-consumer";

/// An application with `store` as its registry.
pub(crate) fn application(name: &str, store: &dyn Store) -> DubheBuilder {
    let mut builder = without_registry(name, store);
    builder.config().registry = Some(registry(store));
    builder
}

/// An application that can reach `store`.
pub(crate) fn without_registry(name: &str, store: &dyn Store) -> DubheBuilder {
    let (protocol, factory) = (store.registry().0, store.factory());
    let mut builder = Dubhe::builder(name).protocol(loopback()).shutdown_wait(LONG);
    builder.extensions().trees.replace(protocol, 0, move || Arc::clone(&factory));
    let application = &mut builder.config().application;
    // Settings of the recorded applications that mean nothing here, and are to be where they are there.
    for (name, value) in [("logger", "slf4j"), ("qos.enable", "false")] {
        application.parameters.insert(name.to_owned(), value.to_owned());
    }
    builder
}

/// The registry, without files in the home directory.
pub(crate) fn registry(store: &dyn Store) -> RegistryConfig {
    RegistryConfig { file_cache: Some(false), ..RegistryConfig::at(store.registry().1) }
}

fn loopback() -> ProtocolConfig {
    ProtocolConfig { host: Some("127.0.0.1".to_owned()), ..ProtocolConfig::dubbo(0) }
}

/// How providers are registered, as it is configured.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mode {
    pub(crate) register_mode: Option<&'static str>,
    pub(crate) metadata_type: Option<&'static str>,
}

pub(crate) const REMOTE: Mode = Mode { register_mode: Some("instance"), metadata_type: Some("remote") };
pub(crate) const LOCAL: Mode = Mode { register_mode: Some("instance"), metadata_type: Some("local") };

/// The recorded provider.
pub(crate) struct Provider {
    pub(crate) application: Dubhe,
    pub(crate) demo: ExportedService,
    pub(crate) inside: Arc<Recorded>,
}

impl Provider {
    /// With both services.
    pub(crate) async fn start(store: &dyn Store, mode: Mode) -> Self {
        let provider = Self::with_demo(application(PROVIDER, store), mode).await;
        provider.export_greet().await;
        provider.application.announce().await.unwrap();
        provider
    }

    /// With the first service only.
    pub(crate) async fn with_demo(mut builder: DubheBuilder, mode: Mode) -> Self {
        let config = &mut builder.config().application;
        config.register_mode = mode.register_mode.map(str::to_owned);
        config.metadata_type = mode.metadata_type.map(str::to_owned);
        let application = builder.start().await.unwrap();
        let inside = Arc::new(Recorded::default());
        let demo = application.export(DemoService::new(Arc::clone(&inside))).await.unwrap();
        application.announce().await.unwrap();
        Self { application, demo, inside }
    }

    pub(crate) async fn export_greet(&self) -> ExportedService {
        self.application.export(GreetService::new(Arc::clone(&self.inside))).await.unwrap()
    }

    pub(crate) fn port(&self) -> u16 {
        self.demo.urls()[0].port()
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port())
    }

    /// The node of its instance.
    pub(crate) fn instance(&self) -> String {
        format!("/services/{PROVIDER}/{}", self.address())
    }
}

/// The recorded consumer, with its reference.
pub(crate) async fn consumer(store: &dyn Store) -> (Dubhe, DemoClient) {
    let consumer = application(CONSUMER, store).start().await.unwrap();
    let reference = consumer.reference::<DemoClient>().check(false).retries(0);
    let reference = reference.timeout(std::time::Duration::from_secs(2));
    let demo = reference.param("record.sent", true).param("record.return", false).get().await.unwrap();
    (consumer, demo)
}

/// Asks the metadata service of an application at an address, over the wire.
pub(crate) async fn ask(application: &str, address: &str, revision: &str) -> Option<MetadataInfo> {
    let consumer = Dubhe::builder("asking").start().await.unwrap();
    let asking = consumer
        .generic(METADATA_SERVICE)
        .group(application)
        .version(METADATA_SERVICE_V1)
        .url(format!("dubbo://{address}/{METADATA_SERVICE}"))
        .get()
        .await
        .unwrap();
    let answer = ask_metadata_service(asking.invoker(), revision).await.unwrap();
    consumer.shutdown().await;
    answer
}
