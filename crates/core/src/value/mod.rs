//! Dynamic values, and how Rust types become Java types.

use std::sync::Arc;

use bytes::Bytes;

/// Any value as a Java peer sends it, without loss: class names, list and map types, int versus long, field order and
/// shared identity are kept. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq)]
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
    /// A Java string with lone surrogates: its UTF-16 units.
    Utf16(Arc<[u16]>),
    /// byte[].
    Bytes(Bytes),
    /// A list, set or array.
    List(Arc<List>),
    /// A map.
    Map(Arc<Map>),
    /// An instance of a class.
    Object(Arc<Object>),
    /// The compound value that began as number `.0` (0-based, in order of beginning) of the same body: a shared value
    /// or a cycle.
    Ref(u32),
}

/// A list, set or array with its Java type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct List {
    /// `None` for a plain list; else as on the wire: `java.util.HashSet`, `[int`, `[demo.Foo`.
    pub class: Option<Arc<str>>,
    /// The elements.
    pub items: Vec<Value>,
}

/// A map with its Java type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map {
    /// `None` for a HashMap; else the class name.
    pub class: Option<Arc<str>>,
    /// Entries in their order on the wire; keys may be any value.
    pub entries: Vec<(Value, Value)>,
}

/// An object with its class and fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object {
    /// Java class name.
    pub class: Arc<str>,
    /// Fields in their order on the wire.
    pub fields: Vec<(Arc<str>, Value)>,
}

impl Value {
    /// The text of a string value.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(text) => Some(text),
            _ => None,
        }
    }

    /// Element `index` of a list value.
    pub fn element(&self, index: usize) -> Option<&Self> {
        match self {
            Self::List(list) => list.items.get(index),
            _ => None,
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Str(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Str(text.into())
    }
}

impl From<Arc<str>> for Value {
    fn from(text: Arc<str>) -> Self {
        Self::Str(text)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Self {
        Self::Int(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Long(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Double(value)
    }
}

impl Value {
    /// The text that Java's `String.valueOf` gives for simple values; for compound ones a bounded rendering.
    pub fn to_java_text(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Int(value) => value.to_string(),
            Self::Long(value) => value.to_string(),
            Self::Str(text) => text.to_string(),
            other => format!("{other:?}"),
        }
    }
}

/// A typed value as a dynamic one, as the serializations would write it.
pub fn to_value<T: serde::Serialize + ?Sized>(_value: &T) -> Result<Value, crate::serialize::SerializeError> {
    Err(crate::serialize::SerializeError::new("being written by the value helper"))
}
