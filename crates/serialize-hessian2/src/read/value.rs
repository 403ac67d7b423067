//! Dynamic values.

use std::sync::Arc;

use dubhe_core::value::{List, Map, Object, Value};

use super::head::Head;
use super::{Class, Reader, Result};

/// Elements for which memory is taken before any is read: a length is only a claim.
const RESERVED: usize = 1_024;

impl Reader {
    /// Reads a whole dynamic value: the root that its references count from.
    pub(super) fn value(&mut self) -> Result<Value> {
        self.root += 1;
        self.numbered = 0;
        self.part()
    }

    fn part(&mut self) -> Result<Value> {
        if let Some(int) = self.next_int()? {
            self.count()?;
            return Ok(Value::Int(int));
        }
        if let Some(first) = self.next_string() {
            return self.text_value(first);
        }
        let (at, head) = self.head()?;
        match head {
            Head::List { class, len } => return self.compound(at, |reader| reader.list(class, len)),
            Head::Map { class } => return self.compound(at, |reader| reader.map(class)),
            Head::Object(class) => return self.compound(at, |reader| reader.object(&class)),
            Head::Ref(index) => return self.target(index),
            Head::Str(first) => return self.text_value(first),
            _ => self.count()?,
        }
        Ok(match head {
            Head::Bool(value) => Value::Bool(value),
            Head::Int(value) => Value::Int(value),
            Head::Long(value) => Value::Long(value),
            Head::Double(value) => Value::Double(value),
            Head::Date(millis) => Value::Date(millis),
            Head::Binary(first) => Value::Bytes(self.binary(first)?),
            _ => Value::Null,
        })
    }

    fn text_value(&mut self, first: u8) -> Result<Value> {
        self.count()?;
        match self.plain(first)? {
            Some(text) => Ok(Value::Str(text.into())),
            None => Ok(self.text(first)?.into()),
        }
    }

    fn list(&mut self, class: Option<Arc<str>>, len: Option<usize>) -> Result<Value> {
        let mut items = Vec::with_capacity(len.unwrap_or(0).min(RESERVED));
        match len {
            Some(len) => {
                for _ in 0..len {
                    items.push(self.part()?);
                }
            }
            None => {
                while !self.at_end_mark()? {
                    items.push(self.part()?);
                }
            }
        }
        Ok(Value::List(Arc::new(List { class, items })))
    }

    fn map(&mut self, class: Option<Arc<str>>) -> Result<Value> {
        let mut entries = Vec::new();
        while !self.at_end_mark()? {
            let key = self.part()?;
            entries.push((key, self.part()?));
        }
        Ok(Value::Map(Arc::new(Map { class, entries })))
    }

    fn object(&mut self, class: &Arc<Class>) -> Result<Value> {
        if let Some(form) = class.compact() {
            return self.compact(class, form);
        }
        let mut fields = Vec::with_capacity(class.fields.len());
        for name in &class.fields {
            fields.push((Arc::clone(name), self.part()?));
        }
        Ok(Value::Object(Arc::new(Object { class: Arc::clone(&class.name), fields })))
    }

    /// Reads a list, map or object, and remembers it for later references.
    fn compound(&mut self, at: usize, read: impl FnOnce(&mut Self) -> Result<Value>) -> Result<Value> {
        if let Some(index) = self.again
            && let Some(value) = self.known(index)
        {
            // What is read again contains, as text, what the reference to it came from.
            self.at = at;
            self.skip()?;
            return Ok(value);
        }
        let index = self.begin(at)?;
        let (root, number) = (self.root, self.numbered);
        self.numbered = self.numbered.saturating_add(1);
        if let Some(compound) = self.compounds.get_mut(index) {
            (compound.root, compound.number) = (root, number);
        }
        let value = read(self)?;
        let count = self.numbered.saturating_sub(number);
        if let Some(compound) = self.compounds.get_mut(index) {
            (compound.count, compound.value) = (count, Some(value.clone()));
        }
        self.end(index);
        Ok(value)
    }

    /// What a reference points at: a cycle when that is still being read, else the same value again.
    fn target(&mut self, index: usize) -> Result<Value> {
        let Some(target) = self.compounds.get(index) else { return Err(self.no_target(index)) };
        if target.open > 0 && target.root != self.root {
            return Err(self.error(
                self.at,
                format_args!(
                    "object {index} contains the dynamic value that refers to it: read it as one, too"
                ),
            ));
        }
        if let Some(value) = self.known(index) {
            self.count()?;
            return Ok(value);
        }
        // It belongs to another value of the body, where numbers count from another root.
        self.again(index, Self::part)
    }

    /// Compound value `index`, if it is part of the dynamic value being read: a cycle while it is open.
    fn known(&mut self, index: usize) -> Option<Value> {
        let part = self.compounds.get(index).filter(|part| part.root == self.root)?;
        if part.open > 0 {
            return Some(Value::Ref(part.number));
        }
        let value = part.value.clone();
        if value.is_some() {
            self.numbered = self.numbered.saturating_add(part.count);
        }
        value
    }
}
