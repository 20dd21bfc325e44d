//! `device.attributes` and `device.capacity`: maps by domain, where an unknown domain is an empty
//! map and a name without domain belongs to that of the driver. Specification: plugins-nodes.md
//! 6.6.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use cel::ExecutionError;
use cel::common::traits::{Container, Indexer, Iterable, Iterator as CelIterator, Sizer};
use cel::common::types::{CelInt, CelMap, CelMapKey, CelString, MAP_TYPE, Type};
use cel::common::value::{CowVal, Val};

/// Key and value of a map.
type Entry<'a> = (&'a str, Box<dyn Val>);

/// Values by domain and id.
#[derive(Clone, Debug)]
pub(crate) struct Domains {
    /// In order; the same as those of the maps.
    names: Vec<CelString<'static>>,
    maps: BTreeMap<String, CelMap<'static>>,
}

static EMPTY: LazyLock<CelMap<'static>> = LazyLock::new(CelMap::default);

impl Domains {
    pub(crate) fn new<'a>(
        driver: &str,
        entries: impl Iterator<Item = (&'a Arc<str>, Box<dyn Val>)>,
    ) -> Self {
        let mut by_domain: BTreeMap<String, Vec<Entry<'_>>> = BTreeMap::new();
        for (name, value) in entries {
            let (domain, id) = name.split_once('/').unwrap_or((driver, name));
            by_domain.entry(domain.to_owned()).or_default().push((id, value));
        }
        let names = by_domain.keys().cloned().map(CelString::from).collect();
        let maps = by_domain.into_iter().map(|(domain, entries)| (domain, map(entries)));
        Self { names, maps: maps.collect() }
    }
}

/// A map with these entries.
pub(crate) fn map<'a>(entries: impl IntoIterator<Item = Entry<'a>>) -> CelMap<'static> {
    let entries = entries.into_iter();
    let entries = entries.map(|(key, value)| (CelMapKey::from(key.to_owned()), value));
    CelMap::from(entries.collect::<HashMap<_, _>>())
}

impl Val for Domains {
    fn get_type(&self) -> &Type {
        <Self as Val>::cel_type()
    }
    fn cel_type() -> &'static Type {
        &MAP_TYPE
    }
    fn as_container(&self) -> Option<&dyn Container> {
        Some(self)
    }
    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }
    fn as_iterable<'b, 'v>(&'b self) -> Option<&'b (dyn Iterable + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }
    fn as_sizer(&self) -> Option<&dyn Sizer> {
        Some(self)
    }
    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }
}

impl Iterable for Domains {
    fn iter<'b, 'v>(&'b self) -> Box<dyn CelIterator<'b, 'v> + 'b>
    where
        Self: 'v,
    {
        Box::new(Names(self.names.iter()))
    }
}

struct Names<'b>(std::slice::Iter<'b, CelString<'static>>);

impl<'b, 'v> CelIterator<'b, 'v> for Names<'b> {
    fn next(&mut self) -> Option<&'b (dyn Val + 'v)> {
        let name: &'b CelString<'static> = self.0.next()?;
        Some(name)
    }
}

impl Sizer for Domains {
    fn size(&self) -> CelInt {
        i64::try_from(self.names.len()).unwrap_or(i64::MAX).into()
    }
}

impl Container for Domains {
    fn contains(&self, key: &dyn Val) -> Result<bool, ExecutionError> {
        Ok(key.downcast_ref::<CelString>().is_some_and(|key| self.maps.contains_key(key.inner())))
    }
}

impl Indexer for Domains {
    fn get<'b, 'v>(&'b self, key: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        match key.downcast_ref::<CelString>() {
            Some(key) => Ok(CowVal::Borrowed(self.maps.get(key.inner()).unwrap_or(&*EMPTY))),
            None => Err(ExecutionError::UnexpectedType {
                got: key.get_type().name().to_owned(),
                want: "string".to_owned(),
            }),
        }
    }

    fn steal<'v>(self: Box<Self>, key: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.get(key).map(CowVal::into_owned)
    }
}
