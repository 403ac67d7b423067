//! Names by which types tell a serialization what they are, through serde.
//!
//! A serialization compares the name of a newtype or tuple struct with these; every other format sees the plain
//! content. Needed by those who write a serialization or a Java type of their own.

use std::cell::Cell;

use super::Value;

/// `serialize_newtype_struct(DATE, &i64)`: a `java.util.Date` in milliseconds since the epoch. Read with
/// `deserialize_newtype_struct(DATE, ..)`.
pub const DATE: &str = "$dubhe.Date";

/// `serialize_tuple_struct(TYPED_LIST, 1 + n)`: a list with a Java type. The first field is the type as on the wire
/// (`[int`, `java.util.HashSet`), the others are the elements. Read with `deserialize_seq`.
pub const TYPED_LIST: &str = "$dubhe.List";

/// `serialize_newtype_struct(VALUE, ..)` and `deserialize_newtype_struct(VALUE, ..)`: a [`Value`], handed over
/// whole; see [`hand_over`].
pub const VALUE: &str = "$dubhe.Value";

/// Whether `name` is one of the names above, or may be one later.
pub fn is_marker(name: &str) -> bool {
    name.as_bytes().first() == Some(&b'$')
}

/// Whether `name` is the name of a Java class rather than of a Rust type.
pub fn is_class(name: &str) -> bool {
    name.as_bytes().contains(&b'.')
}

thread_local! {
    static HANDED: Cell<Option<Value>> = const { Cell::new(None) };
}

/// Puts a value where [`take_over`] finds it, on this thread.
///
/// serde has no way to pass a foreign value through a serializer or a visitor, and taking it apart would lose shared
/// identity. So the giving side calls this directly before its call with [`VALUE`] (a deserializer: before
/// `visit_unit`), and the taking side calls [`take_over`] first thing. Nothing runs in between.
pub fn hand_over(value: Value) {
    HANDED.set(Some(value));
}

/// Takes what [`hand_over`] put there.
pub fn take_over() -> Option<Value> {
    HANDED.take()
}
