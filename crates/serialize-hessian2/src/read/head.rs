//! The beginning of a value: its kind, and the whole of it where that is a few bytes.

use std::sync::Arc;

use dubhe_core::value::hidden_fields;

use super::{Class, Reader, Result};
use crate::tag;

/// What stands at a place in the body.
pub(super) enum Head {
    Null,
    Bool(bool),
    Int(i32),
    Long(i64),
    Double(f64),
    Date(i64),
    /// A string whose first chunk has this tag.
    Str(u8),
    /// Binary data whose first chunk has this tag.
    Binary(u8),
    /// A list; no length: elements up to the end mark.
    List {
        class: Option<Arc<str>>,
        len: Option<usize>,
    },
    /// A map: entries up to the end mark.
    Map {
        class: Option<Arc<str>>,
    },
    Object(Arc<Class>),
    Ref(usize),
}

impl Head {
    pub(super) fn kind(&self) -> &str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Int(_) => "an int",
            Self::Long(_) => "a long",
            Self::Double(_) => "a double",
            Self::Date(_) => "a date",
            Self::Str(_) => "a string",
            Self::Binary(_) => "binary data",
            Self::List { .. } => "a list",
            Self::Map { .. } => "a map",
            Self::Object(class) => &class.name,
            Self::Ref(_) => "a reference",
        }
    }
}

impl Reader {
    /// Reads the head of the next value and gives the place of its tag. Definitions before it go into the table.
    pub(super) fn head(&mut self) -> Result<(usize, Head)> {
        loop {
            let at = self.at;
            let first = self.byte()?;
            if first == tag::CLASS {
                self.definition(at)?;
                continue;
            }
            self.types_before = self.types.len();
            return Ok((at, self.head_of(at, first)?));
        }
    }

    fn head_of(&mut self, at: usize, first: u8) -> Result<Head> {
        Ok(match first {
            0x00..=0x1f | 0x30..=0x33 | tag::STRING_CHUNK | tag::STRING_LAST => Head::Str(first),
            0x20..=0x2f | 0x34..=0x37 | tag::BINARY_CHUNK | tag::BINARY_LAST => Head::Binary(first),
            0x38..=0x3f => {
                let [high, low] = self.bytes()?;
                Head::Long((i64::from(first) - 0x3c) << 16 | i64::from(high) << 8 | i64::from(low))
            }
            tag::DOUBLE => Head::Double(f64::from_be_bytes(self.bytes()?)),
            tag::FALSE => Head::Bool(false),
            tag::MAP => Head::Map { class: None },
            tag::DATE_MILLIS => Head::Date(i64::from_be_bytes(self.bytes()?)),
            tag::DATE_MINUTES => Head::Date(i64::from(i32::from_be_bytes(self.bytes()?)) * 60_000),
            tag::LONG => Head::Long(i64::from_be_bytes(self.bytes()?)),
            tag::TYPED_MAP => Head::Map { class: self.type_name()? },
            tag::NULL => Head::Null,
            tag::OBJECT => {
                let index = self.int_here()?;
                Head::Object(self.class(at, index)?)
            }
            tag::REF => {
                let index = self.int_here()?;
                Head::Ref(usize::try_from(index).map_err(|_| self.error(at, "negative reference"))?)
            }
            tag::TRUE => Head::Bool(true),
            tag::TYPED_LIST_VARIABLE => Head::List { class: self.type_name()?, len: None },
            tag::TYPED_LIST => {
                let class = self.type_name()?;
                Head::List { class, len: Some(self.length(at)?) }
            }
            tag::LIST_VARIABLE => Head::List { class: None, len: None },
            tag::LIST => Head::List { class: None, len: Some(self.length(at)?) },
            tag::LONG_INT => Head::Long(i64::from(i32::from_be_bytes(self.bytes()?))),
            tag::DOUBLE_ZERO => Head::Double(0.0),
            tag::DOUBLE_ONE => Head::Double(1.0),
            tag::DOUBLE_BYTE => Head::Double(f64::from(i8::from_be_bytes(self.bytes()?))),
            tag::DOUBLE_SHORT => Head::Double(f64::from(i16::from_be_bytes(self.bytes()?))),
            tag::DOUBLE_MILL => Head::Double(f64::from(i32::from_be_bytes(self.bytes()?)) * 0.001),
            0x60..=0x6f => Head::Object(self.class(at, i32::from(first - tag::OBJECT_DIRECT))?),
            0x70..=0x77 => {
                let class = self.type_name()?;
                let len = usize::from(first - tag::TYPED_LIST_DIRECT);
                Head::List { class, len: Some(self.fitting(at, len)?) }
            }
            0x78..=0x7f => {
                let len = usize::from(first - tag::LIST_DIRECT);
                Head::List { class: None, len: Some(self.fitting(at, len)?) }
            }
            0xd8..=0xef => Head::Long(i64::from(first) - i64::from(tag::LONG_DIRECT_ZERO)),
            0xf0..=0xff => {
                let [low] = self.bytes()?;
                Head::Long((i64::from(first) - i64::from(tag::LONG_BYTE_ZERO)) << 8 | i64::from(low))
            }
            tag::INT | 0x80..=0xd7 => Head::Int(self.int_of(at, first)?),
            tag::END => return Err(self.error(at, "an end mark where a value is expected")),
            _ => return Err(self.error(at, format_args!("no value begins with byte {first:#04x}"))),
        })
    }

    fn int_here(&mut self) -> Result<i32> {
        let at = self.at;
        let first = self.byte()?;
        self.int_of(at, first)
    }

    fn int_of(&mut self, at: usize, first: u8) -> Result<i32> {
        Ok(match first {
            0x80..=0xbf => i32::from(first) - i32::from(tag::INT_DIRECT_ZERO),
            0xc0..=0xcf => {
                let [low] = self.bytes()?;
                (i32::from(first) - i32::from(tag::INT_BYTE_ZERO)) << 8 | i32::from(low)
            }
            0xd0..=0xd7 => {
                let [high, low] = self.bytes()?;
                (i32::from(first) - i32::from(tag::INT_SHORT_ZERO)) << 16
                    | i32::from(high) << 8
                    | i32::from(low)
            }
            tag::INT => i32::from_be_bytes(self.bytes()?),
            _ => {
                return Err(
                    self.error(at, format_args!("byte {first:#04x} where a length or index is expected"))
                );
            }
        })
    }

    /// The length of a list: each element takes a byte at least.
    fn length(&mut self, at: usize) -> Result<usize> {
        let len = self.int_here()?;
        let len = usize::try_from(len).map_err(|_| self.error(at, format_args!("a list of length {len}")))?;
        self.fitting(at, len)
    }

    fn fitting(&self, at: usize, len: usize) -> Result<usize> {
        if len > self.left() {
            return Err(self.error(at, format_args!("a list of {len} elements in {} bytes", self.left())));
        }
        Ok(len)
    }

    fn class(&self, at: usize, index: i32) -> Result<Arc<Class>> {
        let class = usize::try_from(index).ok().and_then(|index| self.classes.get(index));
        class.cloned().ok_or_else(|| {
            self.error(at, format_args!("class {index}, but only {} are defined", self.classes.len()))
        })
    }

    /// A type: text goes into the table, a number comes from it. Empty text is no type.
    fn type_name(&mut self) -> Result<Option<Arc<str>>> {
        let at = self.at;
        let first = self.byte()?;
        if matches!(first, 0x00..=0x1f | 0x30..=0x33 | tag::STRING_CHUNK | tag::STRING_LAST) {
            let name = self.shared_text(first)?;
            if self.again.is_none() {
                self.types.push(Arc::clone(&name));
            }
            return Ok((!name.is_empty()).then_some(name));
        }
        let index = self.int_of(at, first)?;
        let name = usize::try_from(index).ok().and_then(|index| self.types.get(index)).cloned().ok_or_else(
            || self.error(at, format_args!("type {index}, but only {} were named", self.types.len())),
        )?;
        Ok((!name.is_empty()).then_some(name))
    }

    /// A class definition, after its tag.
    fn definition(&mut self, at: usize) -> Result<()> {
        let name = self.name()?;
        let count = self.int_here()?;
        let count = usize::try_from(count)
            .ok()
            .filter(|count| *count <= self.limits.class_fields && *count <= self.left())
            .ok_or_else(|| self.error(at, format_args!("class {name} with {count} fields")))?;
        let mut fields = Vec::with_capacity(count);
        for _ in 0..count {
            fields.push(self.name()?);
        }
        if self.again.is_some() {
            return Ok(());
        }
        if self.classes.len() >= self.limits.classes {
            return Err(self.error(at, format_args!("more than {} class definitions", self.limits.classes)));
        }
        let hidden = hidden_fields(fields.iter().map(|field| &**field));
        self.classes.push(Arc::new(Class { name, fields, hidden }));
        Ok(())
    }

    fn shared_text(&mut self, first: u8) -> Result<Arc<str>> {
        match self.plain(first)? {
            Some(text) => Ok(text.into()),
            None => Ok(self.string(first)?.into()),
        }
    }

    /// The int whose tag is next, if it is one; the commonest value of all, without the detour over [`Head`].
    pub(super) fn next_int(&mut self) -> Result<Option<i32>> {
        match self.input.get(self.at).copied() {
            Some(first @ 0x80..=0xd7) => {
                let at = self.at;
                self.at += 1;
                self.int_of(at, first).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The tag of the string that is next, if it is one; the same for strings.
    pub(super) fn next_string(&mut self) -> Option<u8> {
        match self.input.get(self.at).copied() {
            Some(first @ (0x00..=0x1f | 0x30..=0x33)) => {
                self.at += 1;
                Some(first)
            }
            _ => None,
        }
    }

    /// The name of a class or field.
    fn name(&mut self) -> Result<Arc<str>> {
        let at = self.at;
        match self.byte()? {
            first @ (0x00..=0x1f | 0x30..=0x33 | tag::STRING_CHUNK | tag::STRING_LAST) => {
                Ok(self.string(first)?.into())
            }
            _ => Err(self.error(at, "the name of a class or field is not a string")),
        }
    }
}
