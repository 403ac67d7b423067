//! What goes when applications end, and what stays.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use dubhe::Dubhe;

use crate::applications::{CONSUMER, Mode, Provider, consumer};
use crate::recorded;
use crate::services::{DEMO, Demo, DemoClient};
use crate::stores::{LONG, Store, on_every_store, until};

on_every_store! {
    what_is_left_is_what_dubbo_leaves
    a_provider_leaves_both_models_before_it_stops_answering
    a_provider_refuses_no_call_while_consumers_can_find_it
}

// Recorded of 3.1, in all modes.
async fn what_is_left_is_what_dubbo_leaves(store: &dyn Store) {
    for recording in [recorded::a(), recorded::b(), recorded::c()] {
        let provider = Provider::start(store, recording.mode).await;
        let (consumer, _demo) = consumer(store).await;
        let consumes = format!("/dubbo/metadata/{DEMO}/consumer/{CONSUMER}");
        let provides = "/dubbo/metadata/org.apache.dubbo.demo.GreetService/1.0.0/g1/provider/demo-provider";
        let background = [&*consumes, provides, "/dubbo/mapping/org.apache.dubbo.demo.GreetService"];
        until("what is written in the background is there", async || {
            let paths = store.paths().await;
            background.iter().all(|path| paths.iter().any(|one| one == path))
        })
        .await;
        consumer.shutdown().await;
        provider.application.shutdown().await;
        // Revisions differ, as releases do, and more than one is left of ours. Empty directories are removed by the server in time.
        let comparable = |path: &String| {
            let is_revision = path.starts_with("/dubbo/metadata/demo-provider/");
            let in_time = path.starts_with("/dubbo/config") || path.starts_with("/services");
            // Providers do not listen to overrides yet.
            let is_known = path.ends_with("GreetService/configurators");
            (!in_time && !is_known).then(|| if is_revision { "<revision>".to_owned() } else { path.clone() })
        };
        let theirs: BTreeSet<String> = recording.left.iter().filter_map(comparable).collect();
        assert!(theirs.len() > 10);
        let nodes = store.nodes().await;
        let ours: BTreeSet<String> = nodes.iter().map(|node| &node.path).filter_map(comparable).collect();
        assert_eq!(ours, theirs, "recording {}", recording.name);
        assert!(nodes.iter().all(|node| !node.ephemeral), "{nodes:?}");
        for node in nodes.iter().rev() {
            store.look().delete(&node.path).await.unwrap();
        }
    }
}

/// Instances and URLs of the provider that are registered.
async fn registered(store: &dyn Store, provider: &Provider) -> Vec<String> {
    let paths = store.paths().await.into_iter();
    let is_its_own = |path: &String| *path == provider.instance() || path.contains("/providers/");
    paths.filter(is_its_own).collect()
}

/// A consumer that knows the provider whatever is registered.
async fn direct(provider: &Provider) -> (Dubhe, DemoClient) {
    let consumer = Dubhe::builder("direct").start().await.unwrap();
    let reference = consumer.reference::<DemoClient>().url(format!("dubbo://{}", provider.address()));
    let demo = reference.retries(0).timeout(LONG).get().await.unwrap();
    (consumer, demo)
}

async fn a_provider_leaves_both_models_before_it_stops_answering(store: &dyn Store) {
    let provider = Provider::start(store, Mode::default()).await;
    assert_eq!(registered(store, &provider).await.len(), 3);
    let (consumer, demo) = direct(&provider).await;
    let client = demo.clone();
    let long = tokio::spawn(async move { client.sleep(5).await });
    until("the call is served", async || provider.inside.sleeps.load(Ordering::SeqCst)).await;
    let application = provider.application.clone();
    let shutdown = tokio::spawn(async move { application.shutdown().await });
    until("all of it is gone", async || registered(store, &provider).await.is_empty()).await;
    assert!(!shutdown.is_finished() && !long.is_finished(), "the call in flight is waited for");
    provider.inside.wake.notify_waiters();
    assert_eq!(long.await.unwrap().unwrap(), "slept 5");
    shutdown.await.unwrap();
    consumer.shutdown().await;
}

async fn a_provider_refuses_no_call_while_consumers_can_find_it(store: &dyn Store) {
    let provider = Provider::start(store, Mode::default()).await;
    let (consumer, demo) = direct(&provider).await;
    let application = provider.application.clone();
    let shutdown = tokio::spawn(async move { application.shutdown().await });
    let refused = async {
        while demo.say_hello("tree".to_owned()).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, refused).await.expect("calls are refused in the end");
    assert_eq!(registered(store, &provider).await, Vec::<String>::new());
    shutdown.await.unwrap();
    consumer.shutdown().await;
}
