//! What is registered is listened on, with IPv6 too.

use dubhe::config::{ProtocolConfig, RegistryConfig};
use dubhe::{Dubhe, DubheBuilder};
use dubhe_testkit::ZooKeeper;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::support::{LONG, NamedShop, Shop, ShopClient, ShopService, World};

/// Stands at an address of `::1` for a server of 127.0.0.1, until it is dropped.
struct Entrance {
    address: String,
    _passing: JoinSet<()>,
}

impl Entrance {
    async fn to(server: &str) -> Self {
        let listener =
            TcpListener::bind("[::1]:0").await.expect("this machine has no IPv6 loopback address (::1)");
        let address = listener.local_addr().unwrap().to_string();
        let server = server.to_owned();
        let mut passing = JoinSet::new();
        passing.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut client, _)) = listener.accept().await {
                let server = server.clone();
                connections.spawn(async move {
                    let mut server = TcpStream::connect(server).await?;
                    tokio::io::copy_bidirectional(&mut client, &mut server).await
                });
            }
        });
        Self { address, _passing: passing }
    }
}

async fn offer(builder: DubheBuilder) -> (Dubhe, dubhe::Url) {
    let application = builder.start().await.unwrap();
    let shop = NamedShop { name: "a".to_owned(), inside: Default::default() };
    let exported = application.export(ShopService::new(shop)).await.unwrap();
    (application, exported.urls()[0].clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_reaches_its_registry_by_ipv6_is_called_by_ipv6() {
    let zookeeper = ZooKeeper::start().await.unwrap();
    let entrance = Entrance::to(zookeeper.address()).await;
    let registry = || RegistryConfig {
        file_cache: Some(false),
        ..RegistryConfig::at(format!("zookeeper://{}", entrance.address))
    };
    let builder = |name: &str| Dubhe::builder(name).registry_config(registry()).shutdown_wait(LONG);
    let (provider, served) = offer(builder("provider").protocol(ProtocolConfig::dubbo(0))).await;
    assert_eq!((served.host(), served.param("bind.ip")), ("[::1]", Some("::")));
    let consumer = builder("consumer").start().await.unwrap();
    let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
    assert_eq!(shop.client.who().await.unwrap(), "a");
    assert_eq!(shop.addresses(), [format!("[::1]:{}", served.port())]);
    consumer.shutdown().await;
    provider.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_on_all_interfaces_of_ipv6_serves_both_families() {
    let world = World::new();
    let everywhere = ProtocolConfig { host: Some("::".to_owned()), ..ProtocolConfig::dubbo(0) };
    let (provider, served) = offer(world.builder("provider").protocol(everywhere)).await;
    assert_eq!((served.host(), served.param("bind.ip")), ("127.0.0.1", Some("::")));
    let consumer = world.consumer().await;
    assert_eq!(consumer.refer::<ShopClient>().await.unwrap().who().await.unwrap(), "a");
    for host in ["[::1]", "127.0.0.1"] {
        let url = format!("dubbo://{host}:{}", served.port());
        let shop = consumer.reference::<ShopClient>().url(&url).get().await.unwrap();
        assert_eq!(shop.who().await.unwrap(), "a", "{url}");
    }
    consumer.shutdown().await;
    provider.shutdown().await;
}
