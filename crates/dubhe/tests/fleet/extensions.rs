//! What users put in.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use dubhe::config::RegistryConfig;
use dubhe::core::filter::{Filter, FilterSide};
use dubhe::core::invocation::Invocation;
use dubhe::core::invoker::{Invoker, SharedInvoker};
use dubhe::core::load_balance::{Candidates, LoadBalance};
use dubhe::core::registry::{Registry, RegistryError, RegistryFactory, Subscription};
use dubhe::core::router::Router;
use dubhe::{BoxFuture, Dubhe, Response, Url};

use crate::support::{Shop, ShopClient, World};

#[derive(Debug)]
struct Last;

impl LoadBalance for Last {
    fn name(&self) -> &str {
        "last"
    }

    fn select<'a>(&self, candidates: &'a Candidates, _: &Invocation) -> Option<&'a SharedInvoker> {
        candidates.invokers().iter().max_by_key(|one| one.url().port())
    }
}

#[tokio::test]
async fn a_balancer_under_a_new_name_is_used_where_it_is_named() {
    let world = World::new();
    let providers = [world.provider("a").await, world.provider("b").await, world.provider("c").await];
    let highest = providers.iter().max_by_key(|one| one.port()).unwrap().address();
    let mut builder = world.builder("consumer");
    builder.extensions().load_balances.register("last", || Arc::new(Last)).unwrap();
    let consumer = builder.start().await.unwrap();
    let shop = consumer.reference::<ShopClient>().load_balance("last").connect().await.unwrap();
    crate::support::until("all connected", || {
        shop.directory().unwrap().invokers().iter().all(|one| one.is_available())
    })
    .await;
    let name = providers
        .iter()
        .find(|one| one.address() == highest)
        .map(|one| one.application.config().application.name.clone());
    for _ in 0..20 {
        assert_eq!(Some(shop.client.who().await.unwrap()), name);
    }
}

#[derive(Debug)]
struct OnlyPort(u16);

impl Router for OnlyPort {
    fn name(&self) -> &str {
        "only-port"
    }

    fn route<'a>(&self, input: &[&'a SharedInvoker], _: &Url, _: &Invocation) -> Vec<&'a SharedInvoker> {
        input.iter().copied().filter(|one| one.url().port() == self.0).collect()
    }
}

#[tokio::test]
async fn a_router_of_the_user_is_obeyed_and_explained() {
    let world = World::new();
    let a = world.provider("a").await;
    let _b = world.provider("b").await;
    let mut builder = world.builder("consumer");
    builder.extensions().routers.push(Arc::new(OnlyPort(a.port())));
    let consumer = builder.start().await.unwrap();
    let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
    for _ in 0..20 {
        assert_eq!(shop.client.who().await.unwrap(), "a");
    }
    assert!(shop.explain("who").to_string().contains("only-port"));
}

#[derive(Debug, Default)]
struct Counting(AtomicUsize);

impl Filter for Counting {
    fn invoke<'a>(
        &'a self,
        next: &'a dyn Invoker,
        call: Invocation,
    ) -> BoxFuture<'a, dubhe::Result<Response>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        next.invoke(call)
    }
}

#[tokio::test]
async fn filters_see_the_logical_call_once_and_each_attempt() {
    let world = World::new();
    let _a = world.provider("a").await;
    let (logical, attempts) = (Arc::new(Counting::default()), Arc::new(Counting::default()));
    let mut builder = world.builder("consumer");
    builder.extensions().filters.push((FilterSide::Cluster, Arc::clone(&logical) as Arc<dyn Filter>));
    builder.extensions().filters.push((FilterSide::Consumer, Arc::clone(&attempts) as Arc<dyn Filter>));
    let consumer = builder.start().await.unwrap();
    let shop = consumer.reference::<ShopClient>().retries(2).param("wait.timeout", 30).get().await.unwrap();
    let error = shop.wait().await.unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
    assert_eq!(logical.0.load(Ordering::SeqCst), 1);
    assert_eq!(attempts.0.load(Ordering::SeqCst), 3);
    assert_eq!(error.attempts().len(), 3, "{error:?}");
}

#[tokio::test]
async fn a_filter_of_the_provider_sees_what_is_served() {
    let world = World::new();
    let served = Arc::new(Counting::default());
    let mut builder = world.builder("a").protocol(crate::support::loopback(0));
    builder.extensions().filters.push((FilterSide::Provider, Arc::clone(&served) as Arc<dyn Filter>));
    let provider = builder.start().await.unwrap();
    let shop = crate::support::NamedShop { name: "a".to_owned(), inside: Arc::default() };
    provider.export(crate::support::ShopService::new(shop)).await.unwrap();
    let consumer = world.consumer().await;
    let shop = consumer.refer::<ShopClient>().await.unwrap();
    for _ in 0..3 {
        assert_eq!(shop.who().await.unwrap(), "a");
    }
    assert_eq!(served.0.load(Ordering::SeqCst), 3);
}

/// A registry that was written wrongly.
#[derive(Debug)]
struct Faulty(Url);

#[derive(Debug)]
struct Faults;

impl RegistryFactory for Faults {
    fn open(&self, url: &Url) -> Result<Arc<dyn Registry>, RegistryError> {
        Ok(Arc::new(Faulty(url.clone())))
    }
}

#[async_trait]
impl Registry for Faulty {
    fn url(&self) -> &Url {
        &self.0
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
        panic!("index out of bounds")
    }

    async fn lookup(&self, _: &Url) -> Result<Vec<Url>, RegistryError> {
        Ok(Vec::new())
    }

    async fn close(&self) {}
}

#[tokio::test]
async fn a_panic_in_a_registry_is_told_as_what_it_is_and_ends_nothing() {
    let registry =
        RegistryConfig { file_cache: Some(false), ..RegistryConfig::at("faulty://192.0.2.1:7000") };
    let mut builder = Dubhe::builder("consumer").registry_config(registry);
    builder.extensions().registries.register("faulty", || Arc::new(Faults)).unwrap();
    let consumer = builder.start().await.unwrap();
    let error = consumer.refer::<ShopClient>().await.unwrap_err().to_string();
    for part in ["interface-level providers panicked", "index out of bounds"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert!(!error.contains("shutting down"), "{error}");
    consumer.shutdown().await;
}
