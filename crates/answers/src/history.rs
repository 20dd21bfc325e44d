//! What is known of the life of a job until now. Specification: answers.md 8 (ANS-115).

use std::collections::BTreeSet;

use vc_model::{Cluster, JobId, ObjectKey};

use crate::pod_spans::{PodSpan, holds_node};
use crate::running_jobs::bind_time;
use crate::timeline::{EvictionEntry, Timeline, pod_of};
use crate::what_if::run::group_of;

/// The life of a job, as far as its rows and the timeline know it. Nothing is estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobHistory {
    /// When its PodGroup was created, in microseconds since 1970; a pod without one, when it was. `None`: not
    /// known.
    pub created_micros: Option<i64>,
    /// When it was admitted to its queue last, in microseconds since 1970. `None`: not known.
    pub admitted_micros: Option<i64>,
    /// When its first pod got a node, in microseconds since 1970. `None`: not known.
    pub first_bind_micros: Option<i64>,
    /// Number of its pods that hold a node now.
    pub on_nodes: usize,
    /// Number of its pods that have ended by themselves.
    pub ended: usize,
    /// Number of its pods that were evicted.
    pub evicted: usize,
    /// When the last of them was evicted, in microseconds since 1970. `None` if none is known.
    pub last_eviction_micros: Option<i64>,
}

impl JobHistory {
    /// Returns what is known of a job. What an earlier job of the name did does not count.
    pub fn of(cluster: &Cluster, timeline: &Timeline, job: JobId) -> Self {
        let row = &cluster.jobs[job];
        let created_micros = row.pod_group.as_ref().map(|group| group.created_micros);
        let since = created_micros.unwrap_or(i64::MIN);
        let group = group_of(cluster, job);
        let key = group.clone().unwrap_or_else(|| pod_of(row));
        let is_own = |pod: &ObjectKey, of_group: Option<&ObjectKey>| match &group {
            Some(group) => of_group == Some(group),
            None => of_group.is_none() && *pod == key,
        };
        let spans = timeline
            .spans()
            .filter(|span| span.key == key && span.is_start_known && since <= span.start_micros);
        let pods = row.tasks.iter().map(|&task| &cluster.tasks[task]);
        let had_node = pods.filter(|pod| {
            pod.node.is_some() && (holds_node(pod.status) || pod.status.is_terminated())
        });
        let starts = had_node.filter_map(bind_time);
        let is_own_eviction =
            |it: &&EvictionEntry| since <= it.at_micros && is_own(&it.pod, it.pod_group.as_ref());
        let evictions = || timeline.all_evictions().filter(is_own_eviction);
        let is_own_end = |span: &&PodSpan| {
            since <= span.end_micros && is_own(&span.pod, span.pod_group.as_ref())
        };
        Self {
            created_micros,
            admitted_micros: timeline.admitted_micros(&key, since),
            first_bind_micros: starts.chain(spans.map(|span| span.start_micros)).min(),
            on_nodes: on_nodes(cluster, job),
            ended: ended((cluster, job), timeline.pod_spans().filter(is_own_end)),
            evicted: evictions().count(),
            last_eviction_micros: evictions().map(|it| it.at_micros).max(),
        }
    }
}

fn on_nodes(cluster: &Cluster, job: JobId) -> usize {
    let pods = cluster.jobs[job].tasks.iter().map(|&task| &cluster.tasks[task]);
    pods.filter(|pod| pod.node.is_some() && holds_node(pod.status)).count()
}

/// Returns how many pods have ended by themselves: those that the timeline remembers, and those of the rows
/// that ended before it began.
fn ended<'a>((cluster, job): (&Cluster, JobId), spans: impl Iterator<Item = &'a PodSpan>) -> usize {
    let spans: Vec<&PodSpan> = spans.filter(|span| !span.is_deleted).collect();
    let remembered: BTreeSet<&ObjectKey> = spans.iter().map(|span| &span.pod).collect();
    let rows = cluster.jobs[job].tasks.iter().map(|&task| &cluster.tasks[task]);
    let others = rows.filter(|row| {
        row.status.is_terminated() && !row.deleting && !remembered.contains(&row.key)
    });
    spans.len() + others.count()
}
