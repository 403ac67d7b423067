//! `Value` through serde, writing.

use serde::ser::{Error, Serialize, SerializeMap, Serializer};

use super::size::MAX_EXPANDED;
use super::{Value, marker};

/// Serializations of Dubbo get the value whole. Text formats get plain data: an object is a map with its class under
/// `class`, a date is its milliseconds, a cycle is null. Shared parts are written at each occurrence, up to 1,000,000
/// values.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let plain = Plain { value: self, root: true };
        if serializer.is_human_readable() {
            return plain.serialize(serializer);
        }
        marker::hand_over(self.clone());
        serializer.serialize_newtype_struct(marker::VALUE, &plain)
    }
}

struct Plain<'a> {
    value: &'a Value,
    root: bool,
}

impl Serialize for Plain<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.root && self.value.expanded_size() > MAX_EXPANDED {
            return Err(S::Error::custom("the value is too large when its shared parts are written out"));
        }
        let part = |value| Plain { value, root: false };
        match self.value {
            Value::Null | Value::Ref(_) => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Int(value) => serializer.serialize_i32(*value),
            Value::Long(value) | Value::Date(value) => serializer.serialize_i64(*value),
            Value::Double(value) => serializer.serialize_f64(*value),
            Value::Str(text) => serializer.serialize_str(text),
            Value::Utf16(units) => serializer.serialize_str(&String::from_utf16_lossy(units)),
            Value::Bytes(bytes) => serializer.serialize_bytes(bytes),
            Value::List(list) => serializer.collect_seq(list.items.iter().map(part)),
            Value::Map(map) => serializer.collect_map(map.entries.iter().map(|(k, v)| (part(k), part(v)))),
            Value::Object(object) => {
                let mut map = serializer.serialize_map(Some(object.fields.len() + 1))?;
                map.serialize_entry("class", &*object.class)?;
                for (name, field) in &object.fields {
                    map.serialize_entry(&**name, &part(field))?;
                }
                map.end()
            }
        }
    }
}
