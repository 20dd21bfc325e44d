//! The jobs of a soak and when they arrive: evenly, with a burst at regular distances that does not fit
//! at once, so that a backlog comes and goes.

use std::time::Duration;

use super::{SoakError, SoakOptions};
use crate::rng::Rng;

/// Cpu of a node.
pub(super) const NODE_CPUS: u64 = 32;
/// Queues with their weights.
pub(super) const QUEUES: [(&str, u64); 4] = [("default", 1), ("q1", 2), ("q2", 3), ("q3", 4)];

/// Mean part of the cpu that is in use, without pods that run again after an eviction.
const FILL: f64 = 0.80;
/// Cpu that is asked for at the height of a burst, as a part of all.
const PEAK: f64 = 1.0;
/// Mean times of a pod between two bursts, at least: when one begins, the pods of the last are gone.
const BURST_DISTANCE: f64 = 1.5;
/// Bursts in a tenth of the time, at most. A cycle with a backlog costs several times one without.
const MOST_BURSTS: f64 = 5.0;
/// Shortest mean time of a pod in seconds. A shorter one is mostly spent on starting and ending.
const LEAST_SECONDS: f64 = 5.0;
/// Numbers of pods of a gang, as far as the cluster has as many nodes.
const SIZES: [u64; 8] = [1, 1, 2, 3, 4, 8, 16, 32];
/// One of so many jobs is urgent.
const URGENT_EVERY: u64 = 50;
/// Cpu of a pod in thousandths.
const CPU_MILLI: [u64; 4] = [500, 1_000, 1_000, 2_000];
/// Mean of [`CPU_MILLI`].
const MEAN_CPU_MILLI: f64 = 1_125.0;

/// A job of equal pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SoakJob {
    pub(super) name: String,
    pub(super) queue: &'static str,
    pub(super) pods: u64,
    pub(super) min: u64,
    pub(super) cpu_milli: u64,
    /// Whole seconds, as jobs arrive at whole seconds too: what ends at once is seen in one cycle.
    pub(super) run_seconds: u64,
    pub(super) is_urgent: bool,
}

/// When how many pods arrive, and of what jobs.
#[derive(Debug)]
pub(super) struct ArrivalPlan {
    rng: Rng,
    /// Those of [`SIZES`] that gangs have.
    sizes: Vec<u64>,
    /// Kinds of jobs in the order in which they come, the next one last. Empty: each kind has come, and they
    /// are shuffled anew.
    upcoming: Vec<JobKind>,
    mean_run: f64,
    /// Seconds from burst to burst. A whole number of them fits into a tenth of the time, so that the load
    /// is that of the same moment of another tenth.
    period: f64,
    pods_per_period: f64,
    /// Part of the pods that arrives in bursts. 0 if a tenth of the time is too short for one.
    burst: f64,
    n_jobs: u64,
    n_pods: u64,
}

impl ArrivalPlan {
    pub(super) fn new(options: &SoakOptions) -> Result<Self, SoakError> {
        let &SoakOptions { nodes, time, pods, seed, .. } = options;
        let seconds = time.as_secs_f64();
        let capacity = f64::from(nodes) * NODE_CPUS as f64 * 1_000.0 / MEAN_CPU_MILLI;
        let mean_run = FILL * capacity * seconds / pods as f64;
        if mean_run < LEAST_SECONDS {
            let hours = seconds / 3_600.0;
            return Err(SoakError::ShortRuns {
                pods,
                hours,
                nodes,
                seconds: mean_run,
                least: LEAST_SECONDS,
            });
        }
        let tenth = seconds / 10.0;
        let n_periods = (tenth / (BURST_DISTANCE * mean_run)).floor().min(MOST_BURSTS);
        let period = tenth / n_periods.max(1.0);
        let pods_per_period = pods as f64 * period / seconds;
        // Between bursts the load is that of the other pods: of all, less those of bursts on average.
        let of_burst = (PEAK - FILL) / (1.0 - mean_run / period);
        let burst = if 1.0 <= n_periods { of_burst * capacity / pods_per_period } else { 0.0 };
        let rng = Rng::new(seed);
        let sizes = SIZES.into_iter().filter(|&pods| pods <= u64::from(nodes)).collect();
        Ok(Self {
            rng,
            sizes,
            upcoming: Vec::new(),
            mean_run,
            period,
            pods_per_period,
            burst,
            n_jobs: 0,
            n_pods: 0,
        })
    }

    /// Returns the number of pods that have arrived after this time.
    fn planned(&self, passed: Duration) -> f64 {
        let periods = passed.as_secs_f64() / self.period;
        let part = self.burst + (1.0 - self.burst) * periods.fract();
        self.pods_per_period * (periods.floor() + part)
    }

    /// Returns the jobs that arrive at this time, with at most about so many pods.
    pub(super) fn due(&mut self, passed: Duration, most_pods: u64) -> Vec<SoakJob> {
        let planned = self.planned(passed);
        let end = self.n_pods.saturating_add(most_pods);
        let mut jobs = Vec::new();
        while (self.n_pods as f64) < planned && self.n_pods < end {
            let job = self.draw();
            self.n_pods += job.pods;
            jobs.push(job);
        }
        jobs
    }

    /// Returns the next job. Each kind of job comes equally often, so that the load varies little.
    fn draw(&mut self) -> SoakJob {
        if self.upcoming.is_empty() {
            self.upcoming = job_kinds(&self.sizes);
            self.rng.shuffle(&mut self.upcoming);
        }
        let (pods, cpu_milli, queue) =
            self.upcoming.pop().unwrap_or((1, CPU_MILLI[0], QUEUES[0].0));
        self.n_jobs += 1;
        let is_elastic = 1 < pods && self.rng.happens(250);
        // From half to one and a half of the mean, in equal parts (multiples of the golden ratio).
        let part = (self.n_jobs as f64 * 0.618_033_988_749_894_9).fract();
        SoakJob {
            name: format!("job-{}", self.n_jobs),
            queue,
            pods,
            min: if is_elastic { pods / 2 } else { pods },
            cpu_milli,
            run_seconds: (self.mean_run * (0.5 + part)).round() as u64,
            is_urgent: self.n_jobs.is_multiple_of(URGENT_EVERY),
        }
    }
}

/// Pods, cpu of each, and queue of a job.
type JobKind = (u64, u64, &'static str);

/// Returns each kind of job, in queues with larger weights more often.
fn job_kinds(sizes: &[u64]) -> Vec<JobKind> {
    let n_places: u64 = QUEUES.iter().map(|(_, weight)| weight).sum();
    let of_size = |&pods: &u64| {
        let of_cpu = move |cpu| (0..n_places).map(move |place| (pods, cpu, queue_at(place)));
        CPU_MILLI.into_iter().flat_map(of_cpu)
    };
    sizes.iter().flat_map(of_size).collect()
}

/// Returns the queue at a place among as many places as the weights together. Each queue has as much load
/// as its weight says, so that few pods are reclaimed.
fn queue_at(place: u64) -> &'static str {
    let mut first = 0;
    let is_it = |(_, weight): &&(&str, u64)| {
        first += weight;
        place < first
    };
    QUEUES.iter().find(is_it).map_or(QUEUES[0].0, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> SoakOptions {
        let time = Duration::from_secs(7_200);
        SoakOptions { nodes: 50, time, pods: 20_000, seed: 1, samples: 20 }
    }

    #[test]
    fn all_pods_arrive_and_a_burst_begins_each_period() {
        let mut plan = ArrivalPlan::new(&options()).unwrap();
        let burst: u64 = plan.due(Duration::ZERO, u64::MAX).iter().map(|job| job.pods).sum();
        let wanted = plan.pods_per_period * plan.burst;
        assert!((wanted..wanted + 32.0).contains(&(burst as f64)), "{burst} of {wanted}");
        let end = options().time - Duration::from_secs(1);
        let rest: u64 = plan.due(end, u64::MAX).iter().map(|job| job.pods).sum();
        assert!((19_900..20_050).contains(&(burst + rest)), "{}", burst + rest);
    }

    #[test]
    fn few_pods_arrive_at_once() {
        let mut plan = ArrivalPlan::new(&options()).unwrap();
        let first: u64 = plan.due(Duration::ZERO, 10).iter().map(|job| job.pods).sum();
        assert!((10..10 + 32).contains(&first), "{first}");
    }

    #[test]
    fn queues_have_load_by_their_weights() {
        let count = |name| (0..10).filter(|place| queue_at(*place) == name).count() as u64;
        assert_eq!(QUEUES.map(|(name, _)| count(name)), QUEUES.map(|(_, weight)| weight));
    }

    #[test]
    fn each_kind_of_job_comes_equally_often() {
        let mut plan = ArrivalPlan::new(&options()).unwrap();
        let jobs: Vec<SoakJob> = (0..2 * 320).map(|_| plan.draw()).collect();
        let of = |jobs: &[SoakJob]| jobs.iter().map(|it| it.pods * it.cpu_milli).sum::<u64>();
        assert_eq!(of(&jobs[..320]), of(&jobs[320..]));
        let n_urgent = jobs.iter().filter(|job| job.is_urgent).count();
        assert_eq!(n_urgent, 640 / 50);
    }

    #[test]
    fn runs_that_are_too_short_are_refused() {
        let options = SoakOptions { pods: 10_000_000, ..options() };
        let error = ArrivalPlan::new(&options).unwrap_err().to_string();
        assert!(error.contains("on 50 nodes would run 0."), "{error}");
    }
}
