//! Each text of a value with its place, while the value is written. Another text may be written
//! instead. Names of fields and variants are no texts, so the types need not be known.
//! Specification: answers.md 15 (ANS-102).

use serde::ser::{
    Error as _, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

use crate::plugin_states::changed_states;

/// The place of a text in a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextPlace {
    /// Name of the innermost struct or enum around the text.
    pub owner: &'static str,
    /// Field of the struct, or variant of the enum.
    pub field: &'static str,
    /// True if the text is a key of a map, or a part of one.
    pub is_key: bool,
    /// True if the text is in a configuration of the scheduler.
    pub is_conf: bool,
}

/// Returns the text that comes in the place of another one. `None`: the text stays.
pub type TextChange<'a> = dyn Fn(TextPlace, &str) -> Option<String> + 'a;

/// The field of a checkpoint with the states of plugins, which are bytes.
const PLUGIN_STATES: (&str, &str) = ("Checkpoint", "plugins");

/// A value that is written with other texts.
pub(crate) struct WithTexts<'a, T: ?Sized> {
    value: &'a T,
    context: Context<'a>,
}

#[derive(Clone, Copy)]
struct Context<'a> {
    change: &'a TextChange<'a>,
    place: TextPlace,
}

/// Writes a value with another serializer.
struct TextSerializer<'a, S> {
    inner: S,
    context: Context<'a>,
}

/// Writes the parts of a value.
struct PartSerializer<'a, C> {
    inner: C,
    context: Context<'a>,
}

impl<'a, T: ?Sized> WithTexts<'a, T> {
    pub(crate) fn new(value: &'a T, change: &'a TextChange<'a>) -> Self {
        Self { value, context: Context { change, place: TextPlace::default() } }
    }
}

impl<T: Serialize + ?Sized> Serialize for WithTexts<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(TextSerializer { inner: serializer, context: self.context })
    }
}

impl<'a> Context<'a> {
    fn of<'v, T: ?Sized>(&self, value: &'v T) -> WithTexts<'v, T>
    where
        'a: 'v,
    {
        WithTexts { value, context: *self }
    }

    fn in_type(self, owner: &'static str) -> Self {
        let is_conf = self.place.is_conf || owner == "Config";
        Self { place: TextPlace { owner, is_conf, ..self.place }, ..self }
    }

    fn in_field(self, field: &'static str) -> Self {
        Self { place: TextPlace { field, ..self.place }, ..self }
    }

    fn in_key(self) -> Self {
        Self { place: TextPlace { is_key: true, ..self.place }, ..self }
    }
}

macro_rules! write_unchanged {
    ($($method:ident($type:ty)),+ $(,)?) => {$(
        fn $method(self, value: $type) -> Result<S::Ok, S::Error> {
            self.inner.$method(value)
        }
    )+};
}

impl<'a, S: Serializer> Serializer for TextSerializer<'a, S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = PartSerializer<'a, S::SerializeSeq>;
    type SerializeTuple = PartSerializer<'a, S::SerializeTuple>;
    type SerializeTupleStruct = PartSerializer<'a, S::SerializeTupleStruct>;
    type SerializeTupleVariant = PartSerializer<'a, S::SerializeTupleVariant>;
    type SerializeMap = PartSerializer<'a, S::SerializeMap>;
    type SerializeStruct = PartSerializer<'a, S::SerializeStruct>;
    type SerializeStructVariant = PartSerializer<'a, S::SerializeStructVariant>;

    write_unchanged! {
        serialize_bool(bool), serialize_i8(i8), serialize_i16(i16), serialize_i32(i32),
        serialize_i64(i64), serialize_i128(i128), serialize_u8(u8), serialize_u16(u16),
        serialize_u32(u32), serialize_u64(u64), serialize_u128(u128), serialize_f32(f32),
        serialize_f64(f64), serialize_char(char), serialize_bytes(&[u8]),
        serialize_unit_struct(&'static str),
    }

    fn serialize_str(self, text: &str) -> Result<S::Ok, S::Error> {
        let Context { change, place } = self.context;
        match change(place, text) {
            Some(other) => self.inner.serialize_str(&other),
            None => self.inner.serialize_str(text),
        }
    }

    fn serialize_none(self) -> Result<S::Ok, S::Error> {
        self.inner.serialize_none()
    }

    fn serialize_unit(self) -> Result<S::Ok, S::Error> {
        self.inner.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.inner.serialize_some(&self.context.of(value))
    }

    fn serialize_unit_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
    ) -> Result<S::Ok, S::Error> {
        self.inner.serialize_unit_variant(name, index, variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        self.inner.serialize_newtype_struct(name, &self.context.of(value))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let context = self.context.in_type(name).in_field(variant);
        self.inner.serialize_newtype_variant(name, index, variant, &context.of(value))
    }

    fn serialize_seq(self, n: Option<usize>) -> Result<Self::SerializeSeq, S::Error> {
        Ok(PartSerializer { inner: self.inner.serialize_seq(n)?, context: self.context })
    }

    fn serialize_tuple(self, n: usize) -> Result<Self::SerializeTuple, S::Error> {
        Ok(PartSerializer { inner: self.inner.serialize_tuple(n)?, context: self.context })
    }

    fn serialize_tuple_struct(
        self,
        name: &'static str,
        n: usize,
    ) -> Result<Self::SerializeTupleStruct, S::Error> {
        let inner = self.inner.serialize_tuple_struct(name, n)?;
        Ok(PartSerializer { inner, context: self.context })
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        n: usize,
    ) -> Result<Self::SerializeTupleVariant, S::Error> {
        let inner = self.inner.serialize_tuple_variant(name, index, variant, n)?;
        Ok(PartSerializer { inner, context: self.context.in_type(name).in_field(variant) })
    }

    fn serialize_map(self, n: Option<usize>) -> Result<Self::SerializeMap, S::Error> {
        Ok(PartSerializer { inner: self.inner.serialize_map(n)?, context: self.context })
    }

    fn serialize_struct(
        self,
        name: &'static str,
        n: usize,
    ) -> Result<Self::SerializeStruct, S::Error> {
        let inner = self.inner.serialize_struct(name, n)?;
        Ok(PartSerializer { inner, context: self.context.in_type(name) })
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        n: usize,
    ) -> Result<Self::SerializeStructVariant, S::Error> {
        let inner = self.inner.serialize_struct_variant(name, index, variant, n)?;
        Ok(PartSerializer { inner, context: self.context.in_type(name) })
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

macro_rules! write_parts {
    ($($part:ident: $method:ident),+ $(,)?) => {$(
        impl<C: $part> $part for PartSerializer<'_, C> {
            type Ok = C::Ok;
            type Error = C::Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), C::Error> {
                self.inner.$method(&self.context.of(value))
            }

            fn end(self) -> Result<C::Ok, C::Error> {
                self.inner.end()
            }
        }
    )+};
}

write_parts! {
    SerializeSeq: serialize_element,
    SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field,
}

impl<C: SerializeMap> SerializeMap for PartSerializer<'_, C> {
    type Ok = C::Ok;
    type Error = C::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), C::Error> {
        self.inner.serialize_key(&self.context.in_key().of(key))
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), C::Error> {
        self.inner.serialize_value(&self.context.of(value))
    }

    fn end(self) -> Result<C::Ok, C::Error> {
        self.inner.end()
    }
}

impl<C: SerializeStruct> SerializeStruct for PartSerializer<'_, C> {
    type Ok = C::Ok;
    type Error = C::Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        field: &'static str,
        value: &T,
    ) -> Result<(), C::Error> {
        let context = self.context.in_field(field);
        if (context.place.owner, field) == PLUGIN_STATES {
            let states = changed_states(value, context.change).map_err(C::Error::custom)?;
            return self.inner.serialize_field(field, &states);
        }
        self.inner.serialize_field(field, &context.of(value))
    }

    fn skip_field(&mut self, field: &'static str) -> Result<(), C::Error> {
        self.inner.skip_field(field)
    }

    fn end(self) -> Result<C::Ok, C::Error> {
        self.inner.end()
    }
}

impl<C: SerializeStructVariant> SerializeStructVariant for PartSerializer<'_, C> {
    type Ok = C::Ok;
    type Error = C::Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        field: &'static str,
        value: &T,
    ) -> Result<(), C::Error> {
        self.inner.serialize_field(field, &self.context.in_field(field).of(value))
    }

    fn skip_field(&mut self, field: &'static str) -> Result<(), C::Error> {
        self.inner.skip_field(field)
    }

    fn end(self) -> Result<C::Ok, C::Error> {
        self.inner.end()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    use ciborium::Value;
    use serde::Serialize;

    use super::*;

    #[derive(Serialize)]
    enum Place {
        Nowhere,
        Node(&'static str),
        Rack { rack: &'static str, n_nodes: u32 },
    }

    #[derive(Serialize)]
    struct Record {
        labels: BTreeMap<&'static str, &'static str>,
        by_key: BTreeMap<(&'static str, u8), Vec<Place>>,
        name: Option<&'static str>,
        wide: i128,
    }

    #[test]
    fn ans_102_texts_are_replaced_and_fields_and_variants_stay() {
        let rack = Place::Rack { rack: "name", n_nodes: 2 };
        let record = Record {
            labels: BTreeMap::from([("labels", "Node")]),
            by_key: BTreeMap::from([(("a", 1), vec![Place::Nowhere, Place::Node("b"), rack])]),
            name: Some("name"),
            wide: -1 << 90,
        };
        let places = RefCell::new(Vec::new());
        let change = |place: TextPlace, text: &str| {
            places.borrow_mut().push((place.owner, place.field, place.is_key, text.to_owned()));
            Some(format!("{text}!"))
        };
        let written = Value::serialized(&WithTexts::new(&record, &change)).unwrap();
        let rack = Place::Rack { rack: "name!", n_nodes: 2 };
        let expected = Record {
            labels: BTreeMap::from([("labels!", "Node!")]),
            by_key: BTreeMap::from([(("a!", 1), vec![Place::Nowhere, Place::Node("b!"), rack])]),
            name: Some("name!"),
            wide: -1 << 90,
        };
        assert_eq!(written, Value::serialized(&expected).unwrap());
        let text = |owner, field, is_key, text: &str| (owner, field, is_key, text.to_owned());
        let expected = [
            text("Record", "labels", true, "labels"),
            text("Record", "labels", false, "Node"),
            text("Record", "by_key", true, "a"),
            text("Place", "Node", false, "b"),
            text("Place", "rack", false, "name"),
            text("Record", "name", false, "name"),
        ];
        assert_eq!(*places.borrow(), expected);
    }
}
