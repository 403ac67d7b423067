//! A serialization for tests: one tag byte per value, lengths of four bytes.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use dubhe_core::error::Exception;
use dubhe_core::invocation::Attachments;
use dubhe_core::serialize::{ObjectReader, ObjectWriter, Serialization, SerializeError};
use dubhe_core::value::{List, Value};
use serde_json::Value as Json;

/// With the given id and name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tagged(pub(super) u8, pub(super) &'static str);

pub(super) const TAGGED: Tagged = Tagged(2, "tagged");

impl Serialization for Tagged {
    fn id(&self) -> u8 {
        self.0
    }

    fn name(&self) -> &str {
        self.1
    }

    fn encode(
        &self,
        out: &mut BytesMut,
        write: &mut dyn FnMut(&mut dyn ObjectWriter) -> Result<(), SerializeError>,
    ) -> Result<(), SerializeError> {
        write(&mut Writer(out))
    }

    fn reader(&self, body: Bytes) -> Box<dyn ObjectReader + Send> {
        Box::new(Reader(body))
    }
}

struct Writer<'a>(&'a mut BytesMut);

impl Writer<'_> {
    fn text(&mut self, tag: u8, text: &str) {
        self.0.put_u8(tag);
        self.0.put_u32(text.len() as u32);
        self.0.put_slice(text.as_bytes());
    }

    fn json(&mut self, value: &Json) -> Result<(), SerializeError> {
        match value {
            Json::Null => self.write_null(),
            Json::Bool(value) => self.write_bool(*value),
            Json::Number(number) => match number.as_i64() {
                Some(long) => match i32::try_from(long) {
                    Ok(int) => self.write_int(int),
                    Err(_) => self.write_long(long),
                },
                None => Err(SerializeError::new("no floats here")),
            },
            Json::String(text) => self.write_str(text),
            Json::Array(items) => {
                self.0.put_u8(b'a');
                self.0.put_u32(items.len() as u32);
                items.iter().try_for_each(|item| self.json(item))
            }
            Json::Object(_) => Err(SerializeError::new("no objects here")),
        }
    }
}

impl ObjectWriter for Writer<'_> {
    fn write_null(&mut self) -> Result<(), SerializeError> {
        self.0.put_u8(b'N');
        Ok(())
    }

    fn write_bool(&mut self, value: bool) -> Result<(), SerializeError> {
        self.0.put_u8(if value { b'T' } else { b'F' });
        Ok(())
    }

    fn write_int(&mut self, value: i32) -> Result<(), SerializeError> {
        self.0.put_u8(b'i');
        self.0.put_i32(value);
        Ok(())
    }

    fn write_long(&mut self, value: i64) -> Result<(), SerializeError> {
        self.0.put_u8(b'l');
        self.0.put_i64(value);
        Ok(())
    }

    fn write_str(&mut self, value: &str) -> Result<(), SerializeError> {
        self.text(b's', value);
        Ok(())
    }

    fn write_bytes(&mut self, _value: &[u8]) -> Result<(), SerializeError> {
        Err(SerializeError::new("no bytes here"))
    }

    fn write_value(&mut self, value: &Value) -> Result<(), SerializeError> {
        match value {
            Value::Null => self.write_null(),
            Value::Bool(value) => self.write_bool(*value),
            Value::Int(value) => self.write_int(*value),
            Value::Long(value) => self.write_long(*value),
            Value::Str(text) => self.write_str(text),
            Value::List(list) => {
                self.0.put_u8(b'a');
                self.0.put_u32(list.items.len() as u32);
                list.items.iter().try_for_each(|item| self.write_value(item))
            }
            _ => Err(SerializeError::new("no such value here")),
        }
    }

    fn write(&mut self, value: &dyn erased_serde::Serialize) -> Result<(), SerializeError> {
        let json = serde_json::to_value(value).map_err(|error| SerializeError::new(error.to_string()))?;
        self.json(&json)
    }

    fn write_attachments(&mut self, attachments: &Attachments) -> Result<(), SerializeError> {
        self.write_attachments_with(&[], attachments)
    }

    fn write_exception(&mut self, exception: &Exception) -> Result<(), SerializeError> {
        self.text(b'e', &exception.class);
        self.write_str(exception.message.as_deref().unwrap_or(""))
    }

    fn write_attachments_with(&mut self, encoded: &[u8], more: &Attachments) -> Result<(), SerializeError> {
        self.0.put_u8(b'm');
        self.0.put_slice(encoded);
        for (key, value) in more.iter() {
            self.write_str(key)?;
            self.write_value(value)?;
        }
        self.0.put_u8(b'z');
        Ok(())
    }
}

struct Reader(Bytes);

impl Reader {
    fn need(&self, count: usize) -> Result<(), SerializeError> {
        if self.0.len() < count { Err(SerializeError::new("the body ends too early")) } else { Ok(()) }
    }

    fn tag(&mut self) -> Result<u8, SerializeError> {
        self.need(1)?;
        Ok(self.0.get_u8())
    }

    fn text(&mut self) -> Result<String, SerializeError> {
        self.need(4)?;
        let length = self.0.get_u32() as usize;
        self.need(length)?;
        String::from_utf8(self.0.split_to(length).to_vec())
            .map_err(|error| SerializeError::new(error.to_string()))
    }

    fn value_of(&mut self, tag: u8) -> Result<Value, SerializeError> {
        match tag {
            b'N' => Ok(Value::Null),
            b'T' => Ok(Value::Bool(true)),
            b'F' => Ok(Value::Bool(false)),
            b'i' => self.need(4).map(|()| Value::Int(self.0.get_i32())),
            b'l' => self.need(8).map(|()| Value::Long(self.0.get_i64())),
            b's' => Ok(Value::Str(self.text()?.into())),
            b'a' => {
                self.need(4)?;
                let count = self.0.get_u32();
                let items = (0..count).map(|_| self.read_value()).collect::<Result<_, _>>()?;
                Ok(Value::List(List { class: None, items }.into()))
            }
            other => Err(SerializeError::new(format!("unexpected tag {other:#04x}"))),
        }
    }
}

fn json(value: &Value) -> Json {
    match value {
        Value::Bool(value) => (*value).into(),
        Value::Int(value) => (*value).into(),
        Value::Long(value) => (*value).into(),
        Value::Str(text) => (**text).into(),
        Value::List(list) => list.items.iter().map(json).collect(),
        _ => Json::Null,
    }
}

impl ObjectReader for Reader {
    fn read_int(&mut self) -> Result<i32, SerializeError> {
        match self.read_value()? {
            Value::Int(value) => Ok(value),
            other => Err(SerializeError::new(format!("an int expected, found {other:?}"))),
        }
    }

    fn read_str(&mut self) -> Result<Option<String>, SerializeError> {
        match self.read_value()? {
            Value::Null => Ok(None),
            Value::Str(text) => Ok(Some(text.to_string())),
            other => Err(SerializeError::new(format!("a string expected, found {other:?}"))),
        }
    }

    fn read_value(&mut self) -> Result<Value, SerializeError> {
        let tag = self.tag()?;
        self.value_of(tag)
    }

    fn read(
        &mut self,
        visit: &mut dyn FnMut(&mut dyn erased_serde::Deserializer<'_>) -> Result<(), erased_serde::Error>,
    ) -> Result<(), SerializeError> {
        let json = json(&self.read_value()?);
        Ok(visit(&mut <dyn erased_serde::Deserializer<'_>>::erase(json))?)
    }

    fn read_attachments(&mut self) -> Result<Attachments, SerializeError> {
        let mut all = Attachments::new();
        match self.tag()? {
            b'N' => return Ok(all),
            b'm' => {}
            other => return Err(SerializeError::new(format!("a map expected, found tag {other:#04x}"))),
        }
        loop {
            match self.tag()? {
                b'z' => return Ok(all),
                tag => match self.value_of(tag)? {
                    Value::Str(key) => all.set(key.to_string(), self.read_value()?),
                    other => return Err(SerializeError::new(format!("a key expected, found {other:?}"))),
                },
            }
        }
    }

    fn read_exception(&mut self) -> Result<Exception, SerializeError> {
        match self.tag()? {
            b'e' => {
                let class = self.text()?;
                Ok(Exception::new(class, self.read_str()?.unwrap_or_default()))
            }
            other => Err(SerializeError::new(format!(
                "Response data error, expect Throwable, but get tag {other:#04x}"
            ))),
        }
    }

    fn remaining(&self) -> usize {
        self.0.len()
    }
}
