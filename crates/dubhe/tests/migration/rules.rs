//! Rules of the interface and parameters of the service, at addresses found by application.

use std::collections::BTreeSet;
use std::time::Duration;

use dubhe::{ErrorCode, Url, keys};

use crate::support::{Fleet, Load, SHOP, Shop, ShopClient, answers, on_every_store, until, until_callable};

on_every_store! {
    a_condition_rule_of_the_interface_holds_for_addresses_found_by_application
    an_override_of_the_interface_holds_for_addresses_found_by_application
    what_a_service_says_of_itself_arrives_by_metadata
}

fn condition(text: &str) -> Url {
    Url::builder(keys::protocol::CONDITION, keys::ANYHOST_VALUE, 0)
        .path(SHOP)
        .param(keys::CATEGORY, keys::category::ROUTERS)
        .param(keys::INTERFACE, SHOP)
        .param(keys::DYNAMIC, false)
        .param(keys::FORCE, true)
        .param(keys::RULE, dubhe::encode(text))
        .build()
}

fn overriding(host: &str, port: u16) -> Url {
    Url::builder(keys::protocol::OVERRIDE, host, port)
        .path(SHOP)
        .param(keys::CATEGORY, keys::category::CONFIGURATORS)
        .param(keys::INTERFACE, SHOP)
        .param(keys::DYNAMIC, false)
        .param(keys::TIMEOUT, 4321)
        .build()
}

async fn a_condition_rule_of_the_interface_holds_for_addresses_found_by_application(fleet: Fleet) {
    let a = fleet.provider("app-a", "instance").await;
    let b = fleet.provider("app-b", "instance").await;
    let operator = fleet.builder("operator").start().await.unwrap();
    let registry = operator.registry().unwrap();
    let only_a = condition(&format!("=> address = {}", a.address()));
    registry.register(&only_a).await.unwrap();
    let consumer = fleet.consumer_of("FORCE_APPLICATION").await;
    let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
    until_callable(&shop, 2).await;
    assert_eq!(answers(&shop.client, 20).await, BTreeSet::from(["app-a".to_owned()]), "from the first call");
    let why = shop.explain("who").to_string();
    assert!(why.contains("drops") && why.contains(&a.address()), "{why}");
    let load = Load::start(&shop.client, 2);
    registry.unregister(&only_a).await.unwrap();
    until("both are called again", || shop.explain("who").remaining.len() == 2).await;
    until("calls go to b", || b.served() > 0).await;
    assert_eq!(load.stop().await, [""; 0]);
    consumer.shutdown().await;
    operator.shutdown().await;
}

async fn an_override_of_the_interface_holds_for_addresses_found_by_application(fleet: Fleet) {
    let a = fleet.provider("app-a", "instance").await;
    let b = fleet.provider("app-b", "instance").await;
    let operator = fleet.builder("operator").start().await.unwrap();
    let registry = operator.registry().unwrap();
    let consumer = fleet.consumer_of("FORCE_APPLICATION").await;
    let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
    until_callable(&shop, 2).await;
    let timeouts = || -> BTreeSet<(String, Option<String>)> {
        let invokers = shop.directory().unwrap().invokers();
        let timeout = |url: &Url| (url.address(), url.param(keys::TIMEOUT).map(str::to_owned));
        invokers.iter().map(|one| timeout(one.url())).collect()
    };
    let none = BTreeSet::from([(a.address(), None), (b.address(), None)]);
    assert_eq!(timeouts(), none);
    let said = Some("4321".to_owned());
    let of_a = overriding("127.0.0.1", a.port());
    registry.register(&of_a).await.unwrap();
    let one = BTreeSet::from([(a.address(), said.clone()), (b.address(), None)]);
    until("one is overridden", || timeouts() == one).await;
    let load = Load::start(&shop.client, 2);
    registry.unregister(&of_a).await.unwrap();
    registry.register(&overriding(keys::ANYHOST_VALUE, 0)).await.unwrap();
    let both = BTreeSet::from([(a.address(), said.clone()), (b.address(), said)]);
    until("both are overridden", || timeouts() == both).await;
    load.more(20).await;
    registry.unregister(&overriding(keys::ANYHOST_VALUE, 0)).await.unwrap();
    until("as before", || timeouts() == none).await;
    load.more(20).await;
    assert_eq!(load.stop().await, [""; 0]);
    consumer.shutdown().await;
    operator.shutdown().await;
}

async fn what_a_service_says_of_itself_arrives_by_metadata(fleet: Fleet) {
    let shop = fleet
        .provider_with("shop", 0, "instance", |export| {
            export
                .group("g")
                .version("2.1.0")
                .weight(37)
                .param("timeout", 300)
                .param("token", "secret")
                .param("wait.timeout", 200)
        })
        .await;
    let consumer = fleet.consumer_of("FORCE_APPLICATION").await;
    let of = |group: &str, version: &str| {
        consumer.reference::<ShopClient>().group(group).version(version).retries(0)
    };
    let found = of("g", "2.1.0").connect().await.unwrap();
    assert_eq!(found.client.who().await.unwrap(), "shop", "with the token");
    let invokers = found.directory().unwrap().invokers();
    let url = invokers[0].url();
    let of_url = |key| url.param(key);
    assert_eq!(
        (of_url("weight"), of_url("timeout"), of_url("token")),
        (Some("37"), Some("300"), Some("secret"))
    );
    assert_eq!((url.group(), url.version()), (Some("g"), Some("2.1.0")));
    assert_eq!(url.param("remote.application"), Some("shop"));
    assert!(url.param("timestamp").is_some(), "what the warm-up starts from");
    let began = std::time::Instant::now();
    let late = found.client.wait().await.unwrap_err();
    assert_eq!(late.code(), ErrorCode::Timeout);
    assert!(began.elapsed() < Duration::from_millis(290), "the method's time limit: {:?}", began.elapsed());
    // The consumer's own word counts more; other groups and versions are other services.
    let own = of("g", "2.1.0").timeout(Duration::from_millis(4_000)).connect().await.unwrap();
    assert_eq!(own.directory().unwrap().invokers()[0].url().param("timeout"), Some("4000"));
    for (group, version) in [("g", "2.1.1"), ("", "2.1.0"), ("g", ""), ("h", "2.1.0")] {
        of(group, version).connect().await.unwrap_err();
    }
    for (group, version) in [("*", "*"), ("g,h", "2.1.0")] {
        let any = of(group, version).connect().await.unwrap();
        assert_eq!(any.client.who().await.unwrap(), "shop", "{group} {version}");
    }
    // Who finds the address without its metadata cannot call it.
    let stranger = consumer
        .reference::<ShopClient>()
        .group("g")
        .version("2.1.0")
        .url(format!("dubbo://{}", shop.address()))
        .get()
        .await
        .unwrap();
    stranger.who().await.unwrap_err();
    shop.inside.release.notify_waiters();
    consumer.shutdown().await;
    shop.leave().await;
}
