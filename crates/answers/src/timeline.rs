//! What happened lately: cycles, jobs with their starts and ends, evictions, and sums by queue and
//! minute. Old entries give way to new ones. Specification: answers.md 8 (ANS-45, ANS-46).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use vc_engine::{Certificate, Effect, Report, Unit};
use vc_model::{Cluster, ClusterEvent, Job, JobId, ObjectKey, Revision, TaskStatus};
use vc_resource::Resource;

use crate::admissions::Admissions;
use crate::ends::ExpectedEnds;
use crate::job_spans::{BindsByJob, CycleBinds, JobBinds, JobSpan};
use crate::learned_runs::{LearnedRuns, RunQuantile};
use crate::pod_spans::{HOLDING, PodSpan, PodSpans};
use crate::predictions::{PredictionOutcome, Predictions};
use crate::queue_minutes::{LastQueueAmounts, QueueMinute};
use crate::what_if::run::certified;
use crate::when::StartAnswer;

/// Entries that are kept of each kind: some 11 MiB in all.
const MOST_CYCLES: usize = 30_000;
const MOST_JOBS: usize = 30_000;
const MOST_BINDS: usize = 30_000;
const MOST_EVICTIONS: usize = 15_000;
const MOST_QUEUE_MINUTES: usize = 8_000;
const MINUTE_MICROS: i64 = 60_000_000;
const SECOND_MICROS: i64 = 1_000_000;

/// One call of the engine with what came of it.
#[derive(Clone, Copy, Debug)]
pub struct TimelineStep<'a> {
    /// The state after the call.
    pub cluster: &'a Cluster,
    /// What was decided.
    pub effects: &'a [Effect],
    /// Report of the cycle. `None`: events were applied without a cycle.
    pub report: Option<&'a Report>,
    /// Number of the last cycle, from 1.
    pub cycle: u64,
    /// Microseconds since 1970.
    pub now_micros: i64,
    /// How long the call took, in microseconds.
    pub took_micros: u64,
    /// Events that came before it.
    pub n_events: usize,
}

/// A cycle. Cycles before which nothing came and that decided nothing are not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CycleEntry {
    /// Its number, from 1.
    pub cycle: u64,
    /// Microseconds since 1970.
    pub at_micros: i64,
    /// How long it took, in microseconds.
    pub took_micros: u64,
    /// Events that came before it.
    pub events: u32,
    /// Pods that got a node.
    pub binds: u32,
    /// Pods that were evicted.
    pub evictions: u32,
    /// Jobs that waited at its end.
    pub waiting: u32,
}

/// A pod that was evicted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvictionEntry {
    /// Microseconds since 1970.
    pub at_micros: i64,
    /// The pod.
    pub pod: ObjectKey,
    /// Its PodGroup. `None` if it has none.
    pub pod_group: Option<ObjectKey>,
    /// Name of its queue.
    pub queue: Arc<str>,
    /// The action.
    pub action: &'static str,
    /// The PodGroup for which it had to go. `None` if a plugin chose it.
    pub for_group: Option<ObjectKey>,
    /// The plugins that granted it, in order.
    pub plugins: Vec<&'static str>,
    /// Their tier, from 1. `None` if no tier voted.
    pub tier: Option<u16>,
    /// Of the pods that went with it each of these was needed. `None` if that is not stated.
    pub minimal: Option<Unit>,
}

/// An entry has at most 64 bytes beside the names, which are shared.
const _: () = {
    let names = 3 * size_of::<ObjectKey>() + size_of::<Arc<str>>();
    assert!(size_of::<EvictionEntry>() - names <= 64);
};

/// Sums over queues at the beginning of a minute.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimelineSample {
    /// Microseconds since 1970.
    pub at_micros: i64,
    /// Jobs that waited.
    pub waiting: u32,
    /// Jobs that held nodes.
    pub running: u32,
    /// What jobs held, in the dimensions of the cluster.
    pub allocated: Resource,
    /// What the queues of these jobs deserved, in the same dimensions.
    pub deserved: Resource,
}

/// Which part of a timeline is wanted.
#[derive(Clone, Copy, Debug)]
pub struct TimelineFilter<'a> {
    /// Microseconds since 1970.
    pub from_micros: i64,
    /// Microseconds since 1970.
    pub to_micros: i64,
    /// Only this queue.
    pub queue: Option<&'a str>,
    /// Only jobs of this namespace.
    pub namespace: Option<&'a str>,
}

impl TimelineFilter<'_> {
    fn has_time(&self, start_micros: i64, end_micros: i64) -> bool {
        start_micros <= self.to_micros && self.from_micros <= end_micros
    }

    fn has(&self, queue: &str, key: &ObjectKey) -> bool {
        self.queue.is_none_or(|it| it == queue)
            && self.namespace.is_none_or(|it| it == &*key.namespace)
    }
}

/// What happened lately.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// How far back it reaches. `None`: nothing was recorded.
    since_micros: Option<i64>,
    last_micros: i64,
    cycles: VecDeque<CycleEntry>,
    /// Jobs that hold nodes.
    open: BTreeMap<ObjectKey, JobSpan>,
    ended: VecDeque<JobSpan>,
    /// Pods that got nodes, by call and job.
    binds: VecDeque<JobBinds>,
    /// Time before which some of `binds` are missing. They are more than other entries, and go earlier. `None`: none
    /// has gone yet.
    binds_since_micros: Option<i64>,
    evictions: VecDeque<EvictionEntry>,
    minutes: VecDeque<QueueMinute>,
    last_amounts: LastQueueAmounts,
    minute: i64,
    second: i64,
    /// True if events came since the rows of jobs were read.
    has_news: bool,
    /// True if the rows of jobs were read since the first call and since the last gap.
    has_read_jobs: bool,
    /// How long pods have run that ended.
    runs: Arc<LearnedRuns>,
    /// Advances when a job begins or ceases to hold nodes, and when a run is learned.
    jobs_revision: Revision,
    pod_spans: PodSpans,
    predictions: Predictions,
    admissions: Admissions,
}

/// Adds an entry. The oldest one goes if there are too many, and the time before which entries may be
/// missing moves on.
fn push<T>(
    entries: &mut VecDeque<T>,
    (entry, most): (T, usize),
    at: impl Fn(&T) -> i64,
    since_micros: &mut Option<i64>,
) {
    if most <= entries.len()
        && let Some(oldest) = entries.pop_front()
    {
        *since_micros = (*since_micros).max(Some(at(&oldest).saturating_add(1)));
    }
    entries.push_back(entry);
}

impl Timeline {
    /// Takes note of pods that end or are deleted with these events, and learns how long pods run.
    /// The cluster must not have seen the events yet.
    pub fn learn(&mut self, cluster: &Cluster, events: &[ClusterEvent], now_micros: i64) {
        if LearnedRuns::tell(events) {
            let runs = Arc::make_mut(&mut self.runs);
            let n_learned = runs.n_learned();
            runs.learn(cluster, events, now_micros);
            if runs.n_learned() != n_learned {
                self.jobs_revision.advance();
            }
        }
        self.pod_spans.note(cluster, events, now_micros);
    }

    /// Returns what tells when pods end.
    pub fn ends(&self) -> ExpectedEnds {
        ExpectedEnds { runs: self.runs.clone(), quantile: RunQuantile::default() }
    }

    /// Takes note of a start that somebody was told. It is compared with the start of a job that holds
    /// no node yet.
    pub fn told(&mut self, job: &ObjectKey, start: &StartAnswer, asked_micros: i64) {
        if !self.open.contains_key(job) {
            self.predictions.told(job, start, asked_micros);
        }
    }

    /// Returns how many of the last predictions held, and the number of these. Returns `None` if
    /// nothing that was predicted has started yet.
    pub fn held(&self) -> Option<(usize, usize)> {
        self.predictions.held()
    }

    /// Returns what became of predictions since the last call.
    pub fn take_outcomes(&mut self) -> Vec<PredictionOutcome> {
        self.predictions.take_news()
    }

    /// Takes note that the engine may have been called since the last call that was recorded.
    pub fn note_gap(&mut self) {
        self.admissions.note_gap();
        self.has_read_jobs = false;
    }

    /// Takes note of a call of the engine.
    pub fn record(&mut self, step: &TimelineStep<'_>) {
        self.since_micros.get_or_insert(step.now_micros);
        self.last_micros = self.last_micros.max(step.now_micros);
        let second = step.now_micros.div_euclid(SECOND_MICROS);
        self.has_news |= 0 < step.n_events;
        // Ends, and starts of pods that others have placed, are seen in the rows.
        if (self.has_news || !self.has_read_jobs) && second != self.second {
            (self.has_news, self.second) = (false, second);
            self.follow_jobs(step);
        }
        self.note_effects(step);
        for group in self.admissions.note(step.cluster, step.effects, step.now_micros) {
            let span = self.open.get_mut(&group);
            span.into_iter().for_each(|span| span.admitted_micros = Some(step.now_micros));
        }
        self.note_cycle(step);
        let minute = step.now_micros.div_euclid(MINUTE_MICROS);
        if let Some(report) = step.report.filter(|_| minute != self.minute) {
            self.minute = minute;
            for entry in self.last_amounts.entries(step.cluster, report, step.now_micros) {
                let entry = (entry, MOST_QUEUE_MINUTES);
                push(&mut self.minutes, entry, |it| it.at_micros, &mut self.since_micros);
            }
        }
    }

    fn note_cycle(&mut self, step: &TimelineStep<'_>) {
        let count = |is: fn(&Effect) -> bool| {
            let n = step.effects.iter().filter(|&effect| is(effect)).count();
            u32::try_from(n).unwrap_or(u32::MAX)
        };
        let binds = count(|effect| matches!(effect, Effect::Bind { .. }));
        let evictions = count(|effect| matches!(effect, Effect::Evict { .. }));
        if step.report.is_none() {
            // It belongs to the cycle before it.
            if let Some(last) = self.cycles.back_mut().filter(|last| last.cycle == step.cycle) {
                last.binds += binds;
            }
            return;
        }
        if step.n_events == 0 && binds + evictions == 0 {
            return;
        }
        let waits = |&job: &JobId| 0 < step.cluster.jobs[job].counts.of(TaskStatus::Pending);
        let waiting = step.cluster.jobs_by_key().filter(waits).count();
        let entry = CycleEntry {
            cycle: step.cycle,
            at_micros: step.now_micros,
            took_micros: step.took_micros,
            events: u32::try_from(step.n_events).unwrap_or(u32::MAX),
            binds,
            evictions,
            waiting: u32::try_from(waiting).unwrap_or(u32::MAX),
        };
        push(&mut self.cycles, (entry, MOST_CYCLES), |it| it.at_micros, &mut self.since_micros);
    }

    fn note_effects(&mut self, step: &TimelineStep<'_>) {
        let none = Vec::new();
        let certificates = step.report.map_or(&none, |report| &report.certificates);
        let mut bound: BTreeMap<JobId, u32> = BTreeMap::new();
        for effect in step.effects {
            match effect {
                Effect::Bind { uid, .. } => {
                    let task = step.cluster.task(uid);
                    if let Some(job) = task.and_then(|task| step.cluster.tasks[task].job) {
                        *bound.entry(job).or_default() += 1;
                    }
                }
                Effect::Evict { .. } => self.note_eviction(step, effect, certificates),
                _ => {}
            }
        }
        bound.into_iter().for_each(|(job, pods)| self.note_binds(step, job, pods));
    }

    /// Takes note of pods of a job that got nodes.
    fn note_binds(&mut self, step: &TimelineStep<'_>, job: JobId, pods: u32) {
        let span = self.open_span(step, job);
        let (job, is_bare) = (span.key.clone(), span.is_bare);
        let binds = CycleBinds { cycle: step.cycle, at_micros: step.now_micros, pods };
        let entry = (JobBinds { job, is_bare, binds }, MOST_BINDS);
        push(&mut self.binds, entry, |it| it.binds.at_micros, &mut self.binds_since_micros);
    }

    fn note_eviction(
        &mut self,
        step: &TimelineStep<'_>,
        effect: &Effect,
        certificates: &[Certificate],
    ) {
        let Effect::Evict { pod, uid, pod_group, reason, for_pod_group, .. } = effect else {
            return;
        };
        let cluster = step.cluster;
        let job = cluster.task(uid).and_then(|task| cluster.tasks[task].job);
        let certified = certified(certificates, uid);
        let rule = certified.and_then(|(_, victim)| victim.rule.as_ref());
        let tier = rule.and_then(|rule| rule.tier);
        let entry = EvictionEntry {
            at_micros: step.now_micros,
            pod: pod.clone(),
            pod_group: pod_group.as_ref().map(|group| group.0.clone()),
            queue: job.map(|job| queue_name(cluster, job)).unwrap_or_default(),
            action: reason.as_str(),
            for_group: for_pod_group.as_deref().cloned(),
            plugins: rule.map(|rule| rule.plugins.clone()).unwrap_or_default(),
            tier: tier.map(|tier| u16::try_from(tier).unwrap_or(u16::MAX)),
            minimal: certified.and_then(|(certificate, _)| certificate.minimal),
        };
        let entry = (entry, MOST_EVICTIONS);
        push(&mut self.evictions, entry, |it| it.at_micros, &mut self.since_micros);
    }

    /// Begins the span of a job that holds nodes, or counts its pods anew.
    fn open_span(&mut self, step: &TimelineStep<'_>, job: JobId) -> &JobSpan {
        let row = &step.cluster.jobs[job];
        if !self.open.contains_key(&row.key) {
            self.predictions.started(&row.key, step.now_micros);
            self.jobs_revision.advance();
        }
        let (admissions, has_read_jobs) = (&self.admissions, self.has_read_jobs);
        let span = self.open.entry(row.key.clone()).or_insert_with(|| {
            let span = JobSpan::begin((step.cluster, job), step.now_micros, has_read_jobs);
            let created_micros = span.created_micros.filter(|_| !span.is_bare);
            let admitted_micros = created_micros.and_then(|at| admissions.of(&span.key, at));
            JobSpan { admitted_micros, ..span }
        });
        span.pods = span.pods.max(row.counts.allocated());
        span
    }

    /// Begins and ends spans as the rows say.
    fn follow_jobs(&mut self, step: &TimelineStep<'_>) {
        let cluster = step.cluster;
        let mut before = std::mem::take(&mut self.open);
        for job in cluster.jobs_by_key().filter(|&job| holds_nodes(&cluster.jobs[job])) {
            let key = &cluster.jobs[job].key;
            if let Some(span) = before.remove(key) {
                self.open.insert(key.clone(), span);
            }
            self.open_span(step, job);
        }
        self.has_read_jobs = true;
        let ended = self.pod_spans.take_ended_jobs();
        if !before.is_empty() {
            self.jobs_revision.advance();
        }
        for (key, span) in before {
            let is_deleted = !ended.contains(&key) && !has_ended_pod(cluster, &key);
            let span = JobSpan { end_micros: Some(step.now_micros), is_deleted, ..span };
            let at = |it: &JobSpan| it.end_micros.unwrap_or(it.start_micros);
            push(&mut self.ended, (span, MOST_JOBS), at, &mut self.since_micros);
        }
    }

    /// Returns how far back it reaches, in microseconds since 1970. Returns `None` if nothing was
    /// recorded.
    pub fn since_micros(&self) -> Option<i64> {
        self.since_micros
    }

    /// Returns the time before which counts of [`Timeline::binds`] may be missing though the timeline reaches further
    /// back, in microseconds since 1970. Returns `None` if all are there.
    pub fn binds_since_micros(&self) -> Option<i64> {
        self.binds_since_micros
    }

    /// Returns the time of the last call, in microseconds since 1970.
    pub fn last_micros(&self) -> i64 {
        self.last_micros
    }

    /// Returns a stamp that advances whenever [`crate::running_jobs()`] may say something else of one state.
    pub fn jobs_revision(&self) -> Revision {
        self.jobs_revision
    }

    /// Returns the cycles, the last one first.
    pub fn cycles(&self) -> impl Iterator<Item = &CycleEntry> {
        self.cycles.iter().rev()
    }

    /// Returns the jobs that held nodes, those that began last first.
    pub fn jobs(&self, filter: TimelineFilter<'_>) -> Vec<&JobSpan> {
        let is_wanted = |span: &&JobSpan| {
            filter.has(&span.queue, &span.key)
                && filter.has_time(span.start_micros, span.end_micros.unwrap_or(i64::MAX))
        };
        let mut found: Vec<&JobSpan> = self.spans().filter(is_wanted).collect();
        found.sort_by(|a, b| (b.start_micros, &a.key).cmp(&(a.start_micros, &b.key)));
        found
    }

    /// Returns how many pods of each job got nodes in each cycle of this time. The queue of the filter is ignored.
    pub fn binds(&self, filter: TimelineFilter<'_>) -> BindsByJob<'_> {
        let is_wanted = |it: &&JobBinds| {
            let (job, at_micros) = (&it.job, it.binds.at_micros);
            filter.namespace.is_none_or(|namespace| namespace == &*job.namespace)
                && filter.has_time(at_micros, at_micros)
        };
        BindsByJob::of(self.binds.iter().filter(is_wanted))
    }

    /// Returns all jobs that held nodes.
    pub(crate) fn spans(&self) -> impl Iterator<Item = &JobSpan> {
        self.ended.iter().chain(self.open.values())
    }

    /// Returns the jobs that hold no node any more, the one that ended first first.
    pub(crate) fn ended_jobs(&self) -> impl DoubleEndedIterator<Item = &JobSpan> {
        self.ended.iter()
    }

    /// Returns the last pod of this name that holds no node any more. Returns `None` if none is
    /// remembered.
    pub(crate) fn pod_span(&self, pod: &ObjectKey) -> Option<&PodSpan> {
        self.pod_spans.of(pod)
    }

    /// Returns all pods that hold no node any more.
    pub(crate) fn pod_spans(&self) -> impl Iterator<Item = &PodSpan> {
        self.pod_spans.all()
    }

    /// Returns the keys of the rows of jobs that hold nodes, in their order, with the time since when, in microseconds
    /// since 1970. The time is `None` if it was not recorded.
    pub(crate) fn running_since(&self) -> impl Iterator<Item = (&ObjectKey, Option<i64>)> {
        let since = |span: &JobSpan| span.is_start_known.then_some(span.start_micros);
        self.open.iter().map(move |(job, span)| (job, since(span)))
    }

    /// Returns when a PodGroup that was created then was admitted last, in microseconds since 1970. Returns
    /// `None` if that was not recorded.
    pub(crate) fn admitted_micros(&self, group: &ObjectKey, created_micros: i64) -> Option<i64> {
        self.admissions.of(group, created_micros)
    }

    /// Returns all evictions, the first one first.
    pub(crate) fn all_evictions(&self) -> impl Iterator<Item = &EvictionEntry> {
        self.evictions.iter()
    }

    /// Returns the evictions, the last one first.
    pub fn evictions(&self, filter: TimelineFilter<'_>) -> impl Iterator<Item = &EvictionEntry> {
        let is_wanted = move |it: &&EvictionEntry| {
            filter.has(&it.queue, &it.pod) && filter.has_time(it.at_micros, it.at_micros)
        };
        self.evictions.iter().rev().filter(is_wanted)
    }

    /// Returns the evictions that a PodGroup suffered or that were for it, the last one first.
    pub fn evictions_about<'a>(
        &'a self,
        group: &'a ObjectKey,
    ) -> impl Iterator<Item = &'a EvictionEntry> {
        let is_about = move |it: &&EvictionEntry| {
            it.pod_group.as_ref() == Some(group) || it.for_group.as_ref() == Some(group)
        };
        self.evictions.iter().rev().filter(is_about)
    }

    /// Returns the last eviction of a pod with this name. Returns `None` if none is remembered.
    pub fn eviction_of(&self, pod: &ObjectKey) -> Option<&EvictionEntry> {
        self.evictions.iter().rev().find(|it| it.pod == *pod)
    }

    /// Returns sums over the queues, minute by minute.
    pub fn samples(&self, filter: TimelineFilter<'_>) -> Vec<TimelineSample> {
        let is_wanted = |it: &&QueueMinute| {
            filter.queue.is_none_or(|queue| queue == &*it.queue)
                && filter.has_time(it.at_micros, it.at_micros)
        };
        let mut samples: BTreeMap<i64, TimelineSample> = BTreeMap::new();
        for minute in self.minutes.iter().filter(is_wanted) {
            let sample = samples.entry(minute.at_micros).or_default();
            sample.at_micros = minute.at_micros;
            sample.waiting += minute.waiting;
            sample.running += minute.running;
            sample.allocated.add(&minute.allocated);
            sample.deserved.add(&minute.deserved);
        }
        samples.into_values().collect()
    }
}

/// True if a pod of the job holds a node.
pub(crate) fn holds_nodes(job: &Job) -> bool {
    HOLDING.iter().any(|&status| 0 < job.counts.of(status))
}

/// True if the cluster still knows a pod of the job that has ended by itself.
fn has_ended_pod(cluster: &Cluster, job: &ObjectKey) -> bool {
    let Some(job) = cluster.job(job) else { return false };
    cluster.jobs[job].tasks.iter().any(|&task| {
        let row = &cluster.tasks[task];
        row.status.is_terminated() && !row.deleting
    })
}

/// Returns the pod of a job that has no PodGroup of its own.
pub(crate) fn pod_of(job: &Job) -> ObjectKey {
    let name = job.key.name.strip_prefix("pod:").unwrap_or(&job.key.name);
    ObjectKey::new(&job.key.namespace, name)
}

/// Returns the name of the queue of a job.
pub(crate) fn queue_name(cluster: &Cluster, job: JobId) -> Arc<str> {
    cluster.queues[cluster.jobs[job].queue].name.clone()
}
