//! Higher priority first; a job may preempt jobs, and a task of its own job tasks, that it
//! outranks. Specification: plugins-jobs-queues.md 3, D8.

use std::cmp::Ordering;

use vc_framework::{Ask, Clock, GangEviction, Plugin, PluginEntry, Points, Verdict};
use vc_model::{Cluster, JobId, TaskId};

use crate::rules::session_job;

pub(crate) const ENTRY: PluginEntry =
    PluginEntry { name: "priority", build: |_, _| Box::new(Priority) };

const POINTS: Points = Points::TASK_ORDER
    .and(Points::JOB_ORDER)
    .and(Points::SUB_JOB_ORDER)
    .and(Points::PREEMPTABLE)
    .and(Points::UNIFIED_EVICTABLE)
    .and(Points::JOB_STARVING);

struct Priority;

impl Plugin for Priority {
    fn points(&self) -> Points {
        POINTS
    }

    fn judges_rows(&self) -> bool {
        true
    }

    fn clock(&self, _ask: Ask<'_>) -> Clock {
        Clock::Ignores
    }

    fn votes_by_job(&self, _ask: Ask<'_>) -> bool {
        true
    }

    fn knows_askers(&self, _ask: Ask<'_>, _task: TaskId) -> bool {
        true
    }

    fn task_order(&self, ask: Ask<'_>, l: TaskId, r: TaskId) -> Ordering {
        let tasks = &ask.cluster.tasks;
        tasks[r].priority.cmp(&tasks[l].priority)
    }

    fn job_order(&self, ask: Ask<'_>, l: JobId, r: JobId) -> Ordering {
        let jobs = &ask.cluster.jobs;
        jobs[r].priority.cmp(&jobs[l].priority)
    }

    fn sub_job_order(&self, ask: Ask<'_>, job: JobId, l: usize, r: usize) -> Ordering {
        let priority = |sub_job| ask.cluster.sub_job_priority(job, sub_job);
        priority(r).cmp(&priority(l))
    }

    fn preemptable(&self, ask: Ask<'_>, preemptor: TaskId, candidates: &[TaskId]) -> Verdict {
        let outranked = |task: &TaskId| outranks(ask.cluster, preemptor, *task);
        Verdict::Victims(candidates.iter().copied().filter(outranked).collect())
    }

    /// Reclaim is about fairness between queues and does not ask for priorities.
    fn unified_evictable(
        &self,
        ask: Ask<'_>,
        initiator: JobId,
        kind: GangEviction,
        candidates: &[TaskId],
    ) -> Verdict {
        let own = ask.cluster.jobs[initiator].priority;
        let may_go = |task: &TaskId| {
            let job = session_job(ask.cluster, *task);
            kind == GangEviction::Reclaim || job.is_some_and(|(_, job)| job.priority < own)
        };
        Verdict::Victims(candidates.iter().copied().filter(may_go).collect())
    }

    fn job_starving(&self, ask: Ask<'_>, job: JobId) -> bool {
        let counts = &ask.cluster.jobs[job].counts;
        counts.ready() + counts.waiting() < counts.total()
    }
}

/// Inside a job tasks compare by their own priority, between jobs by the jobs'. Without a job on
/// either side nothing is outranked (1.6).
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
