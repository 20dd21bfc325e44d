//! Series per job: they come with its PodGroup and vanish with the job. Specification: core.md 9.1,
//! 9.2, C-32.

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_engine::{GangState, Sample};

use crate::text;

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_MILLI: f64 = 1_000.0;

/// The jobs by name and namespace: those that share a series (C-32) stand together.
#[derive(Debug, Default)]
pub(crate) struct JobSeriesTable {
    by_name: BTreeMap<(Arc<str>, Arc<str>), JobSeries>,
    /// Sessions whose gangs were counted.
    n_sessions: u64,
}

/// There are as many as jobs: what most of them do not have stands apart.
#[derive(Debug, Default)]
struct JobSeries {
    queue: Arc<str>,
    start_seconds: Option<i64>,
    share: Option<f64>,
    /// Milliseconds to the last place found, and when that was in seconds since 1970.
    placed: Option<Box<(f64, i64)>>,
    /// It was said that it is ready.
    was_ready: bool,
    /// `None`: it was never unready.
    unready: Option<Box<UnreadyJob>>,
}

/// Of a job that is or was unready.
#[derive(Debug, Default)]
struct UnreadyJob {
    /// Members that are missing, 0 once it is ready; `None`: it only has the retries of another job.
    n_missing: Option<i64>,
    /// Of the times that are over.
    n_retries: u64,
    /// The session count when it became unready; `None`: it is not.
    since: Option<u64>,
}

impl JobSeriesTable {
    pub(crate) fn take(&mut self, sample: &Sample) {
        match sample {
            Sample::JobSeen { job, queue, created_micros } => {
                let row = self.row(&job.name, &job.namespace);
                row.queue = queue.clone();
                row.start_seconds = Some(created_micros.div_euclid(MICROS_PER_SECOND));
            }
            Sample::JobPlaced { job, queue, waited_micros, now_micros, .. } => {
                let row = self.row(&job.name, &job.namespace);
                row.queue = queue.clone();
                let millis = *waited_micros as f64 / MICROS_PER_MILLI;
                row.placed = Some(Box::new((millis, now_micros.div_euclid(MICROS_PER_SECOND))));
            }
            Sample::JobShare { job, share } => {
                self.row(&job.name, &job.namespace).share = Some(*share);
            }
            Sample::JobGang { job, state } => {
                let n_sessions = self.n_sessions;
                self.row(&job.name, &job.namespace).gang(*state, n_sessions);
            }
            Sample::UnreadyJobs(_) => self.n_sessions += 1,
            Sample::JobGone(job) => self.remove(&job.name, &job.namespace),
            _ => {}
        }
    }

    fn row(&mut self, name: &Arc<str>, namespace: &Arc<str>) -> &mut JobSeries {
        self.by_name.entry((name.clone(), namespace.clone())).or_default()
    }

    /// A counter that others share does not go down.
    fn remove(&mut self, name: &Arc<str>, namespace: &Arc<str>) {
        let Some(gone) = self.by_name.remove(&(name.clone(), namespace.clone())) else { return };
        let first = (name.clone(), Arc::from(""));
        let next = self.by_name.range_mut(first..).next();
        if let Some((_, heir)) = next.filter(|((other, _), _)| other == name) {
            let n_retries = gone.n_retries(self.n_sessions);
            if 0 < n_retries {
                heir.unready.get_or_insert_default().n_retries += n_retries;
            }
        }
    }

    pub(crate) fn write(&self, out: &mut String) {
        let seconds =
            |of: fn(&JobSeries) -> Option<i64>| move |job: &JobSeries| Some(of(job)? as f64);
        let placed = |job: &JobSeries| Some(job.placed.as_deref()?.0);
        self.write_one(out, "volcano_e2e_job_scheduling_duration", placed, labels);
        let last = seconds(|job| Some(job.placed.as_deref()?.1));
        self.write_one(out, "volcano_e2e_job_scheduling_last_time", last, labels);
        let start = seconds(|job| job.start_seconds);
        self.write_one(out, "volcano_e2e_job_scheduling_start_time", start, labels);
        self.write_one(
            out,
            "volcano_job_share",
            |job| job.share,
            |name, namespace, _| vec![("job_id", name), ("job_ns", namespace)],
        );
        self.write_sums(out, "volcano_unschedule_task_count", |job| Some(job.n_missing()? as f64));
        let n_sessions = self.n_sessions;
        let n_retries = |job: &JobSeries| {
            let n_retries = job.n_retries(n_sessions);
            (0 < n_retries).then_some(n_retries as f64)
        };
        self.write_sums(out, "volcano_job_retry_counts", n_retries);
    }

    fn write_one<'a>(
        &'a self,
        out: &mut String,
        metric: &str,
        value: impl Fn(&JobSeries) -> Option<f64>,
        labels: impl Fn(&'a str, &'a str, &'a JobSeries) -> Vec<(&'static str, &'a str)>,
    ) {
        let mut begun = false;
        for ((name, namespace), job) in &self.by_name {
            let Some(value) = value(job) else { continue };
            if !std::mem::replace(&mut begun, true) {
                text::begin(out, metric);
            }
            text::series(out, metric, &labels(name, namespace, job), value);
        }
    }

    /// One series per name, the sum over the namespaces (C-32).
    fn write_sums<'a>(
        &'a self,
        out: &mut String,
        metric: &str,
        value: impl Fn(&JobSeries) -> Option<f64>,
    ) {
        let named = |((name, _), job): (&'a (Arc<str>, Arc<str>), &'a JobSeries)| {
            Some((&**name, value(job)?))
        };
        let mut series = self.by_name.iter().filter_map(named).peekable();
        if series.peek().is_some() {
            text::begin(out, metric);
        }
        while let Some((name, mut sum)) = series.next() {
            while let Some((_, value)) = series.next_if(|&(other, _)| other == name) {
                sum += value;
            }
            text::series(out, metric, &[("job_id", name)], sum);
        }
    }
}

fn labels<'a>(
    name: &'a str,
    namespace: &'a str,
    job: &'a JobSeries,
) -> Vec<(&'static str, &'a str)> {
    vec![("job_name", name), ("job_namespace", namespace), ("queue", &job.queue)]
}

impl JobSeries {
    /// Told only when it changes; the sessions in between are counted when somebody looks.
    fn gang(&mut self, state: GangState, n_sessions: u64) {
        let unready = match state {
            GangState::Unready(n_missing) => {
                let unready = self.unready.get_or_insert_default();
                unready.n_missing = Some(n_missing);
                unready.since.get_or_insert(n_sessions);
                return;
            }
            GangState::Ready => {
                self.was_ready = true;
                let Some(unready) = &mut self.unready else { return };
                unready.n_missing = Some(0);
                unready
            }
            GangState::Unsaid => {
                let Some(unready) = &mut self.unready else { return };
                unready
            }
        };
        let since = unready.since.take();
        unready.n_retries += since.map_or(0, |since| n_sessions - since);
    }

    /// `None`: nothing was said.
    fn n_missing(&self) -> Option<i64> {
        let n_missing = self.unready.as_ref().and_then(|unready| unready.n_missing);
        n_missing.or(self.was_ready.then_some(0))
    }

    fn n_retries(&self, n_sessions: u64) -> u64 {
        let of = |it: &UnreadyJob| it.n_retries + it.since.map_or(0, |since| n_sessions - since);
        self.unready.as_deref().map_or(0, of)
    }
}
