//! Arrays and sets: lists that carry a Java type.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::Hash;
use std::ops::{Deref, DerefMut};

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, SerializeTupleStruct, Serializer};

use super::super::{JavaType, marker};

/// A Java array `T[]`. (A `Vec<T>` is a `java.util.List`, and byte[] is [`super::JavaBytes`].)
///
/// Read from any list, set or array.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Array<T>(pub Vec<T>);

/// `int[]`.
pub type IntArray = Array<i32>;
/// `long[]`.
pub type LongArray = Array<i64>;
/// `short[]`.
pub type ShortArray = Array<i16>;
/// `boolean[]`.
pub type BooleanArray = Array<bool>;
/// `float[]`.
pub type FloatArray = Array<f32>;
/// `double[]`.
pub type DoubleArray = Array<f64>;
/// `String[]`.
pub type StringArray = Array<String>;

impl<T> Deref for Array<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T> DerefMut for Array<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.0
    }
}

impl<T> From<Vec<T>> for Array<T> {
    fn from(items: Vec<T>) -> Self {
        Self(items)
    }
}

impl<T> FromIterator<T> for Array<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self(items.into_iter().collect())
    }
}

impl<T: JavaType> JavaType for Array<T> {
    fn name() -> Cow<'static, str> {
        Cow::Owned(format!("{}[]", T::name()))
    }

    fn descriptor() -> Cow<'static, str> {
        Cow::Owned(format!("[{}", T::descriptor()))
    }
}

impl<T: Serialize + JavaType> Serialize for Array<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            return self.0.serialize(serializer);
        }
        typed_list(serializer, &wire_type(&T::name()), self.0.len(), &self.0)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Array<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self)
    }
}

/// A `java.util.HashSet`. (A std set is a plain list to serde; Java turns that into a set only where the declared
/// type says so.)
///
/// Read from any list, set or array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set<T: Eq + Hash>(pub HashSet<T>);

impl<T: Eq + Hash> Default for Set<T> {
    fn default() -> Self {
        Self(HashSet::new())
    }
}

impl<T: Eq + Hash> Deref for Set<T> {
    type Target = HashSet<T>;

    fn deref(&self) -> &HashSet<T> {
        &self.0
    }
}

impl<T: Eq + Hash> DerefMut for Set<T> {
    fn deref_mut(&mut self) -> &mut HashSet<T> {
        &mut self.0
    }
}

impl<T: Eq + Hash> From<HashSet<T>> for Set<T> {
    fn from(items: HashSet<T>) -> Self {
        Self(items)
    }
}

impl<T: Eq + Hash> FromIterator<T> for Set<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self(items.into_iter().collect())
    }
}

impl<T: Eq + Hash> JavaType for Set<T> {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("java.util.Set")
    }
}

impl<T: Serialize + Eq + Hash> Serialize for Set<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            return self.0.serialize(serializer);
        }
        typed_list(serializer, "java.util.HashSet", self.0.len(), &self.0)
    }
}

impl<'de, T: Deserialize<'de> + Eq + Hash> Deserialize<'de> for Set<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        HashSet::deserialize(deserializer).map(Self)
    }
}

fn typed_list<'a, S: Serializer, T: Serialize + 'a>(
    serializer: S,
    class: &str,
    len: usize,
    items: impl IntoIterator<Item = &'a T>,
) -> Result<S::Ok, S::Error> {
    let mut list = serializer.serialize_tuple_struct(marker::TYPED_LIST, len + 1)?;
    list.serialize_field(class)?;
    for item in items {
        list.serialize_field(item)?;
    }
    list.end()
}

/// The array type on the wire for elements of a Java type: `[int`, `[string`, `[demo.User`.
fn wire_type(element: &str) -> String {
    let mut base = element;
    let mut wire = String::from("[");
    while let Some(inner) = base.strip_suffix("[]") {
        base = inner;
        wire.push('[');
    }
    wire.push_str(match base {
        "java.lang.String" => "string",
        "java.lang.Object" => "object",
        "java.util.Date" => "date",
        other => other,
    });
    wire
}
