//! Nodes that count as empty in some dimensions while a trial runs: only pods of the asked job hold something
//! there. Their rows are kept for later trials of the session, beside filter results and scores about them.
//!
//! Exact because:
//! - a session for trials has the same rows whenever no trial runs, and the next session begins without kept rows;
//! - rows are kept as they are for a job that holds nothing. Nodes on which the asked job or an operation of the
//!   session holds something get other rows for the length of a trial, and are entered in the change log;
//! - what a trial places on the kept rows is undone there, and debug builds compare kept rows with new ones;
//! - a plugin that places by HyperNodes has sums over the rows, which follow the change log: it then names all nodes,
//!   also if there is no HyperNode, for the root always has a sum;
//! - `ans_29_what_is_kept_changes_no_answer` compares with the plain evaluator, which keeps no rows.

use std::collections::BTreeMap;

use vc_model::{JobId, Node, NodeId, Table};
use vc_resource::{Dim, Resource};

use crate::node_score_cache::NodeScoreCache;
use crate::session::{Session, SessionState};
use crate::statement::Op;

/// Rows that are kept at most, of all nodes for each set of dimensions. Beyond it those that were not used for
/// longest are dropped.
const MOST_ROWS: usize = 20_000;

/// The rows of all nodes, empty in some dimensions. While they are in use it holds the rows that the session had.
#[derive(Debug)]
pub(crate) struct EmptiedNodes {
    rooms: Vec<Dim>,
    nodes: Table<NodeId, Node>,
    score_cache: NodeScoreCache,
    /// False if the rows are not those of a job that holds nothing.
    is_kept: bool,
    /// The kept rows of the nodes that have other ones during this trial.
    replaced: Vec<(NodeId, Node)>,
}

/// Number of pods of the job on a node, and what they hold.
type HeldByJob = (u32, Resource);

impl EmptiedNodes {
    /// Returns filter results and scores about these rows.
    pub(super) fn score_cache_mut(&mut self) -> &mut NodeScoreCache {
        &mut self.score_cache
    }
}

impl Session<'_> {
    /// Makes the nodes count as empty in these dimensions. Returns what [`Session::restore_nodes`] needs to revert it.
    pub(super) fn empty_nodes(&mut self, job: JobId, rooms: Vec<Dim>) -> EmptiedNodes {
        let changed = self.state.nodes_held_in_trial(job);
        let kept = &mut self.caches.emptied_nodes;
        let mut emptied = match kept.iter().position(|kept| kept.rooms == rooms) {
            Some(at) => kept.remove(at),
            None => self.state.new_emptied_nodes(rooms),
        };
        let SessionState { cluster, .. } = &mut self.state;
        std::mem::swap(&mut cluster.nodes, &mut emptied.nodes);
        for (node, held) in changed {
            let mut row = emptied.nodes[node].clone();
            empty(&mut row, &emptied.rooms, &held);
            let kept = std::mem::replace(&mut cluster.nodes[node], row);
            emptied.replaced.push((node, kept));
            cluster.touch_node(node);
        }
        self.state.log_all_nodes();
        emptied
    }

    /// Reverts [`Session::empty_nodes`]. `score_cache` has the filter results and scores of the trial. `None` if
    /// the trial had none.
    pub(super) fn restore_nodes(
        &mut self,
        mut emptied: EmptiedNodes,
        score_cache: Option<NodeScoreCache>,
    ) {
        let cluster = &mut *self.state.cluster;
        for (node, kept) in std::mem::take(&mut emptied.replaced) {
            cluster.nodes[node] = kept;
            cluster.touch_node(node);
        }
        std::mem::swap(&mut cluster.nodes, &mut emptied.nodes);
        self.state.log_all_nodes();
        score_cache.into_iter().for_each(|used| emptied.score_cache = used);
        if emptied.is_kept {
            debug_assert!(self.state.is_as_made_anew(&emptied), "kept rows are those of new ones");
            let kept = &mut self.caches.emptied_nodes;
            kept.push(emptied);
            while 1 < kept.len() && MOST_ROWS < kept.iter().map(|it| it.nodes.len()).sum() {
                kept.remove(0);
            }
        }
    }
}

impl SessionState<'_> {
    /// Returns the nodes on which the job or an operation of the session holds something, with what the pods of
    /// the job hold.
    fn nodes_held_in_trial(&self, job: JobId) -> BTreeMap<NodeId, HeldByJob> {
        let mut nodes: BTreeMap<NodeId, HeldByJob> = BTreeMap::new();
        for &task in self.jobs[job].tasks.iter() {
            let row = &self.tasks[task];
            let Some(node) = row.node.filter(|_| !row.status.is_terminated()) else { continue };
            let (n_pods, held) = nodes.entry(node).or_default();
            *n_pods += 1;
            held.add(self.request(task));
        }
        for op in &self.held {
            if let Op::Allocate { node, .. } | Op::Pipeline { node, .. } = *op {
                nodes.entry(node).or_default();
            }
        }
        nodes
    }

    /// Returns the rows for a job that holds nothing. They are kept if no operation of the session holds anything
    /// now.
    fn new_emptied_nodes(&self, rooms: Vec<Dim>) -> EmptiedNodes {
        let mut nodes = self.nodes.clone();
        let nothing = HeldByJob::default();
        self.info.nodes.iter().for_each(|&node| empty(&mut nodes[node], &rooms, &nothing));
        let is_kept = self.is_trial_cached && self.held.is_empty();
        let (score_cache, replaced) = (NodeScoreCache::default(), Vec::new());
        EmptiedNodes { rooms, nodes, score_cache, is_kept, replaced }
    }

    /// Enters all nodes in the change log if a plugin may have sums over their rows.
    fn log_all_nodes(&mut self) {
        if self.plugins().places_by_hyper_nodes() {
            let nodes = self.info.nodes.clone();
            nodes.iter().for_each(|&node| self.cluster.touch_node(node));
        }
    }

    fn is_as_made_anew(&self, emptied: &EmptiedNodes) -> bool {
        let anew = self.new_emptied_nodes(emptied.rooms.clone());
        let is_same = |&node: &NodeId| emptied.nodes[node] == anew.nodes[node];
        !self.held.is_empty() || self.info.nodes.iter().all(is_same)
    }
}

/// Makes a row empty in these dimensions, but for what the pods of the job hold.
fn empty(row: &mut Node, rooms: &[Dim], (n_pods, held): &HeldByJob) {
    for &dim in rooms {
        if dim == Dim::PODS {
            row.view.n_pods = *n_pods;
        }
        if !row.allocatable.has(dim) {
            continue;
        }
        row.idle.set_exact(dim, row.allocatable.exact(dim) - held.exact(dim));
        match held.exact(dim) {
            0 => row.used.remove(dim),
            amount => row.used.set_exact(dim, amount),
        }
        row.releasing.remove(dim);
        row.pipelined.remove(dim);
    }
}
