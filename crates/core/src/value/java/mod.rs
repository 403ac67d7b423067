//! Java types that have no counterpart of their own in Rust.

use std::borrow::Cow;
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use super::{JavaType, Object, Value, marker};

mod array;
mod number;
mod time;

pub use array::{
    Array, BooleanArray, DoubleArray, FloatArray, IntArray, LongArray, Set, ShortArray, StringArray,
};
pub use number::{BigDecimal, BigInteger};
pub use time::{Instant, LocalDate, LocalDateTime, LocalTime};
pub use time::{civil_from_days, days_from_civil};

pub(super) use number::big_integer_to_i128;
pub(super) use time::iso_date_time;

/// `java.util.Date`: milliseconds since the epoch.
///
/// Read from dates, `java.sql` dates, calendars, integers (milliseconds) and texts like `2020-01-02 03:04:05` (UTC).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(pub i64);

impl From<SystemTime> for Date {
    /// Rounded down to milliseconds; saturates.
    fn from(time: SystemTime) -> Self {
        let millis = match time.duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
            Err(before) => {
                let nanos = before.duration().as_nanos();
                i64::try_from(nanos.div_ceil(1_000_000)).map_or(i64::MIN, |millis| -millis)
            }
        };
        Self(millis)
    }
}

impl From<Date> for SystemTime {
    /// Saturates where the system cannot represent the time.
    fn from(date: Date) -> Self {
        let distance = Duration::from_millis(date.0.unsigned_abs());
        let time =
            if date.0 < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) };
        time.unwrap_or(UNIX_EPOCH)
    }
}

impl From<Date> for Value {
    fn from(date: Date) -> Self {
        Self::Date(date.0)
    }
}

impl JavaType for Date {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("java.util.Date")
    }
}

impl Serialize for Date {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(marker::DATE, &self.0)
    }
}

impl<'de> Deserialize<'de> for Date {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Millis;

        impl<'de> Visitor<'de> for Millis {
            type Value = Date;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a date")
            }

            fn visit_i64<E>(self, value: i64) -> Result<Date, E> {
                Ok(Date(value))
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Date, D::Error> {
                i64::deserialize(deserializer).map(Date)
            }
        }

        deserializer.deserialize_newtype_struct(marker::DATE, Millis)
    }
}

/// What reads as a [`Date`]: dates, `java.sql` dates, calendars, integers (milliseconds), texts.
pub fn millis_of(value: &Value) -> Option<i64> {
    match value {
        Value::Date(millis) | Value::Long(millis) => Some(*millis),
        Value::Int(millis) => Some(i64::from(*millis)),
        Value::Str(text) => time::parse_millis(text),
        Value::Object(object) => {
            object.field("value").or_else(|| object.field("date")).and_then(Value::as_date)
        }
        _ => None,
    }
}

/// `byte[]` (a `Vec<u8>` is a List of numbers to serde).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JavaBytes(pub Vec<u8>);

impl From<Vec<u8>> for JavaBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl AsRef<[u8]> for JavaBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl From<JavaBytes> for Value {
    fn from(bytes: JavaBytes) -> Self {
        Self::Bytes(bytes.0.into())
    }
}

impl JavaType for JavaBytes {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("byte[]")
    }
}

impl Serialize for JavaBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for JavaBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Octets;

        impl<'de> Visitor<'de> for Octets {
            type Value = JavaBytes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("binary data or a list of bytes")
            }

            fn visit_bytes<E>(self, value: &[u8]) -> Result<JavaBytes, E> {
                Ok(JavaBytes(value.to_vec()))
            }

            fn visit_byte_buf<E>(self, value: Vec<u8>) -> Result<JavaBytes, E> {
                Ok(JavaBytes(value))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<JavaBytes, A::Error> {
                let mut bytes = Vec::new();
                while let Some(number) = access.next_element::<i16>()? {
                    // Java's bytes are signed; other peers send 0 to 255.
                    let byte = match number {
                        -128..=-1 => (number + 256) as u8,
                        0..=255 => number as u8,
                        _ => return Err(A::Error::custom(format_args!("{number} is not a byte"))),
                    };
                    bytes.push(byte);
                }
                Ok(JavaBytes(bytes))
            }
        }

        deserializer.deserialize_byte_buf(Octets)
    }
}

/// A float as the double whose decimal text is the same: 1.1f is 1.1, as Java does with a boxed Float.
pub fn widen(value: f32) -> f64 {
    let exact = f64::from(value);
    if exact.fract() == 0.0 || !exact.is_finite() {
        return exact;
    }
    value.to_string().parse().unwrap_or(exact)
}

/// Reads field `name` of an object or map as an integer.
fn integer_field(object: &Object, name: &str) -> Option<i64> {
    object.field(name).and_then(Value::as_long)
}
