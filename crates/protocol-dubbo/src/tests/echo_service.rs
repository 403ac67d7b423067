//! A service for tests, and the messages to call it by hand.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use dubhe_common::Url;
use dubhe_core::BoxFuture;
use dubhe_core::error::{ErrorCode, Exception, RpcError};
use dubhe_core::invocation::{Arguments, Attachments, Invocation};
use dubhe_core::invoker::Invoker;
use dubhe_core::protocol::{Exported, Exporter, Protocol};
use dubhe_core::response::{Payload, Response};
use dubhe_core::serialize::{ObjectReader, ObjectWriter, Serialization, SerializeError};
use dubhe_core::service::{MethodDefinition, ServiceDefinition};
use dubhe_core::value::Value;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::loopback::{Exchange, Loopback};
use super::tagged::{TAGGED, Tagged};
use crate::DubboProtocol;

pub(super) const INTERFACE: &str = "demo.Echo";
pub(super) const TEXT: &str = "Ljava/lang/String;";

/// Answers by the name of the method, and keeps the calls.
#[derive(Debug)]
pub(super) struct EchoService {
    url: Url,
    pub(super) calls: Mutex<Vec<Invocation>>,
    pub(super) go_on: Notify,
}

impl Invoker for EchoService {
    fn url(&self) -> &Url {
        &self.url
    }

    fn is_available(&self) -> bool {
        true
    }

    fn invoke(&self, call: Invocation) -> BoxFuture<'_, Result<Response, RpcError>> {
        Box::pin(async move {
            let argument = call.arguments().value(0).unwrap_or_default();
            self.calls.lock().push(call.clone());
            match &*call.method().name {
                "say" | "$echo" => {
                    let mut response = Response::of(Payload::value(argument));
                    response.attachments.set("served-by", "echo");
                    Ok(response)
                }
                "fail" => Ok(Response::exception(Exception::new("demo.Failure", "no luck"))),
                "refuse" => Err(RpcError::new(ErrorCode::LimitExceeded, "too much")),
                "unwritable" => Ok(Response::of(Payload::opaque(7_u8))),
                "wait" => {
                    self.go_on.notified().await;
                    Ok(Response::of(Payload::null()))
                }
                _ => Ok(Response::of(Payload::null())),
            }
        })
    }
}

fn method(name: &str, descriptor: &str) -> MethodDefinition {
    fn read(reader: &mut dyn ObjectReader) -> Result<Arc<dyn Arguments>, SerializeError> {
        Ok(Arc::new(vec![Value::from(reader.read_as::<String>()?)]))
    }
    fn read_none(_: &mut dyn ObjectReader) -> Result<Arc<dyn Arguments>, SerializeError> {
        Ok(Arc::new(()))
    }
    MethodDefinition {
        name: name.into(),
        descriptor: descriptor.into(),
        parameter_types: Vec::new(),
        read: if descriptor.is_empty() { read_none } else { read },
        convert: |values| Ok(Arc::new(values)),
    }
}

/// A protocol on a loopback of its own.
pub(super) struct World {
    pub(super) net: Arc<Loopback>,
    pub(super) protocol: DubboProtocol,
}

impl World {
    pub(super) fn new() -> Self {
        let net = Loopback::new();
        let serializations: Vec<Arc<dyn Serialization>> =
            vec![Arc::new(TAGGED), Arc::new(Tagged(6, "other"))];
        let protocol = DubboProtocol::new(Arc::new(Exchange(Arc::clone(&net))), serializations);
        Self { net, protocol }
    }

    /// Exports the service at `dubbo://127.0.0.1:PORT/demo.Echo?PARAMETERS`.
    pub(super) async fn export(
        &self,
        port: u16,
        parameters: &str,
    ) -> Result<(Box<dyn Exporter>, Arc<EchoService>), RpcError> {
        let url = url(port, parameters);
        let service =
            Arc::new(EchoService { url: url.clone(), calls: Mutex::default(), go_on: Notify::new() });
        let names = ["say", "fail", "refuse", "unwritable", "wait"];
        let mut methods: Vec<_> = names.iter().map(|name| method(name, TEXT)).collect();
        methods.push(method("ping", ""));
        let definition = Arc::new(ServiceDefinition::new(INTERFACE, methods));
        let exported = Exported { url, definition, invoker: Arc::clone(&service) as _ };
        Ok((self.protocol.export(exported).await?, service))
    }
}

pub(super) fn url(port: u16, parameters: &str) -> Url {
    let text = format!("dubbo://127.0.0.1:{port}/{INTERFACE}?interface={INTERFACE}&{parameters}");
    Url::parse(&text).unwrap()
}

pub(super) fn say(text: &str) -> Invocation {
    call("say", text)
}

pub(super) fn call(method: &str, text: &str) -> Invocation {
    Invocation::dynamic(method, TEXT, vec![text.into()])
}

/// A request body, written by hand.
#[derive(Clone, Debug)]
pub(super) struct Body {
    pub(super) dubbo: Option<&'static str>,
    pub(super) path: &'static str,
    pub(super) version: &'static str,
    pub(super) method: &'static str,
    pub(super) descriptor: &'static str,
    pub(super) arguments: Vec<Value>,
    pub(super) attachments: Vec<(&'static str, Value)>,
}

impl Default for Body {
    fn default() -> Self {
        Self {
            dubbo: Some("2.0.2"),
            path: INTERFACE,
            version: "0.0.0",
            method: "say",
            descriptor: TEXT,
            arguments: vec!["hi".into()],
            attachments: Vec::new(),
        }
    }
}

impl Body {
    pub(super) fn bytes(&self) -> Bytes {
        encode(&mut |writer| {
            match self.dubbo {
                Some(version) => writer.write_str(version)?,
                None => writer.write_null()?,
            }
            for text in [self.path, self.version, self.method, self.descriptor] {
                writer.write_str(text)?;
            }
            self.arguments.iter().try_for_each(|value| writer.write_value(value))?;
            writer.write_attachments(&self.attachments.iter().cloned().collect::<Attachments>())
        })
    }
}

pub(super) fn encode(write: &mut dyn FnMut(&mut dyn ObjectWriter) -> Result<(), SerializeError>) -> Bytes {
    let mut out = BytesMut::new();
    TAGGED.encode(&mut out, write).unwrap();
    out.freeze()
}
