//! Jobs that hold nodes, each with the time at which it is expected to give the last one back.
//! Specification: answers.md 7 (ANS-114).

use std::sync::Arc;

use vc_model::{Cluster, JobId, ObjectKey, Task};

use crate::ends::{EndLookup, ExpectedEnd};
use crate::pod_spans::holds_node;
use crate::timeline::{Timeline, holds_nodes};
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
    let mut lookup = EndLookup::new(cluster, &ends, now_micros);
    // Jobs and spans are in the order of the same keys.
    let mut spans = timeline.running_since().peekable();
    let mut since = |job: &ObjectKey| {
        while spans.next_if(|(known, _)| *known < job).is_some() {}
        spans.next_if(|(known, _)| *known == job)?.1
    };
    let mut found = Vec::new();
    for job in cluster.jobs_by_key() {
        let Some(pods) = PodsOnNodes::of(cluster, job, &mut lookup) else { continue };
        let row = &cluster.jobs[job];
        let job = RunningJob {
            key: group_of(cluster, job).unwrap_or_else(|| pods.first.key.clone()),
            queue: cluster.queues[row.queue].name.clone(),
            pods: pods.n_pods,
            start_micros: pods.start_micros.into_iter().chain(since(&row.key)).min(),
            end: pods.last_end.filter(|_| !pods.is_endless),
        };
        if filter.admits(&job) {
            found.push(job);
        }
    }
    found.sort_by(|a, b| {
        let end = |it: &RunningJob| (it.end.is_none(), it.end.map(|end| end.at_micros));
        (end(a), &a.key).cmp(&(end(b), &b.key))
    });
    found
}

/// What the pods of a job that hold nodes say together.
struct PodsOnNodes<'a> {
    first: &'a Task,
    n_pods: usize,
    /// The first time at which one of them got its node. `None` if none says it.
    start_micros: Option<i64>,
    /// The last of the ends that are expected.
    last_end: Option<ExpectedEnd>,
    /// True if one of them has no expected end.
    is_endless: bool,
}

impl<'a> PodsOnNodes<'a> {
    /// Reads each pod of the job once. Returns `None` if none holds a node.
    fn of(cluster: &'a Cluster, job: JobId, lookup: &mut EndLookup<'a>) -> Option<Self> {
        let row = &cluster.jobs[job];
        if !holds_nodes(row) {
            return None;
        }
        let mut found: Option<Self> = None;
        for &pod in &row.tasks {
            let pod = &cluster.tasks[pod];
            if pod.node.is_some() && holds_node(pod.status) {
                found.get_or_insert_with(|| Self::before(pod)).add(pod, lookup);
            }
        }
        found
    }

    /// Returns what is known before the first pod is added.
    fn before(first: &'a Task) -> Self {
        Self { first, n_pods: 0, start_micros: None, last_end: None, is_endless: false }
    }

    fn add(&mut self, pod: &'a Task, lookup: &mut EndLookup<'a>) {
        self.n_pods += 1;
        self.start_micros = self.start_micros.into_iter().chain(bind_time(pod)).min();
        if self.is_endless {
            return;
        }
        match lookup.end_of(pod) {
            Some(end) => {
                let order = |end: &ExpectedEnd| (end.at_micros, end.source);
                let later = self.last_end.filter(|known| order(&end) <= order(known));
                self.last_end = later.or(Some(end));
            }
            None => self.is_endless = true,
        }
    }
}

/// Returns when a pod got its node, as it says itself, else when it started. Returns `None` if it says neither.
pub(crate) fn bind_time(pod: &Task) -> Option<i64> {
    pod.scheduled_micros.or(pod.started_micros)
}
