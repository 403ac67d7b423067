//! Dynamic values, and how Rust types become Java types.
//!
//! # Typed values
//!
//! Everything typed goes through serde, straight to and from bytes. What a Rust type is in Java:
//!
//! | Rust | Java | read from |
//! | --- | --- | --- |
//! | `bool` | boolean | boolean, 0, 1 |
//! | `i8 i16 i32 u8 u16` | byte, short, int (one form on the wire) | integers and integral doubles; a value out of range is an error |
//! | `i64 u32` | long | the same |
//! | `u64 i128 u128` | long; out of range is an error | also [`BigInteger`](java::BigInteger) |
//! | `f32 f64` | float, double (an `f32` by its shortest decimal text, like a boxed Float) | all numbers |
//! | `String`, `char` | String, char | strings; numbers and booleans by their text |
//! | `Option<T>` | null or `T` | |
//! | `()` | void | anything |
//! | `Vec<T>`, tuples, slices, std sets | plain List | any list, set or array |
//! | [`java::Array<T>`] ([`java::IntArray`] ...) | `T[]` | any list, set or array |
//! | [`java::Set<T>`] | `java.util.HashSet` | any list, set or array |
//! | [`java::JavaBytes`], `bytes::Bytes` | `byte[]` | binary, lists of numbers |
//! | `HashMap`, `BTreeMap` | HashMap | maps; objects as maps of their fields |
//! | struct whose serde name has a dot | object of that class | objects of any class, and maps, by field name |
//! | struct whose serde name has no dot | HashMap | the same |
//! | enum of unit variants whose name has a dot | that enum | the enum, its constant's name, a map with `name` |
//! | enum with data, variants named like classes | object of the variant's class | object whose class names a variant |
//! | newtype struct | what it wraps | |
//! | [`java::Date`], [`java::BigDecimal`], [`java::LocalDate`] ... | their namesakes | see there |
//! | [`Value`] | any Object | anything |
//!
//! ```
//! #[derive(serde::Serialize, serde::Deserialize)]
//! #[serde(rename = "demo.User", rename_all = "camelCase")]
//! struct User {
//!     user_name: String,
//!     age: Option<i32>,
//! }
//! let value = dubhe_core::value::to_value(&User { user_name: "ann".into(), age: None }).unwrap();
//! assert_eq!(value.class(), Some("demo.User"));
//! assert_eq!(value.field("userName").and_then(|name| name.as_str()), Some("ann"));
//! ```
//!
//! Unknown fields are skipped. A field that the Java class does not have comes as absent: give it
//! `#[serde(default)]` or make it an `Option`. A field skipped by `skip_serializing_if` is written as null.
//! Null is an error where the Rust type has no room for it. A struct with `#[serde(flatten)]` is a map to serde, and
//! so a HashMap here.
//!
//! Java strings may hold lone surrogates, which no Rust string can: reading one into a `String` is an error, reading
//! it as a [`Value`] gives [`Value::Utf16`].
//!
//! The [`marker`] names are how the types of [`java`] tell a serialization what they are; other formats see through
//! them. [`JavaType`] gives the names and JVM descriptors that method signatures need.
//!
//! # References
//!
//! Java sends an object that it met before as a reference. In a [`Value`] a shared object is the same `Arc` again. A
//! cycle is cut by [`Value::Ref`]: `Ref(n)` is the compound value (list, map or object) that began as number `n` of
//! the whole value that was read or is written, counted from 0 in the order in which they begin when the value is
//! walked from its root, shared parts counted at each occurrence. So `Ref(0)` is the root itself, if that is
//! compound. Dates, strings and binary data are not counted. A part that is taken out of its root keeps its numbers,
//! which then mean nothing; see [`Value::without_cycles`].

use std::sync::Arc;

use bytes::Bytes;

pub mod java;
pub mod marker;

mod access;
mod de;
mod equality;
mod from;
mod java_type;
mod ser;
mod size;
#[cfg(test)]
mod tests;
mod text;
mod to;

pub use from::{Octet, from_value, hidden_fields};
pub use java_type::{JavaType, descriptor_of};
pub use to::{to_generic_value, to_value};

/// Any value as a Java peer sends it, without loss: class names, list and map types, int versus long, field order and
/// shared identity are kept. Cheap to clone.
///
/// Equality is structural: doubles are compared by their bits (as Java's `Double.equals`), shared parts by content,
/// [`Value::Ref`] by number. `Debug` and `Display` show a bounded part.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Value {
    /// null.
    #[default]
    Null,
    /// boolean.
    Bool(bool),
    /// byte, short, int and their boxes: one form on the wire.
    Int(i32),
    /// long.
    Long(i64),
    /// float, double and their boxes.
    Double(f64),
    /// `java.util.Date`: milliseconds since the epoch.
    Date(i64),
    /// A string that is valid Unicode.
    Str(Arc<str>),
    /// A Java string with lone surrogates: its UTF-16 units. Build it with [`Value::utf16`], which gives a
    /// [`Value::Str`] when there are none.
    Utf16(Arc<[u16]>),
    /// byte[].
    Bytes(Bytes),
    /// A list, set or array.
    List(Arc<List>),
    /// A map.
    Map(Arc<Map>),
    /// An instance of a class.
    Object(Arc<Object>),
    /// A cycle: the compound value that began as number `.0` of the same whole value; see the
    /// [module](self#references).
    Ref(u32),
}

/// A list, set or array with its Java type.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct List {
    /// `None` for a plain list; else as on the wire: `java.util.HashSet`, `[int`, `[demo.Foo`.
    pub class: Option<Arc<str>>,
    /// The elements.
    pub items: Vec<Value>,
}

/// A map with its Java type.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Map {
    /// `None` for a HashMap; else the class name.
    pub class: Option<Arc<str>>,
    /// Entries in their order on the wire; keys may be any value.
    pub entries: Vec<(Value, Value)>,
}

/// An object with its class and fields.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Object {
    /// Java class name.
    pub class: Arc<str>,
    /// Fields in their order on the wire. When a class and its superclass have fields of one name, it is there twice:
    /// the later one is the class's own.
    pub fields: Vec<(Arc<str>, Value)>,
}
