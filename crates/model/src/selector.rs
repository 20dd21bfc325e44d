//! Label selectors, node selectors, taints and tolerations as data, and the matching of label
//! selectors. Specification: plugins-nodes.md 3.1-3.3.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Labels or annotations.
pub type Labels = BTreeMap<Arc<str>, Arc<str>>;

/// Comparison of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Operator {
    /// The label has one of the values.
    In,
    /// The label is missing or has none of the values.
    NotIn,
    /// The label is present.
    Exists,
    /// The label is missing.
    DoesNotExist,
    /// The label is an integer greater than the value; node selectors only.
    Gt,
    /// The label is an integer less than the value; node selectors only.
    Lt,
    /// An operator that this version does not know; matches nothing.
    Unknown,
}

/// One requirement of a selector.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Requirement {
    /// Name of the label or field.
    pub key: Arc<str>,
    /// Comparison of label and values.
    pub operator: Operator,
    /// Values in the order of the object.
    pub values: Vec<Arc<str>>,
}

/// A `metav1.LabelSelector` that is present; an empty one matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LabelSelector {
    /// Labels that must have exactly these values.
    pub match_labels: Labels,
    /// Further requirements; all must hold.
    pub match_expressions: Vec<Requirement>,
}

impl LabelSelector {
    /// True if all requirements hold (plugins-nodes.md 3.1). A malformed requirement matches
    /// nothing.
    pub fn matches(&self, labels: &Labels) -> bool {
        let equal = |(key, value): (&Arc<str>, &Arc<str>)| labels.get(key) == Some(value);
        self.match_labels.iter().all(equal)
            && self.match_expressions.iter().all(|rule| requirement_matches(rule, labels))
    }

    /// Returns the first malformed requirement as text: one that a current API server would reject.
    /// Returns `None` if all are valid.
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

/// One term of a node selector. All its expressions and fields must hold; an empty term matches
/// nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeSelectorTerm {
    /// Requirements on labels.
    pub match_expressions: Vec<Requirement>,
    /// Requirements on fields; `metadata.name` is the only supported field.
    pub match_fields: Vec<Requirement>,
}

/// A preferred node affinity term.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PreferredTerm {
    /// Weight from 1 to 100.
    pub weight: i32,
    /// The preferred term.
    pub term: NodeSelectorTerm,
}

/// `spec.affinity.nodeAffinity`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeAffinity {
    /// `requiredDuringSchedulingIgnoredDuringExecution`. `None` if absent; an empty list matches
    /// nothing.
    pub required: Option<Vec<NodeSelectorTerm>>,
    /// `preferredDuringSchedulingIgnoredDuringExecution`.
    pub preferred: Vec<PreferredTerm>,
}

/// Effect of a taint, or of a toleration that names one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TaintEffect {
    /// New pods are not placed on the node.
    NoSchedule,
    /// New pods are placed on other nodes if possible.
    PreferNoSchedule,
    /// New pods are not placed on the node, and running pods are evicted.
    NoExecute,
    /// An effect that this version does not know; never matches.
    Unknown,
}

/// A taint of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Taint {
    /// Key of the taint.
    pub key: Arc<str>,
    /// Value, which may be empty.
    pub value: Arc<str>,
    /// Effect on pods that do not tolerate the taint.
    pub effect: TaintEffect,
}

/// Operator of a toleration. `Gt` and `Lt` tolerate nothing while their feature gate is off
/// (plugins-nodes.md 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TolerationOperator {
    /// The values must be equal; also the default operator.
    Equal,
    /// Any value is tolerated.
    Exists,
    /// An operator that tolerates nothing.
    Other,
}

/// A toleration of a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Toleration {
    /// Key of the taint. An empty key with operator Exists matches every taint.
    pub key: Arc<str>,
    /// Comparison of the values.
    pub operator: TolerationOperator,
    /// Value of the taint, for operator Equal.
    pub value: Arc<str>,
    /// Effect of the taint. `None` matches every effect.
    pub effect: Option<TaintEffect>,
}

/// Protocol of a host port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Protocol {
    /// TCP, also the default.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

/// A host port that a pod needs, with defaults applied (plugins-nodes.md 4.3).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HostPort {
    /// Port on the node.
    pub port: u16,
    /// Protocol. Ports of different protocols do not conflict.
    pub protocol: Protocol,
    /// Host address; `0.0.0.0` if the pod names none.
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
