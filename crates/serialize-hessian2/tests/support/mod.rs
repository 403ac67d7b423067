//! Reading and writing in tests, and comparing with what Java decoded.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]

use bytes::{Bytes, BytesMut};
use dubhe_core::serialize::{ObjectReader, ObjectWriter, Serialization, SerializeError};
use dubhe_core::value::java::{BigDecimal, BigInteger};
use dubhe_core::value::{Value, from_value};
use dubhe_serialize_hessian2::Hessian2;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

pub fn bytes(hex_text: &str) -> Bytes {
    let digits: String = hex_text.chars().filter(|c| !c.is_whitespace()).collect();
    hex::decode(digits).expect("hex in a test").into()
}

pub fn reader(body: impl Into<Bytes>) -> Box<dyn ObjectReader + Send> {
    Hessian2::new().reader(body.into())
}

pub fn read_value(body: impl Into<Bytes>) -> Result<Value, SerializeError> {
    reader(body).read_value()
}

pub fn read_values(body: impl Into<Bytes>) -> Result<Vec<Value>, SerializeError> {
    let mut reader = reader(body);
    let mut values = Vec::new();
    while reader.remaining() > 0 {
        values.push(reader.read_value()?);
    }
    Ok(values)
}

pub fn read_as<T: DeserializeOwned>(body: impl Into<Bytes>) -> Result<T, SerializeError> {
    reader(body).read_as()
}

pub fn write_with(
    codec: &Hessian2,
    mut write: impl FnMut(&mut dyn ObjectWriter) -> Result<(), SerializeError>,
) -> Result<Bytes, SerializeError> {
    let mut out = BytesMut::new();
    codec.encode(&mut out, &mut write)?;
    Ok(out.freeze())
}

pub fn write_values(values: &[Value]) -> Bytes {
    write_with(&Hessian2::new(), |writer| values.iter().try_for_each(|value| writer.write_value(value)))
        .expect("values in a test can be written")
}

pub fn write_value(value: &Value) -> Bytes {
    write_values(std::slice::from_ref(value))
}

pub fn write<T: Serialize>(value: &T) -> Bytes {
    write_with(&Hessian2::new(), |writer| writer.write(value)).expect("values in a test can be written")
}

/// Whether `value` is what Java printed as `json`; else where it differs.
pub fn compare(value: &Value, json: &Json) -> Result<(), String> {
    let differ = || Err(format!("{value:?} is not {json}"));
    let same = |equal: bool| if equal { Ok(()) } else { differ() };
    match (value, json) {
        (Value::Null, Json::Null) => Ok(()),
        (Value::Bool(value), Json::Bool(expected)) => same(value == expected),
        (Value::Int(value), Json::Number(expected)) => same(Some(i64::from(*value)) == expected.as_i64()),
        (Value::Str(text), Json::String(expected)) if same_text(text, expected) => Ok(()),
        // Java printed a question mark for a lone surrogate.
        (Value::Utf16(units), Json::String(expected)) => {
            same(String::from_utf16_lossy(units).replace('\u{fffd}', "?") == *expected)
        }
        (_, Json::String(reference)) if reference.starts_with("(ref ") => {
            same(matches!(value, Value::Ref(_) | Value::List(_) | Value::Map(_) | Value::Object(_)))
        }
        (_, Json::String(typed)) => match typed.split_once(':') {
            Some((class, text)) => same(simple_text(value, class).as_deref() == Some(text)),
            None => differ(),
        },
        (Value::Bytes(bytes), Json::Object(expected)) => {
            let octets: Vec<Value> = bytes.iter().map(|byte| Value::Int(i32::from(*byte as i8))).collect();
            compare_items(&octets, &expected["items"], true)
        }
        (_, Json::Object(expected)) => compare_compound(value, expected),
        _ => differ(),
    }
}

fn same_text(text: &str, expected: &str) -> bool {
    if text == expected {
        return true;
    }
    // Long strings are given by their length and beginning.
    let Some((count, start)) = expected.strip_prefix('(').and_then(|rest| rest.split_once(" chars) ")) else {
        return false;
    };
    count.parse() == Ok(text.encode_utf16().count()) && text.starts_with(start.trim_end_matches("..."))
}

/// The text that Java printed for a value of a simple class.
fn simple_text(value: &Value, class: &str) -> Option<String> {
    let field = |name: &str| value.field(name).map(Value::to_java_text);
    match (class, value) {
        ("java.lang.Long", Value::Long(value)) => Some(value.to_string()),
        ("java.lang.Byte" | "java.lang.Short", Value::Int(value)) => Some(value.to_string()),
        ("java.lang.Double", Value::Double(_)) => Some(value.to_java_text()),
        ("java.lang.Float", Value::Double(value)) => Some(
            Value::Double(f64::from(*value as f32))
                .to_java_text()
                .parse::<f32>()
                .ok()
                .map(|float| format!("{float:?}"))?,
        ),
        ("java.util.Date", Value::Date(millis)) => Some(millis.to_string()),
        ("java.sql.Date" | "java.sql.Time" | "java.sql.Timestamp", Value::Object(object)) => {
            object.field("value").and_then(Value::as_date).map(|millis| millis.to_string())
        }
        ("java.math.BigDecimal", _) => from_value::<BigDecimal>(value.clone()).ok().map(|number| number.0),
        ("java.math.BigInteger", _) => from_value::<BigInteger>(value.clone()).ok().map(|number| number.0),
        ("java.util.concurrent.atomic.AtomicBoolean", _) => Some((field("value")? == "1").to_string()),
        ("java.util.concurrent.atomic.AtomicLong" | "java.util.concurrent.atomic.AtomicReference", _) => {
            field("value")
        }
        ("java.util.UUID" | "java.util.Locale" | "java.io.File", _) => field("value"),
        ("java.util.Currency", _) => field("currencyCode"),
        ("java.time.ZoneRegion", _) => field("zoneId"),
        ("java.lang.Class", _) => {
            let name = field("name")?;
            Some(if name == "int" { name } else { format!("class {name}") })
        }
        ("java.lang.StringBuilder" | "java.lang.StringBuffer", _) => {
            let count = usize::try_from(value.field("count")?.as_int()?).ok()?;
            Some(String::from_utf8_lossy(value.field("value")?.as_bytes()?.get(..count)?).into_owned())
        }
        ("java.util.AbstractMap$SimpleEntry", _) => Some(format!("{}={}", field("key")?, field("value")?)),
        ("java.lang.Object", Value::Object(object)) => {
            (&*object.class == "object").then(|| "java.lang.Object@282cb7c7".to_owned())
        }
        ("java.time.Duration", _) => {
            let seconds = value.field("seconds")?.as_long()?;
            let nanos = value.field("nanos")?.as_int()?;
            Some(format!("PT{}M{}.{nanos:09}S", seconds / 60, seconds % 60))
        }
        ("java.time.Period", _) => {
            Some(format!("P{}Y{}M{}D", field("years")?, field("months")?, field("days")?))
        }
        ("java.time.YearMonth", _) => Some(format!("{}-{:0>2}", field("year")?, field("month")?)),
        ("java.time.MonthDay", _) => Some(format!("--{:0>2}-{:0>2}", field("month")?, field("day")?)),
        ("java.lang.StackTraceElement", _) => {
            let place = format!("{}:{}", field("fileName")?, field("lineNumber")?);
            Some(format!("{}.{}({place})", field("declaringClass")?, field("methodName")?))
        }
        ("java.time.ZoneOffset", _) => offset(value),
        ("java.time.OffsetTime", _) => {
            Some(format!("{}{}", field("localTime")?, offset(value.field("zoneOffset")?)?))
        }
        ("java.time.ZonedDateTime", _) => {
            Some(format!("{}{}[{}]", field("dateTime")?, offset(value.field("offset")?)?, field("zoneId")?))
        }
        // Enums, java.time: as `Display` has them.
        (class, Value::Object(object)) => {
            let named = object.fields.len() == 1 && object.field("name").is_some();
            (!named || class.starts_with(&*object.class)).then(|| value.to_string())
        }
        _ => None,
    }
}

fn offset(value: &Value) -> Option<String> {
    let seconds = value.field("seconds")?.as_int()?;
    Some(format!("+{:02}:{:02}", seconds / 3_600, seconds / 60 % 60))
}

fn compare_compound(value: &Value, expected: &serde_json::Map<String, Json>) -> Result<(), String> {
    if let Some(items) = expected.get("items") {
        let found = value.as_list().ok_or_else(|| format!("{value:?} is no list"))?;
        let sorted = expected["@type"] != "java.util.PriorityQueue";
        return compare_items(found, items, sorted);
    }
    if let Some(entries) = expected.get("entries").and_then(Json::as_object) {
        // An object of an unknown class is a map to Java.
        let found: Vec<(String, &Value)> = match value {
            Value::Map(map) => map.entries.iter().map(|(key, value)| (key.to_java_text(), value)).collect(),
            Value::Object(object) => {
                object.fields.iter().map(|(name, value)| (name.to_string(), value)).collect()
            }
            other => return Err(format!("{other:?} is no map")),
        };
        if found.len() != entries.len() {
            return Err(format!("{value:?} has not {} entries", entries.len()));
        }
        return entries.iter().try_for_each(|(key, expected)| {
            let (_, value) =
                found.iter().find(|(name, _)| name == key).ok_or_else(|| format!("no entry {key}"))?;
            compare(value, expected).map_err(|error| format!("entry {key}: {error}"))
        });
    }
    if expected["@type"] != value.class().unwrap_or_default() {
        return Err(format!("{value:?} is no {}", expected["@type"]));
    }
    // Fields that Java does not send (transient, or computed on reading) are not there.
    expected.iter().filter(|(name, _)| !name.starts_with('@')).try_for_each(|(name, expected)| {
        match value.field(name) {
            Some(value) => compare(value, expected).map_err(|error| format!("field {name}: {error}")),
            None if expected.is_null()
                || matches!(
                    name.as_str(),
                    "skip" | "dirty" | "updated" | "initiated" | "extendParams" | "instanceParams"
                ) =>
            {
                Ok(())
            }
            None => Err(format!("no field {name} in {value:?}")),
        }
    })
}

fn compare_items(found: &[Value], expected: &Json, in_order: bool) -> Result<(), String> {
    let mut expected = expected.as_array().cloned().unwrap_or_default();
    let size = expected.last().and_then(Json::as_str).and_then(|last| last.strip_prefix("... size "));
    match size.and_then(|size| size.parse::<usize>().ok()) {
        Some(size) if found.len() == size => {
            expected.pop();
        }
        _ if found.len() == expected.len() || expected.len() == 32 && found.len() > 32 => {}
        _ => return Err(format!("{} elements, not {}", found.len(), expected.len())),
    }
    if !in_order {
        return expected.iter().try_for_each(|expected| {
            let known = found.iter().any(|value| compare(value, expected).is_ok());
            if known { Ok(()) } else { Err(format!("no element {expected}")) }
        });
    }
    found.iter().zip(&expected).enumerate().try_for_each(|(index, (value, expected))| {
        compare(value, expected).map_err(|error| format!("element {index}: {error}"))
    })
}

/// Whether an exception is what Java printed as `json`.
pub fn compare_exception(exception: &dubhe_core::error::Exception, json: &Json) -> Result<(), String> {
    let expected = json.as_object().ok_or("not a throwable")?;
    let same = |what: &str, equal: bool| if equal { Ok(()) } else { Err(format!("{what} of {exception:?}")) };
    same("class", expected["@type"] == *exception.class)?;
    // GenericException of 3.1 makes its message up, in JSON.
    let message = expected["message"].as_str();
    let made_up = message.is_some_and(|message| message.starts_with("{\"exClass\""));
    same("message", made_up || message == exception.message.as_deref())?;
    same("trace", expected["stackTraceElements"].as_u64() == Some(exception.stack_trace.len() as u64))?;
    if let Some(first) = expected.get("stackTrace[0]").and_then(Json::as_str) {
        same("first frame", exception.stack_trace.first().is_some_and(|frame| &**frame == first))?;
    }
    match (&expected["cause"], &exception.cause) {
        (Json::Null, None) => {}
        (cause @ Json::Object(_), Some(found)) => compare_exception(found, cause)?,
        _ => return same("cause", false),
    }
    let common = ["@type", "message", "stackTraceElements", "stackTrace[0]", "cause", "suppressed"];
    expected.iter().filter(|(name, _)| !common.contains(&name.as_str())).try_for_each(|(name, expected)| {
        compare(exception.field(name).ok_or_else(|| format!("no field {name}"))?, expected)
    })
}
