//! Eviction holds: jobs for which pods were evicted are served first on the room that this made.
//! Specification: actions.md 2.11, A16.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use vc_model::{Cluster, JobId, NodeId, ObjectKey, Pause, TaskId, TaskStatus};

use crate::statement::Op;

/// The eviction hold of one job. It lasts until all planned pods have their places, even after the
/// job is ready. Room for members beyond the minimum is kept, too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvictionHold {
    /// Planned node per pod uid.
    pub planned: BTreeMap<Arc<str>, Arc<str>>,
    /// Uids of the pods that were evicted for the job; unknown after a restart.
    pub victims: BTreeSet<Arc<str>>,
}

/// The eviction holds of all jobs. They are kept from cycle to cycle, in memory only.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct EvictionHolds {
    by_job: BTreeMap<ObjectKey, EvictionHold>,
    /// Number of changes that sessions made.
    n_changes: u64,
}

impl EvictionHolds {
    /// Rebuilds the eviction holds after a restart from the nominations of waiting pods. A15: a
    /// nomination is removed with its hold, so each one that is left still stands for a hold.
    pub fn rebuilt(cluster: &Cluster) -> Self {
        let mut eviction_holds = Self::default();
        for (_, task) in cluster.tasks.iter() {
            let (Some(node), Some(job)) = (&task.nominated_node, task.job) else { continue };
            if task.status == TaskStatus::Pending {
                let hold = eviction_holds.by_job.entry(cluster.jobs[job].key.clone()).or_default();
                hold.planned.insert(task.uid.clone(), node.clone());
            }
        }
        eviction_holds
    }

    /// True if no job has an eviction hold.
    pub fn is_empty(&self) -> bool {
        self.by_job.is_empty()
    }

    /// Returns the eviction hold of a job.
    pub fn of(&self, cluster: &Cluster, job: JobId) -> Option<&EvictionHold> {
        self.by_job.get(&cluster.jobs[job].key)
    }

    /// Records a committed statement with at least one eviction in the hold of each job that it
    /// places. The hold gets the victims, and the node of every member that is placed and not
    /// bound. Members that were placed before the statement count, because the evictions are of use
    /// only with them.
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
            let hold = self.by_job.entry(row.key.clone()).or_default();
            hold.victims.extend(victims.iter().cloned());
            let nodes = row.tasks.iter().filter_map(|&task| find_tentative_node(cluster, task));
            hold.planned.extend(nodes);
        }
    }

    /// Gives a pod the first turn on this node. No pod was evicted for it: it is a member of a broken
    /// gang that has kept its place there while its refused bind paused (core.md 7.2).
    pub fn keep(&mut self, cluster: &Cluster, task: TaskId, node: Arc<str>) {
        let row = &cluster.tasks[task];
        if let Some(job) = row.job {
            let hold = self.by_job.entry(cluster.jobs[job].key.clone()).or_default();
            hold.planned.insert(row.uid.clone(), node);
            self.n_changes += 1;
        }
    }

    /// Drops the holds whose job is gone, or has no waiting task with a planned node that exists.
    pub fn expire(&mut self, cluster: &Cluster) {
        self.by_job.retain(|key, hold| {
            hold.planned.retain(|uid, node| {
                let pending = cluster.task(uid).is_some_and(|task| waits(cluster, task));
                let known = cluster.node(node).is_some_and(|node| cluster.nodes[node].present);
                pending && known
            });
            cluster.job(key).is_some() && !hold.planned.is_empty()
        });
    }

    /// Returns the jobs with eviction holds, and their Pending tasks that have a planned node.
    pub(crate) fn waiting(&self, cluster: &Cluster) -> Vec<(JobId, Vec<TaskId>)> {
        let pending = |uid: &Arc<str>| {
            let is_pending = |&task: &TaskId| cluster.tasks[task].status == TaskStatus::Pending;
            cluster.task(uid).filter(is_pending)
        };
        let of_job = |(key, hold): (&ObjectKey, &EvictionHold)| {
            let tasks: Vec<TaskId> = hold.planned.keys().filter_map(pending).collect();
            Some((cluster.job(key)?, tasks)).filter(|(_, tasks)| !tasks.is_empty())
        };
        self.by_job.iter().filter_map(of_job).collect()
    }

    /// Returns the Pending tasks of all jobs but this one that are planned on one of these nodes, each
    /// with its node.
    pub fn planned_by_others(
        &self,
        cluster: &Cluster,
        job: JobId,
        nodes: &BTreeSet<NodeId>,
    ) -> Vec<(NodeId, TaskId)> {
        let own = &cluster.jobs[job].key;
        let named = nodes.iter().map(|&node| (&*cluster.nodes[node].name, node));
        let nodes: FxHashMap<&str, NodeId> = named.collect();
        let holds = self.by_job.iter().filter(|(key, _)| *key != own);
        let planned = holds.flat_map(|(_, hold)| &hold.planned);
        let pending = |(uid, name): (&Arc<str>, &Arc<str>)| {
            let node = *nodes.get(&**name)?;
            let task = cluster.task(uid)?;
            (cluster.tasks[task].status == TaskStatus::Pending).then_some((node, task))
        };
        planned.filter_map(pending).collect()
    }

    /// Ends the hold of a job that found no place although none of its victims remains. A victim
    /// remains while it terminates, and while its refused eviction pauses; after the pause it is a
    /// running pod like any other. After a restart the victims are unknown: the hold then ends when no
    /// pod terminates on the planned nodes. Returns true if the hold has ended.
    pub fn end_unless_victims_remain(&mut self, cluster: &Cluster, job: JobId) -> bool {
        let key = &cluster.jobs[job].key;
        let remains = |uid: &Arc<str>| {
            let row = cluster.task(uid).map(|task| &cluster.tasks[task]);
            row.is_some_and(|row| {
                row.status == TaskStatus::Releasing || row.pause == Some(Pause::Eviction)
            })
        };
        let terminates = |&task: &TaskId| cluster.tasks[task].status == TaskStatus::Releasing;
        let is_quiet = |name: &Arc<str>| {
            let node = cluster.node(name);
            !node.is_some_and(|node| cluster.nodes[node].tasks.iter().any(terminates))
        };
        let ends = self.by_job.get(key).is_some_and(|hold| match hold.victims.is_empty() {
            true => hold.planned.values().all(is_quiet),
            false => !hold.victims.iter().any(remains),
        });
        if ends {
            self.by_job.remove(key);
            self.n_changes += 1;
        }
        ends
    }

    /// Returns a number that changes when a session begins or ends a hold.
    pub fn n_changes(&self) -> u64 {
        self.n_changes
    }
}

/// Returns uid and node of a task that has a place and is not bound. Returns `None` for other
/// tasks.
fn find_tentative_node(cluster: &Cluster, task: TaskId) -> Option<(Arc<str>, Arc<str>)> {
    let row = &cluster.tasks[task];
    let is_tentative = matches!(row.status, TaskStatus::Allocated | TaskStatus::Pipelined);
    let node = row.node.filter(|_| is_tentative)?;
    Some((row.uid.clone(), cluster.nodes[node].name.clone()))
}

fn waits(cluster: &Cluster, task: TaskId) -> bool {
    matches!(cluster.tasks[task].status, TaskStatus::Pending | TaskStatus::Pipelined)
}
