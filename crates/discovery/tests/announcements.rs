//! What an application's instance says follows what it exports.

use std::sync::Arc;

use async_trait::async_trait;
use dubhe_common::Url;
use dubhe_core::discovery::{ENDPOINTS, REVISION};
use dubhe_discovery::{
    Announcer, Instances, MetadataInfo, Observation, OwnInstance, OwnMetadata, ServiceDiscovery,
    ServiceInstance, TreeError,
};
use parking_lot::Mutex;
use tokio::sync::watch;

/// Keeps the instance that was registered last, and refuses what it is told to.
#[derive(Debug, Default)]
struct Registered {
    last: Mutex<Option<ServiceInstance>>,
    refused: Mutex<usize>,
}

#[async_trait]
impl ServiceDiscovery for Registered {
    async fn register(&self, instance: &ServiceInstance) -> Result<(), TreeError> {
        let mut refused = self.refused.lock();
        if *refused > 0 {
            *refused -= 1;
            return Err(TreeError::Closed("memory://test".to_owned()));
        }
        *self.last.lock() = Some(instance.clone());
        Ok(())
    }

    async fn unregister(&self, _: &ServiceInstance) -> Result<(), TreeError> {
        *self.last.lock() = None;
        Ok(())
    }

    fn instances(&self, _: &str) -> watch::Receiver<Observation<Instances>> {
        unreachable!("nobody follows here")
    }
}

fn url(text: &str) -> Url {
    Url::parse(text).expect("a URL")
}

fn world() -> (Arc<OwnMetadata>, Arc<Registered>, Announcer) {
    let (own, registered) = (Arc::new(OwnMetadata::new("demo")), Arc::new(Registered::default()));
    let exported = Arc::clone(&own);
    let describe = move |info: &MetadataInfo| {
        let urls = exported.exported();
        Ok(OwnInstance::new("demo", &urls, info.revision.as_deref().unwrap_or_default()).build()?)
    };
    let announcer = Announcer::new(Arc::clone(&own), Arc::clone(&registered) as _, None, describe);
    (own, registered, announcer)
}

fn endpoints(registered: &Registered) -> String {
    registered.last.lock().as_ref().expect("registered").metadata[ENDPOINTS].clone()
}

// C101. registry.md 5.3: in the reference endpoints and parameters stay as they were at first.
#[tokio::test(start_paused = true)]
async fn endpoints_and_parameters_follow_what_is_exported_later() {
    let (own, registered, announcer) = world();
    own.add(&url("dubbo://192.0.2.1:20880/a.A?interface=a.A"));
    announcer.announce().await.expect("registered");
    assert_eq!(endpoints(&registered), r#"[{"port":20880,"protocol":"dubbo"}]"#);
    let tri = url("tri://192.0.2.1:50051/a.A?interface=a.A&ipv6=2001:db8::1");
    own.add(&tri);
    announcer.announce().await.expect("registered");
    let both = r#"[{"port":20880,"protocol":"dubbo"},{"port":50051,"protocol":"tri"}]"#;
    assert_eq!(endpoints(&registered), both);
    assert_eq!(registered.last.lock().as_ref().expect("registered").metadata["ipv6"], "2001:db8::1");
    own.remove(&tri);
    announcer.announce().await.expect("registered");
    assert_eq!(endpoints(&registered), r#"[{"port":20880,"protocol":"dubbo"}]"#);
}

// C101
#[tokio::test(start_paused = true)]
async fn what_is_exported_while_registration_fails_is_in_the_first_instance_that_is_registered() {
    let (own, registered, announcer) = world();
    *registered.refused.lock() = 1;
    own.add(&url("dubbo://192.0.2.1:20880/a.A?interface=a.A"));
    assert!(announcer.announce().await.is_err());
    own.add(&url("tri://192.0.2.1:50051/a.B?interface=a.B"));
    announcer.announce().await.expect("registered");
    let instance = registered.last.lock().clone().expect("registered");
    assert_eq!(instance.address(), "192.0.2.1:20880");
    assert_eq!(
        endpoints(&registered),
        r#"[{"port":20880,"protocol":"dubbo"},{"port":50051,"protocol":"tri"}]"#
    );
    let current = own.current();
    assert_eq!(instance.metadata.get(REVISION), current.revision.as_ref());
    assert_eq!(current.services.len(), 2);
}

// C102
#[tokio::test(start_paused = true)]
async fn an_application_that_restarts_as_it_was_has_the_revision_it_had() {
    let mut revisions = Vec::new();
    for (pid, order) in [(1, [0, 1, 2]), (2, [2, 0, 1])] {
        let (own, registered, announcer) = world();
        for number in order {
            let name = ["a.A", "a.B", "a.C"][number];
            own.add(&url(&format!(
                "dubbo://192.0.2.1:20880/{name}?interface={name}&pid={pid}&timestamp={pid}"
            )));
        }
        announcer.announce().await.expect("registered");
        revisions.push(registered.last.lock().as_ref().expect("registered").metadata[REVISION].clone());
    }
    assert_eq!(revisions[0], revisions[1]);
}
