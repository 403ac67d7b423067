//! Writing: values to bytes.

mod exception;
mod scalar;
mod typed;
mod value;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use dubhe_core::error::Exception;
use dubhe_core::invocation::Attachments;
use dubhe_core::serialize::{ObjectWriter, SerializeError};
use dubhe_core::value::Value;

use crate::limits::Limits;
use crate::tag;

/// A writer of one body: the output and the three tables that run through it.
pub(crate) struct Writer<'a> {
    out: &'a mut BytesMut,
    /// Length of what was in the output before this body.
    start: usize,
    limits: &'a Limits,
    sharing: bool,
    depth: usize,
    /// Compound values begun so far: the index that the next one gets.
    begun: u32,
    /// Values written so far from dynamic ones, whose shared parts could multiply.
    values: usize,
    classes: Vec<Class>,
    /// Classes of dynamic values by the address of their name, for bodies with many: a hint that is checked.
    class_hints: HashMap<usize, usize>,
    types: Vec<Name>,
    /// Places of the types in `types`, kept for bodies with many.
    type_places: HashMap<Arc<str>, usize>,
}

/// Up to this many classes or types, looking at all is quicker than hashing.
const FEW: usize = 16;

/// A class definition that was written, or whose place is reserved until its field names are known.
struct Class {
    name: Name,
    fields: Option<Vec<Name>>,
}

/// A name from a Rust type or from a dynamic value.
#[derive(Clone)]
enum Name {
    Static(&'static str),
    Shared(Arc<str>),
}

impl Name {
    fn as_str(&self) -> &str {
        match self {
            Self::Static(name) => name,
            Self::Shared(name) => name,
        }
    }

    /// Equal names are mostly the same memory.
    fn is(&self, other: &str) -> bool {
        let name = self.as_str();
        name.len() == other.len() && (std::ptr::eq(name.as_ptr(), other.as_ptr()) || name == other)
    }
}

impl fmt::Debug for Writer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("written", &self.out.len())
            .field("begun", &self.begun)
            .finish_non_exhaustive()
    }
}

impl<'a> Writer<'a> {
    pub(crate) fn new(out: &'a mut BytesMut, limits: &'a Limits, sharing: bool) -> Self {
        Self {
            start: out.len(),
            out,
            limits,
            sharing,
            depth: 0,
            begun: 0,
            values: 0,
            classes: Vec::new(),
            class_hints: HashMap::new(),
            types: Vec::new(),
            type_places: HashMap::new(),
        }
    }

    /// Begins a list, map or object: it takes the next index.
    fn begin(&mut self) -> Result<(), SerializeError> {
        if self.depth >= self.limits.depth {
            return Err(SerializeError::new(format!(
                "the value is nested deeper than {} levels: does it contain itself?",
                self.limits.depth
            )));
        }
        self.depth += 1;
        self.begun += 1;
        Ok(())
    }

    fn end(&mut self) {
        self.depth -= 1;
    }

    /// The head of a list of known length.
    fn list_head(&mut self, class: Option<Name>, len: usize) -> Result<(), SerializeError> {
        let len_int = i32::try_from(len).map_err(|_| SerializeError::new("a list is too long for Java"))?;
        match class {
            None if len <= tag::LIST_DIRECT_MAX => self.out.put_u8(tag::LIST_DIRECT + len as u8),
            None => {
                self.out.put_u8(tag::LIST);
                self.int(len_int);
            }
            Some(class) if len <= tag::LIST_DIRECT_MAX => {
                self.out.put_u8(tag::TYPED_LIST_DIRECT + len as u8);
                self.type_name(class);
            }
            Some(class) => {
                self.out.put_u8(tag::TYPED_LIST);
                self.type_name(class);
                self.int(len_int);
            }
        }
        Ok(())
    }

    /// A type's name at first, its index afterwards.
    fn type_name(&mut self, name: Name) {
        let known = if self.types.len() <= FEW {
            self.types.iter().position(|known| known.is(name.as_str()))
        } else {
            self.type_places.get(name.as_str()).copied()
        };
        if let Some(index) = known {
            return self.int(index as i32);
        }
        self.string(name.as_str());
        self.types.push(name);
        if self.types.len() > FEW {
            for index in self.type_places.len()..self.types.len() {
                self.type_places.insert(self.types[index].as_str().into(), index);
            }
        }
    }

    /// An instance of class number `class`; its field values follow.
    fn instance_head(&mut self, class: usize) {
        if class <= tag::OBJECT_DIRECT_MAX {
            self.out.put_u8(tag::OBJECT_DIRECT + class as u8);
        } else {
            self.out.put_u8(tag::OBJECT);
            self.int(class as i32);
        }
    }

    /// Finds the class with exactly these fields, or defines it.
    fn class(&mut self, name: &Name, fields: impl ExactSizeIterator<Item = Name> + Clone) -> usize {
        let same = |class: &Class| {
            class.name.is(name.as_str())
                && class.fields.as_ref().is_some_and(|known| {
                    known.len() == fields.len()
                        && known.iter().zip(fields.clone()).all(|(a, b)| a.is(b.as_str()))
                })
        };
        let address = name.as_str().as_ptr() as usize;
        let hint =
            self.class_hints.get(&address).copied().filter(|at| self.classes.get(*at).is_some_and(same));
        let known = hint.or_else(|| self.classes.iter().position(same));
        if let (None, Some(at)) = (hint, known)
            && self.classes.len() > FEW
        {
            self.class_hints.insert(address, at);
        }
        known.unwrap_or_else(|| {
            let fields: Vec<Name> = fields.collect();
            self.out.put_u8(tag::CLASS);
            self.string(name.as_str());
            self.int(fields.len() as i32);
            for field in &fields {
                self.string(field.as_str());
            }
            self.classes.push(Class { name: name.clone(), fields: Some(fields) });
            self.classes.len() - 1
        })
    }
}

impl ObjectWriter for Writer<'_> {
    fn write_null(&mut self) -> Result<(), SerializeError> {
        self.out.put_u8(tag::NULL);
        Ok(())
    }

    fn write_bool(&mut self, value: bool) -> Result<(), SerializeError> {
        self.bool(value);
        Ok(())
    }

    fn write_int(&mut self, value: i32) -> Result<(), SerializeError> {
        self.int(value);
        Ok(())
    }

    fn write_long(&mut self, value: i64) -> Result<(), SerializeError> {
        self.long(value);
        Ok(())
    }

    fn write_str(&mut self, value: &str) -> Result<(), SerializeError> {
        self.string(value);
        Ok(())
    }

    fn write_bytes(&mut self, value: &[u8]) -> Result<(), SerializeError> {
        self.binary(value);
        Ok(())
    }

    fn write_value(&mut self, value: &Value) -> Result<(), SerializeError> {
        self.value(value)
    }

    fn write(&mut self, value: &dyn erased_serde::Serialize) -> Result<(), SerializeError> {
        erased_serde::serialize(value, typed::Typed(self))
    }

    fn write_attachments(&mut self, attachments: &Attachments) -> Result<(), SerializeError> {
        self.write_attachments_with(&[], attachments)
    }

    fn write_exception(&mut self, exception: &Exception) -> Result<(), SerializeError> {
        self.exception(exception)
    }

    fn write_attachments_with(&mut self, encoded: &[u8], more: &Attachments) -> Result<(), SerializeError> {
        self.begin()?;
        self.out.put_u8(tag::MAP);
        self.out.put_slice(encoded);
        for (key, value) in more.iter() {
            self.string(key);
            self.value(value)?;
        }
        self.out.put_u8(tag::END);
        self.end();
        Ok(())
    }
}
