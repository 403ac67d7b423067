//! A provider that announces itself, and a consumer that finds it: mapping, instances, metadata.

use std::sync::Arc;

use async_trait::async_trait;
use dubhe_common::Url;
use dubhe_core::discovery::{ServiceDiscovery, ServiceInstance};
use dubhe_core::error::RpcError;
use dubhe_core::mapping::ServiceNameMapping;
use dubhe_core::metadata::{MetadataClient, MetadataInfo, MetadataReport};
use dubhe_core::tree::Tree;
use dubhe_discovery::{
    Announcer, Instances, MetadataCache, MetadataSource, Observation, OwnInstance, OwnMetadata,
    TreeMetadataReport, TreeServiceDiscovery, TreeServiceNameMapping,
};

use crate::support::{Store, on_every_store, until};

on_every_store! {
    what_is_announced_is_found
    metadata_is_there_whenever_an_instance_is
}

const APP: &str = "demo";

/// The parts that one side has on its own session.
struct Side {
    mapping: TreeServiceNameMapping,
    discovery: Arc<TreeServiceDiscovery>,
    report: Arc<TreeMetadataReport>,
}

impl Side {
    fn new(store: &dyn Store, tree: &Arc<dyn Tree>) -> Self {
        let name = store.name();
        let url = format!("zookeeper://192.0.2.1:2181?group={name}&rootPath=/{name}/services&timeout=20000");
        let url = Url::parse(&url).unwrap();
        Self {
            mapping: TreeServiceNameMapping::new(&url, Arc::clone(tree)),
            discovery: Arc::new(TreeServiceDiscovery::new(&url, Arc::clone(tree))),
            report: Arc::new(TreeMetadataReport::new(&url, Arc::clone(tree))),
        }
    }

    fn announcer(&self, own: &Arc<OwnMetadata>) -> Announcer {
        let exported = Arc::clone(own);
        let describe = move |info: &MetadataInfo| {
            let urls = exported.exported();
            Ok(OwnInstance::new(APP, &urls, info.revision.as_deref().unwrap()).build()?)
        };
        let report = Arc::clone(&self.report) as Arc<dyn MetadataReport>;
        Announcer::new(Arc::clone(own), Arc::clone(&self.discovery) as _, Some(report), describe)
    }
}

fn url(name: &str) -> Url {
    Url::parse(&format!("dubbo://192.0.2.1:20880/{name}?interface={name}&application={APP}")).unwrap()
}

/// All metadata here is in the report.
#[derive(Debug)]
struct Nobody;

#[async_trait]
impl MetadataClient for Nobody {
    async fn fetch(&self, _: &Arc<ServiceInstance>, _: &str) -> Result<Option<MetadataInfo>, RpcError> {
        unreachable!("instances are not asked")
    }
}

async fn what_is_announced_is_found(store: &dyn Store) {
    let ((theirs, _f), (ours, _g)) = (store.open().await, store.open().await);
    let (provider, consumer) = (Side::new(store, &theirs), Side::new(store, &ours));
    let own = Arc::new(OwnMetadata::new(APP));
    let announcer = provider.announcer(&own);

    // The consumer is there first, and waits for each step.
    let mut applications = consumer.mapping.applications("demo.Foo");
    own.add(&url("demo.Foo"));
    provider.mapping.map("demo.Foo", APP).await.unwrap();
    let found =
        until(&mut applications, |seen| seen.known.as_ref().is_some_and(|known| !known.is_empty())).await;
    let application = found.known.unwrap().first().cloned().unwrap();
    let mut instances = consumer.discovery.instances(&application);
    announcer.announce().await.unwrap();
    let seen = until(&mut instances, |seen| seen.known.as_ref().is_some_and(|known| !known.is_empty())).await;
    let seen = seen.known.unwrap();
    let revision = seen[0].revision().unwrap();
    let report = Arc::clone(&consumer.report) as Arc<dyn MetadataReport>;
    let source = MetadataSource::new(Some(report), Arc::new(Nobody), Arc::new(MetadataCache::in_memory()));
    let metadata = source.resolve(&application, revision, &seen).await.unwrap();
    let service = metadata.find("demo.Foo").unwrap();
    assert_eq!((&*service.protocol, service.port), ("dubbo", 20880));
    assert_eq!(metadata, own.current());

    announcer.withdraw().await.unwrap();
    until(&mut instances, |seen| seen.known.as_ref().is_some_and(|known| known.is_empty())).await;
}

// C18
async fn metadata_is_there_whenever_an_instance_is(store: &dyn Store) {
    let ((theirs, _f), (ours, _g)) = (store.open().await, store.open().await);
    let (provider, consumer) = (Side::new(store, &theirs), Side::new(store, &ours));
    let own = Arc::new(OwnMetadata::new(APP));
    own.add(&url("demo.Foo0"));
    let announcer = provider.announcer(&own);
    let mut instances = consumer.discovery.instances(APP);
    let announcing = {
        let own = Arc::clone(&own);
        tokio::spawn(async move {
            for number in 1..=20 {
                announcer.announce().await.unwrap();
                own.add(&url(&format!("demo.Foo{number}")));
            }
            announcer.announce().await.unwrap();
        })
    };
    let last = loop {
        let seen =
            until(&mut instances, |seen| seen.known.as_ref().is_some_and(|known| !known.is_empty())).await;
        let revision = seen.known.unwrap()[0].revision().unwrap().to_owned();
        let metadata = consumer.report.fetch(APP, &revision).await.unwrap();
        let metadata = metadata.unwrap_or_else(|| panic!("no metadata of {revision}"));
        if metadata.services.len() == 21 {
            break revision;
        }
        let is_other = |seen: &Observation<Instances>| {
            seen.known.as_ref().and_then(|known| known.first()?.revision()) != Some(&*revision)
        };
        until(&mut instances, is_other).await;
    };
    announcing.await.unwrap();
    assert_eq!(own.current().revision, Some(last));
}
