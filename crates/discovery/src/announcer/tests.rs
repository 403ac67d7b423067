use async_trait::async_trait;
use dubhe_common::Url;
use dubhe_core::discovery::Instances;
use dubhe_core::metadata::DefinitionId;
use dubhe_core::observation::Observation;
use parking_lot::Mutex as Lock;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::*;
use crate::own_instance::OwnInstance;

/// A registry and a report that write down what they are told, and fail on demand.
#[derive(Debug, Default)]
struct Told {
    log: Lock<Vec<String>>,
    changed: Notify,
    failing: Lock<Option<&'static str>>,
    /// Registrations never end.
    is_hanging: Lock<bool>,
}

impl Told {
    fn tell(&self, what: &'static str, text: &str) -> Result<(), TreeError> {
        let fails = *self.failing.lock() == Some(what);
        let outcome = if fails { " failed" } else { "" };
        self.log.lock().push(format!("{what} {text}{outcome}"));
        self.changed.notify_one();
        let address = "memory://test".to_owned();
        if fails { Err(TreeError::Unreachable { address, reason: "test".to_owned() }) } else { Ok(()) }
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock())
    }

    async fn until(&self, count: usize) -> Vec<String> {
        while self.log.lock().len() < count {
            self.changed.notified().await;
        }
        self.take()
    }
}

#[async_trait]
impl ServiceDiscovery for Told {
    async fn register(&self, instance: &ServiceInstance) -> Result<(), TreeError> {
        let revision = instance.revision().unwrap_or("none");
        if *self.is_hanging.lock() {
            self.changed.notify_one();
            std::future::pending::<()>().await;
        }
        self.tell("register", &format!("{}@{}", instance.port, &revision[..4]))
    }

    async fn unregister(&self, instance: &ServiceInstance) -> Result<(), TreeError> {
        self.tell("unregister", &instance.port.to_string())
    }

    fn instances(&self, _: &str) -> watch::Receiver<Observation<Instances>> {
        unreachable!("nobody follows here")
    }
}

#[async_trait]
impl MetadataReport for Told {
    async fn publish(&self, info: &MetadataInfo) -> Result<(), TreeError> {
        self.tell("publish", &info.revision.as_deref().unwrap_or("none")[..4])
    }

    async fn fetch(&self, _: &str, _: &str) -> Result<Option<MetadataInfo>, TreeError> {
        unreachable!("nothing is fetched here")
    }

    async fn publish_definition(&self, _: &DefinitionId<'_>, _: &str) -> Result<(), TreeError> {
        unreachable!("no definitions here")
    }
}

fn url(port: u16, name: &str) -> Url {
    Url::parse(&format!("dubbo://192.0.2.1:{port}/{name}?interface={name}")).unwrap()
}

fn announcer(own: &Arc<OwnMetadata>, told: &Arc<Told>) -> Arc<Announcer> {
    let exported = Arc::clone(own);
    let describe = move |info: &MetadataInfo| {
        let urls = exported.exported();
        Ok(OwnInstance::new("demo", &urls, info.revision.as_deref().unwrap()).build()?)
    };
    let report = Arc::clone(told) as Arc<dyn MetadataReport>;
    Arc::new(Announcer::new(Arc::clone(own), Arc::clone(told) as _, Some(report), describe))
}

fn revision(own: &OwnMetadata) -> String {
    own.current().revision.as_deref().unwrap()[..4].to_owned()
}

fn world() -> (Arc<OwnMetadata>, Arc<Told>, Arc<Announcer>) {
    let (own, told) = (Arc::new(OwnMetadata::new("demo")), Arc::new(Told::default()));
    let announcer = announcer(&own, &told);
    (own, told, announcer)
}

// C18
#[tokio::test]
async fn metadata_goes_before_the_instance() {
    let (own, told, announcer) = world();
    announcer.announce().await.unwrap();
    assert!(told.take().is_empty(), "without services there is nothing to register");
    own.add(&url(1, "a.A"));
    announcer.announce().await.unwrap();
    let one = revision(&own);
    assert_eq!(told.take(), [format!("publish {one}"), format!("register 1@{one}")]);
    announcer.announce().await.unwrap();
    assert!(told.take().is_empty(), "nothing has changed");
    own.add(&url(1, "a.B"));
    announcer.announce().await.unwrap();
    let two = revision(&own);
    assert_eq!(told.take(), [format!("publish {two}"), format!("register 1@{two}")], "in place");
}

#[tokio::test]
async fn an_application_that_loses_its_services_loses_its_node() {
    let (own, told, announcer) = world();
    own.add(&url(1, "a.A"));
    announcer.announce().await.unwrap();
    told.take();
    own.remove(&url(1, "a.A"));
    announcer.announce().await.unwrap();
    assert_eq!(told.take(), ["unregister 1"]);
    own.add(&url(1, "a.A"));
    announcer.announce().await.unwrap();
    assert_eq!(told.take().len(), 2);
}

#[tokio::test]
async fn an_instance_that_moves_is_there_before_the_former_goes() {
    let (own, told, announcer) = world();
    own.add(&url(1, "a.A"));
    announcer.announce().await.unwrap();
    told.take();
    own.add(&url(2, "a.A"));
    *told.failing.lock() = Some("register");
    assert!(announcer.announce().await.is_err());
    *told.failing.lock() = Some("unregister");
    assert!(announcer.announce().await.is_err());
    *told.failing.lock() = None;
    own.add(&url(2, "a.B"));
    announcer.announce().await.unwrap();
    let log = told.take();
    let kinds: Vec<&str> =
        log.iter().filter(|line| !line.starts_with("publish")).map(|line| &line[..12]).collect();
    assert_eq!(log.last().map(String::as_str), Some("unregister 1"));
    assert_eq!(kinds.len(), 5, "{log:?}");
}

// C101
#[tokio::test]
async fn a_failed_registration_is_made_again_as_it_should_have_been() {
    let (own, told, announcer) = world();
    own.add(&url(1, "a.A"));
    let one = revision(&own);
    *told.failing.lock() = Some("publish");
    assert!(announcer.announce().await.is_err());
    assert_eq!(told.take(), [format!("publish {one} failed")], "no node without metadata");
    *told.failing.lock() = Some("register");
    assert!(announcer.announce().await.is_err());
    told.take();
    *told.failing.lock() = None;
    announcer.announce().await.unwrap();
    assert_eq!(told.take(), [format!("publish {one}"), format!("register 1@{one}")]);
}

#[tokio::test]
async fn services_that_disagree_leave_what_is_registered() {
    let (own, told, announcer) = world();
    own.add(&url(1, "a.A").with_param("ipv6", "::1"));
    announcer.announce().await.unwrap();
    told.take();
    own.add(&url(1, "a.B").with_param("ipv6", "::2"));
    let refused = announcer.announce().await.unwrap_err();
    assert!(matches!(&refused, TreeError::Invalid(why) if why.contains("ipv6")), "{refused}");
    assert!(told.take().is_empty());
}

#[tokio::test]
async fn a_former_address_that_could_not_be_taken_back_is_taken_back_later() {
    let (own, told, announcer) = world();
    own.add(&url(1, "a.A"));
    announcer.announce().await.unwrap();
    own.add(&url(2, "a.A"));
    *told.failing.lock() = Some("unregister");
    assert!(announcer.announce().await.is_err());
    *told.failing.lock() = None;
    told.take();
    announcer.announce().await.unwrap();
    assert_eq!(told.take(), ["unregister 1"], "although nothing else has changed");
    announcer.announce().await.unwrap();
    assert!(told.take().is_empty());
}

#[tokio::test]
async fn a_withdrawal_does_not_wait_for_a_registration_under_way() {
    let (own, told, announcer) = world();
    own.add(&url(1, "a.A"));
    *told.is_hanging.lock() = true;
    let announcer = Arc::new(announcer);
    let announcing = tokio::spawn({
        let announcer = Arc::clone(&announcer);
        async move { announcer.announce().await }
    });
    told.changed.notified().await;
    assert_eq!(told.take().len(), 1, "metadata is published");
    told.changed.notified().await;
    announcer.withdraw().await.unwrap();
    assert_eq!(told.take(), ["unregister 1"], "the registration may have come through");
    announcing.await.unwrap().unwrap();
}

#[tokio::test]
async fn after_a_withdrawal_nothing_is_announced() {
    let (own, told, announcer) = world();
    own.add(&url(1, "a.A"));
    announcer.announce().await.unwrap();
    told.take();
    announcer.withdraw().await.unwrap();
    own.add(&url(1, "a.B"));
    announcer.announce().await.unwrap();
    announcer.withdraw().await.unwrap();
    assert_eq!(told.take(), ["unregister 1"]);
}

#[tokio::test(start_paused = true)]
async fn changes_are_gathered_and_failures_tried_again() {
    let (own, told, announcer) = world();
    let running = tokio::spawn(async move { announcer.run().await });
    tokio::task::yield_now().await;
    let start = Instant::now();
    for number in 0..20 {
        own.add(&url(1, &format!("a.A{number}")));
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(told.until(2).await.len(), 2, "twenty services, one announcement");
    assert!(start.elapsed() < 2 * GATHER);
    *told.failing.lock() = Some("register");
    own.add(&url(1, "a.B"));
    let revision = revision(&own);
    let log = told.until(2).await;
    assert_eq!(log[1], format!("register 1@{revision} failed"));
    *told.failing.lock() = None;
    let start = Instant::now();
    assert_eq!(told.until(2).await[1], format!("register 1@{revision}"));
    assert!(start.elapsed() <= AFTER_FAILURE);
    running.abort();
}
