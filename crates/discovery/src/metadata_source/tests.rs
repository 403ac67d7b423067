use std::collections::BTreeSet;

use async_trait::async_trait;
use dubhe_core::discovery::{METADATA_SERVICE_PARAMS, REMOTE, STORAGE_TYPE};
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::metadata::DefinitionId;
use dubhe_core::tree::TreeError;
use tokio::time::Instant;

use super::*;
use crate::recorded;

const APP: &str = "demo-provider";

fn known() -> MetadataInfo {
    recorded::captures().remove(0).metadata_info
}

fn instances(count: u8) -> Vec<Arc<ServiceInstance>> {
    (1..=count)
        .map(|number| Arc::new(ServiceInstance::new(APP, format!("192.0.2.{number}"), 20880)))
        .collect()
}

/// Answers in the order of the script; the last answer is repeated.
#[derive(Debug)]
struct Scripted {
    answers: Mutex<Vec<Result<Option<MetadataInfo>, ()>>>,
    asked: Mutex<Vec<String>>,
    /// One permit per answer.
    gate: Semaphore,
}

impl Scripted {
    fn new(answers: impl Into<Vec<Result<Option<MetadataInfo>, ()>>>) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers.into()),
            asked: Mutex::default(),
            gate: Semaphore::new(Semaphore::MAX_PERMITS),
        })
    }

    async fn answer(&self, who: String) -> Result<Option<MetadataInfo>, ()> {
        self.asked.lock().push(who);
        self.gate.acquire().await.unwrap().forget();
        let mut answers = self.answers.lock();
        if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().clone()
    }
}

#[async_trait]
impl MetadataClient for Scripted {
    async fn fetch(
        &self,
        instance: &Arc<ServiceInstance>,
        _: &str,
    ) -> Result<Option<MetadataInfo>, RpcError> {
        let answer = self.answer(instance.address()).await;
        answer.map_err(|()| RpcError::new(ErrorCode::Network, "connection refused"))
    }
}

#[async_trait]
impl MetadataReport for Scripted {
    async fn publish(&self, _: &MetadataInfo) -> Result<(), TreeError> {
        unreachable!("nothing is published here")
    }

    async fn fetch(&self, application: &str, revision: &str) -> Result<Option<MetadataInfo>, TreeError> {
        let answer = self.answer(format!("report {application} {revision}")).await;
        answer.map_err(|()| TreeError::Closed("memory://test".to_owned()))
    }

    async fn publish_definition(&self, _: &DefinitionId<'_>, _: &str) -> Result<(), TreeError> {
        unreachable!("nothing is published here")
    }
}

fn source(report: Option<&Arc<Scripted>>, client: &Arc<Scripted>) -> Arc<MetadataSource> {
    let report = report.map(|report| Arc::clone(report) as Arc<dyn MetadataReport>);
    Arc::new(MetadataSource::new(report, Arc::clone(client) as _, Arc::new(MetadataCache::in_memory())))
}

#[tokio::test(start_paused = true)]
async fn an_instance_is_asked_once_and_the_answer_kept() {
    let client = Scripted::new([Ok(Some(known()))]);
    let source = source(None, &client);
    for _ in 0..2 {
        assert_eq!(*source.resolve(APP, "r", &instances(2)).await.unwrap(), known());
    }
    assert_eq!(client.asked().len(), 1);
}

// C03
#[tokio::test(start_paused = true)]
async fn each_try_asks_another_instance() {
    let client = Scripted::new([Err(()), Ok(None), Ok(Some(known()))]);
    let source = source(None, &client);
    let start = Instant::now();
    source.resolve(APP, "r", &instances(3)).await.unwrap();
    let asked: BTreeSet<String> = client.asked().into_iter().collect();
    assert_eq!(asked.len(), 3);
    assert_eq!(start.elapsed(), 2 * PAUSE);
}

#[tokio::test(start_paused = true)]
async fn three_failures_are_the_end_and_nobody_waits_after_the_last() {
    let client = Scripted::new([Err(())]);
    let source = source(None, &client);
    let start = Instant::now();
    let error = source.resolve(APP, "r", &instances(1)).await.unwrap_err();
    assert_eq!((client.asked().len(), start.elapsed()), (3, 2 * PAUSE));
    assert_eq!(error.attempts.len(), 3);
    assert!(error.to_string().contains("192.0.2.1:20880: "), "{error}");
}

// C18
#[tokio::test(start_paused = true)]
async fn absence_and_emptiness_are_asked_again() {
    let empty = MetadataInfo { app: Some(APP.to_owned()), ..Default::default() };
    let client = Scripted::new([Ok(None), Ok(Some(empty)), Err(()), Ok(Some(known()))]);
    let source = source(None, &client);
    assert!(source.resolve(APP, "r", &instances(1)).await.is_err());
    assert_eq!(source.cache().get(APP, "r"), None);
    assert!(source.resolve(APP, "r", &instances(1)).await.is_ok(), "a failure is not remembered");
    assert!(source.cache().get(APP, "r").is_some());
}

#[tokio::test(start_paused = true)]
async fn many_who_ask_at_once_share_one_fetch() {
    let client = Scripted::new([Ok(Some(known()))]);
    client.gate.forget_permits(Semaphore::MAX_PERMITS);
    let source = source(None, &client);
    let asking: Vec<_> = (0..50)
        .map(|_| {
            let source = Arc::clone(&source);
            tokio::spawn(async move { source.resolve(APP, "r", &instances(3)).await })
        })
        .collect();
    let other = tokio::spawn({
        let source = Arc::clone(&source);
        async move { source.resolve(APP, "other", &instances(3)).await }
    });
    while client.asked().len() < 2 {
        tokio::task::yield_now().await;
    }
    client.gate.add_permits(2);
    for one in asking {
        assert!(one.await.unwrap().is_ok());
    }
    assert!(other.await.unwrap().is_ok());
    assert_eq!(client.asked().len(), 2, "one per revision");
}

#[tokio::test(start_paused = true)]
async fn who_gives_up_does_not_take_the_fetch_along() {
    let client = Scripted::new([Ok(Some(known()))]);
    client.gate.forget_permits(Semaphore::MAX_PERMITS);
    let source = source(None, &client);
    let ask = || {
        let source = Arc::clone(&source);
        tokio::spawn(async move { source.resolve(APP, "r", &instances(3)).await })
    };
    let (first, second) = (ask(), ask());
    while client.asked().is_empty() {
        tokio::task::yield_now().await;
    }
    first.abort();
    assert!(first.await.is_err());
    client.gate.add_permits(1);
    assert!(second.await.unwrap().is_ok());
    assert_eq!(client.asked().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn when_all_have_given_up_the_next_starts_anew() {
    let client = Scripted::new([Ok(Some(known()))]);
    client.gate.forget_permits(Semaphore::MAX_PERMITS);
    let source = source(None, &client);
    let hurried = tokio::time::timeout(PAUSE, source.resolve(APP, "r", &instances(3))).await;
    assert!(hurried.is_err());
    client.gate.add_permits(1);
    assert!(source.resolve(APP, "r", &instances(3)).await.is_ok());
    assert_eq!(client.asked().len(), 2);
}

// C17
#[tokio::test(start_paused = true)]
async fn what_is_stored_remotely_comes_from_the_report() {
    let (report, client) = (Scripted::new([Ok(Some(known()))]), Scripted::new([Err(())]));
    let source = source(Some(&report), &client);
    let remote = [Arc::new(ServiceInstance::new("demo-app", "192.0.2.1", 1).with(STORAGE_TYPE, REMOTE))];
    assert!(source.resolve("demo-app", "abc", &remote).await.is_ok());
    assert_eq!(report.asked(), ["report demo-app abc"]);
    assert!(client.asked().is_empty());
}

// C17
#[tokio::test(start_paused = true)]
async fn what_is_missing_in_the_report_is_asked_of_an_instance_that_can_answer() {
    let (report, client) = (Scripted::new([Ok(None)]), Scripted::new([Ok(Some(known()))]));
    let source = source(Some(&report), &client);
    let mute = ServiceInstance::new(APP, "192.0.2.1", 1).with(STORAGE_TYPE, REMOTE);
    let able = mute.clone().with(METADATA_SERVICE_PARAMS, r#"{"protocol":"dubbo","port":"2"}"#);
    let error = source.resolve(APP, "r", &[Arc::new(mute)]).await.unwrap_err();
    assert_eq!(error.attempts[0], "it is not in the metadata report");
    assert!(client.asked().is_empty());
    assert!(source.resolve(APP, "r", &[Arc::new(able)]).await.is_ok());
    assert_eq!(client.asked().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_registry_without_a_report_says_so() {
    let client = Scripted::new([Err(())]);
    let source = source(None, &client);
    let remote = [Arc::new(ServiceInstance::new(APP, "192.0.2.1", 1).with(STORAGE_TYPE, REMOTE))];
    let error = source.resolve(APP, "r", &remote).await.unwrap_err();
    assert!(error.to_string().contains("the registry has no metadata report"), "{error}");
    assert!(source.resolve(APP, "r", &[]).await.unwrap_err().attempts.is_empty());
}

// C08
#[tokio::test(start_paused = true)]
async fn an_instance_that_never_answers_leaves_its_turn_to_another() {
    let client = Scripted::new([Ok(Some(known()))]);
    client.gate.forget_permits(Semaphore::MAX_PERMITS);
    let source = source(None, &client);
    let asking = tokio::spawn(async move { source.resolve(APP, "r", &instances(2)).await });
    tokio::time::sleep(MAX_TRY + PAUSE / 2).await;
    client.gate.add_permits(1);
    assert!(asking.await.unwrap().is_ok());
    let asked: BTreeSet<String> = client.asked().into_iter().collect();
    assert_eq!(asked.len(), 2, "another one");
}

#[tokio::test(start_paused = true)]
async fn when_nobody_ever_answers_that_is_known_in_the_end() {
    let client = Scripted::new([Ok(Some(known()))]);
    client.gate.forget_permits(Semaphore::MAX_PERMITS);
    let error = source(None, &client).resolve(APP, "r", &instances(1)).await.unwrap_err();
    assert!(error.attempts.iter().all(|why| why.contains("no answer in time")), "{error}");
}

#[tokio::test(start_paused = true)]
async fn so_many_instances_are_asked_at_a_time_and_all_in_the_end() {
    let client = Scripted::new([Ok(Some(known()))]);
    client.gate.forget_permits(Semaphore::MAX_PERMITS);
    let source = source(None, &client);
    let asking: Vec<_> = (0..3 * MAX_ASKED)
        .map(|number| {
            let source = Arc::clone(&source);
            tokio::spawn(async move { source.resolve(APP, &format!("r{number}"), &instances(1)).await })
        })
        .collect();
    tokio::time::sleep(PAUSE).await;
    assert_eq!(client.asked().len(), MAX_ASKED);
    client.gate.add_permits(asking.len());
    for one in asking {
        assert!(one.await.unwrap().is_ok());
    }
    assert_eq!(client.asked().len(), 3 * MAX_ASKED);
}
