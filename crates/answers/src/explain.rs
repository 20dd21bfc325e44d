//! Explanations: the stage of a job, its numbers, and its place in the line. They are worked out in
//! a session on a copy of the engine's state. Specification: answers.md 1 to 3, 6.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_engine::{Engine, Fork, Report, SkippedCycle};
use vc_framework::{Atom, Session, WaitCause};
use vc_model::{Cluster, JobId, NodeId, ObjectKey, OtherScheduler, QueueId, TaskId};

use crate::blocking::{FoundSets, find_sets};
use crate::changed_copy::ChangedCopy;
use crate::code::WaitCode;
use crate::evict::{EvictionAnswer, eviction_answer};
use crate::explanation::{AnswerTime, AskedSubject, Explanation, JobsAhead, LinePlace, Verdict};
use crate::gang_numbers::gang_numbers;
use crate::known_answers::KnownAnswers;
use crate::known_trials::KnownTrials;
use crate::last_condition::last_condition;
use crate::line::{WaitingLines, waits};
use crate::missing_queue::{MissingQueueQuestion, job_without_queue, suppose_queue};
use crate::obstacles::find_present;
use crate::outside::{not_ours_text, outside_verdict};
use crate::state_tables::StateTables;
use crate::stop::{StopCondition, StopSignal};
use crate::subject::Subject;
use crate::trials::{AtomSet, HeldByOrder, JobTrials, waiting_members};
use crate::unblock::{ClusterQuestion, change_cluster, change_job};
use crate::verdict::{Judgement, failing_classes, judge, judge_or_repeat};

/// Jobs before a job that are tried, the first ones of the line, to count those that could not start now either.
const MOST_TRIED_AHEAD: usize = 20;

/// A copy of the engine's state after a cycle, with what the cycle recorded.
pub struct AnswerState {
    fork: Fork,
    recorded: RecordedCycle,
    known: KnownOfState,
    stop: StopSignal,
}

/// What questions have found out about the state, for later ones.
#[derive(Default)]
struct KnownOfState {
    answers: KnownAnswers,
    trials: KnownTrials,
    lines: Option<WaitingLines>,
    tables: StateTables,
    /// The copy in which nodes are added and jobs end. `None` until a question needs it.
    changed: Option<ChangedCopy>,
}

impl AnswerState {
    /// Returns the time of the last cycle, in microseconds since 1970.
    pub(crate) fn time_micros(&self) -> i64 {
        self.recorded.as_of.time_micros
    }

    /// Returns the answers that are kept. Returns `None` with the plain evaluator, with which none is kept.
    pub(crate) fn kept_answers(&mut self) -> Option<&mut KnownAnswers> {
        self.fork.keeps_answers().then_some(&mut self.known.answers)
    }

    /// Lets questions unwind with [`crate::QuestionStopped`] as soon as the condition holds. The state must not be
    /// asked again then.
    pub fn stop_if(&mut self, is_due: StopCondition) {
        self.stop = StopSignal::new(is_due);
    }

    /// Returns the numbers of trials since the last call, by the shortcut that told their results; `none` for those that were
    /// run.
    pub fn take_trial_counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.known.trials.counter().take()
    }

    /// Returns the signal that ends questions.
    pub(crate) fn stop(&self) -> &StopSignal {
        &self.stop
    }

    /// Returns a copy of the state, to be changed.
    pub(crate) fn copy_fork(&self) -> Fork {
        self.fork.copy()
    }
}

/// What a cycle has recorded.
struct RecordedCycle {
    as_of: AnswerTime,
    /// Pods that ended the cycle pipelined, with the names of their nodes.
    pipelined: Vec<(ObjectKey, Arc<str>)>,
    /// Place of each PodGroup in the order of turns.
    turns: BTreeMap<ObjectKey, usize>,
    /// PodGroups whose queue stood still for an earlier job.
    behind_head: BTreeSet<ObjectKey>,
    /// PodGroups that starve and for which nothing was evicted.
    skipped: BTreeMap<ObjectKey, SkippedCycle>,
    /// The configured actions.
    actions: Vec<&'static str>,
}

impl AnswerState {
    /// Copies the state. `report` is that of the last cycle; the engine must explain.
    pub fn new(engine: &Engine, report: &Report) -> Self {
        let behind = report.waiting.iter().filter(|task| task.cause == WaitCause::BehindHead);
        let pipelined = report.pipelined.iter();
        let skipped = report.skipped.iter();
        let fork = engine.fork();
        let recorded = RecordedCycle {
            as_of: AnswerTime { time_micros: fork.now_micros(), cycle: fork.n_cycles() },
            pipelined: pipelined.map(|task| (task.pod.clone(), task.node.clone())).collect(),
            turns: report.turns.iter().cloned().zip(0..).collect(),
            behind_head: behind.map(|task| task.pod_group.clone()).collect(),
            skipped: skipped.map(|it| (it.pod_group.clone(), it.clone())).collect(),
            actions: fork.actions().to_vec(),
        };
        Self { fork, recorded, known: KnownOfState::default(), stop: StopSignal::default() }
    }

    /// Returns the time and number of the cycle after which the state was copied.
    pub fn as_of(&self) -> AnswerTime {
        self.recorded.as_of
    }

    /// Returns the cluster that answers are about.
    pub fn cluster(&self) -> &Cluster {
        self.fork.cluster()
    }
}

/// What a cycle has recorded, with what answers look up in it.
struct CycleRecord<'a> {
    recorded: &'a RecordedCycle,
    lines: &'a WaitingLines,
}

impl RecordedCycle {
    fn eviction_answer(
        &self,
        session: &Session<'_>,
        tables: &StateTables,
        job: JobId,
    ) -> EvictionAnswer {
        let skipped = self.skipped.get(&session.jobs[job].key);
        eviction_answer(session, tables, &self.actions, (job, skipped))
    }

    fn in_session<'a>(
        &'a self,
        session: &Session<'_>,
        lines: &'a mut Option<WaitingLines>,
    ) -> CycleRecord<'a> {
        let lines = lines.get_or_insert_with(|| WaitingLines::find(session));
        CycleRecord { recorded: self, lines }
    }
}

/// How much is worked out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Depth {
    /// Stage, numbers and place in the line.
    Quick,
    /// Blocking sets, too, by which a start is found, but neither remedies nor why nobody was evicted.
    Sets,
    /// All of it.
    Full,
    /// Like `Full`, with this many units of work for the trials.
    Within(u64),
}

/// Explains why a job or pod waits.
pub fn explain(state: &mut AnswerState, subject: Subject, depth: Depth) -> Explanation {
    if let Some(known) = state.known.answers.explanation(subject, depth) {
        return known;
    }
    let explanation = explain_anew(state, subject, depth);
    if state.fork.keeps_answers() {
        state.known.answers.keep_explanation(subject, depth, &explanation);
    }
    explanation
}

fn explain_anew(state: &mut AnswerState, subject: Subject, depth: Depth) -> Explanation {
    let AnswerState { fork, recorded, known, stop } = state;
    let (mut explanation, question) = fork.with_session(|session| {
        let record = recorded.in_session(session, &mut known.lines);
        let (known, tables) = (&mut known.trials, &known.tables);
        let mut asked = AskedSession { session, known, tables, stop };
        explain_in(&mut asked, &record, subject, Scope::Alone(depth))
    });
    if let Some(question) = question {
        let kept = (&mut known.changed, &mut known.trials);
        change_cluster(fork, kept, &question, &mut explanation);
        if !fork.keeps_answers() {
            known.changed = None;
        }
    }
    let without_queue = job_without_queue(subject, &explanation.verdict);
    if let Some(job) = without_queue.filter(|_| depth != Depth::Quick) {
        let held = fork.with_session(|session| {
            let record = recorded.in_session(session, &mut known.lines);
            held_before(session, &record, job)
        });
        let question = MissingQueueQuestion { job, held, depth, stop };
        suppose_queue(fork, question, &mut explanation);
    }
    explanation
}

/// Runs the trial of a job with these atoms lifted, given by name. Atoms that are not present have
/// no effect. Returns true if the job gets its places.
pub fn try_lifted(state: &mut AnswerState, job: JobId, atoms: &[String]) -> bool {
    let AnswerState { fork, recorded, known, .. } = state;
    fork.with_session(|session| {
        let record = recorded.in_session(session, &mut known.lines);
        let held = held_before(session, &record, job);
        let mut trials = JobTrials::new(session, job, held);
        trials.limit(u64::MAX);
        let present = find_present(&mut trials).map(|present| present.atoms).unwrap_or_default();
        let is_named = |atom: &&Atom| atoms.contains(&atom.text(&trials.session().dims));
        let lifted: AtomSet = present.iter().filter(is_named).cloned().collect();
        trials.run(&lifted).succeeds()
    })
}

/// Explains every job and pod of ours that waits, by namespace and name. Jobs ahead are not tried.
pub fn explain_waiting(state: &mut AnswerState) -> Arc<Vec<Explanation>> {
    if let Some(known) = &state.known.answers.waiting {
        return known.clone();
    }
    let explanations = Arc::new(explain_waiting_anew(state));
    if state.fork.keeps_answers() {
        state.known.answers.waiting = Some(explanations.clone());
    }
    explanations
}

fn explain_waiting_anew(state: &mut AnswerState) -> Vec<Explanation> {
    let AnswerState { fork, recorded, known, stop } = state;
    stop.check();
    fork.with_session(|session| {
        let record = recorded.in_session(session, &mut known.lines);
        let jobs: Vec<JobId> = session.view().cluster.jobs_by_key().collect();
        let jobs: Vec<JobId> = jobs.into_iter().filter(|&job| waits(session, job)).collect();
        let mut pods: Vec<TaskId> = session.view().cluster.ungrouped().collect();
        pods.sort_by_key(|&task| &session.tasks[task].key);
        let of_jobs = jobs.into_iter().map(|job| Subject { job: Some(job), pod: None });
        let of_pods = pods.into_iter().map(|pod| Subject { job: None, pod: Some(pod) });
        let subjects: Vec<Subject> = of_jobs.chain(of_pods).collect();
        let (known, tables) = (&mut known.trials, &known.tables);
        let mut asked = AskedSession { session, known, tables, stop };
        let explain = |subject| explain_in(&mut asked, &record, subject, Scope::List).0;
        subjects.into_iter().map(explain).collect()
    })
}

/// Returns the place of a job among the waiting jobs of its queue, as its explanation has it. Returns `None` if it is
/// in no line.
pub fn place_in_line(state: &mut AnswerState, job: JobId) -> Option<LinePlace> {
    let AnswerState { fork, recorded, known, stop } = state;
    fork.with_session(|session| {
        let record = recorded.in_session(session, &mut known.lines);
        let (known, tables) = (&mut known.trials, &known.tables);
        let mut asked = AskedSession { session, known, tables, stop };
        place_of(&mut asked, &record, job, Scope::Alone(Depth::Quick))
    })
}

/// Returns the jobs that wait in a queue, the first one first.
pub fn waiting_line(state: &mut AnswerState, queue: QueueId) -> Vec<JobId> {
    let AnswerState { fork, recorded, known, .. } = state;
    fork.with_session(|session| {
        recorded.in_session(session, &mut known.lines).lines.of_queue(queue).to_vec()
    })
}

/// Explains these jobs as [`explain_waiting`] does.
pub(crate) fn explain_jobs(state: &mut AnswerState, jobs: Vec<JobId>) -> Vec<Explanation> {
    let AnswerState { fork, recorded, known, stop } = state;
    let subjects = jobs.into_iter().map(|job| Subject { job: Some(job), pod: None });
    fork.with_session(|session| {
        let record = recorded.in_session(session, &mut known.lines);
        let (known, tables) = (&mut known.trials, &known.tables);
        let mut asked = AskedSession { session, known, tables, stop };
        let explain = |subject| explain_in(&mut asked, &record, subject, Scope::List).0;
        subjects.map(explain).collect()
    })
}

/// Explains these jobs of a line as [`explain_waiting`] does, each with how many of the jobs before it could not start
/// now either.
pub fn explain_line(state: &mut AnswerState, jobs: Vec<JobId>) -> Vec<Explanation> {
    let AnswerState { fork, recorded, known, stop } = state;
    fork.with_session(|session| {
        let record = recorded.in_session(session, &mut known.lines);
        let (known, tables) = (&mut known.trials, &known.tables);
        let mut asked = AskedSession { session, known, tables, stop };
        let mut tried = BTreeMap::new();
        let explain = |job| {
            let subject = Subject { job: Some(job), pod: None };
            let mut explanation = explain_in(&mut asked, &record, subject, Scope::List).0;
            if let Some(line) = &mut explanation.line {
                try_ahead(&mut asked, &record, (job, &mut line.ahead), &mut tried);
            }
            explanation
        };
        jobs.into_iter().map(explain).collect()
    })
}

/// Explains that another scheduler decides about a pod.
pub fn explain_not_ours(state: &AnswerState, pod: ObjectKey, scheduler: &str) -> Explanation {
    let text = not_ours_text(&OtherScheduler::ByName(scheduler.into()));
    let verdict = Verdict { code: WaitCode::NotOurs, text, also: Vec::new() };
    let subject = AskedSubject { key: pod, is_bare: true, ..AskedSubject::default() };
    without_numbers(state.recorded.as_of, subject, verdict)
}

/// Whether one job is explained, or all that wait.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Alone(Depth),
    List,
}

/// Returns the blocking sets of a job that waits for more than its turn.
fn blocking_sets(
    trials: &mut JobTrials<'_, '_>,
    code: WaitCode,
    scope: Scope,
) -> Option<FoundSets> {
    let goes_on = [WaitCode::NextCycle, WaitCode::WaitsForRelease, WaitCode::AwaitsVictims];
    let is_object = matches!(code, WaitCode::BindFailed | WaitCode::Invalid);
    match scope {
        _ if goes_on.contains(&code) || is_object => return None,
        Scope::List | Scope::Alone(Depth::Quick) => return None,
        Scope::Alone(Depth::Sets | Depth::Full) => {}
        Scope::Alone(Depth::Within(units)) => trials.limit(units),
    }
    Some(find_sets(trials))
}

/// A session that is asked about several jobs.
struct AskedSession<'s, 'c> {
    session: &'s mut Session<'c>,
    known: &'s mut KnownTrials,
    tables: &'s StateTables,
    stop: &'s StopSignal,
}

impl<'c> AskedSession<'_, 'c> {
    fn trials(&mut self, record: &CycleRecord<'_>, job: JobId) -> JobTrials<'_, 'c> {
        let held = held_before(self.session, record, job);
        JobTrials::with_known(self.session, job, held, self.known).stoppable(self.stop)
    }
}

fn explain_in(
    asked_session: &mut AskedSession<'_, '_>,
    record: &CycleRecord<'_>,
    subject: Subject,
    scope: Scope,
) -> (Explanation, Option<ClusterQuestion>) {
    asked_session.stop.check();
    let session = &*asked_session.session;
    let asked = asked_subject(session, subject);
    let has_unknown_pods = subject.job.is_some_and(|job| session.jobs[job].tasks.is_empty());
    if let Some(verdict) = outside_verdict(session, subject) {
        let explanation = without_numbers(record.recorded.as_of, asked, verdict);
        let has_unknown_pods = has_unknown_pods && explanation.waits();
        return (Explanation { has_unknown_pods, ..explanation }, None);
    }
    let job = subject.job.expect("a pod without a job has a verdict");
    let tables = asked_session.tables;
    let mut trials = asked_session.trials(record, job);
    let judged = match scope {
        Scope::List | Scope::Alone(Depth::Quick) => judge_or_repeat(&mut trials),
        // The search for sets goes on with the trials that the verdict has run.
        Scope::Alone(_) => judge(&mut trials),
    };
    // No list shows them, and each takes a look at all nodes.
    let classes = match scope {
        Scope::List => Vec::new(),
        Scope::Alone(_) => failing_classes(&mut trials, &judged),
    };
    let found = blocking_sets(&mut trials, judged.verdict.code, scope);
    // What follows from the sets, which a start does not need.
    let followed = found.as_ref().filter(|_| scope != Scope::Alone(Depth::Sets));
    let changed = followed.map(|it| change_job(&mut trials, tables, (&it.sets, &it.present)));
    let (unblock, question) = changed.unzip();
    let line = place_of(asked_session, record, job, scope);
    let session = &*asked_session.session;
    let stage = judged.verdict.code.stage();
    let is_about_room = matches!(stage, "admission" | "share" | "order" | "nodes");
    let evict = followed.filter(|_| is_about_room);
    let evict = evict.map(|_| record.recorded.eviction_answer(session, tables, job).into());
    let waiting = waiting_members(session, job);
    let Judgement { verdict, quota, nodes, short, placed, .. } = judged;
    let explanation = Explanation {
        as_of: record.recorded.as_of,
        last_condition: last_condition(session, job, &verdict),
        gang: (!has_unknown_pods).then(|| gang_numbers(session, job, &waiting, &placed)),
        has_unknown_pods,
        subject: asked,
        verdict,
        nodes,
        short,
        classes,
        quota,
        blocking: found.map(|found| found.blocking.into()),
        unblock: unblock.unwrap_or_default(),
        line,
        start: None,
        evict,
    };
    (explanation, question)
}

fn without_numbers(as_of: AnswerTime, subject: AskedSubject, verdict: Verdict) -> Explanation {
    Explanation {
        as_of,
        subject,
        verdict,
        last_condition: None,
        gang: None,
        has_unknown_pods: false,
        nodes: None,
        short: Arc::default(),
        classes: Vec::new(),
        quota: Arc::default(),
        blocking: None,
        unblock: Vec::new(),
        line: None,
        start: None,
        evict: None,
    }
}

fn asked_subject(session: &Session<'_>, subject: Subject) -> AskedSubject {
    let now = session.info().now_micros;
    let pod = subject.pod.map(|task| &session.tasks[task]);
    let pod_key = pod.map(|pod| pod.key.clone());
    let Some(job) = subject.job.map(|job| &session.jobs[job]) else {
        let key = pod_key.clone().unwrap_or_default();
        return AskedSubject { key, is_bare: true, pod: pod_key, ..AskedSubject::default() };
    };
    let group = job.pod_group.as_ref();
    let key = match (job.bare, &pod_key) {
        (true, Some(pod)) => pod.clone(),
        (true, None) => job
            .tasks
            .first()
            .map_or_else(|| job.key.clone(), |&task| session.tasks[task].key.clone()),
        (false, _) => job.key.clone(),
    };
    AskedSubject {
        key,
        is_bare: job.bare,
        pod: pod_key,
        queue: group.map(|_| session.queues[job.queue].name.clone()),
        priority: job.priority,
        waiting_seconds: group.map(|group| (now - group.created_micros).max(0) / 1_000_000),
    }
}

/// Returns what jobs that had their turn before this one hold.
fn held_before(session: &Session<'_>, record: &CycleRecord<'_>, job: JobId) -> HeldByOrder {
    let cluster = session.view().cluster;
    let turn = |key: &ObjectKey| record.recorded.turns.get(key).copied();
    let own = &cluster.jobs[job].key;
    let own_turn = turn(own).unwrap_or(usize::MAX);
    let place = |(pod, node): &(ObjectKey, Arc<str>)| -> Option<(TaskId, NodeId)> {
        let task = cluster.task_named(pod)?;
        let holder = &cluster.jobs[cluster.tasks[task].job?].key;
        let is_before = turn(holder).is_none_or(|turn| turn < own_turn);
        (holder != own && is_before).then_some((task, cluster.node(node)?))
    };
    let is_behind = record.recorded.behind_head.contains(own);
    let first = record.lines.first_of(cluster.jobs[job].queue);
    let head = first.filter(|&first| is_behind && first != job);
    HeldByOrder {
        pipelined: record.recorded.pipelined.iter().filter_map(place).collect(),
        head: head.map(|head| cluster.jobs[head].key.clone()),
    }
}

/// Returns the place of a job in its queue, with how many of the first jobs ahead could not start now either. A quick
/// explanation, also one with the start, has that only if all of them are tried, and a list does not have it.
fn place_of(
    asked_session: &mut AskedSession<'_, '_>,
    record: &CycleRecord<'_>,
    job: JobId,
    scope: Scope,
) -> Option<LinePlace> {
    let session = &*asked_session.session;
    let turn = record.recorded.turns.get(&session.jobs[job].key).copied();
    let mut place = record.lines.place_of(session, job, turn)?;
    let is_tried = match scope {
        Scope::List => false,
        Scope::Alone(Depth::Quick | Depth::Sets) => place.ahead.jobs <= MOST_TRIED_AHEAD,
        Scope::Alone(_) => true,
    };
    if is_tried {
        let ahead = &mut place.ahead;
        try_ahead(asked_session, record, (job, ahead), &mut BTreeMap::new());
    }
    Some(place)
}

/// Tries the first jobs before a job, and counts those that could not start now. `known` has the jobs that were tried
/// already, with true for those that could not.
fn try_ahead(
    asked_session: &mut AskedSession<'_, '_>,
    record: &CycleRecord<'_>,
    (job, ahead): (JobId, &mut JobsAhead),
    known: &mut BTreeMap<JobId, bool>,
) {
    let jobs = record.lines.ahead_of(asked_session.session, job);
    let first = &jobs[..jobs.len().min(MOST_TRIED_AHEAD)];
    let mut is_blocked = |job: JobId| {
        let anew = || !asked_session.trials(record, job).run(&AtomSet::new()).succeeds();
        *known.entry(job).or_insert_with(anew)
    };
    ahead.tried = Some(first.len());
    ahead.blocked = Some(first.iter().filter(|&&job| is_blocked(job)).count());
}
