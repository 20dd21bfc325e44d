//! Label selectors, node selectors, taints and tolerations as data. The matching itself is in
//! vc-filters, label selectors of sub-group policies are matched here. Specification:
//! plugins-nodes.md 3.1-3.3.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Labels or annotations.
pub type Labels = BTreeMap<Arc<str>, Arc<str>>;

/// How a requirement compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operator {
    /// The label has one of the values.
    In,
    /// The label is missing or has none of the values.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is missing.
    DoesNotExist,
    /// The label is an integer above the value; node selectors only.
    Gt,
    /// The label is an integer below the value; node selectors only.
    Lt,
    /// Stored by an API server of another age; matches nothing.
    Unknown,
}

/// One requirement of a selector.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    /// Name of the label or field.
    pub key: Arc<str>,
    /// How the values are compared.
    pub operator: Operator,
    /// In the order of the object.
    pub values: Vec<Arc<str>>,
}

/// A `metav1.LabelSelector` that is present; an empty one matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelSelector {
    /// Labels that must have exactly these values.
    pub match_labels: Labels,
    /// Further requirements; all must hold.
    pub match_expressions: Vec<Requirement>,
}

impl LabelSelector {
    /// Whether all requirements hold (plugins-nodes.md 3.1). A malformed requirement matches
    /// nothing.
    pub fn matches(&self, labels: &Labels) -> bool {
        let equal = |(key, value): (&Arc<str>, &Arc<str>)| labels.get(key) == Some(value);
        self.match_labels.iter().all(equal)
            && self.match_expressions.iter().all(|rule| requirement_matches(rule, labels))
    }

    /// The first requirement that no API server of today would store, as text.
    pub fn malformed(&self) -> Option<String> {
        let problem = |rule: &Requirement| {
            let problem = match rule.operator {
                Operator::In if rule.values.is_empty() => "In needs at least one value",
                Operator::NotIn if rule.values.is_empty() => "NotIn needs at least one value",
                Operator::Exists if !rule.values.is_empty() => "Exists takes no value",
                Operator::DoesNotExist if !rule.values.is_empty() => "DoesNotExist takes no value",
                Operator::Gt | Operator::Lt => "Gt and Lt are for nodes only",
                Operator::Unknown => "unknown operator",
                _ => return None,
            };
            Some(format!("label selector requirement on {}: {problem}", rule.key))
        };
        self.match_expressions.iter().find_map(problem)
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
    /// Requirements on labels.
    pub match_expressions: Vec<Requirement>,
    /// Requirements on fields; `metadata.name` is the only one there is.
    pub match_fields: Vec<Requirement>,
}

/// A preferred node affinity term.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PreferredTerm {
    /// 1 to 100.
    pub weight: i32,
    /// What is preferred.
    pub term: NodeSelectorTerm,
}

/// `spec.affinity.nodeAffinity`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeAffinity {
    /// `None`: no required part; an empty list matches nothing.
    pub required: Option<Vec<NodeSelectorTerm>>,
    /// `preferredDuringSchedulingIgnoredDuringExecution`.
    pub preferred: Vec<PreferredTerm>,
}

/// Effect of a taint, or of a toleration that names one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaintEffect {
    /// No new pods.
    NoSchedule,
    /// Better no new pods.
    PreferNoSchedule,
    /// No pods at all.
    NoExecute,
    /// An effect that this version does not know; never matches.
    Unknown,
}

/// A taint of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Taint {
    /// Name.
    pub key: Arc<str>,
    /// May be empty.
    pub value: Arc<str>,
    /// What it does to pods that do not tolerate it.
    pub effect: TaintEffect,
}

/// Operator of a toleration; `Gt` and `Lt` tolerate nothing while their gate is off (3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TolerationOperator {
    /// Same value; also when the object names no operator.
    Equal,
    /// Any value.
    Exists,
    /// Tolerates nothing.
    Other,
}

/// A toleration of a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Toleration {
    /// Empty: every taint, if the operator is Exists.
    pub key: Arc<str>,
    /// How the value is compared.
    pub operator: TolerationOperator,
    /// Value of the taint, for Equal.
    pub value: Arc<str>,
    /// `None`: every effect.
    pub effect: Option<TaintEffect>,
}

/// Protocol of a host port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// TCP, also when the pod names none.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

/// A host port that a pod wants (plugins-nodes.md 4.3), defaults applied.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    /// Port on the node.
    pub port: u16,
    /// Ports of different protocols do not conflict.
    pub protocol: Protocol,
    /// `0.0.0.0` when the pod names none.
    pub ip: Arc<str>,
}

#[cfg(test)]
mod tests {
    use super::{LabelSelector, Labels, Operator, Requirement};

    #[test]
    fn requirements_hold_together_and_malformed_ones_match_nothing() {
        let labels: Labels = [("app".into(), "test".into())].into();
        let matches = |key: &str, operator, values: &[&str]| {
            let values = values.iter().map(|&value| value.into()).collect();
            let rule = Requirement { key: key.into(), operator, values };
            let match_labels = labels.clone();
            LabelSelector { match_labels, match_expressions: vec![rule] }.matches(&labels)
        };
        let cases = [
            ("app", Operator::In, &["x", "test"][..], true),
            ("app", Operator::In, &["x"], false),
            ("app", Operator::In, &[], false),
            ("app", Operator::NotIn, &["x"], true),
            ("other", Operator::NotIn, &["x"], true),
            ("app", Operator::NotIn, &["test"], false),
            ("app", Operator::Exists, &[], true),
            ("app", Operator::Exists, &["x"], false),
            ("other", Operator::Exists, &[], false),
            ("other", Operator::DoesNotExist, &[], true),
            ("app", Operator::DoesNotExist, &[], false),
            ("app", Operator::Gt, &["1"], false),
            ("app", Operator::Unknown, &["test"], false),
        ];
        for (key, operator, values, expected) in cases {
            assert_eq!(matches(key, operator, values), expected, "{key} {operator:?} {values:?}");
        }
        assert!(LabelSelector::default().matches(&labels), "an empty selector matches all");
    }
}
