//! Layers 10 and 8: a service as its provider offers it.

use std::collections::HashMap;
use std::fmt::{self, Debug};
use std::sync::Arc;

use crate::BoxFuture;
use crate::error::RpcError;
use crate::invocation::{Arguments, Invocation};
use crate::response::Response;
use crate::serialize::{ObjectReader, SerializeError};
use crate::value::Value;

/// A service object: what the annotated traits generate, or what a user writes by hand.
pub trait Service: Send + Sync + 'static {
    /// Interface and methods; the same value each time.
    fn definition(&self) -> &Arc<ServiceDefinition>;

    /// Runs the method at `index` of the definition. The invocation's arguments are what that method's
    /// [`MethodDefinition::read`] or [`MethodDefinition::convert`] made.
    ///
    /// A business failure is an `Ok` response with an exception; an `Err` is a refusal to run.
    fn call(&self, index: usize, call: Invocation) -> BoxFuture<'_, Result<Response, RpcError>>;
}

/// Reads the arguments of one method from a request body.
pub type ReadArguments = fn(&mut dyn ObjectReader) -> Result<Arc<dyn Arguments>, SerializeError>;
/// Makes the arguments of one method from the dynamic values of a generic call.
pub type ConvertArguments = fn(Vec<Value>) -> Result<Arc<dyn Arguments>, SerializeError>;

/// One method of a service.
#[derive(Clone)]
pub struct MethodDefinition {
    /// Name on the wire.
    pub name: Arc<str>,
    /// JVM descriptors of the parameters, e.g. `Ljava/lang/String;I`.
    pub descriptor: Arc<str>,
    /// Java names of the parameter types, e.g. `java.lang.String`, `int`: what generic calls name them by.
    pub parameter_types: Vec<Arc<str>>,
    /// Reads typed arguments.
    pub read: ReadArguments,
    /// Makes typed arguments from dynamic ones.
    pub convert: ConvertArguments,
}

impl Debug for MethodDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name, self.parameter_types.join(","))
    }
}

/// A service's interface and methods.
#[derive(Debug)]
pub struct ServiceDefinition {
    interface: Arc<str>,
    methods: Vec<MethodDefinition>,
    by_name: HashMap<Arc<str>, Vec<usize>>,
}

impl ServiceDefinition {
    /// A definition of `interface` (the Java interface name) with `methods`; overloads share a name.
    pub fn new(interface: impl Into<Arc<str>>, methods: Vec<MethodDefinition>) -> Self {
        let mut by_name: HashMap<Arc<str>, Vec<usize>> = HashMap::new();
        for (index, method) in methods.iter().enumerate() {
            by_name.entry(Arc::clone(&method.name)).or_default().push(index);
        }
        Self { interface: interface.into(), methods, by_name }
    }

    /// Java interface name.
    pub fn interface(&self) -> &Arc<str> {
        &self.interface
    }

    /// The methods, in declaration order.
    pub fn methods(&self) -> &[MethodDefinition] {
        &self.methods
    }

    /// The method of exactly this name and descriptor.
    pub fn find(&self, name: &str, descriptor: &str) -> Option<usize> {
        self.named(name).iter().copied().find(|&index| *self.methods[index].descriptor == *descriptor)
    }

    /// The methods of that name.
    pub fn named(&self, name: &str) -> &[usize] {
        self.by_name.get(name).map_or(&[], Vec::as_slice)
    }

    /// The `methods` parameter of the registered URL: method names, sorted, once each; `*` when there are none.
    pub fn method_list(&self) -> String {
        let mut names: Vec<&str> = self.by_name.keys().map(|name| &**name).collect();
        names.sort_unstable();
        if names.is_empty() { "*".to_owned() } else { names.join(",") }
    }
}
