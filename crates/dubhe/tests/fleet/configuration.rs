//! What is configured wrongly is told, and what is configured counts.

use std::time::Duration;

use dubhe::{Dubhe, ErrorCode};

use crate::support::{Shop, ShopClient, World};

#[tokio::test]
async fn a_reference_without_a_provider_is_refused_and_says_what_to_do() {
    let world = World::new();
    let consumer = world.consumer().await;
    let error = consumer.refer::<ShopClient>().await.unwrap_err();
    assert!(
        error.to_string().contains("Failed to check the status of the service dev.dubhe.test.Shop"),
        "{error}"
    );
    assert!(error.to_string().contains("check=false"), "{error}");
    assert!(
        world.store.paths().iter().all(|(path, _)| !path.contains("/consumers/")),
        "nothing is left of it"
    );
}

// C60
#[tokio::test]
async fn calls_without_a_provider_fail_with_a_typed_error_and_work_when_one_comes() {
    let world = World::new();
    let consumer = world.consumer().await;
    for cluster in ["failover", "failfast"] {
        let shop = consumer.reference::<ShopClient>().check(false).cluster(cluster).get().await.unwrap();
        let error = shop.who().await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::Forbidden, "{error:?}");
        assert!(error.to_string().contains("No provider available"), "{error}");
    }
    let shop = consumer.reference::<ShopClient>().check(false).connect().await.unwrap();
    let _a = world.provider("a").await;
    let mut status = shop.directory().unwrap().status();
    while status.borrow_and_update().total == 0 {
        status.changed().await.unwrap();
    }
    assert_eq!(shop.client.who().await.unwrap(), "a");
}

#[tokio::test]
async fn unknown_names_are_refused_when_the_reference_is_made_with_the_known_ones() {
    let world = World::new();
    let _a = world.provider("a").await;
    let consumer = world.consumer().await;
    let error = consumer.reference::<ShopClient>().load_balance("fastest").get().await.unwrap_err();
    assert!(
        error.to_string().contains("unknown loadbalance `fastest`: known are random, roundrobin"),
        "{error}"
    );
    let error = consumer.reference::<ShopClient>().cluster("hope").get().await.unwrap_err();
    assert!(error.to_string().contains("unknown cluster `hope`"), "{error}");
}

#[tokio::test]
async fn an_application_without_a_name_or_with_an_unknown_registry_does_not_start() {
    let error = Dubhe::builder(" ").start().await.unwrap_err();
    assert!(error.to_string().contains("dubbo.application.name"), "{error}");
    let error = Dubhe::builder("demo").registry("carrier-pigeon://127.0.0.1:1").start().await.unwrap_err();
    assert!(error.to_string().contains("known are memory, zookeeper"), "{error}");
    let error = Dubhe::builder("demo").registry("").start().await.unwrap_err();
    assert!(error.to_string().contains("dubbo.registry.address"), "{error}");
}

#[tokio::test]
async fn a_reference_without_any_registry_says_so() {
    let consumer = Dubhe::builder("demo").start().await.unwrap();
    let error = consumer.refer::<ShopClient>().await.unwrap_err();
    assert!(error.to_string().contains("No such any registry to reference dev.dubhe.test.Shop"), "{error}");
}

#[tokio::test]
async fn a_direct_address_needs_no_registry() {
    let world = World::new();
    let a = world.provider("a").await;
    let consumer = Dubhe::builder("demo").start().await.unwrap();
    let url = format!("dubbo://{}", a.address());
    let shop = consumer.reference::<ShopClient>().url(url).get().await.unwrap();
    assert_eq!(shop.who().await.unwrap(), "a");
    let error = consumer.reference::<ShopClient>().url("dubbo://127.0.0.1:many").get().await.unwrap_err();
    assert!(error.to_string().contains("cannot be made"), "{error}");
}

#[tokio::test]
async fn a_yaml_file_configures_references_and_methods() {
    let world = World::new();
    let a = world.provider("a").await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dubbo.yaml");
    let yaml = format!(
        "dubbo:\n  application:\n    name: from-file\n  references:\n    dev.dubhe.test.Shop:\n      url: dubbo://{}\n      retries: 0\n      \
         methods:\n        - name: wait\n          timeout: 50\n",
        a.address()
    );
    std::fs::write(&path, yaml).unwrap();
    let consumer = Dubhe::from_yaml_file(&path).unwrap().start().await.unwrap();
    let shop = consumer.refer::<ShopClient>().await.unwrap();
    assert_eq!(shop.who().await.unwrap(), "a");
    assert!(shop.wait().await.unwrap_err().is_timeout());
    let received = shop.attached().await.unwrap();
    assert_eq!(received.get("remote.application").map(String::as_str), Some("from-file"));
}

// C65
#[tokio::test]
async fn time_limits_are_the_methods_before_the_services_and_the_consumers_before_the_providers() {
    let world = World::new();
    let provider =
        world.provider_with("a", 0, |export| export.param("timeout", 40).param("wait.timeout", 60_000)).await;
    let consumer = world.consumer().await;
    // The provider's method value beats its own service value.
    let shop = consumer.reference::<ShopClient>().retries(0).get().await.unwrap();
    let waiting = tokio::spawn({
        let shop = shop.clone();
        async move { shop.wait().await }
    });
    crate::support::until("the call is served", || {
        provider.inside.waiting.load(std::sync::atomic::Ordering::SeqCst) == 1
    })
    .await;
    tokio::time::sleep(Duration::from_millis(80)).await;
    provider.inside.release.notify_waiters();
    assert_eq!(waiting.await.unwrap().unwrap(), "a");
    // The consumer's method value beats the provider's.
    let hasty = consumer.reference::<ShopClient>().retries(0).param("wait.timeout", 30).get().await.unwrap();
    assert!(hasty.wait().await.unwrap_err().is_timeout());
    // What the call itself says beats all.
    let hastier = shop.with(dubhe::CallOptions::new().timeout(Duration::from_millis(20)));
    assert!(hastier.wait().await.unwrap_err().is_timeout());
}

#[tokio::test]
async fn a_wrong_token_is_refused_and_the_right_one_is_taken_from_the_registry() {
    let world = World::new();
    let a = world.provider_with("a", 0, |export| export.param("token", "true")).await;
    let consumer = world.consumer().await;
    let shop = consumer.refer::<ShopClient>().await.unwrap();
    assert_eq!(shop.who().await.unwrap(), "a");
    let around = consumer
        .reference::<ShopClient>()
        .url(format!("dubbo://{}", a.address()))
        .retries(0)
        .get()
        .await
        .unwrap();
    let error = around.who().await.unwrap_err();
    assert!(error.to_string().contains("Invalid token"), "{error}");
}

#[tokio::test]
async fn a_port_that_is_taken_is_told_and_nothing_stays_registered() {
    let world = World::new();
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let application = world.builder("late").protocol(crate::support::loopback(port)).start().await.unwrap();
    let shop = crate::support::NamedShop { name: "late".to_owned(), inside: Default::default() };
    let error = application.export(crate::support::ShopService::new(shop)).await.unwrap_err();
    assert!(error.to_string().contains(&port.to_string()), "{error}");
    assert!(world.store.paths().iter().all(|(path, _)| !path.contains("/providers/")));
}

#[tokio::test]
async fn a_port_that_is_none_is_refused() {
    let protocol = dubhe::config::ProtocolConfig { port: Some(70_000), ..crate::support::loopback(0) };
    let application = World::new().builder("late").protocol(protocol).start().await.unwrap();
    let shop = crate::support::NamedShop { name: "late".to_owned(), inside: Default::default() };
    let error = application.export(crate::support::ShopService::new(shop)).await.unwrap_err();
    assert!(error.to_string().contains("the port 70000 of protocol dubbo"), "{error}");
}

#[tokio::test]
async fn services_of_a_protocol_without_a_port_share_one_server() {
    let world = World::new();
    let a = world.provider("a").await;
    let shop = crate::support::NamedShop { name: "second".to_owned(), inside: Default::default() };
    let second =
        a.application.service(crate::support::ShopService::new(shop)).group("second").export().await.unwrap();
    assert_eq!(second.urls()[0].address(), a.address());
    let consumer = world.consumer().await;
    let shop = consumer.reference::<ShopClient>().group("second").get().await.unwrap();
    assert_eq!(shop.who().await.unwrap(), "second");
}

#[tokio::test]
async fn a_service_is_registered_in_every_registry_and_a_reference_names_the_one_it_uses() {
    let world = World::new();
    let registry = |group: &str| dubhe::config::RegistryConfig {
        group: Some(group.to_owned()),
        file_cache: Some(false),
        ..dubhe::config::RegistryConfig::at("memory://local")
    };
    let two = |name: &str| {
        let builder = Dubhe::builder(name).memory_store(&world.store);
        builder.registry_config(registry("east")).registry_config(registry("west"))
    };
    let provider = two("provider").protocol(crate::support::loopback(0)).start().await.unwrap();
    let shop = crate::support::NamedShop { name: "a".to_owned(), inside: Default::default() };
    provider.export(crate::support::ShopService::new(shop)).await.unwrap();
    for root in ["/east/", "/west/"] {
        let registered = |path: &str| path.starts_with(root) && path.contains("/providers/");
        assert!(world.store.paths().iter().any(|(path, _)| registered(path)), "{root}");
    }
    let consumer = two("consumer").start().await.unwrap();
    let everywhere = consumer.reference::<ShopClient>().connect().await.unwrap();
    assert_eq!((everywhere.registries().len(), everywhere.client.who().await.unwrap()), (2, "a".to_owned()));
    let mut west = two("west-consumer");
    let settings =
        dubhe::config::ReferenceConfig { registry: Some("registry-2".to_owned()), ..Default::default() };
    west.config().references.insert("dev.dubhe.test.Shop".to_owned(), settings);
    let west = west.start().await.unwrap();
    let bound = west.reference::<ShopClient>().connect().await.unwrap();
    assert_eq!((bound.registries().len(), bound.client.who().await.unwrap()), (1, "a".to_owned()));
}

/// Of the recorded nodes, without what belongs to that machine and its configuration: `anyhost` (here the host is given), `ipv6`, `logger`, `qos.enable`, time limits
/// and methods' settings, `register-mode` and `service-name-mapping` (application-level discovery).
#[tokio::test]
async fn registered_nodes_have_the_parameters_that_dubbo_writes() {
    let world = World::new();
    let _a = world.provider_with("a", 0, |export| export.group("g1").version("1.0.0")).await;
    let consumer = world.consumer().await;
    consumer.reference::<ShopClient>().group("g1").version("1.0.0").get().await.unwrap();
    let names = |category: &str| {
        let paths = world.store.paths();
        let (path, _) = paths.iter().find(|(path, _)| path.contains(&format!("/{category}/"))).unwrap();
        let url = dubhe::Url::parse_encoded(path.rsplit('/').next().unwrap()).unwrap();
        url.params().map(|(name, _)| name.to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        names("providers"),
        "application background deprecated dubbo dynamic generic group interface methods pid release revision \
         service-name-mapping side timestamp version"
    );
    assert_eq!(
        names("consumers"),
        "application background category check dubbo group interface methods pid release revision side sticky timestamp \
         unloadClusterRelated version"
    );
}

#[tokio::test]
async fn defaults_of_all_references_and_services_count() {
    let world = World::new();
    let mut builder = world.builder("a").protocol(crate::support::loopback(0));
    builder.config().provider.register = Some(false);
    let a = builder.start().await.unwrap();
    let shop = || crate::support::NamedShop { name: "a".to_owned(), inside: Default::default() };
    a.export(crate::support::ShopService::new(shop())).await.unwrap();
    assert!(world.store.paths().iter().all(|(path, _)| !path.contains("/providers/")));
    // What the code says of one service beats them.
    a.service(crate::support::ShopService::new(shop())).version("2").register(true).export().await.unwrap();
    let mut builder = world.builder("consumer");
    builder.config().consumer.register = Some(false);
    let consumer = builder.start().await.unwrap();
    let shop = consumer.reference::<ShopClient>().version("2").get().await.unwrap();
    assert_eq!(shop.who().await.unwrap(), "a");
    assert!(world.store.paths().iter().all(|(path, _)| !path.contains("/consumers/")));
}
