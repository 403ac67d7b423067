//! Values as text: bounded for people, as Java prints them for rules.

use std::fmt::{self, Write};

use super::java::iso_date_time;
use super::{List, Map, Object, Value};

/// Bytes of text that `Display` and [`Value::to_java_text`] give at most for a compound value, about.
const DISPLAY_LIMIT: usize = 4_096;

/// Nesting that is shown; deeper parts are an ellipsis.
const DISPLAY_DEPTH: usize = 32;

impl Value {
    /// The text that Java's `String.valueOf` gives for simple values, enums, lists and maps (dates are in UTC, where
    /// Java takes the zone of its machine). Other objects are `Class{field=value, ...}`. Compound values are cut
    /// after about 4 KiB.
    pub fn to_java_text(&self) -> String {
        match self {
            Self::Str(text) => text.to_string(),
            Self::Utf16(units) => String::from_utf16_lossy(units),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Bounded { text: String::new(), full: false };
        // A full buffer ends the walk; that is the only error.
        if show(self, &mut out, 0).is_err() && out.full {
            out.text.push('…');
        }
        f.write_str(&out.text)
    }
}

/// `Debug` is `Display` with strings in quotes: what a peer sent must not fill a log.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("Null"),
            Self::Bool(value) => write!(f, "Bool({value})"),
            Self::Int(value) => write!(f, "Int({value})"),
            Self::Long(value) => write!(f, "Long({value})"),
            Self::Double(value) => write!(f, "Double({value:?})"),
            Self::Date(value) => write!(f, "Date({value})"),
            Self::Str(text) if text.len() <= DISPLAY_LIMIT => write!(f, "Str({text:?})"),
            Self::Str(text) => {
                write!(f, "Str({:?}… {} bytes)", start_of(text, DISPLAY_LIMIT), text.len())
            }
            Self::Ref(index) => write!(f, "Ref({index})"),
            Self::Utf16(_) | Self::Bytes(_) | Self::List(_) | Self::Map(_) | Self::Object(_) => {
                fmt::Display::fmt(self, f)
            }
        }
    }
}

impl fmt::Debug for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Bounded::default();
        let whole = show_list(self, &mut out, 0).is_ok();
        f.write_str(&out.text)?;
        f.write_str(if whole { "" } else { "…" })
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Bounded::default();
        let whole = show_map(self, &mut out, 0).is_ok();
        f.write_str(&out.text)?;
        f.write_str(if whole { "" } else { "…" })
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Bounded::default();
        let whole = show_object(self, &mut out, 0).is_ok();
        f.write_str(&out.text)?;
        f.write_str(if whole { "" } else { "…" })
    }
}

/// Text that refuses to grow past the limit.
#[derive(Default)]
struct Bounded {
    text: String,
    full: bool,
}

impl Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let room = DISPLAY_LIMIT.saturating_sub(self.text.len());
        if part.len() <= room {
            self.text.push_str(part);
            return Ok(());
        }
        self.text.push_str(start_of(part, room));
        self.full = true;
        Err(fmt::Error)
    }
}

/// The longest start of `text` of at most `most` bytes.
fn start_of(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn show(value: &Value, out: &mut Bounded, depth: usize) -> fmt::Result {
    match value {
        Value::Null => out.write_str("null"),
        Value::Bool(value) => write!(out, "{value}"),
        Value::Int(value) => write!(out, "{value}"),
        Value::Long(value) => write!(out, "{value}"),
        Value::Double(value) => out.write_str(&java_double(*value)),
        Value::Date(millis) => out.write_str(&java_date(*millis)),
        Value::Str(text) => out.write_str(text),
        Value::Utf16(units) => char::decode_utf16(units.iter().copied())
            .try_for_each(|c| out.write_char(c.unwrap_or('\u{fffd}'))),
        Value::Bytes(bytes) => write!(out, "byte[{}]", bytes.len()),
        Value::Ref(index) => write!(out, "<cycle to {index}>"),
        _ if depth >= DISPLAY_DEPTH => out.write_char('…'),
        Value::List(list) => show_list(list, out, depth),
        Value::Map(map) => show_map(map, out, depth),
        Value::Object(object) => show_object(object, out, depth),
    }
}

fn show_list(list: &List, out: &mut Bounded, depth: usize) -> fmt::Result {
    out.write_char('[')?;
    for (index, item) in list.items.iter().enumerate() {
        if index > 0 {
            out.write_str(", ")?;
        }
        show(item, out, depth + 1)?;
    }
    out.write_char(']')
}

fn show_map(map: &Map, out: &mut Bounded, depth: usize) -> fmt::Result {
    out.write_char('{')?;
    for (index, (key, value)) in map.entries.iter().enumerate() {
        if index > 0 {
            out.write_str(", ")?;
        }
        show(key, out, depth + 1)?;
        out.write_char('=')?;
        show(value, out, depth + 1)?;
    }
    out.write_char('}')
}

fn show_object(object: &Object, out: &mut Bounded, depth: usize) -> fmt::Result {
    if let [(name, only @ (Value::Str(_) | Value::Null))] = object.fields.as_slice() {
        // An enum constant, or an object that is its text (BigDecimal, UUID).
        if matches!(&**name, "name" | "value") {
            return show(only, out, depth);
        }
    }
    if let Some(text) = iso_date_time(object) {
        return out.write_str(&text);
    }
    out.write_str(&object.class)?;
    out.write_char('{')?;
    for (index, (name, field)) in object.fields.iter().enumerate() {
        if index > 0 {
            out.write_str(", ")?;
        }
        write!(out, "{name}=")?;
        show(field, out, depth + 1)?;
    }
    out.write_char('}')
}

/// `Double.toString`: decimal from 1e-3 to below 1e7, else scientific; always a fraction digit.
fn java_double(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let size = value.abs();
    if value == 0.0 || (1e-3..1e7).contains(&size) {
        return format!("{value:?}");
    }
    let text = format!("{value:e}");
    match text.split_once('e') {
        Some((digits, exponent)) if digits.contains('.') => format!("{digits}E{exponent}"),
        Some((digits, exponent)) => format!("{digits}.0E{exponent}"),
        None => text,
    }
}

/// `java.util.Date.toString` in UTC.
fn java_date(millis: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = millis.div_euclid(1_000);
    let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = super::java::civil_from_days(days);
    let weekday = DAYS[usize::try_from(days.rem_euclid(7)).unwrap_or(0)];
    let month = MONTHS[usize::try_from(month - 1).unwrap_or(0).min(11)];
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{weekday} {month} {day:02} {hour:02}:{minute:02}:{second:02} UTC {year}")
}
