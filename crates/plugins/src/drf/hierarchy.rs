//! The tree of hierarchical DRF: queues by their annotated path, jobs as leaves. After a change of
//! a job, the shares above it are recomputed from integer amounts. A test compares them with a full
//! recomputation.
//! Specification: plugins-jobs-queues.md 4.3, D9.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use vc_framework::SessionView;
use vc_model::{JobId, Queue, QueueId, TaskId};
use vc_resource::{Dim, Fractional, Resource};

use super::ShareChange;
use crate::rules::{dominant_share, session_job};

const PATH: &str = "volcano.sh/hierarchy";
const WEIGHTS: &str = "volcano.sh/hierarchy-weights";

/// Queues and jobs under the root, which is node 0. A parent always precedes its children.
#[derive(Clone, Default)]
pub(super) struct Tree {
    total: Fractional,
    /// Sum over all jobs.
    total_allocated: Resource,
    nodes: Vec<TreeNode>,
    /// Node of each job. The map is only looked up, never iterated.
    leaves: FxHashMap<JobId, usize>,
    /// The nodes of each queue from root down. A component is `None` if no job is below it (D9:
    /// such a node counts as empty). The map is only looked up, never iterated.
    paths: FxHashMap<QueueId, Vec<Option<usize>>>,
}

#[derive(Clone)]
struct TreeNode {
    /// Index of the parent. The root is its own parent.
    parent: usize,
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
    allocated: Resource,
    /// Sum of the requests of all tasks, whatever their status.
    request: Resource,
}

impl Tree {
    /// Builds the tree from all jobs of the session in order, and locates every queue.
    pub(super) fn of_session(view: SessionView<'_>) -> Self {
        let mut tree = Tree {
            total: view.total().clone(),
            nodes: vec![TreeNode::new(1.0, None)],
            ..Tree::default()
        };
        let mut grown: FxHashMap<QueueId, usize> = FxHashMap::default();
        for id in view.all_jobs() {
            let job = &view.cluster.jobs[id];
            let demand =
                JobDemand { allocated: job.allocated.clone(), request: job.total_request() };
            tree.total_allocated.add(&demand.allocated);
            let grow = || tree.grow(&view.cluster.queues[job.queue]);
            let parent = *grown.entry(job.queue).or_insert_with(grow);
            let leaf = tree.insert(parent, TreeNode::new(1.0, Some(demand)));
            tree.leaves.insert(id, leaf);
        }
        for &queue in &view.info.queues {
            let path = tree.locate(&view.cluster.queues[queue]);
            tree.paths.insert(queue, path);
        }
        tree.update();
        tree
    }

    /// Returns the node of a queue. Missing nodes on its path are created.
    fn grow(&mut self, queue: &Queue) -> usize {
        let mut at = 0;
        for (name, weight) in components(queue) {
            at = match self.child(at, name) {
                Some(child) => child,
                None => {
                    let child = self.insert(at, TreeNode::new(weight, None));
                    self.nodes[at].by_name.insert(name.into(), child);
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
        self.nodes[parent].children.push(id);
        id
    }

    /// Changes the allocation of a job, and the shares that depend on it.
    pub(super) fn change(&mut self, job: JobId, by: &Resource, change: ShareChange) {
        let Some(&leaf) = self.leaves.get(&job) else {
            return;
        };
        let Some(demand) = &mut self.nodes[leaf].job else {
            return;
        };
        change.apply(&mut demand.allocated, by);
        let before = self.total_allocated.clone();
        change.apply(&mut self.total_allocated, by);
        // Saturation of all jobs depends on whether the cluster has some of the resource left.
        let turns =
            |dim: Dim| self.is_left(dim, &before) != self.is_left(dim, &self.total_allocated);
        match by.dims().any(turns) {
            true => self.update(),
            false => self.update_above(leaf),
        }
    }

    /// Recomputes every node, children before their parents.
    fn update(&mut self) {
        for id in (1..self.nodes.len()).rev() {
            self.nodes[id].value = self.value(id);
        }
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
            self.nodes[at].value = value;
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
        let (Some(l), Some(r)) = (self.paths.get(&l), self.paths.get(&r)) else {
            return Ordering::Equal;
        };
        let mut levels = l.iter().zip(r).map(|(&l, &r)| {
            let (l, r) = (self.standing(l), self.standing(r));
            l.0.cmp(&r.0).then(l.1.total_cmp(&r.1))
        });
        levels.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// Returns saturation and share by weight. D9: a missing node is unsaturated and has no share.
    fn standing(&self, node: Option<usize>) -> (bool, f64) {
        let node = node.map(|id| &self.nodes[id]);
        node.map_or((false, 0.0), |node| (node.value.saturated, node.value.share / node.weight))
    }

    /// Returns the candidates that may be evicted, each tested alone. Without the candidate, its
    /// queue must still come after the reclaimer's queue with this request. The changes are
    /// simulated in the tree and reverted.
    pub(super) fn reclaimable(
        &mut self,
        view: SessionView<'_>,
        reclaimer: JobId,
        request: &Resource,
        candidates: &[TaskId],
    ) -> Vec<TaskId> {
        let own_queue = view.cluster.jobs[reclaimer].queue;
        self.change(reclaimer, request, ShareChange::Add);
        let mut may_go = |&task: &TaskId| {
            let Some((id, job)) = session_job(view.cluster, task) else {
                return false;
            };
            let request = view.cluster.request(task);
            self.change(id, request, ShareChange::Subtract);
            let order = self.compare(own_queue, job.queue);
            self.change(id, request, ShareChange::Add);
            order.is_lt()
        };
        let found = candidates.iter().copied().filter(|task| may_go(task)).collect();
        self.change(reclaimer, request, ShareChange::Subtract);
        found
    }
}

impl TreeNode {
    fn new(weight: f64, job: Option<JobDemand>) -> Self {
        let (children, by_name, value) = (Vec::new(), BTreeMap::new(), TreeValue::default());
        TreeNode { parent: 0, weight, children, by_name, job, value }
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
    use vc_model::Id;

    use super::*;

    /// Numbers that look random (splitmix64).
    fn next(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) >> 33
    }

    fn amount(cpu: u64, memory: u64) -> Resource {
        let mut amount = Resource::default();
        amount.set(Dim::CPU, cpu as i64);
        amount.set(Dim::MEMORY, memory as i64);
        amount
    }

    /// Jobs in queues of different depths, and some right under the root.
    fn tree(state: &mut u64) -> Tree {
        let mut tree = Tree {
            total: amount(150, 300).to_fractional(),
            nodes: vec![TreeNode::new(1.0, None)],
            ..Tree::default()
        };
        for job in 0..40 {
            let mut parent = 0;
            for _ in 0..next(state) % 4 {
                let name = format!("q{}", next(state) % 3);
                parent = tree.child(parent, &name).unwrap_or_else(|| {
                    let child = tree.insert(parent, TreeNode::new(1.0 + job as f64 / 3.0, None));
                    tree.nodes[parent].by_name.insert((*name).into(), child);
                    child
                });
            }
            let request = amount(next(state) % 30, next(state) % 30);
            let demand = JobDemand { allocated: Resource::default(), request };
            let leaf = tree.insert(parent, TreeNode::new(1.0, Some(demand)));
            tree.leaves.insert(JobId::new(job), leaf);
        }
        tree.update();
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
                    let job = JobId::new((next(&mut state) % 40) as u32);
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
}
