//! The tree of hierarchical DRF: queues by their annotated path, jobs as leaves. Shares are
//! recomputed from integer amounts at every change. Specification: plugins-jobs-queues.md 4.3, D9.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use vc_framework::Ask;
use vc_model::{JobId, Queue, QueueId, TaskId};
use vc_resource::{Dim, Fractional, Resource};

use super::Change;
use crate::rules::{dominant_share, session_job};

const PATH: &str = "volcano.sh/hierarchy";
const WEIGHTS: &str = "volcano.sh/hierarchy-weights";

/// Queues and jobs under the root, which is node 0. A parent always precedes its children.
#[derive(Clone, Default)]
pub(super) struct Tree {
    total: Fractional,
    /// Over all jobs.
    total_allocated: Resource,
    nodes: Vec<Node>,
    /// Looked up only, never walked.
    leaves: FxHashMap<JobId, usize>,
    /// The nodes of each queue from the root down; `None` where no job is below the component (D9).
    paths: BTreeMap<QueueId, Vec<Option<usize>>>,
}

#[derive(Clone)]
struct Node {
    /// Component of the path; empty for the root and for jobs.
    name: Arc<str>,
    weight: f64,
    children: Vec<usize>,
    /// `None`: an inner node.
    job: Option<Demand>,
    allocated: Fractional,
    share: f64,
    saturated: bool,
}

#[derive(Clone)]
struct Demand {
    allocated: Resource,
    /// Σ requests of all tasks, whatever their status.
    request: Resource,
}

impl Tree {
    /// All jobs of the session in their order, then the place of every queue.
    pub(super) fn of_session(ask: Ask<'_>) -> Self {
        let mut tree = Tree {
            total: ask.facts.total.clone(),
            nodes: vec![Node::new("".into(), 1.0, None)],
            ..Tree::default()
        };
        for id in ask.all_jobs() {
            let job = &ask.cluster.jobs[id];
            let demand = Demand { allocated: job.allocated.clone(), request: job.total_request() };
            tree.total_allocated.add(&demand.allocated);
            let parent = tree.grow(&ask.cluster.queues[job.queue]);
            let leaf = tree.insert(parent, Node::new("".into(), 1.0, Some(demand)));
            tree.leaves.insert(id, leaf);
        }
        for &queue in &ask.facts.queues {
            let path = tree.locate(&ask.cluster.queues[queue]);
            tree.paths.insert(queue, path);
        }
        tree.update();
        tree
    }

    /// The node of a queue, made with all nodes above it if need be.
    fn grow(&mut self, queue: &Queue) -> usize {
        let mut at = 0;
        for (name, weight) in components(queue) {
            at = match self.child(at, name) {
                Some(child) => child,
                None => self.insert(at, Node::new(name.into(), weight, None)),
            };
        }
        at
    }

    fn locate(&self, queue: &Queue) -> Vec<Option<usize>> {
        let mut path = vec![Some(0)];
        let mut at = Some(0);
        for (name, _) in components(queue) {
            at = at.and_then(|parent| self.child(parent, name));
            path.push(at);
        }
        path
    }

    fn child(&self, parent: usize, name: &str) -> Option<usize> {
        self.nodes[parent].children.iter().copied().find(|&child| {
            let node = &self.nodes[child];
            node.job.is_none() && &*node.name == name
        })
    }

    fn insert(&mut self, parent: usize, node: Node) -> usize {
        let id = self.nodes.len();
        self.nodes.push(node);
        self.nodes[parent].children.push(id);
        id
    }

    /// Changes what a job has; the shares are those of before until [`Tree::update`].
    pub(super) fn change(&mut self, job: JobId, by: &Resource, change: Change) {
        let Some(&leaf) = self.leaves.get(&job) else {
            return;
        };
        let Some(demand) = &mut self.nodes[leaf].job else {
            return;
        };
        change.apply(&mut demand.allocated, by);
        change.apply(&mut self.total_allocated, by);
    }

    /// Recomputes every node, children before their parents.
    pub(super) fn update(&mut self) {
        for id in (0..self.nodes.len()).rev() {
            match &self.nodes[id].job {
                Some(demand) => {
                    let saturated = self.is_saturated(demand);
                    let allocated = demand.allocated.to_fractional();
                    self.settle(id, allocated, saturated);
                }
                None => {
                    let children =
                        || self.nodes[id].children.iter().map(|&child| &self.nodes[child]);
                    let allocated = rescaled_sum(children);
                    let saturated = children().all(|child| child.saturated);
                    self.settle(id, allocated, saturated);
                }
            }
        }
    }

    fn settle(&mut self, id: usize, allocated: Fractional, saturated: bool) {
        let share = dominant_share(&allocated, &self.total);
        let node = &mut self.nodes[id];
        node.allocated = allocated;
        node.share = share;
        node.saturated = saturated;
    }

    /// Some resource that the job has is all it wants, or is used up in the cluster.
    fn is_saturated(&self, demand: &Demand) -> bool {
        demand.allocated.names().any(|dim| {
            let (allocated, request) = (demand.allocated.get(dim), demand.request.get(dim));
            request != 0 && (request <= allocated || !self.is_demanding(dim))
        })
    }

    /// Something of this resource is left in the cluster.
    fn is_demanding(&self, dim: Dim) -> bool {
        !self.total.is_zero(dim) && (self.total_allocated.get(dim) as f64) < self.total.get(dim)
    }

    /// Less: the left queue is served first. Level by level from the root, unsaturated before
    /// saturated, then the smaller share by weight.
    pub(super) fn compare(&self, l: QueueId, r: QueueId) -> Ordering {
        let (Some(l), Some(r)) = (self.paths.get(&l), self.paths.get(&r)) else {
            return Ordering::Equal;
        };
        let mut levels = l.iter().zip(r).map(|(&l, &r)| {
            let (l, r) = (self.standing(l), self.standing(r));
            l.0.cmp(&r.0).then(l.1.total_cmp(&r.1))
        });
        levels.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// Saturation and share by weight; a missing node is unsaturated and has nothing (D9).
    fn standing(&self, node: Option<usize>) -> (bool, f64) {
        let node = node.map(|id| &self.nodes[id]);
        node.map_or((false, 0.0), |node| (node.saturated, node.share / node.weight))
    }

    /// The candidates without which their queue still stands behind the job's queue with this
    /// request; each on its own.
    pub(super) fn reclaimable(
        &self,
        ask: Ask<'_>,
        reclaimer: JobId,
        request: &Resource,
        candidates: &[TaskId],
    ) -> Vec<TaskId> {
        let own_queue = ask.cluster.jobs[reclaimer].queue;
        let mut trial = self.clone();
        trial.change(reclaimer, request, Change::Add);
        let mut may_go = |&task: &TaskId| {
            let Some((id, job)) = session_job(ask.cluster, task) else {
                return false;
            };
            let request = ask.cluster.request(task);
            trial.change(id, request, Change::Subtract);
            trial.update();
            let order = trial.compare(own_queue, job.queue);
            trial.change(id, request, Change::Add);
            order.is_lt()
        };
        candidates.iter().copied().filter(|task| may_go(task)).collect()
    }
}

impl Node {
    fn new(name: Arc<str>, weight: f64, job: Option<Demand>) -> Self {
        let allocated = Fractional::default();
        Node { name, weight, children: Vec::new(), job, allocated, share: 0.0, saturated: false }
    }
}

/// Components of a queue's path after the root, with their weights: a missing, unreadable or too
/// small weight is 1.
fn components(queue: &Queue) -> impl Iterator<Item = (&str, f64)> {
    let annotation = |key: &str| queue.annotations.get(key).map_or("", |text| &**text);
    let mut weights = annotation(WEIGHTS).split('/').skip(1);
    annotation(PATH).split('/').skip(1).map(move |name| {
        let weight: Option<f64> = weights.next().and_then(|text| text.parse().ok());
        (name, weight.filter(|weight| weight.is_finite() && 1.0 <= *weight).unwrap_or(1.0))
    })
}

/// Sum of the children, each unsaturated one scaled down to the smallest share among them.
fn rescaled_sum<'a, I: Iterator<Item = &'a Node>>(children: impl Fn() -> I) -> Fractional {
    let served = || children().filter(|child| child.share != 0.0);
    let unsaturated = served().filter(|child| !child.saturated);
    let smallest = unsaturated.map(|child| child.share).fold(1.0, f64::min);
    let mut sum = Fractional::default();
    for child in served() {
        match child.saturated {
            true => sum.add(&child.allocated),
            false => sum.add(&child.allocated.multi(smallest / child.share)),
        }
    }
    sum
}
