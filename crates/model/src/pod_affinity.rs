//! Pod affinity terms and topology spread constraints as data. Specification: plugins-nodes.md
//! 3.1, 3.4, 4.8.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::selector::{LabelSelector, Labels};

/// The selector of a pod affinity term or spread constraint.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PodSelector {
    /// Namespaces, sorted and without duplicates.
    pub namespaces: Vec<Arc<str>>,
    /// Selector of further namespaces by their labels. `None` if there are none.
    pub namespace_selector: Option<LabelSelector>,
    /// Selector of pod labels. `None` selects no pod.
    pub labels: Option<LabelSelector>,
}

impl PodSelector {
    /// True if a pod with these labels matches. The namespace of the pod has this name and these
    /// labels.
    pub fn matches(&self, namespace: &str, namespace_labels: &Labels, labels: &Labels) -> bool {
        let is_listed = self.namespaces.iter().any(|listed| &**listed == namespace);
        let is_selected = || {
            let selector = self.namespace_selector.as_ref();
            selector.is_some_and(|selector| selector.matches(namespace_labels))
        };
        let selector = self.labels.as_ref();
        selector.is_some_and(|selector| selector.matches(labels)) && (is_listed || is_selected())
    }

    /// Returns the first selector error that an API server would have rejected, as text.
    fn malformed(&self) -> Option<String> {
        let selectors = [&self.labels, &self.namespace_selector];
        selectors.into_iter().flatten().find_map(LabelSelector::malformed)
    }
}

/// A term of pod affinity or anti-affinity.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PodTerm {
    /// The pods to be near to, or away from.
    pub pods: PodSelector,
    /// The node label whose equal values mean "near". With an empty key no node is near.
    pub topology_key: Arc<str>,
}

/// A preferred term with its weight.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PreferredPodTerm {
    /// 1 to 100.
    pub weight: i32,
    /// The preferred term.
    pub term: PodTerm,
}

/// `spec.affinity.podAffinity` and `podAntiAffinity`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PodAffinity {
    /// Terms that must all hold.
    pub required: Vec<PodTerm>,
    /// Terms whose pods must not be near.
    pub anti_required: Vec<PodTerm>,
    /// Preferred terms of affinity.
    pub preferred: Vec<PreferredPodTerm>,
    /// Preferred terms of anti-affinity.
    pub anti_preferred: Vec<PreferredPodTerm>,
}

impl PodAffinity {
    /// Returns the first selector error of any term, as text. Returns `None` if all selectors are
    /// valid.
    pub fn malformed(&self) -> Option<String> {
        let preferred = self.preferred.iter().chain(&self.anti_preferred);
        let required = self.required.iter().chain(&self.anti_required);
        let terms = required.chain(preferred.map(|preferred| &preferred.term));
        terms.map(|term| &term.pods).find_map(PodSelector::malformed)
    }
}

/// `whenUnsatisfiable` of a spread constraint.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Unsatisfiable {
    /// The pod waits; also the default.
    #[default]
    DoNotSchedule,
    /// The node only gets a lower score.
    ScheduleAnyway,
}

/// Whether nodes that the pod cannot use count as domains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum InclusionPolicy {
    /// Such nodes do not count.
    Honor,
    /// Such nodes count.
    Ignore,
}

/// An element of `topologySpreadConstraints`, with defaults applied.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SpreadConstraint {
    /// Number of pods by which a domain may exceed the global minimum.
    pub max_skew: i32,
    /// The node label whose values are the domains.
    pub topology_key: Arc<str>,
    /// `whenUnsatisfiable`.
    pub when: Unsatisfiable,
    /// Selector of the pods that count, including `matchLabelKeys`. `None` selects no pod.
    pub labels: Option<LabelSelector>,
    /// With fewer domains than this, the global minimum is 0.
    pub min_domains: i32,
    /// `nodeAffinityPolicy`: for the pod's node selector and node affinity.
    pub node_affinity: InclusionPolicy,
    /// `nodeTaintsPolicy`: for taints that the pod does not tolerate.
    pub node_taints: InclusionPolicy,
}

impl Default for SpreadConstraint {
    fn default() -> Self {
        Self {
            max_skew: 1,
            topology_key: Arc::default(),
            when: Unsatisfiable::default(),
            labels: None,
            min_domains: 1,
            node_affinity: InclusionPolicy::Honor,
            node_taints: InclusionPolicy::Ignore,
        }
    }
}

impl SpreadConstraint {
    /// True if the constraint selects a pod with these labels. An empty selector does
    /// (plugins-nodes.md 4.8).
    pub fn selects(&self, labels: &Labels) -> bool {
        self.labels.as_ref().is_some_and(|selector| selector.matches(labels))
    }

    /// Returns the selector of the pods that count, all in this namespace. It selects none if the
    /// constraint's selector is absent or empty (plugins-nodes.md 4.8).
    pub fn counted(&self, namespace: &Arc<str>) -> PodSelector {
        PodSelector {
            namespaces: vec![namespace.clone()],
            namespace_selector: None,
            labels: self.labels.clone().filter(|selector| *selector != LabelSelector::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selector::{Operator, Requirement};

    fn labels(key: &str, value: &str) -> Labels {
        [(key.into(), value.into())].into()
    }

    #[test]
    fn nodes_38_namespaces_by_name_and_by_labels() {
        let app = LabelSelector { match_labels: labels("app", "db"), ..Default::default() };
        let listed = PodSelector {
            namespaces: vec!["own".into()],
            namespace_selector: None,
            labels: Some(app),
        };
        let everywhere =
            PodSelector { namespace_selector: Some(LabelSelector::default()), ..listed.clone() };
        let no_pods = PodSelector { labels: None, ..everywhere.clone() };
        let none = Labels::default();
        let of = |selector: &PodSelector, namespace| {
            selector.matches(namespace, &none, &labels("app", "db"))
        };
        assert_eq!(["own", "other"].map(|name| of(&listed, name)), [true, false]);
        assert_eq!(["own", "other"].map(|name| of(&everywhere, name)), [true, true]);
        assert!(!of(&no_pods, "own"));
        assert!(!everywhere.matches("own", &none, &labels("app", "web")));
    }

    #[test]
    fn nodes_39_a_namespace_without_the_label_is_not_in_the_list() {
        let rule =
            Requirement { key: "env".into(), operator: Operator::NotIn, values: vec!["p".into()] };
        let selector = PodSelector {
            namespaces: Vec::new(),
            namespace_selector: Some(LabelSelector {
                match_expressions: vec![rule],
                ..Default::default()
            }),
            labels: Some(LabelSelector::default()),
        };
        let matches = |namespace: &Labels| selector.matches("x", namespace, &Labels::default());
        assert!(!matches(&labels("env", "p")));
        assert!(matches(&labels("env", "q")) && matches(&Labels::default()));
    }

    #[test]
    fn a_selector_that_no_server_stores_is_named() {
        let rule = Requirement { key: "k".into(), operator: Operator::In, values: vec![] };
        let bad = LabelSelector { match_expressions: vec![rule], ..Default::default() };
        let term = |labels| PodTerm {
            pods: PodSelector { labels: Some(labels), ..Default::default() },
            topology_key: "zone".into(),
        };
        let of = |labels: LabelSelector| {
            let preferred = PreferredPodTerm { weight: 1, term: term(labels) };
            PodAffinity { anti_preferred: vec![preferred], ..Default::default() }.malformed()
        };
        assert_eq!(of(LabelSelector::default()), None);
        let text = "label selector requirement on k: In needs at least one value";
        assert_eq!(of(bad).as_deref(), Some(text));
    }
}
