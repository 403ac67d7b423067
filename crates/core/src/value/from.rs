//! Dynamic values to typed ones, as leniently as the reader of a serialization.

use std::collections::HashSet;
use std::fmt::Display;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};

use super::size::MAX_EXPANDED;
use super::{Object, Value, marker};
use crate::serialize::SerializeError;

/// A dynamic value as a typed one; what is accepted is in the table of the [module](super). Generic calls send
/// objects as maps with an entry `class`, which counts as data only.
///
/// Errors: a value of the wrong kind or out of range, a missing field, a cycle, more than 1,000,000 values when shared
/// parts are counted at each occurrence.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, SerializeError> {
    if value.expanded_size() > MAX_EXPANDED {
        return Err(SerializeError::new(format!(
            "more than {MAX_EXPANDED} values when shared parts are expanded"
        )));
    }
    T::deserialize(&value)
}

impl de::Error for SerializeError {
    fn custom<T: Display>(message: T) -> Self {
        Self::new(message.to_string())
    }
}

impl Value {
    fn unexpected(&self) -> Unexpected<'_> {
        match self {
            Self::Null => Unexpected::Other("null"),
            Self::Bool(value) => Unexpected::Bool(*value),
            Self::Int(value) => Unexpected::Signed(i64::from(*value)),
            Self::Long(value) => Unexpected::Signed(*value),
            Self::Double(value) => Unexpected::Float(*value),
            Self::Date(_) => Unexpected::Other("date"),
            Self::Str(text) => Unexpected::Str(text),
            Self::Utf16(_) => Unexpected::Other("string with lone surrogates"),
            Self::Bytes(bytes) => Unexpected::Bytes(bytes),
            Self::List(_) => Unexpected::Seq,
            Self::Map(_) => Unexpected::Map,
            Self::Object(object) => Unexpected::Other(&object.class),
            Self::Ref(_) => Unexpected::Other("cycle"),
        }
    }

    fn mismatch<'de, V: Visitor<'de>>(&self, visitor: &V) -> SerializeError {
        de::Error::invalid_type(self.unexpected(), visitor)
    }
}

macro_rules! integers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerializeError> {
            match self {
                Value::Int(value) => visitor.visit_i64(i64::from(*value)),
                Value::Long(value) => visitor.visit_i64(*value),
                Value::Double(value) if integral(*value) => visitor.visit_i64(*value as i64),
                Value::Object(object) => match super::java::big_integer_to_i128(object) {
                    Some(value) => match i64::try_from(value) {
                        Ok(value) => visitor.visit_i64(value),
                        Err(_) => match u64::try_from(value) {
                            Ok(value) => visitor.visit_u64(value),
                            Err(_) => visitor.visit_i128(value),
                        },
                    },
                    None => Err(self.mismatch(&visitor)),
                },
                _ => Err(self.mismatch(&visitor)),
            }
        }
    )*};
}

/// Whether a double is a whole number that a long holds exactly.
fn integral(value: f64) -> bool {
    value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0
}

impl<'de> Deserializer<'de> for &Value {
    type Error = SerializeError;

    fn is_human_readable(&self) -> bool {
        false
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerializeError> {
        match self {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Int(value) => visitor.visit_i32(*value),
            Value::Long(value) | Value::Date(value) => visitor.visit_i64(*value),
            Value::Double(value) => visitor.visit_f64(*value),
            Value::Str(text) => visitor.visit_str(text),
            Value::Bytes(bytes) => visitor.visit_bytes(bytes),
            Value::List(list) => visitor.visit_seq(Items(list.items.iter())),
            Value::Map(map) => visitor.visit_map(Entries { entries: map.entries.iter(), value: None }),
            Value::Object(object) => visitor.visit_map(Fields::new(object)),
            Value::Utf16(_) | Value::Ref(_) => Err(self.mismatch(&visitor)),
        }
    }

    integers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerializeError> {
        match self {
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Int(value @ (0 | 1)) => visitor.visit_bool(*value == 1),
            _ => Err(self.mismatch(&visitor)),
        }
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerializeError> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerializeError> {
        match self.as_double() {
            Some(value) => visitor.visit_f64(value),
            None => Err(self.mismatch(&visitor)),
        }
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerializeError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerializeError> {
        match self {
            Value::Str(text) => visitor.visit_str(text),
            Value::Bool(_) | Value::Int(_) | Value::Long(_) | Value::Double(_) => {
                visitor.visit_string(self.to_java_text())
            }
            _ => Err(self.mismatch(&visitor)),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerializeError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerializeError> {
        match self {
            Value::Bytes(bytes) => visitor.visit_bytes(bytes),
            _ => self.deserialize_seq(visitor),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerializeError> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerializeError> {
        match self {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerializeError> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, SerializeError> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, SerializeError> {
        match name {
            marker::VALUE => {
                marker::hand_over(self.clone());
                visitor.visit_unit()
            }
            marker::DATE => match super::java::millis_of(self) {
                Some(millis) => visitor.visit_i64(millis),
                None => Err(self.mismatch(&visitor)),
            },
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerializeError> {
        match self {
            Value::List(list) => visitor.visit_seq(Items(list.items.iter())),
            Value::Bytes(bytes) => visitor.visit_seq(Octets(bytes.iter())),
            _ => Err(self.mismatch(&visitor)),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, SerializeError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, SerializeError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerializeError> {
        match self {
            Value::Map(_) | Value::Object(_) => self.deserialize_any(visitor),
            _ => Err(self.mismatch(&visitor)),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, SerializeError> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, SerializeError> {
        let class = match self {
            Value::Str(text) => return visitor.visit_enum((&**text).into_deserializer()),
            Value::Object(object) => Some(&*object.class),
            Value::Map(map) => match map.entries.as_slice() {
                [(Value::Str(key), content)] if variants.contains(&&**key) => {
                    return visitor.visit_enum(Variant { name: key, content });
                }
                _ => self.get("class").and_then(Value::as_str),
            },
            _ => return Err(self.mismatch(&visitor)),
        };
        match (class, self.field("name").and_then(Value::as_str)) {
            (Some(class), _) if variants.contains(&class) => {
                visitor.visit_enum(Variant { name: class, content: self })
            }
            (_, Some(constant)) => visitor.visit_enum(constant.into_deserializer()),
            (Some(class), None) => visitor.visit_enum(Variant { name: class, content: self }),
            (None, None) => Err(self.mismatch(&visitor)),
        }
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerializeError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerializeError> {
        visitor.visit_unit()
    }
}

struct Items<'a>(std::slice::Iter<'a, Value>);

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = SerializeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, SerializeError> {
        self.0.next().map(|item| seed.deserialize(item)).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

/// The bytes of a byte[] where a list is wanted: signed for signed types, as in Java.
struct Octets<'a>(std::slice::Iter<'a, u8>);

impl<'de> SeqAccess<'de> for Octets<'_> {
    type Error = SerializeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, SerializeError> {
        self.0.next().map(|octet| seed.deserialize(Octet(*octet))).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

/// One byte of a byte[], as a number.
#[derive(Debug)]
pub struct Octet(pub u8);

impl<'de> Deserializer<'de> for Octet {
    type Error = SerializeError;

    fn is_human_readable(&self) -> bool {
        false
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerializeError> {
        visitor.visit_i64(i64::from(self.0 as i8))
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerializeError> {
        visitor.visit_u8(self.0)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, SerializeError> {
        if name == marker::VALUE {
            marker::hand_over(Value::Int(i32::from(self.0 as i8)));
            return visitor.visit_unit();
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerializeError> {
        visitor.visit_some(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct enum identifier ignored_any
    }
}

struct Entries<'a> {
    entries: std::slice::Iter<'a, (Value, Value)>,
    value: Option<&'a Value>,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = SerializeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, SerializeError> {
        let Some((key, value)) = self.entries.next() else { return Ok(None) };
        self.value = Some(value);
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, SerializeError> {
        seed.deserialize(self.value.take().unwrap_or(&Value::Null))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.entries.len())
    }
}

/// Fields of an object; of two with the same name, the later.
struct Fields<'a> {
    object: &'a Object,
    next: usize,
    hidden: Vec<usize>,
}

impl<'a> Fields<'a> {
    fn new(object: &'a Object) -> Self {
        Self { object, next: 0, hidden: hidden_fields(object.fields.iter().map(|(name, _)| &**name)) }
    }
}

/// Places, in falling order, of the names that come again later: a superclass's fields that its subclass hides.
pub fn hidden_fields<'a>(
    names: impl DoubleEndedIterator<Item = &'a str> + ExactSizeIterator + Clone,
) -> Vec<usize> {
    /// Up to this many names comparing all is quicker than hashing them.
    const FEW: usize = 16;

    let count = names.len();
    if count <= FEW {
        let again = |at: usize, name: &str| names.clone().skip(at + 1).any(|later| later == name);
        return names
            .clone()
            .enumerate()
            .rev()
            .filter(|(at, name)| again(*at, name))
            .map(|(at, _)| at)
            .collect();
    }
    let mut seen = HashSet::with_capacity(count);
    names.enumerate().rev().filter(|(_, name)| !seen.insert(*name)).map(|(at, _)| at).collect()
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = SerializeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, SerializeError> {
        while let Some((name, _)) = self.object.fields.get(self.next) {
            self.next += 1;
            if self.hidden.last() == Some(&(self.next - 1)) {
                self.hidden.pop();
                continue;
            }
            let name: StrDeserializer<'_, SerializeError> = (&**name).into_deserializer();
            return seed.deserialize(name).map(Some);
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, SerializeError> {
        match self.object.fields.get(self.next.wrapping_sub(1)) {
            Some((name, value)) => seed.deserialize(value).map_err(|error| {
                SerializeError::new(format!("field {name} of {}: {error}", self.object.class))
            }),
            None => Err(SerializeError::new("a field's value was asked for before its name")),
        }
    }
}

struct Variant<'a> {
    name: &'a str,
    content: &'a Value,
}

impl<'de> EnumAccess<'de> for Variant<'_> {
    type Error = SerializeError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), SerializeError> {
        let name: StrDeserializer<'_, SerializeError> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_> {
    type Error = SerializeError;

    fn unit_variant(self) -> Result<(), SerializeError> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, SerializeError> {
        seed.deserialize(self.content)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, SerializeError> {
        self.content.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, SerializeError> {
        self.content.deserialize_map(visitor)
    }
}
