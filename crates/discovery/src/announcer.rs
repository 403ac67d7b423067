//! Keeps an application's own instance registered as it is now (`AbstractServiceDiscovery.register` and `update`).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use dubhe_core::discovery::{NO_SERVICES, ServiceDiscovery, ServiceInstance};
use dubhe_core::metadata::{MetadataInfo, MetadataReport};
use dubhe_core::tree::TreeError;
use tokio::sync::{Mutex, watch};
use tokio::time::{sleep, timeout};

use crate::own_metadata::OwnMetadata;

/// Changes are gathered for that time before they are announced. Origin: ours; Dubbo waits for its timer.
const GATHER: Duration = Duration::from_millis(100);
/// How often the announcement is looked over without any change. Origin: `dubbo.application.metadata.publish.delay`.
const LOOK_OVER: Duration = Duration::from_millis(30_000);
/// First pause after an announcement failed; it doubles up to [`LOOK_OVER`]. Origin: ours.
const AFTER_FAILURE: Duration = Duration::from_millis(1_000);

type Describe = Box<dyn Fn(&MetadataInfo) -> Result<Option<ServiceInstance>, TreeError> + Send + Sync>;

/// Registers an application's instance, and again with each change of what it exports.
///
/// Promises:
/// - Metadata is in the report before any node shows its revision.
/// - A change replaces the data of the same node; all of it is made anew, not only the revision. An instance at another
///   address is registered before the former goes.
/// - An application without services has no node.
/// - What failed is tried again. Until it works, what was registered before stays.
pub struct Announcer {
    own: Arc<OwnMetadata>,
    discovery: Arc<dyn ServiceDiscovery>,
    report: Option<Arc<dyn MetadataReport>>,
    describe: Describe,
    state: Mutex<State>,
    withdrawn: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    /// What the discovery was told last.
    registered: Option<ServiceInstance>,
    /// Whether it said that this holds.
    is_settled: bool,
    /// Registered before at other addresses, and not taken back yet.
    former: Vec<ServiceInstance>,
}

impl Announcer {
    /// Announces what `own` exports. `describe` makes the instance for metadata, e.g. by [`OwnInstance`]; `None`: there
    /// is nothing to register yet; an error leaves what is registered as it is. `report`: where the metadata goes first, for storage type `remote`.
    ///
    /// [`OwnInstance`]: crate::OwnInstance
    pub fn new(
        own: Arc<OwnMetadata>,
        discovery: Arc<dyn ServiceDiscovery>,
        report: Option<Arc<dyn MetadataReport>>,
        describe: impl Fn(&MetadataInfo) -> Result<Option<ServiceInstance>, TreeError> + Send + Sync + 'static,
    ) -> Self {
        let (describe, withdrawn) = (Box::new(describe), watch::Sender::new(false));
        Self { own, discovery, report, describe, state: Mutex::default(), withdrawn }
    }

    /// Brings the registration up to date, and returns when it holds. Does nothing when nothing has changed, and nothing
    /// any more after [`Announcer::withdraw`].
    ///
    /// # Errors
    /// The report's or the discovery's, or that of the description.
    pub async fn announce(&self) -> Result<(), TreeError> {
        let mut withdrawn = self.withdrawn.subscribe();
        tokio::select! {
            biased;
            // Not after what may wait for the registry: who withdraws is on the way out.
            _ = withdrawn.wait_for(|withdrawn| *withdrawn) => Ok(()),
            announced = self.update() => announced,
        }
    }

    /// May be dropped at any time: what the discovery was told stands in the state before it is told.
    async fn update(&self) -> Result<(), TreeError> {
        let mut state = self.state.lock().await;
        let metadata = self.own.current();
        let has_services = metadata.revision.as_deref().is_some_and(|revision| revision != NO_SERVICES);
        let Some(instance) = (self.describe)(&metadata)?.filter(|_| has_services) else {
            return self.take_back(&mut state).await;
        };
        if state.is_settled && state.registered.as_ref() == Some(&instance) {
            return self.take_back_former(&mut state).await;
        }
        if let Some(report) = &self.report {
            report.publish(&metadata).await?;
        }
        let former = state.registered.replace(instance.clone());
        state.former.extend(former);
        state.former.retain(|former| !is_same_node(former, &instance));
        state.is_settled = false;
        self.discovery.register(&instance).await?;
        state.is_settled = true;
        self.take_back_former(&mut state).await
    }

    /// Whether what is exported now can be announced: the error of the description, if not.
    pub fn check(&self) -> Result<(), TreeError> {
        // Not the metadata of now: a revision counts as handed out once it is made.
        let nothing = MetadataInfo { revision: Some(NO_SERVICES.to_owned()), ..MetadataInfo::default() };
        (self.describe)(&nothing).map(|_| ())
    }

    /// Announces now and after every change, and tries again what failed, for ever: to be spawned, and aborted in the end.
    pub async fn run(&self) {
        let mut changes = self.own.changes();
        let mut pause = AFTER_FAILURE;
        loop {
            changes.mark_unchanged();
            let wait = match self.announce().await {
                Ok(()) => {
                    pause = AFTER_FAILURE;
                    LOOK_OVER
                }
                Err(error) => {
                    let application = &**self.own.application();
                    tracing::warn!(application, %error, retry = ?pause, "the instance cannot be registered and is tried again");
                    let longer = (pause * 2).min(LOOK_OVER);
                    std::mem::replace(&mut pause, longer)
                }
            };
            if let Ok(Ok(())) = timeout(wait, changes.changed()).await {
                sleep(GATHER).await;
            }
        }
    }

    /// Takes the registration back, for good.
    ///
    /// # Errors
    /// The discovery's.
    pub async fn withdraw(&self) -> Result<(), TreeError> {
        self.withdrawn.send_replace(true);
        let mut state = self.state.lock().await;
        self.take_back(&mut state).await
    }

    async fn take_back(&self, state: &mut State) -> Result<(), TreeError> {
        let former = state.registered.take();
        state.former.extend(former);
        self.take_back_former(state).await
    }

    async fn take_back_former(&self, state: &mut State) -> Result<(), TreeError> {
        while let Some(former) = state.former.last() {
            self.discovery.unregister(former).await?;
            state.former.pop();
        }
        Ok(())
    }
}

fn is_same_node(one: &ServiceInstance, other: &ServiceInstance) -> bool {
    (&one.application, &one.host, one.port) == (&other.application, &other.host, other.port)
}

impl fmt::Debug for Announcer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Announcer")
            .field("own", &self.own)
            .field("discovery", &self.discovery)
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
