//! Numbers beyond the primitives.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::ser::{Error as _, Serialize, SerializeStruct, Serializer};

use super::super::{JavaType, Object, Value};
use super::Array;

/// Most 32-bit words of a [`BigInteger`]: about 39,000 digits. Turning words into digits takes quadratic time, which
/// a hostile peer must not choose.
const MAX_WORDS: usize = 4_096;

/// `java.math.BigDecimal`, by its text: digits with an optional point and exponent, as `BigDecimal.toString` gives
/// and its constructor takes.
///
/// Read from the Java type, strings and numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct BigDecimal(pub String);

impl JavaType for BigDecimal {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("java.math.BigDecimal")
    }
}

impl Serialize for BigDecimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            return serializer.serialize_str(&self.0);
        }
        let mut object = serializer.serialize_struct("java.math.BigDecimal", 1)?;
        object.serialize_field("value", &self.0)?;
        object.end()
    }
}

impl<'de> Deserialize<'de> for BigDecimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Number).map(Self)
    }
}

/// `java.math.BigInteger`, by its decimal text. At most about 39,000 digits.
///
/// Read from the Java type, strings and integers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct BigInteger(pub String);

impl JavaType for BigInteger {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("java.math.BigInteger")
    }
}

impl Serialize for BigInteger {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            return serializer.serialize_str(&self.0);
        }
        let (signum, words) = words_of(&self.0)
            .ok_or_else(|| S::Error::custom(format_args!("not an integer of at most {MAX_WORDS} words")))?;
        let mut object = serializer.serialize_struct("java.math.BigInteger", 2)?;
        object.serialize_field("mag", &Array(words.into_iter().map(|word| word as i32).collect()))?;
        object.serialize_field("signum", &signum)?;
        object.end()
    }
}

impl<'de> Deserialize<'de> for BigInteger {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Number).map(Self)
    }
}

/// The value of a `java.math.BigInteger` object that fits.
pub(crate) fn big_integer_to_i128(object: &Object) -> Option<i128> {
    if &*object.class != "java.math.BigInteger" {
        return None;
    }
    let signum = super::integer_field(object, "signum")?;
    let mut magnitude = 0_i128;
    for word in object.field("mag")?.as_list()? {
        let word = word.as_int()? as u32;
        magnitude = magnitude.checked_mul(1 << 32)?.checked_add(i128::from(word))?;
    }
    Some(magnitude * i128::from(signum.signum()))
}

/// The text of a number in whichever form it comes.
struct Number;

impl<'de> Visitor<'de> for Number {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_i64<E>(self, value: i64) -> Result<String, E> {
        Ok(value.to_string())
    }

    fn visit_u64<E>(self, value: u64) -> Result<String, E> {
        Ok(value.to_string())
    }

    fn visit_f64<E>(self, value: f64) -> Result<String, E> {
        Ok(Value::Double(value).to_java_text())
    }

    fn visit_str<E>(self, value: &str) -> Result<String, E> {
        Ok(value.to_owned())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<String, A::Error> {
        let (mut text, mut words, mut signum) = (None, None, 0);
        while let Some(name) = access.next_key::<String>()? {
            match name.as_str() {
                "value" => text = Some(access.next_value::<String>()?),
                "mag" => words = Some(access.next_value::<Vec<i32>>()?),
                "signum" => signum = access.next_value::<i32>()?,
                _ => {
                    access.next_value::<IgnoredAny>()?;
                }
            }
        }
        match (text, words) {
            (Some(text), _) => Ok(text),
            (None, Some(words)) if words.len() <= MAX_WORDS => Ok(digits_of(signum, &words)),
            (None, Some(_)) => {
                Err(A::Error::custom(format_args!("a BigInteger has more than {MAX_WORDS} words")))
            }
            (None, None) => Err(A::Error::missing_field("value")),
        }
    }
}

/// Decimal digits of a big-endian magnitude of 32-bit words.
fn digits_of(signum: i32, words: &[i32]) -> String {
    const BILLION: u64 = 1_000_000_000;
    let mut groups = vec![0_u32];
    for word in words {
        let mut carry = u64::from(*word as u32);
        for group in &mut groups {
            let sum = (u64::from(*group) << 32) + carry;
            *group = (sum % BILLION) as u32;
            carry = sum / BILLION;
        }
        while carry > 0 {
            groups.push((carry % BILLION) as u32);
            carry /= BILLION;
        }
    }
    let mut digits = String::with_capacity(groups.len() * 9 + 1);
    if signum < 0 {
        digits.push('-');
    }
    for (index, group) in groups.iter().rev().enumerate() {
        if index == 0 {
            digits.push_str(&group.to_string());
        } else {
            digits.push_str(&format!("{group:09}"));
        }
    }
    digits
}

/// Sign and big-endian magnitude of decimal digits.
fn words_of(text: &str) -> Option<(i32, Vec<u32>)> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || digits.len() > MAX_WORDS * 10 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let mut words: Vec<u32> = Vec::new();
    for group in digits.as_bytes().chunks(9) {
        let scale = 10_u64.pow(group.len() as u32);
        let mut carry = group.iter().fold(0_u64, |sum, digit| sum * 10 + u64::from(digit - b'0'));
        for word in &mut words {
            let sum = u64::from(*word) * scale + carry;
            *word = sum as u32;
            carry = sum >> 32;
        }
        if carry > 0 {
            words.push(carry as u32);
        }
    }
    if words.len() > MAX_WORDS {
        return None;
    }
    words.reverse();
    let signum = match (words.is_empty(), text.starts_with('-')) {
        (true, _) => 0,
        (false, true) => -1,
        (false, false) => 1,
    };
    Some((signum, words))
}
