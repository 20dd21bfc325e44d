//! The collections of the store, one per kind: in the order of the kinds, and found by the name of the kind.

use std::{collections::BTreeMap, sync::Arc};

use rustc_hash::FxHashMap;
use tokio::sync::Notify;

use super::{
    kinds::{KINDS, ServedKind},
    log::EventLog,
    object::{Key, Object},
};

/// The objects of one kind, with their events.
pub(super) struct Collection {
    pub(super) objects: BTreeMap<Key, Arc<Object>>,
    pub(super) log: EventLog,
    pub(super) changed: Arc<Notify>,
}

/// The collections of all kinds.
pub(super) struct Collections {
    /// Sorted by kind.
    rows: Vec<(&'static ServedKind, Collection)>,
    /// Plural name and group of a kind to its index in `rows`: each request looks for some kinds.
    indices: FxHashMap<(&'static str, &'static str), usize>,
}

impl Collections {
    /// Returns empty collections.
    pub(super) fn new(log_capacity: impl Fn(&ServedKind) -> usize) -> Self {
        let mut kinds: Vec<&'static ServedKind> = KINDS.iter().collect();
        kinds.sort_unstable();
        let indices =
            kinds.iter().enumerate().map(|(index, kind)| ((kind.plural, kind.group), index));
        let indices = indices.collect();
        let empty = |kind| Collection {
            objects: BTreeMap::new(),
            log: EventLog::new(log_capacity(kind)),
            changed: Arc::default(),
        };
        let rows = kinds.into_iter().map(|kind| (kind, empty(kind))).collect();
        Self { rows, indices }
    }

    /// Returns the collection of a kind of the table.
    pub(super) fn of(&self, kind: &ServedKind) -> &Collection {
        &self.rows[self.index(kind)].1
    }

    /// Returns the collection of a kind of the table, to be changed.
    pub(super) fn of_mut(&mut self, kind: &ServedKind) -> &mut Collection {
        let index = self.index(kind);
        &mut self.rows[index].1
    }

    /// Iterates over the kinds with their collections.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static ServedKind, &Collection)> {
        self.rows.iter().map(|(kind, collection)| (*kind, collection))
    }

    /// Iterates over the kinds with their collections, to be changed.
    pub(super) fn iter_mut(
        &mut self,
    ) -> impl Iterator<Item = (&'static ServedKind, &mut Collection)> {
        self.rows.iter_mut().map(|(kind, collection)| (*kind, collection))
    }

    fn index(&self, kind: &ServedKind) -> usize {
        self.indices[&(kind.plural, kind.group)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::{PODS, QUEUES};

    #[test]
    fn each_kind_has_a_collection_of_its_own_in_the_order_of_kinds() {
        let mut collections = Collections::new(|_| 1);
        for kind in [&PODS, &QUEUES] {
            let key = Key::new("", kind.plural);
            let object = Arc::new(Object::new(serde_json::Value::Null, 1));
            collections.of_mut(kind).objects.insert(key, object);
        }
        for kind in KINDS {
            let names: Vec<&str> =
                collections.of(kind).objects.keys().map(|key| &*key.name).collect();
            let own = [&PODS, &QUEUES].contains(&kind);
            assert_eq!(names, if own { vec![kind.plural] } else { vec![] }, "{kind:?}");
        }
        assert!(collections.iter().map(|(kind, _)| kind).is_sorted());
        assert_eq!(collections.iter_mut().count(), KINDS.len());
    }
}
