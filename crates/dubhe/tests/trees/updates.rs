//! What changes in the tree when services come later, and in which order.

use std::sync::Arc;

use dubhe_core::discovery::{Instances, ServiceDiscovery};
use dubhe_core::observation::{Observation, Stamp};
use dubhe_core::tree::NodeData;
use dubhe_discovery::TreeServiceDiscovery;
use tokio::time::timeout;

use crate::applications::{CONSUMER, LOCAL, Mode, PROVIDER, Provider, REMOTE, application, ask, consumer};
use crate::revisions::shown_revision;
use crate::services::{DEMO, Demo, GREET};
use crate::stores::{LONG, Store, on_every_store, until};

on_every_store! {
    a_later_service_changes_the_data_of_the_same_node
    a_former_revision_is_still_answered
    a_former_revision_is_still_in_the_report
    metadata_is_there_before_its_revision_shows
    an_instance_comes_after_its_metadata
    a_service_that_is_taken_back_leaves_the_others_registered
    an_application_that_only_consumes_is_no_instance
    a_provider_registered_by_interface_only_is_no_instance
}

/// When the data of a node was last changed, in the order of the store, and how often before.
async fn last_change(store: &dyn Store, path: &str) -> (Stamp, i32) {
    let mut data = store.look().data(path);
    let is_read = |seen: &Observation<Option<NodeData>>| seen.known.as_ref().is_some_and(Option::is_some);
    let seen = data.wait_for(is_read).await.unwrap().clone();
    (seen.stamp, seen.known.flatten().unwrap().version)
}

fn in_the_report(revision: &str) -> String {
    format!("/dubbo/metadata/{PROVIDER}/{revision}")
}

async fn a_later_service_changes_the_data_of_the_same_node(store: &dyn Store) {
    let provider = Provider::with_demo(application(PROVIDER, store), LOCAL).await;
    let mut children = store.look().children(&format!("/services/{PROVIDER}"), false);
    children.wait_for(|seen| seen.known.as_ref().is_some_and(Option::is_some)).await.unwrap();
    let instances = children.borrow_and_update().stamp;
    let (one, versions) =
        (shown_revision(store, &provider).await, last_change(store, &provider.instance()).await.1);
    provider.export_greet().await;
    provider.application.announce().await.unwrap();
    let other = shown_revision(store, &provider).await;
    assert_ne!(one, other);
    let (changed, version) = last_change(store, &provider.instance()).await;
    assert_eq!(version, versions + 1, "a node made anew would count from 0");
    assert!(changed > Stamp { epoch: 0, ..instances });
    assert_eq!(store.look().list(&format!("/services/{PROVIDER}")).await.unwrap().unwrap().len(), 1);
    assert!(!children.has_changed().unwrap(), "the node was never gone");
    provider.application.shutdown().await;
}

async fn a_former_revision_is_still_answered(store: &dyn Store) {
    let provider = Provider::with_demo(application(PROVIDER, store), LOCAL).await;
    let one = shown_revision(store, &provider).await;
    provider.export_greet().await;
    provider.application.announce().await.unwrap();
    let other = shown_revision(store, &provider).await;
    let former =
        ask(PROVIDER, &provider.address(), &one).await.expect("consumers may not have seen the change yet");
    assert_eq!(former.services.into_keys().collect::<Vec<_>>(), [format!("{DEMO}:dubbo")]);
    let current = ask(PROVIDER, &provider.address(), &other).await.unwrap();
    let both = [format!("g1/{GREET}:1.0.0:dubbo"), format!("{DEMO}:dubbo")];
    assert_eq!(current.services.into_keys().collect::<Vec<_>>(), both);
    provider.application.shutdown().await;
}

async fn a_former_revision_is_still_in_the_report(store: &dyn Store) {
    let provider = Provider::with_demo(application(PROVIDER, store), REMOTE).await;
    let one = shown_revision(store, &provider).await;
    let text = store.text(&in_the_report(&one)).await;
    provider.export_greet().await;
    provider.application.announce().await.unwrap();
    let other = shown_revision(store, &provider).await;
    assert_ne!(one, other);
    assert_eq!(store.text(&in_the_report(&one)).await, text);
    assert!(store.text(&in_the_report(&other)).await.contains(GREET));
    provider.application.shutdown().await;
    assert!(
        store.paths().await.contains(&in_the_report(&other)),
        "it stays, as others may show the same revision"
    );
}

async fn an_instance_comes_after_its_metadata(store: &dyn Store) {
    let provider = Provider::with_demo(application(PROVIDER, store), REMOTE).await;
    let reported = last_change(store, &in_the_report(&shown_revision(store, &provider).await)).await.0;
    let registered = last_change(store, &provider.instance()).await.0;
    assert!(reported.sequence < registered.sequence, "{reported:?} {registered:?}");
    provider.application.shutdown().await;
}

async fn metadata_is_there_before_its_revision_shows(store: &dyn Store) {
    let provider = Provider::with_demo(application(PROVIDER, store), REMOTE).await;
    // Whoever sees a revision finds its metadata at once.
    let url = dubhe::Url::parse(&store.registry().1).unwrap();
    let mut instances = TreeServiceDiscovery::new(&url, Arc::clone(store.look())).instances(PROVIDER);
    let revisions = |seen: &Instances| -> Vec<String> {
        seen.iter().map(|one| one.metadata["dubbo.metadata.revision"].clone()).collect()
    };
    let is_seen = |seen: &Observation<Instances>| seen.known.as_ref().is_some_and(|known| !known.is_empty());
    instances.wait_for(is_seen).await.unwrap();
    let exporting = async {
        provider.export_greet().await;
        provider.application.announce().await.unwrap();
        shown_revision(store, &provider).await
    };
    let watching = async {
        let mut seen = Vec::new();
        loop {
            let now = instances.borrow_and_update().known.clone();
            for revision in now.iter().flat_map(revisions) {
                if !seen.contains(&revision) {
                    store.text(&in_the_report(&revision)).await;
                    seen.push(revision);
                }
            }
            if seen.len() == 2 {
                return seen;
            }
            instances.changed().await.unwrap();
        }
    };
    // In this order: the first revision is seen before the second one is there.
    let (seen, last) = timeout(LONG, async { tokio::join!(watching, exporting) }).await.unwrap();
    assert_eq!(seen.last(), Some(&last));
    let (reported, shown) =
        (last_change(store, &in_the_report(&last)).await.0, last_change(store, &provider.instance()).await.0);
    assert!(reported.sequence < shown.sequence, "{reported:?} {shown:?}");
    provider.application.shutdown().await;
}

async fn a_service_that_is_taken_back_leaves_the_others_registered(store: &dyn Store) {
    let provider = Provider::with_demo(application(PROVIDER, store), LOCAL).await;
    let one = shown_revision(store, &provider).await;
    let greet = provider.export_greet().await;
    provider.application.announce().await.unwrap();
    greet.unexport().await;
    assert_eq!(shown_revision(store, &provider).await, one, "what is exported is what it was");
    provider.demo.unexport().await;
    let paths = store.paths().await;
    assert!(
        !paths.contains(&provider.instance()),
        "an application without services is no instance: {paths:?}"
    );
    provider.application.shutdown().await;
}

async fn an_application_that_only_consumes_is_no_instance(store: &dyn Store) {
    let provider = Provider::start(store, LOCAL).await;
    let (consumer, demo) = consumer(store).await;
    consumer.announce().await.unwrap();
    assert_eq!(demo.say_hello("tree".to_owned()).await.unwrap(), "Hello tree");
    let definition = format!("/dubbo/metadata/{DEMO}/consumer/{CONSUMER}");
    until("the consumer's definition is published", async || store.paths().await.contains(&definition)).await;
    let instances = |paths: Vec<String>| -> Vec<String> {
        paths.into_iter().filter(|path| path.starts_with("/services/")).collect()
    };
    assert_eq!(instances(store.paths().await), [format!("/services/{PROVIDER}"), provider.instance()]);
    consumer.shutdown().await;
    provider.application.shutdown().await;
}

async fn a_provider_registered_by_interface_only_is_no_instance(store: &dyn Store) {
    let mode = Mode { register_mode: Some("interface"), metadata_type: None };
    let provider = Provider::start(store, mode).await;
    let paths = store.paths().await;
    let registered: Vec<&String> = paths.iter().filter(|path| path.contains("/providers/")).collect();
    assert_eq!(registered.len(), 2);
    assert!(!registered.iter().any(|path| path.contains("service-name-mapping")), "{registered:?}");
    let by_application = ["/services", "/dubbo/mapping", "/dubbo/metadata/demo-provider"];
    assert!(!by_application.iter().any(|root| paths.iter().any(|path| path.starts_with(root))), "{paths:?}");
    provider.application.shutdown().await;
}
