//! Label selectors, node selectors, taints and tolerations as data. Specification: plugins-nodes.md 3.1-3.3;
//! the matching itself is in vc-filters, label selectors of sub-group policies are matched here.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Labels or annotations.
pub type Labels = BTreeMap<Arc<str>, Arc<str>>;

/// How a requirement compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    Gt,
    Lt,
    /// Stored by an API server of another age; matches nothing.
    Unknown,
}

/// One requirement of a selector.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    pub key: Arc<str>,
    pub operator: Operator,
    pub values: Vec<Arc<str>>,
}

/// A `metav1.LabelSelector` that is present; an empty one matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelSelector {
    pub match_labels: BTreeMap<Arc<str>, Arc<str>>,
    pub match_expressions: Vec<Requirement>,
}

impl LabelSelector {
    /// Whether all requirements hold (plugins-nodes.md 3.1). A malformed requirement matches nothing.
    pub fn matches(&self, labels: &Labels) -> bool {
        let equal = |(key, value): (&Arc<str>, &Arc<str>)| labels.get(key) == Some(value);
        self.match_labels.iter().all(equal)
            && self.match_expressions.iter().all(|rule| requirement_matches(rule, labels))
    }
}

fn requirement_matches(rule: &Requirement, labels: &Labels) -> bool {
    let label = labels.get(&rule.key);
    let listed = || label.is_some_and(|value| rule.values.contains(value));
    match rule.operator {
        Operator::In => !rule.values.is_empty() && listed(),
        Operator::NotIn => !rule.values.is_empty() && !listed(),
        Operator::Exists => rule.values.is_empty() && label.is_some(),
        Operator::DoesNotExist => rule.values.is_empty() && label.is_none(),
        Operator::Gt | Operator::Lt | Operator::Unknown => false,
    }
}

/// One term of a node selector: expressions and fields are ANDed; an empty term matches nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeSelectorTerm {
    pub match_expressions: Vec<Requirement>,
    pub match_fields: Vec<Requirement>,
}

/// A preferred node affinity term.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PreferredTerm {
    pub weight: i32,
    pub term: NodeSelectorTerm,
}

/// `spec.affinity.nodeAffinity`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeAffinity {
    /// `None`: no required part; an empty list matches nothing.
    pub required: Option<Vec<NodeSelectorTerm>>,
    pub preferred: Vec<PreferredTerm>,
}

/// Effect of a taint, or of a toleration that names one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaintEffect {
    NoSchedule,
    PreferNoSchedule,
    NoExecute,
    /// An effect that this version does not know; never matches.
    Unknown,
}

/// A taint of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Taint {
    pub key: Arc<str>,
    pub value: Arc<str>,
    pub effect: TaintEffect,
}

/// Operator of a toleration; `Gt` and `Lt` tolerate nothing while their gate is off (3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TolerationOperator {
    Equal,
    Exists,
    Other,
}

/// A toleration of a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Toleration {
    pub key: Arc<str>,
    pub operator: TolerationOperator,
    pub value: Arc<str>,
    /// `None`: every effect.
    pub effect: Option<TaintEffect>,
}

/// Protocol of a host port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    Tcp,
    Udp,
    Sctp,
}

/// A host port that a pod wants (plugins-nodes.md 4.3), defaults applied.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    pub port: u16,
    pub protocol: Protocol,
    /// `0.0.0.0` when the pod names none.
    pub ip: Arc<str>,
}
