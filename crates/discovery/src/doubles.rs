//! A registry, a mapping and instances that say what a test tells them to.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use dubhe_core::discovery::{Instances, REVISION, ServiceDiscovery, ServiceInstance};
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::mapping::{Applications, ServiceNameMapping};
use dubhe_core::metadata::{MetadataClient, MetadataInfo, ServiceInfo};
use dubhe_core::observation::Observation;
use dubhe_core::tree::TreeError;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::instance_listeners::InstanceListeners;
use crate::metadata_cache::MetadataCache;
use crate::metadata_source::MetadataSource;

mod nodes;
pub(crate) use nodes::Nodes;

/// All of them, and listeners over them.
pub(crate) struct World {
    pub(crate) discovery: Arc<Listed>,
    pub(crate) mapping: Arc<Names>,
    pub(crate) answers: Arc<Answers>,
    pub(crate) listeners: Arc<InstanceListeners>,
}

impl World {
    pub(crate) fn new() -> Self {
        let (discovery, answers) = (Arc::new(Listed::default()), Arc::new(Answers::default()));
        let cache = Arc::new(MetadataCache::in_memory());
        let source = Arc::new(MetadataSource::new(None, Arc::clone(&answers) as _, cache));
        let listeners = Arc::new(InstanceListeners::new(Arc::clone(&discovery) as _, source));
        Self { discovery, mapping: Arc::default(), answers, listeners }
    }
}

/// Instance `number` of application `demo`, at `192.0.2.<number>:20880`.
pub(crate) fn instance(number: u8, revision: &str) -> ServiceInstance {
    ServiceInstance::new("demo", format!("192.0.2.{number}"), 20880).with(REVISION, revision)
}

/// A service that is offered by the `dubbo` protocol.
pub(crate) fn service(name: &str) -> ServiceInfo {
    ServiceInfo { name: name.to_owned(), protocol: "dubbo".to_owned(), port: 20880, ..ServiceInfo::default() }
}

/// Lists of instances. Those that are set again as they were are the same values.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    applications: Mutex<HashMap<String, watch::Sender<Observation<Instances>>>>,
    asked: Mutex<Vec<String>>,
}

impl Listed {
    pub(crate) fn set(&self, application: &str, instances: impl IntoIterator<Item = ServiceInstance>) {
        self.change(application, |shown| {
            let before = shown.known.take().unwrap_or_default();
            let now = instances.into_iter().map(|mut instance| {
                instance.application = Arc::from(application);
                before
                    .iter()
                    .find(|known| ***known == instance)
                    .cloned()
                    .unwrap_or_else(|| Arc::new(instance))
            });
            shown.known = Some(now.collect());
        });
    }

    pub(crate) fn trouble(&self, application: &str, trouble: Option<&str>) {
        self.change(application, |shown| shown.trouble = trouble.map(Arc::from));
    }

    /// How often an application's instances were asked for.
    pub(crate) fn asked(&self, application: &str) -> usize {
        self.asked.lock().iter().filter(|asked| *asked == application).count()
    }

    fn change(&self, application: &str, change: impl FnOnce(&mut Observation<Instances>)) {
        self.applications.lock().entry(application.to_owned()).or_default().send_modify(change);
    }
}

#[async_trait]
impl ServiceDiscovery for Listed {
    async fn register(&self, instance: &ServiceInstance) -> Result<(), TreeError> {
        self.set(&instance.application, [instance.clone()]);
        Ok(())
    }

    async fn unregister(&self, _: &ServiceInstance) -> Result<(), TreeError> {
        unreachable!("nothing is taken back here")
    }

    fn instances(&self, application: &str) -> watch::Receiver<Observation<Instances>> {
        self.asked.lock().push(application.to_owned());
        self.applications.lock().entry(application.to_owned()).or_default().subscribe()
    }
}

/// Which applications have an interface.
#[derive(Debug, Default)]
pub(crate) struct Names {
    interfaces: Mutex<HashMap<String, watch::Sender<Observation<Applications>>>>,
    refusals: AtomicUsize,
}

impl Names {
    pub(crate) fn set(&self, interface: &str, applications: &[&str]) {
        let known: Applications = Arc::new(applications.iter().map(|name| Arc::from(*name)).collect());
        let mut interfaces = self.interfaces.lock();
        interfaces.entry(interface.to_owned()).or_default().send_modify(|shown| shown.known = Some(known));
    }

    pub(crate) fn trouble(&self, interface: &str, trouble: Option<&str>) {
        let mut interfaces = self.interfaces.lock();
        let shown = interfaces.entry(interface.to_owned()).or_default();
        shown.send_modify(|shown| shown.trouble = trouble.map(Arc::from));
    }

    /// Lets that many attempts to map something fail.
    pub(crate) fn refuse(&self, times: usize) {
        self.refusals.store(times, Ordering::SeqCst);
    }

    /// Whether somebody follows an interface.
    pub(crate) fn is_watched(&self, interface: &str) -> bool {
        self.interfaces.lock().get(interface).is_some_and(|sender| sender.receiver_count() > 0)
    }
}

#[async_trait]
impl ServiceNameMapping for Names {
    async fn map(&self, interface: &str, application: &str) -> Result<(), TreeError> {
        let less = |left: usize| left.checked_sub(1);
        if self.refusals.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok() {
            return Err(TreeError::Closed("memory://test".to_owned()));
        }
        self.set(interface, &[application]);
        Ok(())
    }

    fn applications(&self, interface: &str) -> watch::Receiver<Observation<Applications>> {
        self.interfaces.lock().entry(interface.to_owned()).or_default().subscribe()
    }
}

/// What instances say of their revisions. One of which nothing was told is not known to them.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    answers: Mutex<HashMap<String, Answer>>,
    asked: Mutex<Vec<String>>,
}

#[derive(Clone, Debug)]
enum Answer {
    Is(MetadataInfo),
    Fails,
    NeverComes,
}

impl Answers {
    pub(crate) fn offers(&self, revision: &str, services: impl IntoIterator<Item = ServiceInfo>) {
        let services = services.into_iter().map(|service| (service.match_key(), service)).collect();
        let info = MetadataInfo { revision: Some(revision.to_owned()), services, ..MetadataInfo::default() };
        self.answers.lock().insert(revision.to_owned(), Answer::Is(info));
    }

    pub(crate) fn fails(&self, revision: &str) {
        self.answers.lock().insert(revision.to_owned(), Answer::Fails);
    }

    pub(crate) fn never_comes(&self, revision: &str) {
        self.answers.lock().insert(revision.to_owned(), Answer::NeverComes);
    }

    /// `number@revision` of every question.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().clone()
    }
}

#[async_trait]
impl MetadataClient for Answers {
    async fn fetch(
        &self,
        instance: &Arc<ServiceInstance>,
        revision: &str,
    ) -> Result<Option<MetadataInfo>, RpcError> {
        let number = instance.host.rsplit('.').next().unwrap_or_default();
        self.asked.lock().push(format!("{number}@{revision}"));
        let answer = self.answers.lock().get(revision).cloned();
        match answer {
            Some(Answer::Is(info)) => Ok(Some(info)),
            Some(Answer::Fails) => Err(RpcError::new(ErrorCode::Network, "connection refused")),
            Some(Answer::NeverComes) => std::future::pending().await,
            None => Ok(None),
        }
    }
}

/// Waits until a condition holds.
pub(crate) async fn until<T: Clone + std::fmt::Debug>(
    receiver: &mut watch::Receiver<T>,
    condition: impl FnMut(&T) -> bool,
) -> T {
    receiver.wait_for(condition).await.unwrap().clone()
}
