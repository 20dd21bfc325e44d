//! Run times of pods that have ended, by which those of later ones are told. Specification:
//! answers.md 7 (ANS-36, ANS-37).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use vc_model::{Cluster, ClusterEvent, PodPhase, PodRecord, RunTemplate, Task, TaskId};
use vc_resource::{Dim, Resource};

/// Runs that are kept of each kind: few and recent ones tell more than many old ones.
const MOST_RUNS: usize = 16;
/// Kinds that are kept; beyond, the one used least lately is forgotten.
const MOST_KINDS: usize = 4_096;
/// Runs without which nothing is told.
const FEWEST_RUNS: usize = 2;
/// Runs below which the smallest and the largest stand for the tenth parts.
pub(crate) const ENOUGH_RUNS: usize = 5;

/// Which of the runs of a kind is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunQuantile {
    /// A tenth of the runs are shorter.
    Short,
    /// Half of the runs are shorter.
    #[default]
    Median,
    /// A tenth of the runs are longer.
    Long,
}

/// A run time that is told by earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearnedRun {
    /// Microseconds.
    pub micros: i64,
    /// The number of runs that tell it.
    pub runs: usize,
}

/// Pods whose run times are alike: of one template, in one namespace, with equal requests.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RunKind {
    namespace: Arc<str>,
    template: Arc<str>,
    /// Amounts that are not 0.
    request: Vec<(Dim, i64)>,
}

/// The last runs of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct KnownRuns {
    /// Microseconds, the oldest one first.
    micros: VecDeque<i64>,
    /// When the last one was added, as a number that grows.
    used: u64,
}

/// What is known of run times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LearnedRuns {
    kinds: BTreeMap<RunKind, KnownRuns>,
    n_learned: u64,
}

impl LearnedRuns {
    /// True if a pod ends successfully with one of the events.
    pub(crate) fn tell(events: &[ClusterEvent]) -> bool {
        events.iter().any(|event| ended(event).is_some())
    }

    /// Learns from pods that end successfully with these events. It must see them before the cluster
    /// does.
    pub fn learn(&mut self, cluster: &Cluster, events: &[ClusterEvent], now_micros: i64) {
        let mut learned = BTreeSet::new();
        for pod in events.iter().filter_map(ended) {
            // Nobody knows when a pod has ended that was not seen with a node.
            let Some(task) = cluster.task(&pod.uid) else { continue };
            let row = &cluster.tasks[task];
            let start = pod.started_micros.or(row.started_micros).or(row.scheduled_micros);
            let run = start.map(|start| now_micros.saturating_sub(start)).filter(|&run| 0 < run);
            let has_run = row.status.is_allocated() && !row.evicting;
            // Several events may tell of the same end.
            if let Some(run) = run.filter(|_| has_run && learned.insert(task)) {
                self.add(cluster, task, run);
            }
        }
    }

    fn add(&mut self, cluster: &Cluster, task: TaskId, micros: i64) {
        let Some(kind) = kind_of(cluster, task) else { return };
        if !self.kinds.contains_key(&kind) && MOST_KINDS <= self.kinds.len() {
            let oldest = self.kinds.iter().min_by_key(|(_, known)| known.used);
            if let Some(oldest) = oldest.map(|(kind, _)| kind.clone()) {
                self.kinds.remove(&oldest);
            }
        }
        self.n_learned += 1;
        let known = self.kinds.entry(kind).or_default();
        known.used = self.n_learned;
        known.micros.push_back(micros);
        if MOST_RUNS < known.micros.len() {
            known.micros.pop_front();
        }
    }

    /// Returns how long a pod runs, by earlier pods of its kind. `of_group` is the template of its PodGroup. Returns
    /// `None` if too few pods of the kind have ended.
    pub(crate) fn run_of_pod(
        &self,
        cluster: &Cluster,
        (pod, of_group): (&Task, Option<&RunTemplate>),
        quantile: RunQuantile,
    ) -> Option<LearnedRun> {
        let known = self.kinds.get(&kind_of_pod(cluster, pod, of_group)?)?;
        let runs = known.micros.len();
        if runs < FEWEST_RUNS {
            return None;
        }
        let mut micros: Vec<i64> = known.micros.iter().copied().collect();
        micros.sort_unstable();
        Some(LearnedRun { micros: micros[place(quantile, runs) - 1], runs })
    }

    /// Returns how many runs were learned, with those that are forgotten.
    pub(crate) fn n_learned(&self) -> u64 {
        self.n_learned
    }

    /// True if nothing was learned.
    pub(crate) fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }
}

/// Returns the pod that has ended successfully by itself. Returns `None` for other events.
fn ended(event: &ClusterEvent) -> Option<&PodRecord> {
    let (ClusterEvent::PodApplied(pod) | ClusterEvent::PodRead { pod, .. }) = event else {
        return None;
    };
    (pod.phase == PodPhase::Succeeded && !pod.evicted_by_scheduler).then_some(pod)
}

/// Returns the place of a quantile among so many values in ascending order, from 1.
fn place(quantile: RunQuantile, n: usize) -> usize {
    match quantile {
        RunQuantile::Median => n.div_ceil(2),
        RunQuantile::Short if n < ENOUGH_RUNS => 1,
        RunQuantile::Long if n < ENOUGH_RUNS => n,
        RunQuantile::Short => n.div_ceil(10),
        RunQuantile::Long => (9 * n).div_ceil(10),
    }
}

fn kind_of(cluster: &Cluster, task: TaskId) -> Option<RunKind> {
    let of_group = cluster.job_of(task).and_then(|job| job.pod_group.as_ref()?.run_template());
    kind_of_pod(cluster, &cluster.tasks[task], of_group.as_ref())
}

/// Returns the kind of a pod whose PodGroup has this template. Returns `None` if neither has one.
fn kind_of_pod(cluster: &Cluster, pod: &Task, of_group: Option<&RunTemplate>) -> Option<RunKind> {
    let template = RunTemplate::chosen(of_group, pod.run_template.as_deref())?;
    Some(RunKind {
        namespace: pod.key.namespace.clone(),
        template: template.name.clone(),
        request: amounts(&cluster.classes[pod.class].request),
    })
}

fn amounts(request: &Resource) -> Vec<(Dim, i64)> {
    let amounts = request.dims().map(|dim| (dim, request.get(dim)));
    amounts.filter(|&(_, amount)| amount != 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ans_41_places_of_quantiles() {
        let places =
            |n| [RunQuantile::Short, RunQuantile::Median, RunQuantile::Long].map(|it| place(it, n));
        assert_eq!(places(2), [1, 1, 2]);
        assert_eq!(places(3), [1, 2, 3]);
        assert_eq!(places(4), [1, 2, 4]);
        assert_eq!(places(5), [1, 3, 5]);
        assert_eq!(places(10), [1, 5, 9]);
        assert_eq!(places(12), [2, 6, 11]);
        assert_eq!(places(16), [2, 8, 15]);
    }
}
