//! Fields that may be malformed. Reading an object never fails on a wrong type or an unreadable
//! quantity: the field remembers what is wrong, so that one bad field costs neither the object's
//! identity nor its neighbours in a list (rust-ecosystem.md, test cases 4-6).

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use vc_resource::Quantity;

use crate::scan::{JsonScan, UnusualJson};
use crate::word::{WordKey, word};

/// A field of an object. `null` counts as absent.
#[derive(Clone, Debug, Default)]
pub enum LenientField<T> {
    #[default]
    Absent,
    Good(T),
    /// What is wrong with it.
    Bad(Box<str>),
}

/// A list whose elements may each be malformed.
pub type LenientList<T> = LenientField<Vec<LenientField<T>>>;

/// A map with text keys, in the order of the object.
#[derive(Clone, Debug)]
pub struct LenientMap<T>(pub Vec<(Arc<str>, LenientField<T>)>);

impl<T> Default for LenientMap<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// What a field may be made of. `None` from a method: the field must not be of that type.
pub trait FieldShape: Sized {
    /// What the API wants, as in `must be <wanted>`.
    const WANTED: &'static str;

    fn from_text(_text: &str) -> Option<Result<Self, String>> {
        None
    }
    fn from_int(_value: i64) -> Option<Result<Self, String>> {
        None
    }
    fn from_float(_value: f64) -> Option<Result<Self, String>> {
        None
    }
    fn from_bool(_value: bool) -> Option<Self> {
        None
    }
    fn from_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Option<Self>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }
    fn from_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Option<Self>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
    /// The same as `from_list` from the text, in place.
    fn scan_list(
        scan: &mut JsonScan<'_>,
        into: &mut LenientField<Self>,
    ) -> Result<(), UnusualJson> {
        scan.by_serde(into)
    }
    /// The same as `from_map` from the text, in place.
    fn scan_map(scan: &mut JsonScan<'_>, into: &mut LenientField<Self>) -> Result<(), UnusualJson> {
        scan.by_serde(into)
    }
}

impl FieldShape for Arc<str> {
    const WANTED: &'static str = "a string";
    fn from_text(text: &str) -> Option<Result<Self, String>> {
        Some(Ok(word(text)))
    }
}

impl FieldShape for bool {
    const WANTED: &'static str = "true or false";
    fn from_bool(value: bool) -> Option<Self> {
        Some(value)
    }
}

impl FieldShape for i32 {
    const WANTED: &'static str = "an integer";
    fn from_int(value: i64) -> Option<Result<Self, String>> {
        Some(i32::try_from(value).map_err(|_| format!("does not fit 32 bits: {value}")))
    }
}

impl FieldShape for i64 {
    const WANTED: &'static str = "an integer";
    fn from_int(value: i64) -> Option<Result<Self, String>> {
        Some(Ok(value))
    }
}

impl FieldShape for Quantity {
    const WANTED: &'static str = "a quantity";
    fn from_text(text: &str) -> Option<Result<Self, String>> {
        Some(text.parse().map_err(|error: vc_resource::QuantityError| error.to_string()))
    }
    fn from_int(value: i64) -> Option<Result<Self, String>> {
        Some(Ok(Quantity::from_value(value)))
    }
    /// The shortest text that is this number is what stood in the object.
    fn from_float(value: f64) -> Option<Result<Self, String>> {
        Self::from_text(&value.to_string())
    }
}

impl<T: FieldShape> FieldShape for Vec<LenientField<T>> {
    const WANTED: &'static str = "a list";
    fn from_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Option<Self>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Some(items))
    }
    fn scan_list(
        scan: &mut JsonScan<'_>,
        into: &mut LenientField<Self>,
    ) -> Result<(), UnusualJson> {
        let items = into.begin();
        scan.list(|scan| {
            let place = items.len();
            items.push(LenientField::Absent);
            scan.soft(&mut items[place])
        })
    }
}

impl<T: FieldShape> FieldShape for LenientMap<T> {
    const WANTED: &'static str = "a map";
    fn from_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Option<Self>, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key_seed(WordKey)? {
            entries.push((key, map.next_value()?));
        }
        Ok(Some(Self(entries)))
    }
    fn scan_map(scan: &mut JsonScan<'_>, into: &mut LenientField<Self>) -> Result<(), UnusualJson> {
        let Self(entries) = into.begin();
        scan.object(|key, scan| {
            let mut value = LenientField::Absent;
            scan.soft(&mut value)?;
            entries.push((word(key), value));
            Ok(())
        })
    }
}

/// An object that is handed on as it is.
#[derive(Clone, Debug, Default)]
pub struct RawJson(pub serde_json::Value);

impl FieldShape for RawJson {
    const WANTED: &'static str = "an object";
    fn from_map<'de, A: MapAccess<'de>>(map: A) -> Result<Option<Self>, A::Error> {
        let access = serde::de::value::MapAccessDeserializer::new(map);
        Deserialize::deserialize(access).map(|value| Some(Self(value)))
    }
}

/// Lets structs of soft fields stand in a [`LenientField`]. Of those of which a first list has many the fields
/// are named, as serde names them, for [`JsonScan`]. `#[A: Bound]` stands before a type with a parameter.
macro_rules! object {
    ($(
        $(#[$param:ident: $bound:path])? $name:ty $({ $($key:literal => $field:ident),+ $(,)? })?
    ),+ $(,)?) => {$(
        impl$(<$param: $bound>)? crate::soft::FieldShape for $name {
            const WANTED: &'static str = "an object";
            fn from_map<'de, M: serde::de::MapAccess<'de>>(
                map: M,
            ) -> Result<Option<Self>, M::Error> {
                let access = serde::de::value::MapAccessDeserializer::new(map);
                serde::Deserialize::deserialize(access).map(Some)
            }
            $(fn scan_map(
                scan: &mut crate::scan::JsonScan<'_>,
                into: &mut crate::soft::LenientField<Self>,
            ) -> Result<(), crate::scan::UnusualJson> {
                let fields = into.begin();
                scan.object(|key, scan| match key {
                    $($key => scan.soft(&mut fields.$field),)+
                    _ => scan.skip(),
                })
            })?
        }
    )+};
}
pub(crate) use object;

impl<T: FieldShape> LenientField<T> {
    pub(crate) fn of_text(text: &str) -> Self {
        Self::scalar(T::from_text(text), &format_args!("{text:?}"))
    }

    pub(crate) fn of_bool(value: bool) -> Self {
        Self::scalar(T::from_bool(value).map(Ok), &value)
    }

    pub(crate) fn of_int(value: i64) -> Self {
        Self::scalar(T::from_int(value), &value)
    }

    /// Of a type of which the field may be or not.
    fn scalar(value: Option<Result<T, String>>, given: &dyn fmt::Display) -> Self {
        match value {
            Some(Ok(value)) => Self::Good(value),
            Some(Err(problem)) => Self::Bad(problem.into()),
            None => Self::Bad(format!("must be {}: {given}", T::WANTED).into()),
        }
    }

    fn compound(value: Option<T>, given: &str) -> Self {
        Self::scalar(value.map(Ok), &given)
    }

    /// Good and empty, to be filled in place.
    pub(crate) fn begin(&mut self) -> &mut T
    where
        T: Default,
    {
        *self = Self::Good(T::default());
        match self {
            Self::Good(value) => value,
            _ => unreachable!("it was made good in the line above"),
        }
    }
}

impl<'de, T: FieldShape> Deserialize<'de> for LenientField<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LenientVisitor(PhantomData))
    }
}

struct LenientVisitor<T>(PhantomData<T>);

impl<'de, T: FieldShape> Visitor<'de> for LenientVisitor<T> {
    type Value = LenientField<T>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(T::WANTED)
    }
    fn visit_unit<E>(self) -> Result<LenientField<T>, E> {
        Ok(LenientField::Absent)
    }
    fn visit_none<E>(self) -> Result<LenientField<T>, E> {
        Ok(LenientField::Absent)
    }
    fn visit_bool<E>(self, value: bool) -> Result<LenientField<T>, E> {
        Ok(LenientField::of_bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<LenientField<T>, E> {
        Ok(LenientField::of_int(value))
    }
    /// Beyond `i64` only a quantity can hold the number; it saturates there.
    fn visit_u64<E>(self, value: u64) -> Result<LenientField<T>, E> {
        Ok(match i64::try_from(value) {
            Ok(small) => LenientField::of_int(small),
            Err(_) => LenientField::scalar(T::from_float(value as f64), &value),
        })
    }
    fn visit_f64<E>(self, value: f64) -> Result<LenientField<T>, E> {
        Ok(LenientField::scalar(T::from_float(value), &value))
    }
    fn visit_str<E>(self, text: &str) -> Result<LenientField<T>, E> {
        Ok(LenientField::of_text(text))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<LenientField<T>, A::Error> {
        Ok(LenientField::compound(T::from_list(list)?, "is a list"))
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<LenientField<T>, A::Error> {
        Ok(LenientField::compound(T::from_map(map)?, "is an object"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: FieldShape>(json: &str) -> Result<Option<T>, String> {
        match serde_json::from_str::<LenientField<T>>(json).unwrap() {
            LenientField::Absent => Ok(None),
            LenientField::Good(value) => Ok(Some(value)),
            LenientField::Bad(problem) => Err(problem.into()),
        }
    }

    #[test]
    fn quantities_are_exact_as_text_and_as_numbers() {
        for (json, milli) in [
            ("\"100m\"", 100),
            ("0.1", 100),
            ("2", 2000),
            ("1e3", 1_000_000),
            ("\"1.5\"", 1500),
            ("9223372036854775808", i64::MAX),
        ] {
            assert_eq!(read::<Quantity>(json).unwrap().map(Quantity::milli), Some(milli), "{json}");
        }
    }

    #[test]
    fn null_is_absent_and_wrong_types_are_values() {
        assert_eq!(read::<i32>("null"), Ok(None));
        assert_eq!(read::<i32>("\"3\""), Err("must be an integer: \"3\"".into()));
        assert_eq!(read::<i32>("3000000000"), Err("does not fit 32 bits: 3000000000".into()));
        assert_eq!(read::<i32>("1.5"), Err("must be an integer: 1.5".into()));
        assert_eq!(read::<Arc<str>>("[1]"), Err("must be a string: is a list".into()));
        assert_eq!(read::<bool>("{}"), Err("must be true or false: is an object".into()));
        assert!(read::<Quantity>("\"5x\"").unwrap_err().starts_with("unknown quantity suffix"));
    }

    #[test]
    fn a_bad_element_leaves_its_neighbours() {
        let list: LenientField<Vec<LenientField<i32>>> =
            serde_json::from_str("[1, {\"a\": [2]}, 3]").unwrap();
        let LenientField::Good(list) = list else { panic!("not a list") };
        assert!(matches!(
            list[..],
            [LenientField::Good(1), LenientField::Bad(_), LenientField::Good(3)]
        ));
    }
}
