//! The buckets of a job: tasks that belong on one node. They are built at the start of a session
//! and follow every operation. Specification: plugins-nodes.md 13.2, 13.4.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_framework::SessionView;
use vc_model::{JobId, NodeId, TaskId, TaskStatus};
use vc_resource::{Dim, Resource};

use super::relations::{RoleCounts, RoleRelations};

/// The tasks of a job that have relations, by bucket.
pub(super) struct JobBuckets {
    pub(super) relations: RoleRelations,
    pub(super) buckets: Vec<Bucket>,
    bucket_of: BTreeMap<TaskId, usize>,
    /// The nodes of the tasks in buckets that have one.
    bound: BTreeMap<TaskId, NodeId>,
    /// The tasks of `bound`, counted by node and role.
    roles_by_node: BTreeMap<NodeId, RoleCounts>,
    /// Largest number of tasks in a bucket.
    max_size: i64,
}

/// Tasks that belong on one node.
#[derive(Default)]
pub(super) struct Bucket {
    /// Tasks without a node, in the order in which they are left out of a node that is too small.
    unbound: BTreeSet<UnboundTask>,
    /// Σ requests of `unbound`.
    requested: Resource,
    /// Numbers of tasks with a node.
    bound_by_node: BTreeMap<NodeId, i64>,
}

/// A task without a node: its request score, the highest first, its name, and its id.
type UnboundTask = (Reverse<i64>, Arc<str>, TaskId);

/// A bucket while the buckets are built.
#[derive(Default)]
struct Draft {
    roles: RoleCounts,
    request_score: i64,
}

impl JobBuckets {
    /// Builds the buckets of a job. Returns `None` if no task has relations.
    pub(super) fn of(view: SessionView<'_>, job: JobId, relations: RoleRelations) -> Option<Self> {
        let tasks = sorted_tasks(view, job, &relations);
        let (mut drafts, mut by_node) = (Vec::new(), BTreeMap::new());
        let mut built = Self {
            relations,
            buckets: Vec::new(),
            bucket_of: BTreeMap::new(),
            bound: BTreeMap::new(),
            roles_by_node: BTreeMap::new(),
            max_size: 0,
        };
        for task in tasks {
            let row = &view.cluster.tasks[task];
            let known = match row.node {
                Some(node) => by_node.get(&node).copied(),
                None => best_bucket(&built.relations, &drafts, &row.role),
            };
            let place = known.unwrap_or(drafts.len());
            if place == drafts.len() {
                drafts.push(Draft::default());
                built.buckets.push(Bucket::default());
            }
            *drafts[place].roles.entry(row.role.clone()).or_default() += 1;
            built.bucket_of.insert(task, place);
            match row.node {
                Some(node) => {
                    by_node.insert(node, place);
                    built.bind(view, task, node);
                }
                None => {
                    drafts[place].request_score += request_score(view, task);
                    built.buckets[place].add(view, task);
                }
            }
        }
        let size = |draft: &Draft| draft.roles.values().sum::<i64>();
        built.max_size = drafts.iter().map(size).max()?;
        Some(built)
    }

    /// Returns the position of the bucket of a task. Returns `None` if the task is in no bucket.
    pub(super) fn bucket_of(&self, task: TaskId) -> Option<usize> {
        self.bucket_of.get(&task).copied()
    }

    /// Moves a task that got a node from the unbound to the bound ones.
    pub(super) fn allocated(&mut self, view: SessionView<'_>, task: TaskId) {
        let (Some(place), Some(node)) = (self.bucket_of(task), view.cluster.tasks[task].node)
        else {
            return;
        };
        self.unbind(view, task);
        self.buckets[place].remove(view, task);
        self.bind(view, task, node);
    }

    /// Takes a task off its node. It is unbound again, unless it was evicted.
    pub(super) fn deallocated(&mut self, view: SessionView<'_>, task: TaskId) {
        let Some(place) = self.bucket_of(task) else { return };
        self.unbind(view, task);
        if view.cluster.tasks[task].status == TaskStatus::Pending {
            self.buckets[place].add(view, task);
        }
    }

    fn bind(&mut self, view: SessionView<'_>, task: TaskId, node: NodeId) {
        self.bound.insert(task, node);
        self.count(view, task, node, 1);
    }

    fn unbind(&mut self, view: SessionView<'_>, task: TaskId) {
        if let Some(node) = self.bound.remove(&task) {
            self.count(view, task, node, -1);
        }
    }

    fn count(&mut self, view: SessionView<'_>, task: TaskId, node: NodeId, change: i64) {
        let role = view.cluster.tasks[task].role.clone();
        *self.roles_by_node.entry(node).or_default().entry(role).or_default() += change;
        if let Some(place) = self.bucket_of(task) {
            *self.buckets[place].bound_by_node.entry(node).or_default() += change;
        }
    }

    /// Returns the score of a node for a task of a bucket: how many tasks of the bucket it has or
    /// can get, less the tasks that the role avoids. `best` is the score of the whole largest
    /// bucket.
    pub(super) fn score(
        &self,
        view: SessionView<'_>,
        (task, place): (TaskId, usize),
        node: NodeId,
        best: f64,
    ) -> f64 {
        let row = &view.cluster.nodes[node];
        let mut room = row.idle.clone();
        room.add(&row.releasing);
        if !view.cluster.request(task).fits(&room) {
            return 0.0;
        }
        let bucket = &self.buckets[place];
        let role = &view.cluster.tasks[task].role;
        let bound = bucket.bound_by_node.get(&node).copied().unwrap_or(0);
        let roles = self.roles_by_node.get(&node);
        let avoided = roles.map_or(0, |roles| self.relations.avoided(role, roles));
        let score = bound - avoided + bucket.n_fitting(view, task, &room);
        score as f64 * best / self.max_size as f64
    }
}

impl Bucket {
    /// Returns the number of tasks without a node.
    pub(super) fn n_unbound(&self) -> usize {
        self.unbound.len()
    }

    fn add(&mut self, view: SessionView<'_>, task: TaskId) {
        if self.unbound.insert(unbound(view, task)) {
            self.requested.add(view.cluster.request(task));
        }
    }

    fn remove(&mut self, view: SessionView<'_>, task: TaskId) {
        if self.unbound.remove(&unbound(view, task)) {
            self.requested.sub(view.cluster.request(task));
        }
    }

    /// Returns how many of the unbound tasks fit the room together with `task`. The largest are
    /// left out first, which leaves the most.
    fn n_fitting(&self, view: SessionView<'_>, task: TaskId, room: &Resource) -> i64 {
        let mut n_fitting = self.unbound.len() as i64;
        if self.requested.fits(room) {
            return n_fitting;
        }
        let mut requested = self.requested.clone();
        for (_, _, other) in self.unbound.iter().filter(|(_, _, other)| *other != task) {
            requested.sub(view.cluster.request(*other));
            n_fitting -= 1;
            if requested.fits(room) {
                break;
            }
        }
        n_fitting
    }
}

fn unbound(view: SessionView<'_>, task: TaskId) -> UnboundTask {
    let name = view.cluster.tasks[task].key.name.clone();
    (Reverse(request_score(view, task)), name, task)
}

/// Returns one number for a request: millicores, MiB and units of 1/1000 of each scalar.
fn request_score(view: SessionView<'_>, task: TaskId) -> i64 {
    let request = view.cluster.request(task);
    let memory = request.get(Dim::MEMORY) / (1024 * 1024);
    let scalars = request.scalars().map(|dim| request.get(dim));
    scalars.fold(request.get(Dim::CPU).saturating_add(memory), i64::saturating_add)
}

/// Returns the tasks of a job that have relations and hold a node or wait for one. Those with a
/// node come first, by its name; then by rank of the role, then by name.
fn sorted_tasks(view: SessionView<'_>, job: JobId, relations: &RoleRelations) -> Vec<TaskId> {
    let cluster = view.cluster;
    let takes_part = |task: &TaskId| {
        let row = &cluster.tasks[*task];
        let holds = row.status.is_allocated() || row.status == TaskStatus::Pipelined;
        let is_open = row.status == TaskStatus::Pending || holds && row.node.is_some();
        is_open && relations.priority(&row.role).is_some()
    };
    let mut tasks: Vec<TaskId> =
        cluster.jobs[job].tasks.iter().copied().filter(takes_part).collect();
    tasks.sort_by_key(|&task| {
        let row = &cluster.tasks[task];
        let node = row.node.map(|node| cluster.nodes[node].name.clone());
        (node.is_none(), node, relations.rank(&row.role), row.key.name.clone())
    });
    tasks
}

/// Returns the bucket with the highest affinity value for a role, then with the smallest requests,
/// then the earliest. Returns `None` if the best value is below 0, or if there is no bucket.
fn best_bucket(relations: &RoleRelations, drafts: &[Draft], role: &str) -> Option<usize> {
    let ranked = drafts.iter().enumerate().map(|(place, draft)| {
        (Reverse(relations.value(role, &draft.roles)), draft.request_score, place)
    });
    let (Reverse(value), _, place) = ranked.min()?;
    (0 <= value).then_some(place)
}
