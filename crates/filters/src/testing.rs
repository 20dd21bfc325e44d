//! Builders for the tests of this crate.

use vc_model::{Class, Node, NodeSelectorTerm, NonZero, Shape, Toleration};
use vc_resource::{Dim, Resource};

pub(crate) use vc_model::fixture::parts::{fields, labels, node, rule, taint, toleration};

/// Returns amounts: millicores, bytes and, optionally, an amount of one further dimension.
pub(crate) fn amounts(cpu: i64, memory: i64, scalar: Option<(Dim, i64)>) -> Resource {
    let mut amounts = Resource::default();
    amounts.set(Dim::CPU, cpu);
    amounts.set(Dim::MEMORY, memory);
    if let Some((dim, amount)) = scalar {
        amounts.set(dim, amount);
    }
    amounts
}

/// Returns an empty node with this allocatable.
pub(crate) fn sized(cpu: i64, memory: i64) -> Node {
    Node { allocatable: amounts(cpu, memory, None), ..node("n", &[]) }
}

/// Returns the class of a pod that requests these amounts.
pub(crate) fn asking(cpu: i64, memory: i64) -> Class {
    let non_zero = NonZero { cpu_milli: cpu, memory_bytes: memory };
    Shape { request: amounts(cpu, memory, None), non_zero, ..Shape::default() }.into()
}

/// Returns the class of a pod with these required terms.
pub(crate) fn requiring(terms: Vec<NodeSelectorTerm>) -> Class {
    let mut shape = Shape::default();
    shape.node_affinity.required = Some(terms);
    shape.into()
}

/// Returns the class of a pod with these tolerations.
pub(crate) fn tolerating(tolerations: &[Toleration]) -> Class {
    Shape { tolerations: tolerations.to_vec(), ..Shape::default() }.into()
}
