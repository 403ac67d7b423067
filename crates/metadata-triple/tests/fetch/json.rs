//! A serialization that is called Hessian2 and is JSON: what values look like is no affair of the crate under test.

use bytes::{BufMut, Bytes, BytesMut};
use dubhe_core::error::Exception;
use dubhe_core::invocation::Attachments;
use dubhe_core::serialize::{ObjectReader, ObjectWriter, Serialization, SerializeError};
use dubhe_core::value::Value;

#[derive(Debug)]
pub(crate) struct Json;

type Done = Result<(), SerializeError>;

impl Serialization for Json {
    fn id(&self) -> u8 {
        2
    }

    fn name(&self) -> &str {
        "hessian2"
    }

    fn encode(&self, out: &mut BytesMut, write: &mut dyn FnMut(&mut dyn ObjectWriter) -> Done) -> Done {
        write(&mut Writer(out))
    }

    fn reader(&self, body: Bytes) -> Box<dyn ObjectReader + Send> {
        Box::new(Reader(body))
    }
}

struct Writer<'a>(&'a mut BytesMut);

impl Writer<'_> {
    fn put(&mut self, text: impl ToString) -> Done {
        self.0.put_slice(text.to_string().as_bytes());
        Ok(())
    }
}

fn not_here<T>() -> Result<T, SerializeError> {
    Err(SerializeError::new("no such value here"))
}

impl ObjectWriter for Writer<'_> {
    fn write_null(&mut self) -> Done {
        self.put("null")
    }

    fn write_bool(&mut self, value: bool) -> Done {
        self.put(value)
    }

    fn write_int(&mut self, value: i32) -> Done {
        self.put(value)
    }

    fn write_long(&mut self, value: i64) -> Done {
        self.put(value)
    }

    fn write_str(&mut self, value: &str) -> Done {
        self.put(serde_json::Value::from(value))
    }

    fn write_bytes(&mut self, _value: &[u8]) -> Done {
        not_here()
    }

    fn write_value(&mut self, _value: &Value) -> Done {
        not_here()
    }

    fn write(&mut self, _value: &dyn erased_serde::Serialize) -> Done {
        not_here()
    }

    fn write_attachments(&mut self, _attachments: &Attachments) -> Done {
        not_here()
    }

    fn write_exception(&mut self, _exception: &Exception) -> Done {
        not_here()
    }

    fn write_attachments_with(&mut self, _encoded: &[u8], _more: &Attachments) -> Done {
        not_here()
    }
}

struct Reader(Bytes);

impl ObjectReader for Reader {
    fn read_int(&mut self) -> Result<i32, SerializeError> {
        not_here()
    }

    fn read_str(&mut self) -> Result<Option<String>, SerializeError> {
        Ok(self.read_value()?.as_str().map(str::to_owned))
    }

    fn read_value(&mut self) -> Result<Value, SerializeError> {
        let json = serde_json::from_slice(&std::mem::take(&mut self.0));
        json.map(|json| value(&json)).map_err(|error| SerializeError::new(error.to_string()))
    }

    fn read(
        &mut self,
        _visit: &mut dyn FnMut(&mut dyn erased_serde::Deserializer<'_>) -> Result<(), erased_serde::Error>,
    ) -> Done {
        not_here()
    }

    fn read_attachments(&mut self) -> Result<Attachments, SerializeError> {
        not_here()
    }

    fn read_exception(&mut self) -> Result<Exception, SerializeError> {
        Ok(Exception::new("java.lang.RuntimeException", self.read_str()?.unwrap_or_default()))
    }

    fn remaining(&self) -> usize {
        self.0.len()
    }
}

fn value(json: &serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match json {
        Json::Null => Value::Null,
        Json::Bool(flag) => Value::Bool(*flag),
        Json::Number(number) => Value::Int(number.as_i64().unwrap().try_into().unwrap()),
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => {
            Value::typed_list("java.util.ArrayList", items.iter().map(value).collect::<Vec<_>>())
        }
        Json::Object(entries) => Value::map(entries.iter().map(|(key, one)| (key.as_str(), value(one)))),
    }
}
