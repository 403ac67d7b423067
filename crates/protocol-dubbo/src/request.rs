//! Bodies of requests, read on the provider.

use std::net::SocketAddr;
use std::sync::Arc;

use dubhe_common::keys;
use dubhe_core::exchange::{RequestFrame, status};
use dubhe_core::invocation::{
    Arguments, Attachments, ECHO, ECHO_DESCRIPTOR, GENERIC_DESCRIPTOR, INVOKE, INVOKE_ASYNC, Method,
};
use dubhe_core::serialize::{ObjectReader, Serialization, SerializeError};

use crate::memo::{Memo, read_attachments};
use crate::served::{Served, Services, service_key};
use crate::version::reads_response_attachments;

/// A request that found its service.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) served: Arc<Served>,
    pub(crate) method: Arc<Method>,
    pub(crate) arguments: Arc<dyn Arguments>,
    pub(crate) attachments: Attachments,
    pub(crate) reads_response_attachments: bool,
}

/// A request that is not given to a service.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u8,
    pub(crate) text: String,
}

impl Refusal {
    /// The body could not be decoded; `cause` begins with the class name of an exception.
    pub(crate) fn undecodable(cause: impl std::fmt::Display) -> Self {
        Self { status: status::BAD_REQUEST, text: format!("Fail to decode request due to: {cause}") }
    }

    fn not_found(group: Option<&str>, path: &str, version: Option<&str>, frame: &RequestFrame) -> Self {
        let (key, port, peer, local) =
            (service_key(group, path, version), frame.local.port(), frame.peer, frame.local);
        Self {
            status: status::SERVICE_ERROR,
            text: format!(
                "org.apache.dubbo.remoting.RemotingException: Not found exported service: {key}:{port}, may be version \
                 or group mismatch , channel: consumer: {peer} --> provider: {local}"
            ),
        }
    }

    fn no_such_method(served: &Served, method: &str) -> Self {
        Self {
            status: status::SERVICE_ERROR,
            text: format!(
                "org.apache.dubbo.rpc.RpcException: Failed to invoke remote proxy method {method} to {}, cause: Not \
                 found method \"{method}\" in class {}.",
                served.shown_url(),
                served.definition.interface()
            ),
        }
    }

    pub(crate) fn wrong_token(served: &Served, method: &str, peer: SocketAddr, local: SocketAddr) -> Self {
        Self {
            status: status::SERVICE_ERROR,
            text: format!(
                "org.apache.dubbo.rpc.RpcException: Invalid token! Forbid invoke remote service interface {} method \
                 {method}() from consumer {} to provider {}",
                served.definition.interface(),
                peer.ip(),
                local.ip()
            ),
        }
    }
}

/// The methods that every service has.
#[derive(Debug)]
pub(crate) struct SpecialMethods {
    echo: Arc<Method>,
    invoke: Arc<Method>,
    invoke_async: Arc<Method>,
}

impl SpecialMethods {
    pub(crate) fn new() -> Self {
        Self {
            echo: Arc::new(Method::new(ECHO, ECHO_DESCRIPTOR)),
            invoke: Arc::new(Method::new(INVOKE, GENERIC_DESCRIPTOR)),
            invoke_async: Arc::new(Method::new(INVOKE_ASYNC, GENERIC_DESCRIPTOR)),
        }
    }

    /// The method and the count of its arguments.
    fn find(&self, name: &str, descriptor: &str) -> Option<(&Arc<Method>, usize)> {
        match (name, descriptor) {
            (ECHO, ECHO_DESCRIPTOR) => Some((&self.echo, 1)),
            (INVOKE, GENERIC_DESCRIPTOR) => Some((&self.invoke, 3)),
            (INVOKE_ASYNC, GENERIC_DESCRIPTOR) => Some((&self.invoke_async, 3)),
            _ => None,
        }
    }
}

/// Heads of requests that came before.
pub(crate) type Heads = Memo<Head>;

/// The fields before the arguments.
#[derive(Debug)]
pub(crate) struct Head {
    dubbo_version: Option<String>,
    path: String,
    version: Option<String>,
    method: String,
    descriptor: String,
    reads_response_attachments: bool,
    /// Attachments that came with it, completed by its fields.
    attachments: Memo<Attachments>,
}

impl Head {
    fn read(reader: &mut dyn ObjectReader) -> Result<Self, SerializeError> {
        let mut text = |what: &str| {
            let read = reader.read_str();
            read.map_err(|error| SerializeError::new(format!("the {what} cannot be read: {error}")))
        };
        let dubbo_version = text("dubbo version")?;
        let path = text("service path")?.unwrap_or_default();
        let version = text("service version")?;
        let method = text("method name")?.unwrap_or_default();
        let descriptor = text("parameter types")?.unwrap_or_default();
        Ok(Self {
            reads_response_attachments: reads_response_attachments(dubbo_version.as_deref()),
            attachments: Memo::new(),
            dubbo_version,
            path,
            version,
            method,
            descriptor,
        })
    }
}

/// Decodes `frame` and finds what it calls.
pub(crate) fn decode(
    frame: &RequestFrame,
    serialization: &dyn Serialization,
    services: &Services,
    special: &SpecialMethods,
    heads: &Heads,
) -> Result<Request, Refusal> {
    let (head, mut reader) = match heads.beginning(frame.serialization, &frame.body) {
        Some((head, length)) => (head, serialization.reader(frame.body.slice(length..))),
        None => {
            let mut reader = serialization.reader(frame.body.clone());
            let head = Head::read(&mut *reader)
                .map_err(|error| Refusal::undecodable(format_args!("java.io.IOException: {error}")))?;
            (Arc::new(head), reader)
        }
    };
    let body_of_arguments = reader.remaining();
    let candidates = services.of_version(&head.path, head.version.as_deref());
    let Some(first) = candidates.first() else {
        return Err(Refusal::undecodable(format_args!(
            "java.io.IOException: Service {} with version {} not found, invocation rejected.",
            head.path,
            head.version.as_deref().unwrap_or("null")
        )));
    };
    if !candidates.iter().any(|one| one.reads(frame.serialization)) {
        return Err(Refusal::undecodable(format_args!(
            "java.io.IOException: Unexpected serialization id:{} received from network, please check if the peer send \
             the right id.",
            frame.serialization
        )));
    }
    let unreadable = |error: SerializeError| {
        let dubbox = head.dubbo_version.as_deref().is_some_and(|version| version.starts_with("2.8."));
        let hint =
            if dubbox { " (dubbox 2.8.x peers write requests in another form: not supported)" } else { "" };
        Refusal::undecodable(format_args!("java.io.IOException: {error}{hint}"))
    };
    let own =
        candidates.iter().find_map(|one| Some((one, one.definition.find(&head.method, &head.descriptor)?)));
    let special = special.find(&head.method, &head.descriptor);
    let (method, arguments): (_, Arc<dyn Arguments>) = match (own, special) {
        (Some((served, index)), _) => {
            let read = served.definition.methods()[index].read;
            (Some(Arc::clone(&served.methods[index])), read(&mut *reader).map_err(unreadable)?)
        }
        (None, Some((method, count))) => {
            let values: Result<Vec<_>, _> = (0..count).map(|_| reader.read_value()).collect();
            (Some(Arc::clone(method)), Arc::new(values.map_err(unreadable)?))
        }
        // Found out when the service is known.
        (None, None) if head.descriptor.is_empty() => (None, Arc::new(())),
        (None, None) => {
            return Err(Refusal::undecodable(format_args!(
                "java.lang.IllegalArgumentException: Service not found:{}, {}",
                head.path, head.method
            )));
        }
    };
    let complete = |sent| merge(&head, sent);
    let attachments =
        read_attachments(&head.attachments, frame.serialization, &frame.body, &mut *reader, complete)
            .map_err(unreadable)?;
    let text = |key| attachments.get_str(key);
    let (group, path, version) = (text(keys::GROUP), text(keys::PATH).unwrap_or(""), text(keys::VERSION));
    let served = match candidates.len() {
        // The usual case: what the head says is what the attachments say, and there is one group.
        1 if first.is_called(group, path, version) => Arc::clone(first),
        _ => services
            .find(group, path, version)
            .ok_or_else(|| Refusal::not_found(group, path, version, frame))?,
    };
    let method = method.ok_or_else(|| Refusal::no_such_method(&served, &head.method))?;
    // Only heads that call something: what is made up is not remembered.
    if Arc::strong_count(&head) == 1 {
        let length = frame.body.len() - body_of_arguments;
        heads.keep(frame.serialization, &frame.body[..length], &head);
    }
    let reads_response_attachments = head.reads_response_attachments;
    Ok(Request { served, method, arguments, attachments, reads_response_attachments })
}

/// The attachments that were sent, over those that the head stands for.
fn merge(head: &Head, mut attachments: Attachments) -> Attachments {
    if let Some(version) = &head.dubbo_version {
        attachments.set_if_absent(keys::DUBBO, version.as_str());
    }
    attachments.set_if_absent(keys::PATH, head.path.as_str());
    if let Some(version) = &head.version {
        attachments.set_if_absent(keys::VERSION, version.as_str());
    }
    attachments
}
