//! Failures that users met, and what must hold instead.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dubhe_common::{Url, encode};
use dubhe_core::registry::{Category, Registry, RegistryError, ServiceView};
use dubhe_core::tree::{SessionState, Tree, TreeError};
use dubhe_registry::{MemoryStore, MemoryTree, TreeRegistry};
use futures::future::join_all;
use proptest::prelude::*;
use support::{DistantTree, ScriptedTree, consumer, hosts, provider, until, url};
use tokio::time::Instant;

fn registry(store: &MemoryStore, params: &str) -> (TreeRegistry, MemoryTree) {
    let tree = store.session("test");
    (TreeRegistry::new(&url(&format!("memory://test?{params}")), Arc::new(tree.clone())), tree)
}

// C02
#[tokio::test(start_paused = true)]
async fn reconnects_that_fail_do_not_keep_a_new_session_from_restoring_every_subscription() {
    let store = MemoryStore::new();
    let (consuming, tree) = registry(&store, "");
    let (providing, _) = registry(&store, "");
    providing.register(&provider(1)).await.unwrap();
    let all = consumer("category=providers,configurators,routers");
    let mut subscription = consuming.subscribe(&all).await.unwrap();
    for _ in 0..3 {
        tree.suspend();
        tree.resume();
        tree.suspend();
    }
    tree.expire();
    tree.resume();
    until(&mut subscription, |view| hosts(view) == ["10.0.0.1"] && view.trouble.is_none()).await;
    providing.unregister(&provider(1)).await.unwrap();
    providing.register(&provider(2)).await.unwrap();
    until(&mut subscription, |view| hosts(view) == ["10.0.0.2"]).await;
    assert_eq!(tree.watches(), 3);
}

// C05
#[tokio::test(start_paused = true)]
async fn an_older_list_never_replaces_a_newer_one() {
    let tree = ScriptedTree::new(SessionState::Connected { epoch: 1 });
    let registry = TreeRegistry::new(&url("memory://test"), Arc::clone(&tree) as _);
    let [a, b] = [1, 2].map(|number| Arc::from(provider(number).encoded()));
    tree.show("providers", &[Arc::clone(&a), b], 5);
    let mut subscription = registry.subscribe(&consumer("")).await.unwrap();
    until(&mut subscription, |view| hosts(view).len() == 2).await;
    tree.show("providers", &[], 4);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(hosts(&subscription.view()).len(), 2);
    tree.show("providers", &[a], 6);
    until(&mut subscription, |view| hosts(view).len() == 1).await;
}

// C06
#[tokio::test(start_paused = true)]
async fn whenever_the_first_provider_comes_during_the_first_subscription_it_is_seen() {
    for (before, between) in (0..12).flat_map(|before| (0..12).map(move |between| (before, between))) {
        let tree = ScriptedTree::new(SessionState::Connected { epoch: 1 });
        let registry = Arc::new(TreeRegistry::new(&url("memory://test"), Arc::clone(&tree) as _));
        let subscribing = tokio::spawn({
            let registry = Arc::clone(&registry);
            async move { registry.subscribe(&consumer("")).await.unwrap() }
        });
        for _ in 0..before {
            tokio::task::yield_now().await;
        }
        tree.show("providers", &[], 1);
        for _ in 0..between {
            tokio::task::yield_now().await;
        }
        tree.show("providers", &[Arc::from(provider(1).encoded())], 2);
        let mut subscription = subscribing.await.unwrap();
        until(&mut subscription, |view| hosts(view) == ["10.0.0.1"]).await;
    }
}

// C20
#[tokio::test(start_paused = true)]
async fn ten_minutes_without_the_registry_keep_the_providers_and_then_the_list_is_exact() {
    let store = MemoryStore::new();
    let (consuming, tree) = registry(&store, "");
    let (providing, _) = registry(&store, "");
    for number in [1, 2] {
        providing.register(&provider(number)).await.unwrap();
    }
    let mut subscription = consuming.subscribe(&consumer("")).await.unwrap();
    until(&mut subscription, |view| hosts(view).len() == 2).await;
    tree.suspend();
    providing.unregister(&provider(2)).await.unwrap();
    providing.register(&provider(3)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    let view = subscription.view();
    assert_eq!((hosts(&view).join(" "), view.trouble.is_some()), ("10.0.0.1 10.0.0.2".to_owned(), true));
    tree.expire();
    tree.resume();
    until(&mut subscription, |view| hosts(view) == ["10.0.0.1", "10.0.0.3"]).await;
}

// C25
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn unregistering_while_the_session_comes_back_never_leaves_the_node() {
    let store = MemoryStore::new();
    for round in 0..200 {
        let (registry, tree) = registry(&store, "check=false");
        registry.register(&provider(1)).await.unwrap();
        tree.suspend();
        if round % 2 == 0 {
            tree.expire();
        }
        let resuming = tokio::spawn({
            let tree = tree.clone();
            async move { tree.resume() }
        });
        registry.unregister(&provider(1)).await.unwrap();
        resuming.await.unwrap();
        tree.settled("/dubbo", Duration::from_secs(10)).await.unwrap();
        assert!(registry.lookup(&consumer("")).await.unwrap().is_empty(), "round {round}");
        assert_eq!(tree.intents(), (0, 0));
    }
}

// C35
#[tokio::test(start_paused = true)]
async fn a_failed_read_is_not_an_empty_list_and_neither_is_a_list_without_a_match() {
    let store = MemoryStore::new();
    let (registry, tree) = registry(&store, "");
    registry.register(&provider(1)).await.unwrap();
    tree.suspend();
    assert!(matches!(registry.lookup(&consumer("")).await, Err(RegistryError::Failed { .. })));
    tree.resume();
    let view = registry.subscribe(&consumer("version=9")).await.unwrap().view();
    assert!(matches!(&view.providers, Category::Known { urls, total: 1 } if urls.is_empty()));
}

// C43, C45
#[tokio::test(start_paused = true)]
async fn a_subscriber_of_every_interface_writes_nothing() {
    let store = MemoryStore::new();
    let tree = store.connect();
    let providing = TreeRegistry::new(&url("memory://test"), store.connect());
    for interface in ["demo.Foo", "demo.Impl.method()", "demo.50%25", "a b+c", "\u{4e2d}.Foo"] {
        let provider =
            Url::builder("dubbo", "192.0.2.1", 20880).path("p").param("interface", interface).build();
        providing.register(&provider).await.unwrap();
    }
    tree.create("/dubbo/config/dubbo", "".into()).await.unwrap();
    let before = store.paths();
    let admin = TreeRegistry::new(&url("memory://test"), store.connect());
    let everything = url("admin://192.0.2.9/*?interface=*&category=*");
    let mut subscription = admin.subscribe(&everything).await.unwrap();
    until(&mut subscription, |view| hosts(view).len() == 5).await;
    assert_eq!(store.paths(), before);
    assert_eq!(admin.lookup(&everything).await.unwrap().len(), 5);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    // C45. A raw `&` or `;` in a value separates parameters: no Dubbo can write it.
    #[test]
    fn what_is_read_is_written_back_under_the_same_name(interface in "[^\\pC&;]{1,20}", value in "\\PC{0,20}") {
        let provider = Url::builder("dubbo", "192.0.2.1", 20880)
            .path("p")
            .param("interface", interface.trim())
            .param("note", encode(&value))
            .build();
        prop_assume!(!provider.service_interface().is_empty() && provider.service_interface() != "*");
        prop_assume!(!matches!(provider.service_interface(), "." | ".."));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (first, second) = runtime.block_on(async {
            let (here, there) = (MemoryStore::new(), MemoryStore::new());
            let (registry_here, _) = registry(&here, "");
            let (registry_there, _) = registry(&there, "");
            registry_here.register(&provider).await.unwrap();
            let wanted = provider.with_protocol("consumer");
            for found in registry_here.lookup(&wanted).await.unwrap() {
                registry_there.register(&found).await.unwrap();
            }
            (here.paths(), there.paths())
        });
        prop_assert_eq!(first.len(), 4);
        prop_assert_eq!(first, second);
    }
}

// C94
#[tokio::test(start_paused = true)]
async fn fifty_restarts_of_all_providers_leave_as_many_urls_as_before() {
    const SERVICES: usize = 300;
    let store = MemoryStore::new();
    let (consuming, tree) = registry(&store, "");
    let name = |service: usize| format!("demo.S{service}");
    let mut subscriptions = Vec::new();
    for service in 0..SERVICES {
        let url =
            url(&format!("consumer://192.0.2.9/{}?category=providers,configurators,routers", name(service)));
        subscriptions.push(consuming.subscribe(&url).await.unwrap());
    }
    let mut baseline = None;
    for restart in 0..50 {
        let (providing, _) = registry(&store, "");
        for (service, instance) in
            (0..SERVICES).flat_map(|service| (0..5).map(move |instance| (service, instance)))
        {
            let url = url(&format!(
                "dubbo://192.0.2.{instance}:20880/{}?application=p&pid={restart}{instance}&timestamp={restart}",
                name(service)
            ));
            providing.register(&url).await.unwrap();
        }
        for subscription in &mut subscriptions {
            until(subscription, |view| hosts(view).len() == 5).await;
        }
        let counts =
            (consuming.url_factory().interned(), store.nodes(), tree.watches(), consuming.subscriptions());
        assert_eq!(*baseline.get_or_insert(counts), counts, "restart {restart}");
        providing.close().await;
        for subscription in &mut subscriptions {
            until(subscription, |view| hosts(view).is_empty()).await;
        }
    }
    drop(subscriptions);
    settle().await;
    assert_eq!(
        (consuming.subscriptions(), tree.watches(), consuming.url_factory().interned().strings),
        (0, 0, 0)
    );
}

// C95
#[tokio::test(start_paused = true)]
async fn nothing_is_left_of_a_thousand_changes() {
    let store = MemoryStore::new();
    let (registry, tree) = registry(&store, "");
    let mut kept = registry.subscribe(&consumer("")).await.unwrap();
    registry.register(&provider(1)).await.unwrap();
    until(&mut kept, |view| hosts(view).len() == 1).await;
    let counts = |registry: &TreeRegistry, tree: &MemoryTree| {
        let interned = registry.url_factory().interned();
        (
            registry.registrations(),
            registry.subscriptions(),
            tree.watches(),
            tree.intents(),
            store.nodes(),
            interned,
        )
    };
    let before = counts(&registry, &tree);
    for change in 2..1_002 {
        let url = provider(change).with_param("revision", change);
        registry.register(&url).await.unwrap();
        let mut passing = registry.subscribe(&consumer("version=*&group=*")).await.unwrap();
        until(&mut passing, |view| hosts(view).len() == 2).await;
        registry.unregister(&url).await.unwrap();
    }
    until(&mut kept, |view| hosts(view).len() == 1).await;
    settle().await;
    assert_eq!(counts(&registry, &tree), before);
}

// C95
#[tokio::test(start_paused = true)]
async fn addresses_that_differ_in_host_share_their_parameters_and_a_second_look_makes_none_anew() {
    let store = MemoryStore::new();
    let (registry, tree) = registry(&store, "");
    for number in 0..1_000 {
        registry
            .register(&provider(number).with_params([("pid", number), ("timestamp", number)]))
            .await
            .unwrap();
    }
    let mut subscription = registry.subscribe(&consumer("")).await.unwrap();
    let before = subscription.view();
    assert_eq!(hosts(&before).len(), 1_000);
    assert_eq!(registry.url_factory().interned().param_sets, 1);
    tree.suspend();
    tree.resume();
    tree.expire();
    until(&mut subscription, |view| view.trouble.is_none() && hosts(view).len() == 1_000).await;
    settle().await;
    let after = subscription.view();
    for url in before.providers.urls().unwrap().iter() {
        assert!(after.providers.urls().unwrap().iter().any(|now| now.ptr_eq(url)));
    }
}

// C97
#[tokio::test(start_paused = true)]
async fn a_thousand_changes_in_a_second_make_few_views_and_the_last_one_comes_soon() {
    let store = MemoryStore::new();
    let (consuming, _) = registry(&store, "");
    let (providing, _) = registry(&store, "");
    let mut subscription = consuming.subscribe(&consumer("")).await.unwrap();
    subscription.view();
    let started = Instant::now();
    let changing = tokio::spawn(async move {
        for number in 1..=1_000 {
            providing.register(&provider(number)).await.unwrap();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        providing
    });
    let mut views = 0;
    while hosts(&subscription.view()).len() < 1_000 {
        assert!(subscription.changed().await);
        views += 1;
    }
    assert!((10..=14).contains(&views), "{views} views");
    assert!(started.elapsed() <= Duration::from_millis(1_600), "{:?}", started.elapsed());
    changing.await.unwrap();
}

// C97
#[tokio::test(start_paused = true)]
async fn a_rare_change_is_passed_on_at_once() {
    let store = MemoryStore::new();
    let (registry, _) = registry(&store, "");
    let mut subscription = registry.subscribe(&consumer("")).await.unwrap();
    for number in 1..=20 {
        let changed_at = Instant::now();
        registry.register(&provider(number)).await.unwrap();
        until(&mut subscription, |view| hosts(view).len() == number).await;
        assert_eq!(changed_at.elapsed(), Duration::ZERO);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

// C98
#[tokio::test(start_paused = true)]
async fn a_thousand_services_and_references_start_in_a_few_round_trips() {
    let store = MemoryStore::new();
    let requests = Arc::new(AtomicUsize::new(0));
    let round_trip = Duration::from_millis(5);
    let tree = DistantTree { inner: store.session("far"), round_trip, requests: Arc::clone(&requests) };
    let registry = TreeRegistry::new(&url("memory://far"), Arc::new(tree));
    let started = Instant::now();
    let services: Vec<Url> =
        (0..1_000).map(|service| url(&format!("dubbo://192.0.2.1:20880/demo.S{service}"))).collect();
    let registered = join_all(services.iter().map(|url| registry.register(url))).await;
    assert!(registered.iter().all(Result::is_ok));
    assert_eq!(requests.swap(0, Ordering::Relaxed), 1_000, "one request per registration");
    assert!(started.elapsed() <= round_trip * 2, "{:?}", started.elapsed());

    let consumers: Vec<Url> = services
        .iter()
        .map(|url| url.with_protocol("consumer").with_param("category", "providers,configurators,routers"))
        .collect();
    let started = Instant::now();
    let subscribed = join_all(consumers.iter().map(|url| registry.subscribe(url))).await;
    for subscription in subscribed {
        assert_eq!(hosts(&subscription.unwrap().view()), ["192.0.2.1"]);
    }
    assert_eq!(requests.load(Ordering::Relaxed), 3_000, "one request per category");
    assert!(started.elapsed() <= round_trip * 4, "{:?}", started.elapsed());
}

// C103
#[tokio::test(start_paused = true)]
async fn a_consumer_is_an_ephemeral_node_with_its_host_and_no_port() {
    let store = MemoryStore::new();
    let (registry, _) = registry(&store, "");
    registry.register(&consumer("category=consumers&check=false")).await.unwrap();
    let nodes: Vec<_> = store.paths().into_iter().filter(|(_, ephemeral)| *ephemeral).collect();
    let expected = "/dubbo/demo.Foo/consumers/consumer%3A%2F%2F192.0.2.99%2Fdemo.Foo%3Fcategory%3Dconsumers%26check%3Dfalse";
    assert_eq!(nodes, [(Arc::from(expected), true)]);
}

#[tokio::test(start_paused = true)]
async fn malformed_children_cost_one_warning_and_nothing_else() {
    let tree = ScriptedTree::new(SessionState::Connected { epoch: 1 });
    let registry = TreeRegistry::new(&url("memory://test"), Arc::clone(&tree) as _);
    let warnings = support_warnings::Counter::default();
    let _guard = tracing::subscriber::set_default(warnings.clone());
    let mut names: Vec<Arc<str>> = vec![
        Arc::from(provider(1).encoded()),
        Arc::from("dubbo%3A%2F%2F192.0.2.1%3Aport%2Fdemo.Foo"),
        Arc::from("%"),
    ];
    tree.show("providers", &names, 1);
    let mut subscription = registry.subscribe(&consumer("")).await.unwrap();
    assert_eq!(hosts(&subscription.view()), ["10.0.0.1"]);
    for number in 2..5 {
        names.push(Arc::from(provider(number).encoded()));
        tree.show("providers", &names, number as i64);
        until(&mut subscription, |view| hosts(view).len() == number).await;
    }
    assert_eq!(warnings.count(), 1, "for both, and not again with each change");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_reported_long_before_the_time_is_over() {
    let tree = ScriptedTree::new(SessionState::Connected { epoch: 1 });
    let denied = TreeError::Denied { address: "a".into(), path: "/p".into(), reason: "no auth".into() };
    *tree.answer.lock() = Err(denied);
    let registry = TreeRegistry::new(&url("memory://test"), Arc::clone(&tree) as _);
    let started = Instant::now();
    let refused = registry.subscribe(&consumer("")).await;
    assert!(
        matches!(refused, Err(RegistryError::Failed { cause: TreeError::Denied { .. }, .. })),
        "{refused:?}"
    );
    assert!(started.elapsed() <= Duration::from_secs(1));
    let refused = registry.register(&provider(1)).await;
    assert!(
        matches!(refused, Err(RegistryError::Failed { cause: TreeError::Denied { .. }, .. })),
        "{refused:?}"
    );
    assert!(tree.wanted.lock().is_empty(), "nothing is left behind");
    registry.register(&provider(1).with_param("check", "false")).await.unwrap();
    assert_eq!(tree.wanted.lock().len(), 1, "it is tried again");
    let mut subscription = registry.subscribe(&consumer("check=false")).await.unwrap();
    assert!(subscription.view().trouble.as_ref().unwrap().contains("no auth"));
}

#[tokio::test(start_paused = true)]
async fn a_registry_out_of_reach_fails_after_its_timeout_with_check_and_after_the_grace_time_without() {
    let tree = ScriptedTree::new(SessionState::Connecting);
    let gone = TreeError::Unreachable { address: "a".into(), reason: "no route".into() };
    *tree.answer.lock() = Err(gone);
    let registry = TreeRegistry::new(&url("memory://test?timeout=10000"), Arc::clone(&tree) as _);
    let timed = async |url: &Url| {
        let started = Instant::now();
        let ok = registry.subscribe(url).await.is_ok();
        (ok, started.elapsed().as_secs())
    };
    assert_eq!(timed(&consumer("check=false")).await, (true, 3), "grace counts from the opening");
    assert_eq!(timed(&consumer("check=false")).await, (true, 0));
    assert_eq!(timed(&consumer("")).await, (false, 10));
    let started = Instant::now();
    registry.register(&provider(1).with_param("check", "false")).await.unwrap();
    registry.register(&consumer("category=consumers")).await.unwrap();
    assert_eq!(started.elapsed(), Duration::ZERO);
    assert!(registry.register(&provider(2)).await.is_err());
    assert_eq!(started.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_protocol_that_is_not_accepted_is_not_registered() {
    let store = MemoryStore::new();
    for (accepts, dubbo, tri) in
        [("dubbo", true, false), ("-dubbo", false, true), ("tri,dubbo,-tri", true, true)]
    {
        let (registry, _) = registry(&store, &format!("accepts={accepts}&group={}", accepts.len()));
        registry.register(&provider(1)).await.unwrap();
        registry.register(&provider(1).with_protocol("tri")).await.unwrap();
        let found = registry.lookup(&consumer("")).await.unwrap();
        let has = |protocol: &str| found.iter().any(|url| url.protocol() == protocol);
        assert_eq!((has("dubbo"), has("tri")), (dubbo, tri), "{accepts}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_group_of_the_registry_is_the_root_of_its_tree() {
    for (group, root) in [("", "/dubbo"), ("group=shop", "/shop"), ("group=/a/b", "/a/b"), ("group=/", "")] {
        let store = MemoryStore::new();
        let (registry, _) = registry(&store, group);
        registry.register(&provider(1)).await.unwrap();
        let last = store.paths().pop().unwrap().0;
        assert!(last.starts_with(&format!("{root}/demo.Foo/providers/dubbo")), "{last}");
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_a_subscription_ends_its_watches() {
    let store = MemoryStore::new();
    let (registry, tree) = registry(&store, "");
    let all = consumer("category=providers,configurators,routers");
    let one = registry.subscribe(&all).await.unwrap();
    let two = registry.subscribe(&all).await.unwrap();
    assert_eq!((registry.subscriptions(), tree.watches()), (2, 3));
    drop(one);
    settle().await;
    assert_eq!((registry.subscriptions(), tree.watches()), (1, 3));
    drop(two);
    settle().await;
    assert_eq!((registry.subscriptions(), tree.watches()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn categories_that_come_back_apart_are_one_first_view() {
    let tree = ScriptedTree::new(SessionState::Connected { epoch: 1 });
    let registry = Arc::new(TreeRegistry::new(&url("memory://test"), Arc::clone(&tree) as _));
    let subscribing = tokio::spawn(async move {
        let mut subscription =
            registry.subscribe(&consumer("category=providers,configurators,routers")).await.unwrap();
        subscription.view()
    });
    for (category, sequence) in [("providers", 1), ("configurators", 2), ("routers", 3)] {
        tokio::time::sleep(Duration::from_millis(100)).await;
        tree.show(category, &[Arc::from(provider(1).with_param("category", category).encoded())], sequence);
    }
    let view = subscribing.await.unwrap();
    let count = |category: &Category| category.urls().map(|urls| urls.len());
    let ServiceView { configurators, routers, providers, .. } = &*view;
    assert_eq!([configurators, routers, providers].map(count), [Some(1); 3]);
}

// C09, C35: whatever happens in between, the last view is what the registry holds.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn under_concurrent_changes_and_faults_every_subscription_ends_exact() {
    let store = MemoryStore::new();
    let (consuming, tree) = registry(&store, "delay-notification=10");
    let mut subscriptions = Vec::new();
    for _ in 0..4 {
        subscriptions.push(consuming.subscribe(&consumer("category=providers,routers")).await.unwrap());
    }
    let changing: Vec<_> = (0..4)
        .map(|writer| {
            let (providing, own) = registry(&store, "check=false");
            tokio::spawn(async move {
                for round in 0..100 {
                    let url = provider(writer * 1_000 + round % 10);
                    if fastrand::bool() {
                        providing.register(&url).await.unwrap();
                    } else {
                        providing.unregister(&url).await.unwrap();
                    }
                    match fastrand::u8(0..20) {
                        0 => own.suspend(),
                        1 => own.expire(),
                        2 => own.resume(),
                        _ => tokio::task::yield_now().await,
                    }
                }
                own.resume();
                providing
            })
        })
        .collect();
    let disturbing = tokio::spawn(async move {
        for round in 0..100 {
            tree.suspend();
            tokio::task::yield_now().await;
            if round % 3 == 0 {
                tree.expire();
            }
            tree.resume();
            tokio::task::yield_now().await;
        }
    });
    let mut providing = Vec::new();
    for task in changing {
        providing.push(task.await.unwrap());
    }
    disturbing.await.unwrap();
    let mut expected: Vec<String> =
        consuming.lookup(&consumer("")).await.unwrap().iter().map(|url| url.host().to_owned()).collect();
    expected.sort();
    assert_eq!(expected.len(), providing.iter().map(TreeRegistry::registrations).sum::<usize>());
    for subscription in &mut subscriptions {
        until(subscription, |view| {
            let mut seen = hosts(view);
            seen.sort();
            seen == expected && view.trouble.is_none()
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn closing_ends_a_subscription_that_is_still_being_made() {
    let tree = ScriptedTree::new(SessionState::Connected { epoch: 1 });
    let registry = Arc::new(TreeRegistry::new(&url("memory://test"), Arc::clone(&tree) as _));
    let subscribing = tokio::spawn({
        let registry = Arc::clone(&registry);
        async move { registry.subscribe(&consumer("")).await }
    });
    tokio::task::yield_now().await;
    let started = Instant::now();
    registry.close().await;
    assert!(matches!(subscribing.await.unwrap(), Err(RegistryError::Closed(_))));
    assert_eq!(started.elapsed(), Duration::ZERO);
}

/// Lets spawned tasks come to rest.
async fn settle() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}

mod support_warnings {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Level, Metadata, Subscriber};

    /// Counts warnings.
    #[derive(Clone, Default)]
    pub(crate) struct Counter(Arc<AtomicUsize>);

    impl Counter {
        pub(crate) fn count(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    impl Subscriber for Counter {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            *metadata.level() <= Level::WARN
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            if *event.metadata().level() == Level::WARN {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }
}
