//! Applications that find each other through the registry of application-level discovery.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use dubhe_common::Url;
use dubhe_core::BoxFuture;
use dubhe_core::directory::{Directory, DirectoryStatus};
use dubhe_core::discovery::ServiceInstance;
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::extension::Extensions;
use dubhe_core::invocation::Invocation;
use dubhe_core::invoker::{Invoker, SharedInvoker};
use dubhe_core::metadata::{MetadataClient, MetadataInfo, MetadataReport};
use dubhe_core::protocol::{Exported, Exporter, Protocol};
use dubhe_core::registry::{Category, Registry, RegistryError, ServiceView, Subscription};
use dubhe_core::response::Response;
use dubhe_core::tree::Tree;
use dubhe_directory::{RegistryDirectory, RegistryDirectoryParts};
use dubhe_discovery::{
    Announcer, InstanceListeners, MetadataCache, MetadataSource, OwnInstance, OwnMetadata, ServiceDiscovery,
    ServiceDiscoveryRegistry, ServiceDiscoveryRegistryParts, TreeMetadataReport, TreeServiceDiscovery,
    TreeServiceNameMapping,
};
use dubhe_router::Chain;
use tokio::time::timeout;

use crate::support::{InMemory, LONG, Store, on_every_store, until};

on_every_store! {
    a_service_is_found_as_soon_as_it_is_registered
    the_last_instance_leaves_an_explicit_empty_list
    a_service_that_a_second_application_gets_is_found_at_both
    the_services_of_an_application_are_announced_together
    an_outage_keeps_the_addresses
    a_plain_application_is_found_by_who_says_what_it_speaks
    a_closed_registry_takes_its_instance_back_and_ends_its_subscriptions
    a_directory_serves_the_instances_of_applications
}

/// All metadata here is in the report.
#[derive(Debug)]
struct Nobody;

#[async_trait]
impl MetadataClient for Nobody {
    async fn fetch(&self, _: &Arc<ServiceInstance>, _: &str) -> Result<Option<MetadataInfo>, RpcError> {
        Err(RpcError::new(ErrorCode::Network, "instances are not asked"))
    }
}

fn address(store: &dyn Store, params: &str) -> Url {
    let name = store.name();
    let url =
        format!("zookeeper://192.0.2.1:2181?group={name}&rootPath=/{name}/services&timeout=20000{params}");
    Url::parse(&url).unwrap()
}

fn registry(store: &dyn Store, tree: &Arc<dyn Tree>, application: &str) -> ServiceDiscoveryRegistry {
    registry_at(&address(store, ""), tree, application)
}

fn registry_at(url: &Url, tree: &Arc<dyn Tree>, application: &str) -> ServiceDiscoveryRegistry {
    let discovery: Arc<dyn ServiceDiscovery> = Arc::new(TreeServiceDiscovery::new(url, Arc::clone(tree)));
    let report: Arc<dyn MetadataReport> = Arc::new(TreeMetadataReport::new(url, Arc::clone(tree)));
    let cache = Arc::new(MetadataCache::in_memory());
    let source = Arc::new(MetadataSource::new(Some(Arc::clone(&report)), Arc::new(Nobody), cache));
    let own = Arc::new(OwnMetadata::new(application));
    let (exported, name) = (Arc::clone(&own), application.to_owned());
    let describe = move |info: &MetadataInfo| {
        let urls = exported.exported();
        Ok(OwnInstance::new(&name, &urls, info.revision.as_deref().unwrap()).build()?)
    };
    let announcer =
        Arc::new(Announcer::new(Arc::clone(&own), Arc::clone(&discovery), Some(report), describe));
    ServiceDiscoveryRegistry::new(ServiceDiscoveryRegistryParts {
        url: url.clone(),
        session: tree.session(),
        mapping: Arc::new(TreeServiceNameMapping::new(url, Arc::clone(tree))),
        listeners: Arc::new(InstanceListeners::new(discovery, source)),
        rules: None,
        own: Some((own, announcer)),
    })
}

fn provider(number: u8, interface: &str, application: &str) -> Url {
    let url = format!(
        "dubbo://192.0.2.{number}:20880/{interface}?application={application}&interface={interface}&side=provider&timeout=7"
    );
    Url::parse(&url).unwrap()
}

fn consumer(params: &str) -> Url {
    Url::parse(&format!("consumer://192.0.2.9/demo.Foo?interface=demo.Foo&side=consumer&category=providers,configurators,routers{params}"))
        .unwrap()
}

/// `number@application` of the known addresses.
fn shown(view: &ServiceView) -> Option<Vec<String>> {
    let urls = view.providers.urls()?.iter();
    Some(
        urls.map(|url| format!("{}@{}", url.host().rsplit('.').next().unwrap(), url.application().unwrap()))
            .collect(),
    )
}

async fn sees(subscription: &mut Subscription, wanted: &[&str]) -> Arc<ServiceView> {
    sees_by(subscription, wanted, |_| {}).await
}

async fn sees_by(
    subscription: &mut Subscription,
    wanted: &[&str],
    look: impl Fn(&ServiceView),
) -> Arc<ServiceView> {
    let seen = async {
        loop {
            let view = subscription.view();
            look(&view);
            if shown(&view).is_some_and(|shown| shown == wanted) && view.trouble.is_none() {
                return view;
            }
            assert!(subscription.changed().await, "the registry was closed");
        }
    };
    timeout(LONG, seen).await.unwrap_or_else(|_| panic!("{wanted:?} did not come"))
}

// C33
async fn a_service_is_found_as_soon_as_it_is_registered(store: &dyn Store) {
    let ((theirs, _f), (ours, _g)) = (store.open().await, store.open().await);
    let (theirs, ours) = (registry(store, &theirs, "app-a"), registry(store, &ours, "app-c"));
    let mut subscription = ours.subscribe(&consumer("")).await.unwrap();
    let first = sees(&mut subscription, &[]).await;
    assert!(matches!(first.providers, Category::Known { total: 0, .. }), "nobody has mapped it");
    theirs.register(&provider(1, "demo.Foo", "app-a")).await.unwrap();
    let view = sees(&mut subscription, &["1@app-a"]).await;
    let url = &view.providers.urls().unwrap()[0];
    assert_eq!(
        url.to_plain_string(),
        "dubbo://192.0.2.1:20880/demo.Foo?application=app-a&interface=demo.Foo&side=provider&timeout=7"
    );
    assert_eq!(ours.lookup(&consumer("")).await.unwrap(), std::slice::from_ref(url));
    // Others of the application do not change it.
    theirs.register(&provider(1, "demo.Bar", "app-a")).await.unwrap();
    let bar = Url::parse("consumer://192.0.2.9/demo.Bar?interface=demo.Bar").unwrap();
    sees(&mut ours.subscribe(&bar).await.unwrap(), &["1@app-a"]).await;
    let after = sees(&mut subscription, &["1@app-a"]).await;
    assert!(after.providers.urls().unwrap()[0].ptr_eq(url));
}

// C10
async fn the_last_instance_leaves_an_explicit_empty_list(store: &dyn Store) {
    let ((theirs, _f), (ours, _g)) = (store.open().await, store.open().await);
    let (theirs, ours) = (registry(store, &theirs, "app-a"), registry(store, &ours, "app-c"));
    let url = provider(1, "demo.Foo", "app-a");
    let mut subscription = ours.subscribe(&consumer("")).await.unwrap();
    for _ in 0..2 {
        theirs.register(&url).await.unwrap();
        sees(&mut subscription, &["1@app-a"]).await;
        theirs.unregister(&url).await.unwrap();
        let view = sees(&mut subscription, &[]).await;
        assert!(matches!(view.providers, Category::Known { total: 0, .. }));
    }
}

// C12
async fn a_service_that_a_second_application_gets_is_found_at_both(store: &dyn Store) {
    let ((one, _f), (two, _g), (ours, _h)) = (store.open().await, store.open().await, store.open().await);
    let (one, two) = (registry(store, &one, "app-a"), registry(store, &two, "app-b"));
    let ours = registry(store, &ours, "app-c");
    one.register(&provider(1, "demo.Foo", "app-a")).await.unwrap();
    let mut subscription = ours.subscribe(&consumer("")).await.unwrap();
    sees(&mut subscription, &["1@app-a"]).await;
    let is_there = |view: &ServiceView| assert!(shown(view).is_some_and(|shown| !shown.is_empty()));
    two.register(&provider(2, "demo.Foo", "app-b")).await.unwrap();
    sees_by(&mut subscription, &["1@app-a", "2@app-b"], is_there).await;
    one.close().await;
    sees_by(&mut subscription, &["2@app-b"], is_there).await;
    drop(subscription);
    let left = async {
        while ours.listeners().listening() > 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(LONG, left).await.unwrap();
}

async fn the_services_of_an_application_are_announced_together(store: &dyn Store) {
    let ((theirs, _f), (ours, _g)) = (store.open().await, store.open().await);
    let announcing = registry(store, &theirs, "app-a");
    for number in 0..20 {
        announcing.register(&provider(1, &format!("demo.Foo{number}"), "app-a")).await.unwrap();
    }
    announcing.register(&provider(1, "demo.Foo", "app-a")).await.unwrap();
    let ours = registry(store, &ours, "app-c");
    let mut subscription = ours.subscribe(&consumer("")).await.unwrap();
    sees(&mut subscription, &["1@app-a"]).await;
    let revisions = theirs.list(&format!("/{}/metadata/app-a", store.name())).await.unwrap().unwrap();
    assert!(revisions.len() <= 2, "{revisions:?}");
}

// C20
async fn an_outage_keeps_the_addresses(store: &dyn Store) {
    let ((theirs, _f), (ours, faults)) = (store.open().await, store.open().await);
    let (theirs, ours) = (registry(store, &theirs, "app-a"), registry(store, &ours, "app-c"));
    theirs.register(&provider(1, "demo.Foo", "app-a")).await.unwrap();
    let mut subscription = ours.subscribe(&consumer("")).await.unwrap();
    sees(&mut subscription, &["1@app-a"]).await;
    faults.cut().await;
    let troubled = async {
        while subscription.view().trouble.is_none() {
            assert!(subscription.changed().await);
        }
    };
    timeout(LONG, troubled).await.unwrap();
    assert_eq!(shown(&subscription.view()).unwrap(), ["1@app-a"]);
    faults.restore().await;
    sees(&mut subscription, &["1@app-a"]).await;
}

// C111
async fn a_plain_application_is_found_by_who_says_what_it_speaks(store: &dyn Store) {
    let (ours, _f) = store.open().await;
    let path = format!("/{}/services/boot/0d9f2c1e-uuid", store.name());
    let data = |status: &str| {
        Bytes::from(format!(
            r#"{{"name":"boot","id":"0d9f2c1e-uuid","address":"192.0.2.5","port":8080,"payload":{{
            "@class":"org.springframework.cloud.zookeeper.discovery.ZookeeperInstance","id":"boot-1","name":"boot",
            "metadata":{{"instance_status":"{status}"}}}},"registrationTimeUTC":1,"serviceType":"DYNAMIC"}}"#
        ))
    };
    ours.create(&path, data("UP")).await.unwrap();
    let registry = registry(store, &ours, "app-c");
    let asked = consumer("&provided-by=boot&protocol=dubbo&version=1.0.0");
    let mut subscription = registry.subscribe(&asked).await.unwrap();
    let view = sees(&mut subscription, &["5@boot"]).await;
    assert_eq!(
        view.providers.urls().unwrap()[0].to_plain_string(),
        "dubbo://192.0.2.5:8080/demo.Foo?application=boot&interface=demo.Foo&version=1.0.0"
    );
    assert_eq!(ours.set(&path, data("OUT_OF_SERVICE"), None).await, Ok(true));
    let view = sees(&mut subscription, &[]).await;
    assert!(matches!(view.providers, Category::Known { total: 1, .. }));
}

async fn a_closed_registry_takes_its_instance_back_and_ends_its_subscriptions(store: &dyn Store) {
    let ((theirs, _f), (ours, _g)) = (store.open().await, store.open().await);
    let (theirs, ours) = (registry(store, &theirs, "app-a"), registry(store, &ours, "app-c"));
    theirs.register(&provider(1, "demo.Foo", "app-a")).await.unwrap();
    let mut of_ours = ours.subscribe(&consumer("")).await.unwrap();
    let mut of_theirs = theirs.subscribe(&consumer("")).await.unwrap();
    sees(&mut of_ours, &["1@app-a"]).await;
    assert!(theirs.is_available());
    theirs.close().await;
    theirs.close().await;
    sees(&mut of_ours, &[]).await;
    let ended = async { while of_theirs.changed().await {} };
    timeout(LONG, ended).await.unwrap();
    assert!(!theirs.is_available());
    assert!(matches!(theirs.subscribe(&consumer("")).await, Err(RegistryError::Closed(_))));
    assert!(matches!(theirs.register(&consumer("")).await, Err(RegistryError::Closed(_))));
}

/// Refers to everything and calls nothing.
#[derive(Debug)]
struct Paper;

#[derive(Debug)]
struct Sheet(Url);

#[async_trait]
impl Protocol for Paper {
    fn name(&self) -> &str {
        "dubbo"
    }

    fn default_port(&self) -> u16 {
        20_880
    }

    fn refer(&self, url: &Url) -> Result<SharedInvoker, RpcError> {
        Ok(Arc::new(Sheet(url.clone())))
    }

    async fn export(&self, _: Exported) -> Result<Box<dyn Exporter>, RpcError> {
        unreachable!("nothing is exported here")
    }

    async fn drain(&self, _: Duration) {}

    async fn close(&self) {}
}

impl Invoker for Sheet {
    fn url(&self) -> &Url {
        &self.0
    }

    fn is_available(&self) -> bool {
        true
    }

    fn invoke(&self, _: Invocation) -> BoxFuture<'_, Result<Response, RpcError>> {
        unreachable!("nothing is called here")
    }
}

async fn a_directory_serves_the_instances_of_applications(store: &dyn Store) {
    let ((theirs, _f), (ours, _g)) = (store.open().await, store.open().await);
    let (theirs, ours) = (registry(store, &theirs, "app-a"), registry(store, &ours, "app-c"));
    let url = provider(1, "demo.Foo", "app-a").with_param("group", "g1").with_param("retries", "9");
    theirs.register(&url).await.unwrap();
    let mut protocols: Extensions<dyn Protocol> = Extensions::new("protocol");
    protocols.register("dubbo", || Arc::new(Paper) as Arc<dyn Protocol>).unwrap();
    let consumer = consumer("&group=*&timeout=5&application=app-c");
    let directory = RegistryDirectory::subscribe(RegistryDirectoryParts {
        registry: Arc::new(ours),
        consumer: consumer.clone(),
        subscribe: consumer.clone(),
        register: Some(consumer.clone()),
        protocols: Arc::new(protocols),
        filters: Vec::new(),
        chain: Arc::new(Chain::builder(consumer).build()),
    })
    .await
    .unwrap();
    let mut status = directory.status();
    until(&mut status, |status| status.total == 1).await;
    let invokers = directory.invokers();
    let url = invokers[0].url();
    // The consumer's timeout, the provider's group; how often is the consumer's business.
    assert_eq!((url.param("timeout"), url.group(), url.param("retries")), (Some("5"), Some("g1"), None));
    assert_eq!(
        (url.address(), url.param("remote.application")),
        ("192.0.2.1:20880".to_owned(), Some("app-a"))
    );
    theirs.close().await;
    let left = until(&mut status, |status: &DirectoryStatus| status.total == 0).await;
    assert!(left.forbidden && left.initialized);
    directory.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_registry_out_of_reach_fails_only_who_checks() {
    let store = InMemory::default();
    let (tree, faults) = store.open().await;
    faults.cut().await;
    let checking = registry(&store, &tree, "app-c");
    let refused = checking.subscribe(&consumer("")).await;
    assert!(matches!(refused, Err(RegistryError::Failed { action: "subscribe", .. })), "{refused:?}");
    let mut subscription = checking.subscribe(&consumer("&check=false")).await.unwrap();
    assert_eq!(shown(&subscription.view()), None, "not known is not empty");
    let lax = registry_at(&address(&store, "&check=false"), &tree, "app-c");
    lax.subscribe(&consumer("")).await.unwrap();
    faults.restore().await;
    sees(&mut subscription, &[]).await;
}

#[tokio::test]
async fn a_subscription_to_rules_alone_follows_no_application() {
    let store = InMemory::default();
    let (tree, _f) = store.open().await;
    let registry = registry(&store, &tree, "app-c");
    let url =
        Url::parse("provider://192.0.2.1:20880/demo.Foo?interface=demo.Foo&category=configurators").unwrap();
    let mut subscription = registry.subscribe(&url).await.unwrap();
    assert_eq!(shown(&subscription.view()), None);
    assert_eq!(registry.listeners().listening(), 0);
}
