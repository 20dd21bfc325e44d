//! Per scheduling class: its terms and constraints, the matchers that select its pods, and the
//! nodes of its pods. Classes are indexed by label, namespace and controller.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::class::Class;
use crate::copy_on_write::{CopyOnWrite, copy_on_write_members};
use crate::default_spread::SelectorKind;
use crate::domains::matchers::{Anchor, anchor_labels, anchor_namespaces};
use crate::ids::{ClassId, Column, KeyId, MatcherId, NodeId, SpreadId, TermId};
use crate::pod_affinity::PodSelector;
use crate::record::ObjectKey;
use crate::selector::LabelSelector;

/// The relations of a class to topology domains.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Links {
    /// Matchers that select the pods of the class, by id.
    pub(super) meant_by: Vec<MatcherId>,
    /// Nodes of its pods with their numbers, by node.
    pub(super) places: SmallVec<[ClassPlace; 1]>,
    /// Terms and constraints of its pods. `None` if they have neither affinity nor spread.
    pub wants: Option<Box<Wants>>,
}

/// Pods of one class on one node, as filters see them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ClassPlace {
    pub(super) node: NodeId,
    pub(super) n_pods: i32,
    /// Number of these pods that are not terminating.
    pub(super) n_live: i32,
}

/// Terms and constraints of the pods of a class, resolved to counters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wants {
    /// One term per required affinity term, by its key. Each counts the pods that *all* required
    /// terms select (plugins-nodes.md 4.5).
    pub near: Vec<TermId>,
    /// One per required anti-affinity term.
    pub away: Vec<TermId>,
    /// Preferred terms with their weight, negative for anti-affinity.
    pub preferred: Vec<(TermId, i64)>,
    /// Constraints with `DoNotSchedule`, in the order of the pod.
    pub hard: Vec<Spreading>,
    /// Constraints with `ScheduleAnyway`, in the order of the pod. They are the default constraints
    /// if the pod has no constraint at all.
    pub soft: Vec<Spreading>,
}

/// A spread constraint, resolved to its counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spreading {
    /// Counter of pods by domain.
    pub spread: SpreadId,
    /// The topology key.
    pub key: KeyId,
    /// Number of pods by which a domain may exceed the global minimum.
    pub max_skew: i32,
    /// With fewer domains than this, the global minimum is 0.
    pub min_domains: i32,
    /// True if the constraint selects the pod itself.
    pub selects_self: bool,
    /// True for a preferred constraint on `kubernetes.io/hostname`: each node is a domain
    /// (plugins-nodes.md 7.8).
    pub by_host: bool,
}

/// Classes by the names and values of their labels.
type ByLabel = FxHashMap<Arc<str>, FxHashMap<Arc<str>, ClassSet>>;

/// The classes and their links.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct ClassIndex {
    rows: Column<ClassId, Links>,
    by_label: CopyOnWrite<ByLabel>,
    by_namespace: CopyOnWrite<BTreeMap<Arc<str>, BTreeSet<ClassId>>>,
    by_controller: CopyOnWrite<BTreeMap<(SelectorKind, ObjectKey), BTreeSet<ClassId>>>,
}

copy_on_write_members! { ClassIndex: shared by_label, by_namespace, by_controller, rows; }

impl std::ops::Index<ClassId> for ClassIndex {
    type Output = Links;
    fn index(&self, id: ClassId) -> &Links {
        self.rows.get(id).expect("links are made with the class")
    }
}

impl std::ops::IndexMut<ClassId> for ClassIndex {
    fn index_mut(&mut self, id: ClassId) -> &mut Links {
        self.rows.get_mut(id).expect("links are made with the class")
    }
}

impl ClassIndex {
    pub(super) fn insert(&mut self, id: ClassId, class: &Class, links: Links) {
        *self.rows.place(id) = Some(links);
        let by_namespace = self.by_namespace.get_mut();
        by_namespace.entry(class.namespace.clone()).or_default().insert(id);
        for (key, value) in &class.labels {
            let by_value = self.by_label.get_mut().entry(key.clone()).or_default();
            match by_value.entry(value.clone()) {
                Entry::Occupied(mut ids) => ids.get_mut().insert(id),
                Entry::Vacant(place) => {
                    place.insert(ClassSet::One(id));
                }
            }
        }
        if let Some(key) = controller_of(class) {
            self.by_controller.get_mut().entry(key).or_default().insert(id);
        }
    }

    pub(super) fn remove(&mut self, id: ClassId, class: &Class) -> Links {
        for (key, value) in &class.labels {
            let Some(by_value) = self.by_label.get_mut().get_mut(key) else { continue };
            if by_value.get_mut(value).is_some_and(|ids| !ids.remove(id)) {
                by_value.remove(value);
            }
            if by_value.is_empty() {
                self.by_label.get_mut().remove(key);
            }
        }
        let by_namespace = self.by_namespace.get_mut();
        if let Some(ids) = by_namespace.get_mut(&class.namespace) {
            ids.remove(&id);
            if ids.is_empty() {
                by_namespace.remove(&class.namespace);
            }
        }
        if let Some(key) = controller_of(class)
            && let Some(ids) = self.by_controller.get_mut().get_mut(&key)
        {
            ids.remove(&id);
            if ids.is_empty() {
                self.by_controller.get_mut().remove(&key);
            }
        }
        self.rows.take(id).unwrap_or_default()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_label.get().is_empty()
            && self.by_namespace.get().is_empty()
            && self.by_controller.get().is_empty()
            && self.rows.is_empty()
    }

    pub(super) fn of_namespace(&self, name: &str) -> Vec<ClassId> {
        self.by_namespace.get().get(name).into_iter().flatten().copied().collect()
    }

    /// Returns the classes whose pods this object controls.
    pub(super) fn controlled_by(&self, kind: SelectorKind, key: &ObjectKey) -> Vec<ClassId> {
        let ids = self.by_controller.get().get(&(kind, key.clone()));
        ids.into_iter().flatten().copied().collect()
    }

    /// Returns the classes of a namespace that a selector may select; the result may contain
    /// others.
    pub(super) fn selected(&self, namespace: &Arc<str>, labels: LabelSelector) -> Vec<ClassId> {
        let selector = PodSelector {
            namespaces: vec![namespace.clone()],
            namespace_selector: None,
            labels: Some(labels),
        };
        self.at(&self.best_anchor(&[selector], |_, _| 0))
    }

    /// Returns the classes that an anchor admits.
    pub(super) fn at(&self, anchor: &Anchor) -> Vec<ClassId> {
        match anchor {
            Anchor::Label(key, values) => {
                let by_value = self.by_label.get().get(key);
                let of_value = |value| by_value.and_then(|by_value| by_value.get(value));
                values.iter().filter_map(of_value).flat_map(ClassSet::iter).collect()
            }
            Anchor::Namespaces(names) => {
                names.iter().flat_map(|name| self.of_namespace(name)).collect()
            }
            Anchor::Anywhere => self.by_namespace.get().values().flatten().copied().collect(),
        }
    }

    /// Returns the most selective anchor: the label with the fewest classes plus the fewest other
    /// matchers. `n_matchers` counts the latter.
    pub(super) fn best_anchor(
        &self,
        selectors: &[PodSelector],
        n_matchers: impl Fn(&Arc<str>, &[Arc<str>]) -> usize,
    ) -> Anchor {
        if selectors.iter().any(|selector| selector.labels.is_none()) {
            return Anchor::Namespaces(Vec::new());
        }
        let n_classes = |key: &Arc<str>, values: &[Arc<str>]| -> usize {
            let by_value = self.by_label.get().get(key);
            let of_value = |value| by_value.and_then(|by_value| by_value.get(value));
            values.iter().filter_map(of_value).map(ClassSet::len).sum()
        };
        let load =
            |key: &Arc<str>, values: &[Arc<str>]| n_classes(key, values) + n_matchers(key, values);
        let best = anchor_labels(selectors).min_by_key(|(key, values)| load(key, values));
        match (best, anchor_namespaces(selectors)) {
            (Some((key, values)), _) => Anchor::Label(key.clone(), values),
            (None, Some(names)) => Anchor::Namespaces(names.to_vec()),
            (None, None) => Anchor::Anywhere,
        }
    }
}

/// The classes with one value of a label, at least one. Most values occur in one job only.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum ClassSet {
    One(ClassId),
    #[expect(clippy::box_collection, reason = "it would make the other, frequent case larger")]
    Many(Box<BTreeSet<ClassId>>),
}

impl ClassSet {
    fn insert(&mut self, id: ClassId) {
        match self {
            Self::One(one) if *one == id => {}
            Self::One(one) => *self = Self::Many(Box::new([*one, id].into())),
            Self::Many(ids) => {
                ids.insert(id);
            }
        }
    }

    /// Removes a class. Returns true if other classes remain.
    fn remove(&mut self, id: ClassId) -> bool {
        match self {
            Self::One(one) => *one != id,
            Self::Many(ids) => {
                ids.remove(&id);
                !ids.is_empty()
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many(ids) => ids.len(),
        }
    }

    /// Returns the classes in the order of their ids.
    fn iter(&self) -> impl Iterator<Item = ClassId> + '_ {
        let (one, many) = match self {
            Self::One(one) => (Some(*one), None),
            Self::Many(ids) => (None, Some(ids.iter().copied())),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }
}

fn controller_of(class: &Class) -> Option<(SelectorKind, ObjectKey)> {
    let (kind, name) = class.controller.clone()?;
    Some((kind, ObjectKey { namespace: class.namespace.clone(), name }))
}

impl Links {
    pub(super) fn is_meant_by(&self, matcher: MatcherId) -> bool {
        self.meant_by.binary_search(&matcher).is_ok()
    }

    pub(super) fn note_meant(&mut self, matcher: MatcherId) {
        if let Err(at) = self.meant_by.binary_search(&matcher) {
            self.meant_by.insert(at, matcher);
        }
    }

    pub(super) fn forget_meant(&mut self, matcher: MatcherId) {
        if let Ok(at) = self.meant_by.binary_search(&matcher) {
            self.meant_by.remove(at);
        }
    }

    /// Adds the change to the numbers of pods on its node. Negative numbers mean that pods have
    /// left.
    pub(super) fn move_pods(&mut self, change: ClassPlace) {
        match self.places.binary_search_by_key(&change.node, |place| place.node) {
            Err(at) => self.places.insert(at, change),
            Ok(at) => {
                let place = &mut self.places[at];
                place.n_pods += change.n_pods;
                place.n_live += change.n_live;
                if place.n_pods == 0 {
                    self.places.remove(at);
                }
            }
        }
    }
}

impl ClassPlace {
    pub(super) fn negated(self) -> Self {
        Self { n_pods: -self.n_pods, n_live: -self.n_live, ..self }
    }
}
