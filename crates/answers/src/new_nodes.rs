//! The remedy `addNodes`: how many empty nodes like one that exists would suffice.
//! Specification: answers.md 5 (cases 33, 34).
//!
//! Shapes that differ in labels which no filter reads need the same number of nodes. Exact because:
//! - every live node refuses each member, and more nodes give it no room: members go to the added nodes alone;
//! - these are equal, and filters and amounts are the same for both shapes. Scores choose among equal nodes;
//! - there are no HyperNodes, which select nodes by labels;
//! - `ans_29_what_is_kept_changes_no_answer` compares with the plain evaluator, with which all shapes are tried.

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_framework::Session;
use vc_model::{Id, NodeId, Taint, TaskId};
use vc_resource::{Dim, Resource};

use crate::amounts::n_pods_in;
use crate::changed_copy::ChangedCopy;
use crate::explanation::{Remedy, RemedyKind, Responsible};
use crate::known_trials::{KnownTrials, SupposedChange};
use crate::nodes::{NodeRefusals, NodeRun};
use crate::remedy_change::RemedyChange;
use crate::unblock::ClusterQuestion;

/// Shapes of nodes that are tried.
const MOST_SHAPES: usize = 8;
/// A label with the name of its node.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// What nodes have in common that differ in their name alone.
#[derive(Clone)]
pub(crate) struct NodeShape {
    /// The first node in name order.
    first: NodeId,
    /// Pods like the one that finds no node for which an empty node has room.
    n_pods: usize,
    /// The place of an earlier shape of which as many nodes are needed. `None` if there is none.
    same_count_as: Option<usize>,
}

/// Marks shapes of which as many nodes suffice as of an earlier one. No live node may admit any of the tasks.
pub(crate) fn mark_same_counts(session: &Session<'_>, tasks: &[TaskId], shapes: &mut [NodeShape]) {
    let has_same_count = |l: NodeId, r: NodeId| {
        let (row, other) = (&session.nodes[l], &session.nodes[r]);
        row.allocatable == other.allocatable
            && row.capacity == other.capacity
            && row.devices == other.devices
            && tasks.iter().all(|&task| session.has_same_refusals(task, l, r))
    };
    for at in 1..shapes.len() {
        let (earlier, shape) = (&shapes[..at], &shapes[at]);
        let is_it =
            |it: &NodeShape| it.same_count_as.is_none() && has_same_count(it.first, shape.first);
        let same = earlier.iter().position(is_it).filter(|_| session.hyper_nodes.is_empty());
        shapes[at].same_count_as = same;
    }
}

/// Returns the shapes of the nodes whose rules other than room let the refused task in, and which are large
/// enough; the most frequent ones first.
pub(crate) fn shapes(
    session: &Session<'_>,
    (refusals, runs): (&NodeRefusals, &[NodeRun]),
    contents: &NodeContents,
) -> Vec<NodeShape> {
    let request = session.request(refusals.task);
    let mut by_content: BTreeMap<u32, (usize, NodeId)> = BTreeMap::new();
    let is_large =
        |run: &&NodeRun| request.fits(&session.nodes[refusals.first_of(run)].allocatable);
    let eligible = refusals.eligible(runs).filter(is_large);
    for &node in eligible.flat_map(|run| refusals.nodes_of(run)) {
        if !session.nodes[node].unschedulable {
            let content = contents.by_node[node.index()];
            by_content.entry(content).or_insert((0, node)).0 += 1;
        }
    }
    let mut found: Vec<(usize, NodeId)> = by_content.into_values().collect();
    found.sort_by(|(l, l_node), (r, r_node)| {
        let name = |node: NodeId| &session.nodes[node].name;
        r.cmp(l).then_with(|| name(*l_node).cmp(name(*r_node)))
    });
    let shape = |(_, first): (usize, NodeId)| {
        let n_pods = whole_pods(request, &session.nodes[first].allocatable);
        NodeShape { first, n_pods, same_count_as: None }
    };
    found.into_iter().take(MOST_SHAPES).map(shape).collect()
}

/// Returns for how many pods with this request an empty node has room, at least 1.
fn whole_pods(request: &Resource, allocatable: &Resource) -> usize {
    usize::try_from(n_pods_in(allocatable, request)).unwrap_or(1).max(1)
}

/// What equal nodes have in common.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct NodeContent<'a> {
    allocatable: Vec<(Dim, i128)>,
    labels: Vec<(&'a str, &'a str)>,
    taints: &'a [Taint],
}

impl<'a> NodeContent<'a> {
    fn of(row: &'a vc_model::Node) -> Self {
        let is_common =
            |(key, value): &(&Arc<str>, &Arc<str>)| ***key != *HOSTNAME && ***value != *row.name;
        let amounts = row.allocatable.dims();
        let labels = row.labels.iter().filter(is_common);
        Self {
            allocatable: amounts.map(|dim| (dim, row.allocatable.exact(dim))).collect(),
            labels: labels.map(|(key, value)| (&**key, &**value)).collect(),
            taints: &row.taints,
        }
    }
}

/// The content of each node as a number, by the index of its id. Nodes with one number differ in their name alone.
pub(crate) struct NodeContents {
    by_node: Vec<u32>,
}

impl NodeContents {
    pub(crate) fn of(session: &Session<'_>) -> Self {
        let nodes = &session.info().nodes;
        let n_ids = nodes.iter().map(|node| node.index() + 1).max().unwrap_or(0);
        let mut by_node = vec![0; n_ids];
        let mut numbers: BTreeMap<NodeContent<'_>, u32> = BTreeMap::new();
        for &node in nodes.iter() {
            let next = numbers.len() as u32;
            let content = NodeContent::of(&session.nodes[node]);
            by_node[node.index()] = *numbers.entry(content).or_insert(next);
        }
        Self { by_node }
    }
}

/// Returns one remedy for each shape of which nodes help.
pub(crate) fn add_nodes(
    copy: &mut ChangedCopy,
    question: &ClusterQuestion,
    known: &mut KnownTrials,
) -> Vec<Remedy> {
    let mut counts: Vec<Option<usize>> = Vec::new();
    for shape in &question.changes.shapes {
        let count = shape.same_count_as.map(|other| counts[other]).unwrap_or_else(|| {
            // Mostly as many nodes suffice as of an earlier shape.
            let before = counts.iter().flatten().next_back().copied();
            let guess = before.unwrap_or(question.n_missing.div_ceil(shape.n_pods));
            let count = least(copy, (question, known), (shape.first, guess));
            copy.restore();
            count
        });
        counts.push(count);
    }
    let shapes = question.changes.shapes.iter().zip(counts);
    let name = |shape: &NodeShape| copy.cluster().nodes[shape.first].name.clone();
    shapes.filter_map(|(shape, count)| Some(remedy(&name(shape), count?))).collect()
}

/// Returns the smallest number of nodes like this one with which the job is placed: what is guessed, or else by
/// doubling and bisection.
fn least(
    copy: &mut ChangedCopy,
    (question, known): (&ClusterQuestion, &mut KnownTrials),
    (like, guess): (NodeId, usize),
) -> Option<usize> {
    let most = question.n_needed;
    let guess = guess.clamp(1, most);
    let record = copy.cluster().node_record(like);
    let mut suffices = |count: usize| {
        let change = SupposedChange::AddedNodes(like, count);
        known.is_placed(question.shape, change, || {
            copy.set_added(&record, count);
            copy.is_placed(question)
        })
    };
    let (mut low, mut high) = (1, guess);
    while !suffices(high) {
        if high == most {
            return None;
        }
        (low, high) = (high + 1, (2 * high).min(most));
    }
    if high == guess && 1 < guess {
        match suffices(guess - 1) {
            true => high = guess - 1,
            false => low = guess,
        }
    }
    while low < high {
        let middle = low + (high - low) / 2;
        match suffices(middle) {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    Some(high)
}

fn remedy(like: &Arc<str>, count: usize) -> Remedy {
    let nodes = if count == 1 { "node" } else { "nodes" };
    Remedy {
        kind: RemedyKind::AddNodes,
        who: Responsible::Admin,
        text: format!("{count} more {nodes} like {like}"),
        nodes: Vec::new(),
        at_micros: None,
        change: Some(RemedyChange::AddNodes { like: like.clone(), count }),
    }
}
