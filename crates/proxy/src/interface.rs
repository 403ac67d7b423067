//! What the generated code of `#[dubhe::service]` is made of.

use std::any::Any;
use std::sync::Arc;

use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::invocation::{Arguments, Method};
use dubhe_core::serialize::{ObjectReader, SerializeError};
use dubhe_core::service::{ConvertArguments, MethodDefinition, ReadArguments};
use dubhe_core::value::Value;
use serde::de::DeserializeOwned;

use crate::client::ServiceClient;

/// The identity of a service as its trait declares it.
pub trait ServiceInterface {
    /// Java interface name.
    const INTERFACE: &'static str;
    /// Default group; empty: none.
    const GROUP: &'static str;
    /// Default version; empty: none.
    const VERSION: &'static str;
    /// Java names of the methods, in declaration order.
    const METHODS: &'static [&'static str];
}

/// A typed client, generated from a service trait.
pub trait TypedClient: ServiceInterface + Sized {
    /// The client over `client`.
    fn from_client(client: ServiceClient) -> Self;
}

/// A method as a client calls it. `types` are (Java name, descriptor) pairs, one per parameter.
pub fn method<T: DeserializeOwned + Send + 'static>(
    name: &str,
    types: &[(String, String)],
    one_way: bool,
) -> Arc<Method> {
    let method = Method::new(name, descriptor(types)).returning::<T>();
    Arc::new(if one_way { method.one_way() } else { method })
}

/// A method as a provider serves it. `types` are (Java name, descriptor) pairs, one per parameter.
pub fn method_definition(
    name: &str,
    types: &[(String, String)],
    read: ReadArguments,
    convert: ConvertArguments,
) -> MethodDefinition {
    MethodDefinition {
        name: name.into(),
        descriptor: descriptor(types).into(),
        parameter_types: types.iter().map(|(name, _)| name.as_str().into()).collect(),
        read,
        convert,
    }
}

fn descriptor(types: &[(String, String)]) -> String {
    types.iter().map(|(_, descriptor)| descriptor.as_str()).collect()
}

/// The error of a call to a method index that the service does not have: a mistake of whoever built the call by hand.
pub fn no_such_index(interface: &str, index: usize) -> RpcError {
    RpcError::new(
        ErrorCode::MethodNotFound,
        format!("{interface} has no method number {index}: take the index from its definition"),
    )
}

/// A tuple of arguments: knows how to read itself value by value.
pub trait ArgumentTuple: Arguments + Clone + Sized {
    /// Reads the values of the tuple, in order.
    fn read(reader: &mut dyn ObjectReader) -> Result<Self, SerializeError>;

    /// Makes the tuple of dynamic values, of which there must be as many.
    fn convert(values: Vec<Value>) -> Result<Self, SerializeError>;
}

/// Reads the arguments `A` of a request: what [`MethodDefinition::read`] points to.
pub fn read_arguments<A: ArgumentTuple>(
    reader: &mut dyn ObjectReader,
) -> Result<Arc<dyn Arguments>, SerializeError> {
    Ok(Arc::new(A::read(reader)?))
}

/// Converts the arguments `A` of a generic call: what [`MethodDefinition::convert`] points to.
pub fn convert_arguments<A: ArgumentTuple>(values: Vec<Value>) -> Result<Arc<dyn Arguments>, SerializeError> {
    Ok(Arc::new(A::convert(values)?))
}

/// The arguments of a call as the tuple `A` that the method's definition made.
pub fn arguments<A: ArgumentTuple>(arguments: Arc<dyn Arguments>) -> Result<A, RpcError> {
    let any: Arc<dyn Any + Send + Sync> = arguments;
    match any.downcast::<A>() {
        Ok(tuple) => Ok(Arc::unwrap_or_clone(tuple)),
        Err(_) => Err(RpcError::new(
            ErrorCode::Serialization,
            "the arguments are of other types than the method's: a filter replaced them, or the call was built by hand",
        )),
    }
}

macro_rules! argument_tuple {
    ($count:literal $(, $name:ident $value:ident)*) => {
        impl<$($name),*> ArgumentTuple for ($($name,)*)
        where
            $($name: serde::Serialize + DeserializeOwned + Clone + std::fmt::Debug + Send + Sync + 'static,)*
        {
            #[allow(unused_variables)]
            fn read(reader: &mut dyn ObjectReader) -> Result<Self, SerializeError> {
                $(let $value = reader.read_as::<$name>()?;)*
                Ok(($($value,)*))
            }

            #[allow(unused_mut, unused_variables)]
            fn convert(values: Vec<Value>) -> Result<Self, SerializeError> {
                if values.len() != $count {
                    return Err(SerializeError::new(format!(
                        "args.length != types.length: {} arguments for {} parameters", values.len(), $count
                    )));
                }
                let mut values = values.into_iter();
                $(let $value = dubhe_core::value::from_value::<$name>(values.next().unwrap_or_default())?;)*
                Ok(($($value,)*))
            }
        }
    };
}

argument_tuple!(0);
argument_tuple!(1, A a);
argument_tuple!(2, A a, B b);
argument_tuple!(3, A a, B b, C c);
argument_tuple!(4, A a, B b, C c, D d);
argument_tuple!(5, A a, B b, C c, D d, E e);
argument_tuple!(6, A a, B b, C c, D d, E e, F f);
argument_tuple!(7, A a, B b, C c, D d, E e, F f, G g);
argument_tuple!(8, A a, B b, C c, D d, E e, F f, G g, H h);
argument_tuple!(9, A a, B b, C c, D d, E e, F f, G g, H h, I i);
argument_tuple!(10, A a, B b, C c, D d, E e, F f, G g, H h, I i, J j);
argument_tuple!(11, A a, B b, C c, D d, E e, F f, G g, H h, I i, J j, K k);
argument_tuple!(12, A a, B b, C c, D d, E e, F f, G g, H h, I i, J j, K k, L l);
