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

use vc_framework::{Atom, Session};
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
/// Shapes of which filters refuse all nodes, and of which an empty node is asked whether it admits the task.
const MOST_ASKED: usize = 64;
/// A label with the name of its node.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// What nodes have in common that differ in their name alone.
#[derive(Clone)]
pub(crate) struct NodeShape {
    /// The first node in name order.
    pub(crate) first: NodeId,
    /// Pods like the one that finds no node for which an empty node has room.
    n_pods: usize,
    /// True if a node of the shape is known to admit the task but for room. `None` if filters refuse all of them,
    /// perhaps for the pods that are there, and no empty node was asked yet.
    pub(crate) admits: Option<bool>,
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
        let is_first = |it: &NodeShape| it.admits == Some(true) && it.same_count_as.is_none();
        let is_it = |it: &NodeShape| is_first(it) && has_same_count(it.first, shape.first);
        let may_be_same = shape.admits == Some(true) && session.hyper_nodes.is_empty();
        let same = may_be_same.then(|| earlier.iter().position(is_it)).flatten();
        shapes[at].same_count_as = same;
    }
}

/// Nodes of one shape.
struct NodesOfShape {
    count: usize,
    /// The first one in name order.
    first: NodeId,
    is_eligible: bool,
}

/// Returns the shapes of the nodes that are refused for room or by filters alone and are large enough, the most
/// frequent ones first. Filters may refuse a node for the pods that are there.
pub(crate) fn shapes(
    session: &Session<'_>,
    (refusals, runs): (&NodeRefusals, &[NodeRun]),
    contents: &NodeContents,
) -> Vec<NodeShape> {
    let request = session.request(refusals.task);
    let mut by_content: BTreeMap<u32, NodesOfShape> = BTreeMap::new();
    let is_large =
        |run: &&NodeRun| request.fits(&session.nodes[refusals.first_of(run)].allocatable);
    let may_admit = |atom: &Atom| atom.is_room() || matches!(atom, Atom::Filter(_));
    let runs = runs.iter().filter(|run| refusals.atoms_of(run).iter().all(may_admit));
    for run in runs.filter(is_large) {
        let is_eligible = refusals.atoms_of(run).iter().all(Atom::is_room);
        let nodes = refusals.nodes_of(run).iter().copied();
        for first in nodes.filter(|&node| !session.nodes[node].unschedulable) {
            let none = NodesOfShape { count: 0, first, is_eligible: false };
            let found = by_content.entry(contents.by_node[first.index()]).or_insert(none);
            found.count += 1;
            found.is_eligible |= is_eligible;
        }
    }
    let mut found: Vec<NodesOfShape> = by_content.into_values().collect();
    found.sort_by(|l, r| {
        let name = |node: NodeId| &session.nodes[node].name;
        r.count.cmp(&l.count).then_with(|| name(l.first).cmp(name(r.first)))
    });
    let (mut n_eligible, mut n_asked) = (0, 0);
    found.retain(|it| {
        // Behind so many that are eligible none is tried.
        let is_kept = n_eligible < MOST_SHAPES && (it.is_eligible || n_asked < MOST_ASKED);
        n_eligible += usize::from(it.is_eligible);
        n_asked += usize::from(!it.is_eligible);
        is_kept
    });
    let shape = |NodesOfShape { first, is_eligible, .. }: NodesOfShape| {
        let n_pods = whole_pods(request, &session.nodes[first].allocatable);
        NodeShape { first, n_pods, admits: is_eligible.then_some(true), same_count_as: None }
    };
    found.into_iter().map(shape).collect()
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
    let shapes = &question.changes.shapes;
    let admit = empty_nodes_admit(copy, question, known);
    let mut n_tried = 0;
    let mut counts: Vec<Option<usize>> = Vec::new();
    for (shape, admits) in shapes.iter().zip(admit) {
        let is_tried = admits && n_tried < MOST_SHAPES;
        n_tried += usize::from(is_tried);
        let count = match shape.same_count_as {
            _ if !is_tried => None,
            Some(other) => counts[other],
            None => {
                // Mostly as many nodes suffice as of an earlier shape.
                let before = counts.iter().flatten().next_back().copied();
                let guess = before.unwrap_or(question.n_missing.div_ceil(shape.n_pods));
                let count = least(copy, (question, known), (shape.first, guess));
                copy.restore();
                count
            }
        };
        counts.push(count);
    }
    let name = |shape: &NodeShape| copy.cluster().nodes[shape.first].name.clone();
    let counts = shapes.iter().zip(counts);
    counts.filter_map(|(shape, count)| Some(remedy(&name(shape), count?))).collect()
}

/// Returns of each shape whether an empty node admits the task that finds no node. What is found out is kept for jobs
/// of the same shape.
fn empty_nodes_admit(
    copy: &mut ChangedCopy,
    question: &ClusterQuestion,
    known: &mut KnownTrials,
) -> Vec<bool> {
    let shapes = &question.changes.shapes;
    let unknown = shapes.iter().filter(|shape| shape.admits.is_none()).map(|shape| shape.first);
    let unknown: Vec<NodeId> = unknown.collect();
    let mut found = BTreeMap::new();
    if let Some(task) = question.refused.filter(|_| !unknown.is_empty()) {
        let admit = copy.empty_nodes_admit(&unknown, task, question);
        found.extend(unknown.into_iter().zip(admit));
        let namespace = copy.cluster().jobs[question.job].key.namespace.clone();
        known.keep_admitting((question.shape, namespace), &found);
    }
    let admits = |shape: &NodeShape| shape.admits.or_else(|| found.get(&shape.first).copied());
    shapes.iter().map(|shape| admits(shape) == Some(true)).collect()
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
