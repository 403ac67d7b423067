//! Services of one server, and how a request finds its own.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use dubhe_common::{Url, keys};
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::invocation::Method;
use dubhe_core::invoker::SharedInvoker;
use dubhe_core::protocol::Exported;
use dubhe_core::service::ServiceDefinition;
use parking_lot::Mutex;

use crate::serializations::Serializations;

/// One exported service.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) url: Url,
    pub(crate) path: Box<str>,
    version: Option<Box<str>>,
    group: Option<Box<str>>,
    pub(crate) definition: Arc<ServiceDefinition>,
    pub(crate) invoker: SharedInvoker,
    /// As the definition's, by index.
    pub(crate) methods: Vec<Arc<Method>>,
    token: Option<Box<str>>,
    /// Methods with a limit of calls at once.
    limits: HashMap<Box<str>, Arc<Limit>>,
    /// Serialization ids it reads, as bits.
    serializations: u32,
}

#[derive(Debug)]
struct Limit {
    most: usize,
    active: AtomicUsize,
}

/// A call within its method's limit; given back by dropping it.
#[derive(Debug)]
pub(crate) struct Permit(Option<Arc<Limit>>);

impl Served {
    pub(crate) fn new(url: Url, exported: Exported, serializations: &Serializations) -> Self {
        let definition = exported.definition;
        let method = |one: &dubhe_core::service::MethodDefinition| {
            Arc::new(Method::new(Arc::clone(&one.name), Arc::clone(&one.descriptor)))
        };
        let limit = |one: &dubhe_core::service::MethodDefinition| {
            let most = usize::try_from(url.method_int(&one.name, keys::EXECUTES, 0))
                .ok()
                .filter(|most| *most > 0)?;
            Some((Box::from(&*one.name), Arc::new(Limit { most, active: AtomicUsize::new(0) })))
        };
        Self {
            path: url.path().unwrap_or_else(|| definition.interface()).into(),
            version: url.version().and_then(some_version).map(Box::from),
            group: url.group().map(Box::from),
            methods: definition.methods().iter().map(method).collect(),
            limits: definition.methods().iter().filter_map(limit).collect(),
            token: url.param(keys::TOKEN).map(Box::from),
            serializations: serializations.for_provider(&url),
            invoker: exported.invoker,
            definition,
            url,
        }
    }

    pub(crate) fn reads(&self, serialization: u8) -> bool {
        self.serializations >> (serialization & 31) & 1 == 1
    }

    /// Whether `given` is the token, or none is wanted. Takes the same time wherever the first difference is.
    pub(crate) fn admits(&self, given: Option<&str>) -> bool {
        let Some(token) = &self.token else { return true };
        let given = given.unwrap_or("");
        let differences = token.bytes().zip(given.bytes().chain(std::iter::repeat(0)));
        let different = differences.fold(0, |all, (a, b)| all | (a ^ b));
        different == 0 && given.len() == token.len()
    }

    /// A permit for one call; an error when as many calls of the method run as `executes` allows.
    pub(crate) fn permit(&self, method: &str) -> Result<Permit, String> {
        if self.limits.is_empty() {
            return Ok(Permit(None));
        }
        let Some(limit) = self.limits.get(method) else { return Ok(Permit(None)) };
        let active = limit.active.fetch_add(1, Ordering::AcqRel);
        let permit = Permit(Some(Arc::clone(limit)));
        if active >= limit.most {
            return Err(format!(
                "Failed to invoke method {method} in provider {}, cause: The service using threads greater than \
                 <dubbo:service executes=\"{}\" /> limited.",
                self.shown_url(),
                limit.most
            ));
        }
        Ok(permit)
    }

    /// The URL as errors show it: without the token.
    pub(crate) fn shown_url(&self) -> Url {
        self.url.without_param(keys::TOKEN)
    }

    /// Whether this is the service of exactly that group, path and version.
    pub(crate) fn is_called(&self, group: Option<&str>, path: &str, version: Option<&str>) -> bool {
        *self.path == *path && self.is_for(group, version)
    }

    fn is_for(&self, group: Option<&str>, version: Option<&str>) -> bool {
        self.group.as_deref() == group.filter(|group| !group.is_empty())
            && self.version.as_deref() == version.and_then(some_version)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(limit) = &self.0 {
            limit.active.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// A version that says something.
fn some_version(version: &str) -> Option<&str> {
    (!matches!(version, "" | "0.0.0" | "*")).then_some(version)
}

/// `[group/]path[:version]`.
pub(crate) fn service_key(group: Option<&str>, path: &str, version: Option<&str>) -> String {
    let group = group.filter(|group| !group.is_empty()).map(|group| format!("{group}/")).unwrap_or_default();
    let version = version.and_then(some_version).map(|version| format!(":{version}")).unwrap_or_default();
    format!("{group}{path}{version}")
}

/// The services of one server. Read by every request, changed by exports.
#[derive(Debug, Default)]
pub(crate) struct Services {
    by_path: ArcSwap<HashMap<Box<str>, Vec<Arc<Served>>>>,
    changing: Mutex<()>,
}

impl Services {
    pub(crate) fn add(&self, served: Arc<Served>, address: SocketAddr) -> Result<(), RpcError> {
        let (group, version) = (served.group.as_deref(), served.version.as_deref());
        let _changing = self.changing.lock();
        let mut by_path = HashMap::clone(&self.by_path.load());
        let of_path = by_path.entry(served.path.clone()).or_default();
        if of_path.iter().any(|one| one.is_for(group, version)) {
            let key = service_key(group, &served.path, version);
            let text = format!("cannot export {key}: it is exported on {address} already");
            return Err(RpcError::new(ErrorCode::Unknown, text));
        }
        of_path.push(served);
        self.by_path.store(Arc::new(by_path));
        Ok(())
    }

    pub(crate) fn remove(&self, served: &Arc<Served>) {
        let _changing = self.changing.lock();
        let mut by_path = HashMap::clone(&self.by_path.load());
        if let Some(of_path) = by_path.get_mut(&served.path) {
            of_path.retain(|one| !Arc::ptr_eq(one, served));
            if of_path.is_empty() {
                by_path.remove(&served.path);
            }
        }
        self.by_path.store(Arc::new(by_path));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_path.load().is_empty()
    }

    /// Those of that version whose path or, if there are none, whose interface is `path`, of any group: what a body can
    /// be decoded with before its attachments are known. A body names the interface even when the path is another one.
    pub(crate) fn of_version(&self, path: &str, version: Option<&str>) -> Vec<Arc<Served>> {
        let version = version.and_then(some_version);
        let by_path = self.by_path.load();
        let of_version = |one: &&Arc<Served>| one.version.as_deref() == version;
        let of_path: Vec<_> = by_path.get(path).into_iter().flatten().filter(of_version).cloned().collect();
        if !of_path.is_empty() {
            return of_path;
        }
        let of_interface = by_path.values().flatten().filter(|one| **one.definition.interface() == *path);
        of_interface.filter(of_version).cloned().collect()
    }

    pub(crate) fn find(&self, group: Option<&str>, path: &str, version: Option<&str>) -> Option<Arc<Served>> {
        self.by_path.load().get(path)?.iter().find(|one| one.is_for(group, version)).cloned()
    }
}
