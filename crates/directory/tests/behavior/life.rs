//! From subscribing to closing, and that nothing stays behind.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use dubhe_common::{Url, UrlFactory};
use dubhe_core::directory::Directory;
use dubhe_core::error::ErrorCode;
use dubhe_core::extension::Extensions;
use dubhe_core::protocol::Protocol;
use dubhe_core::registry::{Category, Registry, ServiceView};
use dubhe_directory::{RegistryDirectory, RegistryDirectoryParts};
use futures::FutureExt;

use crate::doubles::{Board, Gate, Wire, World, call, hosts};

#[tokio::test]
async fn the_consumer_is_registered_then_subscribed_and_taken_back_in_that_order() {
    let world = World::of(&["a"]);
    let directory = world.directory().await;
    assert_eq!(world.board.log(), ["register", "subscribe"]);
    directory.close().await;
    assert_eq!(world.board.log(), ["unregister", "unsubscribe"]);
    assert_eq!((world.wire.live(), world.wire.closed.load(Ordering::SeqCst)), (0, 1));

    let error = directory.list(&call()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Unknown);
    assert_eq!(
        error.message(),
        "Directory of type RegistryDirectory already destroyed for service demo.Greeter from registry zk1.example:2181"
    );
    let status = directory.status().borrow().clone();
    assert!(status.closed && status.total == 0);

    directory.close().await;
    assert!(world.board.log().is_empty());
}

#[tokio::test]
async fn a_directory_closes_even_when_the_registry_refuses_to_unregister() {
    let world = World::of(&["a"]);
    let directory = world.directory().await;
    world.board.refuses_unregistering.store(true, Ordering::SeqCst);
    directory.close().await;
    assert!(directory.status().borrow().closed);
    assert_eq!(world.board.log(), ["register", "subscribe", "unregister", "unsubscribe"]);
}

#[tokio::test]
async fn closing_that_is_cancelled_half_way_still_closes() {
    // C09
    let world = World::of(&["a"]);
    let directory = world.directory().await;
    world.board.unregistering.forget_permits(1_000);
    let mut closing = Box::pin(directory.close());
    assert!((&mut closing).now_or_never().is_none());
    assert_eq!(hosts(&*directory), ["a"]);
    drop(closing);
    assert!(directory.status().borrow().closed);
    tokio::task::yield_now().await;
    assert_eq!(world.board.log(), ["register", "subscribe", "unsubscribe"]);
    assert_eq!(world.wire.live(), 0);
}

#[tokio::test]
async fn a_view_after_closing_does_not_open_the_directory_again() {
    let world = World::of(&["a"]);
    let directory = world.directory().await;
    let closing = directory.close();
    world.board.edit(|view| view.providers = crate::doubles::known(&["a", "b"]));
    closing.await;
    tokio::task::yield_now().await;
    assert!(directory.list(&call()).is_err());
    assert_eq!(world.wire.live(), 0);
}

#[tokio::test]
async fn a_dropped_directory_ends_its_subscription() {
    let world = World::of(&["a"]);
    drop(world.directory().await);
    tokio::task::yield_now().await;
    assert_eq!(world.board.log(), ["register", "subscribe", "unsubscribe"]);
    assert_eq!(world.wire.live(), 0);
}

#[tokio::test]
async fn a_subscription_that_fails_takes_the_registration_back() {
    let world = World::of(&["a"]);
    world.board.refuses_subscriptions.store(true, Ordering::SeqCst);
    assert!(RegistryDirectory::subscribe(world.parts()).await.is_err());
    assert_eq!(world.board.log(), ["register", "subscribe", "unregister"]);
}

#[tokio::test]
async fn a_provider_that_left_serves_the_calls_that_chose_it() {
    let world = World::of(&["a", "b"]);
    let directory = world.directory().await;
    let chosen = Arc::clone(&directory.list(&call()).unwrap().invokers()[0]);
    world.list(&directory, &["b"]).await;
    assert!(chosen.invoke(call()).await.is_ok());
    assert_eq!(world.wire.closed.load(Ordering::SeqCst), 0);
    drop(chosen);
    assert_eq!(world.wire.closed.load(Ordering::SeqCst), 1, "its connection ends with the last call");
}

#[tokio::test]
async fn three_hundred_references_hold_the_same_after_fifty_restarts_of_five_providers() {
    // C94
    const REFERENCES: usize = 300;
    let wire = Arc::new(Wire::default());
    let registered = UrlFactory::new();
    let view = |service: usize, start: usize| {
        let provider = |host: usize| {
            let text = format!(
                "dubbo://host{host}:20880/demo.Service{service}?application=stock&revision={start}&timestamp={start}"
            );
            registered.parse(&text).unwrap()
        };
        let urls = (0..5).map(provider).collect();
        let none = || Category::Known { urls: Arc::from([]), total: 0 };
        ServiceView {
            providers: Category::Known { urls, total: 5 },
            configurators: none(),
            routers: none(),
            ..ServiceView::default()
        }
    };
    let mut references = Vec::new();
    for service in 0..REFERENCES {
        let board = Board::new(view(service, 0));
        let consumer =
            Url::parse(&format!("consumer://192.0.2.9/demo.Service{service}?side=consumer")).unwrap();
        let mut protocols: Extensions<dyn Protocol> = Extensions::new("protocol");
        let wire = Arc::clone(&wire);
        protocols.register("dubbo", move || wire.clone()).unwrap();
        let directory = RegistryDirectory::subscribe(RegistryDirectoryParts {
            registry: Arc::clone(&board) as Arc<dyn Registry>,
            consumer: consumer.clone(),
            subscribe: consumer,
            register: None,
            protocols: Arc::new(protocols),
            filters: Vec::new(),
            chain: Gate::new(),
        });
        references.push((board, directory.await.unwrap()));
    }
    let baseline = (wire.live(), wire.opened(), registered.interned().param_sets);
    assert_eq!(baseline.0, REFERENCES * 5);
    for start in 1..=50 {
        for (service, (board, _)) in references.iter().enumerate() {
            board.show(view(service, start));
        }
        for (_, directory) in &references {
            let generation = start as u64 + 1;
            crate::doubles::until(&**directory, |status| status.generation >= generation).await;
        }
    }
    assert_eq!((wire.live(), wire.opened(), registered.interned().param_sets), baseline);
    for (_, directory) in &references {
        directory.close().await;
    }
    drop(references);
    assert_eq!((wire.live(), wire.closed.load(Ordering::SeqCst)), (0, 5));
    assert_eq!(registered.interned().param_sets, 0);
}
