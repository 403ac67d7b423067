//! Layer 1, serialize: values to bytes and back.
//!
//! One message body is one continuous stream: the class and reference tables of its serialization run through all
//! values in it. Typed values go straight between their serde form and bytes; [`Value`] is for dynamic calls.

use std::fmt::Debug;

use bytes::{Bytes, BytesMut};
use serde::de::DeserializeOwned;

use crate::error::Exception;
use crate::invocation::Attachments;
use crate::value::Value;

/// A serialization of the dubbo protocol.
///
/// Promises: strings, and a last map of strings, are encoded without regard to what stands before them in the body, so
/// that equal bytes mean equal strings.
pub trait Serialization: Send + Sync + Debug {
    /// Its number in the frame header, 0 to 31 (2 = hessian2).
    fn id(&self) -> u8;

    /// Its name in URLs (`hessian2`).
    fn name(&self) -> &str;

    /// Appends one body to `out`: calls `write` once with a writer whose tables are empty. On error `out` holds
    /// undefined bytes after its former end; the caller cuts them off.
    fn encode(
        &self,
        out: &mut BytesMut,
        write: &mut dyn FnMut(&mut dyn ObjectWriter) -> Result<(), SerializeError>,
    ) -> Result<(), SerializeError>;

    /// A reader over one body. It makes data only: no input can make it panic, hang, or reserve more than the body's
    /// size allows.
    fn reader(&self, body: Bytes) -> Box<dyn ObjectReader + Send>;
}

/// Writes the values of one body, in order.
pub trait ObjectWriter {
    /// Null.
    fn write_null(&mut self) -> Result<(), SerializeError>;
    /// A boolean.
    fn write_bool(&mut self, value: bool) -> Result<(), SerializeError>;
    /// A 32-bit integer.
    fn write_int(&mut self, value: i32) -> Result<(), SerializeError>;
    /// A 64-bit integer.
    fn write_long(&mut self, value: i64) -> Result<(), SerializeError>;
    /// A string.
    fn write_str(&mut self, value: &str) -> Result<(), SerializeError>;
    /// Binary data.
    fn write_bytes(&mut self, value: &[u8]) -> Result<(), SerializeError>;
    /// A dynamic value, classes and shared identity kept.
    fn write_value(&mut self, value: &Value) -> Result<(), SerializeError>;
    /// A typed value, through serde; see [`crate::value`] for how Rust types become Java types.
    fn write(&mut self, value: &dyn erased_serde::Serialize) -> Result<(), SerializeError>;
    /// Attachments, as one untyped map.
    fn write_attachments(&mut self, attachments: &Attachments) -> Result<(), SerializeError>;
    /// A Throwable.
    fn write_exception(&mut self, exception: &Exception) -> Result<(), SerializeError>;
    /// An untyped map whose entries are `encoded` (whole key and value strings, written by a writer of this
    /// serialization with [`ObjectWriter::write_str`]) followed by `more`. For what is the same in every request of a
    /// provider: encoded once.
    fn write_attachments_with(&mut self, encoded: &[u8], more: &Attachments) -> Result<(), SerializeError>;
}

/// Reads the values of one body, in order. After an error the reader must be dropped.
pub trait ObjectReader {
    /// A 32-bit integer (also from the 64-bit form when it fits).
    fn read_int(&mut self) -> Result<i32, SerializeError>;
    /// A string or null.
    fn read_str(&mut self) -> Result<Option<String>, SerializeError>;
    /// Any value.
    fn read_value(&mut self) -> Result<Value, SerializeError>;
    /// A typed value: calls `visit` once with a deserializer that stands at the value. See [`dyn ObjectReader::read_as`].
    fn read(
        &mut self,
        visit: &mut dyn FnMut(&mut dyn erased_serde::Deserializer<'_>) -> Result<(), erased_serde::Error>,
    ) -> Result<(), SerializeError>;
    /// Attachments: a map (null reads as empty). A non-string key is an error.
    fn read_attachments(&mut self) -> Result<Attachments, SerializeError>;
    /// A Throwable. A self-cause is dropped; unknown fields are kept in [`Exception::fields`].
    fn read_exception(&mut self) -> Result<Exception, SerializeError>;
    /// Bytes not read yet.
    fn remaining(&self) -> usize;
}

impl dyn ObjectReader + '_ {
    /// Reads the next value as `T`.
    pub fn read_as<T: DeserializeOwned>(&mut self) -> Result<T, SerializeError> {
        let mut value = None;
        self.read(&mut |deserializer| {
            value = Some(erased_serde::deserialize::<T>(deserializer)?);
            Ok(())
        })?;
        value.ok_or_else(|| SerializeError::new("the deserializer was not asked for a value"))
    }
}

impl dyn ObjectReader + Send + '_ {
    /// Reads the next value as `T`.
    pub fn read_as<T: DeserializeOwned>(&mut self) -> Result<T, SerializeError> {
        let reader: &mut dyn ObjectReader = self;
        reader.read_as()
    }
}

/// A value could not be written or read.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct SerializeError {
    message: String,
}

impl SerializeError {
    /// An error that says what is wrong, at which byte of the body, and what was expected.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

impl From<erased_serde::Error> for SerializeError {
    fn from(error: erased_serde::Error) -> Self {
        Self::new(error.to_string())
    }
}
