//! Computes figures of a story in a closed world: how long jobs waited, and how full the cluster was.
//! Specification: answers.md 15 (ANS-106).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_model::{Cluster, Job, JobId, PodGroupPhase, TaskId, TaskStatus};
use vc_resource::{Dim, Resource};

/// Runs are taken for at least this long in slowdowns, so that short jobs do not decide the mean.
const SHORT_RUN_MICROS: i64 = 10_000_000;
/// One job in so many is left out at the begin and at the end of the order in which they came.
const LEFT_OUT: usize = 100;

/// Figures of a story. Times are in microseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClosedFigures {
    /// Pods that got a node.
    pub n_binds: u64,
    /// Pods that were evicted.
    pub n_evictions: u64,
    /// Jobs that started.
    pub n_started: usize,
    /// Jobs that wait at the end.
    pub n_waiting: usize,
    /// Times from a job's creation to its first bind, over the jobs that started.
    pub waits: WaitTimes,
    /// Mean of (wait + run) / run, over jobs whose run is known. `None`: there is none.
    pub mean_slowdown: Option<f64>,
    /// Part of the cpu that pods held, from 0 to 1. `None`: there was no cpu, or no time passed.
    pub utilisation: Option<f64>,
    /// Jobs that came later and started before a job: the mean and the most.
    pub mean_overtaken: f64,
    /// The most jobs that overtook one.
    pub most_overtaken: usize,
}

/// Mean and percentiles of the times that jobs waited, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitTimes {
    /// Mean.
    pub mean: i64,
    /// At least half of the times are no longer.
    pub median: i64,
    /// 95 % of the times are no longer.
    pub p95: i64,
    /// 99 % of the times are no longer.
    pub p99: i64,
    /// The longest.
    pub max: i64,
}

/// A job that started.
#[derive(Clone, Debug)]
struct StartedJob {
    created_micros: i64,
    started_micros: i64,
    /// The longest run of its pods that is known.
    run_micros: Option<i64>,
}

/// Notes from which figures are made.
#[derive(Debug, Default)]
pub(super) struct FigureNotes {
    pub(super) n_binds: u64,
    pub(super) n_evictions: u64,
    /// Jobs that had started before the story.
    left_out: BTreeSet<Arc<str>>,
    started: BTreeMap<Arc<str>, StartedJob>,
    /// Cpu that pods held, and that nodes had, in milli cpu times microseconds.
    held_cpu_micros: f64,
    allocatable_cpu_micros: f64,
}

impl FigureNotes {
    /// Leaves out these jobs, which have started already.
    pub(super) fn leave_out(&mut self, cluster: &Cluster, jobs: &[JobId]) {
        self.left_out.extend(jobs.iter().map(|&job| id_of(cluster, &cluster.jobs[job])));
    }

    /// Takes note of a pod that got its node, and runs for so long as far as is known. `begin_micros`: the beginning of
    /// the story, for jobs without a time of creation.
    pub(super) fn note_start(
        &mut self,
        (cluster, task): (&Cluster, TaskId),
        begin_micros: i64,
        now_micros: i64,
        run_micros: Option<i64>,
    ) {
        let Some(job) = cluster.tasks[task].job.map(|job| &cluster.jobs[job]) else { return };
        let id = id_of(cluster, job);
        if self.left_out.contains(&id) {
            return;
        }
        let started = self.started.entry(id).or_insert_with(|| {
            let created_micros = created_micros(cluster, job).unwrap_or(begin_micros);
            StartedJob { created_micros, started_micros: now_micros, run_micros: None }
        });
        started.run_micros = started.run_micros.max(run_micros);
    }

    /// Takes note of so much time that passes with this state.
    pub(super) fn note_time(&mut self, cluster: &Cluster, micros: i64) {
        let nodes = cluster.nodes.iter().filter(|(_, node)| node.present);
        let (held, allocatable) = nodes.fold((0_i128, 0_i128), |(held, allocatable), (_, node)| {
            let cpu = |amounts: &Resource| i128::from(amounts.get(Dim::CPU));
            (held + cpu(&node.used), allocatable + cpu(&node.allocatable))
        });
        self.held_cpu_micros += held as f64 * micros as f64;
        self.allocatable_cpu_micros += allocatable as f64 * micros as f64;
    }

    /// Returns the figures. `cluster`: the state at the end.
    pub(super) fn figures(&self, cluster: &Cluster) -> ClosedFigures {
        let is_waiting = |job: &&Job| {
            let id = id_of(cluster, job);
            waits(job) && !self.started.contains_key(&id) && !self.left_out.contains(&id)
        };
        let n_waiting = cluster.jobs.iter().map(|(_, job)| job).filter(is_waiting).count();
        let mut jobs: Vec<&StartedJob> = self.started.values().collect();
        jobs.sort_by_key(|job| (job.created_micros, job.started_micros));
        let margin = jobs.len() / LEFT_OUT;
        let jobs = &jobs[margin..jobs.len() - margin];
        let overtaken = overtaken(jobs);
        ClosedFigures {
            n_binds: self.n_binds,
            n_evictions: self.n_evictions,
            n_started: self.started.len(),
            n_waiting,
            waits: WaitTimes::of(jobs.iter().map(|job| job.wait()).collect()),
            mean_slowdown: mean(jobs.iter().filter_map(|job| job.slowdown())),
            utilisation: (0.0 < self.allocatable_cpu_micros)
                .then(|| self.held_cpu_micros / self.allocatable_cpu_micros),
            mean_overtaken: mean(overtaken.iter().map(|&count| count as f64)).unwrap_or(0.0),
            most_overtaken: overtaken.iter().copied().max().unwrap_or(0),
        }
    }
}

/// Returns what tells a job from another one of its name: the UID of its PodGroup, or its key.
fn id_of(cluster: &Cluster, job: &Job) -> Arc<str> {
    let uid = job.pod_group.as_ref().map(|group| group.uid.clone());
    let first = || job.tasks.first().map(|&task| cluster.tasks[task].uid.clone());
    uid.filter(|uid| !uid.is_empty()).or_else(first).unwrap_or_default()
}

/// Returns when a job was created: its PodGroup, else its first pod. `None`: it does not say.
fn created_micros(cluster: &Cluster, job: &Job) -> Option<i64> {
    let group = job.pod_group.as_ref().map(|group| group.created_micros);
    let pods = job.tasks.iter().map(|&task| cluster.tasks[task].created_micros);
    group.filter(|created| 0 < *created).or_else(|| pods.filter(|created| 0 < *created).min())
}

/// True if a pod of the job is pending, or the job waits until it is admitted and has no pods yet.
fn waits(job: &Job) -> bool {
    let is_pending = |phase| phase == PodGroupPhase::Pending;
    let group = job.pod_group.as_ref().filter(|_| job.tasks.is_empty());
    0 < job.counts.of(TaskStatus::Pending) || group.is_some_and(|it| is_pending(it.status.phase))
}

impl StartedJob {
    fn wait(&self) -> i64 {
        self.started_micros.saturating_sub(self.created_micros).max(0)
    }

    fn slowdown(&self) -> Option<f64> {
        let run = self.run_micros?;
        Some((self.wait().saturating_add(run) as f64 / run.max(SHORT_RUN_MICROS) as f64).max(1.0))
    }
}

impl WaitTimes {
    fn of(mut times: Vec<i64>) -> Self {
        times.sort_unstable();
        let at = |percent: usize| {
            let place = (times.len() * percent).div_ceil(100).saturating_sub(1);
            times.get(place).copied().unwrap_or(0)
        };
        let sum: i128 = times.iter().copied().map(i128::from).sum();
        let mean = sum.checked_div(times.len() as i128).unwrap_or(0);
        Self {
            mean: i64::try_from(mean).unwrap_or(i64::MAX),
            median: at(50),
            p95: at(95),
            p99: at(99),
            max: at(100),
        }
    }
}

/// Returns for each job, in the order in which they came, how many that came later started before it.
fn overtaken(jobs: &[&StartedJob]) -> Vec<usize> {
    let mut later: Vec<i64> = Vec::with_capacity(jobs.len());
    let mut counts: Vec<usize> = { jobs.iter().rev() }
        .map(|job| {
            let count = later.partition_point(|&started| started < job.started_micros);
            later.insert(count, job.started_micros);
            count
        })
        .collect();
    counts.reverse();
    counts
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    (0 < count).then(|| sum / f64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_spread_by_rank() {
        let spread = WaitTimes::of((1..=200).rev().collect());
        assert_eq!(spread, WaitTimes { mean: 100, median: 100, p95: 190, p99: 198, max: 200 });
        assert_eq!(
            WaitTimes::of(vec![7]),
            WaitTimes { mean: 7, median: 7, p95: 7, p99: 7, max: 7 }
        );
        assert_eq!(WaitTimes::of(Vec::new()), WaitTimes::default());
    }

    #[test]
    fn those_that_came_later_and_started_before_are_counted() {
        let job = |created_micros, started_micros| StartedJob {
            created_micros,
            started_micros,
            run_micros: None,
        };
        let jobs = [job(0, 50), job(1, 10), job(2, 50), job(3, 20)];
        assert_eq!(overtaken(&jobs.iter().collect::<Vec<_>>()), [2, 0, 1, 0]);
    }

    #[test]
    fn short_runs_do_not_decide_the_slowdown() {
        let job =
            |run| StartedJob { created_micros: 0, started_micros: 10_000_000, run_micros: run };
        assert_eq!(job(None).slowdown(), None);
        assert_eq!(job(Some(10_000_000)).slowdown(), Some(2.0));
        assert_eq!(job(Some(1_000_000)).slowdown(), Some(1.1));
    }
}
