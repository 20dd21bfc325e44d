//! Upper bounds of how many pods find room on nodes. Specification: actions.md 12.2 S6, S12.
//!
//! Exact because:
//! - pods are placed only on nodes that the tests of node objects allow;
//! - each goes into FutureIdle less the pods placed there before;
//! - other filters are left out, which keeps the bound an upper one.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use vc_framework::{SessionState, Statement};
use vc_model::{HyperNode, HyperNodeId, HyperNodeTree, Id, NodeId, TaskId};
use vc_resource::{Dim, Resource};

/// Returns how many such requests fit into the room, which `room` gives by dimension. Dimensions
/// without a request do not limit it. A pod requests at least one pod slot.
pub(crate) fn n_places(request: &Resource, room: impl Fn(Dim) -> i64) -> i64 {
    let requested = request.dims().filter(|&dim| 0 < request.get(dim));
    let places = requested.map(|dim| room(dim).max(0) / request.get(dim));
    // The limits exceed the members of any job, and sums over nodes cannot overflow.
    places.min().unwrap_or(i64::from(u16::MAX)).min(i64::from(u32::MAX))
}

/// Places for pods in HyperNodes, by shape of their class.
#[derive(Default)]
pub(crate) struct HyperNodePlaces {
    by_shape: FxHashMap<u64, Vec<i64>>,
}

/// Numbers of pods by shape of their class.
pub(crate) type CountByShape = BTreeMap<u64, i64>;

/// Counts pods by the shape of their class.
pub(crate) fn count_by_shape<'a>(
    session: &SessionState<'_>,
    tasks: impl Iterator<Item = &'a TaskId>,
) -> CountByShape {
    let mut counts = CountByShape::new();
    for &task in tasks {
        *counts.entry(session.classes.shape_id(session.tasks[task].class)).or_default() += 1;
    }
    counts
}

impl HyperNodePlaces {
    /// Counts the places for these pods in the present state. They can only become fewer while pods
    /// are placed.
    pub(crate) fn count<'a>(
        statement: &mut Statement<'_, '_>,
        tasks: impl Iterator<Item = &'a TaskId>,
    ) -> Self {
        let mut places = Self::default();
        places.add(statement, tasks);
        places
    }

    /// Counts the places for further pods in the present state.
    pub(crate) fn add<'a>(
        &mut self,
        statement: &mut Statement<'_, '_>,
        tasks: impl Iterator<Item = &'a TaskId>,
    ) {
        for &task in tasks {
            let shape = statement.classes.shape_id(statement.tasks[task].class);
            self.by_shape.entry(shape).or_insert_with(|| places_of(statement, task));
        }
    }

    /// True if the places for these pods are counted.
    pub(crate) fn has(&self, pods: &CountByShape) -> bool {
        pods.keys().all(|shape| self.by_shape.contains_key(shape))
    }

    /// Returns an upper bound of how many of these pods find room in the HyperNode.
    pub(crate) fn most_in(&self, id: HyperNodeId, pods: &CountByShape) -> i64 {
        let most = |(shape, &n_pods): (&u64, &i64)| {
            let places = self.by_shape.get(shape).map(|places| places[id.index()]);
            places.unwrap_or(n_pods).min(n_pods)
        };
        pods.iter().map(most).sum()
    }

    /// Returns the HyperNode that comes closest to holding these pods: the one with most places for
    /// them, of equal ones the first in the list.
    pub(crate) fn closest(
        &self,
        candidates: &[HyperNodeId],
        pods: &CountByShape,
    ) -> Option<HyperNodeId> {
        let mut closest: Option<(i64, HyperNodeId)> = None;
        for &id in candidates {
            let most = self.most_in(id, pods);
            if closest.is_none_or(|(highest, _)| highest < most) {
                closest = Some((most, id));
            }
        }
        closest.map(|(_, id)| id)
    }
}

/// Returns the places for pods like this one, by index of the HyperNode.
fn places_of(statement: &mut Statement<'_, '_>, task: TaskId) -> Vec<i64> {
    let request = statement.request(task).clone();
    let by_node = statement.count_places(task, |room| n_places(&request, room));
    let by_node = by_node.unwrap_or_else(|| places_on_nodes(statement, task));
    let tree: &HyperNodeTree = &statement.info().hyper_nodes;
    let of_node = |node: &NodeId| by_node.get(node.index()).copied().unwrap_or(0);
    let sum = |row: &HyperNode| row.nodes.iter().map(of_node).sum();
    std::iter::once(HyperNodeTree::ROOT).chain(tree.real()).map(|id| sum(&tree[id])).collect()
}

/// Returns the places for pods like this one on each node, by index of its id.
fn places_on_nodes(session: &SessionState<'_>, task: TaskId) -> Vec<i64> {
    let nodes: &[NodeId] = &session.info().nodes;
    let (request, open) = (session.request(task), session.open_nodes(task, nodes));
    let n_ids = nodes.iter().map(|node| node.index() + 1).max().unwrap_or(0);
    let mut by_node = vec![0; n_ids];
    for (&node, _) in nodes.iter().zip(open).filter(|(_, is_open)| *is_open) {
        let row = &session.nodes[node];
        by_node[node.index()] = n_places(request, |dim| row.future_idle_of(dim));
    }
    by_node
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amounts(amounts: &[(Dim, i64)]) -> Resource {
        let mut resource = Resource::default();
        amounts.iter().for_each(|&(dim, amount)| resource.set(dim, amount));
        resource
    }

    #[test]
    fn the_scarcest_dimension_counts() {
        let request = amounts(&[(Dim::CPU, 3), (Dim::PODS, 1)]);
        let cases = [
            (amounts(&[(Dim::CPU, 8), (Dim::PODS, 5)]), 2),
            (amounts(&[(Dim::CPU, 9), (Dim::PODS, 2)]), 2),
            (amounts(&[(Dim::CPU, 2), (Dim::PODS, 5)]), 0),
            (amounts(&[(Dim::CPU, -3), (Dim::PODS, 5)]), 0),
            (amounts(&[(Dim::CPU, 9)]), 0),
            // The request contains no memory.
            (amounts(&[(Dim::CPU, 9), (Dim::PODS, 5), (Dim::MEMORY, -1)]), 3),
        ];
        for (room, expected) in cases {
            assert_eq!(n_places(&request, |dim| room.get(dim)), expected, "{room:?}");
        }
    }
}
