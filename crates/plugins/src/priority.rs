//! Plugin `priority`: serves the higher priority first. A job may preempt jobs of lower priority. A
//! task may preempt tasks of its own job with lower priority.
//! Specification: plugins-jobs-queues.md 3, D8.

use std::cmp::Ordering;

use vc_framework::{
    Depends, GangEviction, Inputs, Plugin, PluginEntry, Points, SessionView, VictimVote,
};
use vc_model::{Cluster, JobId, TaskId};

use crate::rules::session_job;

pub(crate) const ENTRY: PluginEntry = PluginEntry::new("priority", |_, _| Box::new(Priority));

const POINTS: Points = Points::TASK_ORDER
    .and(Points::JOB_ORDER)
    .and(Points::SUB_JOB_ORDER)
    .and(Points::PREEMPTABLE)
    .and(Points::UNIFIED_EVICTABLE)
    .and(Points::JOB_STARVING);

struct Priority;

/// The state that each extension point reads.
const READS: &[(Points, Inputs)] = &[
    (Points::TASK_ORDER, Inputs::POD_ROW),
    (Points::JOB_ORDER, Inputs::JOB_ROW),
    (Points::SUB_JOB_ORDER, Inputs::JOB_ROW.and(Inputs::JOB_COUNTS)),
    (Points::PREEMPTABLE, Inputs::POD_ROW.and(VICTIMS)),
    (Points::UNIFIED_EVICTABLE, Inputs::JOB_ROW.and(VICTIMS)),
    (Points::JOB_STARVING, Inputs::JOB_COUNTS),
];

/// Includes the queue object, because a candidate belongs to the session only if its queue exists.
const VICTIMS: Inputs = Inputs::CANDIDATE_ROW.and(Inputs::QUEUE_OBJECT);

impl Plugin for Priority {
    fn points(&self) -> Points {
        POINTS
    }

    fn depends(&self) -> Depends {
        Depends::of(READS)
    }

    fn task_order(&self, view: SessionView<'_>, l: TaskId, r: TaskId) -> Ordering {
        let tasks = &view.cluster.tasks;
        tasks[r].priority.cmp(&tasks[l].priority)
    }

    fn job_order(&self, view: SessionView<'_>, l: JobId, r: JobId) -> Ordering {
        let jobs = &view.cluster.jobs;
        jobs[r].priority.cmp(&jobs[l].priority)
    }

    fn order_value(&self, view: SessionView<'_>, job: JobId) -> Option<String> {
        Some(view.cluster.jobs[job].priority.to_string())
    }

    fn sub_job_order(&self, view: SessionView<'_>, job: JobId, l: usize, r: usize) -> Ordering {
        let priority = |sub_job| view.cluster.sub_job_priority(job, sub_job);
        priority(r).cmp(&priority(l))
    }

    fn preemptable(
        &self,
        view: SessionView<'_>,
        preemptor: TaskId,
        candidates: &[TaskId],
    ) -> VictimVote {
        let outranked = |task: &TaskId| outranks(view.cluster, preemptor, *task);
        VictimVote::Victims(candidates.iter().copied().filter(outranked).collect())
    }

    /// Permits all candidates for reclaim, which is about fairness between queues and ignores
    /// priorities.
    fn unified_evictable(
        &self,
        view: SessionView<'_>,
        initiator: JobId,
        kind: GangEviction,
        candidates: &[TaskId],
    ) -> VictimVote {
        let own = view.cluster.jobs[initiator].priority;
        let may_go = |task: &TaskId| {
            let job = session_job(view.cluster, *task);
            kind == GangEviction::Reclaim || job.is_some_and(|(_, job)| job.priority < own)
        };
        VictimVote::Victims(candidates.iter().copied().filter(may_go).collect())
    }

    fn job_starving(&self, view: SessionView<'_>, job: JobId) -> bool {
        let counts = &view.cluster.jobs[job].counts;
        counts.ready() + counts.waiting() < counts.total()
    }
}

/// True if the preemptor outranks the candidate. Tasks of one job compare by their own priority,
/// others by the priority of their jobs. Returns false if either task has no job in the session
/// (section 1.6).
fn outranks(cluster: &Cluster, preemptor: TaskId, candidate: TaskId) -> bool {
    let jobs = (session_job(cluster, preemptor), session_job(cluster, candidate));
    let (Some((mine, own)), Some((theirs, other))) = jobs else {
        return false;
    };
    match mine == theirs {
        true => cluster.tasks[candidate].priority < cluster.tasks[preemptor].priority,
        false => other.priority < own.priority,
    }
}
