use std::time::Duration;

use tokio::time::Instant;

use super::*;
use crate::doubles::{World, instance, service, until};

/// `number@revision` of the instances that offer `a.A`.
fn shown(offers: &Offers) -> Vec<String> {
    let has_it = offers.offers.iter().filter(|offer| !offer.catalog.services("a.A").is_empty());
    has_it.map(|offer| describe(&offer.instance)).collect()
}

fn describe(instance: &ServiceInstance) -> String {
    format!("{}@{}", instance.host.rsplit('.').next().unwrap(), instance.revision().unwrap_or("none"))
}

async fn sees(listener: &mut watch::Receiver<Arc<Offers>>, wanted: &[&str]) -> Arc<Offers> {
    until(listener, |offers| offers.is_settled() && shown(offers) == wanted).await
}

fn world(revisions: &[&str]) -> (World, watch::Receiver<Arc<Offers>>) {
    let world = World::new();
    for revision in revisions {
        world.answers.offers(revision, [service("a.A")]);
    }
    let listener = world.listeners.listen("demo");
    (world, listener)
}

#[tokio::test(start_paused = true)]
async fn the_metadata_of_a_revision_is_asked_for_once() {
    let (world, mut listener) = world(&["r1", "r2"]);
    assert!(!listener.borrow().is_read);
    world.discovery.set("demo", (1..=9).map(|number| instance(number, "r1")));
    until(&mut listener, |offers| shown(offers).len() == 9).await;
    world
        .discovery
        .set("demo", (1..=10).map(|number| instance(number, if number > 8 { "r2" } else { "r1" })));
    let offers = until(&mut listener, |offers| shown(offers).len() == 10 && offers.is_settled()).await;
    assert_eq!(world.answers.asked().len(), 2);
    assert!(Arc::ptr_eq(&offers.offers[0].catalog, &offers.offers[7].catalog));
    let same = |offer: &Offer| Arc::clone(&offer.catalog.services("a.A")[0]);
    assert!(Arc::ptr_eq(&same(&offers.offers[0]), &same(&offers.offers[9])), "shared over revisions");
}

// C03
#[tokio::test(start_paused = true)]
async fn metadata_that_failed_is_there_within_the_retry_delay_without_any_event() {
    let (world, mut listener) = world(&[]);
    world.answers.fails("r2");
    world.discovery.set("demo", [instance(1, "r2")]);
    let offers = until(&mut listener, |offers| offers.failure.is_some()).await;
    assert!(offers.failure.as_ref().unwrap().contains("connection refused"));
    assert_eq!(offers.unresolved, [Arc::from("r2")]);
    let failed = Instant::now();
    world.answers.offers("r2", [service("a.A")]);
    let offers = sees(&mut listener, &["1@r2"]).await;
    assert!(failed.elapsed() <= Duration::from_secs(10));
    assert_eq!(offers.failure, None);
}

// C03
#[tokio::test(start_paused = true)]
async fn metadata_is_asked_for_again_for_as_long_as_it_is_missing() {
    let (world, mut listener) = world(&["r1"]);
    world.answers.fails("r2");
    let both = [instance(1, "r1"), instance(2, "r2")];
    world.discovery.set("demo", both.clone());
    until(&mut listener, |offers| offers.failure.is_some()).await;
    // An event in between: the retry stays due.
    world.discovery.set("demo", both.into_iter().chain([instance(3, "r1")]));
    let offers = until(&mut listener, |offers| shown(offers) == ["1@r1", "3@r1"]).await;
    assert_eq!(offers.unresolved, [Arc::from("r2")]);
    tokio::time::sleep(Duration::from_secs(100)).await;
    let asked = world.answers.asked().iter().filter(|asked| *asked == "2@r2").count();
    assert!((24..=33).contains(&asked), "three times in twelve seconds, not {asked} in a hundred");
    world.answers.offers("r2", [service("a.A")]);
    sees(&mut listener, &["1@r1", "2@r2", "3@r1"]).await;
}

// C03
#[tokio::test(start_paused = true)]
async fn an_instance_whose_new_revision_fails_keeps_what_it_offered() {
    let (world, mut listener) = world(&["r1", "r3"]);
    world.discovery.set("demo", [instance(1, "r1"), instance(2, "r1")]);
    sees(&mut listener, &["1@r1", "2@r1"]).await;
    world.answers.fails("r2");
    world.discovery.set("demo", [instance(1, "r2"), instance(2, "r3")]);
    until(&mut listener, |offers| {
        assert_eq!(shown(offers).len(), 2, "never fewer");
        offers.failure.is_some() && shown(offers) == ["1@r1", "2@r3"]
    })
    .await;
    world.answers.offers("r2", [service("a.A")]);
    sees(&mut listener, &["1@r2", "2@r3"]).await;
}

#[tokio::test(start_paused = true)]
async fn another_instance_of_a_failed_revision_is_asked_at_once() {
    let (world, mut listener) = world(&[]);
    world.answers.fails("r1");
    world.discovery.set("demo", [instance(1, "r1")]);
    until(&mut listener, |offers| offers.failure.is_some()).await;
    world.answers.offers("r1", [service("a.A")]);
    let failed = Instant::now();
    world.discovery.set("demo", [instance(2, "r1")]);
    sees(&mut listener, &["2@r1"]).await;
    assert!(failed.elapsed() < Duration::from_secs(1));
}

// C08
#[tokio::test(start_paused = true)]
async fn a_revision_that_never_answers_holds_up_no_other() {
    let (world, mut listener) = world(&["r2"]);
    world.answers.never_comes("r1");
    world.discovery.set("demo", [instance(1, "r1")]);
    until(&mut listener, |offers| !offers.unresolved.is_empty()).await;
    let started = Instant::now();
    world.discovery.set("demo", [instance(1, "r1"), instance(2, "r2")]);
    until(&mut listener, |offers| shown(offers) == ["2@r2"]).await;
    let mut other = world.listeners.listen("other");
    world.discovery.set("other", [instance(3, "r2")]);
    sees(&mut other, &["3@r2"]).await;
    assert_eq!(started.elapsed(), Duration::ZERO);
    world.discovery.set("demo", [instance(2, "r2")]);
    sees(&mut listener, &["2@r2"]).await;
}

// C10
#[tokio::test(start_paused = true)]
async fn an_application_without_instances_is_known_to_offer_nothing() {
    let (world, mut listener) = world(&["r1"]);
    for _ in 0..2 {
        world.discovery.set("demo", [instance(1, "r1")]);
        sees(&mut listener, &["1@r1"]).await;
        world.discovery.set("demo", []);
        let offers = sees(&mut listener, &[]).await;
        assert_eq!((offers.listed, &offers.trouble), (0, &None));
    }
}

#[tokio::test(start_paused = true)]
async fn trouble_with_the_registry_changes_no_offer() {
    let (world, mut listener) = world(&["r1"]);
    world.discovery.set("demo", [instance(1, "r1")]);
    sees(&mut listener, &["1@r1"]).await;
    world.discovery.trouble("demo", Some("lost"));
    let offers = until(&mut listener, |offers| offers.trouble.is_some()).await;
    assert_eq!(shown(&offers), ["1@r1"]);
    world.discovery.trouble("demo", None);
    until(&mut listener, |offers| offers.trouble.is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn instances_without_services_offer_nothing_and_are_not_asked() {
    let (world, mut listener) = world(&["r1"]);
    let mut foreign = instance(3, "");
    foreign.metadata.clear();
    world.discovery.set("demo", [instance(1, "0"), instance(2, ""), foreign, instance(4, "r1")]);
    let offers = sees(&mut listener, &["4@r1"]).await;
    assert_eq!((offers.listed, offers.offers.len()), (4, 1));
    let plain: Vec<String> = offers.plain.iter().map(|one| describe(one)).collect();
    assert_eq!(plain, ["3@none"], "of an application that is not of Dubbo");
    assert_eq!(world.answers.asked(), ["4@r1"]);
}

// C111
#[tokio::test(start_paused = true)]
async fn an_instance_that_is_down_is_neither_offered_nor_asked() {
    let (world, mut listener) = world(&["r1"]);
    let down = |number, revision| ServiceInstance { enabled: false, ..instance(number, revision) };
    world.discovery.set("demo", [instance(1, "r1"), down(2, "r2")]);
    sees(&mut listener, &["1@r1"]).await;
    assert_eq!(world.answers.asked(), ["1@r1"]);
    world.discovery.set("demo", [down(1, "r1"), down(2, "r2")]);
    assert_eq!(sees(&mut listener, &[]).await.listed, 2);
    world.discovery.set("demo", [instance(1, "r1")]);
    sees(&mut listener, &["1@r1"]).await;
}

// C03
#[tokio::test(start_paused = true)]
async fn a_goodbye_counts_for_the_process_that_said_it() {
    let (world, mut listener) = world(&["r1", "r2"]);
    let started = |revision, registered_at| ServiceInstance { registered_at, ..instance(1, revision) };
    world.discovery.set("demo", [started("r1", 1), instance(2, "r1")]);
    sees(&mut listener, &["1@r1", "2@r1"]).await;
    let closing = ServiceInstance { application: Arc::from("demo"), ..started("r1", 1) };
    world.listeners.say_goodbye(&closing);
    sees(&mut listener, &["2@r1"]).await;
    let said = Instant::now();
    // The same revision: it stays away, until the goodbye is old.
    world.discovery.set("demo", [started("r1", 1), instance(2, "r2")]);
    sees(&mut listener, &["2@r2"]).await;
    sees(&mut listener, &["1@r1", "2@r2"]).await;
    assert_eq!(said.elapsed(), Duration::from_secs(30));
    for (revision, registered_at) in [("r2", 1), ("r2", 2)] {
        let shown = listener.borrow().offers[0].instance.clone();
        world.listeners.say_goodbye(&shown);
        sees(&mut listener, &["2@r2"]).await;
        let said = Instant::now();
        world.discovery.set("demo", [started(revision, registered_at), instance(2, "r2")]);
        sees(&mut listener, &["1@r2", "2@r2"]).await;
        assert_eq!(said.elapsed(), Duration::ZERO, "another process");
    }
}

#[tokio::test(start_paused = true)]
async fn a_listener_is_shared_ends_with_the_last_and_can_be_had_again() {
    let (world, mut listener) = world(&["r1"]);
    world.discovery.set("demo", [instance(1, "r1")]);
    for _ in 0..3 {
        let mut second = world.listeners.listen("demo");
        let (one, other) = (sees(&mut listener, &["1@r1"]).await, sees(&mut second, &["1@r1"]).await);
        assert!(Arc::ptr_eq(&one, &other));
        assert_eq!(world.listeners.listening(), 1);
        drop((listener, second));
        while world.listeners.listening() > 0 {
            tokio::task::yield_now().await;
        }
        listener = world.listeners.listen("demo");
    }
    // Asked for while the last one is just leaving: it is the same, or a new one, but never one that has ended.
    drop(listener);
    let mut again = world.listeners.listen("demo");
    tokio::task::yield_now().await;
    world.discovery.set("demo", [instance(2, "r1")]);
    sees(&mut again, &["2@r1"]).await;
}

// C08
#[tokio::test(start_paused = true)]
async fn a_revision_that_hangs_is_asked_for_again() {
    let (world, mut listener) = world(&[]);
    world.answers.never_comes("r1");
    world.discovery.set("demo", [instance(1, "r1")]);
    until(&mut listener, |offers| !offers.unresolved.is_empty()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.answers.offers("r1", [service("a.A")]);
    let started = Instant::now();
    sees(&mut listener, &["1@r1"]).await;
    assert!(started.elapsed() < Duration::from_secs(11));
}

// C03
#[tokio::test(start_paused = true)]
async fn a_provider_that_restarts_at_its_address_is_offered_with_what_it_offers_now() {
    let (world, mut listener) = world(&["r1"]);
    let started = |revision, registered_at| ServiceInstance { registered_at, ..instance(1, revision) };
    world.discovery.set("demo", [started("r1", 1)]);
    sees(&mut listener, &["1@r1"]).await;
    let closing = listener.borrow().offers[0].instance.clone();
    world.listeners.say_goodbye(&closing);
    sees(&mut listener, &[]).await;
    // Gone, and there again with metadata that cannot be had at first.
    world.answers.fails("r2");
    world.discovery.set("demo", []);
    world.discovery.set("demo", [started("r2", 2)]);
    until(&mut listener, |offers| offers.failure.is_some()).await;
    let failed = Instant::now();
    world.answers.offers("r2", [service("a.A")]);
    sees(&mut listener, &["1@r2"]).await;
    assert!(failed.elapsed() <= Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn a_revision_that_comes_back_while_it_is_asked_for_is_known_once_it_is_answered() {
    let (world, mut listener) = world(&["r2"]);
    world.answers.fails("r1");
    for _ in 0..5 {
        world.discovery.set("demo", [instance(1, "r1")]);
        until(&mut listener, |offers| offers.unresolved == [Arc::from("r1")]).await;
        world.discovery.set("demo", [instance(1, "r2")]);
        sees(&mut listener, &["1@r2"]).await;
    }
    world.discovery.set("demo", [instance(1, "r1")]);
    world.answers.offers("r1", [service("a.A")]);
    sees(&mut listener, &["1@r1"]).await;
    assert_eq!(listener.borrow().failure, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whoever_comes_while_others_leave_hears_of_what_is_there() {
    let world = World::new();
    world.answers.offers("r1", [service("a.A")]);
    world.answers.offers("r2", [service("a.A")]);
    let listening: Vec<_> = (0..8)
        .map(|_| {
            let (listeners, discovery) = (Arc::clone(&world.listeners), Arc::clone(&world.discovery));
            tokio::spawn(async move {
                for turn in 0..300_u32 {
                    let mut listener = listeners.listen("demo");
                    let revision = if turn.is_multiple_of(2) { "r1" } else { "r2" };
                    discovery.set("demo", [instance(1, revision)]);
                    let seen = until(&mut listener, |offers| !shown(offers).is_empty());
                    tokio::time::timeout(Duration::from_secs(30), seen).await.unwrap();
                }
            })
        })
        .collect();
    for one in listening {
        one.await.unwrap();
    }
    let left = async {
        while world.listeners.listening() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), left).await.unwrap();
}
