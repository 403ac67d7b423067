//! Typed values, through serde.
//!
//! A class definition stands before its first instance and holds the field names, which serde tells one by one with
//! the values. So the first instance of a class is written first and its definition is put in front of it
//! afterwards; the class's index is taken at the beginning, so that classes inside it come after it.

use std::fmt::Display;

use bytes::BufMut;
use dubhe_core::serialize::SerializeError;
use dubhe_core::value::{java, marker, to_value};
use serde::ser::{self, Serialize, Serializer};

use super::{Class, Name, Writer};
use crate::tag;

/// Writes one value.
pub(super) struct Typed<'w, 'a>(pub(super) &'w mut Writer<'a>);

type Done = Result<(), SerializeError>;

impl<'w, 'a> Serializer for Typed<'w, 'a> {
    type Ok = ();
    type Error = SerializeError;
    type SerializeSeq = Items<'w, 'a>;
    type SerializeTuple = Items<'w, 'a>;
    type SerializeTupleStruct = Items<'w, 'a>;
    type SerializeTupleVariant = Items<'w, 'a>;
    type SerializeMap = Entries<'w, 'a>;
    type SerializeStruct = Fields<'w, 'a>;
    type SerializeStructVariant = Fields<'w, 'a>;

    fn is_human_readable(&self) -> bool {
        false
    }

    fn serialize_bool(self, value: bool) -> Done {
        self.0.bool(value);
        Ok(())
    }

    fn serialize_i8(self, value: i8) -> Done {
        self.serialize_i32(value.into())
    }

    fn serialize_i16(self, value: i16) -> Done {
        self.serialize_i32(value.into())
    }

    fn serialize_i32(self, value: i32) -> Done {
        self.0.int(value);
        Ok(())
    }

    fn serialize_i64(self, value: i64) -> Done {
        self.0.long(value);
        Ok(())
    }

    fn serialize_i128(self, value: i128) -> Done {
        self.serialize_i64(i64::try_from(value).map_err(|_| too_large(value))?)
    }

    fn serialize_u8(self, value: u8) -> Done {
        self.serialize_i32(value.into())
    }

    fn serialize_u16(self, value: u16) -> Done {
        self.serialize_i32(value.into())
    }

    fn serialize_u32(self, value: u32) -> Done {
        self.serialize_i64(value.into())
    }

    fn serialize_u64(self, value: u64) -> Done {
        self.serialize_i64(i64::try_from(value).map_err(|_| too_large(value))?)
    }

    fn serialize_u128(self, value: u128) -> Done {
        self.serialize_i64(i64::try_from(value).map_err(|_| too_large(value))?)
    }

    fn serialize_f32(self, value: f32) -> Done {
        self.0.double(java::widen(value));
        Ok(())
    }

    fn serialize_f64(self, value: f64) -> Done {
        self.0.double(value);
        Ok(())
    }

    fn serialize_char(self, value: char) -> Done {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Done {
        self.0.string(value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Done {
        self.0.binary(value);
        Ok(())
    }

    fn serialize_none(self) -> Done {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Done {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Done {
        self.0.out.put_u8(tag::NULL);
        Ok(())
    }

    fn serialize_unit_struct(self, name: &'static str) -> Done {
        if !marker::is_class(name) {
            return self.serialize_unit();
        }
        ser::SerializeStruct::end(Fields::object(self.0, name)?)
    }

    fn serialize_unit_variant(self, name: &'static str, _index: u32, variant: &'static str) -> Done {
        if !marker::is_class(name) {
            return self.serialize_str(variant);
        }
        self.0.begin()?;
        let class = self.0.class(&Name::Static(name), [Name::Static("name")].into_iter());
        self.0.instance_head(class);
        self.0.string(variant);
        self.0.end();
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, name: &'static str, value: &T) -> Done {
        match name {
            marker::VALUE => match marker::take_over() {
                Some(value) => self.0.value(&value),
                None => Err(SerializeError::new("no dynamic value was handed over")),
            },
            marker::DATE => {
                let millis = to_value(value)?
                    .as_long()
                    .ok_or_else(|| SerializeError::new("a date must be given in milliseconds"))?;
                self.0.date(millis);
                Ok(())
            }
            _ => value.serialize(self),
        }
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Done {
        if marker::is_class(variant) {
            // The struct inside is written under the variant's name, whatever its own.
            struct Inner<'t, T: ?Sized>(&'t T, &'static str, u32, &'static str);

            impl<T: Serialize + ?Sized> Serialize for Inner<'_, T> {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    serializer.serialize_newtype_variant(self.1, self.2, self.3, self.0)
                }
            }

            let value = to_value(&Inner(value, name, index, variant))?;
            return self.0.value(&value);
        }
        self.0.variant(variant)?;
        value.serialize(Typed(self.0))?;
        self.0.variant_end();
        Ok(())
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<Items<'w, 'a>, SerializeError> {
        Items::begin(self.0, len)
    }

    fn serialize_tuple(self, len: usize) -> Result<Items<'w, 'a>, SerializeError> {
        Items::begin(self.0, Some(len))
    }

    fn serialize_tuple_struct(self, name: &'static str, len: usize) -> Result<Items<'w, 'a>, SerializeError> {
        if name == marker::TYPED_LIST && len > 0 {
            self.0.begin()?;
            return Ok(Items { writer: self.0, head: Head::Typed(len - 1), variant: false });
        }
        Items::begin(self.0, Some(len))
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Items<'w, 'a>, SerializeError> {
        self.0.variant(variant)?;
        let mut items = Items::begin(self.0, Some(len))?;
        items.variant = true;
        Ok(items)
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<Entries<'w, 'a>, SerializeError> {
        self.0.begin()?;
        self.0.out.put_u8(tag::MAP);
        Ok(Entries(self.0))
    }

    fn serialize_struct(self, name: &'static str, _len: usize) -> Result<Fields<'w, 'a>, SerializeError> {
        if marker::is_class(name) { Fields::object(self.0, name) } else { Fields::map(self.0) }
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Fields<'w, 'a>, SerializeError> {
        if marker::is_class(variant) {
            return Fields::object(self.0, variant);
        }
        self.0.variant(variant)?;
        let mut fields = Fields::map(self.0)?;
        fields.variant = true;
        Ok(fields)
    }
}

fn too_large(value: impl Display) -> SerializeError {
    SerializeError::new(format!("{value} does not fit a Java long: use java::BigInteger"))
}

impl Writer<'_> {
    /// Begins the one-entry map that holds an enum variant without a Java class.
    fn variant(&mut self, variant: &str) -> Done {
        self.begin()?;
        self.out.put_u8(tag::MAP);
        self.string(variant);
        Ok(())
    }

    fn variant_end(&mut self) {
        self.out.put_u8(tag::END);
        self.end();
    }
}

/// A list whose elements come.
pub(super) struct Items<'w, 'a> {
    writer: &'w mut Writer<'a>,
    head: Head,
    variant: bool,
}

enum Head {
    /// It is written.
    Written,
    /// The next field is the type of a list of this length.
    Typed(usize),
    /// The length is not known: it belongs before `at`.
    Open { at: usize, len: usize },
}

impl<'w, 'a> Items<'w, 'a> {
    fn begin(writer: &'w mut Writer<'a>, len: Option<usize>) -> Result<Self, SerializeError> {
        writer.begin()?;
        let head = match len {
            Some(len) => {
                writer.list_head(None, len)?;
                Head::Written
            }
            None => Head::Open { at: writer.out.len(), len: 0 },
        };
        Ok(Self { writer, head, variant: false })
    }

    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        match &mut self.head {
            Head::Written => {}
            Head::Open { len, .. } => *len += 1,
            Head::Typed(len) => {
                let len = *len;
                let class = to_value(value)?;
                let class =
                    class.as_str().ok_or_else(|| SerializeError::new("a list's type must be a string"))?;
                self.writer.list_head(Some(Name::Shared(class.into())), len)?;
                self.head = Head::Written;
                return Ok(());
            }
        }
        value.serialize(Typed(self.writer))
    }

    fn finish(self) -> Done {
        if let Head::Open { at, len } = self.head {
            // The head is written behind the elements and then moved before them.
            let end = self.writer.out.len();
            self.writer.list_head(None, len)?;
            self.writer.out[at..].rotate_left(end - at);
        }
        self.writer.end();
        if self.variant {
            self.writer.variant_end();
        }
        Ok(())
    }
}

impl ser::SerializeSeq for Items<'_, '_> {
    type Ok = ();
    type Error = SerializeError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        self.item(value)
    }

    fn end(self) -> Done {
        self.finish()
    }
}

impl ser::SerializeTuple for Items<'_, '_> {
    type Ok = ();
    type Error = SerializeError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        self.item(value)
    }

    fn end(self) -> Done {
        self.finish()
    }
}

impl ser::SerializeTupleStruct for Items<'_, '_> {
    type Ok = ();
    type Error = SerializeError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        self.item(value)
    }

    fn end(self) -> Done {
        self.finish()
    }
}

impl ser::SerializeTupleVariant for Items<'_, '_> {
    type Ok = ();
    type Error = SerializeError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        self.item(value)
    }

    fn end(self) -> Done {
        self.finish()
    }
}

/// A map whose entries come.
pub(super) struct Entries<'w, 'a>(&'w mut Writer<'a>);

impl ser::SerializeMap for Entries<'_, '_> {
    type Ok = ();
    type Error = SerializeError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Done {
        key.serialize(Typed(self.0))
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        value.serialize(Typed(self.0))
    }

    fn end(self) -> Done {
        self.0.out.put_u8(tag::END);
        self.0.end();
        Ok(())
    }
}

/// An object or an untyped map whose fields come.
pub(super) struct Fields<'w, 'a> {
    writer: &'w mut Writer<'a>,
    shape: Shape,
    variant: bool,
}

enum Shape {
    Map,
    /// The class's field names are known: they must come in that order.
    Known {
        class: usize,
        next: usize,
    },
    /// They are not. When this is the outermost instance, its definition goes before `at`.
    New {
        class: usize,
        names: Vec<&'static str>,
        at: Option<usize>,
    },
}

impl<'w, 'a> Fields<'w, 'a> {
    fn map(writer: &'w mut Writer<'a>) -> Result<Self, SerializeError> {
        writer.begin()?;
        writer.out.put_u8(tag::MAP);
        Ok(Self { writer, shape: Shape::Map, variant: false })
    }

    fn object(writer: &'w mut Writer<'a>, name: &'static str) -> Result<Self, SerializeError> {
        writer.begin()?;
        let at = writer.out.len();
        // A class defined by a dynamic value may have other fields; then this one is defined anew.
        let known = writer
            .classes
            .iter()
            .position(|class| matches!(class.name, Name::Static(_)) && class.name.is(name));
        let shape = match known {
            Some(class) if writer.classes[class].fields.is_some() => Shape::Known { class, next: 0 },
            Some(class) => Shape::New { class, names: Vec::new(), at: None },
            None => {
                writer.classes.push(Class { name: Name::Static(name), fields: None });
                Shape::New { class: writer.classes.len() - 1, names: Vec::new(), at: Some(at) }
            }
        };
        if let Shape::Known { class, .. } | Shape::New { class, .. } = &shape {
            writer.instance_head(*class);
        }
        Ok(Self { writer, shape, variant: false })
    }

    fn name(&mut self, name: &'static str) -> Done {
        match &mut self.shape {
            Shape::Map => self.writer.string(name),
            Shape::New { names, .. } => names.push(name),
            Shape::Known { class, next } => {
                let class = &self.writer.classes[*class];
                let expected = class.fields.as_ref().and_then(|fields| fields.get(*next));
                if !expected.is_some_and(|expected| expected.is(name)) {
                    return Err(other_fields(class.name.as_str()));
                }
                *next += 1;
            }
        }
        Ok(())
    }

    fn field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Done {
        self.name(name)?;
        value.serialize(Typed(self.writer))
    }

    fn skipped(&mut self, name: &'static str) -> Done {
        if matches!(self.shape, Shape::Map) {
            return Ok(());
        }
        // All instances of a class have the same fields.
        self.name(name)?;
        self.writer.out.put_u8(tag::NULL);
        Ok(())
    }

    fn finish(self) -> Done {
        let Self { writer, shape, variant } = self;
        match shape {
            Shape::Map => writer.out.put_u8(tag::END),
            Shape::Known { class, next } => {
                let class = &writer.classes[class];
                if class.fields.as_ref().is_some_and(|fields| fields.len() != next) {
                    return Err(other_fields(class.name.as_str()));
                }
            }
            Shape::New { class: index, names, at } => {
                let class = &mut writer.classes[index];
                match &class.fields {
                    None => class.fields = Some(names.iter().map(|name| Name::Static(name)).collect()),
                    Some(known) => {
                        // An instance inside this one told the names first.
                        if known.len() != names.len() || known.iter().zip(&names).any(|(a, b)| !a.is(b)) {
                            return Err(other_fields(class.name.as_str()));
                        }
                    }
                }
                if let Some(at) = at {
                    writer.define(index, &names, at);
                }
            }
        }
        writer.end();
        if variant {
            writer.variant_end();
        }
        Ok(())
    }
}

fn other_fields(class: &str) -> SerializeError {
    SerializeError::new(format!("instances of {class} with different fields in one message"))
}

impl Writer<'_> {
    /// Puts the definition of a class before the instance that begins at `at`.
    fn define(&mut self, class: usize, fields: &[&'static str], at: usize) {
        let end = self.out.len();
        let name = self.classes[class].name.clone();
        self.out.put_u8(tag::CLASS);
        self.string(name.as_str());
        self.int(fields.len() as i32);
        for field in fields {
            self.string(field);
        }
        self.out[at..].rotate_left(end - at);
    }
}

impl ser::SerializeStruct for Fields<'_, '_> {
    type Ok = ();
    type Error = SerializeError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Done {
        self.field(name, value)
    }

    fn skip_field(&mut self, name: &'static str) -> Done {
        self.skipped(name)
    }

    fn end(self) -> Done {
        self.finish()
    }
}

impl ser::SerializeStructVariant for Fields<'_, '_> {
    type Ok = ();
    type Error = SerializeError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Done {
        self.field(name, value)
    }

    fn skip_field(&mut self, name: &'static str) -> Done {
        self.skipped(name)
    }

    fn end(self) -> Done {
        self.finish()
    }
}
