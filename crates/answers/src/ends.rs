//! Expected ends of pods, from what their objects state and from the runs of earlier pods.
//! Specification: answers.md 7 (ANS-36).

use std::sync::Arc;

use vc_model::{Cluster, StatedRun, Task, TaskId, TaskStatus};

use crate::learned_runs::{ENOUGH_RUNS, LearnedRuns, RunQuantile};

/// Time that a pod gets to end after its deadline has passed, in microseconds.
const AFTER_DEADLINE_MICROS: i64 = 60_000_000;
/// Time that a pod gets to end whose deletion the watch has not shown yet, in microseconds: the default of
/// `spec.terminationGracePeriodSeconds`.
const DEFAULT_GRACE_MICROS: i64 = 30_000_000;
/// Doublings of a run that has lasted longer than stated.
const MOST_DOUBLINGS: u32 = 10;

/// Where an expected end comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndSource {
    /// `spec.activeDeadlineSeconds`: the kubelet ends the pod.
    Deadline,
    /// An annotation or label of the pod or its PodGroup.
    Stated,
    /// Earlier pods of its kind: so many.
    Learned(usize),
    /// The pod terminates already: `metadata.deletionTimestamp`, at which its grace period ends.
    Terminating,
}

impl EndSource {
    /// True if it is learned from few runs.
    pub fn is_of_few(self) -> bool {
        matches!(self, Self::Learned(runs) if runs < ENOUGH_RUNS)
    }

    /// Returns the word in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deadline => "deadline",
            Self::Stated => "stated",
            Self::Learned(_) => "learned",
            Self::Terminating => "terminating",
        }
    }
}

/// When a pod is expected to give its node back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedEnd {
    /// Microseconds since 1970.
    pub at_micros: i64,
    /// What says so.
    pub source: EndSource,
}

/// What tells when pods end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpectedEnds {
    /// What was learned of earlier pods.
    pub runs: Arc<LearnedRuns>,
    /// Which of their runs is told.
    pub quantile: RunQuantile,
}

impl ExpectedEnds {
    /// Returns the same with another quantile.
    #[must_use]
    pub fn at(&self, quantile: RunQuantile) -> Self {
        Self { runs: self.runs.clone(), quantile }
    }

    /// Returns when a pod that holds a node is expected to end. Returns `None` if it holds none, or if
    /// nothing says when it ends.
    pub fn end_of(&self, cluster: &Cluster, task: TaskId, now_micros: i64) -> Option<ExpectedEnd> {
        let row = &cluster.tasks[task];
        row.node?;
        if row.status == TaskStatus::Releasing {
            let at_micros = end_of_grace(row, now_micros);
            return Some(ExpectedEnd { at_micros, source: EndSource::Terminating });
        }
        if !row.status.is_allocated() {
            return None;
        }
        // A pod whose start is not known starts now.
        let start = row.started_micros.or(row.scheduled_micros).unwrap_or(now_micros);
        let soft = self.soft_run(cluster, task).and_then(|(run, source)| {
            let at_micros = soft_end(start, run, now_micros)?;
            Some(ExpectedEnd { at_micros, source })
        });
        let deadline = row.stated_run.as_ref().and_then(|stated| stated.deadline_micros);
        let hard = deadline.map(|run| ExpectedEnd {
            at_micros: hard_end(start, run, now_micros),
            source: EndSource::Deadline,
        });
        hard.into_iter().chain(soft).min_by_key(|end| end.at_micros)
    }

    /// Returns how long a pod runs that nobody ends: what is stated comes before what is learned.
    fn soft_run(&self, cluster: &Cluster, task: TaskId) -> Option<(i64, EndSource)> {
        let stated = stated_run(cluster, &cluster.tasks[task], task);
        let stated = stated.map(|run| (run, EndSource::Stated));
        let learned = || self.runs.run_of(cluster, task, self.quantile);
        stated.or_else(|| learned().map(|run| (run.micros, EndSource::Learned(run.runs))))
    }
}

/// Returns when the grace period of a pod that terminates ends. The kubelet enforces it as it does a
/// deadline, so that one that has passed is put off in the same way.
fn end_of_grace(row: &Task, now_micros: i64) -> i64 {
    let deletion = row.stated_run.as_ref().and_then(|stated| stated.deletion_micros);
    let unknown = now_micros.saturating_add(DEFAULT_GRACE_MICROS);
    deletion.map_or(unknown, |end| hard_end(end, 0, now_micros))
}

/// Returns what a pod and its PodGroup state of its run.
fn stated_run(cluster: &Cluster, row: &Task, task: TaskId) -> Option<i64> {
    let own = row.stated_run.as_deref().copied().unwrap_or_default();
    let of_group = cluster.job_of(task).and_then(|job| job.pod_group.as_ref());
    let of_group = of_group.map(|group| StatedRun::of(&group.labels, &group.annotations));
    let of_group = of_group.unwrap_or_default();
    let stated = own.runtime_micros.or(of_group.runtime_micros);
    stated.or(own.max_exec_micros).or(of_group.max_exec_micros)
}

/// Returns the end of a run that is stated. One that has passed is put off by doubling the run.
fn soft_end(start: i64, run: i64, now_micros: i64) -> Option<i64> {
    let ends = (0..=MOST_DOUBLINGS).map(|k| start.saturating_add(run.saturating_mul(1 << k)));
    let mut later = ends.filter(|&end| now_micros < end);
    later.next()
}

/// Returns the end that the kubelet enforces. One that has passed is expected a little later than now.
fn hard_end(start: i64, run: i64, now_micros: i64) -> i64 {
    let end = start.saturating_add(run);
    if now_micros < end { end } else { now_micros.saturating_add(AFTER_DEADLINE_MICROS) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ans_36_overdue_ends_are_put_off() {
        assert_eq!(soft_end(0, 10, 5), Some(10));
        assert_eq!(soft_end(0, 10, 10), Some(20));
        assert_eq!(soft_end(0, 10, 79), Some(80));
        assert_eq!(soft_end(0, 10, 10 << 10), None, "after ten doublings nobody knows");
        assert_eq!(hard_end(0, 10, 5), 10);
        assert_eq!(hard_end(0, 10, 10), 10 + AFTER_DEADLINE_MICROS);
        assert_eq!(soft_end(i64::MAX - 1, 10, 0), Some(i64::MAX));
    }
}
