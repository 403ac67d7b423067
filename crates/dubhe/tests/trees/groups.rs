//! Registries of different groups in one application: each has its own mapping, metadata and instances.

use dubhe::DubheBuilder;
use dubhe::config::{ReferenceConfig, RegistryConfig, ServiceConfig};
use dubhe_discovery::MetadataInfo;

use crate::applications::{LOCAL, Mode, Provider, REMOTE, ask, registry, without_registry};
use crate::services::{DEMO, Demo, DemoClient, GREET};
use crate::stores::{Observed, Store, on_every_store, until};

on_every_store! {
    a_reference_looks_into_its_own_registry_only
    a_service_is_registered_in_each_registry_that_it_names
    services_are_registered_with_metadata_of_their_own_in_each_registry
}

/// With the registries `ra` and `rb`: the same store, under other roots.
fn in_both(name: &str, store: &dyn Store) -> DubheBuilder {
    let mut builder = without_registry(name, store);
    for group in ["ra", "rb"] {
        let registry = RegistryConfig { group: Some(group.to_owned()), ..registry(store) };
        builder.config().registries.insert(group.to_owned(), registry);
    }
    builder
}

fn below<'a>(paths: &'a [String], root: &str) -> Vec<&'a str> {
    paths.iter().map(|path| &**path).filter(|path| path.starts_with(root)).collect()
}

async fn provider_in(group: &str, name: &str, store: &dyn Store, mode: Mode) -> Provider {
    let mut builder = in_both(name, store);
    builder.config().provider.registry = Some(group.to_owned());
    Provider::with_demo(builder, mode).await
}

// C40
async fn a_reference_looks_into_its_own_registry_only(store: &dyn Store) {
    let a = provider_in("ra", "provider-a", store, REMOTE).await;
    let b = provider_in("rb", "provider-b", store, REMOTE).await;
    let (factory, looked) = Observed::new(store);
    let mut builder = in_both("demo-consumer", store);
    builder.extensions().trees.replace(store.registry().0, 0, move || factory.clone());
    let bound = ReferenceConfig { registry: Some("rb".to_owned()), ..ReferenceConfig::default() };
    builder.config().references.insert(DEMO.to_owned(), bound);
    let consumer = builder.start().await.unwrap();
    let demo = consumer.reference::<DemoClient>().connect().await.unwrap();
    assert_eq!(demo.client.say_hello("tree".to_owned()).await.unwrap(), "Hello tree");
    assert_eq!(demo.addresses(), [b.address()]);
    let definition = format!("/rb/metadata/{DEMO}/consumer/demo-consumer");
    until("the consumer's definition is published", async || store.paths().await.contains(&definition)).await;
    let looked: Vec<String> = looked.lock().iter().cloned().collect();
    assert!(looked.contains(&format!("/rb/mapping/{DEMO}")), "{looked:?}");
    assert!(!below(&looked, "/rb/metadata/provider-b/").is_empty(), "{looked:?}");
    // The first registry is the config centre of the application, and nothing else to this reference.
    let of_a = below(&looked, "/ra");
    assert!(of_a.iter().all(|path| path.starts_with("/ra/config/")), "{of_a:?}");
    assert!(!below(&store.paths().await, "/ra").iter().any(|path| path.contains("consumer")));
    for application in [consumer, a.application, b.application] {
        application.shutdown().await;
    }
}

// C40
async fn a_service_is_registered_in_each_registry_that_it_names(store: &dyn Store) {
    let provider = provider_in("rb", "provider-b", store, Mode::default()).await;
    let mapping = format!("/rb/mapping/{DEMO}");
    let definition = format!("/rb/metadata/{DEMO}/provider/provider-b");
    until("mapping and definition are written", async || {
        let paths = store.paths().await;
        paths.contains(&mapping) && paths.contains(&definition)
    })
    .await;
    assert_eq!(store.text(&mapping).await, "provider-b");
    let paths = store.paths().await;
    assert!(paths.contains(&format!("/rb/provider-b/{}", provider.address())), "as Java does with a group");
    assert_eq!(below(&paths, &format!("/rb/{DEMO}/providers/")).len(), 1);
    assert!(below(&paths, "/ra").is_empty() && below(&paths, "/services").is_empty(), "{paths:?}");
    provider.application.shutdown().await;
}

// C40
async fn services_are_registered_with_metadata_of_their_own_in_each_registry(store: &dyn Store) {
    for mode in [LOCAL, REMOTE] {
        let mut builder = in_both("demo-provider", store);
        let bound = ServiceConfig { registry: Some("rb".to_owned()), ..ServiceConfig::default() };
        builder.config().services.insert(GREET.to_owned(), bound);
        let provider = Provider::with_demo(builder, mode).await;
        provider.export_greet().await;
        provider.application.announce().await.unwrap();
        let mut services = Vec::new();
        for root in ["ra", "rb"] {
            let instance = store.text(&format!("/{root}/demo-provider/{}", provider.address())).await;
            let instance: serde_json::Value = serde_json::from_str(&instance).unwrap();
            let revision = instance["payload"]["metadata"]["dubbo.metadata.revision"].as_str().unwrap();
            let info: MetadataInfo = if mode.metadata_type == REMOTE.metadata_type {
                let text = store.text(&format!("/{root}/metadata/demo-provider/{revision}")).await;
                serde_json::from_str(&text).unwrap()
            } else {
                ask("demo-provider", &provider.address(), revision).await.expect("both are answered for")
            };
            services.push(info.services.into_keys().collect::<Vec<_>>());
        }
        let (demo, greet) = (format!("{DEMO}:dubbo"), format!("g1/{GREET}:1.0.0:dubbo"));
        assert_eq!(services, [vec![demo.clone()], vec![greet, demo]], "{mode:?}");
        let mapping = format!("/rb/mapping/{GREET}");
        until("the mapping is written", async || store.paths().await.contains(&mapping)).await;
        assert!(!store.paths().await.contains(&format!("/ra/mapping/{GREET}")));
        provider.application.shutdown().await;
    }
}
