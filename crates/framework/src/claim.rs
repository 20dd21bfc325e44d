//! Claims: jobs for which pods were evicted get first turn on the room that was made.
//! Specification: actions.md 2.11, A16.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_model::{Cluster, JobId, ObjectKey, TaskId, TaskStatus};

use crate::statement::Op;

/// The claim of one job. It lasts until its pods have their places, also when the job is ready: what
/// was made for members beyond the minimum is kept, too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// Planned node per pod uid.
    pub planned: BTreeMap<Arc<str>, Arc<str>>,
    /// Uids of the pods that were evicted for it; unknown after a restart.
    pub victims: BTreeSet<Arc<str>>,
}

/// The claims of all jobs. Kept from cycle to cycle, in memory only.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    by_job: BTreeMap<ObjectKey, Claim>,
    /// Counts what sessions have changed.
    n_changes: u64,
}

impl Claims {
    /// The claims that a restarted scheduler finds in the nominations of waiting pods. A nomination
    /// goes with its claim (A15): where one is left, the place is owed, whoever has left since.
    pub fn rebuilt(cluster: &Cluster) -> Self {
        let mut claims = Self::default();
        for (_, task) in cluster.tasks.iter() {
            let (Some(job), Some(node)) = (task.job, &task.nominated_node) else { continue };
            if task.status == TaskStatus::Pending {
                let claim = claims.by_job.entry(cluster.jobs[job].key.clone()).or_default();
                claim.planned.insert(task.uid.clone(), node.clone());
            }
        }
        claims
    }

    /// Whether no job has one.
    pub fn is_empty(&self) -> bool {
        self.by_job.is_empty()
    }

    /// The claim of a job.
    pub fn of(&self, cluster: &Cluster, job: JobId) -> Option<&Claim> {
        self.by_job.get(&cluster.jobs[job].key)
    }

    /// Remembers a committed statement with at least one eviction, for each job that it places: the
    /// victims, and the node of every member that has a place and is not bound. The evictions are of
    /// use only together with members that were placed before the statement.
    pub(crate) fn remember(&mut self, cluster: &Cluster, ops: &[Op]) {
        let victim = |op: &Op| match *op {
            Op::Evict { task, .. } => Some(cluster.tasks[task].uid.clone()),
            _ => None,
        };
        let victims: BTreeSet<Arc<str>> = ops.iter().filter_map(victim).collect();
        if victims.is_empty() {
            return;
        }
        self.n_changes += 1;
        let placed = ops.iter().filter(|op| matches!(op, Op::Pipeline { .. }));
        let jobs: BTreeSet<JobId> = placed.filter_map(|op| cluster.tasks[op.task()].job).collect();
        for job in jobs {
            let row = &cluster.jobs[job];
            let claim = self.by_job.entry(row.key.clone()).or_default();
            claim.victims.extend(victims.iter().cloned());
            let nodes = row.tasks.iter().filter_map(|&task| find_tentative_node(cluster, task));
            claim.planned.extend(nodes);
        }
    }

    /// Drops the claims whose job is gone, or has no waiting task with a planned node that exists.
    pub fn expire(&mut self, cluster: &Cluster) {
        self.by_job.retain(|key, claim| {
            claim.planned.retain(|uid, node| {
                let pending = cluster.task(uid).is_some_and(|task| waits(cluster, task));
                let known = cluster.node(node).is_some_and(|node| cluster.nodes[node].present);
                pending && known
            });
            cluster.job(key).is_some() && !claim.planned.is_empty()
        });
    }

    /// Jobs with claims, and their Pending tasks that have a planned node.
    pub(crate) fn waiting(&self, cluster: &Cluster) -> Vec<(JobId, Vec<TaskId>)> {
        let pending = |uid: &Arc<str>| {
            let is_pending = |&task: &TaskId| cluster.tasks[task].status == TaskStatus::Pending;
            cluster.task(uid).filter(is_pending)
        };
        let of_job = |(key, claim): (&ObjectKey, &Claim)| {
            let tasks: Vec<TaskId> = claim.planned.keys().filter_map(pending).collect();
            Some((cluster.job(key)?, tasks)).filter(|(_, tasks)| !tasks.is_empty())
        };
        self.by_job.iter().filter_map(of_job).collect()
    }

    /// Ends the claim of a job that found no place although all its victims are gone or have ended;
    /// whether it did.
    pub fn end_unless_victims_remain(&mut self, cluster: &Cluster, job: JobId) -> bool {
        let key = &cluster.jobs[job].key;
        let gone = |uid: &Arc<str>| {
            let task = cluster.task(uid);
            task.is_none_or(|task| cluster.tasks[task].status.is_terminated())
        };
        let ends = self.by_job.get(key).is_some_and(|claim| claim.victims.iter().all(gone));
        if ends {
            self.by_job.remove(key);
            self.n_changes += 1;
        }
        ends
    }

    /// Another number after a session has begun or ended a claim.
    pub fn n_changes(&self) -> u64 {
        self.n_changes
    }
}

/// Uid and node of a task that has a place and is not bound. `None`: it has no place, or is bound.
fn find_tentative_node(cluster: &Cluster, task: TaskId) -> Option<(Arc<str>, Arc<str>)> {
    let row = &cluster.tasks[task];
    let is_tentative = matches!(row.status, TaskStatus::Allocated | TaskStatus::Pipelined);
    let node = row.node.filter(|_| is_tentative)?;
    Some((row.uid.clone(), cluster.nodes[node].name.clone()))
}

fn waits(cluster: &Cluster, task: TaskId) -> bool {
    matches!(cluster.tasks[task].status, TaskStatus::Pending | TaskStatus::Pipelined)
}
