//! How one provider is picked: empty lists, availability, sticky choice, retries among many, balancers by name.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::doubles::{Fleet, Log, Pointer, Provider, call, called, is_same, join, shared};
use dubhe_cluster::selection::{RESELECT_COUNT, Selection};
use dubhe_cluster::{Failfast, Failover, builtin};
use dubhe_core::BoxFuture;
use dubhe_core::cluster::Cluster;
use dubhe_core::directory::Directory;
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::extension::Extensions;
use dubhe_core::invocation::Invocation;
use dubhe_core::invoker::{Invoker, SharedInvoker};
use dubhe_core::load_balance::LoadBalance;
use dubhe_core::response::{Payload, Response};
use tokio::sync::Barrier;

fn selection(fleet: &Arc<Fleet>, pointer: &Arc<Pointer>) -> Selection {
    let mut balancers: Extensions<dyn LoadBalance> = Extensions::new("loadbalance");
    let pointer = Arc::clone(pointer);
    balancers.register("random", move || pointer.clone()).unwrap();
    Selection::new(Arc::clone(fleet) as Arc<dyn Directory>, Arc::new(balancers))
}

#[tokio::test]
async fn every_cluster_answers_an_empty_list_with_an_error_that_says_what_to_do() {
    // C60
    let mut clusters: Extensions<dyn Cluster> = Extensions::new("cluster");
    builtin(&mut clusters).unwrap();
    assert_eq!(clusters.names().collect::<Vec<_>>(), ["failfast", "failover", "zone-aware"]);
    for (name, cluster) in clusters.activated() {
        assert_eq!(cluster.name(), name);
        let fleet = Fleet::new("group=blue&version=1.0.0", vec![]);
        let failed = join(&*cluster, &fleet, &Pointer::at([])).invoke(call()).await.unwrap_err();
        assert_eq!(failed.code(), ErrorCode::NoInvokerAvailableAfterFilter, "{name}");
        for part in [
            "Failed to invoke the method hello in the service demo.Greeter",
            "No provider available for the service blue/demo.Greeter:1.0.0 from registry zk1.example:2181",
            "on the consumer 192.0.2.9",
            "Please check if the providers have been started and registered",
        ] {
            assert!(failed.message().contains(part), "{part}: {failed}");
        }
    }
}

#[tokio::test]
async fn an_error_of_the_directory_comes_back_as_it_is() {
    let clusters: [&dyn Cluster; 2] = [&Failover, &Failfast];
    for cluster in clusters {
        let fleet = Fleet::new("", vec![]);
        fleet.then(Err(RpcError::new(ErrorCode::Forbidden, "nobody there")));
        let failed = join(cluster, &fleet, &Pointer::at([])).invoke(call()).await.unwrap_err();
        assert_eq!((failed.code(), failed.message()), (ErrorCode::Forbidden, "nobody there"));
    }
}

#[tokio::test]
async fn a_picked_provider_that_is_unavailable_is_reported_and_another_one_called() {
    let log = Log::default();
    let a = Provider::new("a", "", &log).down();
    let b = Provider::new("b", "", &log);
    let fleet = Fleet::new("", shared(&[a, b]));
    assert!(join(&Failover, &fleet, &Pointer::at([])).invoke(call()).await.is_ok());
    assert_eq!(called(&log), ["b"]);
    assert!(fleet.invalidated.lock().unwrap().contains(&"a".to_owned()));
}

#[tokio::test]
async fn the_only_provider_is_called_even_when_it_is_unavailable() {
    let log = Log::default();
    let fleet = Fleet::new("", shared(&[Provider::new("a", "", &log).down()]));
    let pointer = Pointer::at([]);
    assert!(join(&Failover, &fleet, &pointer).invoke(call()).await.is_ok());
    assert_eq!(*fleet.invalidated.lock().unwrap(), ["a"]);
    assert_eq!(pointer.picks.load(Ordering::Relaxed), 0, "there is nothing to balance");
}

#[tokio::test]
async fn when_all_are_unavailable_the_one_behind_the_picked_one_is_called() {
    let log = Log::default();
    let all = ["a", "b", "c"].map(|name| Provider::new(name, "", &log).down());
    let fleet = Fleet::new("", shared(&all));
    assert!(join(&Failover, &fleet, &Pointer::at([2])).invoke(call()).await.is_ok());
    assert_eq!(called(&log), ["a"]);
}

#[tokio::test]
async fn availability_is_not_asked_when_the_consumer_says_so_even_for_one_method() {
    for (consumer, expected) in [
        ("cluster.availablecheck=false", "a"),
        ("hello.cluster.availablecheck=false", "a"),
        ("other.cluster.availablecheck=false", "b"),
    ] {
        let log = Log::default();
        let a = Provider::new("a", "", &log).down();
        let b = Provider::new("b", "", &log);
        let fleet = Fleet::new(consumer, shared(&[a, b]));
        assert!(join(&Failover, &fleet, &Pointer::at([])).invoke(call()).await.is_ok());
        assert_eq!(called(&log), [expected], "{consumer}");
    }
}

#[tokio::test]
async fn a_sticky_method_stays_with_its_provider_and_others_do_not() {
    let log = Log::default();
    let all = ["a", "b"].map(|name| Provider::new(name, "hello.sticky=true", &log));
    let fleet = Fleet::new("", shared(&all));
    let cluster = join(&Failover, &fleet, &Pointer::at([1, 0, 0, 1]));
    for _ in 0..3 {
        cluster.invoke(call()).await.unwrap();
    }
    for _ in 0..3 {
        cluster.invoke(Invocation::dynamic("other", "", vec![])).await.unwrap();
    }
    assert_eq!(called(&log), ["b", "b", "b", "a", "a", "b"]);
}

#[tokio::test]
async fn a_sticky_provider_that_left_failed_or_went_down_is_replaced() {
    let log = Log::default();
    let [a, b, c] = ["a", "b", "c"].map(|name| Provider::new(name, "sticky=true", &log));
    let fleet = Fleet::new("", shared(&[a.clone(), b.clone()]));
    let cluster = join(&Failover, &fleet, &Pointer::at([]));
    cluster.invoke(call()).await.unwrap();
    assert_eq!(called(&log), ["a"]);

    // Left.
    fleet.set(shared(&[b.clone(), c.clone()]));
    cluster.invoke(call()).await.unwrap();
    assert_eq!(called(&log), ["b"]);

    // Failed: the retry goes to another one, which is the sticky one then.
    let b = b.fails_with(RpcError::new(ErrorCode::Network, "lost"));
    cluster.invoke(call()).await.unwrap();
    cluster.invoke(call()).await.unwrap();
    assert_eq!(called(&log), ["b", "c", "c"]);

    // Down.
    let _c = c.down();
    cluster.invoke(call()).await.unwrap();
    cluster.invoke(call()).await.unwrap();
    assert_eq!(called(&log), ["b", "b"]);
    drop(b);
}

#[tokio::test]
async fn a_sticky_provider_is_kept_unchecked_when_availability_is_not_asked() {
    let log = Log::default();
    let all = ["a", "b"].map(|name| Provider::new(name, "sticky=true", &log));
    let fleet = Fleet::new("cluster.availablecheck=false", shared(&all));
    let cluster = join(&Failover, &fleet, &Pointer::at([1]));
    cluster.invoke(call()).await.unwrap();
    all[1].available.store(false, Ordering::Relaxed);
    cluster.invoke(call()).await.unwrap();
    assert_eq!(called(&log), ["b", "b"]);
}

#[tokio::test]
async fn a_sticky_choice_does_not_keep_a_provider_alive_that_its_directory_let_go() {
    let log = Log::default();
    let a = Provider::new("a", "sticky=true", &log);
    let gone = Arc::downgrade(&a);
    let fleet = Fleet::new("", shared(&[a]));
    let cluster = join(&Failover, &fleet, &Pointer::at([]));
    cluster.invoke(call()).await.unwrap();
    fleet.set(vec![]);
    assert!(gone.upgrade().is_none());
}

#[test]
fn a_retry_among_more_than_ten_never_goes_to_one_that_was_tried() {
    let log = Log::default();
    for len in [RESELECT_COUNT + 1, 25, 200] {
        let all: Vec<_> = (0..len).map(|at| Provider::new(&format!("p{at}"), "", &log)).collect();
        let fleet = Fleet::new("", shared(&all));
        let selection = selection(&fleet, &Pointer::at([]));
        let candidates = selection.candidates(&call()).unwrap();
        let mut tried: Vec<SharedInvoker> = Vec::new();
        let mut names = HashSet::new();
        for _ in 0..len {
            let picked = selection.select(&candidates, &call(), &tried).unwrap();
            assert!(names.insert(picked.url().host().to_owned()), "{} of {len} again", picked.url());
            tried.push(picked);
        }
    }
}

#[test]
fn a_retry_finds_the_only_available_one_among_many() {
    let log = Log::default();
    let all: Vec<_> = (0..300).map(|at| Provider::new(&format!("p{at}"), "", &log).down()).collect();
    all[217].available.store(true, Ordering::Relaxed);
    let fleet = Fleet::new("", shared(&all));
    let selection = selection(&fleet, &Pointer::at([]));
    let candidates = selection.candidates(&call()).unwrap();
    for _ in 0..20 {
        let picked = selection.select(&candidates, &call(), &[]).unwrap();
        assert!(is_same(&picked, &all[217]));
    }
}

#[tokio::test]
async fn the_balancer_is_the_one_that_the_candidates_name_for_the_method() {
    let log = Log::default();
    let all = ["a", "b"].map(|name| Provider::new(name, "hello.loadbalance=roundrobin", &log));
    let fleet = Fleet::new("", shared(&all));
    let random = Pointer::at([1, 1, 1]);
    let cluster = join(&Failover, &fleet, &random);
    cluster.invoke(call()).await.unwrap();
    cluster.invoke(Invocation::dynamic("other", "", vec![])).await.unwrap();
    assert_eq!(called(&log), ["a", "b"]);
}

#[tokio::test]
async fn an_unknown_balancer_is_an_error_that_lists_the_known_ones() {
    let log = Log::default();
    let all = ["a", "b"].map(|name| Provider::new(name, "loadbalance=lucky", &log));
    let fleet = Fleet::new("", shared(&all));
    let failed = join(&Failover, &fleet, &Pointer::at([])).invoke(call()).await.unwrap_err();
    assert!(
        failed.message().contains("unknown loadbalance `lucky`: known are random, roundrobin"),
        "{failed}"
    );
    assert!(failed.message().contains("demo.Greeter"), "{failed}");
    assert!(called(&log).is_empty());
}

/// A provider that answers when all calls of the test are there.
#[derive(Debug)]
struct Meeting {
    inner: Arc<Provider>,
    all_there: Barrier,
}

impl Invoker for Meeting {
    fn url(&self) -> &dubhe_common::Url {
        self.inner.url()
    }

    fn is_available(&self) -> bool {
        true
    }

    fn invoke(&self, _call: Invocation) -> BoxFuture<'_, Result<Response, RpcError>> {
        Box::pin(async {
            self.all_there.wait().await;
            Ok(Response::of(Payload::null()))
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_first_calls_at_once_do_not_block_two_workers() {
    // C107
    let log = Log::default();
    let inner = Provider::new("a", "sticky=true&hello.sticky=true", &log);
    let meeting: SharedInvoker = Arc::new(Meeting { inner, all_there: Barrier::new(1_000) });
    let fleet = Fleet::new("", vec![meeting]);
    let cluster = join(&Failover, &fleet, &Pointer::at([]));
    let calls: Vec<_> = (0..1_000)
        .map(|_| {
            let cluster = Arc::clone(&cluster);
            tokio::spawn(async move { cluster.invoke(call()).await.is_ok() })
        })
        .collect();
    for call in calls {
        assert!(call.await.unwrap());
    }
}
