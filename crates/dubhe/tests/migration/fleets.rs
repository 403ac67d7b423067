//! Mixed and old fleets: providers of other releases, other frameworks, other protocols, and those that cannot be reached.

use std::time::{Duration, Instant};

use dubhe::config::RegistryConfig;
use dubhe::core::migration::MigrationStep;
use dubhe::{Dubhe, ErrorCode, SideKind};
use dubhe_testkit::{BreakableProxy, Port};
use serde_json::{Value, json};
use tokio::net::{TcpSocket, TcpStream};

use crate::nodes::{instance, metadata, remote_instance, text, write, write_instance};
use crate::support::{
    BUYER, Fleet, LONG, Load, Named, Provider, SHOP, Shop, ShopClient, ShopService, answers, loopback,
    on_every_store, prefers, until, until_callable, until_migration, zookeeper,
};

on_every_store! {
    when_all_instances_leave_calls_go_to_providers_by_interface_in_spite_of_empty_protection
    an_old_fleet_is_found_by_default
    parameters_of_old_providers_without_their_prefix_are_understood
    an_instance_of_spring_cloud_is_called_while_it_is_up
    the_instance_is_that_of_the_service_and_not_of_its_metadata_service
    an_application_that_restarts_as_it_was_has_the_revision_it_had
}

// C10
async fn when_all_instances_leave_calls_go_to_providers_by_interface_in_spite_of_empty_protection(
    fleet: Fleet,
) {
    for protects in [true, false] {
        let a = fleet.provider("app-a", "instance").await;
        let b = fleet.provider("app-b", "interface").await;
        let consumer = fleet.consumer().await;
        let shop = consumer
            .reference::<ShopClient>()
            .param("enable-empty-protection", protects)
            .connect()
            .await
            .unwrap();
        until_migration(&shop, "applications", |now| {
            prefers(now, SideKind::Application) && now.interface.available
        })
        .await;
        let load = Load::start(&shop.client, 2);
        until("calls go there", || a.served() > 10).await;
        a.application.shutdown().await;
        let now = until_migration(&shop, "interfaces", |now| prefers(now, SideKind::Interface)).await;
        assert_eq!(now.state.step, Some(MigrationStep::ApplicationFirst), "{now}");
        let kept = until_migration(&shop, "the last word", |now| {
            now.application.status.as_ref().is_some_and(|status| status.kept || status.total == 0)
        })
        .await;
        assert_eq!(kept.application.status.unwrap().kept, protects);
        let before = a.served();
        load.more(50).await;
        assert_eq!(a.served(), before);
        assert_eq!(load.stop().await, [""; 0]);
        consumer.shutdown().await;
        b.leave().await;
    }
}

// C34
async fn an_old_fleet_is_found_by_default(fleet: Fleet) {
    let (old, tree) = (fleet.unregistered("old").await, fleet.tree());
    let url = |port: u16| {
        format!(
            "dubbo://127.0.0.1:{port}/{SHOP}?anyhost=true&application=old&dubbo=2.5.3&interface={SHOP}&methods=who,wait&pid=4711\
             &side=provider&timestamp=1400000000000"
        )
    };
    let node = |port: u16| format!("{}/{}", fleet.category_path("providers"), dubhe::encode(&url(port)));
    write(&tree, &node(old.port()), "").await;
    let consumer = fleet.consumer().await;
    let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
    assert_eq!(shop.client.who().await.unwrap(), "old");
    let now = shop.migration().unwrap();
    assert!(prefers(&now, SideKind::Interface) && now.interface.addresses == [old.address()], "{now}");
    let load = Load::start(&shop.client, 2);
    let another = fleet.unregistered("another").await;
    write(&tree, &node(another.port()), "").await;
    until_callable(&shop, 2).await;
    tree.delete(&node(old.port())).await.unwrap();
    until("one has left", || shop.addresses() == [another.address()]).await;
    load.more(20).await;
    assert_eq!(load.stop().await, [""; 0]);
    // Nothing of the new model was left in the old tree by who only consumes.
    assert_eq!(text(&tree, &fleet.mapping_path()).await, None);
    consumer.shutdown().await;
    tree.close().await;
}

// C41
async fn parameters_of_old_providers_without_their_prefix_are_understood(fleet: Fleet) {
    let builder = fleet.bare("old").protocol(loopback(0));
    let old =
        Provider::start(builder, "old", |export| export.register(false).group("g").version("1.0.0")).await;
    let tree = fleet.tree();
    let url = |more: &str| {
        format!(
            "dubbo://{}/{SHOP}?interface={SHOP}&default.version=1.0.0&default.group=g&default.timeout=2000{more}",
            old.address()
        )
    };
    let node = |more| format!("{}/{}", fleet.category_path("providers"), dubhe::encode(&url(more)));
    write(&tree, &node(""), "").await;
    let consumer = fleet.consumer().await;
    let of = |version: &str| consumer.reference::<ShopClient>().group("g").version(version);
    let shop = of("1.0.0").connect().await.unwrap();
    assert_eq!(shop.client.who().await.unwrap(), "old");
    let directory = shop.directory().unwrap();
    assert_eq!(directory.invokers()[0].url().param("timeout"), Some("2000"));
    // What is said itself beats what is said by default; disabled ones and other categories are none.
    tree.delete(&node("")).await.unwrap();
    write(&tree, &node("&version=2"), "").await;
    until("gone", || shop.addresses().is_empty()).await;
    let second = of("2").check(false).connect().await.unwrap();
    until("found", || second.addresses().len() == 1).await;
    for more in ["&enabled=false", "&category=routers"] {
        write(&tree, &node(more), "").await;
    }
    write(&tree, &node("&enabled=true&category=providers"), "").await;
    until("found again", || shop.addresses().len() == 1).await;
    consumer.shutdown().await;
    tree.close().await;
}

// C111
async fn an_instance_of_spring_cloud_is_called_while_it_is_up(fleet: Fleet) {
    let (boot, tree) = (fleet.unregistered("boot").await, fleet.tree());
    let path = fleet.instance_path("boot", boot.port());
    let data = |status: &str| {
        let node = json!({
            "name": "boot", "id": "0d9f2c1e", "address": "127.0.0.1", "port": boot.port(),
            "payload": {
                "@class": "org.springframework.cloud.zookeeper.discovery.ZookeeperInstance",
                "id": "boot-1", "name": "boot", "metadata": {"instance_status": status},
            },
            "registrationTimeUTC": 1, "serviceType": "DYNAMIC",
        });
        node.to_string()
    };
    write(&tree, &path, data("UP")).await;
    let consumer = fleet.consumer().await;
    // Who does not say the protocol does not mean it.
    let vague = consumer.reference::<ShopClient>().param("provided-by", "boot").connect().await;
    vague.unwrap_err();
    let shop = consumer
        .reference::<ShopClient>()
        .param("provided-by", "boot")
        .param("protocol", "dubbo")
        .connect()
        .await
        .unwrap();
    assert_eq!(shop.client.who().await.unwrap(), "boot");
    assert!(prefers(&shop.migration().unwrap(), SideKind::Application));
    let second = fleet.unregistered("second").await;
    let other = data("UP").replace(&boot.port().to_string(), &second.port().to_string());
    write(&tree, &fleet.instance_path("boot", second.port()), other).await;
    until_callable(&shop, 2).await;
    for status in ["OUT_OF_SERVICE", "DOWN"] {
        write(&tree, &path, data(status)).await;
        until("it is down", || shop.addresses() == [second.address()]).await;
        assert_eq!(answers(&shop.client, 20).await.into_iter().collect::<Vec<_>>(), ["second"]);
        write(&tree, &path, data("UP")).await;
        until_callable(&shop, 2).await;
    }
    let began = Instant::now();
    tree.delete(&path).await.unwrap();
    until("it is gone", || shop.addresses().len() == 1).await;
    assert!(began.elapsed() < Duration::from_secs(2), "no cache in between: {:?}", began.elapsed());
    consumer.shutdown().await;
    tree.close().await;
}

// C101
async fn the_instance_is_that_of_the_service_and_not_of_its_metadata_service(fleet: Fleet) {
    let port = Port::lease().unwrap();
    let mut builder = fleet.builder("shop").protocol(loopback(0));
    builder.config().application.metadata_service_port = Some(port.number());
    let shop = Provider::start(builder, "shop", |export| export).await;
    let tree = fleet.tree();
    // The id and the port are those of the service.
    let node = text(&tree, &fleet.instance_path("shop", shop.port())).await.unwrap();
    let node: Value = serde_json::from_str(&node).unwrap();
    assert_eq!(node["port"], json!(shop.port()));
    assert_eq!(node["id"], json!(shop.address()));
    let said = &node["payload"]["metadata"];
    let endpoints: Value = serde_json::from_str(said["dubbo.endpoints"].as_str().unwrap()).unwrap();
    assert_eq!(endpoints, json!([{"port": shop.port(), "protocol": "dubbo"}]));
    let params = said["dubbo.metadata-service.url-params"].as_str().unwrap();
    let params: Value = serde_json::from_str(params).unwrap();
    assert_eq!(params["port"], json!(port.number().to_string()));
    let consumer = fleet.consumer_of("FORCE_APPLICATION").await;
    let found = consumer.reference::<ShopClient>().connect().await.unwrap();
    assert_eq!(found.addresses(), [shop.address()]);
    assert_eq!(found.client.who().await.unwrap(), "shop");
    consumer.shutdown().await;
    shop.leave().await;
    tree.close().await;
}

// C102
async fn an_application_that_restarts_as_it_was_has_the_revision_it_had(fleet: Fleet) {
    let tree = fleet.tree();
    let mut revisions = Vec::new();
    let mut port = 0;
    for _ in 0..2 {
        let shop = fleet.provider_with("shop", port, "instance", |export| export.version("1.0.0")).await;
        port = shop.port();
        let node = text(&tree, &fleet.instance_path("shop", port)).await.unwrap();
        let node: Value = serde_json::from_str(&node).unwrap();
        revisions.push(node["payload"]["metadata"]["dubbo.metadata.revision"].as_str().unwrap().to_owned());
        shop.leave().await;
    }
    assert_eq!(revisions[0], revisions[1]);
    assert!(
        revisions[0].len() == 32
            && revisions[0].chars().all(|one| one.is_ascii_digit() || one.is_ascii_lowercase())
    );
    tree.close().await;
}

/// An address that never answers: its queue is full, so that what comes is dropped without a word.
struct BlackHole {
    port: u16,
    _listener: tokio::net::TcpListener,
    _waiting: Vec<TcpStream>,
}

impl BlackHole {
    async fn new() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(1).unwrap();
        let address = listener.local_addr().unwrap();
        let mut waiting = Vec::new();
        while let Ok(connected) =
            tokio::time::timeout(Duration::from_millis(200), TcpStream::connect(address)).await
        {
            waiting.push(connected.unwrap());
        }
        Self { port: address.port(), _listener: listener, _waiting: waiting }
    }
}

// C30
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_that_never_answer_do_not_slow_the_calls_of_the_others() {
    let fleet = Fleet::in_memory();
    let tree = fleet.tree();
    write(&tree, &fleet.mapping_path(), "shop").await;
    write(&tree, &fleet.metadata_path("shop", "r1"), metadata("shop", "r1")).await;
    let mut alive = Vec::new();
    for number in 0..3 {
        let shop = fleet.unregistered(&format!("alive-{number}")).await;
        let path = fleet.instance_path("shop", shop.port());
        write_instance(&tree, &path, remote_instance("shop", shop.port(), "r1")).await;
        alive.push(shop);
    }
    let consumer = fleet.consumer_of("FORCE_APPLICATION").await;
    let shop = consumer.reference::<ShopClient>().retries(0).connect().await.unwrap();
    until_callable(&shop, 3).await;
    let load = Load::start(&shop.client, 4);
    load.more(50).await;
    let mut holes = Vec::new();
    for _ in 0..3 {
        let hole = BlackHole::new().await;
        let path = fleet.instance_path("shop", hole.port);
        write_instance(&tree, &path, remote_instance("shop", hole.port, "r1")).await;
        holes.push(hole);
    }
    until("all are listed", || shop.addresses().len() == 6).await;
    // Through attempts to connect, their end and the next ones: each may take three seconds.
    let until_then = Instant::now() + Duration::from_millis(3_500);
    let mut slowest = Duration::ZERO;
    while Instant::now() < until_then {
        let began = Instant::now();
        shop.client.who().await.unwrap();
        slowest = slowest.max(began.elapsed());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(slowest < Duration::from_millis(900), "{slowest:?}");
    assert_eq!(load.stop().await, [""; 0]);
    assert!(alive.iter().all(|one| one.served() > 0));
    // Who starts now is not slowed either.
    let began = Instant::now();
    let another = fleet.consumer_of("FORCE_APPLICATION").await;
    let shop = another.reference::<ShopClient>().connect().await.unwrap();
    shop.client.who().await.unwrap();
    assert!(began.elapsed() < Duration::from_millis(2_500), "{:?}", began.elapsed());
    drop(holes);
}

// C30
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_port_of_the_own_protocol_is_dialled() {
    let fleet = Fleet::in_memory();
    let (shop, tree) = (fleet.unregistered("shop").await, fleet.tree());
    let triple = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let other = triple.local_addr().unwrap().port();
    let endpoints =
        json!([{"port": shop.port(), "protocol": "dubbo"}, {"port": other, "protocol": "tri"}]).to_string();
    let said = [
        ("dubbo.endpoints", &*endpoints),
        ("dubbo.metadata.revision", "r1"),
        ("dubbo.metadata.storage-type", "remote"),
    ];
    // Both protocols are in the metadata, neither with a port; the instance's own is the other one's.
    let service = |protocol: &str| json!({"name": SHOP, "protocol": protocol, "path": SHOP, "params": {"interface": SHOP}});
    let services = json!({
        format!("{SHOP}:dubbo"): service("dubbo"), format!("{SHOP}:tri"): service("tri"),
    });
    let info = json!({"app": "shop", "revision": "r1", "services": services}).to_string();
    write(&tree, &fleet.mapping_path(), "shop").await;
    write(&tree, &fleet.metadata_path("shop", "r1"), info).await;
    write_instance(&tree, &fleet.instance_path("shop", other), instance("shop", other, &said)).await;
    let consumer = fleet.consumer_of("FORCE_APPLICATION").await;
    let found = consumer.reference::<ShopClient>().param("protocol", "dubbo").connect().await.unwrap();
    assert_eq!(found.addresses(), [shop.address()]);
    assert_eq!(answers(&found.client, 20).await.len(), 1);
    // Who names no protocol takes what this process speaks.
    let any = consumer.reference::<ShopClient>().connect().await.unwrap();
    assert_eq!(any.addresses(), [shop.address()]);
    assert_eq!(answers(&any.client, 20).await.len(), 1);
    let dialled = tokio::time::timeout(Duration::from_millis(300), triple.accept()).await;
    assert!(dialled.is_err(), "nobody dials the other port");
}

// C31, C101
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_starts_while_the_registry_is_down_works_when_it_is_back() {
    let server = std::sync::Arc::new(zookeeper().await);
    server.kill();
    let fleet = Fleet::on(std::sync::Arc::clone(&server), None);
    let registry = || RegistryConfig { check: Some(false), ..fleet.registry() };
    let start = |name: &str| Dubhe::builder(name).registry_config(registry()).protocol(loopback(0)).start();
    let (consumer, provider) = (start(BUYER).await.unwrap(), start("shop").await.unwrap());
    let began = Instant::now();
    let (shop, exported) = tokio::join!(
        consumer.reference::<ShopClient>().check(false).connect(),
        provider.export(ShopService::new(Named::new("shop")))
    );
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    let (shop, exported) = (shop.unwrap(), exported.unwrap());
    let error = shop.client.who().await.unwrap_err();
    let codes = [ErrorCode::Registry, ErrorCode::Forbidden, ErrorCode::NoInvokerAvailableAfterFilter];
    assert!(codes.contains(&error.code()), "{error:?}");
    server.restart().await.unwrap();
    until_migration(&shop, "found in both models", |now| {
        now.interface.available && now.application.available
    })
    .await;
    assert_eq!(answers(&shop.client, 20).await.len(), 1);
    let url = &exported.urls()[0];
    let tree = fleet.tree();
    let node = text(&tree, &fleet.instance_path("shop", url.port())).await.unwrap();
    let node: Value = serde_json::from_str(&node).unwrap();
    let endpoints = node["payload"]["metadata"]["dubbo.endpoints"].as_str().unwrap();
    let endpoints: Value = serde_json::from_str(endpoints).unwrap();
    assert_eq!(endpoints, json!([{"port": url.port(), "protocol": "dubbo"}]));
    tree.close().await;
    tokio::time::timeout(LONG, consumer.shutdown()).await.unwrap();
    provider.shutdown().await;
}

// C10: an address that left is not only not called, nothing holds on to it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_to_instances_that_left_are_closed_even_if_they_still_serve() {
    let fleet = Fleet::in_memory();
    let (shop, tree) = (fleet.unregistered("shop").await, fleet.tree());
    let door = BreakableProxy::start(shop.address()).await.unwrap();
    let port = door.socket_address().port();
    write(&tree, &fleet.mapping_path(), "shop").await;
    write(&tree, &fleet.metadata_path("shop", "r1"), metadata("shop", "r1")).await;
    let path = fleet.instance_path("shop", port);
    write(&tree, &path, remote_instance("shop", port, "r1")).await;
    let old = fleet.provider("old", "interface").await;
    let consumer = fleet.consumer().await;
    let found = consumer.reference::<ShopClient>().connect().await.unwrap();
    until_migration(&found, "both", |now| now.application.available && now.interface.available).await;
    assert_eq!(answers(&found.client, 10).await.len(), 1);
    assert_eq!(door.connections(), 1);
    let load = Load::start(&found.client, 2);
    tree.delete(&path).await.unwrap();
    until("its connection is closed", || door.connections() == 0).await;
    until("the other is called", || old.served() > 5).await;
    assert_eq!(load.stop().await, [""; 0]);
}
