//! What the default spread constraints of pods are made of: Services and controllers with the pods
//! that they select. Specification: plugins-nodes.md 7.8.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::class::Class;
use crate::pod_affinity::{SpreadConstraint, Unsatisfiable};
use crate::record::ObjectKey;
use crate::selector::{LabelSelector, Labels, Operator, Requirement};

/// An object that selects pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectorObject {
    /// Its kind.
    pub kind: SelectorKind,
    /// Namespace and name.
    pub key: ObjectKey,
    /// `spec.selector`; `None`: absent, which selects nothing.
    pub selector: Option<LabelSelector>,
}

/// Its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

/// The controller of a pod, of a kind that selects pods.
pub type Controller = (SelectorKind, Arc<str>);

/// Topology key and `maxSkew` of the constraints.
const CONSTRAINTS: [(&str, i32); 2] =
    [("kubernetes.io/hostname", 3), ("topology.kubernetes.io/zone", 5)];

/// The selectors of the cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selectors {
    services: BTreeMap<ObjectKey, Service>,
    /// Services of a namespace by a label that the pods they select have.
    by_label: FxHashMap<[Arc<str>; 3], Vec<ObjectKey>>,
    controllers: BTreeMap<(SelectorKind, ObjectKey), LabelSelector>,
}

/// A Service that selects by labels.
#[derive(Clone, Debug)]
struct Service {
    labels: Labels,
    /// Where it is in `by_label`.
    place: [Arc<str>; 3],
}

impl Selectors {
    /// The selector of an object; `None`: it adds nothing to the constraints of any pod.
    pub(crate) fn get(&self, kind: SelectorKind, key: &ObjectKey) -> Option<LabelSelector> {
        match kind {
            SelectorKind::Service => self.services.get(key).map(|service| LabelSelector {
                match_labels: service.labels.clone(),
                ..LabelSelector::default()
            }),
            _ => self.controllers.get(&(kind, key.clone())).cloned(),
        }
    }

    /// Takes over what the object says now; `None`: it is gone or selects nothing.
    pub(crate) fn set(
        &mut self,
        kind: SelectorKind,
        key: ObjectKey,
        selector: Option<LabelSelector>,
    ) {
        // One that selects everything adds no requirement either.
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
            (_, Some(selector)) => drop(self.controllers.insert((kind, key), selector)),
            (_, None) => drop(self.controllers.remove(&(kind, key))),
        }
    }

    fn insert_service(&mut self, key: ObjectKey, labels: Labels) {
        let place = |(name, value): (&Arc<str>, &Arc<str>)| {
            [key.namespace.clone(), name.clone(), value.clone()]
        };
        let n_there = |place: &[Arc<str>; 3]| self.by_label.get(place).map_or(0, Vec::len);
        let Some(place) = labels.iter().map(place).min_by_key(n_there) else { return };
        self.by_label.entry(place.clone()).or_default().push(key.clone());
        self.services.insert(key, Service { labels, place });
    }

    fn remove_service(&mut self, key: &ObjectKey) {
        let Some(service) = self.services.remove(key) else { return };
        if let Some(there) = self.by_label.get_mut(&service.place) {
            there.retain(|other| other != key);
            if there.is_empty() {
                self.by_label.remove(&service.place);
            }
        }
    }

    /// The constraints of a pod that has none of its own; none if nothing selects it.
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

    /// The requirements of everything that selects the pod together.
    fn selector(&self, class: &Class) -> LabelSelector {
        let mut sum = LabelSelector::default();
        for service in self.services_of(class) {
            sum.match_labels.extend(service.labels.clone());
        }
        let Some((kind, name)) = &class.controller else { return sum };
        let key = ObjectKey { namespace: class.namespace.clone(), name: name.clone() };
        let Some(own) = self.controllers.get(&(*kind, key)) else { return sum };
        for (key, value) in &own.match_labels {
            match sum.match_labels.get(key) {
                None => drop(sum.match_labels.insert(key.clone(), value.clone())),
                Some(same) if same == value => {}
                // Both are required; the controller does not select its pod any more.
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
            self.by_label.get(&[class.namespace.clone(), key.clone(), value.clone()])
        });
        let services = places.flatten().filter_map(|key| self.services.get(key));
        services.filter(|service| {
            service.labels.iter().all(|(key, value)| class.labels.get(key) == Some(value))
        })
    }
}
