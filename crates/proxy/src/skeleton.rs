use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use dubhe_common::Url;
use dubhe_core::BoxFuture;
use dubhe_core::error::{ErrorCode, Exception, RpcError};
use dubhe_core::invocation::{Attachments, ECHO, Invocation};
use dubhe_core::invoker::Invoker;
use dubhe_core::response::{Outcome, Payload, Response};
use dubhe_core::service::Service;
use dubhe_core::value::Value;
use futures::FutureExt;

use crate::{context, generalise};

/// Attachments that are the protocol's own business and are hidden from services. Origin: `ContextFilter` of Dubbo 3.1.
const HIDDEN: [&str; 11] = [
    "path",
    "interface",
    "group",
    "version",
    "dubbo",
    "token",
    "timeout",
    "_TO",
    "async",
    "dubbo.tag",
    "dubbo.force.tag",
];

/// Gives invocations to a service object: the innermost invoker of an export.
///
/// It answers `$echo` with its argument, turns `$invoke` into a call of the method it names, and makes of what goes wrong in the
/// service an exception that a Java consumer can read: a declared [`Exception`] as it is, any other [`RpcError`] as
/// `org.apache.dubbo.rpc.RpcException`, a panic as `java.lang.RuntimeException`.
pub struct Skeleton {
    url: Url,
    service: Arc<dyn Service>,
}

impl Skeleton {
    /// A skeleton that serves `service` as `url` says.
    pub fn new(url: Url, service: Arc<dyn Service>) -> Self {
        Self { url, service }
    }

    async fn serve(&self, mut call: Invocation) -> Result<Response, RpcError> {
        if &*call.method().name == ECHO {
            return Ok(Response::of(Payload::value(call.arguments().value(0).unwrap_or_default())));
        }
        if call.is_generic() {
            return self.serve_generic(call).await;
        }
        let definition = self.service.definition();
        let Some(index) = definition.find(&call.method().name, &call.method().descriptor) else {
            return Err(self.no_such_method(&call.method().name));
        };
        let attachments = visible(std::mem::take(call.attachments_mut()));
        self.run(index, call, attachments).await
    }

    /// Runs `$invoke(method, types, arguments)`: the result goes back generalised, a POJO as a map with its `class`.
    async fn serve_generic(&self, mut call: Invocation) -> Result<Response, RpcError> {
        let name = call.method_name().to_owned();
        let types = call.arguments().value(1).unwrap_or_default();
        let values = match call.arguments().value(2) {
            Some(Value::List(list)) => list.items.clone(),
            _ => Vec::new(),
        };
        let index = self.generic_method(&name, &types, values.len())?;
        let method = &self.service.definition().methods()[index];
        if values.len() != method.parameter_types.len() {
            return Err(refusal(
                "GenericFilter#invoke args.length != types.length, please check your params".to_owned(),
            ));
        }
        let arguments = (method.convert)(values).map_err(|error| {
            refusal(format!("the arguments of the generic call {name} do not fit {method:?}: {error}"))
        })?;
        let attachments = visible(std::mem::take(call.attachments_mut()));
        let mut response = self.run(index, call.with_arguments(arguments), attachments).await?;
        response.outcome = match response.outcome {
            Outcome::Value(payload) => Outcome::Value(Payload::value(generalise(payload)?)),
            Outcome::Exception(exception) => Outcome::Exception(generic_exception(exception)),
        };
        Ok(response)
    }

    /// The method of that name whose parameter types are those given; without types, the only one of that name (and count).
    fn generic_method(&self, name: &str, types: &Value, count: usize) -> Result<usize, RpcError> {
        let definition = self.service.definition();
        let named = definition.named(name);
        let wanted: Option<Vec<&str>> = match types {
            Value::List(list) if !list.items.is_empty() || count == 0 => {
                Some(list.items.iter().map(|one| one.as_str().unwrap_or("")).collect())
            }
            _ => None,
        };
        let exact = named.iter().copied().find(|&index| match &wanted {
            Some(wanted) => {
                let own = &definition.methods()[index].parameter_types;
                own.len() == wanted.len()
                    && own.iter().zip(wanted).all(|(own, wanted)| same_java_type(own, wanted))
            }
            None => named.len() == 1 || definition.methods()[index].parameter_types.len() == count,
        });
        exact.ok_or_else(|| {
            if named.is_empty() {
                return self.no_such_method(name);
            }
            let known: Vec<String> =
                named.iter().map(|&index| format!("{:?}", definition.methods()[index])).collect();
            refusal(format!(
                "{} has no method {name}({}): known are {}",
                definition.interface(),
                wanted.unwrap_or_default().join(","),
                known.join(", ")
            ))
        })
    }

    async fn run(
        &self,
        index: usize,
        call: Invocation,
        attachments: Attachments,
    ) -> Result<Response, RpcError> {
        // The call itself runs in there too, not only its future: a service written by hand may do anything in either.
        let serve = AssertUnwindSafe(async { self.service.call(index, call).await }).catch_unwind();
        let (outcome, back) = context::serving(attachments, serve).await;
        let mut response = match outcome {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => Response::exception(as_exception(error)),
            Err(panic) => {
                let text = panic_text(&*panic);
                tracing::error!(rpc.service = %self.url.service_key(), panic = %text, "service method panicked");
                Response::exception(Exception::new(
                    "java.lang.RuntimeException",
                    format!("the service panicked: {text}"),
                ))
            }
        };
        for (key, value) in back.iter() {
            response.attachments.set(key.to_owned(), value.clone());
        }
        Ok(response)
    }

    fn no_such_method(&self, name: &str) -> RpcError {
        RpcError::new(
            ErrorCode::MethodNotFound,
            format!(
                "org.apache.dubbo.rpc.RpcException: Failed to invoke remote proxy method {name} to {}, cause: Not found method \"{name}\" in class {}.",
                // Without parameters: a token may be among them.
                self.url.to_identity_string(),
                self.service.definition().interface()
            ),
        )
    }
}

impl Invoker for Skeleton {
    fn url(&self) -> &Url {
        &self.url
    }

    fn is_available(&self) -> bool {
        true
    }

    fn invoke(&self, call: Invocation) -> BoxFuture<'_, Result<Response, RpcError>> {
        Box::pin(self.serve(call))
    }
}

impl std::fmt::Debug for Skeleton {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Skeleton").field("url", &self.url).finish_non_exhaustive()
    }
}

fn visible(mut attachments: Attachments) -> Attachments {
    for key in HIDDEN {
        attachments.remove(key);
    }
    attachments
}

fn refusal(text: String) -> RpcError {
    RpcError::new(ErrorCode::Unknown, format!("org.apache.dubbo.rpc.RpcException: {text}"))
}

/// What a failed method sends back.
fn as_exception(error: RpcError) -> Exception {
    match error.exception() {
        Some(exception) => exception.clone(),
        None => Exception::new("org.apache.dubbo.rpc.RpcException", error.message())
            .with_field("code", error.code() as i32),
    }
}

/// Class, message and fields of an exception as generic callers read them. Origin: `GenericException`.
fn generic_exception(exception: Exception) -> Exception {
    let class = Value::from(std::sync::Arc::clone(&exception.class));
    let message = exception.message.clone().map_or(Value::Null, Value::from);
    let text = exception.to_string();
    Exception { fields: Vec::new(), ..Exception::new("org.apache.dubbo.rpc.service.GenericException", text) }
        .with_field("exceptionClass", class)
        .with_field("exceptionMessage", message)
}

/// The return value as plain values and maps.
fn generalise(payload: Payload) -> Result<Value, RpcError> {
    if payload.is_null() {
        return Ok(Value::Null);
    }
    payload
        .to_generic_value()
        .map(generalise::generalise)
        .map_err(|error| refusal(format!("the result cannot be generalised: {error}")))
}

/// Whether two Java names are the same type: `java.lang.String[]` is also written `[Ljava.lang.String;`.
fn same_java_type(own: &str, wanted: &str) -> bool {
    own == wanted || plain_array(wanted).is_some_and(|wanted| own == wanted)
}

fn plain_array(name: &str) -> Option<String> {
    let dimensions = name.chars().take_while(|c| *c == '[').count();
    if dimensions == 0 {
        return None;
    }
    let element = match name.get(dimensions..)? {
        "Z" => "boolean",
        "B" => "byte",
        "C" => "char",
        "D" => "double",
        "F" => "float",
        "I" => "int",
        "J" => "long",
        "S" => "short",
        class => class.strip_prefix('L')?.strip_suffix(';')?,
    };
    Some(format!("{element}{}", "[]".repeat(dimensions)))
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}
