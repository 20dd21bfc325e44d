//! Builders for the tests of this crate.

use std::sync::Arc;

use vc_model::{
    Class, Node, NodeSelectorTerm, NonZero, Operator, Requirement, Taint, TaintEffect, Toleration,
    TolerationOperator,
};
use vc_resource::{Dim, Resource};

/// A node of this name with these labels.
pub(crate) fn node(name: &str, labels: &[(&str, &str)]) -> Node {
    let labels = labels.iter().map(|(key, value)| ((*key).into(), (*value).into()));
    Node { name: name.into(), present: true, labels: labels.collect(), ..Node::default() }
}

/// Millicores, bytes and milli-units of one further dimension.
pub(crate) fn amounts(cpu: i64, memory: i64, scalar: Option<(Dim, i64)>) -> Resource {
    let mut amounts = Resource::default();
    amounts.set(Dim::CPU, cpu);
    amounts.set(Dim::MEMORY, memory);
    if let Some((dim, amount)) = scalar {
        amounts.set(dim, amount);
    }
    amounts
}

/// A node with this allocatable and nothing on it.
pub(crate) fn sized(cpu: i64, memory: i64) -> Node {
    Node { allocatable: amounts(cpu, memory, None), ..node("n", &[]) }
}

/// A pod that requests this.
pub(crate) fn asking(cpu: i64, memory: i64) -> Class {
    let non_zero = NonZero { cpu_milli: cpu, memory_bytes: memory };
    Class { request: amounts(cpu, memory, None), non_zero, ..Class::default() }
}

pub(crate) fn rule(key: &str, operator: Operator, values: &[&str]) -> Requirement {
    let values = values.iter().map(|value| Arc::from(*value)).collect();
    Requirement { key: key.into(), operator, values }
}

/// A term of label requirements.
pub(crate) fn labels(rules: Vec<Requirement>) -> NodeSelectorTerm {
    NodeSelectorTerm { match_expressions: rules, match_fields: Vec::new() }
}

/// A term of field requirements.
pub(crate) fn fields(rules: Vec<Requirement>) -> NodeSelectorTerm {
    NodeSelectorTerm { match_expressions: Vec::new(), match_fields: rules }
}

/// A pod with these required terms.
pub(crate) fn requiring(terms: Vec<NodeSelectorTerm>) -> Class {
    let mut class = Class::default();
    class.node_affinity.required = Some(terms);
    class
}

pub(crate) fn taint(key: &str, value: &str, effect: TaintEffect) -> Taint {
    Taint { key: key.into(), value: value.into(), effect }
}

pub(crate) fn toleration(
    key: &str,
    operator: TolerationOperator,
    value: &str,
    effect: Option<TaintEffect>,
) -> Toleration {
    Toleration { key: key.into(), operator, value: value.into(), effect }
}

/// A pod with these tolerations.
pub(crate) fn tolerating(tolerations: &[Toleration]) -> Class {
    Class { tolerations: tolerations.to_vec(), ..Class::default() }
}
