//! The object store: every kind in one ordered map, one version counter for all, one event log per
//! kind. A change is made under one lock, so versions, lists and logs are always consistent.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::Value;

use super::{
    clock,
    collections::{Collection, Collections},
    delete::{DeleteOptions, is_over},
    expand::Expander,
    kinds::{KINDS, ServedKind},
    log::{Change, Event, Subscription},
    managed_fields::{self, FieldManager},
    object::{Identities, Key, Object, items, text},
    refused::Refused,
    selector::ObjectFilter,
};

/// Events kept per kind; older ones are compacted away.
pub(crate) const LOG_CAPACITY: usize = 50_000;
/// Events handed to a reader at once: a watch whose client does not read holds one such piece.
const READ_LIMIT: usize = 32;

/// The embedded API server's objects.
pub struct Store {
    state: Mutex<StoreState>,
    pub(super) expander: Option<Arc<dyn Expander>>,
}

/// Objects of one kind and the version at which they were read.
#[derive(Debug)]
pub struct Listing {
    /// Sorted by namespace, then name.
    pub objects: Vec<Arc<Object>>,
    /// A watch from here misses nothing.
    pub revision: u64,
    /// Whether the list goes on.
    pub more: bool,
}

/// An update, with who made it.
#[derive(Clone, Debug)]
pub struct TrackedWrite {
    /// Name of who made it, as in `metadata.managedFields`.
    pub manager: String,
    /// Kind of the object.
    pub kind: &'static ServedKind,
    /// Name of the object.
    pub name: String,
    /// Fields that were set, and fields that were taken away, as in `fieldsV1`.
    pub fields: [Value; 2],
}

/// A part of a list.
#[derive(Debug, Default)]
pub(super) struct ListingPage {
    /// The objects as they were at this version; absent means as they are.
    pub(super) at: Option<u64>,
    /// Continue after this key.
    pub(super) after: Option<Key>,
    /// At most so many objects; absent means all.
    pub(super) limit: Option<usize>,
}

pub(super) struct StoreState {
    pub(super) revision: u64,
    /// How often the objects were replaced by older ones.
    pub(super) n_restores: u64,
    /// Objects say who wrote their fields.
    pub(super) tracks_managers: bool,
    /// Writes since they were taken last, if managers are tracked.
    pub(super) tracked: Vec<TrackedWrite>,
    identities: Identities,
    pub(super) collections: Collections,
    /// Uid of an owner to what names it in `ownerReferences`.
    pub(super) owned: BTreeMap<String, BTreeSet<(&'static ServedKind, Key)>>,
}

impl Store {
    /// An empty store.
    pub fn new(expander: Option<Arc<dyn Expander>>) -> Store {
        Store::seeded(expander, clock::unix_micros(), |_| LOG_CAPACITY)
    }

    /// An empty store whose uids and generated names follow from a seed.
    pub(super) fn seeded(
        expander: Option<Arc<dyn Expander>>,
        seed: u64,
        log_capacity: impl Fn(&ServedKind) -> usize,
    ) -> Store {
        let state = StoreState {
            // A list of an empty store has version 1: 0 has a meaning of its own in requests.
            revision: 1,
            n_restores: 0,
            tracks_managers: false,
            tracked: Vec::new(),
            identities: Identities::new(seed),
            collections: Collections::new(log_capacity),
            owned: BTreeMap::new(),
        };
        Store { state: Mutex::new(state), expander }
    }

    /// The object of that name; `namespace` is empty for cluster scope.
    pub fn get(
        &self,
        kind: &'static ServedKind,
        namespace: &str,
        name: &str,
    ) -> Option<Arc<Object>> {
        self.lock().find(kind, &Key::new(namespace, name))
    }

    /// All objects of a kind, or those of one namespace.
    pub fn list(&self, kind: &'static ServedKind, namespace: Option<&str>) -> Listing {
        self.all(kind, &ObjectFilter::namespace(namespace))
    }

    /// Reads the changes of a kind from now on.
    pub fn subscribe(self: &Arc<Self>, kind: &'static ServedKind) -> Subscription {
        let revision = self.lock().revision;
        self.subscribe_after(kind, revision)
    }

    /// Returns the numbers of objects and of kept events over all kinds.
    pub(crate) fn sizes(&self) -> [(&'static str, usize); 2] {
        let state = self.lock();
        let sum = |of: fn(&Collection) -> usize| {
            state.collections.iter().map(|(_, collection)| of(collection)).sum()
        };
        [("objects", sum(|it| it.objects.len())), ("events", sum(|it| it.log.len()))]
    }

    /// Forgets every event: a reader that has not seen them all, and a watch from an older
    /// version, is told 410.
    pub fn compact(&self) {
        self.lock().collections.iter_mut().for_each(|(_, collection)| collection.log.compact());
    }

    /// Lets objects say from now on who wrote which of their fields (`metadata.managedFields`).
    pub fn track_managers(&self) {
        self.lock().tracks_managers = true;
    }

    /// Returns the updates since it was called last. There are none unless managers are tracked.
    pub fn take_tracked(&self) -> Vec<TrackedWrite> {
        std::mem::take(&mut self.lock().tracked)
    }

    /// True if objects say who wrote their fields.
    pub(super) fn tracks_managers(&self) -> bool {
        self.lock().tracks_managers
    }

    /// Changes an object and returns its new version. A change that changes nothing makes none.
    ///
    /// # Errors
    /// `NotFound`, or what `change` says; then nothing has changed.
    pub fn update(
        &self,
        kind: &'static ServedKind,
        key: &Key,
        change: impl FnOnce(&mut Value) -> Result<(), Refused>,
    ) -> Result<Arc<Object>, Refused> {
        let mut state = self.lock();
        let object = state.require(kind, key)?;
        let mut value = object.value.clone();
        change(&mut value)?;
        let manager = FieldManager::taken_from(&mut value, Some(&object.value));
        if value == object.value {
            return Ok(object);
        }
        if state.tracks_managers {
            let fields = managed_fields::track(Some(&object.value), &mut value, &manager);
            let (name, manager) = (key.name.clone(), manager.name);
            state.tracked.push(TrackedWrite { manager, kind, name, fields });
        }
        let changed = state.commit(kind, key, value);
        if is_over(&changed.value) {
            // The last finalizer has gone.
            state.end(kind, &changed, &DeleteOptions::default());
        }
        Ok(changed)
    }

    /// Returns all objects that a filter selects.
    pub(super) fn all(&self, kind: &'static ServedKind, filter: &ObjectFilter) -> Listing {
        let state = self.lock();
        let objects = state.matching(kind, filter, None).cloned().collect();
        Listing { objects, revision: state.revision, more: false }
    }

    /// Returns all objects that a filter selects, as a cache shows them that is behind by so many
    /// versions.
    ///
    /// # Errors
    /// The events since then are not kept any more.
    pub(super) fn cached(
        &self,
        kind: &'static ServedKind,
        filter: &ObjectFilter,
        versions_behind: u64,
    ) -> Result<Listing, Refused> {
        let at = Some(self.cached_revision(kind, versions_behind));
        self.page(kind, filter, &ListingPage { at, ..ListingPage::default() })
    }

    /// Returns the version that a cache has which is behind by so many. It is no older than the
    /// events that are kept.
    pub(super) fn cached_revision(&self, kind: &'static ServedKind, versions_behind: u64) -> u64 {
        let mut state = self.lock();
        let newest = state.revision;
        // Version 0 has a meaning of its own in requests.
        let oldest = state.collection(kind).log.compacted().max(1);
        newest.saturating_sub(versions_behind).max(oldest)
    }

    /// The part of a list that a request asks for, with the objects as they are, or as they were at
    /// a version: a list that goes on shows the objects as they were when it began.
    ///
    /// # Errors
    /// The events since that version are not kept any more.
    pub(super) fn page(
        &self,
        kind: &'static ServedKind,
        filter: &ObjectFilter,
        page: &ListingPage,
    ) -> Result<Listing, Refused> {
        let state = self.lock();
        let limit = page.limit.unwrap_or(usize::MAX);
        let after = page.after.as_ref();
        let changed = page.at.map(|at| state.before_changes(kind, at)).transpose()?;
        let changed = changed.unwrap_or_default();
        let is_same = |object: &&Arc<Object>| !changed.contains_key(&Key::of(&object.value));
        let same = state.matching(kind, filter, after).filter(is_same);
        let is_next = |(key, object): &(&Key, &Arc<Object>)| {
            after.is_none_or(|after| after < *key) && filter.matches(&object.value)
        };
        let earlier = changed.iter().filter_map(|(key, before)| Some((key, before.as_ref()?)));
        let earlier = earlier.filter(is_next).map(|(_, object)| object);
        let one_more = limit.saturating_add(1);
        let mut objects: Vec<Arc<Object>> =
            same.take(one_more).chain(earlier.take(one_more)).cloned().collect();
        objects.sort_by_cached_key(|object| Key::of(&object.value));
        let more = limit < objects.len();
        objects.truncate(limit);
        Ok(Listing { objects, revision: page.at.unwrap_or(state.revision), more })
    }

    pub(super) fn subscribe_after(
        self: &Arc<Self>,
        kind: &'static ServedKind,
        seen: u64,
    ) -> Subscription {
        let mut state = self.lock();
        let n_restores = state.n_restores;
        let changed = state.collection(kind).changed.clone();
        drop(state);
        Subscription::new(self.clone(), kind, (seen, n_restores), changed)
    }

    /// Events after `seen`, and the version up to which that is all when there are none. `n_restores`:
    /// as it was when the reader began.
    pub(super) fn events_after(
        &self,
        kind: &'static ServedKind,
        seen: u64,
        n_restores: u64,
    ) -> Result<(Vec<Arc<Event>>, u64), Refused> {
        let mut state = self.lock();
        let revision = state.revision;
        if state.n_restores != n_restores {
            return Err(Refused::Expired { asked: seen, oldest: revision });
        }
        Ok((state.collection(kind).log.after(seen, READ_LIMIT)?, revision))
    }

    /// Whether a list continued from `revision` can still be followed by a watch from there.
    pub(super) fn check_revision(
        &self,
        kind: &'static ServedKind,
        revision: u64,
    ) -> Result<(), Refused> {
        let mut state = self.lock();
        let (newest, oldest) = (state.revision, state.collection(kind).log.compacted());
        // A version of the future was given out by an earlier server on this address. A server that
        // began anew from a backup waits until it has that version, as kube-apiserver does.
        match oldest <= revision && (revision <= newest || 0 < state.n_restores) {
            true => Ok(()),
            false => Err(Refused::Expired { asked: revision, oldest }),
        }
    }

    /// The version of the newest change.
    pub(super) fn revision(&self) -> u64 {
        self.lock().revision
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, StoreState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoreState {
    pub(super) fn find(&self, kind: &'static ServedKind, key: &Key) -> Option<Arc<Object>> {
        self.collections.of(kind).objects.get(key).cloned()
    }

    pub(super) fn require(
        &self,
        kind: &'static ServedKind,
        key: &Key,
    ) -> Result<Arc<Object>, Refused> {
        let missing = || Refused::NotFound { kind, name: key.name.clone() };
        self.find(kind, key).ok_or_else(missing)
    }

    pub(super) fn identities(&mut self) -> &mut Identities {
        &mut self.identities
    }

    /// Stores `value` as the next version, new or not.
    pub(super) fn commit(
        &mut self,
        kind: &'static ServedKind,
        key: &Key,
        value: Value,
    ) -> Arc<Object> {
        let object = self.next_version(value);
        let objects = &mut self.collection(kind).objects;
        let previous = objects.insert(key.clone(), object.clone());
        if let Some(previous) = &previous {
            self.disown(kind, key, &previous.value);
        }
        for owner in owner_uids(&object.value) {
            let dependents = self.owned.entry(owner.to_owned()).or_default();
            dependents.insert((kind, key.clone()));
        }
        let change = if previous.is_some() { Change::Modified } else { Change::Added };
        self.publish(kind, Event { change, object: object.clone(), previous });
        object
    }

    /// Takes an object out; its last state gets the version of its end.
    pub(super) fn remove(&mut self, kind: &'static ServedKind, key: &Key) -> Option<Arc<Object>> {
        let previous = self.collection(kind).objects.remove(key)?;
        self.disown(kind, key, &previous.value);
        let object = self.next_version(previous.value.clone());
        let previous = Some(previous);
        self.publish(kind, Event { change: Change::Deleted, object: object.clone(), previous });
        Some(object)
    }

    /// What names `uid` as an owner.
    pub(super) fn dependents(&self, uid: &str) -> Vec<(&'static ServedKind, Key)> {
        self.owned.get(uid).into_iter().flatten().cloned().collect()
    }

    /// Keys of everything in a namespace.
    pub(super) fn contents(&self, namespace: &str) -> Vec<(&'static ServedKind, Key)> {
        let filter = ObjectFilter::namespace(Some(namespace));
        let keys = |kind: &'static ServedKind| {
            self.matching(kind, &filter, None).map(move |object| (kind, Key::of(&object.value)))
        };
        KINDS.iter().filter(|kind| kind.is_namespaced()).flat_map(keys).collect()
    }

    /// Objects that a filter selects, in order, after `after`. One name is looked up, not searched.
    fn matching<'a>(
        &'a self,
        kind: &'static ServedKind,
        filter: &'a ObjectFilter,
        after: Option<&Key>,
    ) -> impl Iterator<Item = &'a Arc<Object>> {
        let objects = &self.collections.of(kind).objects;
        let start = match (after, &filter.namespace) {
            (Some(key), _) => Bound::Excluded(key.clone()),
            (None, Some(namespace)) => {
                let name = filter.name().unwrap_or_default();
                Bound::Included(Key::new(namespace, name))
            }
            (None, None) => Bound::Unbounded,
        };
        objects
            .range((start, Bound::Unbounded))
            .take_while(|(key, _)| filter.may_follow(key))
            .map(|(_, object)| object)
            .filter(|object| filter.matches(&object.value))
    }

    /// Returns the objects that have changed since a version, as they were then. `None`: there was none.
    fn before_changes(
        &self,
        kind: &'static ServedKind,
        revision: u64,
    ) -> Result<BTreeMap<Key, Option<Arc<Object>>>, Refused> {
        let mut before = BTreeMap::new();
        for event in self.collections.of(kind).log.after(revision, usize::MAX)? {
            let key = Key::of(&event.object.value);
            before.entry(key).or_insert_with(|| event.previous.clone());
        }
        Ok(before)
    }

    fn collection(&mut self, kind: &'static ServedKind) -> &mut Collection {
        self.collections.of_mut(kind)
    }

    fn next_version(&mut self, mut value: Value) -> Arc<Object> {
        self.revision += 1;
        value["metadata"]["resourceVersion"] = self.revision.to_string().into();
        Arc::new(Object::new(value, self.revision))
    }

    fn publish(&mut self, kind: &'static ServedKind, event: Event) {
        let collection = self.collection(kind);
        collection.log.push(event);
        collection.changed.notify_waiters();
    }

    fn disown(&mut self, kind: &'static ServedKind, key: &Key, value: &Value) {
        for owner in owner_uids(value) {
            let Some(dependents) = self.owned.get_mut(owner) else {
                continue;
            };
            dependents.remove(&(kind, key.clone()));
            if dependents.is_empty() {
                self.owned.remove(owner);
            }
        }
    }
}

/// The uids in `metadata.ownerReferences`.
pub(super) fn owner_uids(value: &Value) -> impl Iterator<Item = &str> {
    items(value, "/metadata/ownerReferences").iter().map(|owner| text(owner, "/uid"))
}
