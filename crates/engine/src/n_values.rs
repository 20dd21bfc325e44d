//! The number of values in a state, found by a serializer that writes nothing. It finds every table, also
//! one that nobody thought of.

use std::fmt::Display;

use serde::ser::{self, Serialize, Serializer};

/// A state cannot be counted. Its own code says why.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct CountError(String);

impl ser::Error for CountError {
    fn custom<T: Display>(text: T) -> Self {
        Self(text.to_string())
    }
}

/// Returns the number of values in a state. An absent value counts too, because it takes a place.
pub(crate) fn n_values(state: &(impl Serialize + ?Sized)) -> Result<usize, CountError> {
    let mut counter = ValueCounter { n_values: 0, fields: None };
    state.serialize(&mut counter)?;
    Ok(counter.n_values)
}

/// Returns the number of values in each field of a struct, in the order of the fields. Empty if the state
/// is no struct.
pub(crate) fn n_values_by_field(
    state: &(impl Serialize + ?Sized),
) -> Result<Vec<(&'static str, usize)>, CountError> {
    let mut counter = ValueCounter { n_values: 0, fields: Some(Vec::new()) };
    state.serialize(&mut counter)?;
    Ok(counter.fields.unwrap_or_default())
}

struct ValueCounter {
    n_values: usize,
    /// The fields of the outermost struct. `None`: they are not told apart.
    fields: Option<Vec<(&'static str, usize)>>,
}

macro_rules! count_one {
    ($($method:ident($type:ty)),+ $(,)?) => {$(
        fn $method(self, _value: $type) -> Result<(), CountError> {
            self.n_values += 1;
            Ok(())
        }
    )+};
}

impl Serializer for &mut ValueCounter {
    type Ok = ();
    type Error = CountError;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    count_one! {
        serialize_bool(bool), serialize_i8(i8), serialize_i16(i16), serialize_i32(i32),
        serialize_i64(i64), serialize_i128(i128), serialize_u8(u8), serialize_u16(u16),
        serialize_u32(u32), serialize_u64(u64), serialize_u128(u128), serialize_f32(f32),
        serialize_f64(f64), serialize_char(char), serialize_str(&str), serialize_bytes(&[u8]),
        serialize_unit_struct(&'static str),
    }

    fn serialize_none(self) -> Result<(), CountError> {
        self.serialize_bool(false)
    }

    fn serialize_unit(self) -> Result<(), CountError> {
        self.serialize_bool(false)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), CountError> {
        value.serialize(self)
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
    ) -> Result<(), CountError> {
        self.serialize_bool(false)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<(), CountError> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        value: &T,
    ) -> Result<(), CountError> {
        value.serialize(self)
    }

    fn serialize_seq(self, _n: Option<usize>) -> Result<Self, CountError> {
        Ok(self)
    }

    fn serialize_tuple(self, _n: usize) -> Result<Self, CountError> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _name: &'static str, _n: usize) -> Result<Self, CountError> {
        Ok(self)
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _n: usize,
    ) -> Result<Self, CountError> {
        Ok(self)
    }

    fn serialize_map(self, _n: Option<usize>) -> Result<Self, CountError> {
        Ok(self)
    }

    fn serialize_struct(self, _name: &'static str, _n: usize) -> Result<Self, CountError> {
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _n: usize,
    ) -> Result<Self, CountError> {
        Ok(self)
    }
}

macro_rules! count_parts {
    ($($part:ident: $method:ident),+ $(,)?) => {$(
        impl ser::$part for &mut ValueCounter {
            type Ok = ();
            type Error = CountError;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CountError> {
                value.serialize(&mut **self)
            }

            fn end(self) -> Result<(), CountError> {
                Ok(())
            }
        }
    )+};
}

count_parts! {
    SerializeSeq: serialize_element,
    SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field,
}

impl ser::SerializeMap for &mut ValueCounter {
    type Ok = ();
    type Error = CountError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), CountError> {
        key.serialize(&mut **self)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CountError> {
        value.serialize(&mut **self)
    }

    fn end(self) -> Result<(), CountError> {
        Ok(())
    }
}

impl ser::SerializeStruct for &mut ValueCounter {
    type Ok = ();
    type Error = CountError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), CountError> {
        match &mut self.fields {
            Some(fields) => fields.push((name, n_values(value)?)),
            None => value.serialize(&mut **self)?,
        }
        Ok(())
    }

    fn end(self) -> Result<(), CountError> {
        Ok(())
    }
}

impl ser::SerializeStructVariant for &mut ValueCounter {
    type Ok = ();
    type Error = CountError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        _name: &'static str,
        value: &T,
    ) -> Result<(), CountError> {
        value.serialize(&mut **self)
    }

    fn end(self) -> Result<(), CountError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(serde::Serialize)]
    struct TwoTables {
        names: BTreeMap<u32, Option<&'static str>>,
        places: Vec<(u8, f64)>,
    }

    #[test]
    fn every_value_counts_and_so_does_an_empty_place() {
        let names = BTreeMap::from([(1, Some("a")), (2, None)]);
        let state = TwoTables { names, places: vec![(1, 0.5); 3] };
        assert_eq!(n_values(&state).unwrap(), 10);
        assert_eq!(n_values_by_field(&state).unwrap(), [("names", 4), ("places", 6)]);
    }
}
