//! Services and controllers with their pod selectors, from which the default spread constraints of
//! pods follow. Specification: plugins-nodes.md 7.8.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::class::Class;
use crate::copy_on_write::{CopyOnWrite, copy_on_write_members};
use crate::pod_affinity::{SpreadConstraint, Unsatisfiable};
use crate::record::ObjectKey;
use crate::selector::{LabelSelector, Labels, Operator, Requirement};

/// A Service or controller with a pod selector.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelectorObject {
    /// Kind of the object.
    pub kind: SelectorKind,
    /// Namespace and name.
    pub key: ObjectKey,
    /// `spec.selector`. `None` if it is absent: no pod is selected.
    pub selector: Option<LabelSelector>,
}

/// Kind of a [`SelectorObject`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum SelectorKind {
    /// A Service.
    Service,
    /// A ReplicationController of v1.
    ReplicationController,
    /// A ReplicaSet of apps/v1.
    ReplicaSet,
    /// A StatefulSet of apps/v1.
    StatefulSet,
}

/// Kind and name of the controller of a pod, if that kind has a pod selector.
pub type Controller = (SelectorKind, Arc<str>);

/// Topology key and `maxSkew` of the default constraints.
const CONSTRAINTS: [(&str, i32); 2] =
    [("kubernetes.io/hostname", 3), ("topology.kubernetes.io/zone", 5)];

/// The pod selectors of the Services and controllers of the cluster.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ServiceSelectors {
    services: CopyOnWrite<BTreeMap<ObjectKey, Service>>,
    /// Services by namespace, label and value. Each is listed under one label that its pods must
    /// have.
    by_label: CopyOnWrite<FxHashMap<[Arc<str>; 3], Vec<ObjectKey>>>,
    controllers: CopyOnWrite<BTreeMap<(SelectorKind, ObjectKey), LabelSelector>>,
}

copy_on_write_members! { ServiceSelectors: shared by_label, services, controllers; }

/// A Service that selects by labels.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Service {
    labels: Labels,
    /// Key of its entry in `by_label`.
    place: [Arc<str>; 3],
}

impl ServiceSelectors {
    /// True if no Service and no workload selects pods.
    pub(crate) fn is_empty(&self) -> bool {
        self.services.get().is_empty() && self.controllers.get().is_empty()
    }

    /// Returns the selector of an object. Returns `None` if the object adds nothing to any
    /// constraint.
    pub(crate) fn get(&self, kind: SelectorKind, key: &ObjectKey) -> Option<LabelSelector> {
        match kind {
            SelectorKind::Service => self.services.get().get(key).map(|service| LabelSelector {
                match_labels: service.labels.clone(),
                ..LabelSelector::default()
            }),
            _ => self.controllers.get().get(&(kind, key.clone())).cloned(),
        }
    }

    /// Sets the selector of an object. `None` means that the object is gone or selects nothing.
    pub(crate) fn set(
        &mut self,
        kind: SelectorKind,
        key: ObjectKey,
        selector: Option<LabelSelector>,
    ) {
        // A selector that selects everything adds no requirement either.
        let selector = selector.filter(|selector| {
            *selector != LabelSelector::default() && selector.malformed().is_none()
        });
        match (kind, selector) {
            (SelectorKind::Service, selector) => {
                self.remove_service(&key);
                if let Some(selector) = selector {
                    self.insert_service(key, selector.match_labels);
                }
            }
            (_, Some(selector)) => drop(self.controllers.get_mut().insert((kind, key), selector)),
            (_, None) => drop(self.controllers.remove(&(kind, key))),
        }
    }

    fn insert_service(&mut self, key: ObjectKey, labels: Labels) {
        let place = |(name, value): (&Arc<str>, &Arc<str>)| {
            [key.namespace.clone(), name.clone(), value.clone()]
        };
        let n_there = |place: &[Arc<str>; 3]| self.by_label.get().get(place).map_or(0, Vec::len);
        let Some(place) = labels.iter().map(place).min_by_key(n_there) else { return };
        self.by_label.get_mut().entry(place.clone()).or_default().push(key.clone());
        self.services.get_mut().insert(key, Service { labels, place });
    }

    fn remove_service(&mut self, key: &ObjectKey) {
        let Some(service) = self.services.remove(key) else { return };
        if let Some(there) = self.by_label.get_mut().get_mut(&service.place) {
            there.retain(|other| other != key);
            if there.is_empty() {
                self.by_label.get_mut().remove(&service.place);
            }
        }
    }

    /// Returns the default constraints of a pod. They are empty if the pod has constraints of its
    /// own, or if nothing selects it.
    pub(crate) fn constraints(&self, class: &Class) -> Vec<SpreadConstraint> {
        let selector = match class.spread.is_empty() {
            true => self.selector(class),
            false => LabelSelector::default(),
        };
        if selector == LabelSelector::default() {
            return Vec::new();
        }
        let constraint = |(key, max_skew): (&str, i32)| SpreadConstraint {
            max_skew,
            topology_key: key.into(),
            when: Unsatisfiable::ScheduleAnyway,
            labels: Some(selector.clone()),
            ..SpreadConstraint::default()
        };
        CONSTRAINTS.map(constraint).into()
    }

    /// Returns the conjunction of all selectors that select the pod.
    fn selector(&self, class: &Class) -> LabelSelector {
        let mut sum = LabelSelector::default();
        for service in self.services_of(class) {
            sum.match_labels.extend(service.labels.clone());
        }
        let Some((kind, name)) = &class.controller else { return sum };
        let key = ObjectKey { namespace: class.namespace.clone(), name: name.clone() };
        let Some(own) = self.controllers.get().get(&(*kind, key)) else { return sum };
        for (key, value) in &own.match_labels {
            match sum.match_labels.get(key) {
                None => drop(sum.match_labels.insert(key.clone(), value.clone())),
                Some(same) if same == value => {}
                // Both values are required, so no pod matches: the controller does not select its
                // pod any more.
                Some(_) => sum.match_expressions.push(Requirement {
                    key: key.clone(),
                    operator: Operator::In,
                    values: vec![value.clone()],
                }),
            }
        }
        sum.match_expressions.extend(own.match_expressions.clone());
        sum
    }

    fn services_of(&self, class: &Class) -> impl Iterator<Item = &Service> {
        let places = class.labels.iter().filter_map(|(key, value)| {
            self.by_label.get().get(&[class.namespace.clone(), key.clone(), value.clone()])
        });
        let services = places.flatten().filter_map(|key| self.services.get().get(key));
        services.filter(|service| {
            service.labels.iter().all(|(key, value)| class.labels.get(key) == Some(value))
        })
    }
}
