//! Pod affinity terms and topology spread constraints as data. Specification: plugins-nodes.md
//! 3.1, 3.4, 4.8.

use std::sync::Arc;

use crate::selector::{LabelSelector, Labels};

/// Which pods a term or constraint means.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodSelector {
    /// Sorted, each once.
    pub namespaces: Vec<Arc<str>>,
    /// Further namespaces, by their labels; `None`: no further ones.
    pub namespace_selector: Option<LabelSelector>,
    /// `None`: no pod.
    pub labels: Option<LabelSelector>,
}

impl PodSelector {
    /// Whether a pod of these labels is meant, in a namespace of this name and these labels.
    pub fn matches(&self, namespace: &str, namespace_labels: &Labels, labels: &Labels) -> bool {
        let is_listed = self.namespaces.iter().any(|listed| &**listed == namespace);
        let is_selected = || {
            let selector = self.namespace_selector.as_ref();
            selector.is_some_and(|selector| selector.matches(namespace_labels))
        };
        let selector = self.labels.as_ref();
        selector.is_some_and(|selector| selector.matches(labels)) && (is_listed || is_selected())
    }

    /// What an API server would not have stored, as text.
    fn malformed(&self) -> Option<String> {
        let selectors = [&self.labels, &self.namespace_selector];
        selectors.into_iter().flatten().find_map(LabelSelector::malformed)
    }
}

/// A term of pod affinity or anti-affinity.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodTerm {
    /// The pods to be near to, or away from.
    pub pods: PodSelector,
    /// The label of nodes that tells what is near; no node has an empty one.
    pub topology_key: Arc<str>,
}

/// A term that is preferred.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PreferredPodTerm {
    /// 1 to 100.
    pub weight: i32,
    /// What is preferred.
    pub term: PodTerm,
}

/// `spec.affinity.podAffinity` and `podAntiAffinity`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodAffinity {
    /// Terms that must all hold.
    pub required: Vec<PodTerm>,
    /// Terms of pods to be away from.
    pub anti_required: Vec<PodTerm>,
    /// Better near.
    pub preferred: Vec<PreferredPodTerm>,
    /// Better away.
    pub anti_preferred: Vec<PreferredPodTerm>,
}

impl PodAffinity {
    /// The first selector of any term that cannot be understood, as text.
    pub fn malformed(&self) -> Option<String> {
        let preferred = self.preferred.iter().chain(&self.anti_preferred);
        let required = self.required.iter().chain(&self.anti_required);
        let terms = required.chain(preferred.map(|preferred| &preferred.term));
        terms.map(|term| &term.pods).find_map(PodSelector::malformed)
    }
}

/// Whether a constraint forbids or only discourages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unsatisfiable {
    /// The pod waits; also when the object says nothing.
    #[default]
    DoNotSchedule,
    /// The node scores less.
    ScheduleAnyway,
}

/// Whether nodes that the pod could not use count as domains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InclusionPolicy {
    /// They do not.
    Honor,
    /// They do.
    Ignore,
}

/// An element of `topologySpreadConstraints`, defaults applied.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpreadConstraint {
    /// Pods by which a domain may exceed the least one.
    pub max_skew: i32,
    /// The label of nodes whose values are the domains.
    pub topology_key: Arc<str>,
    /// What happens where it cannot hold.
    pub when: Unsatisfiable,
    /// Pods that count, with `matchLabelKeys`; `None`: none.
    pub labels: Option<LabelSelector>,
    /// With fewer domains the least one counts 0.
    pub min_domains: i32,
    /// As for node selector and node affinity of the pod.
    pub node_affinity: InclusionPolicy,
    /// As for taints that it does not tolerate.
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
    /// Whether it means a pod of these labels itself; an empty selector does (4.8).
    pub fn selects(&self, labels: &Labels) -> bool {
        self.labels.as_ref().is_some_and(|selector| selector.matches(labels))
    }

    /// The pods that count: of the namespace; none if the selector is absent or empty (4.8).
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
