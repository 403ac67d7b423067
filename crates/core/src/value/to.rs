//! Typed values to dynamic ones.

use std::fmt::Display;
use std::sync::Arc;

use bytes::Bytes;
use serde::ser::{self, Serialize, Serializer};

use super::{List, Map, Object, Value, marker};
use crate::serialize::SerializeError;

/// Deepest nesting that a value may have. Origin: the depth limit of the Hessian2 reader.
const MAX_DEPTH: usize = 128;

/// A typed value as a dynamic one, as the serializations would write it.
///
/// Errors: an integer that fits no Java long, nesting over 128 levels, or what a `Serialize` implementation reports.
pub fn to_value<T: Serialize + ?Sized>(value: &T) -> Result<Value, SerializeError> {
    value.serialize(ToValue { depth: 0, constants: Constants::AsEnums })
}

/// As [`to_value`], but enum constants are their names: what a generic caller reads. Origin: `PojoUtils.generalize`.
///
/// A constant and an object with one field `name` are alike in a [`Value`], so this cannot be told later.
pub fn to_generic_value<T: Serialize + ?Sized>(value: &T) -> Result<Value, SerializeError> {
    value.serialize(ToValue { depth: 0, constants: Constants::AsNames })
}

impl ser::Error for SerializeError {
    fn custom<T: Display>(message: T) -> Self {
        Self::new(message.to_string())
    }
}

#[derive(Clone, Copy)]
struct ToValue {
    depth: usize,
    constants: Constants,
}

/// What becomes of the constants of Java enums.
#[derive(Clone, Copy, PartialEq)]
enum Constants {
    AsEnums,
    AsNames,
}

impl ToValue {
    fn inner(self) -> Result<Self, SerializeError> {
        if self.depth >= MAX_DEPTH {
            return Err(SerializeError::new(format!("the value is nested deeper than {MAX_DEPTH} levels")));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }
}

impl Serializer for ToValue {
    type Ok = Value;
    type Error = SerializeError;
    type SerializeSeq = Items;
    type SerializeTuple = Items;
    type SerializeTupleStruct = Items;
    type SerializeTupleVariant = Items;
    type SerializeMap = Entries;
    type SerializeStruct = Fields;
    type SerializeStructVariant = Fields;

    fn is_human_readable(&self) -> bool {
        false
    }

    fn serialize_bool(self, value: bool) -> Result<Value, SerializeError> {
        Ok(Value::Bool(value))
    }

    fn serialize_i8(self, value: i8) -> Result<Value, SerializeError> {
        Ok(Value::Int(value.into()))
    }

    fn serialize_i16(self, value: i16) -> Result<Value, SerializeError> {
        Ok(Value::Int(value.into()))
    }

    fn serialize_i32(self, value: i32) -> Result<Value, SerializeError> {
        Ok(Value::Int(value))
    }

    fn serialize_i64(self, value: i64) -> Result<Value, SerializeError> {
        Ok(Value::Long(value))
    }

    fn serialize_i128(self, value: i128) -> Result<Value, SerializeError> {
        i64::try_from(value).map(Value::Long).map_err(|_| too_large(value))
    }

    fn serialize_u8(self, value: u8) -> Result<Value, SerializeError> {
        Ok(Value::Int(value.into()))
    }

    fn serialize_u16(self, value: u16) -> Result<Value, SerializeError> {
        Ok(Value::Int(value.into()))
    }

    fn serialize_u32(self, value: u32) -> Result<Value, SerializeError> {
        Ok(Value::Long(value.into()))
    }

    fn serialize_u64(self, value: u64) -> Result<Value, SerializeError> {
        i64::try_from(value).map(Value::Long).map_err(|_| too_large(value))
    }

    fn serialize_u128(self, value: u128) -> Result<Value, SerializeError> {
        i64::try_from(value).map(Value::Long).map_err(|_| too_large(value))
    }

    fn serialize_f32(self, value: f32) -> Result<Value, SerializeError> {
        Ok(Value::Double(super::java::widen(value)))
    }

    fn serialize_f64(self, value: f64) -> Result<Value, SerializeError> {
        Ok(Value::Double(value))
    }

    fn serialize_char(self, value: char) -> Result<Value, SerializeError> {
        Ok(Value::from(&*value.encode_utf8(&mut [0; 4])))
    }

    fn serialize_str(self, value: &str) -> Result<Value, SerializeError> {
        Ok(Value::from(value))
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<Value, SerializeError> {
        Ok(Value::Bytes(Bytes::copy_from_slice(value)))
    }

    fn serialize_none(self) -> Result<Value, SerializeError> {
        Ok(Value::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, SerializeError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Value, SerializeError> {
        Ok(Value::Null)
    }

    fn serialize_unit_struct(self, name: &'static str) -> Result<Value, SerializeError> {
        if marker::is_class(name) {
            return Ok(Value::Object(Arc::new(Object { class: name.into(), fields: Vec::new() })));
        }
        Ok(Value::Null)
    }

    fn serialize_unit_variant(
        self,
        name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<Value, SerializeError> {
        if marker::is_class(name) && self.constants == Constants::AsEnums {
            return Ok(Value::enum_constant(name, variant));
        }
        Ok(Value::from(variant))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<Value, SerializeError> {
        match name {
            marker::VALUE => {
                marker::take_over().ok_or_else(|| SerializeError::new("no value was handed over"))
            }
            marker::DATE => match value.serialize(self)? {
                Value::Long(millis) => Ok(Value::Date(millis)),
                other => Ok(other),
            },
            _ => value.serialize(self),
        }
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Value, SerializeError> {
        let value = value.serialize(self.inner()?)?;
        if !marker::is_class(variant) {
            return Ok(Value::map([(variant, value)]));
        }
        let fields = match &value {
            Value::Object(object) => object.fields.clone(),
            Value::Map(map) => {
                map.entries.iter().map(|(key, value)| (key.to_java_text().into(), value.clone())).collect()
            }
            Value::Null => Vec::new(),
            _ => {
                return Err(SerializeError::new(format!(
                    "variant {variant} is a class and must hold a struct"
                )));
            }
        };
        Ok(Value::Object(Arc::new(Object { class: variant.into(), fields })))
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<Items, SerializeError> {
        Items::new(self, len.unwrap_or(0))
    }

    fn serialize_tuple(self, len: usize) -> Result<Items, SerializeError> {
        Items::new(self, len)
    }

    fn serialize_tuple_struct(self, name: &'static str, len: usize) -> Result<Items, SerializeError> {
        let mut items = Items::new(self, len)?;
        items.typed = name == marker::TYPED_LIST;
        Ok(items)
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Items, SerializeError> {
        let mut items = Items::new(self, len)?;
        items.variant = Some(variant);
        Ok(items)
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Entries, SerializeError> {
        Ok(Entries { inner: self.inner()?, key: None, entries: Vec::with_capacity(len.unwrap_or(0)) })
    }

    fn serialize_struct(self, name: &'static str, len: usize) -> Result<Fields, SerializeError> {
        let class = marker::is_class(name).then_some(name);
        Ok(Fields { inner: self.inner()?, class, variant: None, fields: Vec::with_capacity(len) })
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Fields, SerializeError> {
        let mut fields = self.serialize_struct(variant, len)?;
        fields.variant = fields.class.is_none().then_some(variant);
        Ok(fields)
    }
}

fn too_large(value: impl Display) -> SerializeError {
    SerializeError::new(format!("{value} does not fit a Java long: use java::BigInteger"))
}

struct Items {
    inner: ToValue,
    typed: bool,
    variant: Option<&'static str>,
    items: Vec<Value>,
}

impl Items {
    fn new(outer: ToValue, len: usize) -> Result<Self, SerializeError> {
        Ok(Self { inner: outer.inner()?, typed: false, variant: None, items: Vec::with_capacity(len) })
    }

    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), SerializeError> {
        self.items.push(value.serialize(self.inner)?);
        Ok(())
    }

    fn finish(mut self) -> Result<Value, SerializeError> {
        let class = if self.typed && !self.items.is_empty() {
            self.items.remove(0).as_str().map(Into::into)
        } else {
            None
        };
        let list = Value::List(Arc::new(List { class, items: self.items }));
        Ok(match self.variant {
            Some(variant) => Value::map([(variant, list)]),
            None => list,
        })
    }
}

impl ser::SerializeSeq for Items {
    type Ok = Value;
    type Error = SerializeError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), SerializeError> {
        self.push(value)
    }

    fn end(self) -> Result<Value, SerializeError> {
        self.finish()
    }
}

impl ser::SerializeTuple for Items {
    type Ok = Value;
    type Error = SerializeError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), SerializeError> {
        self.push(value)
    }

    fn end(self) -> Result<Value, SerializeError> {
        self.finish()
    }
}

impl ser::SerializeTupleStruct for Items {
    type Ok = Value;
    type Error = SerializeError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), SerializeError> {
        self.push(value)
    }

    fn end(self) -> Result<Value, SerializeError> {
        self.finish()
    }
}

impl ser::SerializeTupleVariant for Items {
    type Ok = Value;
    type Error = SerializeError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), SerializeError> {
        self.push(value)
    }

    fn end(self) -> Result<Value, SerializeError> {
        self.finish()
    }
}

struct Entries {
    inner: ToValue,
    key: Option<Value>,
    entries: Vec<(Value, Value)>,
}

impl ser::SerializeMap for Entries {
    type Ok = Value;
    type Error = SerializeError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), SerializeError> {
        self.key = Some(key.serialize(self.inner)?);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), SerializeError> {
        let key = self.key.take().ok_or_else(|| SerializeError::new("a map value came without its key"))?;
        self.entries.push((key, value.serialize(self.inner)?));
        Ok(())
    }

    fn end(self) -> Result<Value, SerializeError> {
        Ok(Value::Map(Arc::new(Map { class: None, entries: self.entries })))
    }
}

struct Fields {
    inner: ToValue,
    class: Option<&'static str>,
    variant: Option<&'static str>,
    fields: Vec<(&'static str, Value)>,
}

impl Fields {
    fn push<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), SerializeError> {
        self.fields.push((name, value.serialize(self.inner)?));
        Ok(())
    }

    fn finish(self) -> Result<Value, SerializeError> {
        let value = match self.class {
            Some(class) => Value::object(class, self.fields),
            None => Value::map(self.fields),
        };
        Ok(match self.variant {
            Some(variant) => Value::map([(variant, value)]),
            None => value,
        })
    }
}

impl ser::SerializeStruct for Fields {
    type Ok = Value;
    type Error = SerializeError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), SerializeError> {
        self.push(name, value)
    }

    fn skip_field(&mut self, name: &'static str) -> Result<(), SerializeError> {
        if self.class.is_some() {
            self.fields.push((name, Value::Null));
        }
        Ok(())
    }

    fn end(self) -> Result<Value, SerializeError> {
        self.finish()
    }
}

impl ser::SerializeStructVariant for Fields {
    type Ok = Value;
    type Error = SerializeError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), SerializeError> {
        self.push(name, value)
    }

    fn skip_field(&mut self, name: &'static str) -> Result<(), SerializeError> {
        ser::SerializeStruct::skip_field(self, name)
    }

    fn end(self) -> Result<Value, SerializeError> {
        self.finish()
    }
}
