//! The tree of hierarchical DRF: queues by their annotated path, jobs as leaves. After a change of
//! a job, the shares above it are recomputed from integer amounts. A test compares them with a full
//! recomputation.
//! Specification: plugins-jobs-queues.md 4.3, D9.

mod revisions;
mod votes;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use vc_framework::SessionView;
use vc_model::{Id, JobId, Queue, QueueId};
use vc_resource::{Dim, Fractional, Resource};

use super::ShareChange;
use crate::rules::dominant_share;
use revisions::BranchRevisions;
use votes::KeptRanks;

const PATH: &str = "volcano.sh/hierarchy";
const WEIGHTS: &str = "volcano.sh/hierarchy-weights";

/// Queues and jobs under the root, which is node 0. A parent always precedes its children.
#[derive(Clone, Default)]
pub(super) struct Tree {
    total: Fractional,
    /// Sum over all jobs.
    total_allocated: Resource,
    /// The largest amount of each dimension that any pod of the cluster requests.
    largest_request: Resource,
    nodes: Vec<TreeNode>,
    /// The place of each node among its siblings.
    ranks: Vec<TreeRank>,
    /// Node of each job. The map is only looked up, never iterated.
    leaves: FxHashMap<JobId, usize>,
    /// The path of each queue, by its index. `None` for a queue that is not in the session.
    paths: Vec<Option<TreePath>>,
    /// Number of nodes on the longest path.
    longest_path: usize,
    kept: KeptRanks,
    revisions: BranchRevisions,
}

/// The nodes of a queue from root down. A component is `None` if no job is below it (D9: such a
/// node counts as empty).
type TreePath = Box<[Option<usize>]>;

/// Place of a node among its siblings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct TreeRank {
    saturated: bool,
    share_by_weight: f64,
}

/// A pod that reclaims: its job, the queue of the job and the amounts.
type Reclaimer<'a> = (JobId, QueueId, &'a Resource);

/// A pod that may be evicted: its job, the queue of the job and the amounts.
type Candidate<'a> = (JobId, QueueId, &'a Resource);

#[derive(Clone)]
struct TreeNode {
    /// Index of the parent. The root is its own parent.
    parent: usize,
    /// The component of the path; empty for the root and for jobs.
    name: Arc<str>,
    weight: f64,
    children: Vec<usize>,
    /// Children that are not jobs, by their component of the path.
    by_name: BTreeMap<Arc<str>, usize>,
    /// `None` for an inner node.
    job: Option<JobDemand>,
    value: TreeValue,
}

/// Allocation, share and saturation of a node. The root's value is never read, because all queues
/// share the root.
#[derive(Clone, Debug, Default, PartialEq)]
struct TreeValue {
    allocated: Fractional,
    share: f64,
    saturated: bool,
}

#[derive(Clone)]
struct JobDemand {
    job: JobId,
    allocated: Resource,
    /// Sum of the requests of all tasks, whatever their status.
    request: Resource,
}

impl Tree {
    /// Builds the tree from all jobs of the session in order, and locates every queue. `before` is
    /// the tree of the last session.
    pub(super) fn of_session(view: SessionView<'_>, before: &Tree) -> Self {
        let mut tree = Tree {
            total: view.total().clone(),
            largest_request: view.cluster.classes.largest_request(),
            ..Tree::with_root()
        };
        let mut grown: FxHashMap<QueueId, usize> = FxHashMap::default();
        for id in view.all_jobs() {
            let job = &view.cluster.jobs[id];
            let (allocated, request) = (job.allocated.clone(), job.total_request());
            let demand = JobDemand { job: id, allocated, request };
            tree.total_allocated.add(&demand.allocated);
            let grow = || tree.grow(&view.cluster.queues[job.queue]);
            let parent = *grown.entry(job.queue).or_insert_with(grow);
            let leaf = tree.insert(parent, TreeNode::leaf(demand));
            tree.leaves.insert(id, leaf);
        }
        for &queue in &view.info.queues {
            let path = tree.locate(&view.cluster.queues[queue]);
            tree.set_path(queue, path);
        }
        tree.update();
        tree.revise(&Tree::default());
        tree.revise(before);
        tree
    }

    /// A tree of the root alone.
    fn with_root() -> Self {
        let nodes = vec![TreeNode::inner("".into(), 1.0)];
        Self { nodes, ranks: vec![TreeRank::default()], ..Self::default() }
    }

    fn set_path(&mut self, queue: QueueId, path: Vec<Option<usize>>) {
        if self.paths.len() <= queue.index() {
            self.paths.resize(queue.index() + 1, None);
        }
        self.longest_path = self.longest_path.max(path.len());
        self.paths[queue.index()] = Some(path.into());
    }

    /// Returns the path of a queue. Returns `None` if the queue is not in the session.
    fn path(&self, queue: QueueId) -> Option<&[Option<usize>]> {
        self.paths.get(queue.index())?.as_deref()
    }

    /// Returns the node of a queue. Missing nodes on its path are created.
    fn grow(&mut self, queue: &Queue) -> usize {
        let mut at = 0;
        for (name, weight) in components(queue) {
            at = match self.child(at, name) {
                Some(child) => child,
                None => {
                    let name: Arc<str> = name.into();
                    let child = self.insert(at, TreeNode::inner(name.clone(), weight));
                    self.nodes[at].by_name.insert(name, child);
                    child
                }
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
        self.nodes[parent].by_name.get(name).copied()
    }

    fn insert(&mut self, parent: usize, node: TreeNode) -> usize {
        let id = self.nodes.len();
        self.nodes.push(TreeNode { parent, ..node });
        self.ranks.push(TreeRank::default());
        self.nodes[parent].children.push(id);
        id
    }

    /// Changes the allocation of a job, and the shares that depend on it.
    pub(super) fn change(&mut self, job: JobId, by: &Resource, change: ShareChange) {
        let Some(&leaf) = self.leaves.get(&job) else {
            return;
        };
        let before = self.total_allocated.clone();
        change.apply(&mut self.total_allocated, by);
        // Saturation of all jobs depends on whether the cluster has some of the resource left.
        let turns =
            |dim: Dim| self.is_left(dim, &before) != self.is_left(dim, &self.total_allocated);
        let turns = by.dims().any(turns);
        self.change_leaf(job, by, change);
        if turns {
            self.update();
            self.kept = KeptRanks::default();
        } else {
            self.kept.forget(self.below_root(leaf));
        }
    }

    /// Changes the allocation of a job and the shares above it, not what the cluster has left.
    fn change_leaf(&mut self, job: JobId, by: &Resource, change: ShareChange) {
        let Some(&leaf) = self.leaves.get(&job) else {
            return;
        };
        if let Some(demand) = &mut self.nodes[leaf].job {
            change.apply(&mut demand.allocated, by);
            self.update_above(leaf);
        }
    }

    /// Recomputes every node, children before their parents.
    fn update(&mut self) {
        for id in (1..self.nodes.len()).rev() {
            self.set_value(id, self.value(id));
        }
    }

    fn set_value(&mut self, id: usize, value: TreeValue) {
        let share_by_weight = value.share / self.nodes[id].weight;
        self.ranks[id] = TreeRank { saturated: value.saturated, share_by_weight };
        self.nodes[id].value = value;
    }

    /// Recomputes the node and its ancestors until a value is unchanged. This suffices because a
    /// value depends only on the values of the children.
    fn update_above(&mut self, leaf: usize) {
        let mut at = leaf;
        while at != 0 {
            let value = self.value(at);
            if value == self.nodes[at].value {
                return;
            }
            self.set_value(at, value);
            at = self.nodes[at].parent;
        }
    }

    fn value(&self, id: usize) -> TreeValue {
        let node = &self.nodes[id];
        let (allocated, saturated) = match &node.job {
            Some(demand) => (demand.allocated.to_fractional(), self.is_saturated(demand)),
            None => {
                let children = || node.children.iter().map(|&child| &self.nodes[child].value);
                (rescaled_sum(children), children().all(|child| child.saturated))
            }
        };
        TreeValue { share: dominant_share(&allocated, &self.total), allocated, saturated }
    }

    /// True if the job has all it requests of some resource, or if the cluster has none left of a
    /// resource that the job has.
    fn is_saturated(&self, demand: &JobDemand) -> bool {
        demand.allocated.names().any(|dim| {
            let (allocated, request) = (demand.allocated.exact(dim), demand.request.exact(dim));
            let is_left = || self.is_left(dim, &self.total_allocated);
            request != 0 && (request <= allocated || !is_left())
        })
    }

    /// True if some of this resource is left in the cluster when `allocated` is allocated.
    fn is_left(&self, dim: Dim, allocated: &Resource) -> bool {
        !self.total.is_zero(dim) && allocated.to_f64(dim) < self.total.get(dim)
    }

    /// Compares two queues level by level from the root: unsaturated before saturated, then the
    /// smaller share by weight. `Less` means that the left queue is served first.
    pub(super) fn compare(&self, l: QueueId, r: QueueId) -> Ordering {
        let (Some(l), Some(r)) = (self.path(l), self.path(r)) else {
            return Ordering::Equal;
        };
        let mut levels = l.iter().zip(r).map(|(&l, &r)| self.rank(l).compare(&self.rank(r)));
        levels.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// D9: a missing node is unsaturated and has no share.
    fn rank(&self, node: Option<usize>) -> TreeRank {
        node.map_or(TreeRank::default(), |id| self.ranks[id])
    }

    /// True if without the candidate its queue still comes after the reclaimer's queue with its
    /// request. The changes are simulated in the tree and reverted.
    fn may_go(&mut self, reclaimer: Reclaimer<'_>, candidate: Candidate<'_>) -> bool {
        let ((reclaiming, own_queue, request), (job, queue, freed)) = (reclaimer, candidate);
        self.change(reclaiming, request, ShareChange::Add);
        self.change(job, freed, ShareChange::Subtract);
        let order = self.compare(own_queue, queue);
        self.change(job, freed, ShareChange::Add);
        self.change(reclaiming, request, ShareChange::Subtract);
        order.is_lt()
    }
}

impl TreeRank {
    /// Unsaturated before saturated, then the smaller share by weight.
    fn compare(&self, other: &Self) -> Ordering {
        let by_share = || self.share_by_weight.total_cmp(&other.share_by_weight);
        self.saturated.cmp(&other.saturated).then_with(by_share)
    }
}

impl TreeNode {
    fn inner(name: Arc<str>, weight: f64) -> Self {
        let (children, by_name, value) = (Vec::new(), BTreeMap::new(), TreeValue::default());
        TreeNode { parent: 0, name, weight, children, by_name, job: None, value }
    }

    fn leaf(job: JobDemand) -> Self {
        TreeNode { job: Some(job), ..TreeNode::inner("".into(), 1.0) }
    }
}

/// Returns the components of a queue's path below the root, with their weights. A weight that is
/// missing, unreadable or below 1 is 1.
fn components(queue: &Queue) -> impl Iterator<Item = (&str, f64)> {
    let annotation = |key: &str| queue.annotations.get(key).map_or("", |text| &**text);
    let mut weights = annotation(WEIGHTS).split('/').skip(1);
    annotation(PATH).split('/').skip(1).map(move |name| {
        let weight: Option<f64> = weights.next().and_then(|text| text.parse().ok());
        (name, weight.filter(|weight| weight.is_finite() && 1.0 <= *weight).unwrap_or(1.0))
    })
}

/// Returns the sum of the children's allocations. Each unsaturated child is scaled down to the
/// smallest share among them.
fn rescaled_sum<'a, I: Iterator<Item = &'a TreeValue>>(children: impl Fn() -> I) -> Fractional {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random (splitmix64).
    pub(super) fn next(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) >> 33
    }

    pub(super) fn amount(cpu: u64, memory: u64) -> Resource {
        let mut amount = Resource::default();
        amount.set(Dim::CPU, cpu as i64);
        amount.set(Dim::MEMORY, memory as i64);
        amount
    }

    pub(super) const N_JOBS: u64 = 40;

    /// Jobs in queues of different depths, and some right under the root. Each has a queue of its
    /// own, by the number of the job.
    pub(super) fn tree(state: &mut u64) -> Tree {
        let mut tree = Tree {
            total: amount(150, 300).to_fractional(),
            largest_request: amount(9, 9),
            ..Tree::with_root()
        };
        for job in 0..N_JOBS {
            let mut parent = 0;
            let mut path = vec![Some(0)];
            for _ in 0..next(state) % 4 {
                let name = format!("q{}", next(state) % 3);
                parent = tree.child(parent, &name).unwrap_or_else(|| {
                    let node = TreeNode::inner((*name).into(), 1.0 + job as f64 / 3.0);
                    let child = tree.insert(parent, node);
                    tree.nodes[parent].by_name.insert((*name).into(), child);
                    child
                });
                path.push(Some(parent));
            }
            let request = amount(next(state) % 30, next(state) % 30);
            let (job, queue) = (JobId::new(job as u32), QueueId::new(job as u32));
            let demand = JobDemand { job, allocated: Resource::default(), request };
            let leaf = tree.insert(parent, TreeNode::leaf(demand));
            tree.leaves.insert(job, leaf);
            tree.set_path(queue, path);
        }
        tree.update();
        tree.revise(&Tree::default());
        tree
    }

    #[test]
    fn shares_above_a_job_that_changed_are_those_of_all_recomputed() {
        let mut state = 7;
        let mut n_used_up = 0;
        for _ in 0..20 {
            let mut tree = tree(&mut state);
            let mut held: Vec<(JobId, Resource)> = Vec::new();
            for step in 0..300 {
                // What is there fills up, and is given back again.
                let gives = next(&mut state) % 300 < step && !held.is_empty();
                if gives {
                    let place = next(&mut state) as usize % held.len();
                    let (job, by) = held.swap_remove(place);
                    tree.change(job, &by, ShareChange::Subtract);
                } else {
                    let job = JobId::new((next(&mut state) % N_JOBS) as u32);
                    let by = amount(next(&mut state) % 9, next(&mut state) % 9);
                    tree.change(job, &by, ShareChange::Add);
                    held.push((job, by));
                }
                let mut anew = tree.clone();
                anew.update();
                for (kept, fresh) in tree.nodes.iter().zip(&anew.nodes) {
                    assert_eq!(kept.value, fresh.value, "step {step}");
                }
                n_used_up += usize::from(!tree.is_left(Dim::CPU, &tree.total_allocated));
            }
        }
        assert!(100 < n_used_up, "{n_used_up} times the cpus were used up");
    }

    #[test]
    fn kept_votes_are_those_of_changes_that_are_simulated() {
        let mut state = 11;
        let [mut n_victims, mut n_asked, mut n_turning] = [0; 3];
        for _ in 0..20 {
            let mut tree = tree(&mut state);
            // Every class is one amount.
            let amounts: Vec<Resource> =
                (0..5).map(|_| amount(next(&mut state) % 9, next(&mut state) % 9)).collect();
            let mut held: Vec<(u64, usize)> = Vec::new();
            for step in 0..200 {
                let (job, class) = (next(&mut state) % N_JOBS, next(&mut state) as usize % 5);
                tree.change(JobId::new(job as u32), &amounts[class], ShareChange::Add);
                held.push((job, class));
                if step % 3 == 0 {
                    let (job, class) = held.swap_remove(next(&mut state) as usize % held.len());
                    tree.change(JobId::new(job as u32), &amounts[class], ShareChange::Subtract);
                }
                let asking = next(&mut state) % N_JOBS;
                let pod = |job: u64, class: usize| {
                    (JobId::new(job as u32), QueueId::new(job as u32), &amounts[class])
                };
                let reclaimer = pod(asking, next(&mut state) as usize % 5);
                let mut own = tree.own_ranks(reclaimer);
                for &(job, class) in held.iter().take(40) {
                    let (candidate, id) = (pod(job, class), vc_model::ClassId::new(class as u32));
                    let vote = tree.is_victim(&mut own, reclaimer, candidate, id);
                    assert_eq!(vote, tree.may_go(reclaimer, candidate), "step {step}");
                    n_asked += 1;
                    n_victims += usize::from(vote);
                    n_turning += usize::from(tree.turns_what_is_left(reclaimer.2, candidate.2));
                }
                tree.kept.reclaimer = Some(own);
            }
        }
        for seen in [n_victims, n_asked - n_victims, n_turning] {
            assert!(1_000 < seen, "{n_victims} of {n_asked} may go, {n_turning} turn");
        }
    }
}
