//! Typed values, through serde.

use std::sync::Arc;

use dubhe_core::serialize::SerializeError;
use dubhe_core::value::java::millis_of;
use dubhe_core::value::{Octet, Value, marker};
use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess, VariantAccess, Visitor,
};

use super::head::Head;
use super::{Class, Reader, Result};
use crate::tag;

/// Reads the next value.
pub(super) struct Typed<'r>(pub(super) &'r mut Reader);

/// A value of another kind than the type can hold.
fn mismatch<'de, V: Visitor<'de>>(reader: &Reader, at: usize, head: &Head, visitor: &V) -> SerializeError {
    let expected: &dyn serde::de::Expected = visitor;
    reader.error(at, format_args!("{} where {expected} is expected", head.kind()))
}

impl Reader {
    fn integer<'de, V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        if let Some(int) = self.next_int()? {
            return visitor.visit_i64(i64::from(int));
        }
        let (at, head) = self.head()?;
        match head {
            Head::Int(value) => visitor.visit_i64(i64::from(value)),
            Head::Long(value) => visitor.visit_i64(value),
            Head::Double(value) if value.fract() == 0.0 && value.abs() <= MAX_EXACT => {
                visitor.visit_i64(value as i64)
            }
            // A BigInteger: rare, so by way of a dynamic value.
            Head::Object(_) => self.whole(at, |value| value.deserialize_i128(visitor)),
            Head::Ref(index) => self.again(index, |reader| reader.integer(visitor)),
            head => Err(mismatch(self, at, &head, &visitor)),
        }
    }

    fn number<'de, V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        let (at, head) = self.head()?;
        match head {
            Head::Int(value) => visitor.visit_f64(f64::from(value)),
            Head::Long(value) => visitor.visit_f64(value as f64),
            Head::Double(value) => visitor.visit_f64(value),
            head => Err(mismatch(self, at, &head, &visitor)),
        }
    }

    fn visit_text<'de, V: Visitor<'de>>(&mut self, first: u8, visitor: V) -> Result<V::Value> {
        match self.plain(first)? {
            Some(text) => visitor.visit_str(text),
            None => visitor.visit_string(self.string(first)?),
        }
    }

    /// Reads the value whose head was read last, at `at`, as a dynamic one, and gives that to `read`.
    fn whole<T>(&mut self, at: usize, read: impl FnOnce(&Value) -> Result<T>) -> Result<T> {
        self.at = at;
        self.types.truncate(self.types_before);
        let value = self.value()?;
        if value.expanded_size() > self.limits.values as u64 {
            return Err(self.error(at, format_args!("more than {} values in one body", self.limits.values)));
        }
        read(&value)
    }

    fn visit_list<'de, V: Visitor<'de>>(
        &mut self,
        at: usize,
        len: Option<usize>,
        visitor: V,
    ) -> Result<V::Value> {
        let index = self.begin(at)?;
        let mut items = Items { reader: self, left: len, ended: false };
        let value = visitor.visit_seq(&mut items)?;
        let (left, ended) = (items.left, items.ended);
        if !ended {
            self.skip_items(left)?;
        }
        self.end(index);
        Ok(value)
    }

    fn visit_entries<'de, V: Visitor<'de>>(&mut self, at: usize, visitor: V) -> Result<V::Value> {
        let index = self.begin(at)?;
        let mut entries = Entries { reader: self, ended: false };
        let value = visitor.visit_map(&mut entries)?;
        if !entries.ended {
            while !self.at_end_mark()? {
                self.skip()?;
                self.skip()?;
            }
        }
        self.end(index);
        Ok(value)
    }

    fn visit_object<'de, V: Visitor<'de>>(
        &mut self,
        at: usize,
        class: &Arc<Class>,
        visitor: V,
    ) -> Result<V::Value> {
        let index = self.begin(at)?;
        let value = match class.compact() {
            Some(form) => self.compact(class, form)?.deserialize_any(visitor)?,
            None => {
                let mut fields = Fields { reader: self, class, next: 0, hidden: class.hidden.len() };
                let value = visitor.visit_map(&mut fields)?;
                for _ in fields.next..class.fields.len() {
                    self.skip()?;
                }
                value
            }
        };
        self.end(index);
        Ok(value)
    }

    /// The constant of an enum object: its field `name`.
    fn constant(&mut self, at: usize, class: &Class) -> Result<Option<String>> {
        let index = self.begin(at)?;
        let mut constant = None;
        for field in &class.fields {
            let next = self.input.get(self.at).copied();
            match next {
                Some(first @ (0x00..=0x1f | 0x30..=0x33 | tag::STRING_CHUNK | tag::STRING_LAST))
                    if &**field == "name" =>
                {
                    self.at += 1;
                    constant = Some(self.string(first)?);
                }
                _ => self.skip()?,
            }
        }
        self.end(index);
        Ok(constant)
    }
}

/// Up to here every whole number has an exact double.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

macro_rules! by {
    ($($method:ident => $read:ident;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            self.0.$read(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for Typed<'_> {
    type Error = SerializeError;

    fn is_human_readable(&self) -> bool {
        false
    }

    by! {
        deserialize_i8 => integer;
        deserialize_i16 => integer;
        deserialize_i32 => integer;
        deserialize_i64 => integer;
        deserialize_i128 => integer;
        deserialize_u8 => integer;
        deserialize_u16 => integer;
        deserialize_u32 => integer;
        deserialize_u64 => integer;
        deserialize_u128 => integer;
        deserialize_f32 => number;
        deserialize_f64 => number;
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let reader = self.0;
        let (at, head) = reader.head()?;
        match head {
            Head::Null => visitor.visit_unit(),
            Head::Bool(value) => visitor.visit_bool(value),
            Head::Int(value) => visitor.visit_i32(value),
            Head::Long(value) | Head::Date(value) => visitor.visit_i64(value),
            Head::Double(value) => visitor.visit_f64(value),
            Head::Str(first) => reader.visit_text(first, visitor),
            Head::Binary(first) => visitor.visit_bytes(&reader.binary(first)?),
            Head::List { len, .. } => reader.visit_list(at, len, visitor),
            Head::Map { .. } => reader.visit_entries(at, visitor),
            Head::Object(class) => reader.visit_object(at, &class, visitor),
            Head::Ref(index) => reader.again(index, |reader| Typed(reader).deserialize_any(visitor)),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let (at, head) = self.0.head()?;
        match head {
            Head::Bool(value) => visitor.visit_bool(value),
            Head::Int(value @ (0 | 1)) => visitor.visit_bool(value == 1),
            head => Err(mismatch(self.0, at, &head, &visitor)),
        }
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let reader = self.0;
        if let Some(first) = reader.next_string() {
            return reader.visit_text(first, visitor);
        }
        let (at, head) = reader.head()?;
        match head {
            Head::Str(first) => reader.visit_text(first, visitor),
            Head::Bool(value) => visitor.visit_string(Value::Bool(value).to_java_text()),
            Head::Int(value) => visitor.visit_string(value.to_string()),
            Head::Long(value) => visitor.visit_string(value.to_string()),
            Head::Double(value) => visitor.visit_string(Value::Double(value).to_java_text()),
            head => Err(mismatch(reader, at, &head, &visitor)),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let reader = self.0;
        let (at, head) = reader.head()?;
        match head {
            Head::Binary(first) => visitor.visit_bytes(&reader.binary(first)?),
            Head::List { len, .. } => reader.visit_list(at, len, visitor),
            Head::Ref(index) => reader.again(index, |reader| Typed(reader).deserialize_bytes(visitor)),
            head => Err(mismatch(reader, at, &head, &visitor)),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if self.0.input.get(self.0.at) == Some(&tag::NULL) {
            self.0.at += 1;
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.0.skip()?;
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value> {
        match name {
            marker::VALUE => {
                let value = self.0.value()?;
                marker::hand_over(value);
                visitor.visit_unit()
            }
            marker::DATE => {
                let reader = self.0;
                let (at, head) = reader.head()?;
                match head {
                    Head::Date(millis) | Head::Long(millis) => visitor.visit_i64(millis),
                    Head::Int(millis) => visitor.visit_i64(i64::from(millis)),
                    // java.sql dates, calendars, texts: rare, so by way of a dynamic value.
                    Head::Object(_) | Head::Str(_) | Head::Ref(_) => {
                        match reader.whole(at, |value| Ok(millis_of(value)))? {
                            Some(millis) => visitor.visit_i64(millis),
                            None => Err(mismatch(reader, at, &head, &visitor)),
                        }
                    }
                    head => Err(mismatch(reader, at, &head, &visitor)),
                }
            }
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let reader = self.0;
        let (at, head) = reader.head()?;
        match head {
            Head::List { len, .. } => reader.visit_list(at, len, visitor),
            Head::Binary(first) => visitor.visit_seq(Octets(reader.binary(first)?.iter())),
            Head::Ref(index) => reader.again(index, |reader| Typed(reader).deserialize_seq(visitor)),
            head => Err(mismatch(reader, at, &head, &visitor)),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let reader = self.0;
        let (at, head) = reader.head()?;
        match head {
            Head::Object(class) => reader.visit_object(at, &class, visitor),
            Head::Map { .. } => reader.visit_entries(at, visitor),
            Head::Ref(index) => reader.again(index, |reader| Typed(reader).deserialize_map(visitor)),
            head => Err(mismatch(reader, at, &head, &visitor)),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        let reader = self.0;
        let (at, head) = reader.head()?;
        match head {
            Head::Str(first) => {
                let constant = reader.string(first)?;
                visitor.visit_enum(IntoDeserializer::<SerializeError>::into_deserializer(constant.as_str()))
            }
            Head::Object(class) if !variants.contains(&&*class.name) && class.fields.iter().any(is_name) => {
                match reader.constant(at, &class)? {
                    Some(constant) => visitor
                        .visit_enum(IntoDeserializer::<SerializeError>::into_deserializer(constant.as_str())),
                    None => Err(mismatch(reader, at, &Head::Object(class), &visitor)),
                }
            }
            Head::Object(class) => {
                reader.at = at;
                visitor.visit_enum(Variant { reader, class })
            }
            // Maps of generic calls, and data of Rust enums: by way of a dynamic value.
            Head::Map { .. } => reader.whole(at, |value| value.deserialize_enum(name, variants, visitor)),
            Head::Ref(index) => {
                reader.again(index, |reader| Typed(reader).deserialize_enum(name, variants, visitor))
            }
            head => Err(mismatch(reader, at, &head, &visitor)),
        }
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_unit(visitor)
    }
}

fn is_name(field: &Arc<str>) -> bool {
    &**field == "name"
}

/// The elements of a list.
struct Items<'r> {
    reader: &'r mut Reader,
    /// Elements to come; `None` up to the end mark.
    left: Option<usize>,
    ended: bool,
}

impl<'de> SeqAccess<'de> for &mut Items<'_> {
    type Error = SerializeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        match &mut self.left {
            _ if self.ended => return Ok(None),
            Some(0) => self.ended = true,
            Some(left) => *left -= 1,
            None => self.ended = self.reader.at_end_mark()?,
        }
        if self.ended { Ok(None) } else { seed.deserialize(Typed(self.reader)).map(Some) }
    }

    fn size_hint(&self) -> Option<usize> {
        self.left
    }
}

/// The bytes of binary data where a list is wanted.
struct Octets<'b>(std::slice::Iter<'b, u8>);

impl<'de> SeqAccess<'de> for Octets<'_> {
    type Error = SerializeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        self.0.next().map(|octet| seed.deserialize(Octet(*octet))).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

/// The entries of a map.
struct Entries<'r> {
    reader: &'r mut Reader,
    ended: bool,
}

impl<'de> MapAccess<'de> for &mut Entries<'_> {
    type Error = SerializeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        if self.ended || self.reader.at_end_mark()? {
            self.ended = true;
            return Ok(None);
        }
        seed.deserialize(Typed(self.reader)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        seed.deserialize(Typed(self.reader))
    }
}

/// The fields of an object. A field that a later one of the same name hides is stepped over.
struct Fields<'r, 'c> {
    reader: &'r mut Reader,
    class: &'c Class,
    next: usize,
    /// How many of the class's hidden fields are still to come.
    hidden: usize,
}

impl<'de> MapAccess<'de> for &mut Fields<'_, '_> {
    type Error = SerializeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        while self.hidden > 0 && self.class.hidden.get(self.hidden - 1) == Some(&self.next) {
            self.hidden -= 1;
            self.next += 1;
            self.reader.skip()?;
        }
        let Some(name) = self.class.fields.get(self.next) else { return Ok(None) };
        let name: StrDeserializer<'_, SerializeError> = (&**name).into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        let name = self.class.fields.get(self.next);
        self.next += 1;
        seed.deserialize(Typed(self.reader)).map_err(|error| {
            SerializeError::new(format!("{}.{}: {error}", self.class.name, name.map_or("?", |name| &**name)))
        })
    }

    fn size_hint(&self) -> Option<usize> {
        self.class.fields.len().checked_sub(self.next)
    }
}

/// An object whose class names the variant of an enum; the reader stands at it.
struct Variant<'r> {
    reader: &'r mut Reader,
    class: Arc<Class>,
}

impl<'de, 'r> EnumAccess<'de> for Variant<'r> {
    type Error = SerializeError;
    type Variant = Typed<'r>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Typed<'r>)> {
        let name: StrDeserializer<'_, SerializeError> = (&*self.class.name).into_deserializer();
        Ok((seed.deserialize(name)?, Typed(self.reader)))
    }
}

impl<'de> VariantAccess<'de> for Typed<'_> {
    type Error = SerializeError;

    fn unit_variant(self) -> Result<()> {
        self.0.skip()
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_map(visitor)
    }
}
