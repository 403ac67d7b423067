//! One reference over several registries.

use std::collections::BTreeSet;
use std::time::Duration;

use dubhe::config::RegistryConfig;
use dubhe::{CallOptions, Connected, Dubhe, DubheBuilder, ErrorCode};
use dubhe_testkit::{BreakableProxy, ZooKeeper};

use crate::support::{LONG, NamedShop, Shop, ShopClient, ShopService, World, loopback, until};

impl World {
    /// The registry whose nodes are below `group`.
    fn group(group: &str, params: &[(&str, &str)]) -> RegistryConfig {
        RegistryConfig {
            group: Some(group.to_owned()),
            file_cache: Some(false),
            parameters: params.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
            ..RegistryConfig::at("memory://local")
        }
    }

    fn application(&self, name: &str, registries: impl IntoIterator<Item = RegistryConfig>) -> DubheBuilder {
        let builder = Dubhe::builder(name).memory_store(&self.store).shutdown_wait(LONG);
        registries.into_iter().fold(builder, DubheBuilder::registry_config)
    }

    async fn provider_in(&self, name: &str, registry: RegistryConfig) -> Dubhe {
        offer(self.application(name, [registry]).protocol(loopback(0)), name).await
    }
}

async fn offer(builder: DubheBuilder, name: &str) -> Dubhe {
    let application = builder.start().await.unwrap();
    let shop = NamedShop { name: name.to_owned(), inside: Default::default() };
    application.export(ShopService::new(shop)).await.unwrap();
    application
}

#[tokio::test]
async fn the_providers_of_all_registries_are_called() {
    let world = World::new();
    let _a = world.provider_in("a", World::group("ra", &[])).await;
    let _b = world.provider_in("b", World::group("rb", &[])).await;
    let consumer = world.application("consumer", [World::group("ra", &[]), World::group("rb", &[])]);
    let consumer = consumer.start().await.unwrap();
    let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
    let mut seen = BTreeSet::new();
    for _ in 0..200 {
        seen.insert(shop.client.who().await.unwrap());
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["a", "b"]);
    let found = shop.registries().into_iter().map(|one| one.migration.application.addresses.len());
    assert_eq!(found.collect::<Vec<_>>(), [1, 1]);
    // Named, it is that one alone.
    let mut builder = world.application("bound", [World::group("ra", &[]), World::group("rb", &[])]);
    builder.config().consumer.registry = Some("registry-2".to_owned());
    let bound = builder.start().await.unwrap();
    let shop = bound.reference::<ShopClient>().connect().await.unwrap();
    for _ in 0..20 {
        assert_eq!(shop.client.who().await.unwrap(), "b");
    }
    consumer.shutdown().await;
    bound.shutdown().await;
}

#[tokio::test]
async fn an_address_that_is_configured_twice_has_one_instance() {
    let world = World::new();
    let twice = || {
        let applications = RegistryConfig::at("service-discovery-registry://local?registry=memory");
        [
            World::group("ra", &[]),
            RegistryConfig { file_cache: Some(false), group: Some("ra".to_owned()), ..applications },
        ]
    };
    let a = offer(world.application("a", twice()).protocol(loopback(0)), "a").await;
    let shop = NamedShop { name: "second".to_owned(), inside: Default::default() };
    let second = a.service(ShopService::new(shop)).group("second").export().await.unwrap();
    a.announce().await.unwrap();
    let consumer = world.application("consumer", [World::group("ra", &[])]).start().await.unwrap();
    let by_application = |group: &'static str| {
        consumer.reference::<ShopClient>().group(group).param("migration.step", "FORCE_APPLICATION").get()
    };
    assert_eq!(by_application("second").await.unwrap().who().await.unwrap(), "second");
    second.unexport().await;
    assert_eq!(by_application("").await.unwrap().who().await.unwrap(), "a");
    a.shutdown().await;
    assert!(
        world.store.paths().iter().all(|(path, _)| !path.contains("/a/127.0.0.1")),
        "{:?}",
        world.store.paths()
    );
}

#[tokio::test]
async fn an_address_for_applications_only_is_that_whatever_the_mode() {
    let world = World::new();
    for mode in ["interface", "Instance", "all"] {
        let only = RegistryConfig {
            file_cache: Some(false),
            register_mode: Some(mode.to_owned()),
            ..RegistryConfig::at(format!("memory://local?registry-type=service&group={mode}"))
        };
        let a = offer(world.application("a", [only.clone()]).protocol(loopback(0)), "a").await;
        let consumer = world.application("consumer", [only]).start().await.unwrap();
        let shop = consumer.reference::<ShopClient>().param("migration.step", "FORCE_INTERFACE");
        let shop = shop.connect().await.unwrap();
        assert_eq!(shop.client.who().await.unwrap(), "a");
        let migration = shop.migration().unwrap();
        assert_eq!(
            (migration.interface.addresses.len(), migration.application.addresses.len()),
            (0, 1),
            "{mode}"
        );
        let by_interface = world.store.paths().iter().any(|(path, _)| path.contains("/providers/"));
        assert_eq!(by_interface, mode == "all", "the twin is for consumers of other registries");
        a.shutdown().await;
    }
}

#[tokio::test]
async fn metadata_that_is_to_be_stored_nowhere_refuses_the_export() {
    let world = World::new();
    let nowhere = RegistryConfig { use_as_metadata_center: Some(false), ..World::group("ra", &[]) };
    let mut builder = world.application("a", [nowhere]).protocol(loopback(0));
    builder.config().application.metadata_type = Some("remote".to_owned());
    let application = builder.start().await.unwrap();
    let shop = NamedShop { name: "a".to_owned(), inside: Default::default() };
    let refused = application.export(ShopService::new(shop)).await.unwrap_err();
    assert!(refused.to_string().contains("needs a metadata centre"), "{refused}");
}

// C72
#[tokio::test]
async fn a_preferred_registry_comes_first_and_then_that_of_the_calls_zone() {
    let world = World::new();
    let near = || World::group("ra", &[("zone", "near")]);
    let far = || World::group("rb", &[("zone", "far"), ("preferred", "true")]);
    let _a = world.provider_in("a", near()).await;
    let b = world.provider_in("b", far()).await;
    let consumer = world.application("consumer", [near(), far()]).start().await.unwrap();
    let shop = consumer.refer::<ShopClient>().await.unwrap();
    let in_zone = |zone: &str| CallOptions::new().attachment("registry_zone", zone);
    for _ in 0..20 {
        assert_eq!(shop.with(in_zone("near")).who().await.unwrap(), "b", "preferred goes before the zone");
    }
    b.shutdown().await;
    assert_eq!(shop.with(in_zone("near")).who().await.unwrap(), "a");
    assert_eq!(shop.with(in_zone("far")).who().await.unwrap(), "a");
    let forced = in_zone("far").attachment("registry_zone_force", "true");
    let refused = shop.with(forced).who().await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::NoInvokerAvailableAfterFilter);
    assert!(refused.message().contains("zone far"), "{refused}");
}

// C31
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registry_that_is_down_costs_no_call_and_counts_again_when_it_is_back() {
    let world = World::new();
    let zookeeper = ZooKeeper::start().await.unwrap();
    let door = BreakableProxy::start(zookeeper.address()).await.unwrap();
    door.refuse().await;
    let first = || RegistryConfig {
        check: Some(false),
        file_cache: Some(false),
        ..RegistryConfig::at(format!("zookeeper://{}", door.address()))
    };
    let second = || World::group("rb", &[]);
    let b = world.provider_in("b", second()).await;
    let consumer = world.application("consumer", [first(), second()]).start().await.unwrap();
    let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
    for _ in 0..20 {
        assert_eq!(shop.client.who().await.unwrap(), "b");
    }
    // Nobody anywhere: an error that says so, for both registries.
    b.shutdown().await;
    let refused = shop.client.who().await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::NoInvokerAvailableAfterFilter, "{refused}");
    assert!(refused.message().contains(&door.address()), "{refused}");
    // Either comes back.
    let b = world.provider_in("b", second()).await;
    until("the second is back", || !addresses(&shop, 1).is_empty()).await;
    assert_eq!(called(&shop.client).await, "b");
    b.shutdown().await;
    door.accept().await.unwrap();
    let direct = RegistryConfig {
        file_cache: Some(false),
        ..RegistryConfig::at(format!("zookeeper://{}", zookeeper.address()))
    };
    let a = offer(Dubhe::builder("a").registry_config(direct).protocol(loopback(0)), "a").await;
    until("the first is back", || !addresses(&shop, 0).is_empty()).await;
    assert_eq!(called(&shop.client).await, "a");
    a.shutdown().await;
    consumer.shutdown().await;
}

/// The addresses in one registry.
fn addresses(shop: &Connected<ShopClient>, registry: usize) -> Vec<String> {
    let invokers = shop.registries()[registry].directory.as_ref().map(|directory| directory.invokers());
    invokers.iter().flat_map(|invokers| invokers.iter()).map(|one| one.url().address()).collect()
}

/// Who answers, once somebody is connected.
async fn called(shop: &ShopClient) -> String {
    for _ in 0..1_000 {
        if let Ok(who) = shop.who().await {
            return who;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("nobody answers")
}
