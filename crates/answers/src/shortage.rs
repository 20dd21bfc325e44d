//! Which amounts are short on the eligible nodes, and the texts that follow from it.
//! Specification: answers.md 2 (NeverFits to Fragmented), 3 (ANS-13).

use vc_framework::SessionState;
use vc_model::{NodeId, TaskId};
use vc_resource::{Dim, Dims, Resource};

use crate::amounts::{n_pods_in, quantity_of};
use crate::code::WaitCode;
use crate::explanation::{RefusedNodes, ShortResource};
use crate::nodes::{NodeRefusals, NodeRun};

/// Groups of nodes that a text names.
const GROUPS_IN_TEXT: usize = 3;

/// One resource over the eligible nodes, exact.
pub(crate) struct Shortage {
    pub(crate) dim: Dim,
    /// Request of one pod.
    asked: i128,
    need: i128,
    free: i128,
    usable: i128,
    largest: i128,
    /// The largest allocatable amount of one node.
    capacity: i128,
    per_pod: Option<i128>,
}

impl Shortage {
    fn short(&self) -> i128 {
        (self.need - self.free).max(0)
    }

    fn to_row(&self, dims: &Dims) -> ShortResource {
        let text = |amount| quantity_of(amount, self.dim, dims);
        ShortResource {
            resource: dims.name(self.dim).to_owned(),
            need: text(self.need),
            free: text(self.free),
            usable: text(self.usable),
            largest: text(self.largest),
            short: text(self.short()),
            per_pod: self.per_pod.map(text),
        }
    }
}

/// The amounts that a task and the members that must still be placed ask of the eligible nodes.
pub(crate) struct Shortages {
    rows: Vec<Shortage>,
    /// True if an eligible node could take the task if it were empty.
    fits_empty_node: bool,
    n_eligible: usize,
}

impl Shortages {
    pub(crate) fn find(
        session: &SessionState<'_>,
        (refusals, runs): (&NodeRefusals, &[NodeRun]),
        needed: &[TaskId],
    ) -> Self {
        let request = session.request(refusals.task);
        // A resource that no node has is not short: it is lacking everywhere.
        let exists = |dim: Dim| {
            let has = |node: NodeId| 0 < session.nodes[node].allocatable.get(dim);
            runs.iter().any(|run| has(refusals.first_of(run)))
        };
        let asked = |dim: &Dim| 0 < request.get(*dim) && exists(*dim);
        let dims = session.dims.in_report_order().iter().copied().filter(asked);
        let nodes = refusals.eligible(runs).map(|run| {
            let node = refusals.first_of(run);
            EligibleNodes::of(session, request, (node, run.len()))
        });
        let nodes: Vec<EligibleNodes<'_>> = nodes.collect();
        let rows = dims.map(|dim| shortage(session, (request, dim), &nodes, needed));
        Self {
            rows: rows.collect(),
            fits_empty_node: nodes.iter().any(|nodes| request.fits(nodes.allocatable)),
            n_eligible: nodes.iter().map(|nodes| nodes.count).sum(),
        }
    }

    /// Returns the rows for users. `pods` is left out unless pods are what is short.
    pub(crate) fn rows(&self, dims: &Dims) -> Vec<ShortResource> {
        let is_short = |row: &Shortage| 0 < row.short() || row.per_pod.is_some();
        let is_shown =
            |row: &&Shortage| row.dim != Dim::PODS || 0 < self.n_eligible && is_short(row);
        self.rows.iter().filter(is_shown).map(|row| row.to_row(dims)).collect()
    }

    /// Returns the code of a task that no node takes, with its text.
    pub(crate) fn code(&self, groups: &[RefusedNodes], dims: &Dims) -> (WaitCode, String) {
        if self.n_eligible == 0 {
            return (WaitCode::NodesRefuse, refused_text(groups));
        }
        if !self.fits_empty_node {
            return (WaitCode::NeverFits, self.never_fits(dims));
        }
        let short: Vec<String> = self
            .rows
            .iter()
            .filter(|row| 0 < row.short())
            .map(|row| short_text(row, dims))
            .collect();
        match short.is_empty() {
            true => (WaitCode::Fragmented, self.fragmented(dims)),
            false => (WaitCode::NoRoom, short.join("; ")),
        }
    }

    fn never_fits(&self, dims: &Dims) -> String {
        let too_large = self.rows.iter().filter(|row| row.capacity < row.asked);
        let text = |row: &Shortage| {
            let (asked, capacity) = (row.asked, row.capacity);
            let [asked, capacity] = [asked, capacity].map(|it| quantity_of(it, row.dim, dims));
            format!("{asked} {} asked, {capacity} on the largest", dims.name(row.dim))
        };
        let texts: Vec<String> = too_large.map(text).collect();
        match texts.is_empty() {
            true => format!("no eligible node has {} together", self.asked(dims)),
            false => format!("no eligible node is large enough: {}", texts.join("; ")),
        }
    }

    fn fragmented(&self, dims: &Dims) -> String {
        let Some(row) = self.rows.iter().find(|row| row.largest < row.asked) else {
            let asked = self.asked(dims);
            return format!("enough is free on eligible nodes, but no node has {asked} together");
        };
        let [free, asked] = [row.free, row.asked].map(|it| quantity_of(it, row.dim, dims));
        let name = dims.name(row.dim);
        let are = if free == "1" { "is" } else { "are" };
        format!("{free} {name} {are} free on eligible nodes, but no node has {asked}")
    }

    /// Returns what one pod asks for.
    fn asked(&self, dims: &Dims) -> String {
        let asked = self.rows.iter().filter(|row| row.dim != Dim::PODS);
        let text = |row: &Shortage| {
            format!("{} {}", quantity_of(row.asked, row.dim, dims), dims.name(row.dim))
        };
        asked.map(text).collect::<Vec<String>>().join(" and ")
    }
}

/// Nodes that only lack room and are alike.
struct EligibleNodes<'a> {
    count: usize,
    /// FutureIdle of each.
    free: Resource,
    allocatable: &'a Resource,
    /// Number of pods with the request for which each has room.
    n_pods: i128,
}

impl<'a> EligibleNodes<'a> {
    fn of(
        session: &'a SessionState<'_>,
        request: &Resource,
        (first, count): (NodeId, usize),
    ) -> Self {
        let row = &session.nodes[first];
        let free = row.future_idle();
        let n_pods = n_pods_in(&free, request);
        Self { count, free, allocatable: &row.allocatable, n_pods }
    }
}

fn shortage(
    session: &SessionState<'_>,
    (request, dim): (&Resource, Dim),
    eligible: &[EligibleNodes<'_>],
    needed: &[TaskId],
) -> Shortage {
    let asked = request.exact(dim);
    let free = |nodes: &EligibleNodes<'_>| nodes.free.exact(dim).max(0);
    let lacks = eligible.iter().map(|nodes| asked - free(nodes));
    let capacities = eligible.iter().map(|nodes| nodes.allocatable.exact(dim));
    let sum = |amount: &dyn Fn(&EligibleNodes<'_>) -> i128| -> i128 {
        eligible.iter().map(|nodes| nodes.count as i128 * amount(nodes)).sum()
    };
    Shortage {
        dim,
        asked,
        need: needed.iter().map(|&task| session.request(task).exact(dim)).sum(),
        free: sum(&free),
        usable: sum(&|nodes| nodes.n_pods * asked),
        largest: eligible.iter().map(free).max().unwrap_or(0),
        capacity: capacities.max().unwrap_or(0),
        per_pod: lacks.filter(|lack| 0 < *lack).min(),
    }
}

fn short_text(row: &Shortage, dims: &Dims) -> String {
    let text = |amount| quantity_of(amount, row.dim, dims);
    let (short, need, free) = (text(row.short()), text(row.need), text(row.free));
    format!("{short} {} short: {need} needed, {free} free on eligible nodes", dims.name(row.dim))
}

fn refused_text(groups: &[RefusedNodes]) -> String {
    if groups.is_empty() {
        return "there is no node".to_owned();
    }
    let text = |group: &RefusedNodes| {
        let nodes = if group.count == 1 { "node" } else { "nodes" };
        format!("{} {nodes} {}", group.count, group.phrase())
    };
    let mut texts: Vec<String> = groups.iter().take(GROUPS_IN_TEXT).map(text).collect();
    let n_left: usize = groups.iter().skip(GROUPS_IN_TEXT).map(|group| group.count).sum();
    if 0 < n_left {
        texts.push(format!("{n_left} more"));
    }
    format!("no node is eligible: {}", texts.join("; "))
}
