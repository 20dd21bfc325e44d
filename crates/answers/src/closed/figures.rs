//! What a story in a closed world comes to: how long jobs waited, and how full the cluster was.
//! Specification: answers.md 15 (ANS-106).

use std::collections::BTreeMap;

use vc_model::{Cluster, Job, ObjectKey, TaskStatus};
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
    pub waits: Spread,
    /// Mean of (wait + run) / run, over jobs whose run is known. `None`: there is none.
    pub mean_slowdown: Option<f64>,
    /// Part of the cpu that pods held, from 0 to 1. `None`: there was no cpu, or no time passed.
    pub utilisation: Option<f64>,
    /// Jobs that came later and started before a job: the mean and the most.
    pub mean_overtaken: f64,
    /// The most jobs that overtook one.
    pub most_overtaken: usize,
}

/// How times are spread, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
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
pub(super) struct Notes {
    pub(super) n_binds: u64,
    pub(super) n_evictions: u64,
    started: BTreeMap<ObjectKey, StartedJob>,
    held: f64,
    there: f64,
}

impl Notes {
    /// A pod of this job got its node, and runs for so long as far as is known.
    pub(super) fn starts(
        &mut self,
        job: &ObjectKey,
        (created_micros, now_micros): (i64, i64),
        run_micros: Option<i64>,
    ) {
        let new = StartedJob { created_micros, started_micros: now_micros, run_micros: None };
        let job = self.started.entry(job.clone()).or_insert(new);
        job.run_micros = job.run_micros.max(run_micros);
    }

    /// So much time passes with this state.
    pub(super) fn pass(&mut self, cluster: &Cluster, micros: i64) {
        let nodes = cluster.nodes.iter().filter(|(_, node)| node.present);
        let cpu = nodes.fold((0_i128, 0_i128), |(held, there), (_, node)| {
            let part = |amounts: &Resource| i128::from(amounts.get(Dim::CPU));
            (held + part(&node.used), there + part(&node.allocatable))
        });
        self.held += cpu.0 as f64 * micros as f64;
        self.there += cpu.1 as f64 * micros as f64;
    }

    /// Returns the figures. `cluster`: the state at the end.
    pub(super) fn figures(&self, cluster: &Cluster) -> ClosedFigures {
        let is_waiting = |job: &&Job| {
            let n_pending = job.counts.of(TaskStatus::Pending);
            0 < n_pending && !self.started.contains_key(&job.key)
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
            waits: Spread::of(jobs.iter().map(|job| job.wait()).collect()),
            mean_slowdown: mean(jobs.iter().filter_map(|job| job.slowdown())),
            utilisation: (0.0 < self.there).then(|| self.held / self.there),
            mean_overtaken: mean(overtaken.iter().map(|&count| count as f64)).unwrap_or(0.0),
            most_overtaken: overtaken.iter().copied().max().unwrap_or(0),
        }
    }
}

impl StartedJob {
    fn wait(&self) -> i64 {
        (self.started_micros - self.created_micros).max(0)
    }

    fn slowdown(&self) -> Option<f64> {
        let run = self.run_micros?;
        Some(((self.wait() + run) as f64 / run.max(SHORT_RUN_MICROS) as f64).max(1.0))
    }
}

impl Spread {
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
        let spread = Spread::of((1..=200).rev().collect());
        assert_eq!(spread, Spread { mean: 100, median: 100, p95: 190, p99: 198, max: 200 });
        assert_eq!(Spread::of(vec![7]), Spread { mean: 7, median: 7, p95: 7, p99: 7, max: 7 });
        assert_eq!(Spread::of(Vec::new()), Spread::default());
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
