//! What a call brings back: a value or the service's exception, and response attachments.

use std::any::Any;
use std::fmt;

use crate::error::Exception;
use crate::invocation::Attachments;
use crate::serialize::{ObjectWriter, SerializeError};
use crate::value::Value;

/// The outcome of a call that reached the service.
#[derive(Debug)]
pub struct Response {
    /// Value or exception.
    pub outcome: Outcome,
    /// Attachments of the response (`dubbo` = the protocol version among them, from Java providers).
    pub attachments: Attachments,
}

/// What the service answered.
#[derive(Debug)]
pub enum Outcome {
    /// It returned; for `void` and for null, [`Payload::null`].
    Value(Payload),
    /// It threw: a business outcome, never retried.
    Exception(Exception),
}

impl Response {
    /// A response that holds `payload`.
    pub const fn of(payload: Payload) -> Self {
        Self { outcome: Outcome::Value(payload), attachments: Attachments::new() }
    }

    /// A response that holds what the service threw.
    pub const fn exception(exception: Exception) -> Self {
        Self { outcome: Outcome::Exception(exception), attachments: Attachments::new() }
    }
}

type WritePayload = fn(&(dyn Any + Send), &mut dyn ObjectWriter) -> Result<(), SerializeError>;
type PayloadValue = fn(&(dyn Any + Send)) -> Result<Value, SerializeError>;

/// A returned value of a type that the layers in between do not know.
///
/// On the consumer it was decoded to the type that the caller expects; on the provider it knows how to write itself.
pub struct Payload {
    value: Option<Box<dyn Any + Send>>,
    form: Option<Form>,
}

/// What a payload that can be written knows of its type.
#[derive(Clone, Copy)]
struct Form {
    write: WritePayload,
    to_value: PayloadValue,
    to_generic_value: PayloadValue,
}

const NO_DYNAMIC_FORM: &str = "a decoded reply has no dynamic form";
const NOT_ITS_TYPE: &str = "the payload is not of the type that it was made from";

impl Payload {
    /// Null, and what `void` methods return.
    pub const fn null() -> Self {
        Self { value: None, form: None }
    }

    /// A value that only its receiver knows: it cannot be written.
    pub fn opaque<T: Send + 'static>(value: T) -> Self {
        Self { value: Some(Box::new(value)), form: None }
    }

    /// A value that a provider returns: it can be written.
    pub fn of<T: serde::Serialize + Send + 'static>(value: T) -> Self {
        fn write<T: serde::Serialize + 'static>(
            value: &(dyn Any + Send),
            writer: &mut dyn ObjectWriter,
        ) -> Result<(), SerializeError> {
            match value.downcast_ref::<T>() {
                Some(value) => writer.write(value),
                None => Err(SerializeError::new(NOT_ITS_TYPE)),
            }
        }
        fn to_value<T: serde::Serialize + 'static>(
            value: &(dyn Any + Send),
        ) -> Result<Value, SerializeError> {
            match value.downcast_ref::<T>() {
                Some(value) => crate::value::to_value(value),
                None => Err(SerializeError::new(NOT_ITS_TYPE)),
            }
        }
        fn to_generic_value<T: serde::Serialize + 'static>(
            value: &(dyn Any + Send),
        ) -> Result<Value, SerializeError> {
            match value.downcast_ref::<T>() {
                Some(value) => crate::value::to_generic_value(value),
                None => Err(SerializeError::new(NOT_ITS_TYPE)),
            }
        }
        let form =
            Form { write: write::<T>, to_value: to_value::<T>, to_generic_value: to_generic_value::<T> };
        Self { value: Some(Box::new(value)), form: Some(form) }
    }

    /// A dynamic value; it can be written.
    pub fn value(value: Value) -> Self {
        fn write(value: &(dyn Any + Send), writer: &mut dyn ObjectWriter) -> Result<(), SerializeError> {
            match value.downcast_ref::<Value>() {
                Some(value) => writer.write_value(value),
                None => Err(SerializeError::new(NOT_ITS_TYPE)),
            }
        }
        fn to_value(value: &(dyn Any + Send)) -> Result<Value, SerializeError> {
            value.downcast_ref::<Value>().cloned().ok_or_else(|| SerializeError::new(NOT_ITS_TYPE))
        }
        Self {
            value: Some(Box::new(value)),
            form: Some(Form { write, to_value, to_generic_value: to_value }),
        }
    }

    /// Whether this is null.
    pub fn is_null(&self) -> bool {
        match &self.value {
            None => true,
            Some(value) => matches!(value.downcast_ref::<Value>(), Some(Value::Null)),
        }
    }

    /// Takes the value out as `T`; the payload comes back when it is of another type.
    pub fn take<T: 'static>(self) -> Result<T, Self> {
        let form = self.form;
        match self.value {
            Some(value) => {
                value.downcast::<T>().map(|value| *value).map_err(|value| Self { value: Some(value), form })
            }
            None => Err(Self::null()),
        }
    }

    /// The value as `T`, if it is one.
    pub fn get<T: 'static>(&self) -> Option<&T> {
        self.value.as_ref().and_then(|value| value.downcast_ref::<T>())
    }

    /// Writes the value; null writes null. An opaque value is an error.
    pub fn write(&self, writer: &mut dyn ObjectWriter) -> Result<(), SerializeError> {
        match (&self.value, self.form) {
            (None, _) => writer.write_null(),
            (Some(value), Some(form)) => (form.write)(value.as_ref(), writer),
            (Some(_), None) => Err(SerializeError::new("a decoded reply cannot be written again")),
        }
    }

    /// The value as a dynamic one. An opaque value is an error.
    pub fn to_value(&self) -> Result<Value, SerializeError> {
        match (&self.value, self.form) {
            (None, _) => Ok(Value::Null),
            (Some(value), Some(form)) => (form.to_value)(value.as_ref()),
            (Some(_), None) => Err(SerializeError::new(NO_DYNAMIC_FORM)),
        }
    }

    /// As [`Payload::to_value`], but enum constants are their names, as generic callers read them.
    pub fn to_generic_value(&self) -> Result<Value, SerializeError> {
        match (&self.value, self.form) {
            (None, _) => Ok(Value::Null),
            (Some(value), Some(form)) => (form.to_generic_value)(value.as_ref()),
            (Some(_), None) => Err(SerializeError::new(NO_DYNAMIC_FORM)),
        }
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            None => f.write_str("Payload(null)"),
            Some(value) => match value.downcast_ref::<Value>() {
                Some(value) => write!(f, "Payload({value:?})"),
                None => f.write_str("Payload(..)"),
            },
        }
    }
}
