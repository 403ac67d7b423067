use std::sync::Arc;

use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::invocation::{GENERIC_DESCRIPTOR, INVOKE, Invocation, Method};
use dubhe_core::invoker::SharedInvoker;
use dubhe_core::value::{List, Value, from_value};
use serde::de::DeserializeOwned;

use crate::client::ServiceClient;
use crate::options::CallOptions;

/// Calls methods by name, with dynamic values: for gateways and tools that do not know the interface at build time.
///
/// POJOs go as maps with their fields, and with their class name under `class` where the provider cannot tell it from the
/// parameter's type; they come back as maps with a `class` entry.
#[derive(Clone, Debug)]
pub struct GenericService {
    client: ServiceClient,
    invoke: Arc<Method>,
}

impl GenericService {
    /// Generic calls over `invoker`.
    pub fn new(invoker: SharedInvoker) -> Self {
        Self {
            client: ServiceClient::new(invoker),
            invoke: Arc::new(Method::new(INVOKE, GENERIC_DESCRIPTOR)),
        }
    }

    /// The same service with `options` on each call, instead of those that it had.
    pub fn with(&self, options: CallOptions) -> Self {
        Self { client: self.client.with(options), invoke: Arc::clone(&self.invoke) }
    }

    /// What calls are given to.
    pub fn invoker(&self) -> &SharedInvoker {
        self.client.invoker()
    }

    /// Calls `method`; `parameter_types` are Java names (`java.lang.String`, `int`, `java.util.List`), one per argument. Without any
    /// the provider goes by the method's name, which must not be overloaded then.
    pub async fn invoke(
        &self,
        method: &str,
        parameter_types: &[&str],
        arguments: Vec<Value>,
    ) -> Result<Value, RpcError> {
        let types = if parameter_types.is_empty() && !arguments.is_empty() {
            Value::Null
        } else {
            array("[string", parameter_types.iter().map(|name| Value::from(*name)).collect())
        };
        let call = vec![Value::from(method), types, array("[object", arguments)];
        let call =
            Invocation::new(Arc::clone(&self.invoke), Arc::new(call)).with_attachment("generic", "true");
        let payload = self.client.invoke(call).await?;
        match payload.take::<Value>() {
            Ok(value) => Ok(value),
            Err(payload) if payload.is_null() => Ok(Value::Null),
            // A service in this process, or a filter that answers itself.
            Err(payload) => payload.to_value().map_err(|error| {
                RpcError::new(
                    ErrorCode::Serialization,
                    format!("the result of {method} has no dynamic form: {error}"),
                )
            }),
        }
    }

    /// As [`GenericService::invoke`], with the result converted to `T`.
    pub async fn invoke_as<T: DeserializeOwned>(
        &self,
        method: &str,
        parameter_types: &[&str],
        arguments: Vec<Value>,
    ) -> Result<T, RpcError> {
        let value = self.invoke(method, parameter_types, arguments).await?;
        from_value(value).map_err(|error| {
            RpcError::new(
                ErrorCode::Serialization,
                format!("the result of {method} does not fit the type asked for: {error}"),
            )
        })
    }
}

fn array(class: &str, items: Vec<Value>) -> Value {
    Value::List(Arc::new(List { class: Some(class.into()), items }))
}
