//! Dates and times of `java.time`, as plain fields. Convert to and from a time crate of your choice.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::super::{JavaType, Object, Value};
use super::integer_field;

const LOCAL_DATE: &str = "com.alibaba.com.caucho.hessian.io.java8.LocalDateHandle";
const LOCAL_TIME: &str = "com.alibaba.com.caucho.hessian.io.java8.LocalTimeHandle";
const LOCAL_DATE_TIME: &str = "com.alibaba.com.caucho.hessian.io.java8.LocalDateTimeHandle";
const INSTANT: &str = "com.alibaba.com.caucho.hessian.io.java8.InstantHandle";

/// `java.time.LocalDate`. Text form `2020-01-02`; read from the Java type and from text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalDate {
    /// Year; 0 is 1 BC.
    pub year: i32,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
}

/// `java.time.LocalTime`. Text form `03:04:05.000000006`; read from the Java type and from text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalTime {
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59.
    pub second: u8,
    /// 0 to 999,999,999.
    pub nano: u32,
}

/// `java.time.LocalDateTime`. Text form `2020-01-02T03:04:05`; read from the Java type and from text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalDateTime {
    /// The day.
    pub date: LocalDate,
    /// The time of that day.
    pub time: LocalTime,
}

/// `java.time.Instant`. Text form `2020-01-02T03:04:05Z`; read from the Java type and from text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant {
    /// Seconds since the epoch.
    pub seconds: i64,
    /// Nanoseconds after that, 0 to 999,999,999.
    pub nanos: u32,
}

/// Year, month and day of a number of days since 1970-01-01 (proleptic Gregorian calendar).
pub fn civil_from_days(days: i64) -> (i64, i64, i64) {
    // Days are counted from 0000-03-01, so that the leap day ends a year; an era has 400 years.
    let shifted = days.saturating_add(719_468);
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// The number of days since 1970-01-01 of a day of the proleptic Gregorian calendar.
pub fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year - 719_468
}

/// The ISO text of an object that is one of the types of this module.
pub(crate) fn iso_date_time(object: &Object) -> Option<String> {
    match &*object.class {
        LOCAL_DATE => LocalDate::from_object(object).map(|date| date.to_string()),
        LOCAL_TIME => LocalTime::from_object(object).map(|time| time.to_string()),
        LOCAL_DATE_TIME => LocalDateTime::from_object(object).map(|time| time.to_string()),
        INSTANT => Instant::from_object(object).map(|instant| instant.to_string()),
        _ => None,
    }
}

/// Milliseconds since the epoch of a text like `2020-01-02 03:04:05`, `2020-01-02T03:04:05Z` or `2020-01-02`.
pub(super) fn parse_millis(text: &str) -> Option<i64> {
    let instant = match text.parse::<LocalDate>() {
        Ok(date) => Instant::from(LocalDateTime { date, time: LocalTime::default() }),
        Err(_) => text.replacen(' ', "T", 1).parse().ok()?,
    };
    instant.seconds.checked_mul(1_000)?.checked_add(i64::from(instant.nanos / 1_000_000))
}

impl From<LocalDateTime> for Instant {
    /// Taken as UTC.
    fn from(local: LocalDateTime) -> Self {
        let LocalDateTime { date, time } = local;
        let days = days_from_civil(date.year.into(), date.month.into(), date.day.into());
        let of_day = i64::from(time.hour) * 3_600 + i64::from(time.minute) * 60 + i64::from(time.second);
        Self { seconds: days * 86_400 + of_day, nanos: time.nano }
    }
}

impl From<Instant> for LocalDateTime {
    /// In UTC. Years beyond `i32` saturate.
    fn from(instant: Instant) -> Self {
        let (days, of_day) = (instant.seconds.div_euclid(86_400), instant.seconds.rem_euclid(86_400));
        let (year, month, day) = civil_from_days(days);
        let year = i32::try_from(year).unwrap_or(if year < 0 { i32::MIN } else { i32::MAX });
        Self {
            date: LocalDate { year, month: month as u8, day: day as u8 },
            time: LocalTime {
                hour: (of_day / 3_600) as u8,
                minute: (of_day / 60 % 60) as u8,
                second: (of_day % 60) as u8,
                nano: instant.nanos,
            },
        }
    }
}

impl fmt::Display for LocalDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.year < 0 { "-" } else { "" };
        write!(f, "{sign}{:04}-{:02}-{:02}", self.year.unsigned_abs(), self.month, self.day)
    }
}

impl fmt::Display for LocalTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.hour, self.minute)?;
        if self.second > 0 || self.nano > 0 {
            write!(f, ":{:02}", self.second)?;
        }
        match self.nano {
            0 => Ok(()),
            nano if nano % 1_000_000 == 0 => write!(f, ".{:03}", nano / 1_000_000),
            nano if nano % 1_000 == 0 => write!(f, ".{:06}", nano / 1_000),
            nano => write!(f, ".{nano:09}"),
        }
    }
}

impl fmt::Display for LocalDateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}T{}", self.date, self.time)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let local = LocalDateTime::from(*self);
        if local.time.second == 0 && local.time.nano == 0 {
            return write!(f, "{local}:00Z");
        }
        write!(f, "{local}Z")
    }
}

/// A text is not a date or time in ISO form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a date or time in ISO form")]
pub struct ParseTimeError;

impl FromStr for LocalDate {
    type Err = ParseTimeError;

    fn from_str(text: &str) -> Result<Self, ParseTimeError> {
        let (sign, digits) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text.strip_prefix('+').unwrap_or(text)),
        };
        let mut parts = digits.split('-');
        let year: i32 = number(parts.next(), 4..=9)?;
        let month: u8 = number(parts.next(), 2..=2)?;
        let day: u8 = number(parts.next(), 2..=2)?;
        if parts.next().is_some() {
            return Err(ParseTimeError);
        }
        Self { year: sign * year, month, day }.checked().ok_or(ParseTimeError)
    }
}

impl FromStr for LocalTime {
    type Err = ParseTimeError;

    fn from_str(text: &str) -> Result<Self, ParseTimeError> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let mut parts = whole.split(':');
        let hour = number(parts.next(), 2..=2)?;
        let minute = number(parts.next(), 2..=2)?;
        let second = parts.next().map_or(Ok(0), |part| number(Some(part), 2..=2))?;
        let nano = match fraction {
            "" => 0,
            digits => number::<u32>(Some(digits), 1..=9)? * 10_u32.pow(9 - digits.len() as u32),
        };
        if parts.next().is_some() {
            return Err(ParseTimeError);
        }
        Self { hour, minute, second, nano }.checked().ok_or(ParseTimeError)
    }
}

impl FromStr for LocalDateTime {
    type Err = ParseTimeError;

    fn from_str(text: &str) -> Result<Self, ParseTimeError> {
        let (date, time) = text.split_once('T').ok_or(ParseTimeError)?;
        Ok(Self { date: date.parse()?, time: time.parse()? })
    }
}

impl FromStr for Instant {
    type Err = ParseTimeError;

    fn from_str(text: &str) -> Result<Self, ParseTimeError> {
        text.strip_suffix('Z').unwrap_or(text).parse().map(LocalDateTime::into)
    }
}

fn number<T: FromStr>(
    digits: Option<&str>,
    len: std::ops::RangeInclusive<usize>,
) -> Result<T, ParseTimeError> {
    digits
        .filter(|digits| len.contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit()))
        .and_then(|digits| digits.parse().ok())
        .ok_or(ParseTimeError)
}

impl LocalDate {
    /// The day that is so many days after 1970-01-01; `None` for years beyond `i32`.
    pub fn from_epoch_day(days: i64) -> Option<Self> {
        let (year, month, day) = civil_from_days(days);
        Self { year: year.try_into().ok()?, month: month.try_into().ok()?, day: day.try_into().ok()? }
            .checked()
    }

    fn checked(self) -> Option<Self> {
        let of_month = match self.month {
            2 if self.year % 4 == 0 && (self.year % 100 != 0 || self.year % 400 == 0) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => return None,
        };
        (1..=of_month).contains(&self.day).then_some(self)
    }
}

impl LocalTime {
    /// The time so many nanoseconds after midnight; `None` outside a day.
    pub fn from_nano_of_day(nanos: i64) -> Option<Self> {
        let nanos = u64::try_from(nanos).ok()?;
        let seconds = nanos / 1_000_000_000;
        Self {
            hour: (seconds / 3_600).try_into().ok()?,
            minute: (seconds / 60 % 60) as u8,
            second: (seconds % 60) as u8,
            nano: (nanos % 1_000_000_000) as u32,
        }
        .checked()
    }

    fn checked(self) -> Option<Self> {
        (self.hour < 24 && self.minute < 60 && self.second < 60 && self.nano < 1_000_000_000).then_some(self)
    }
}

/// A type whose Java form is an object with fields, and whose text form is ISO.
trait Handle: Sized + FromStr {
    const EXPECTED: &'static str;

    fn from_object(object: &Object) -> Option<Self>;
}

fn field<T: TryFrom<i64>>(object: &Object, name: &str) -> Option<T> {
    T::try_from(integer_field(object, name)?).ok()
}

impl Handle for LocalDate {
    const EXPECTED: &'static str = "a LocalDate or its ISO text";

    fn from_object(object: &Object) -> Option<Self> {
        Self { year: field(object, "year")?, month: field(object, "month")?, day: field(object, "day")? }
            .checked()
    }
}

impl Handle for LocalTime {
    const EXPECTED: &'static str = "a LocalTime or its ISO text";

    fn from_object(object: &Object) -> Option<Self> {
        Self {
            hour: field(object, "hour")?,
            minute: field(object, "minute")?,
            second: field(object, "second")?,
            nano: field(object, "nano")?,
        }
        .checked()
    }
}

impl Handle for LocalDateTime {
    const EXPECTED: &'static str = "a LocalDateTime or its ISO text";

    fn from_object(object: &Object) -> Option<Self> {
        // Numbers: the compact mode of later hessian-lite releases.
        let date = match object.field("date")? {
            Value::Object(date) => LocalDate::from_object(date)?,
            days => LocalDate::from_epoch_day(days.as_long()?)?,
        };
        let time = match object.field("time")? {
            Value::Object(time) => LocalTime::from_object(time)?,
            nanos => LocalTime::from_nano_of_day(nanos.as_long()?)?,
        };
        Some(Self { date, time })
    }
}

impl Handle for Instant {
    const EXPECTED: &'static str = "an Instant or its ISO text";

    fn from_object(object: &Object) -> Option<Self> {
        let nanos: u32 = field(object, "nanos")?;
        (nanos < 1_000_000_000).then_some(Self { seconds: integer_field(object, "seconds")?, nanos })
    }
}

struct HandleVisitor<T>(PhantomData<T>);

impl<'de, T: Handle> Visitor<'de> for HandleVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(|_| E::invalid_value(serde::de::Unexpected::Str(text), &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<T, A::Error> {
        let mut object = Object::default();
        while let Some(name) = access.next_key::<String>()? {
            match name.as_str() {
                "date" | "time" | "year" | "month" | "day" | "hour" | "minute" | "second" | "nano"
                | "seconds" | "nanos" => object.fields.push((name.into(), access.next_value()?)),
                _ => {
                    access.next_value::<IgnoredAny>()?;
                }
            }
        }
        T::from_object(&object).ok_or_else(|| A::Error::invalid_value(serde::de::Unexpected::Map, &self))
    }
}

macro_rules! handles {
    (@field $this:ident nano) => { $this.nano as i32 };
    (@field $this:ident nanos) => { $this.nanos as i32 };
    (@field $this:ident $field:ident) => { $this.$field };
    ($($rust:ident, $java:literal, $class:ident, $fields:literal: $($name:literal => $field:ident),*;)*) => {$(
        impl JavaType for $rust {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed($java)
            }
        }

        impl Serialize for $rust {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() {
                    return serializer.collect_str(self);
                }
                let mut object = serializer.serialize_struct($class, $fields)?;
                $(object.serialize_field($name, &handles!(@field self $field))?;)*
                object.end()
            }
        }

        impl<'de> Deserialize<'de> for $rust {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(HandleVisitor(PhantomData))
            }
        }
    )*};
}

// Fields in the order in which Java writes them; all but seconds are ints.
handles! {
    LocalDate, "java.time.LocalDate", LOCAL_DATE, 3: "day" => day, "month" => month, "year" => year;
    LocalTime, "java.time.LocalTime", LOCAL_TIME, 4:
        "nano" => nano, "second" => second, "minute" => minute, "hour" => hour;
    LocalDateTime, "java.time.LocalDateTime", LOCAL_DATE_TIME, 2: "time" => time, "date" => date;
    Instant, "java.time.Instant", INSTANT, 2: "nanos" => nanos, "seconds" => seconds;
}
