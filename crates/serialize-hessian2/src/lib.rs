//! Serialize layer: Hessian2 as Dubbo's Java codec (hessian-lite) writes and reads it.
//!
//! [`Hessian2`] implements [`Serialization`]. Typed values go straight between serde and bytes, without a tree in
//! between; how Rust types become Java types is told at [`dubhe_core::value`]. Dynamic values keep everything that
//! Java sent: class names, int versus long, shared identity.
//!
//! The writer uses the shortest forms, as Java does. Where the Java codec is faulty, this crate writes what every Java
//! reader understands: -0.0 keeps its sign, variable-length lists are never written, and an object that occurs twice
//! is written twice unless [`Hessian2::with_sharing`] is on, since Java releases disagree on how to count objects.
//! Cycles are always written as references.
//!
//! The reader makes data and nothing else; no class name has an effect. It accepts every form that Java and other
//! peers write: chunks of any size, characters split between chunks, real 4-byte UTF-8, variable-length lists, bodies
//! whose UUIDs or Calendars are miscounted (unless a reference follows that then points nowhere). All input is bounded
//! by [`Limits`]; errors name the byte at which reading stopped.
//!
//! Not here: the order of values in a request or response (see the protocol), choosing a serialization.

pub use dubhe_core::serialize::{ObjectReader, ObjectWriter, Serialization, SerializeError};

mod limits;
mod read;
mod tag;
mod write;

use bytes::{Bytes, BytesMut};

pub use limits::Limits;

/// The Hessian2 serialization: id 2, name `hessian2`.
#[derive(Clone, Debug, Default)]
pub struct Hessian2 {
    limits: Limits,
    sharing: bool,
}

impl Hessian2 {
    /// Its number in the frame header.
    pub const ID: u8 = 2;
    /// Its name in URLs.
    pub const NAME: &str = "hessian2";

    /// With default limits, without sharing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with other limits.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Whether parts of a dynamic value that are shared (the same `Arc`) are written once and referred to, so that
    /// Java gets one object instead of equal copies. Off by default: some Java releases count objects wrongly after a
    /// UUID, Calendar or URI and then misread references. Typed values have no identity and are always written whole.
    pub fn with_sharing(mut self, sharing: bool) -> Self {
        self.sharing = sharing;
        self
    }
}

impl Serialization for Hessian2 {
    fn id(&self) -> u8 {
        Self::ID
    }

    fn name(&self) -> &str {
        Self::NAME
    }

    fn encode(
        &self,
        out: &mut BytesMut,
        write: &mut dyn FnMut(&mut dyn ObjectWriter) -> Result<(), SerializeError>,
    ) -> Result<(), SerializeError> {
        write(&mut write::Writer::new(out, &self.limits, self.sharing))
    }

    fn reader(&self, body: Bytes) -> Box<dyn ObjectReader + Send> {
        Box::new(read::Reader::new(body, &self.limits))
    }
}
