//! One call: values, exceptions, attachments, time limits.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dubhe::{CallOptions, Delivery, ErrorCode, ResponseAttachments, Value};

use crate::support::{OrderState, Shop, ShopClient, World, order, until};

#[tokio::test]
async fn values_go_there_and_come_back() {
    let world = World::new();
    let _provider = world.provider("a").await;
    let consumer = world.consumer().await;
    let shop = consumer.refer::<ShopClient>().await.unwrap();
    assert_eq!(shop.greet("\u{1f600} world".to_owned()).await.unwrap(), "Hello \u{1f600} world");
    assert_eq!(shop.find(7).await.unwrap(), Some(order(7)));
    assert_eq!(shop.find(0).await.unwrap(), None);
    let placed = shop.place(order(9), true).await.unwrap();
    assert_eq!((placed.state, placed.remark.as_deref()), (OrderState::PAID, Some("urgent")));
}

#[tokio::test]
async fn what_the_service_throws_arrives_with_class_message_and_fields() {
    let world = World::new();
    let provider = world.provider("a").await;
    let consumer = world.consumer().await;
    let shop = consumer.refer::<ShopClient>().await.unwrap();
    let error = shop.fail("dev.dubhe.test.NoStock".to_owned(), "no tea left".to_owned()).await.unwrap_err();
    assert_eq!((error.code(), error.delivery()), (ErrorCode::Biz, Delivery::Executed));
    let exception = error.exception().unwrap();
    assert_eq!(&*exception.class, "dev.dubhe.test.NoStock");
    assert_eq!(exception.message.as_deref(), Some("no tea left"));
    assert_eq!(exception.field("code"), Some(&Value::Int(42)));
    // C73
    assert_eq!(
        provider.inside.served.load(std::sync::atomic::Ordering::SeqCst),
        1,
        "a business failure is not retried"
    );
}

#[tokio::test]
async fn a_panic_in_the_service_is_an_exception_and_the_provider_goes_on() {
    let world = World::new();
    let _provider = world.provider("a").await;
    let consumer = world.consumer().await;
    let shop = consumer.refer::<ShopClient>().await.unwrap();
    let error = shop.panics().await.unwrap_err();
    assert_eq!(&*error.exception().unwrap().class, "java.lang.RuntimeException");
    assert!(error.to_string().contains("out of stock"), "{error}");
    assert_eq!(shop.who().await.unwrap(), "a");
}

#[derive(Debug)]
struct Handmade(Arc<dubhe::ServiceDefinition>);

impl dubhe::Service for Handmade {
    fn definition(&self) -> &Arc<dubhe::ServiceDefinition> {
        &self.0
    }

    fn call(&self, _: usize, _: dubhe::Invocation) -> dubhe::BoxFuture<'_, dubhe::Result<dubhe::Response>> {
        panic!("before there is a future")
    }
}

#[tokio::test]
async fn a_service_made_by_hand_is_called_by_name_and_may_panic_anywhere() {
    use dubhe::proxy::{convert_arguments, method_definition, read_arguments};
    let world = World::new();
    let method = method_definition("now", &[], read_arguments::<()>, convert_arguments::<()>);
    let definition = dubhe::ServiceDefinition::new("dev.dubhe.test.Clock", vec![method]);
    let provider = world.builder("clock").protocol(crate::support::loopback(0)).start().await.unwrap();
    provider.untyped_service(Arc::new(Handmade(Arc::new(definition)))).export().await.unwrap();
    let consumer = world.consumer().await;
    let clock = consumer.generic("dev.dubhe.test.Clock").get().await.unwrap();
    let error = clock.invoke("now", &[], Vec::new()).await.unwrap_err();
    assert!(error.to_string().contains("the service panicked: before there is a future"), "{error}");
}

#[tokio::test]
async fn attachments_go_both_ways_and_only_with_the_calls_they_are_set_for() {
    let world = World::new();
    let _provider = world.provider("a").await;
    let consumer = world.consumer().await;
    let shop = consumer.refer::<ShopClient>().await.unwrap();
    let seen = ResponseAttachments::new();
    let traced = shop.with(CallOptions::new().attachment("trace", "42").capture(&seen));
    let received = traced.attached().await.unwrap();
    assert_eq!(received.get("trace").map(String::as_str), Some("42"));
    assert_eq!(received.get("remote.application").map(String::as_str), Some("consumer"));
    assert_eq!(seen.get().get_str("answered.by"), Some("a"));
    let received: HashMap<String, String> = shop.attached().await.unwrap();
    assert!(!received.contains_key("trace"));
    for hidden in ["path", "interface", "version", "timeout", "dubbo"] {
        assert!(!received.contains_key(hidden), "{hidden} is the protocol's own");
    }
}

#[tokio::test]
async fn a_one_way_call_is_run_and_not_waited_for() {
    let world = World::new();
    let _provider = world.provider("a").await;
    let consumer = world.consumer().await;
    let shop = consumer.refer::<ShopClient>().await.unwrap();
    shop.note("tea is low".to_owned()).await.unwrap();
    for _ in 0..1_000 {
        if shop.notes().await.unwrap() == ["tea is low"] {
            return;
        }
    }
    panic!("the note never arrived");
}

#[tokio::test]
async fn a_call_that_takes_too_long_ends_with_a_timeout_error() {
    let world = World::new();
    let provider = world.provider("a").await;
    let consumer = world.consumer().await;
    let shop = consumer.reference::<ShopClient>().retries(0).param("wait.timeout", 50).get().await.unwrap();
    let start = Instant::now();
    let error = shop.wait().await.unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
    assert_eq!(error.delivery(), Delivery::Sent);
    assert!(start.elapsed() >= Duration::from_millis(50));
    assert!(error.to_string().contains("Waiting server-side response timeout"), "{error}");
    provider.inside.release.notify_waiters();
    assert_eq!(shop.who().await.unwrap(), "a", "the connection goes on");
}

#[tokio::test]
async fn echo_and_generic_calls_need_no_interface() {
    let world = World::new();
    let _provider = world.provider("a").await;
    let consumer = world.consumer().await;
    let shop = consumer.refer::<ShopClient>().await.unwrap();
    assert_eq!(shop.client().echo("ping".into()).await.unwrap(), Value::from("ping"));
    let generic = consumer.generic("dev.dubhe.test.Shop").get().await.unwrap();
    let reply = generic.invoke("greet", &["java.lang.String"], vec!["Ada".into()]).await.unwrap();
    assert_eq!(reply.as_str(), Some("Hello Ada"));
    let found = generic.invoke("find", &["long"], vec![Value::Long(3)]).await.unwrap();
    assert_eq!(found.get("class").and_then(Value::as_str), Some("dev.dubhe.test.Order"));
    assert_eq!(found.get("id"), Some(&Value::Long(3)));
    assert_eq!(found.get("state").and_then(Value::as_str), Some("OPEN"));
    let placed = generic
        .invoke("place", &["dev.dubhe.test.Order", "boolean"], vec![found, true.into()])
        .await
        .unwrap();
    assert_eq!(placed.get("state").and_then(Value::as_str), Some("PAID"));
    let error = generic.invoke("sell", &["long"], vec![Value::Long(3)]).await.unwrap_err();
    assert!(error.to_string().contains("sell"), "{error}");
}

#[tokio::test]
async fn a_dropped_call_leaves_nothing_behind() {
    let world = World::new();
    let provider = world.provider("a").await;
    let consumer = world.consumer().await;
    let shop = consumer.reference::<ShopClient>().timeout(Duration::from_secs(30)).get().await.unwrap();
    for _ in 0..100 {
        let call = shop.wait();
        let _ = tokio::time::timeout(Duration::from_millis(1), call).await;
    }
    provider.inside.release.notify_waiters();
    assert_eq!(shop.who().await.unwrap(), "a");
    consumer.shutdown().await;
}

// C107
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_first_calls_at_once_all_succeed() {
    let world = World::new();
    let _provider = world.provider_with("a", 0, |export| export.param("threads", 2_000)).await;
    let consumer = world.consumer().await;
    let shop = consumer.reference::<ShopClient>().timeout(Duration::from_secs(30)).get().await.unwrap();
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..1_000 {
        let shop = shop.clone();
        calls.spawn(async move { shop.who().await });
    }
    while let Some(call) = calls.join_next().await {
        assert_eq!(call.unwrap().unwrap(), "a");
    }
}

// C108
#[tokio::test]
async fn all_of_three_providers_are_used() {
    let world = World::new();
    let providers = [world.provider("a").await, world.provider("b").await, world.provider("c").await];
    for balancer in ["random", "roundrobin"] {
        let consumer = world.consumer().await;
        let shop = consumer.reference::<ShopClient>().load_balance(balancer).connect().await.unwrap();
        until("three connections", || {
            shop.directory().unwrap().invokers().iter().all(|one| one.is_available())
        })
        .await;
        let mut counts: HashMap<String, usize> = HashMap::new();
        for _ in 0..3_000 {
            *counts.entry(shop.client.who().await.unwrap()).or_default() += 1;
        }
        assert_eq!(counts.len(), providers.len(), "{balancer}: {counts:?}");
        assert!(counts.values().all(|count| *count > 500), "{balancer}: {counts:?}");
    }
}

// C44
#[tokio::test]
async fn each_provider_is_called_with_its_own_group() {
    let world = World::new();
    let _one = world.provider_with("one", 0, |export| export.group("g1")).await;
    let _two = world.provider_with("two", 0, |export| export.group("g2")).await;
    let _none = world.provider("none").await;
    let consumer = world.consumer().await;
    let shop = consumer.reference::<ShopClient>().group("g1,g2").connect().await.unwrap();
    assert_eq!(shop.addresses().len(), 2, "a provider without a group is not in the list");
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..200 {
        seen.insert(shop.client.who().await.unwrap());
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["one", "two"]);
}
