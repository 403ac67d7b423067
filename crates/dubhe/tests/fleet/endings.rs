//! Graceful ends, of providers and of consumers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dubhe::ErrorCode;
use tokio::sync::Notify;

use crate::support::{LONG, Load, NamedShop, Shop, ShopClient, ShopService, World, loopback, until};

/// A signal goes to the whole process: one test with it at a time.
static SIGNALS: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

#[dubhe::service(interface = "dev.dubhe.test.Desk")]
trait Desk {
    async fn ask(&self) -> dubhe::Result<String>;
}

/// Waits, then asks a shop.
struct Forwarding {
    shop: ShopClient,
    asked: Arc<AtomicBool>,
    go: Arc<Notify>,
}

impl Desk for Forwarding {
    async fn ask(&self) -> dubhe::Result<String> {
        let go = self.go.notified();
        self.asked.store(true, Ordering::SeqCst);
        go.await;
        self.shop.who().await
    }
}

// C91
#[tokio::test]
async fn a_long_call_ends_well_although_its_provider_left_the_registry() {
    let world = World::new();
    let provider = world.provider("a").await;
    let consumer = world.consumer().await;
    let shop = consumer.reference::<ShopClient>().timeout(LONG).connect().await.unwrap();
    let client = shop.client.clone();
    let long = tokio::spawn(async move { client.wait().await });
    until("the call is served", || provider.inside.waiting.load(Ordering::SeqCst) == 1).await;
    provider.exported.unregister().await;
    until("the address is gone", || shop.addresses().is_empty()).await;
    provider.inside.release.notify_waiters();
    assert_eq!(long.await.unwrap().unwrap(), "a");
}

#[tokio::test]
async fn a_provider_that_shuts_down_finishes_the_calls_it_serves() {
    let world = World::new();
    let provider = world.provider("a").await;
    let consumer = world.consumer().await;
    let shop = consumer.reference::<ShopClient>().timeout(LONG).retries(0).get().await.unwrap();
    let client = shop.clone();
    let long = tokio::spawn(async move { client.wait().await });
    until("the call is served", || provider.inside.waiting.load(Ordering::SeqCst) == 1).await;
    let application = provider.application.clone();
    let shutdown = tokio::spawn(async move { application.shutdown().await });
    let error = async {
        loop {
            if let Err(error) = shop.who().await {
                return error;
            }
        }
    };
    let error = tokio::time::timeout(LONG, error).await.expect("new calls are refused at some point");
    assert_eq!(error.code(), ErrorCode::Forbidden, "{error:?}");
    assert!(!shutdown.is_finished(), "the shutdown waits for the call");
    provider.inside.release.notify_waiters();
    assert_eq!(long.await.unwrap().unwrap(), "a");
    shutdown.await.unwrap();
}

// C93
#[tokio::test]
async fn calls_being_served_at_shutdown_may_still_call_others() {
    let world = World::new();
    let _shop = world.provider("a").await;
    let middle = world.builder("middle").protocol(loopback(0)).start().await.unwrap();
    let (asked, go) = (Arc::new(AtomicBool::new(false)), Arc::new(Notify::new()));
    let shop = middle.refer::<ShopClient>().await.unwrap();
    let desk = Forwarding { shop, asked: Arc::clone(&asked), go: Arc::clone(&go) };
    middle.export(DeskService::new(desk)).await.unwrap();
    let consumer = world.consumer().await;
    let desk = consumer.reference::<DeskClient>().timeout(LONG).retries(0).get().await.unwrap();
    let answer = tokio::spawn(async move { desk.ask().await });
    until("the call is served", || asked.load(Ordering::SeqCst)).await;
    let shutdown = tokio::spawn({
        let middle = middle.clone();
        async move { middle.shutdown().await }
    });
    let listed = || world.store.paths().iter().any(|(path, _)| path.contains("Desk/providers/"));
    until("it left the registry", || !listed()).await;
    go.notify_waiters();
    assert_eq!(answer.await.unwrap().unwrap(), "a");
    shutdown.await.unwrap();
    until("nothing is left of both references", || consumer_nodes(&world) == 0).await;
}

#[tokio::test]
async fn nothing_is_offered_or_found_after_the_shutdown() {
    let world = World::new();
    let a = world.provider("a").await;
    let application = world.builder("ended").protocol(loopback(0)).start().await.unwrap();
    application.shutdown().await;
    let shop = NamedShop { name: "ended".to_owned(), inside: Arc::default() };
    application.export(ShopService::new(shop)).await.unwrap_err();
    application.refer::<ShopClient>().await.unwrap_err();
    let direct = format!("dubbo://{}", a.address());
    application.reference::<ShopClient>().url(direct).check(false).get().await.unwrap_err();
    assert_eq!(consumer_nodes(&world), 0);
}

#[tokio::test]
async fn a_reference_ends_with_its_last_client_and_no_other_with_it() {
    let world = World::new();
    let _a = world.provider("a").await;
    let consumer = world.consumer().await;
    let kept = consumer.refer::<ShopClient>().await.unwrap();
    let nodes = world.store.nodes();
    for _ in 0..20 {
        let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
        let client = shop.client.clone();
        drop(shop);
        assert_eq!(client.who().await.unwrap(), "a");
        assert_eq!(consumer_nodes(&world), 2);
        drop(client);
        until("its node is gone", || consumer_nodes(&world) == 1).await;
    }
    assert_eq!(kept.who().await.unwrap(), "a");
    assert_eq!(world.store.nodes(), nodes, "nothing is left of them");
}

// C93
#[tokio::test]
async fn a_consumer_that_shuts_down_finishes_its_calls_and_leaves_nothing() {
    let world = World::new();
    let provider = world.provider("a").await;
    let consumer = world.consumer().await;
    let shop = consumer.reference::<ShopClient>().timeout(LONG).get().await.unwrap();
    assert!(consumer_nodes(&world) == 1, "the consumer is seen in the registry");
    let client = shop.clone();
    let long = tokio::spawn(async move { client.wait().await });
    until("the call is served", || provider.inside.waiting.load(Ordering::SeqCst) == 1).await;
    let ending = consumer.clone();
    let shutdown = tokio::spawn(async move { ending.shutdown().await });
    let refused = async {
        loop {
            if let Err(error) = shop.who().await {
                return error;
            }
        }
    };
    let error = tokio::time::timeout(LONG, refused).await.expect("new calls are refused");
    assert!(error.to_string().contains("shutting down"), "{error}");
    assert!(!shutdown.is_finished());
    provider.inside.release.notify_waiters();
    assert_eq!(long.await.unwrap().unwrap(), "a");
    shutdown.await.unwrap();
    assert_eq!(consumer_nodes(&world), 0);
    consumer.shutdown().await;
}

fn consumer_nodes(world: &World) -> usize {
    world.store.paths().iter().filter(|(path, _)| path.contains("/consumers/")).count()
}

#[tokio::test]
async fn shutdown_does_not_wait_longer_than_it_is_told() {
    let world = World::new();
    let provider = world.provider("a").await;
    let consumer = world.builder("consumer").shutdown_wait(Duration::from_millis(100)).start().await.unwrap();
    let shop = consumer.reference::<ShopClient>().timeout(LONG).retries(0).get().await.unwrap();
    let client = shop.clone();
    let long = tokio::spawn(async move { client.wait().await });
    until("the call is served", || provider.inside.waiting.load(Ordering::SeqCst) == 1).await;
    let began = std::time::Instant::now();
    tokio::time::timeout(LONG, consumer.shutdown()).await.expect("the shutdown ends");
    assert!(long.await.unwrap().is_err(), "the call fails at the end of the wait");
    assert!(began.elapsed() < Duration::from_secs(8), "nothing waits for the call by a time of its own");
    assert!(consumer.announce().await.is_err());
}

#[tokio::test]
async fn an_export_that_is_given_up_leaves_nothing() {
    // Nobody listens there.
    let registry = dubhe::config::RegistryConfig {
        timeout: Some(1_000),
        file_cache: Some(false),
        ..dubhe::config::RegistryConfig::at("zookeeper://127.0.0.1:1")
    };
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let application =
        dubhe::Dubhe::builder("a").registry_config(registry).protocol(crate::support::loopback(port));
    let application = application.start().await.unwrap();
    let shop = || {
        crate::support::ShopService::new(crate::support::NamedShop {
            name: "a".to_owned(),
            inside: Default::default(),
        })
    };
    let given_up = tokio::time::timeout(Duration::from_millis(100), application.export(shop())).await;
    assert!(given_up.is_err());
    let mut refused = 0;
    let exported = loop {
        match application.service(shop()).register(false).export().await {
            Ok(exported) => break exported,
            Err(_) => refused += 1,
        }
        assert!(refused < 1_000, "the service is exported for ever");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    exported.unexport().await;
    until("nobody listens any more", || std::net::TcpStream::connect(("127.0.0.1", port)).is_err()).await;
}

#[tokio::test]
async fn the_metadata_service_ends_with_the_last_service() {
    let world = World::new();
    let a = world.provider("a").await;
    let second = crate::support::NamedShop { name: "second".to_owned(), inside: Default::default() };
    let second = a
        .application
        .service(crate::support::ShopService::new(second))
        .group("second")
        .export()
        .await
        .unwrap();
    let listens = || std::net::TcpStream::connect(("127.0.0.1", a.port())).is_ok();
    a.exported.unexport().await;
    assert!(listens());
    let consumer = world.consumer().await;
    let shop =
        consumer.reference::<ShopClient>().group("second").param("migration.step", "FORCE_APPLICATION");
    assert_eq!(shop.get().await.unwrap().who().await.unwrap(), "second");
    second.unexport().await;
    assert!(!listens());
}

#[tokio::test]
async fn after_many_restarts_nothing_is_left_of_them() {
    let world = World::new();
    let _a = world.provider("a").await;
    let consumer = world.consumer().await;
    let shop = consumer.refer::<ShopClient>().await.unwrap();
    let load = Load::start(&shop, 2);
    // The first one leaves what is meant to stay: its name in the mapping, its service's definition.
    world.provider("b").await.application.shutdown().await;
    let nodes = world.store.nodes();
    for _ in 0..20 {
        world.provider("b").await.application.shutdown().await;
    }
    load.more(50).await;
    assert_eq!(load.stop().await, [""; 0]);
    until("the registry is as it was", || world.store.nodes() == nodes).await;
    assert_eq!(world.store.sessions(), 2, "one session each of the provider and of the consumer");
}

// C93
#[cfg(unix)]
#[tokio::test]
async fn sigterm_ends_an_application_gracefully() {
    let _alone = SIGNALS.lock().await;
    let world = World::new();
    let provider = world.provider("a").await;
    let nodes = || world.store.paths().iter().filter(|(path, _)| path.contains("/providers/")).count();
    assert_eq!(nodes(), 1);
    let mut running = Box::pin(provider.application.run_until_signal());
    tokio::select! {
        biased;
        () = &mut running => panic!("it runs until the signal"),
        () = std::future::ready(()) => {} // it was asked once: from here on it listens
    }
    let own = std::process::id().to_string();
    let sent = tokio::process::Command::new("sh").args(["-c", "kill -TERM \"$0\"", &own]).status().await;
    assert!(sent.unwrap().success());
    tokio::time::timeout(LONG, running).await.expect("it ends");
    assert_eq!(nodes(), 0);
    assert_eq!(world.store.sessions(), 0);
}

// C93
#[tokio::test]
async fn sigterm_during_start_takes_back_what_was_registered() {
    let _alone = SIGNALS.lock().await;
    let world = World::new();
    let (registered, waiting) = tokio::sync::oneshot::channel();
    let builder = world.builder("slow").protocol(crate::support::loopback(0));
    let running = builder.run(async |dubhe| {
        let shop = crate::support::NamedShop { name: "slow".to_owned(), inside: Default::default() };
        dubhe.export(crate::support::ShopService::new(shop)).await?;
        registered.send(()).unwrap();
        // The rest of the start never comes to its end.
        std::future::pending().await
    });
    let stop = async {
        waiting.await.unwrap();
        assert!(world.store.paths().iter().any(|(path, _)| path.contains("/providers/")));
        let own = std::process::id().to_string();
        let sent = tokio::process::Command::new("sh").args(["-c", "kill -TERM \"$0\"", &own]).status().await;
        assert!(sent.unwrap().success());
    };
    let (ended, ()) =
        tokio::time::timeout(LONG, async { tokio::join!(running, stop) }).await.expect("it ends");
    ended.unwrap();
    assert!(world.store.paths().iter().all(|(path, _)| !path.contains("/providers/")));
    assert_eq!(world.store.sessions(), 0);
}
