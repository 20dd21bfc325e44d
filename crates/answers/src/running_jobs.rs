//! Jobs that hold nodes, each with the time at which it is expected to give the last one back.
//! Specification: answers.md 7 (ANS-114).

use std::sync::Arc;

use vc_model::{Cluster, JobId, ObjectKey, Task, TaskId};

use crate::ends::{ExpectedEnd, ExpectedEnds};
use crate::pod_spans::holds_node;
use crate::timeline::Timeline;
use crate::what_if::run::group_of;

/// A job that holds nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningJob {
    /// Its PodGroup, or the pod if it has none.
    pub key: ObjectKey,
    /// Name of its queue.
    pub queue: Arc<str>,
    /// Number of its pods that hold a node.
    pub pods: usize,
    /// When its first pod got a node, in microseconds since 1970. `None`: not known.
    pub start_micros: Option<i64>,
    /// The last of the expected ends of these pods. `None` if one of them has none.
    pub end: Option<ExpectedEnd>,
}

/// Which jobs are wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunningFilter<'a> {
    /// Only jobs of this namespace.
    pub namespace: Option<&'a str>,
    /// Only jobs of this queue.
    pub queue: Option<&'a str>,
}

impl RunningFilter<'_> {
    /// True if the job is wanted.
    pub fn admits(&self, job: &RunningJob) -> bool {
        self.namespace.is_none_or(|name| *job.key.namespace == *name)
            && self.queue.is_none_or(|name| *job.queue == *name)
    }
}

/// Returns the jobs that hold nodes, those that end first first, then by name. Jobs without an expected end
/// come last. `now_micros` is the time of the last cycle.
pub fn running_jobs(
    cluster: &Cluster,
    timeline: &Timeline,
    filter: RunningFilter<'_>,
    now_micros: i64,
) -> Vec<RunningJob> {
    let ends = timeline.ends();
    let running = |job| running_job((cluster, timeline), job, &ends, now_micros);
    let jobs = cluster.jobs_by_key().filter_map(running);
    let mut found: Vec<RunningJob> = jobs.filter(|job| filter.admits(job)).collect();
    found.sort_by(|a, b| {
        let end = |it: &RunningJob| (it.end.is_none(), it.end.map(|end| end.at_micros));
        (end(a), &a.key).cmp(&(end(b), &b.key))
    });
    found
}

/// Returns a job that holds nodes. Returns `None` if it holds none.
fn running_job(
    (cluster, timeline): (&Cluster, &Timeline),
    job: JobId,
    ends: &ExpectedEnds,
    now_micros: i64,
) -> Option<RunningJob> {
    let row = &cluster.jobs[job];
    let holds = |task: &TaskId| {
        let task = &cluster.tasks[*task];
        task.node.is_some() && holds_node(task.status)
    };
    let pods: Vec<TaskId> = row.tasks.iter().copied().filter(holds).collect();
    let first = &cluster.tasks[*pods.first()?];
    let starts = pods.iter().filter_map(|&pod| bind_time(&cluster.tasks[pod]));
    Some(RunningJob {
        key: group_of(cluster, job).unwrap_or_else(|| first.key.clone()),
        queue: cluster.queues[row.queue].name.clone(),
        pods: pods.len(),
        start_micros: starts.chain(timeline.running_since(&row.key)).min(),
        end: last_end((cluster, ends), &pods, now_micros),
    })
}

/// Returns when a pod got its node, as it says itself, else when it started. Returns `None` if it says neither.
pub(crate) fn bind_time(pod: &Task) -> Option<i64> {
    pod.scheduled_micros.or(pod.started_micros)
}

/// Returns the last of the expected ends of pods. Returns `None` if one of them has none.
fn last_end(
    (cluster, ends): (&Cluster, &ExpectedEnds),
    pods: &[TaskId],
    now_micros: i64,
) -> Option<ExpectedEnd> {
    let order = |end: &ExpectedEnd| (end.at_micros, end.source);
    let mut last: Option<ExpectedEnd> = None;
    for &pod in pods {
        let end = ends.end_of(cluster, pod, now_micros)?;
        last = last.filter(|known| order(&end) <= order(known)).or(Some(end));
    }
    last
}
