//! The objects of a simulation. Those of a listed cluster stay in its file until somebody needs them (answers.md 13,
//! ANS-92).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use vc_objects::admission::Admission;
use vc_objects::input::{InputObject, LinePlace, ObjectLines, Source};
use vc_objects::workload::WorkloadContext;
use vc_wire::Kind;

use super::Id;

/// Objects by kind, namespace and name.
#[derive(Clone, Default)]
pub(super) struct ObjectTable(BTreeMap<Id, StoredObject>);

/// An object, and what it takes to have it.
#[derive(Clone)]
enum StoredObject {
    Value(Value),
    /// The object as JSON, of a tenth of the size.
    Text(Box<str>),
    Listed(ListedObject),
}

/// An object in the file of a listed cluster.
#[derive(Clone)]
pub(super) struct ListedObject {
    pub(super) file: Arc<ListedFile>,
    pub(super) place: LinePlace,
}

/// The file of a listed cluster, with what completes its objects.
pub(super) struct ListedFile {
    pub(super) lines: ObjectLines,
    pub(super) admission: Admission,
    /// Place of all its objects for messages. The file is gone when somebody reads them, so lines are not told apart.
    pub(super) source: Source,
}

impl ObjectTable {
    /// Returns an object.
    pub(super) fn get(&self, id: &Id) -> Option<Cow<'_, Value>> {
        self.0.get(id).map(StoredObject::value)
    }

    /// True if there is an object.
    pub(super) fn contains(&self, id: &Id) -> bool {
        self.0.contains_key(id)
    }

    /// Returns all objects.
    pub(super) fn values(&self) -> impl Iterator<Item = Cow<'_, Value>> {
        self.0.values().map(StoredObject::value)
    }

    /// Returns the objects of a kind.
    pub(super) fn of_kind(&self, kind: Kind) -> impl Iterator<Item = Cow<'_, Value>> {
        self.0.iter().filter(move |(id, _)| id.0 == kind).map(|(_, object)| object.value())
    }

    /// Returns the namespaces of the objects of a kind, each as often as it has one.
    pub(super) fn namespaces(&self, kind: Kind) -> impl Iterator<Item = &str> {
        self.0.keys().filter(move |id| id.0 == kind).map(|id| &*id.1)
    }

    /// Returns the objects of a kind for changes. They are in memory from then on.
    pub(super) fn of_kind_mut(&mut self, kind: Kind) -> impl Iterator<Item = (&Id, &mut Value)> {
        let of_kind = self.0.iter_mut().filter(move |(id, _)| id.0 == kind);
        of_kind.map(|(id, object)| (id, object.load()))
    }

    /// Changes an object, and returns what the change returns. Returns `None` if there is no such object.
    pub(super) fn change<T>(&mut self, id: &Id, change: impl FnOnce(&mut Value) -> T) -> Option<T> {
        let object = self.0.get_mut(id)?;
        if let StoredObject::Value(value) = object {
            return Some(change(value));
        }
        let mut value = object.value().into_owned();
        let changed = change(&mut value);
        *object = StoredObject::Text(value.to_string().into());
        Some(changed)
    }

    /// Adds an object, or replaces it.
    pub(super) fn insert(&mut self, id: Id, value: Value) {
        self.0.insert(id, StoredObject::Value(value));
    }

    /// Adds an object that stays in a file.
    pub(super) fn insert_listed(&mut self, id: Id, object: ListedObject) {
        self.0.insert(id, StoredObject::Listed(object));
    }

    /// Takes an object out. Returns `None` if there is no such object.
    pub(super) fn remove(&mut self, id: &Id) -> Option<Value> {
        self.0.remove(id).map(|object| object.value().into_owned())
    }

    /// Returns all objects with their identities.
    pub(super) fn into_objects(self) -> impl Iterator<Item = (Id, Value)> {
        self.0.into_iter().map(|(id, object)| (id, object.into_value()))
    }
}

impl StoredObject {
    fn value(&self) -> Cow<'_, Value> {
        match self {
            Self::Value(value) => Cow::Borrowed(value),
            Self::Text(text) => {
                Cow::Owned(serde_json::from_str(text).expect("a value was written as this text"))
            }
            Self::Listed(object) => Cow::Owned(object.value()),
        }
    }

    fn into_value(self) -> Value {
        match self {
            Self::Value(value) => value,
            stored => stored.value().into_owned(),
        }
    }

    fn load(&mut self) -> &mut Value {
        if !matches!(self, Self::Value(_)) {
            *self = Self::Value(self.value().into_owned());
        }
        match self {
            Self::Value(value) => value,
            _ => unreachable!("it was made a value in the line above"),
        }
    }
}

impl ListedObject {
    /// Reads the object again, and completes it as before. A PodGroup that it got then is an object of its own.
    fn value(&self) -> Value {
        let ListedFile { lines, admission, source } = &*self.file;
        let read = lines.object(self.place);
        // The open file stays readable, whatever becomes of its name.
        let value = read.expect("all lines of the file were read when the objects were taken in");
        let mut object = InputObject { value, source: source.clone() };
        admission.complete(&mut object, &mut WorkloadContext::default());
        object.value
    }
}
