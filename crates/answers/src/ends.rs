//! Expected ends of pods, from what their objects state and from the runs of earlier pods.
//! Specification: answers.md 7 (ANS-36).

use std::cell::OnceCell;
use std::sync::Arc;

use vc_model::{
    ClassId, Cluster, JobId, PodGroup, RunTemplate, StatedRun, Task, TaskId, TaskStatus,
};

use crate::learned_runs::{ENOUGH_RUNS, LearnedRun, LearnedRuns, RunQuantile};

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
        EndLookup::new(cluster, self, now_micros).end_of(&cluster.tasks[task])
    }
}

/// Look-up of expected ends, pod after pod. What a PodGroup states is read once for pods of one job in a row. What was
/// learned is looked up once for pods in a row that are of one kind.
pub(crate) struct EndLookup<'a> {
    cluster: &'a Cluster,
    ends: &'a ExpectedEnds,
    now_micros: i64,
    /// The job of the last pod that runs, with what is known of its runs.
    of_job: JobRuns<'a>,
}

/// Known runs of the pods of one job: what its PodGroup states, and what was learned.
#[derive(Default)]
struct JobRuns<'a> {
    /// `None` stands for pods without a job.
    job: Option<JobId>,
    group: Option<&'a PodGroup>,
    /// What the PodGroup states. Empty until a pod needs it, as the template is.
    stated: OnceCell<StatedRun>,
    template: OnceCell<Option<RunTemplate>>,
    /// What was learned of the kind of the last pod that needed it.
    learned: Option<KindRun<'a>>,
}

/// The learned run of a kind of pods, with the fields of one of them by which others are compared.
struct KindRun<'a> {
    namespace: &'a Arc<str>,
    class: ClassId,
    template: Option<&'a Arc<RunTemplate>>,
    /// `None`: nothing.
    run: Option<LearnedRun>,
}

impl<'a> EndLookup<'a> {
    /// Returns a look-up that has read nothing yet.
    pub(crate) fn new(cluster: &'a Cluster, ends: &'a ExpectedEnds, now_micros: i64) -> Self {
        Self { cluster, ends, now_micros, of_job: JobRuns::default() }
    }

    /// Returns the end of a pod of the cluster, as [`ExpectedEnds::end_of`] does.
    pub(crate) fn end_of(&mut self, row: &'a Task) -> Option<ExpectedEnd> {
        row.node?;
        let now_micros = self.now_micros;
        if row.status == TaskStatus::Releasing {
            let at_micros = end_of_grace(row, now_micros);
            return Some(ExpectedEnd { at_micros, source: EndSource::Terminating });
        }
        if !row.status.is_allocated() {
            return None;
        }
        // A pod whose start is not known starts now.
        let start = row.started_micros.or(row.scheduled_micros).unwrap_or(now_micros);
        let soft = self.soft_run(row).and_then(|(run, source)| {
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
    fn soft_run(&mut self, row: &'a Task) -> Option<(i64, EndSource)> {
        let cluster = self.cluster;
        if self.of_job.job != row.job {
            let group = row.job.and_then(|job| cluster.jobs[job].pod_group.as_ref());
            self.of_job = JobRuns { job: row.job, group, ..JobRuns::default() };
        }
        if let Some(run) = self.of_job.stated_run(row) {
            return Some((run, EndSource::Stated));
        }
        let learned = self.of_job.learned_run((cluster, self.ends), row);
        learned.map(|run| (run.micros, EndSource::Learned(run.runs)))
    }
}

impl<'a> JobRuns<'a> {
    /// Returns what a pod and its PodGroup state of its run.
    fn stated_run(&self, row: &Task) -> Option<i64> {
        let own = row.stated_run.as_deref().copied().unwrap_or_default();
        let read = |group: &PodGroup| StatedRun::of(&group.labels, &group.annotations);
        let of_group = self.stated.get_or_init(|| self.group.map(read).unwrap_or_default());
        let stated = own.runtime_micros.or(of_group.runtime_micros);
        stated.or(own.max_exec_micros).or(of_group.max_exec_micros)
    }

    /// Returns what was learned of pods like this one.
    fn learned_run(
        &mut self,
        (cluster, ends): (&Cluster, &ExpectedEnds),
        row: &'a Task,
    ) -> Option<LearnedRun> {
        if ends.runs.is_empty() {
            return None;
        }
        let (namespace, template) = (&row.key.namespace, row.run_template.as_ref());
        if let Some(known) = &self.learned
            && (known.namespace, known.template) == (namespace, template)
            && have_one_shape(cluster, known.class, row.class)
        {
            return known.run;
        }
        let of_group = self.template.get_or_init(|| self.group.and_then(PodGroup::run_template));
        let run = ends.runs.run_of_pod(cluster, (row, of_group.as_ref()), ends.quantile);
        self.learned = Some(KindRun { namespace, class: row.class, template, run });
        run
    }
}

/// True if pods of these classes ask for the same, among other things.
fn have_one_shape(cluster: &Cluster, one: ClassId, other: ClassId) -> bool {
    one == other || cluster.classes.shape_id(one) == cluster.classes.shape_id(other)
}

/// Returns when the grace period of a pod that terminates ends. The kubelet enforces it as it does a
/// deadline, so that one that has passed is put off in the same way.
fn end_of_grace(row: &Task, now_micros: i64) -> i64 {
    let deletion = row.stated_run.as_ref().and_then(|stated| stated.deletion_micros);
    let unknown = now_micros.saturating_add(DEFAULT_GRACE_MICROS);
    deletion.map_or(unknown, |end| hard_end(end, 0, now_micros))
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
    use std::collections::BTreeSet;

    use vc_model::fixture::{self, START_MICROS, task};

    use super::*;

    /// What is kept of one pod changes the end of no other one. Jobs, namespaces, templates and requests alternate.
    #[test]
    fn ans_36_ends_of_neighbours_are_those_of_each_pod_alone() {
        let text = "queue default\nnode n1 cpu=64
            job a owner=etl-12 running
             task a cpu=1 @n1 running started=0
             task b cpu=1 @n1 running started=60
             task c cpu=2 @n1 running started=0
             task d cpu=2 @n1 running started=60
             task e cpu=1 @n1 releasing
             task f cpu=1 @n1 running started=60
            job b owner=etl-12 running annotation.reservation.volcano.sh/runtime=1h
             task a cpu=1 @n1 running started=0
             task b cpu=1 @n1 running started=7000 deadline=600
            job ml/a owner=etl-12 running
             task a cpu=1 @n1 running started=600
            pod alone owner=etl-12 cpu=1 @n1 running started=0
            pod ml/alone owner=etl-12 cpu=1 @n1 running started=600
            pod other owner=web-12 cpu=1 @n1 running started=0
            pod last owner=etl-12 cpu=1 @n1 running started=0";
        let (cluster, now_micros) = (fixture::cluster(text), START_MICROS + 7_200_000_000);
        let ended = fixture::events_of(&text.replace("@n1 running", "@n1 succeeded"));
        let mut runs = LearnedRuns::default();
        runs.learn(&cluster, &ended, now_micros);
        let ends = ExpectedEnds { runs: Arc::new(runs), ..ExpectedEnds::default() };
        let mut lookup = EndLookup::new(&cluster, &ends, now_micros);
        let mut found = BTreeSet::new();
        for (task, row) in cluster.tasks.iter() {
            let end = ends.end_of(&cluster, task, now_micros);
            assert_eq!(lookup.end_of(row), end, "{}", row.key);
            found.extend(end.map(|end| end.source.as_str()));
        }
        let sources = ["deadline", "learned", "stated", "terminating"];
        assert_eq!(found, BTreeSet::from(sources));
        let end = |path: &str| ends.end_of(&cluster, task(&cluster, path), now_micros);
        assert_ne!(end("alone"), end("ml//alone"));
        assert_eq!(end("other"), None, "one run is not enough");
    }

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
