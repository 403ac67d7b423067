use std::sync::Arc;

use dubhe_core::error::{Delivery, ErrorCode, RpcError};
use dubhe_core::invocation::{Arguments, ECHO, ECHO_DESCRIPTOR, Invocation, Method};
use dubhe_core::invoker::SharedInvoker;
use dubhe_core::response::{Outcome, Payload};
use dubhe_core::value::{Value, from_value};
use serde::de::DeserializeOwned;

use crate::options::CallOptions;

/// Calls the methods of one service. Cheap to clone; all clones share the reference.
#[derive(Clone, Debug)]
pub struct ServiceClient {
    invoker: SharedInvoker,
    options: Option<Arc<CallOptions>>,
}

impl ServiceClient {
    /// A client over `invoker`: normally a cluster.
    pub fn new(invoker: SharedInvoker) -> Self {
        Self { invoker, options: None }
    }

    /// The same client with `options` on each call, instead of those that it had.
    pub fn with(&self, options: CallOptions) -> Self {
        Self { invoker: Arc::clone(&self.invoker), options: Some(Arc::new(options)) }
    }

    /// What calls are given to.
    pub fn invoker(&self) -> &SharedInvoker {
        &self.invoker
    }

    /// Whether a provider can be reached now.
    pub fn is_available(&self) -> bool {
        self.invoker.is_available()
    }

    /// Calls `method` and gives its return value as `T`.
    ///
    /// Errors: [`RpcError::exception`] is what the service threw; everything else is a failure of the call. A null that comes
    /// for a `T` that cannot be null is an error of code [`ErrorCode::Serialization`]: use `Option<T>`.
    pub async fn call<T, A>(&self, method: &Arc<Method>, arguments: A) -> Result<T, RpcError>
    where
        T: DeserializeOwned + Send + 'static,
        A: Arguments,
    {
        let payload = self.invoke(Invocation::new(Arc::clone(method), Arc::new(arguments))).await?;
        typed(payload, method)
    }

    /// Sends `value` to a provider's `$echo` and gives back what it returns: whether a provider can be reached and decodes.
    pub async fn echo(&self, value: Value) -> Result<Value, RpcError> {
        let method = Arc::new(Method::new(ECHO, ECHO_DESCRIPTOR));
        let payload = self.invoke(Invocation::new(Arc::clone(&method), Arc::new(vec![value]))).await?;
        typed(payload, &method)
    }

    /// Performs a call that was put together by hand.
    pub async fn invoke(&self, call: Invocation) -> Result<Payload, RpcError> {
        let call = match &self.options {
            Some(options) => options.apply(call),
            None => call,
        };
        let response = self.invoker.invoke(call).await?;
        if let Some(options) = &self.options {
            options.received(response.attachments);
        }
        match response.outcome {
            Outcome::Value(payload) => Ok(payload),
            Outcome::Exception(exception) => Err(RpcError::business(exception)),
        }
    }
}

/// The payload as the type that the method's reply decoder makes; null becomes whatever `T` is for null.
fn typed<T: DeserializeOwned + 'static>(payload: Payload, method: &Method) -> Result<T, RpcError> {
    let payload = match payload.take::<T>() {
        Ok(value) => return Ok(value),
        Err(payload) => payload,
    };
    let value = if payload.is_null() {
        Value::Null
    } else {
        payload.take::<Value>().map_err(|_| mismatch(method))?
    };
    from_value::<T>(value).map_err(|error| {
        RpcError::new(
            ErrorCode::Serialization,
            format!("the return value of {method:?} does not fit its Rust type: {error}"),
        )
        .with_delivery(Delivery::Executed)
    })
}

fn mismatch(method: &Method) -> RpcError {
    RpcError::new(
        ErrorCode::Serialization,
        format!("the reply of {method:?} was decoded to another type than the client expects: its `Method` was built for a different return type"),
    )
    .with_delivery(Delivery::Executed)
}
