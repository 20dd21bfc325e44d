//! When a job starts: whole cycles in a copy of the engine whose clock goes from one expected end to
//! the next. Ends are those that objects state, or that were learned. Specification: answers.md 7.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_engine::Engine;
use vc_framework::Atom;
use vc_model::{Cluster, ClusterEvent, JobId, ObjectKey, TaskId, TaskStatus};
use vc_resource::Dim;

use crate::amounts::{count, quantity_of};
use crate::code::WaitCode;
use crate::cycle_remedies::cycle_remedies;
use crate::ends::{EndLookup, EndSource, ExpectedEnd, ExpectedEnds};
use crate::explain::AnswerState;
use crate::explanation::{Explanation, Remedy, RemedyKind, Responsible};
use crate::learned_runs::RunQuantile;
use crate::subject::{Subject, name_of_job};
use crate::supposed_remedies::{starts_after, together};
use crate::trials::{AtomSet, HeldByOrder, JobTrials, TrialEnd};
use crate::unblock::MOST_REMEDIES;
use crate::what_if::SupposedKubelet;
use crate::what_if::run::SupposedRun;

/// How far ahead a start is looked for.
const WINDOW_MICROS: i64 = 24 * 3_600 * 1_000_000;
/// A start that is nearer than this is a remedy of its own.
const SOON_MICROS: i64 = 3_600 * 1_000_000;
/// Ends that are looked at.
const MOST_ENDS: usize = 200;
/// Cycles after each end: evictions, binds, and what follows from them.
const CYCLES_PER_END: u32 = 3;
/// Jobs before a job that are planned.
const MOST_AHEAD: usize = 100;

/// Pods without an expected end that hold what a job waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndlessPods {
    /// Number of pods.
    pub pods: usize,
    /// What they hold of the resources that nodes lack: names and quantities, in report order. Empty if the queue of
    /// the job is full instead.
    pub held: Vec<(String, String)>,
}

/// Why a start is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartUnknown {
    /// What it waits for is held by pods without an expected end.
    NoEnd(EndlessPods),
    /// Not within 24 hours.
    BeyondWindow,
    /// More than 100 jobs are before it.
    TooFarBack,
    /// It would start if no other job waited, but one that gets the room first does not start or does not end.
    BlockedAhead,
    /// It has no pods yet.
    NoPods,
    /// Every way out needs a change.
    NotByTime,
    /// Too many ends come before.
    Budget,
}

impl StartUnknown {
    /// Returns the word in answers.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::NoEnd(_) => "noEnd",
            Self::BeyondWindow => "beyondWindow",
            Self::TooFarBack => "tooFarBack",
            Self::BlockedAhead => "blockedAhead",
            Self::NoPods => "noPods",
            Self::NotByTime => "notByTime",
            Self::Budget => "budget",
        }
    }

    /// Returns the reason in one line.
    pub fn text(&self) -> String {
        match self {
            Self::NoEnd(EndlessPods { pods: 0, .. }) => "no pod is expected to end".to_owned(),
            Self::NoEnd(EndlessPods { pods, held }) => {
                let pods = count(*pods, "pod");
                let held: Vec<String> =
                    held.iter().map(|(name, amount)| format!("{amount} {name}")).collect();
                let colon = if held.is_empty() { "" } else { ": " };
                let held = held.join(", ");
                format!("what it waits for is held by {pods} without an expected end{colon}{held}")
            }
            Self::BeyondWindow => "not within 24h".to_owned(),
            Self::TooFarBack => format!("more than {MOST_AHEAD} jobs are before it"),
            Self::BlockedAhead => {
                "another job gets the room first, and has no expected start or end".to_owned()
            }
            Self::NoPods => "it has no pods yet".to_owned(),
            Self::NotByTime => "every way out needs a change".to_owned(),
            Self::Budget => format!("more than {MOST_ENDS} ends come before"),
        }
    }
}

/// A job whose end is waited for. Its pods that terminate already are a row of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwaitedJob {
    /// PodGroup, or the pod if it has none.
    pub job: ObjectKey,
    /// Number of its pods that are waited for.
    pub pods: usize,
    /// Their nodes, by name.
    pub nodes: Vec<Arc<str>>,
    /// The last of their ends, and what says so.
    pub end: ExpectedEnd,
}

/// When a job starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartAnswer {
    /// When it starts if nobody is before it, in microseconds since 1970. `None`: not known.
    pub earliest_micros: Option<i64>,
    /// When it starts if nothing arrives, in microseconds since 1970. `None`: not known.
    pub expected_micros: Option<i64>,
    /// The same with learned runs that are as long as the long ones. `None`: not known.
    pub latest_micros: Option<i64>,
    /// True if an end that is waited for is learned from few runs.
    pub is_of_few: bool,
    /// Why `expected_micros` is not known.
    pub unknown: Option<StartUnknown>,
    /// Why `earliest_micros` is not known. `None` if it is, or if `unknown` is the reason.
    pub earliest_unknown: Option<StartUnknown>,
    /// Why `latest_micros` is not known. `None` if it is, or if `unknown` is the reason.
    pub latest_unknown: Option<StartUnknown>,
    /// What `expected_micros` assumes.
    pub assumes: Vec<&'static str>,
    /// The ends that are waited for, in order; none could stay.
    pub waits_for: Vec<AwaitedJob>,
}

/// What a start reads of the explanation of its job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StartBasis {
    /// True if no end of a pod can let the job start.
    is_not_by_time: bool,
    /// Jobs before it.
    n_ahead: usize,
    /// Names of the atoms that are present.
    atoms: Vec<String>,
}

impl StartBasis {
    fn of(explanation: &Explanation) -> Self {
        let blocking = explanation.blocking.as_deref();
        Self {
            is_not_by_time: is_not_by_time(explanation),
            n_ahead: explanation.line.as_ref().map_or(0, |line| line.ahead.jobs),
            atoms: blocking.map(|blocking| blocking.atoms.clone()).unwrap_or_default(),
        }
    }
}

/// Adds when a job starts to its explanation, which must be full and about the state after the last
/// cycle of the engine. A start within the next hour is also a remedy. The remedies of
/// [`crate::add_cycle_remedies`] are added, too.
pub fn add_start(
    engine: &Engine,
    (state, ends): (&mut AnswerState, &ExpectedEnds),
    subject: Subject,
    explanation: &mut Explanation,
) {
    let Some(job) = job_that_starts(subject, explanation) else { return };
    let known = state.kept_answers().and_then(|it| it.with_start(subject, ends, explanation));
    if let Some(known) = known {
        *explanation = known;
        return;
    }
    let before = explanation.clone();
    let start = known_or_found_start(engine, (state, ends), (subject, job), explanation);
    let of_cycles = cycle_remedies(engine, state, subject, explanation);
    explanation.unblock.extend(of_cycles);
    add_remedies(engine, (state, ends), (job, &start), explanation);
    explanation.start = Some(start.into());
    if let Some(kept) = state.kept_answers() {
        kept.keep_with_start(subject, ends, (before, explanation.clone()));
    }
}

/// Adds when a job starts to its explanation as [`add_start`] does, but no remedies, most of which take cycles of
/// their own. The explanation must have its blocking sets, as with [`crate::Depth::Sets`].
pub fn add_start_alone(
    engine: &Engine,
    (state, ends): (&mut AnswerState, &ExpectedEnds),
    subject: Subject,
    explanation: &mut Explanation,
) {
    let Some(job) = job_that_starts(subject, explanation) else { return };
    let start = known_or_found_start(engine, (state, ends), (subject, job), explanation);
    explanation.start = Some(start.into());
}

/// Returns the job. Returns `None` if it does not wait or starts in the next cycle, and if its explanation does not
/// tell what a start is found by.
fn job_that_starts(subject: Subject, explanation: &Explanation) -> Option<JobId> {
    let code = explanation.verdict.code;
    let goes_on = [WaitCode::NextCycle, WaitCode::BindFailed, WaitCode::Invalid];
    let has_sets = explanation.blocking.is_some() || awaits_release(code);
    subject.job.filter(|_| explanation.waits() && !goes_on.contains(&code) && has_sets)
}

fn known_or_found_start(
    engine: &Engine,
    (state, ends): (&mut AnswerState, &ExpectedEnds),
    (subject, job): (Subject, JobId),
    explanation: &Explanation,
) -> StartAnswer {
    let basis = StartBasis::of(explanation);
    let known = state.kept_answers().and_then(|it| it.start(subject, ends, &basis));
    known.unwrap_or_else(|| {
        let start = start(engine, (state, ends), job, &basis);
        if let Some(kept) = state.kept_answers() {
            kept.keep_start(subject, ends, (basis, &start));
        }
        start
    })
}

/// True if the job has its places as soon as pods that terminate have left them. It has no blocking sets,
/// and nobody needs to change anything.
fn awaits_release(code: WaitCode) -> bool {
    matches!(code, WaitCode::AwaitsVictims | WaitCode::WaitsForRelease)
}

/// Adds the remedies that need the start or an end to wait for, and leaves out those that do not let the job start.
fn add_remedies(
    engine: &Engine,
    (state, ends): (&AnswerState, &ExpectedEnds),
    (job, start): (JobId, &StartAnswer),
    explanation: &mut Explanation,
) {
    let is_together = |remedy: &Remedy| remedy.kind == RemedyKind::Together;
    let has_together = explanation.unblock.iter().any(is_together);
    if start.unknown == Some(StartUnknown::NotByTime)
        && !has_together
        && let Some(key) = name_of_job(state.cluster(), job)
    {
        explanation.unblock.extend(together((engine, state), ends, (job, &key), explanation));
    }
    let soon = explanation.as_of.time_micros.saturating_add(SOON_MICROS);
    if let Some(at_micros) = start.expected_micros.filter(|&at| at <= soon) {
        let ends = start.waits_for.iter().map(AwaitedJob::text).collect::<Vec<_>>().join(", ");
        let text = match ends.is_empty() {
            true => "wait".to_owned(),
            false => format!("{ends} ends"),
        };
        let (kind, who, nodes) = (RemedyKind::Wait, Responsible::Time, Vec::new());
        let remedy = Remedy { kind, who, text, nodes, at_micros: Some(at_micros), change: None };
        explanation.unblock.push(remedy);
        // The job starts soon without a change, so no job is named to be ended.
        explanation.unblock.retain(|remedy| remedy.kind != RemedyKind::EndJobs);
    }
    explanation.unblock.retain(|remedy| {
        let change = remedy.change.as_ref().filter(|_| remedy.kind == RemedyKind::EndJobs);
        change.is_none_or(|change| starts_after((engine, state.stop()), change, job))
    });
    // What comes by itself, then what the user may change.
    let rank = |remedy: &Remedy| (remedy.kind != RemedyKind::Wait, remedy.who, remedy.kind);
    explanation.unblock.sort_by_key(rank);
    explanation.unblock.truncate(MOST_REMEDIES);
}

impl AwaitedJob {
    /// Returns the job with its nodes: `ml/eval on g1`.
    pub fn text(&self) -> String {
        format!("{} on {}", self.job, self.nodes.join(" "))
    }
}

fn start(
    engine: &Engine,
    (state, ends): (&AnswerState, &ExpectedEnds),
    job: JobId,
    basis: &StartBasis,
) -> StartAnswer {
    let unknown = |reason| StartAnswer { unknown: Some(reason), ..StartAnswer::default() };
    let cluster = state.cluster();
    let waiting: BTreeSet<TaskId> = waiting_tasks(cluster, job).collect();
    if waiting.is_empty() {
        return unknown(StartUnknown::NoPods);
    }
    // No pod that ends creates the queue, also where the sets are not known for lack of budget.
    let has_queue = cluster.queues[cluster.jobs[job].queue].present;
    if basis.is_not_by_time || !has_queue {
        return unknown(StartUnknown::NotByTime);
    }
    let supposed = |quantile: RunQuantile| {
        SupposedRun::new(engine, SupposedKubelet::Instant, ends.at(quantile))
            .stoppable(state.stop())
    };
    let mut alone = supposed(RunQuantile::Short);
    remove_others(&mut alone, job);
    let earliest = plan(alone, job, &waiting).map(|plan| plan.at_micros);
    let starts_alone = earliest.is_ok();
    let endless = OnceCell::new();
    let named = |reason: StartUnknown, starts_alone: bool| match reason {
        StartUnknown::NoEnd(_) if starts_alone => StartUnknown::BlockedAhead,
        StartUnknown::NoEnd(_) => {
            let found = || endless_pods((state, ends), job, &basis.atoms);
            StartUnknown::NoEnd(endless.get_or_init(found).clone())
        }
        reason => reason,
    };
    let (earliest, earliest_unknown) = split(earliest.map_err(|reason| named(reason, false)));
    let expected = match basis.n_ahead <= MOST_AHEAD {
        true => plan(supposed(RunQuantile::Median), job, &waiting),
        false => Err(StartUnknown::TooFarBack),
    };
    let expected = match expected.map_err(|reason| named(reason, starts_alone)) {
        Ok(expected) => expected,
        Err(reason) => {
            let earliest_unknown = earliest_unknown.filter(|it| it.as_str() != reason.as_str());
            let unknown = unknown(reason);
            return StartAnswer { earliest_micros: earliest, earliest_unknown, ..unknown };
        }
    };
    // Ends that are stated are the same in all plans.
    let latest = match expected.has_learned {
        true => plan(supposed(RunQuantile::Long), job, &waiting).map(|plan| plan.at_micros),
        false => Ok(expected.at_micros),
    };
    let (latest, latest_unknown) = split(latest.map_err(|reason| named(reason, starts_alone)));
    let waits_for = awaited((state, ends), job, &expected.ended);
    let is_of_few = |it: &AwaitedJob| it.end.source.is_of_few();
    StartAnswer {
        // List scheduling has anomalies.
        earliest_micros: earliest.map(|at| at.min(expected.at_micros)),
        expected_micros: Some(expected.at_micros),
        latest_micros: latest.map(|at| at.max(expected.at_micros)),
        is_of_few: waits_for.iter().any(is_of_few),
        unknown: None,
        earliest_unknown,
        latest_unknown,
        assumes: vec!["noArrivals"],
        waits_for,
    }
}

/// Returns a time that is known, or else why it is not.
fn split(found: Result<i64, StartUnknown>) -> (Option<i64>, Option<StartUnknown>) {
    match found {
        Ok(at_micros) => (Some(at_micros), None),
        Err(reason) => (None, Some(reason)),
    }
}

pub(crate) fn waiting_tasks(cluster: &Cluster, job: JobId) -> impl Iterator<Item = TaskId> {
    let waits = |task: &TaskId| cluster.tasks[*task].status == TaskStatus::Pending;
    cluster.jobs[job].tasks.iter().copied().filter(waits)
}

/// True if no end of a pod can let the job start.
pub(crate) fn is_not_by_time(explanation: &Explanation) -> bool {
    explanation.blocking.as_ref().is_some_and(|blocking| !blocking.helps_waiting())
}

/// Removes the waiting pods of all other jobs.
fn remove_others(run: &mut SupposedRun, job: JobId) {
    let cluster = run.cluster();
    let others = cluster.tasks.iter().filter(|(_, row)| {
        row.status == TaskStatus::Pending && row.job.is_some_and(|other| other != job)
    });
    let others: Vec<_> = others.map(|(_, row)| (row.key.clone(), row.uid.clone())).collect();
    others.into_iter().for_each(|(key, uid)| run.apply(ClusterEvent::PodDeleted { key, uid }));
}

/// A start, and the pods that end before it.
pub(crate) struct StartPlan {
    pub(crate) at_micros: i64,
    pub(crate) ended: Vec<TaskId>,
    /// True if the end of one of them is learned.
    pub(crate) has_learned: bool,
}

/// Lets ends happen until one of the waiting tasks gets a node. Pods that terminate hold their nodes until
/// the ends of their grace periods.
pub(crate) fn plan(
    mut run: SupposedRun,
    job: JobId,
    waiting: &BTreeSet<TaskId>,
) -> Result<StartPlan, StartUnknown> {
    let (begin, until) = (run.now_micros(), run.now_micros().saturating_add(WINDOW_MICROS));
    let (mut ended, mut has_learned) = (Vec::new(), false);
    let mut at_micros = begin;
    run.await_terminating();
    // Without a change the first cycle is skipped, if reports stay as they are.
    run.settle(CYCLES_PER_END);
    // Nobody reads the reports of these cycles.
    run.engine_mut().explain(false);
    for _ in 0..=MOST_ENDS {
        let cluster = run.cluster();
        let has_node = |task: &&TaskId| cluster.tasks[**task].node.is_some();
        if cluster.jobs.get(job).is_none() || waiting.iter().any(|task| has_node(&task)) {
            return Ok(StartPlan { at_micros, ended, has_learned });
        }
        match run.end_next(until) {
            Ok(ends) => {
                at_micros = ends.at_micros;
                has_learned |= ends.has_learned;
                ended.extend(ends.tasks);
            }
            Err(true) => return Err(StartUnknown::BeyondWindow),
            Err(false) => return Err(StartUnknown::NoEnd(EndlessPods::default())),
        }
        run.settle(CYCLES_PER_END);
    }
    Err(StartUnknown::Budget)
}

/// Returns the pods without an expected end that hold what the job lacks.
fn endless_pods(
    (state, ends): (&AnswerState, &ExpectedEnds),
    job: JobId,
    atoms: &[String],
) -> EndlessPods {
    let cluster = state.cluster();
    let rooms = atoms.iter().filter_map(|atom| atom.strip_prefix("room/"));
    let dims: Vec<Dim> = rooms.filter_map(|name| cluster.dims.get(name)).collect();
    let queue = cluster.jobs[job].queue;
    let holds = |&(task, row): &(TaskId, &vc_model::Task)| {
        let is_held = match dims.is_empty() {
            // The queue is full.
            true => cluster.job_of(task).is_some_and(|job| job.queue == queue),
            false => dims.iter().any(|&dim| 0 < cluster.request(task).get(dim)),
        };
        row.node.is_some() && row.status.is_allocated() && is_held
    };
    let mut lookup = EndLookup::new(cluster, ends, state.time_micros());
    let holding = cluster.tasks.iter().filter(holds);
    let endless = holding.filter(|&(_, row)| lookup.end_of(row).is_none());
    let endless: Vec<TaskId> = endless.map(|(task, _)| task).collect();
    let held = cluster.dims.in_report_order().iter().filter(|dim| dims.contains(dim)).map(|&dim| {
        let amounts = endless.iter().map(|&task| i128::from(cluster.request(task).get(dim)));
        let amount = quantity_of(amounts.sum(), dim, &cluster.dims);
        (cluster.dims.name(dim).to_owned(), amount)
    });
    EndlessPods { pods: endless.len(), held: held.collect() }
}

/// Returns the jobs whose ends the start needs: without any of them the job alone finds no place.
pub(crate) fn awaited(
    (state, ends): (&AnswerState, &ExpectedEnds),
    job: JobId,
    ended: &[TaskId],
) -> Vec<AwaitedJob> {
    let cluster = state.cluster();
    let now_micros = state.time_micros();
    let mut groups: BTreeMap<(ObjectKey, bool), AwaitedGroup> = BTreeMap::new();
    for &task in ended {
        // Pods that start in the plan do not hold anything now.
        let Some(row) = cluster.tasks.get(task).filter(|row| row.node.is_some()) else { continue };
        let Some(end) = ends.end_of(cluster, task, now_micros) else { continue };
        let of_job = cluster.job_of(task).filter(|job| !job.bare).map(|job| job.key.clone());
        let key = of_job.unwrap_or_else(|| row.key.clone());
        let terminates = end.source == EndSource::Terminating;
        let group = groups.entry((key, terminates)).or_default();
        group.tasks.push(task);
        group.end = group.end.filter(|last| end.at_micros <= last.at_micros).or(Some(end));
    }
    let groups = groups.into_iter().map(|((key, _), group)| (key, group));
    let mut groups: Vec<(ObjectKey, AwaitedGroup)> = groups.collect();
    groups.sort_by_key(|(_, group)| group.end.map(|end| end.at_micros));
    keep_needed(state, job, &mut groups);
    let awaited = groups.into_iter().filter_map(|(key, group)| {
        let nodes = group.tasks.iter().filter_map(|&task| cluster.tasks[task].node);
        let nodes: BTreeSet<Arc<str>> =
            nodes.map(|node| cluster.nodes[node].name.clone()).collect();
        let (pods, nodes) = (group.tasks.len(), nodes.into_iter().collect());
        Some(AwaitedJob { job: key, pods, nodes, end: group.end? })
    });
    awaited.collect()
}

/// Pods of one job that end.
#[derive(Default)]
struct AwaitedGroup {
    tasks: Vec<TaskId>,
    end: Option<ExpectedEnd>,
}

/// Drops the groups without whose end the job alone gets its places at once, too. All stay if it does not
/// get them even with all ends, since other jobs take part then.
fn keep_needed(state: &AnswerState, job: JobId, groups: &mut Vec<(ObjectKey, AwaitedGroup)>) {
    let mut fork = state.copy_fork();
    for (_, group) in &*groups {
        group.tasks.iter().for_each(|&task| fork.cluster_mut().end_pod(task));
    }
    let is_placed = |fork: &mut vc_engine::Fork| {
        fork.with_session(|session| {
            let trials = JobTrials::new(session, job, HeldByOrder::default());
            let mut trials = trials.stoppable(state.stop());
            // Places that pods have yet to leave are not free.
            trials.run(&AtomSet::from([Atom::Order])).end == TrialEnd::Placed
        })
    };
    if !is_placed(&mut fork) {
        return;
    }
    // The last ends first: what ends early is waited for rather than what ends late.
    let mut at = groups.len();
    while 0 < at {
        at -= 1;
        let tasks = groups[at].1.tasks.clone();
        let cluster = state.cluster();
        for &task in &tasks {
            let row = &cluster.tasks[task];
            fork.cluster_mut().set_task(task, row.status, row.node);
        }
        match is_placed(&mut fork) {
            true => drop(groups.remove(at)),
            false => tasks.iter().for_each(|&task| fork.cluster_mut().end_pod(task)),
        }
    }
}
