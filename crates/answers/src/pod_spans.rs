//! Pods that have ended or were deleted lately. Specification: answers.md 8 (ANS-46).

use std::collections::{BTreeSet, VecDeque};

use vc_model::{Cluster, ClusterEvent, ObjectKey, PodPhase, TaskStatus};

use crate::what_if::run::group_of;

/// Pods that are kept: some 3 MiB. Beyond, the one that ended first is forgotten.
const MOST_PODS: usize = 20_000;

/// Statuses in which a pod holds a node after a cycle.
pub(crate) const HOLDING: [TaskStatus; 4] =
    [TaskStatus::Binding, TaskStatus::Bound, TaskStatus::Running, TaskStatus::Releasing];

/// True if a pod in this status holds a node after a cycle.
pub(crate) fn holds_node(status: TaskStatus) -> bool {
    HOLDING.contains(&status)
}

/// A pod of ours with the time from its creation until it held no node any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodSpan {
    /// The pod.
    pub pod: ObjectKey,
    /// Its PodGroup. `None` if it has none.
    pub pod_group: Option<ObjectKey>,
    /// When it was created, in microseconds since 1970.
    pub created_micros: i64,
    /// When it ended or was deleted, in microseconds since 1970.
    pub end_micros: i64,
    /// True if it was deleted before it had ended by itself.
    pub is_deleted: bool,
}

/// The pods that have ended or were deleted last.
#[derive(Clone, Debug, Default)]
pub(crate) struct PodSpans {
    /// The one that ended first comes first.
    ended: VecDeque<PodSpan>,
    /// Keys of jobs of which a pod has ended by itself since [`PodSpans::take_ended_jobs`].
    ended_jobs: BTreeSet<ObjectKey>,
}

impl PodSpans {
    /// Takes note of pods that end or are deleted with these events. The cluster must not have seen
    /// the events yet.
    pub(crate) fn note(&mut self, cluster: &Cluster, events: &[ClusterEvent], now_micros: i64) {
        let mut noted = BTreeSet::new();
        for (uid, is_deleted) in events.iter().filter_map(end_of) {
            let Some(task) = cluster.task(uid) else { continue };
            let row = &cluster.tasks[task];
            let Some(job) = row.job.filter(|_| holds_node(row.status)) else { continue };
            // Several events may tell of the same end.
            if !noted.insert(task) {
                continue;
            }
            if !is_deleted {
                self.ended_jobs.insert(cluster.jobs[job].key.clone());
            }
            self.push(PodSpan {
                pod: row.key.clone(),
                pod_group: group_of(cluster, job),
                created_micros: row.created_micros,
                end_micros: now_micros,
                is_deleted,
            });
        }
    }

    fn push(&mut self, span: PodSpan) {
        if MOST_PODS <= self.ended.len() {
            self.ended.pop_front();
        }
        self.ended.push_back(span);
    }

    /// Returns the last pod of this name. Returns `None` if none is remembered.
    pub(crate) fn of(&self, pod: &ObjectKey) -> Option<&PodSpan> {
        self.ended.iter().rev().find(|span| span.pod == *pod)
    }

    /// Returns all of them, the one that ended first first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &PodSpan> {
        self.ended.iter()
    }

    /// Returns the keys of jobs of which a pod has ended by itself since the last call.
    pub(crate) fn take_ended_jobs(&mut self) -> BTreeSet<ObjectKey> {
        std::mem::take(&mut self.ended_jobs)
    }
}

/// Returns the uid of a pod that holds no node after this event, and true if it was deleted.
/// Returns `None` for other events.
fn end_of(event: &ClusterEvent) -> Option<(&str, bool)> {
    match event {
        ClusterEvent::PodDeleted { uid, .. } => Some((&**uid, true)),
        ClusterEvent::PodApplied(pod) | ClusterEvent::PodRead { pod, .. } => {
            let has_ended = matches!(pod.phase, PodPhase::Succeeded | PodPhase::Failed);
            has_ended.then_some((&*pod.uid, pod.deleting))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ans_47_the_pod_that_ended_first_is_forgotten_first() {
        let mut spans = PodSpans::default();
        let pod = |number: usize| ObjectKey::new("ml", &format!("train-{number}"));
        for number in 0..=MOST_PODS {
            let end_micros = i64::try_from(number).unwrap();
            let (pod, pod_group, created_micros, is_deleted) = (pod(number), None, 0, true);
            spans.push(PodSpan { pod, pod_group, created_micros, end_micros, is_deleted });
        }
        assert_eq!(spans.of(&pod(0)), None);
        assert_eq!(spans.of(&pod(1)).map(|span| span.end_micros), Some(1));
        assert_eq!(spans.ended.len(), MOST_PODS);
    }
}
