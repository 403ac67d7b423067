//! One remote provider.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::BytesMut;
use dubhe_common::defaults::DUBBO_VERSION;
use dubhe_common::{Url, keys};
use dubhe_core::BoxFuture;
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::exchange::HEADROOM;
use dubhe_core::invocation::{Attachments, Invocation};
use dubhe_core::invoker::Invoker;
use dubhe_core::response::{Payload, Response};
use dubhe_core::serialize::{Serialization, SerializeError};
use dubhe_core::value::Value;
use tokio::time::Instant;

use crate::constants::{Constants, OWN, PerMethod};
use crate::failure::Failures;
use crate::memo::Memo;
use crate::pool::Connections;
use crate::reply;
use crate::serializations::Serializations;

/// Attachment with the milliseconds that are left, an integer.
pub(crate) const TIME_LEFT: &str = "_TO";

/// Largest buffer that is reserved because an earlier request was that large.
const MOST_RESERVED: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct DubboInvoker {
    url: Url,
    connections: Arc<Connections>,
    serialization: Arc<dyn Serialization>,
    constants: Constants,
    failures: Failures,
    response_attachments: Memo<Attachments>,
    /// Size of the last request: the next one is likely to be as large.
    size: AtomicUsize,
}

impl DubboInvoker {
    pub(crate) fn new(
        url: Url,
        application: Option<&str>,
        connections: Arc<Connections>,
        serialization: Arc<dyn Serialization>,
        serializations: &Arc<Serializations>,
    ) -> Result<Self, RpcError> {
        let constants = Constants::new(&url, application, &*serialization).map_err(|error| {
            RpcError::new(ErrorCode::Serialization, format!("cannot refer {url}: {error}")).with_source(error)
        })?;
        Ok(Self {
            failures: Failures::new(&url, Arc::clone(serializations)),
            response_attachments: Memo::new(),
            url,
            connections,
            serialization,
            constants,
            size: AtomicUsize::new(512),
        })
    }

    async fn call(&self, call: Invocation) -> Result<Response, RpcError> {
        let name = call.method_name();
        let per_method = self.constants.of(name);
        let timeout = self.time_for(&call, per_method)?;
        let one_way = call.method().one_way
            || per_method.one_way
            || call.attachments().get_str(keys::RETURN).is_some_and(|value| value == "false");
        let frame =
            self.encode(&call, per_method, timeout).map_err(|error| self.failures.encoding(&call, error))?;
        let (client, id) = (self.connections.pick(), self.serialization.id());
        if one_way {
            let sent = client.send(id, frame, timeout).await;
            return sent
                .map(|()| Response::of(Payload::null()))
                .map_err(|error| self.failures.exchange(&call, error));
        }
        match client.request(id, frame, timeout).await {
            Ok(frame) if frame.status == dubhe_core::exchange::status::OK => {
                reply::decode(&*self.serialization, frame, call.method().reply, &self.response_attachments)
                    .map_err(|error| self.failures.decoding(&call, error))
            }
            Ok(frame) => Err(self.failures.status(&call, frame)),
            Err(error) => Err(self.failures.exchange(&call, error)),
        }
    }

    /// The time for this attempt: what the caller says, else the attachment, else the parameters; never beyond the
    /// deadline of the whole call.
    fn time_for(&self, call: &Invocation, per_method: &PerMethod) -> Result<Duration, RpcError> {
        let attached = || call.attachments().get(keys::TIMEOUT).and_then(millis);
        let timeout = call.timeout().or_else(attached).unwrap_or(per_method.timeout);
        let Some(deadline) = call.deadline() else {
            return Ok(timeout);
        };
        let left = Instant::from_std(deadline).saturating_duration_since(Instant::now());
        if left.is_zero() {
            let service = &self.constants.interface;
            let text = format!(
                "No time left for making the following call: {service}.{}, terminate directly.",
                call.method_name()
            );
            return Err(self.failures.located(RpcError::new(ErrorCode::TimeoutTerminate, text)));
        }
        Ok(timeout.min(left))
    }

    fn encode(
        &self,
        call: &Invocation,
        per_method: &PerMethod,
        timeout: Duration,
    ) -> Result<BytesMut, SerializeError> {
        let fixed =
            if timeout == per_method.timeout { &per_method.attachments } else { &self.constants.attachments };
        let more = own_attachments(call, per_method, timeout);
        let more = more.as_ref().unwrap_or_else(|| call.attachments());
        let (method, arguments) = (call.method(), call.arguments());
        let reserved = self.size.load(Ordering::Relaxed);
        let mut frame = BytesMut::with_capacity(reserved);
        frame.resize(HEADROOM, 0);
        self.serialization.encode(&mut frame, &mut |writer| {
            writer.write_str(DUBBO_VERSION)?;
            writer.write_str(&self.constants.interface)?;
            writer.write_str(&self.constants.version)?;
            writer.write_str(&method.name)?;
            writer.write_str(&method.descriptor)?;
            for index in 0..arguments.len() {
                arguments.write(index, writer)?;
            }
            writer.write_attachments_with(fixed, more)
        })?;
        let needed = (frame.len() + 64).min(MOST_RESERVED);
        if needed > reserved || needed * 4 < reserved {
            self.size.store(needed, Ordering::Relaxed);
        }
        Ok(frame)
    }
}

/// The call's attachments as they go out, when they are not simply what the caller set.
fn own_attachments(call: &Invocation, per_method: &PerMethod, timeout: Duration) -> Option<Attachments> {
    let set = call.attachments();
    let has_own_timeout = timeout != per_method.timeout;
    if !has_own_timeout && !per_method.countdown && set.iter().all(|(key, _)| !OWN.contains(&key)) {
        return None;
    }
    let mut more = set.clone();
    for key in OWN {
        more.remove(key);
    }
    if has_own_timeout {
        more.set(keys::TIMEOUT, timeout.as_millis().to_string());
    }
    if per_method.countdown {
        more.set(TIME_LEFT, i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX));
    }
    Some(more)
}

/// Milliseconds in an attachment: a number, or its text.
pub(crate) fn millis(value: &Value) -> Option<Duration> {
    let millis = match value {
        Value::Int(value) => i64::from(*value),
        Value::Long(value) => *value,
        Value::Str(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    u64::try_from(millis).ok().filter(|millis| *millis > 0).map(Duration::from_millis)
}

impl Invoker for DubboInvoker {
    fn url(&self) -> &Url {
        &self.url
    }

    fn is_available(&self) -> bool {
        self.connections.is_available()
    }

    fn invoke(&self, call: Invocation) -> BoxFuture<'_, Result<Response, RpcError>> {
        Box::pin(self.call(call))
    }
}
