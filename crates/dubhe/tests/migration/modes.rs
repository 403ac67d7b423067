//! How services are registered, and what registries are for.

use std::collections::BTreeSet;

use dubhe::config::{MetadataReportConfig, RegistryConfig, ServiceConfig};
use dubhe::core::migration::MigrationStep;
use dubhe::{DubheBuilder, SideKind};
use dubhe_migration::Origin;
use dubhe_testkit::Port;
use serde_json::Value;

use crate::nodes::text;
use crate::support::{
    BUYER, Desk, DeskClient, DeskService, Fleet, Load, Named, Provider, SHOP, Shop, ShopClient, ShopService,
    answers, loopback, on_every_store, prefers, until, until_callable, until_migration,
};

on_every_store! {
    the_register_mode_says_which_nodes_there_are
    a_registry_for_applications_only_knows_no_interfaces
    a_registry_without_metadata_centre_serves_who_names_the_application
    a_service_that_is_exported_later_is_found_and_one_that_ends_is_left_without_a_failed_call
}

const DESK: &str = "dev.dubhe.test.Desk";

/// What there is: provider nodes, instances, mapping.
async fn there(fleet: &Fleet, application: &str, port: u16) -> (usize, bool, Option<String>) {
    let tree = fleet.tree();
    let providers = tree.list(&fleet.category_path("providers")).await.unwrap();
    let instance = tree.read(&fleet.instance_path(application, port)).await.unwrap().is_some();
    let mapping = text(&tree, &fleet.mapping_path()).await;
    tree.close().await;
    (providers.map_or(0, |nodes| nodes.len()), instance, mapping)
}

async fn the_register_mode_says_which_nodes_there_are(fleet: Fleet) {
    let rows =
        [("interface", 1, false, None), ("instance", 0, true, Some("shop")), ("all", 1, true, Some("shop"))];
    for (mode, providers, instance, mapping) in rows {
        let fleet = fleet.group(mode);
        let shop = fleet.provider("shop", mode).await;
        let expected = (providers, instance, mapping.map(str::to_owned));
        assert_eq!(there(&fleet, "shop", shop.port()).await, expected, "{mode}");
        // By a parameter of the registry's address as well.
        let registry =
            RegistryConfig { register_mode: Some(mode.to_owned()), ..fleet.group("said-there").registry() };
        let builder = fleet.bare("shop").registry_config(registry).protocol(loopback(0));
        let other = Provider::start(builder, "shop", |export| export).await;
        assert_eq!(there(&fleet.group("said-there"), "shop", other.port()).await, expected, "{mode}");
        let port = shop.port();
        shop.leave().await;
        assert_eq!(there(&fleet, "shop", port).await, (0, false, expected.2), "{mode}");
        other.leave().await;
    }
}

/// Two addresses of the registry that are for application-level discovery only.
fn application_only(fleet: &Fleet) -> [RegistryConfig; 2] {
    let address = fleet.address();
    let (protocol, host) = address.split_once("://").unwrap();
    [
        format!("service-discovery-registry://{host}?registry={protocol}"),
        format!("{address}?registry-type=service"),
    ]
    .map(|address| RegistryConfig { address, ..fleet.registry() })
}

async fn a_registry_for_applications_only_knows_no_interfaces(fleet: Fleet) {
    for (number, registry) in application_only(&fleet).into_iter().enumerate() {
        let fleet = fleet.group(&format!("only-{number}"));
        let registry = RegistryConfig { group: fleet.registry().group, ..registry };
        let builder = fleet.bare("new").registry_config(registry.clone()).protocol(loopback(0));
        let new = Provider::start(builder, "new", |export| export).await;
        assert_eq!(there(&fleet, "new", new.port()).await, (0, true, Some("new".to_owned())));
        let old = fleet.provider("old", "interface").await;
        // Not even by a rule.
        fleet.publish_rule("step: FORCE_INTERFACE").await;
        let consumer = fleet.bare(BUYER).registry_config(registry).start().await.unwrap();
        let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
        assert_eq!(answers(&shop.client, 20).await, BTreeSet::from(["new".to_owned()]));
        let now = shop.migration().unwrap();
        assert_eq!(now.state.step, Some(MigrationStep::ForceApplication), "{now}");
        assert_eq!(now.state.wanted.step_origin, Origin::Fixed, "{now}");
        assert_eq!(now.interface.status, None, "{now}");
        consumer.shutdown().await;
        let tree = fleet.tree();
        assert_eq!(
            tree.list(&fleet.category_path("consumers")).await.unwrap().map_or(0, |nodes| nodes.len()),
            0
        );
        tree.close().await;
        new.leave().await;
        old.leave().await;
    }
}

async fn a_registry_without_metadata_centre_serves_who_names_the_application(fleet: Fleet) {
    let registry = RegistryConfig { use_as_metadata_center: Some(false), ..fleet.registry() };
    let with = |name: &str| fleet.bare(name).registry_config(registry.clone()).protocol(loopback(0));
    let mut builder = with("shop");
    builder.config().application.register_mode = Some("instance".to_owned());
    let shop = Provider::start(builder, "shop", |export| export).await;
    assert_eq!(there(&fleet, "shop", shop.port()).await, (0, true, None), "nothing is mapped");
    let consumer = with(BUYER).start().await.unwrap();
    consumer.refer::<ShopClient>().await.unwrap_err();
    let found = consumer.reference::<ShopClient>().param("provided-by", "shop").connect().await.unwrap();
    assert_eq!(found.client.who().await.unwrap(), "shop");
    assert!(prefers(&found.migration().unwrap(), SideKind::Application));
    consumer.shutdown().await;
    // Or the registry's address says where to look.
    let subscribed =
        RegistryConfig { subscribed_services: Some("other,shop".to_owned()), ..registry.clone() };
    let consumer = fleet.bare(BUYER).registry_config(subscribed).start().await.unwrap();
    let found = consumer.reference::<ShopClient>().connect().await.unwrap();
    assert_eq!(found.client.who().await.unwrap(), "shop");
    consumer.shutdown().await;
    shop.leave().await;
}

// A metadata centre of its own has mapping and metadata; instances stay in the registry.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_metadata_centre_of_its_own_has_mapping_and_metadata() {
    let fleet = Fleet::in_memory();
    let center = fleet.group("center");
    let with = |name: &str, mode: &str| -> DubheBuilder {
        let mut builder = fleet.builder(name).protocol(loopback(0));
        let config = builder.config();
        config.application.register_mode = Some("instance".to_owned());
        config.application.metadata_type = Some(mode.to_owned());
        config.metadata_report = Some(MetadataReportConfig {
            group: Some("center".to_owned()),
            ..MetadataReportConfig::at(fleet.address())
        });
        builder
    };
    let shop = Provider::start(with("shop", "remote"), "shop", |export| export).await;
    let tree = fleet.tree();
    let node = text(&tree, &fleet.instance_path("shop", shop.port())).await.unwrap();
    let node: Value = serde_json::from_str(&node).unwrap();
    let revision = node["payload"]["metadata"]["dubbo.metadata.revision"].as_str().unwrap();
    assert_eq!(text(&tree, &center.mapping_path()).await.as_deref(), Some("shop"));
    assert!(text(&tree, &center.metadata_path("shop", revision)).await.is_some());
    assert_eq!(text(&tree, &fleet.mapping_path()).await, None);
    assert_eq!(text(&tree, &fleet.metadata_path("shop", revision)).await, None);
    let consumer = with(BUYER, "local").start().await.unwrap();
    let found = consumer.reference::<ShopClient>().connect().await.unwrap();
    assert_eq!(found.client.who().await.unwrap(), "shop");
}

async fn a_service_that_is_exported_later_is_found_and_one_that_ends_is_left_without_a_failed_call(
    fleet: Fleet,
) {
    let a = fleet.provider("shop", "instance").await;
    let b = fleet.provider("other", "instance").await;
    let consumer = fleet.consumer_of("FORCE_APPLICATION").await;
    let desk = consumer.reference::<DeskClient>().check(false).connect().await.unwrap();
    desk.client.ask().await.unwrap_err();
    let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
    until_callable(&shop, 2).await;
    let load = Load::start(&shop.client, 4);
    a.application.export(DeskService::new(Named::new("later"))).await.unwrap();
    until_callable(&desk, 1).await;
    assert_eq!(desk.client.ask().await.unwrap(), "later");
    for _ in 0..3 {
        load.more(20).await;
        // The instance stays, without the shop; and gets it again.
        a.exported.unexport().await;
        until("one is left", || shop.addresses() == [b.address()]).await;
        load.more(20).await;
        let again = a.application.export(ShopService::new(Named::new("again"))).await.unwrap();
        until_callable(&shop, 2).await;
        load.more(20).await;
        again.unexport().await;
        until("one is left", || shop.addresses() == [b.address()]).await;
    }
    assert_eq!(desk.client.ask().await.unwrap(), "later", "the rest of the instance is as it was");
    assert_eq!(load.stop().await, [""; 0]);
    consumer.shutdown().await;
    a.leave().await;
    b.leave().await;
}

// Local metadata leaves no node: the instance says where it is asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn local_metadata_is_at_the_instance_alone() {
    let fleet = Fleet::in_memory();
    let shop = fleet.provider("shop", "instance").await;
    let node = text(&fleet.tree(), &fleet.instance_path("shop", shop.port())).await.unwrap();
    let node: Value = serde_json::from_str(&node).unwrap();
    let said = &node["payload"]["metadata"];
    assert_eq!(said["dubbo.metadata.storage-type"], "local");
    assert!(said["dubbo.metadata-service.url-params"].as_str().unwrap().contains(r#""protocol":"dubbo""#));
    let revision = said["dubbo.metadata.revision"].as_str().unwrap();
    assert_eq!(text(&fleet.tree(), &fleet.metadata_path("shop", revision)).await, None);
    // The metadata service is no service of the registry's.
    let paths = fleet.memory().paths();
    assert!(paths.iter().all(|(path, _)| !path.contains("MetadataService")), "{paths:?}");
    assert!(paths.iter().any(|(path, _)| path.contains(SHOP)));
}

// The rule file and properties stand behind the config centre; a reference's own word before both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_may_be_said_by_file_property_or_reference() {
    let fleet = Fleet::in_memory();
    let old = fleet.provider("old", "interface").await;
    let new = fleet.provider("new", "instance").await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("interfaces:\n- serviceKey: {SHOP}\n  step: FORCE_INTERFACE\n"))
        .unwrap();
    let mut builder = fleet.builder(BUYER);
    builder.config().application.migration.file = Some(file.path().to_str().unwrap().to_owned());
    builder.config().application.migration.delay = Some(0);
    let by_file = builder.start().await.unwrap();
    let shop = by_file.reference::<ShopClient>().connect().await.unwrap();
    let now = until_migration(&shop, "the file's step", |now| {
        now.state.step == Some(MigrationStep::ForceInterface)
    })
    .await;
    assert_eq!(now.state.wanted.step_origin, Origin::InterfaceRule, "{now}");
    assert_eq!(answers(&shop.client, 10).await, BTreeSet::from(["old".to_owned()]));
    let by_property = fleet.consumer_of("FORCE_APPLICATION").await;
    let shop = by_property.reference::<ShopClient>().connect().await.unwrap();
    assert_eq!(answers(&shop.client, 10).await, BTreeSet::from(["new".to_owned()]));
    let shop = by_property
        .reference::<ShopClient>()
        .param(dubhe::keys::MIGRATION_STEP, "FORCE_INTERFACE")
        .connect()
        .await
        .unwrap();
    assert_eq!(answers(&shop.client, 10).await, BTreeSet::from(["old".to_owned()]));
    // A rule for one application's services.
    fleet
        .publish_rule("step: FORCE_INTERFACE\napplications:\n- {serviceKey: new, step: FORCE_APPLICATION}")
        .await;
    let ruled = fleet.consumer().await;
    let shop = ruled.reference::<ShopClient>().connect().await.unwrap();
    assert_eq!(answers(&shop.client, 10).await, BTreeSet::from(["new".to_owned()]));
    drop((old, new));
}

// An instance has one port for each protocol, its services may have others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_of_one_application_may_have_ports_and_settings_of_their_own() {
    let fleet = Fleet::in_memory();
    let ports = [Port::lease().unwrap(), Port::lease().unwrap()];
    let mut builder = fleet.builder("shop");
    let config = builder.config();
    for (port, (id, interface)) in ports.iter().zip([("p1", SHOP), ("p2", DESK)]) {
        config.protocols.insert(id.to_owned(), loopback(port.number()));
        let service = ServiceConfig { protocol: Some(id.to_owned()), ..ServiceConfig::default() };
        config.services.insert(interface.to_owned(), service);
    }
    let application = builder.start().await.unwrap();
    let shop = || ShopService::new(Named::new("shop"));
    application.service(shop()).group("g").weight(10).param("timeout", 700).export().await.unwrap();
    application
        .service(shop())
        .version("2.0")
        .param("token", "secret")
        .param("tag", "grey")
        .export()
        .await
        .unwrap();
    application.service(DeskService::new(Named::new("desk"))).weight(50).export().await.unwrap();
    application.announce().await.unwrap();
    for step in ["FORCE_APPLICATION", "FORCE_INTERFACE"] {
        let consumer = fleet.consumer_of(step).await;
        let desk = consumer.reference::<DeskClient>().connect().await.unwrap();
        assert_eq!(desk.client.ask().await.unwrap(), "desk", "{step}");
        assert_eq!(desk.addresses(), [ports[1].address()], "{step}");
        let weight = |one: &std::sync::Arc<dyn dubhe::core::invoker::Invoker>| {
            one.url().param("weight").map(str::to_owned)
        };
        assert_eq!(weight(&desk.directory().unwrap().invokers()[0]).as_deref(), Some("50"), "{step}");
        let grouped = consumer.reference::<ShopClient>().group("g").connect().await.unwrap();
        assert_eq!(grouped.client.who().await.unwrap(), "shop", "{step}");
        assert_eq!(grouped.addresses(), [ports[0].address()], "{step}");
        let versioned = consumer.reference::<ShopClient>().version("2.0").connect().await.unwrap();
        assert_eq!(versioned.client.who().await.unwrap(), "shop", "{step}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn generic_calls_find_instances_too() {
    let fleet = Fleet::in_memory();
    let shop = fleet.provider_with("shop", 0, "instance", |export| export.group("g").version("1.0")).await;
    let consumer = fleet.consumer().await;
    let generic = consumer.generic(SHOP).group("g").version("1.0").connect().await.unwrap();
    let answer = generic.client.invoke("who", &[], Vec::new()).await.unwrap();
    assert_eq!(answer.as_str(), Some("shop"));
    assert_eq!(generic.addresses(), [shop.address()]);
    assert!(prefers(&generic.migration().unwrap(), SideKind::Application));
}
