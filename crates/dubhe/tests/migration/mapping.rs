//! Which applications have an interface: added, removed, late, and of which registry.

use std::collections::BTreeSet;

use dubhe::SideKind;
use dubhe::config::{ReferenceConfig, RegistryConfig};

use crate::nodes::{text, write};
use crate::support::{
    BUYER, Fleet, Load, Named, Provider, SHOP, Shop, ShopClient, ShopService, answers, loopback,
    on_every_store, prefers, until, until_callable, until_migration,
};

on_every_store! {
    an_interface_that_moves_to_another_application_and_back_is_followed_by_the_same_reference
    applications_that_start_together_are_all_in_the_mapping
    the_mapping_is_where_dubbo_reads_it
    an_interface_that_nobody_mapped_is_found_by_interface_until_somebody_does
    a_reference_reads_nothing_but_its_own_registry
}

// C12
async fn an_interface_that_moves_to_another_application_and_back_is_followed_by_the_same_reference(
    fleet: Fleet,
) {
    // They write no mapping of their own: only what is written here counts.
    let silent = async |name: &str| {
        let registry = RegistryConfig { use_as_metadata_center: Some(false), ..fleet.registry() };
        let mut builder = fleet.bare(name).registry_config(registry).protocol(loopback(0));
        builder.config().application.register_mode = Some("instance".to_owned());
        Provider::start(builder, name, |export| export).await
    };
    let (x, y) = (silent("app-x").await, silent("app-y").await);
    let tree = fleet.tree();
    let mapping = fleet.mapping_path();
    write(&tree, &mapping, "app-x").await;
    let consumer = fleet.consumer_of("FORCE_APPLICATION").await;
    let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
    let load = Load::start(&shop.client, 2);
    until("only x", || shop.addresses() == [x.address()]).await;
    for _ in 0..2 {
        write(&tree, &mapping, "app-x,app-y").await;
        until_callable(&shop, 2).await;
        load.more(20).await;
        // Another order is no change.
        write(&tree, &mapping, "app-y,app-x").await;
        write(&tree, &mapping, "app-y").await;
        until("only y", || shop.addresses() == [y.address()]).await;
        load.more(20).await;
        write(&tree, &mapping, "app-x").await;
        until("only x", || shop.addresses() == [x.address()]).await;
        load.more(20).await;
    }
    assert_eq!(load.stop().await, [""; 0]);
    assert_eq!(answers(&shop.client, 10).await, BTreeSet::from(["app-x".to_owned()]));
    consumer.shutdown().await;
    tree.close().await;
}

// C14
async fn applications_that_start_together_are_all_in_the_mapping(fleet: Fleet) {
    let tree = fleet.tree();
    // A name in another name is not that name.
    write(&tree, &fleet.mapping_path(), "order-api").await;
    let names: Vec<String> =
        (1..=6).map(|number| format!("order-{number}")).chain(["order".to_owned()]).collect();
    let starting = names.iter().map(|name| fleet.provider(name, "instance"));
    let providers = futures::future::join_all(starting).await;
    let expected: BTreeSet<&str> = names.iter().map(String::as_str).chain(["order-api"]).collect();
    // What was announced is mapped.
    let mapped = text(&tree, &fleet.mapping_path()).await.unwrap();
    let mapped: Vec<&str> = mapped.split(',').collect();
    assert_eq!(mapped.iter().copied().collect::<BTreeSet<_>>(), expected);
    assert_eq!(mapped.len(), expected.len(), "each once");
    let consumer = fleet.consumer_of("FORCE_APPLICATION").await;
    let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
    until_callable(&shop, names.len()).await;
    consumer.shutdown().await;
    for provider in providers {
        provider.leave().await;
    }
    tree.close().await;
}

// C16
async fn the_mapping_is_where_dubbo_reads_it(fleet: Fleet) {
    let tree = fleet.tree();
    // Where another implementation wrote it once, and nobody reads.
    let wrong = format!("/{}/config/mapping/{SHOP}", fleet.root());
    write(&tree, &wrong, "nobody").await;
    let consumer = fleet.consumer_of("FORCE_APPLICATION").await;
    let shop = consumer.reference::<ShopClient>().check(false).connect().await.unwrap();
    assert!(shop.addresses().is_empty());
    let a = fleet.provider("app-a", "instance").await;
    until_callable(&shop, 1).await;
    assert_eq!(text(&tree, &fleet.mapping_path()).await.as_deref(), Some("app-a"));
    assert_eq!(text(&tree, &wrong).await.as_deref(), Some("nobody"));
    a.leave().await;
    // Persistent: it is still there without the one who wrote it.
    assert_eq!(text(&tree, &fleet.mapping_path()).await.as_deref(), Some("app-a"));
    consumer.shutdown().await;
    tree.close().await;
}

// C33
async fn an_interface_that_nobody_mapped_is_found_by_interface_until_somebody_does(fleet: Fleet) {
    let old = fleet.provider("old", "interface").await;
    let consumer = fleet.consumer().await;
    let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
    assert_eq!(shop.client.who().await.unwrap(), "old");
    let now = shop.migration().unwrap();
    assert!(prefers(&now, SideKind::Interface), "{now}");
    assert_eq!(text(&fleet.tree(), &fleet.mapping_path()).await, None);
    let load = Load::start(&shop.client, 2);
    let new = fleet.provider("new", "instance").await;
    until_migration(&shop, "it prefers applications", |now| prefers(now, SideKind::Application)).await;
    until("calls go there", || new.served() > 10).await;
    assert_eq!(load.stop().await, [""; 0]);
    assert_eq!(answers(&shop.client, 10).await, BTreeSet::from(["new".to_owned()]));
    consumer.shutdown().await;
    old.leave().await;
}

// C40
async fn a_reference_reads_nothing_but_its_own_registry(fleet: Fleet) {
    let (ra, rb) = (fleet.group("ra"), fleet.group("rb"));
    let a = ra.provider("in-a", "all").await;
    let b = rb.provider("in-b", "all").await;
    // The application of the other registry is an application here as well, which has no shop.
    let mut builder = ra.builder("in-b").protocol(loopback(0));
    builder.config().application.register_mode = Some("all".to_owned());
    let namesake = builder.start().await.unwrap();
    namesake.export(crate::support::DeskService::new(Named::new("namesake"))).await.unwrap();
    let mut builder = fleet.bare(BUYER);
    let config = builder.config();
    config.registries.insert("a".to_owned(), ra.registry());
    config.registries.insert("b".to_owned(), rb.registry());
    let bound = ReferenceConfig { registry: Some("b".to_owned()), ..ReferenceConfig::default() };
    config.references.insert(SHOP.to_owned(), bound);
    let consumer = builder.start().await.unwrap();
    let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
    let known =
        until_migration(&shop, "both sides", |now| now.interface.available && now.application.available)
            .await;
    assert_eq!(known.interface.addresses, [b.address()], "{known}");
    assert_eq!(known.application.addresses, [b.address()], "{known}");
    assert_eq!(answers(&shop.client, 20).await, BTreeSet::from(["in-b".to_owned()]));
    // What changes in the other is not seen; what changes here is.
    let later = ra.provider("later-in-a", "instance").await;
    let here = rb.provider("later-in-b", "instance").await;
    until_callable(&shop, 2).await;
    assert!(!shop.addresses().contains(&later.address()));
    assert!(shop.addresses().contains(&here.address()));
    assert_eq!(a.served(), 0);
    consumer.shutdown().await;
}

// C31: the one that is down is not in the way of the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registry_that_is_down_is_not_in_the_way_of_another() {
    let fleet = Fleet::in_memory();
    let down = RegistryConfig {
        check: Some(false),
        timeout: Some(500),
        file_cache: Some(false),
        ..RegistryConfig::at("zookeeper://127.0.0.1:1")
    };
    let both = |name: &str| {
        let mut builder = fleet.bare(name).protocol(loopback(0));
        builder.config().registries.insert("down".to_owned(), down.clone());
        builder.config().registries.insert("up".to_owned(), fleet.registry());
        let up = ReferenceConfig { registry: Some("up".to_owned()), ..ReferenceConfig::default() };
        builder.config().references.insert(SHOP.to_owned(), up);
        builder.start()
    };
    let provider = both("shop").await.unwrap();
    provider.export(ShopService::new(Named::new("shop"))).await.unwrap();
    let consumer = both(BUYER).await.unwrap();
    let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
    assert_eq!(shop.client.who().await.unwrap(), "shop");
    until_migration(&shop, "by application", |now| prefers(now, SideKind::Application)).await;
    assert_eq!(answers(&shop.client, 10).await.len(), 1);
}
