//! Making values and looking into them.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;

use super::size::shared_address;
use super::{List, Map, Object, Value};

impl Value {
    /// A string from UTF-16 units: [`Value::Str`] when they are valid, else [`Value::Utf16`].
    pub fn utf16(units: &[u16]) -> Self {
        match String::from_utf16(units) {
            Ok(text) => Self::Str(text.into()),
            Err(_) => Self::Utf16(units.into()),
        }
    }

    /// A plain list.
    pub fn list(items: impl Into<Vec<Self>>) -> Self {
        Self::List(Arc::new(List { class: None, items: items.into() }))
    }

    /// A list with a type as on the wire: `java.util.HashSet`, `[int`, `[string`, `[object`, `[demo.Foo`.
    pub fn typed_list(class: impl Into<Arc<str>>, items: impl Into<Vec<Self>>) -> Self {
        Self::List(Arc::new(List { class: Some(class.into()), items: items.into() }))
    }

    /// A HashMap.
    pub fn map<K: Into<Self>, V: Into<Self>>(entries: impl IntoIterator<Item = (K, V)>) -> Self {
        let entries = entries.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        Self::Map(Arc::new(Map { class: None, entries }))
    }

    /// A map of a class other than HashMap, e.g. `java.util.LinkedHashMap`.
    pub fn typed_map<K: Into<Self>, V: Into<Self>>(
        class: impl Into<Arc<str>>,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let entries = entries.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        Self::Map(Arc::new(Map { class: Some(class.into()), entries }))
    }

    /// An instance of `class`.
    pub fn object<N: Into<Arc<str>>, V: Into<Self>>(
        class: impl Into<Arc<str>>,
        fields: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let fields = fields.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self::Object(Arc::new(Object { class: class.into(), fields }))
    }

    /// A constant of the Java enum `class`.
    pub fn enum_constant(class: impl Into<Arc<str>>, constant: &str) -> Self {
        Self::object(class, [("name", constant)])
    }

    /// Whether this is null.
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The boolean, if it is one.
    pub const fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The integer, if it is one (of either size) and fits.
    pub fn as_int(&self) -> Option<i32> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Long(value) => i32::try_from(*value).ok(),
            _ => None,
        }
    }

    /// The integer, if it is one (of either size).
    pub const fn as_long(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value as i64),
            Self::Long(value) => Some(*value),
            _ => None,
        }
    }

    /// The number, if it is one (of any kind; a large long is rounded).
    pub const fn as_double(&self) -> Option<f64> {
        match self {
            Self::Int(value) => Some(*value as f64),
            Self::Long(value) => Some(*value as f64),
            Self::Double(value) => Some(*value),
            _ => None,
        }
    }

    /// The date in milliseconds since the epoch, if it is one.
    pub const fn as_date(&self) -> Option<i64> {
        match self {
            Self::Date(value) => Some(*value),
            _ => None,
        }
    }

    /// The text of a string value; `None` for one with lone surrogates.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The binary data, if it is that.
    pub const fn as_bytes(&self) -> Option<&Bytes> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The elements of a list, set or array.
    pub fn as_list(&self) -> Option<&[Self]> {
        match self {
            Self::List(list) => Some(&list.items),
            _ => None,
        }
    }

    /// The entries of a map.
    pub fn as_map(&self) -> Option<&[(Self, Self)]> {
        match self {
            Self::Map(map) => Some(&map.entries),
            _ => None,
        }
    }

    /// The object, if it is one.
    pub fn as_object(&self) -> Option<&Object> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The class name of an object, or the type of a typed list or map as on the wire.
    pub fn class(&self) -> Option<&str> {
        match self {
            Self::Object(object) => Some(&object.class),
            Self::List(list) => list.class.as_deref(),
            Self::Map(map) => map.class.as_deref(),
            _ => None,
        }
    }

    /// Element `index` of a list value.
    pub fn element(&self, index: usize) -> Option<&Self> {
        self.as_list()?.get(index)
    }

    /// The value under the string `key` of a map; of entries with the same key, the last.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.as_map()?.iter().rev().find(|(k, _)| k.as_str() == Some(key)).map(|(_, value)| value)
    }

    /// Field `name` of an object, or the entry under that key of a map (generic calls send objects as maps).
    pub fn field(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(object) => object.field(name),
            _ => self.get(name),
        }
    }

    /// The same value with every [`Value::Ref`] replaced by null: for a part that is taken out of its root. Shared
    /// parts stay shared.
    pub fn without_cycles(&self) -> Self {
        if self.has_refs() { cut(self, &mut HashMap::new()) } else { self.clone() }
    }
}

/// `done` holds the shared parts that were cut before, by address.
fn cut(value: &Value, done: &mut HashMap<usize, Value>) -> Value {
    let address = shared_address(value);
    if let Some(done) = address.and_then(|address| done.get(&address)) {
        return done.clone();
    }
    let cut = match value {
        Value::Ref(_) => Value::Null,
        Value::List(list) => Value::List(Arc::new(List {
            class: list.class.clone(),
            items: list.items.iter().map(|item| cut(item, done)).collect(),
        })),
        Value::Map(map) => Value::Map(Arc::new(Map {
            class: map.class.clone(),
            entries: map.entries.iter().map(|(key, value)| (cut(key, done), cut(value, done))).collect(),
        })),
        Value::Object(object) => Value::Object(Arc::new(Object {
            class: Arc::clone(&object.class),
            fields: object.fields.iter().map(|(name, value)| (Arc::clone(name), cut(value, done))).collect(),
        })),
        simple => simple.clone(),
    };
    if let Some(address) = address {
        done.insert(address, cut.clone());
    }
    cut
}

impl Object {
    /// Field `name`; where a superclass has one of the same name, the class's own.
    pub fn field(&self, name: &str) -> Option<&Value> {
        self.fields.iter().rev().find(|(field, _)| &**field == name).map(|(_, value)| value)
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

impl From<Bytes> for Value {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<Vec<Self>> for Value {
    fn from(items: Vec<Self>) -> Self {
        Self::list(items)
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
