//! The metadata of a revision, wherever it is (`AbstractServiceDiscovery.getRemoteMetadata`).

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use dubhe_core::BoxFuture;
use dubhe_core::discovery::ServiceInstance;
use dubhe_core::metadata::{MetadataClient, MetadataInfo, MetadataReport};
use futures::FutureExt;
use futures::future::{Shared, WeakShared};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::instance_metadata::metadata_service_params;
use crate::metadata_cache::MetadataCache;

/// How often metadata is asked for before it counts as failed. Origin: `AbstractServiceDiscovery`.
const TRIES: usize = 3;
/// How long one try may take, whatever its instance says of timeouts. Origin: ours; a metadata service is waited for half
/// as long by default.
const MAX_TRY: Duration = Duration::from_millis(10_000);
/// How many instances are asked at a time: where each instance has a revision of its own, the others wait for their turn.
/// Origin: ours.
const MAX_ASKED: usize = 256;
/// Time between two tries. Origin: `AbstractServiceDiscovery`.
const PAUSE: Duration = Duration::from_millis(1_000);

/// Finds the metadata of revisions: from the cache, from the metadata report, or from an instance.
///
/// However many ask for one revision at a time, it is fetched once; no lock is held meanwhile. What fails is not
/// remembered: the next who asks tries again.
pub struct MetadataSource {
    tries: Tries,
    cache: Arc<MetadataCache>,
    flights: Mutex<HashMap<Key, WeakShared<Flight>>>,
}

type Key = (Arc<str>, Arc<str>);
type Outcome = Result<Arc<MetadataInfo>, Arc<MetadataError>>;
type Flight = BoxFuture<'static, Outcome>;

/// The metadata of a revision could not be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no metadata of application {application}, revision {revision}: {}",
    if attempts.is_empty() { "no instance has it".to_owned() } else { attempts.join("; ") }
)]
pub struct MetadataError {
    /// The application.
    pub application: String,
    /// The revision.
    pub revision: String,
    /// Who was asked, and what went wrong.
    pub attempts: Vec<String>,
}

impl MetadataSource {
    /// Asks `report` for what is stored remotely (`None`: the registry has none) and `client` for the rest.
    pub fn new(
        report: Option<Arc<dyn MetadataReport>>,
        client: Arc<dyn MetadataClient>,
        cache: Arc<MetadataCache>,
    ) -> Self {
        let tries = Tries { report, client, turns: Arc::new(Semaphore::new(MAX_ASKED)) };
        Self { tries, cache, flights: Mutex::default() }
    }

    /// The cache.
    pub fn cache(&self) -> &Arc<MetadataCache> {
        &self.cache
    }

    /// The metadata of `revision` of `application`, which all of `instances` have.
    ///
    /// Up to three instances are tried, in random order and, if there are that many, three different ones, for ten seconds
    /// each with a second between. Who gives up waiting leaves the fetch to the others who wait for it.
    ///
    /// # Errors
    /// None of them gave it.
    pub async fn resolve(
        &self,
        application: &str,
        revision: &str,
        instances: &[Arc<ServiceInstance>],
    ) -> Result<Arc<MetadataInfo>, Arc<MetadataError>> {
        if let Some(known) = self.cache.get(application, revision) {
            return Ok(known);
        }
        let key = (Arc::from(application), Arc::from(revision));
        self.flight(&key, instances).await
    }

    fn flight(&self, key: &Key, instances: &[Arc<ServiceInstance>]) -> Shared<Flight> {
        let mut flights = self.flights.lock();
        let under_way = flights.get(key).and_then(WeakShared::upgrade);
        // One that is over failed, or is in the cache.
        if let Some(flight) = under_way.filter(|flight| flight.peek().is_none()) {
            return flight;
        }
        flights.retain(|_, flight| flight.upgrade().is_some_and(|flight| flight.peek().is_none()));
        let mut instances = instances.to_vec();
        fastrand::shuffle(&mut instances);
        let (tries, cache, (application, revision)) =
            (self.tries.clone(), Arc::clone(&self.cache), key.clone());
        let fetch = async move {
            let info = Arc::new(tries.run(&application, &revision, &instances).await?);
            cache.put(&application, &revision, &info);
            Ok(info)
        };
        let flight = fetch.boxed().shared();
        if let Some(weak) = flight.downgrade() {
            flights.insert(key.clone(), weak);
        }
        flight
    }
}

#[derive(Clone)]
struct Tries {
    report: Option<Arc<dyn MetadataReport>>,
    client: Arc<dyn MetadataClient>,
    turns: Arc<Semaphore>,
}

impl Tries {
    async fn run(
        &self,
        application: &str,
        revision: &str,
        instances: &[Arc<ServiceInstance>],
    ) -> Result<MetadataInfo, Arc<MetadataError>> {
        let mut attempts = Vec::new();
        for (attempt, instance) in
            instances.iter().cycle().take(if instances.is_empty() { 0 } else { TRIES }).enumerate()
        {
            if attempt > 0 {
                tokio::time::sleep(PAUSE).await;
            }
            // Not held during the pauses; it is never closed.
            let turn = self.turns.acquire().await;
            let answer = tokio::time::timeout(MAX_TRY, self.ask(instance, revision)).await;
            drop(turn);
            match answer.unwrap_or_else(|_| Err(format!("{}: no answer in time", instance.address()))) {
                Ok(info) => return Ok(info),
                Err(reason) => {
                    tracing::debug!(application, revision, instance = %instance.address(), attempt, %reason, "no metadata");
                    attempts.push(reason);
                }
            }
        }
        let error =
            MetadataError { application: application.to_owned(), revision: revision.to_owned(), attempts };
        tracing::warn!(%error, "metadata cannot be fetched");
        Err(Arc::new(error))
    }

    /// One try. Metadata without services counts as none: its application is still writing it.
    async fn ask(&self, instance: &Arc<ServiceInstance>, revision: &str) -> Result<MetadataInfo, String> {
        let found = if instance.is_stored_remotely() {
            let missing = match self.report_answer(instance, revision).await {
                Ok(info) => return Ok(info),
                Err(missing) => missing,
            };
            if metadata_service_params(instance).is_none() {
                return Err(missing);
            }
            self.client.fetch(instance, revision).await
        } else {
            self.client.fetch(instance, revision).await
        };
        match found {
            Ok(Some(info)) if !info.services.is_empty() => Ok(info),
            Ok(_) => Err(format!("{} does not know the revision", instance.address())),
            Err(error) => Err(format!("{}: {error}", instance.address())),
        }
    }

    async fn report_answer(
        &self,
        instance: &ServiceInstance,
        revision: &str,
    ) -> Result<MetadataInfo, String> {
        let Some(report) = &self.report else {
            return Err("the registry has no metadata report".to_owned());
        };
        match report.fetch(&instance.application, revision).await {
            Ok(Some(info)) if !info.services.is_empty() => Ok(info),
            Ok(_) => Err("it is not in the metadata report".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl fmt::Debug for MetadataSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetadataSource")
            .field("report", &self.tries.report)
            .field("client", &self.tries.client)
            .field("cache", &self.cache)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
