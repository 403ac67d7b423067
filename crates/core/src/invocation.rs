//! One call on its way: method, arguments, attachments, and how the reply is to be read.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::response::Payload;
use crate::serialize::{ObjectReader, ObjectWriter, SerializeError};
use crate::value::Value;

pub use crate::attachments::Attachments;

/// Name of the generic call's method on the wire.
pub const INVOKE: &str = "$invoke";
/// Name of the asynchronous generic call's method; on the wire the same as [`INVOKE`].
pub const INVOKE_ASYNC: &str = "$invokeAsync";
/// Name of the echo test's method.
pub const ECHO: &str = "$echo";
/// Type descriptor of [`INVOKE`].
pub const GENERIC_DESCRIPTOR: &str = "Ljava/lang/String;[Ljava/lang/String;[Ljava/lang/Object;";
/// Type descriptor of [`ECHO`].
pub const ECHO_DESCRIPTOR: &str = "Ljava/lang/Object;";

/// The arguments of one call, typed or dynamic.
///
/// Implemented for tuples of serialisable values and for `Vec<Value>`; they are encoded once per attempt, straight
/// to bytes.
pub trait Arguments: Any + Send + Sync + fmt::Debug {
    /// How many arguments there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes argument `index` (below [`Arguments::len`]).
    fn write(&self, index: usize, writer: &mut dyn ObjectWriter) -> Result<(), SerializeError>;

    /// Argument `index` as a dynamic value; `None` when out of range or when it has no such form.
    fn value(&self, index: usize) -> Option<Value>;

    /// Argument `index` as Java's `String.valueOf` would print simple values; what rules and hashes look at.
    fn text(&self, index: usize) -> Option<String> {
        self.value(index).map(|value| value.to_java_text())
    }

    /// Shows the text of argument `index` to `look`, for the usual types without allocation. Returns `false` where there is no text.
    fn with_text(&self, index: usize, look: &mut dyn FnMut(&str)) -> bool {
        self.text(index).map(|text| look(&text)).is_some()
    }
}

/// Reads a reply's value into the type that the caller expects.
///
/// A plain function, so that typed clients need no allocation for it.
pub type ReplyDecoder = fn(&mut dyn ObjectReader) -> Result<Payload, SerializeError>;

/// A method as a consumer calls it. Built once per client method and shared by its calls.
#[derive(Clone)]
pub struct Method {
    /// Name on the wire, e.g. `sayHello`.
    pub name: Arc<str>,
    /// JVM descriptors of the parameters without separators, e.g. `Ljava/lang/String;I`. Empty: no parameters.
    pub descriptor: Arc<str>,
    /// How the reply is read; [`decode_value`] for dynamic calls.
    pub reply: ReplyDecoder,
    /// Whether no reply is wanted at all (`return=false`): the call ends when the request is written.
    pub one_way: bool,
}

impl Method {
    /// A two-way method whose reply is read as a dynamic [`Value`].
    pub fn new(name: impl Into<Arc<str>>, descriptor: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), descriptor: descriptor.into(), reply: decode_value, one_way: false }
    }

    /// The same method with its reply read as `T`.
    pub fn returning<T: serde::de::DeserializeOwned + Send + 'static>(mut self) -> Self {
        self.reply = decode_as::<T>;
        self
    }

    /// The same method without a reply.
    pub fn one_way(mut self) -> Self {
        self.one_way = true;
        self
    }
}

impl fmt::Debug for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name, self.descriptor)
    }
}

/// Reads a reply as `T`.
pub fn decode_as<T: serde::de::DeserializeOwned + Send + 'static>(
    reader: &mut dyn ObjectReader,
) -> Result<Payload, SerializeError> {
    reader.read_as::<T>().map(Payload::opaque)
}

/// Reads a reply as a dynamic [`Value`].
pub fn decode_value(reader: &mut dyn ObjectReader) -> Result<Payload, SerializeError> {
    reader.read_value().map(Payload::value)
}

/// One call: what is called, with what, and what goes along. Cheap to clone: each attempt gets its own copy, so that
/// what one attempt adds (a provider's token, group or timeout) never reaches the next.
#[derive(Clone, Debug)]
pub struct Invocation {
    method: Arc<Method>,
    arguments: Arc<dyn Arguments>,
    attachments: Attachments,
    timeout: Option<Duration>,
    deadline: Option<Instant>,
    hash: Option<u64>,
}

impl Invocation {
    /// A call of `method` with `arguments`.
    pub fn new(method: Arc<Method>, arguments: Arc<dyn Arguments>) -> Self {
        Self { method, arguments, attachments: Attachments::new(), timeout: None, deadline: None, hash: None }
    }

    /// A dynamic call, for tests and generic invocation.
    pub fn dynamic(name: &str, descriptor: &str, arguments: Vec<Value>) -> Self {
        Self::new(Arc::new(Method::new(name, descriptor)), Arc::new(arguments))
    }

    /// The method as it goes on the wire (`$invoke` for generic calls).
    #[inline]
    pub fn method(&self) -> &Arc<Method> {
        &self.method
    }

    /// The name that rules, weights and statistics go by: of a generic call, the name inside it.
    #[inline]
    pub fn method_name(&self) -> &str {
        self.generic_method_name().unwrap_or(&self.method.name)
    }

    fn generic_method_name(&self) -> Option<&str> {
        if !self.is_generic() {
            return None;
        }
        let arguments: &dyn Any = &*self.arguments;
        arguments.downcast_ref::<Vec<Value>>()?.first()?.as_str().map(str::trim)
    }

    /// Whether this is `$invoke` or `$invokeAsync`.
    #[inline]
    pub fn is_generic(&self) -> bool {
        // Names of services' own methods rarely begin so: most calls end here.
        self.method.name.starts_with('$')
            && matches!(&*self.method.name, INVOKE | INVOKE_ASYNC)
            && &*self.method.descriptor == GENERIC_DESCRIPTOR
    }

    /// The arguments as they go on the wire.
    #[inline]
    pub fn arguments(&self) -> &Arc<dyn Arguments> {
        &self.arguments
    }

    /// Text of the service's own argument `index` (inside a generic call: of its value list), for rules and hashes.
    pub fn argument_text(&self, index: usize) -> Option<String> {
        if self.is_generic() {
            return self
                .arguments
                .value(2)
                .and_then(|list| list.element(index).map(|value| value.to_java_text()));
        }
        self.arguments.text(index)
    }

    /// The arguments alone, to be taken apart by the service.
    pub fn into_arguments(self) -> Arc<dyn Arguments> {
        self.arguments
    }

    /// As [`Invocation::argument_text`], but shows the text to `look`, for the usual types without allocation. Returns `false` where
    /// there is no such argument.
    pub fn with_argument_text(&self, index: usize, look: &mut dyn FnMut(&str)) -> bool {
        if self.is_generic() {
            return self.argument_text(index).map(|text| look(&text)).is_some();
        }
        self.arguments.with_text(index, look)
    }

    /// Attachments that go with the request.
    #[inline]
    pub fn attachments(&self) -> &Attachments {
        &self.attachments
    }

    /// Attachments, to be changed.
    pub fn attachments_mut(&mut self) -> &mut Attachments {
        &mut self.attachments
    }

    /// The same call with one more attachment.
    pub fn with_attachment(
        mut self,
        key: impl Into<std::borrow::Cow<'static, str>>,
        value: impl Into<Value>,
    ) -> Self {
        self.attachments.set(key, value);
        self
    }

    /// Time limit of one attempt that the caller set for this call; it beats every URL parameter.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// The same call with a time limit per attempt.
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// When the whole logical call, all attempts together, must be over.
    #[inline]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// The same call with a deadline for all attempts together.
    pub fn with_deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// The same call answered by another method value (a filter that rewrites it).
    pub fn with_method(mut self, method: Arc<Method>) -> Self {
        self.method = method;
        self
    }

    /// The same call with other arguments (a filter that rewrites them).
    pub fn with_arguments(mut self, arguments: Arc<dyn Arguments>) -> Self {
        self.arguments = arguments;
        self
    }

    /// Hash chosen by the caller for consistent hashing, instead of the arguments' text.
    pub fn hash(&self) -> Option<u64> {
        self.hash
    }

    /// The same call with a hash for consistent hashing.
    pub fn with_hash(mut self, hash: u64) -> Self {
        self.hash = Some(hash);
        self
    }
}

impl Arguments for Vec<Value> {
    fn len(&self) -> usize {
        self.as_slice().len()
    }

    fn write(&self, index: usize, writer: &mut dyn ObjectWriter) -> Result<(), SerializeError> {
        match self.get(index) {
            Some(value) => writer.write_value(value),
            None => Err(SerializeError::new(format!(
                "argument {index} of {} does not exist",
                self.as_slice().len()
            ))),
        }
    }

    fn value(&self, index: usize) -> Option<Value> {
        self.get(index).cloned()
    }

    fn with_text(&self, index: usize, look: &mut dyn FnMut(&str)) -> bool {
        match self.get(index) {
            Some(Value::Str(text)) => look(text),
            Some(value) => look(&value.to_java_text()),
            None => return false,
        }
        true
    }
}

macro_rules! tuple_arguments {
    ($count:literal $(, $name:ident $at:tt)*) => {
        impl<$($name),*> Arguments for ($($name,)*)
        where
            $($name: serde::Serialize + fmt::Debug + Send + Sync + 'static,)*
        {
            fn len(&self) -> usize {
                $count
            }

            #[allow(unused_variables)]
            fn write(&self, index: usize, writer: &mut dyn ObjectWriter) -> Result<(), SerializeError> {
                match index {
                    $($at => writer.write(&self.$at),)*
                    _ => Err(SerializeError::new(format!("argument {index} of {} does not exist", $count))),
                }
            }

            fn value(&self, index: usize) -> Option<Value> {
                match index {
                    $($at => crate::value::to_value(&self.$at).ok(),)*
                    _ => None,
                }
            }

            #[allow(unused_variables)]
            fn with_text(&self, index: usize, look: &mut dyn FnMut(&str)) -> bool {
                let known = match index {
                    $($at => crate::text::with_simple_text(&self.$at, look),)*
                    _ => false,
                };
                known || self.text(index).map(|text| look(&text)).is_some()
            }
        }
    };
}

tuple_arguments!(0);
tuple_arguments!(1, A 0);
tuple_arguments!(2, A 0, B 1);
tuple_arguments!(3, A 0, B 1, C 2);
tuple_arguments!(4, A 0, B 1, C 2, D 3);
tuple_arguments!(5, A 0, B 1, C 2, D 3, E 4);
tuple_arguments!(6, A 0, B 1, C 2, D 3, E 4, F 5);
tuple_arguments!(7, A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuple_arguments!(8, A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
tuple_arguments!(9, A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8);
tuple_arguments!(10, A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9);
tuple_arguments!(11, A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10);
tuple_arguments!(12, A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11);
