//! Dynamic values.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::BufMut;
use dubhe_core::serialize::SerializeError;
use dubhe_core::value::{List, Map, Object, Value};

use super::{Name, Writer};
use crate::tag;

impl Writer<'_> {
    /// Writes a whole dynamic value: the root that its references count from.
    pub(super) fn value(&mut self, value: &Value) -> Result<(), SerializeError> {
        let mut root = Root { places: Places::Straight { first: self.begun }, written: HashMap::new() };
        if self.sharing {
            // Numbers count shared parts at each occurrence, so the list of places can be much longer than the
            // output: it is only kept when there is a cycle to look up.
            root.places = Places::Shared { places: Vec::new(), kept: value.has_refs() };
        }
        self.part(value, &mut root)
    }

    fn part(&mut self, value: &Value, root: &mut Root) -> Result<(), SerializeError> {
        self.values += 1;
        if self.values > self.limits.values {
            return Err(self.too_many());
        }
        if self.out.len() - self.start > self.limits.expanded_bytes {
            return Err(SerializeError::new(format!(
                "more than {} bytes in one message, shared parts counted at each occurrence",
                self.limits.expanded_bytes
            )));
        }
        match value {
            Value::Null => self.out.put_u8(tag::NULL),
            Value::Bool(value) => self.bool(*value),
            Value::Int(value) => self.int(*value),
            Value::Long(value) => self.long(*value),
            Value::Double(value) => self.double(*value),
            Value::Date(millis) => self.date(*millis),
            Value::Str(text) => self.string(text),
            Value::Utf16(units) => self.utf16(units),
            Value::Bytes(bytes) => self.binary(bytes),
            Value::Ref(number) => {
                let place = root.place(*number, self.begun).ok_or_else(|| {
                    SerializeError::new(format!("reference {number} points at a value that has not begun"))
                })?;
                self.reference(place);
            }
            Value::List(list) => {
                if !self.repeated(address(list), root)? {
                    self.compound(address(list), root, |writer, root| writer.list(list, root))?;
                }
            }
            Value::Map(map) => {
                if !self.repeated(address(map), root)? {
                    self.compound(address(map), root, |writer, root| writer.map(map, root))?;
                }
            }
            Value::Object(object) => {
                if !self.repeated(address(object), root)? {
                    self.compound(address(object), root, |writer, root| writer.object(object, root))?;
                }
            }
            _ => return Err(SerializeError::new("a kind of value that Hessian2 does not have")),
        }
        Ok(())
    }

    fn reference(&mut self, place: u32) {
        self.out.put_u8(tag::REF);
        self.int(place as i32);
    }

    fn compound(
        &mut self,
        address: usize,
        root: &mut Root,
        write: impl FnOnce(&mut Self, &mut Root) -> Result<(), SerializeError>,
    ) -> Result<(), SerializeError> {
        let place = self.begun;
        self.begin()?;
        let number = root.begin(place);
        write(self, root)?;
        root.end(address, place, number);
        self.end();
        Ok(())
    }

    /// With sharing, writes a part that was written before as a reference.
    fn repeated(&mut self, address: usize, root: &mut Root) -> Result<bool, SerializeError> {
        let Some(written) = root.written.get(&address) else { return Ok(false) };
        let (place, number, count) = (written.place, written.number, written.count);
        if let Places::Shared { places, kept: true } = &mut root.places {
            // Its parts keep their places under their second numbers.
            if places.len() + count > self.limits.values {
                return Err(self.too_many());
            }
            places.extend_from_within(number..number + count);
        }
        self.reference(place);
        Ok(true)
    }

    fn too_many(&self) -> SerializeError {
        SerializeError::new(format!(
            "more than {} values in one message, shared parts counted at each occurrence",
            self.limits.values
        ))
    }

    fn list(&mut self, list: &List, root: &mut Root) -> Result<(), SerializeError> {
        self.list_head(list.class.clone().map(Name::Shared), list.items.len())?;
        list.items.iter().try_for_each(|item| self.part(item, root))
    }

    fn map(&mut self, map: &Map, root: &mut Root) -> Result<(), SerializeError> {
        match &map.class {
            None => self.out.put_u8(tag::MAP),
            Some(class) => {
                self.out.put_u8(tag::TYPED_MAP);
                self.type_name(Name::Shared(Arc::clone(class)));
            }
        }
        for (key, value) in &map.entries {
            self.part(key, root)?;
            self.part(value, root)?;
        }
        self.out.put_u8(tag::END);
        Ok(())
    }

    fn object(&mut self, object: &Object, root: &mut Root) -> Result<(), SerializeError> {
        let name = Name::Shared(Arc::clone(&object.class));
        let class = self.class(&name, object.fields.iter().map(|(name, _)| Name::Shared(Arc::clone(name))));
        self.instance_head(class);
        object.fields.iter().try_for_each(|(_, field)| self.part(field, root))
    }
}

fn address<T>(arc: &Arc<T>) -> usize {
    Arc::as_ptr(arc) as usize
}

/// Where the parts of one whole value are in the body.
struct Root {
    places: Places,
    /// With sharing: the parts that were written whole, by address.
    written: HashMap<usize, Written>,
}

enum Places {
    /// Every part is written at each occurrence: part `n` is the body's compound value `first + n`.
    Straight { first: u32 },
    /// The body's index of each part, by its number, if they are kept.
    Shared { places: Vec<u32>, kept: bool },
}

/// A part that was written whole: its index in the body, its number, and how many numbers it takes.
struct Written {
    place: u32,
    number: usize,
    count: usize,
}

impl Root {
    fn place(&self, number: u32, begun: u32) -> Option<u32> {
        match &self.places {
            Places::Straight { first } => first.checked_add(number).filter(|place| *place < begun),
            Places::Shared { places, .. } => places.get(number as usize).copied(),
        }
    }

    fn begin(&mut self, place: u32) -> usize {
        match &mut self.places {
            Places::Shared { places, kept: true } => {
                places.push(place);
                places.len() - 1
            }
            _ => 0,
        }
    }

    fn end(&mut self, address: usize, place: u32, number: usize) {
        if let Places::Shared { places, .. } = &self.places {
            let count = places.len().saturating_sub(number);
            self.written.insert(address, Written { place, number, count });
        }
    }
}
