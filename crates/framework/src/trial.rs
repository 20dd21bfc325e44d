//! Trials: an attempt for one job with some atoms lifted, undone afterwards. Atoms of the pod's own
//! spec are lifted by another class of its tasks, amounts and minimums by other rows, votes and the
//! remaining filters by the lens. The session must be one of a copy of the cluster, with the plain
//! evaluator. Specification: answers.md 4.1, 4.2 (ANS-19).
//!
//! With [`Session::cache_trials`] all trials share filter results and scores, so that equal members of a
//! gang are compared with the nodes once. Trials that lift the same rooms share empty nodes, and have results of
//! their own about them. A trial that lifts filters has none: those of the lens are found by the plain evaluator
//! alone.
//!
//! Exact because:
//! - the change log names each node on which a trial has placed something, and again when that is undone;
//! - another class of the tasks has a shape of its own, whose results are others;
//! - results of nodes read of the lens only whether it lifts filters; if it does, nothing is cached;
//! - `ans_21_both_evaluators_suppose_the_same` and `ans_29_what_is_kept_changes_no_answer` compare with the
//!   plain evaluator, which caches nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use vc_model::{
    Class, ClassId, Gates, Job, JobId, NodeSelectorTerm, QueueId, QueueState, Shape,
    SubGroupPolicy, TaintEffect, TaskId, TaskStatus, Toleration, TolerationOperator, Unsatisfiable,
};
use vc_resource::Dim;

use crate::atom::Atom;
use crate::lens::Lens;
use crate::node_score_cache::NodeScoreCache;
use crate::session::{Session, SessionState};
use crate::statement::Op;

mod emptied_nodes;

pub(crate) use emptied_nodes::EmptiedNodes;

/// Key of the taint that stands for a cordon, with the effect `NoSchedule`.
pub const UNSCHEDULABLE_TAINT: &str = "node.kubernetes.io/unschedulable";

/// A change of the job itself that a trial makes beside lifting atoms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct JobChange {
    /// Amount of one dimension that each waiting pod asks for, in units of [`Resource`].
    pub request: Option<(Dim, i64)>,
    /// Minimum of the gang. Minimums of roles stay.
    pub min_available: Option<i32>,
}

/// Rows as they were before atoms were lifted.
#[derive(Debug, Default)]
#[must_use]
pub struct LiftedRows {
    classes: Vec<(TaskId, ClassId)>,
    gates: Vec<(TaskId, Gates)>,
    job: Option<(JobId, Box<Job>)>,
    queue: Option<(QueueId, QueueState)>,
    /// The rows that the nodes had. `None` if they were not made empty.
    nodes: Option<EmptiedNodes>,
    score_cache: Option<NodeScoreCache>,
}

impl SessionState<'_> {
    /// True while a trial runs: statements are recorded and undone in place of a commit.
    pub(crate) fn is_trial(&self) -> bool {
        self.trial.is_some()
    }

    /// True if trials may cache what they find, and repeat it for a job of the same shape.
    pub fn is_trial_cached(&self) -> bool {
        self.is_trial_cached
    }

    /// Records the operations of the statement that a trial would commit or keep.
    pub(crate) fn record_trial(&mut self, ops: Vec<Op>) {
        self.trial = Some(ops);
    }
}

impl Session<'_> {
    /// Lets trials cache what they find. Their answers do not depend on it.
    pub fn cache_trials(&mut self, on: bool) {
        self.state.is_trial_cached = on;
    }

    /// Runs an attempt as a trial: what it would commit or keep is recorded and undone. Returns the
    /// answer and the recorded operations.
    pub fn try_out<T>(&mut self, attempt: impl FnOnce(&mut Self) -> T) -> (T, Vec<Op>) {
        self.state.trial = Some(Vec::new());
        let answer = attempt(self);
        (answer, self.state.trial.take().unwrap_or_default())
    }

    /// Lifts atoms for the tasks of a job that wait, and changes the job. [`Session::restore`] must
    /// follow before anything else is lifted.
    pub fn lift(&mut self, job: JobId, lifted: &BTreeSet<Atom>, change: JobChange) -> LiftedRows {
        let mut rows = LiftedRows::default();
        self.state.plugins.lens = Some(Lens::new(lifted));
        self.lift_job(job, (lifted, change.min_available), &mut rows);
        self.lift_tasks(job, (lifted, change.request), &mut rows);
        let rooms = lifted.iter().filter_map(|atom| match atom {
            Atom::Room(dim) => Some(*dim),
            _ => None,
        });
        let rooms: Vec<Dim> = rooms.collect();
        if !rooms.is_empty() {
            rows.nodes = Some(self.empty_nodes(job, rooms));
        }
        self.state.journal.touch();
        let lifts_filters = self.state.plugins.lens.as_ref().is_some_and(Lens::lifts_filters);
        let is_cached = self.state.is_trial_cached && !lifts_filters;
        let of_trials = match &mut rows.nodes {
            Some(emptied) => emptied.score_cache_mut(),
            None => &mut self.caches.trial_cache,
        };
        let mut score_cache = is_cached.then(|| std::mem::take(of_trials));
        score_cache.iter_mut().for_each(NodeScoreCache::fix_budget);
        rows.score_cache = std::mem::replace(&mut self.caches.score_cache, score_cache);
        rows
    }

    /// Restores what [`Session::lift`] has changed.
    pub fn restore(&mut self, rows: LiftedRows) {
        let cluster = &mut *self.state.cluster;
        rows.classes.into_iter().for_each(|(task, own)| cluster.restore_class(task, own));
        rows.gates.into_iter().for_each(|(task, gates)| cluster.tasks[task].gates = gates);
        if let Some((job, row)) = rows.job {
            cluster.jobs[job] = *row;
        }
        if let Some((queue, state)) = rows.queue {
            cluster.queues[queue].state = state;
        }
        self.state.plugins.lens = None;
        self.state.journal.touch();
        let of_trial = std::mem::replace(&mut self.caches.score_cache, rows.score_cache);
        if let Some(emptied) = rows.nodes {
            self.restore_nodes(emptied, of_trial);
        } else if let Some(score_cache) = of_trial {
            self.caches.trial_cache = score_cache;
        }
    }

    fn lift_job(
        &mut self,
        job: JobId,
        (lifted, min_available): (&BTreeSet<Atom>, Option<i32>),
        rows: &mut LiftedRows,
    ) {
        let cluster = &mut *self.state.cluster;
        if lifted.contains(&Atom::Queue) {
            let queue = cluster.jobs[job].queue;
            rows.queue = Some((queue, cluster.queues[queue].state.clone()));
            cluster.queues[queue].state = QueueState::Open;
        }
        let of_job = [Atom::Members, Atom::Topology, Atom::Minimum];
        if !of_job.iter().any(|atom| lifted.contains(atom)) && min_available.is_none() {
            return;
        }
        let row = &mut cluster.jobs[job];
        rows.job = Some((job, Box::new(row.clone())));
        if let Some(minimum) = min_available {
            set_min_available(row, minimum);
        }
        if lifted.contains(&Atom::Members) {
            count_existing(row);
        }
        if lifted.contains(&Atom::Minimum) {
            let ready = row.counts.ready() + row.counts.pending_best_effort;
            set_minimum(row, i32::try_from(ready).unwrap_or(i32::MAX).saturating_add(1));
        }
        if lifted.contains(&Atom::Topology)
            && let Some(group) = &mut row.pod_group
        {
            group.network_topology = None;
            let without = |policy: &SubGroupPolicy| SubGroupPolicy {
                network_topology: None,
                ..policy.clone()
            };
            group.policies = group.policies.iter().map(without).collect();
        }
    }

    fn lift_tasks(
        &mut self,
        job: JobId,
        (lifted, request): (&BTreeSet<Atom>, Option<(Dim, i64)>),
        rows: &mut LiftedRows,
    ) {
        let cluster = &mut *self.state.cluster;
        let tasks = cluster.jobs[job].tasks.clone();
        let waits = |task: &&TaskId| cluster.tasks[**task].status == TaskStatus::Pending;
        // The class of a task, and the first task that got another one for it.
        let mut last: Option<(ClassId, Option<TaskId>)> = None;
        for task in tasks.iter().filter(waits).copied().collect::<Vec<TaskId>>() {
            if lifted.contains(&Atom::Gates) {
                let row = &mut cluster.tasks[task];
                rows.gates.push((task, row.gates));
                row.gates = Gates::None;
            }
            let own = cluster.tasks[task].class;
            if let Some((_, lent_to)) = last.filter(|(class, _)| *class == own) {
                let lent = lent_to.map(|other| cluster.lend_class_of(task, other));
                rows.classes.extend(lent.map(|own| (task, own)));
                continue;
            }
            let class = changed_class(cluster.class(task), lifted, request);
            last = Some((own, class.is_some().then_some(task)));
            let lent = class.map(|class| cluster.lend_class(task, class));
            rows.classes.extend(lent.map(|own| (task, own)));
        }
    }
}

/// Lowers the minimums to the members that exist.
fn count_existing(row: &mut Job) {
    let valid = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
    for (role, minimum) in Arc::make_mut(&mut row.task_min_available) {
        let existing = row.roles.get(role).map_or(0, |counts| counts.valid());
        *minimum = (*minimum).min(valid(existing));
    }
    let minimums = row.task_min_available.values();
    row.task_min_available_total = minimums.map(|&minimum| i64::from(minimum)).sum();
    let minimum = row.min_available.min(valid(row.counts.valid()));
    set_min_available(row, minimum);
}

/// Sets the minimum of the gang, without minimums of roles.
fn set_minimum(row: &mut Job, minimum: i32) {
    row.task_min_available = Arc::default();
    row.task_min_available_total = 0;
    set_min_available(row, minimum);
}

/// The default sub-job of a job without policies has the minimum of the job.
fn set_min_available(row: &mut Job, minimum: i32) {
    row.min_available = minimum;
    if row.policies().is_empty()
        && let Some(sub_job) = row.sub_jobs.first_mut()
    {
        sub_job.min_available = minimum;
    }
}

/// Returns the class without what the lifted atoms name of it, and with another request. Returns
/// `None` if it stays as it is.
fn changed_class(
    class: &Class,
    lifted: &BTreeSet<Atom>,
    request: Option<(Dim, i64)>,
) -> Option<Class> {
    if request.is_none() && !lifted.iter().any(changes_class) {
        return None;
    }
    let mut changed = class.clone();
    let mut shape = Shape::clone(&class.shape);
    if let Some((dim, amount)) = request.filter(|(dim, _)| shape.request.has(*dim)) {
        shape.request.set(dim, amount);
        match dim {
            Dim::CPU => shape.non_zero.cpu_milli = amount,
            Dim::MEMORY => shape.non_zero.memory_bytes = amount,
            _ => {}
        }
    }
    for atom in lifted {
        match atom {
            Atom::Label(key) => drop_key(&mut shape, key),
            Atom::Taint(key, value, effect) => {
                shape.tolerations.push(toleration(key, value, *effect));
            }
            Atom::Cordon => {
                shape.tolerations.push(toleration(
                    UNSCHEDULABLE_TAINT,
                    "",
                    TaintEffect::NoSchedule,
                ));
            }
            Atom::Filter("NodePorts") => shape.host_ports.clear(),
            Atom::Filter("TopologySpread") => {
                changed.spread.retain(|rule| rule.when != Unsatisfiable::DoNotSchedule);
            }
            _ => {}
        }
    }
    if shape != *class.shape {
        changed.shape = Arc::new(shape);
    }
    (changed != *class).then_some(changed)
}

/// True if the atom is lifted by another class.
fn changes_class(atom: &Atom) -> bool {
    matches!(
        atom,
        Atom::Label(_)
            | Atom::Taint(..)
            | Atom::Cordon
            | Atom::Filter("NodePorts" | "TopologySpread")
    )
}

fn toleration(key: &str, value: &str, effect: TaintEffect) -> Toleration {
    Toleration {
        key: key.into(),
        operator: TolerationOperator::Equal,
        value: value.into(),
        effect: Some(effect),
    }
}

/// Removes all requirements with this key. A term of which nothing is left is met by every node.
fn drop_key(shape: &mut Shape, key: &str) {
    if let Some(selector) = &mut shape.node_selector {
        selector.remove(key);
    }
    let Some(terms) = &mut shape.node_affinity.required else { return };
    let mut is_met = false;
    for term in terms.iter_mut() {
        let NodeSelectorTerm { match_expressions, match_fields } = term;
        let n_before = match_expressions.len() + match_fields.len();
        match_expressions.retain(|rule| &*rule.key != key);
        match_fields.retain(|rule| &*rule.key != key);
        is_met |= n_before != 0 && match_expressions.is_empty() && match_fields.is_empty();
    }
    if is_met {
        shape.node_affinity.required = None;
    }
}
