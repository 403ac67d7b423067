//! Reading: bytes to values.

mod compact;
mod exception;
mod head;
mod scalar;
mod skip;
mod typed;
mod value;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use dubhe_core::error::Exception;
use dubhe_core::invocation::Attachments;
use dubhe_core::serialize::{ObjectReader, SerializeError};
use dubhe_core::value::Value;

use crate::limits::Limits;

/// A reader of one body: a place in it, and the three tables that run through it.
pub(crate) struct Reader {
    input: Bytes,
    at: usize,
    limits: Limits,
    depth: usize,
    /// Values met so far; see [`Limits::values`].
    values: usize,
    classes: Vec<Arc<Class>>,
    types: Vec<Arc<str>>,
    /// Types known before the head that was read last.
    types_before: usize,
    /// Every list, map and object, in the order in which they begin.
    compounds: Vec<Compound>,
    /// While a compound value is read a second time: the index of the next one in it. The tables do not grow then.
    again: Option<usize>,
    /// Bytes read a second time so far.
    read_again: usize,
    /// Which dynamic value is being read, and how many parts of it have begun.
    root: u32,
    numbered: u32,
}

/// A class definition.
struct Class {
    name: Arc<str>,
    fields: Vec<Arc<str>>,
    /// Places of the fields that a later field of the same name hides, in falling order.
    hidden: Vec<usize>,
}

/// A list, map or object of the body.
struct Compound {
    /// Where its tag is.
    at: usize,
    /// How many times it is being read now (again from inside itself, where arguments share cycles). While it is, a
    /// reference to it closes a cycle.
    open: u32,
    /// The dynamic value of which it became a part; its number in that; how many parts it has itself.
    root: u32,
    number: u32,
    count: u32,
    value: Option<Value>,
}

type Result<T> = std::result::Result<T, SerializeError>;

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("at", &self.at)
            .field("length", &self.input.len())
            .finish_non_exhaustive()
    }
}

impl Reader {
    pub(crate) fn new(input: Bytes, limits: &Limits) -> Self {
        Self {
            input,
            at: 0,
            limits: limits.clone(),
            depth: 0,
            values: 0,
            classes: Vec::new(),
            types: Vec::new(),
            types_before: 0,
            compounds: Vec::new(),
            again: None,
            read_again: 0,
            root: 0,
            numbered: 0,
        }
    }

    fn left(&self) -> usize {
        self.input.len() - self.at
    }

    fn byte(&mut self) -> Result<u8> {
        let byte = self.input.get(self.at).copied().ok_or_else(|| self.truncated())?;
        self.at += 1;
        Ok(byte)
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N]> {
        let bytes = self.input[self.at..].first_chunk().copied().ok_or_else(|| self.truncated())?;
        self.at += N;
        Ok(bytes)
    }

    fn truncated(&self) -> SerializeError {
        SerializeError::new(format!("the body ends inside a value, at byte {}", self.input.len()))
    }

    /// What is wrong, at byte `at`.
    fn error(&self, at: usize, what: impl fmt::Display) -> SerializeError {
        SerializeError::new(format!("{what}, at byte {at} of {}", self.input.len()))
    }

    /// Counts a value against the limit.
    fn count(&mut self) -> Result<()> {
        self.values += 1;
        if self.values > self.limits.values {
            return Err(
                self.error(self.at, format_args!("more than {} values in one body", self.limits.values))
            );
        }
        Ok(())
    }

    /// Begins a list, map or object whose tag is at `at`; gives its index.
    fn begin(&mut self, at: usize) -> Result<usize> {
        self.count()?;
        if self.depth >= self.limits.depth {
            return Err(self.error(at, format_args!("nested deeper than {} levels", self.limits.depth)));
        }
        self.depth += 1;
        let index = match &mut self.again {
            Some(next) => {
                *next += 1;
                *next - 1
            }
            None => {
                self.compounds.push(Compound { at, open: 0, root: 0, number: 0, count: 0, value: None });
                self.compounds.len() - 1
            }
        };
        if let Some(compound) = self.compounds.get_mut(index) {
            compound.open += 1;
        }
        Ok(index)
    }

    fn end(&mut self, index: usize) {
        self.depth -= 1;
        if let Some(compound) = self.compounds.get_mut(index) {
            compound.open -= 1;
        }
    }

    /// Reads compound value `index` again, with `read`, for a reference met just before.
    fn again<T>(&mut self, index: usize, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.count()?;
        let Some(target) = self.compounds.get(index) else { return Err(self.no_target(index)) };
        if target.open > 0 {
            return Err(self.error(
                self.at,
                format_args!(
                    "object {index} contains itself, which this type cannot hold: read it as a dynamic value"
                ),
            ));
        }
        let back = (self.at, self.again);
        self.at = target.at;
        self.again = Some(index);
        let start = self.at;
        let result = read(self)?;
        self.read_again += self.at.saturating_sub(start);
        (self.at, self.again) = back;
        if self.read_again > self.limits.expanded_bytes {
            let limit = self.limits.expanded_bytes;
            return Err(
                self.error(self.at, format_args!("references multiply the body to more than {limit} bytes"))
            );
        }
        Ok(result)
    }

    fn no_target(&self, index: usize) -> SerializeError {
        self.error(
            self.at,
            format_args!("reference to object {index}, but only {} have begun", self.compounds.len()),
        )
    }

    /// Adds the place to an error of the typed layer, which does not know it.
    fn place<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| {
            let text = error.to_string();
            if text.contains("at byte ") { error } else { self.error(self.at, text) }
        })
    }
}

impl ObjectReader for Reader {
    fn read_int(&mut self) -> Result<i32> {
        let value = serde::Deserialize::deserialize(typed::Typed(self));
        self.place(value)
    }

    fn read_str(&mut self) -> Result<Option<String>> {
        let value = serde::Deserialize::deserialize(typed::Typed(self));
        self.place(value)
    }

    fn read_value(&mut self) -> Result<Value> {
        self.value()
    }

    fn read(
        &mut self,
        visit: &mut dyn FnMut(
            &mut dyn erased_serde::Deserializer<'_>,
        ) -> std::result::Result<(), erased_serde::Error>,
    ) -> Result<()> {
        let mut deserializer = <dyn erased_serde::Deserializer<'_>>::erase(typed::Typed(self));
        let result = visit(&mut deserializer).map_err(SerializeError::from);
        self.place(result)
    }

    fn read_attachments(&mut self) -> Result<Attachments> {
        let at = self.at;
        match self.value()? {
            Value::Null => Ok(Attachments::new()),
            Value::Map(map) => {
                if map.entries.len() > self.limits.attachments {
                    return Err(
                        self.error(at, format_args!("more than {} attachments", self.limits.attachments))
                    );
                }
                let mut attachments = Attachments::new();
                for (key, value) in &map.entries {
                    let key = key
                        .as_str()
                        .ok_or_else(|| self.error(at, "a key of the attachments is not a string"))?;
                    attachments.set(key.to_owned(), value.without_cycles());
                }
                Ok(attachments)
            }
            other => Err(self.error(at, format_args!("attachments must be a map, not {other:?}"))),
        }
    }

    fn read_exception(&mut self) -> Result<Exception> {
        self.exception()
    }

    fn remaining(&self) -> usize {
        self.left()
    }
}
