//! Plugin `tdm`: time-sharing of revocable nodes. Marked pods may use them inside a daily window.
//! Outside of it they are drained.
//! Specification: plugins-jobs-queues.md 13, D23-D27.

mod window;

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_conf::{Argument, DurationRule, PluginOption, Warning};
use vc_framework::{
    Atom, CacheKeys, ClassField, Clock, Depends, EarlierMemory, Inputs, NodeColumnRule, NodeTest,
    NodeTests, Outbox, Plugin, PluginEntry, PluginMemory, Points, Records, RefusalRule,
    SessionView, VectorizedPlugin, VictimVote, Vote,
};
use vc_model::{
    Cluster, Code, Finding, Job, JobBudget, JobId, NodeId, ObjectKey, Reason, TaskId, TaskStatus,
    go_duration_micros,
};

use crate::rules::session_job;
use window::{Window, offset_may_change_micros, seconds_of_day};

pub(crate) const ENTRY: PluginEntry =
    PluginEntry::new("tdm", build).arguments(&[&PERIOD, &ZONE_WINDOW]);

const POINTS: Points = Points::PREDICATE
    .and(Points::NODE_ORDER)
    .and(Points::PREEMPTABLE)
    .and(Points::VICTIM_TASKS)
    .and(Points::JOB_ORDER)
    .and(Points::JOB_PIPELINED)
    .and(Points::JOB_STARVING);

const PERIOD: Argument<DurationRule> = Argument::new(
    "tdm.evict.period",
    DurationRule {
        parse: |value| value.as_str().and_then(go_duration_micros),
        problem: "not a duration: {value}",
        remedy: "write a duration in quotes, such as \"30s\"; until then the default 1m is in \
                 force",
    },
    "time between eviction rounds",
)
.shown_as("1m");
const DEFAULT_PERIOD_MICROS: i64 = 60_000_000;
const ZONE_WINDOW: Argument<&str> = Argument::new(
    "*tdm.revocable-zone.*",
    "",
    "window `H:MM-HH:MM` of a zone in local time, as in `tdm.revocable-zone.rz1`",
)
.shown_as("none");
/// Part of the key before the name of the zone.
const ZONE: &str = "tdm.revocable-zone.";

const NOT_ALLOWED: &str = "not allow to dispatch to revocable node";
const MAX_SCORE: f64 = 100.0;

#[derive(Default)]
struct Tdm {
    zones: BTreeMap<String, RevocableZone>,
    period_micros: i64,
    /// Start of the last round of evictions. `None` before the first round.
    last_round_micros: Option<i64>,
    /// True if this session is a round of evictions.
    is_round: bool,
    /// For each zone, whether its window is open in this session.
    active: Vec<bool>,
    revision: u64,
    /// Jobs whose disruption budget cannot be parsed.
    unreadable: BTreeSet<JobId>,
}

/// The configuration of a zone.
struct RevocableZone {
    text: String,
    /// The daily window. `None` if it cannot be parsed: the zone is then neither used nor drained.
    window: Option<Window>,
}

fn build(option: &PluginOption, warnings: &mut Vec<Warning>) -> Box<dyn Plugin> {
    let arguments = &option.arguments;
    let mut zones = BTreeMap::new();
    for (key, value) in arguments.iter().filter(|(key, _)| key.contains(ZONE)) {
        let Some(text) = value.as_str() else {
            let remedy = "write the window in quotes, such as \"22:00-6:00\"";
            let message = format!("expected a string, found {value}, the zone is ignored");
            warnings.push(arguments.warning(key, &message, remedy));
            continue;
        };
        let window = Window::parse(text);
        if window.is_none() {
            let message =
                format!("not a daily window: {text:?}, the zone is never used or drained");
            let remedy = "write two times of the day, such as \"22:00-6:00\"";
            warnings.push(arguments.warning(key, &message, remedy));
        }
        zones.insert(key.replacen(ZONE, "", 1), RevocableZone { text: text.to_owned(), window });
    }
    let period_micros = PERIOD.read(arguments, warnings).unwrap_or(DEFAULT_PERIOD_MICROS);
    Box::new(Tdm { zones, period_micros, ..Tdm::default() })
}

/// The state that each extension point reads.
const READS: &[(Points, Inputs)] = &[
    (Points::PREDICATE, ZONE_OF_NODE),
    (Points::NODE_ORDER, ZONE_OF_NODE),
    (Points::PREEMPTABLE, Inputs::POD_ROW.and(VICTIMS)),
    (Points::VICTIM_TASKS, VICTIMS.and(DRAINED_NODES).and(Inputs::CLOCK)),
    (Points::JOB_ORDER, Inputs::JOB_ROW),
    (Points::JOB_PIPELINED, Inputs::JOB_ROW.and(Inputs::JOB_COUNTS)),
    (Points::JOB_STARVING, Inputs::JOB_ROW.and(Inputs::JOB_COUNTS)),
];

const ZONE_OF_NODE: Inputs = Inputs::NODE_OBJECT.and(Inputs::POD_SHAPE).and(Inputs::CLOCK);
/// Includes all pods of the nodes whose window is closed.
const DRAINED_NODES: Inputs = Inputs::NODE_ROW.and(Inputs::OTHER_PODS);
const VICTIMS: Inputs = Inputs::CANDIDATE_ROW.and(Inputs::NODE_OBJECT).and(Inputs::QUEUE_OBJECT);

impl Plugin for Tdm {
    fn points(&self) -> Points {
        POINTS
    }

    fn depends(&self) -> Depends {
        Depends::of(READS)
    }

    fn as_cache_keys(&self) -> Option<&dyn CacheKeys> {
        Some(self)
    }

    fn as_vectorized(&self) -> Option<&dyn VectorizedPlugin> {
        Some(self)
    }

    /// Returns the time of the last round, which belongs to the process and not to the
    /// configuration (section 13).
    fn memory(&self) -> Option<Box<dyn PluginMemory>> {
        self.last_round_micros.map(|last| Box::new(last) as Box<dyn PluginMemory>)
    }

    fn take_over(&mut self, memory: EarlierMemory) {
        self.last_round_micros = memory.read();
    }

    /// Starts a round if the period has passed. A round without victims counts too.
    fn open(&mut self, view: SessionView<'_>) {
        let now = view.now_micros();
        self.is_round = self.last_round_micros.is_none_or(|last| self.due_micros(last) <= now);
        if self.is_round {
            self.last_round_micros = Some(now);
        }
        let seconds = now_seconds(view);
        let active = self.zones.values().map(|zone| zone.is_active(seconds)).collect();
        let before = std::mem::replace(&mut self.active, active);
        self.revision += u64::from(before != self.active);
        match view.info.active_jobs.changed() {
            Some(changed) => changed.iter().for_each(|&job| self.enter(view, job)),
            None => {
                self.unreadable.clear();
                view.all_jobs().for_each(|job| self.enter(view, job));
            }
        }
    }

    fn close(&mut self, view: SessionView<'_>, _records: &Records, out: &mut Outbox) {
        for job in view.info.active_jobs.gone() {
            self.unreadable.remove(job);
        }
        let rows = self.unreadable.iter().filter_map(|&job| view.cluster.jobs.get(job));
        let of_budget = |row: &Job| Some((row.key.clone(), unreadable(row)?.clone()));
        let texts: BTreeMap<ObjectKey, Arc<str>> = rows.filter_map(of_budget).collect();
        for (key, text) in texts {
            out.warnings.push(format!(
                "podgroup {key}: volcano.sh/jdb-*: neither a number nor a percentage: {text:?}, \
                 none of its pods is evicted by tdm\nhint: write 3 or 30%",
            ));
        }
    }

    fn job_order(&self, view: SessionView<'_>, l: JobId, r: JobId) -> Ordering {
        let preemptable = |job: JobId| is_preemptable_job(&view.cluster.jobs[job]);
        preemptable(l).cmp(&preemptable(r))
    }

    fn order_value(&self, view: SessionView<'_>, job: JobId) -> Option<String> {
        let is_preemptable = is_preemptable_job(&view.cluster.jobs[job]);
        Some(if is_preemptable { "preemptable" } else { "not preemptable" }.to_owned())
    }

    fn job_pipelined(&self, view: SessionView<'_>, job: JobId) -> Vote {
        match view.cluster.jobs[job].is_pipelined() {
            true => Vote::Permit,
            false => Vote::Reject,
        }
    }

    fn job_starving(&self, view: SessionView<'_>, job: JobId) -> bool {
        let job = &view.cluster.jobs[job];
        !is_preemptable_job(job) && 0 < job.counts.of(TaskStatus::Pending)
    }

    fn refusals<'a>(&'a self, view: SessionView<'a>, task: TaskId) -> Option<RefusalRule<'a>> {
        Some(RefusalRule::new(move |node, atoms| {
            let mut findings = Vec::new();
            self.predicate(view, task, node, &mut findings);
            if !findings.is_empty() {
                atoms.insert(Atom::Filter("RevocableZone"));
            }
        }))
    }

    fn predicate(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        node: NodeId,
        findings: &mut Vec<Finding>,
    ) {
        let zone = &*view.cluster.nodes[node].revocable_zone;
        if zone.is_empty() {
            return;
        }
        let reason = match self.usable(view, zone) {
            Err(problem) => Reason::Owned(problem.into()),
            Ok(()) if !view.cluster.class(task).any_revocable_zone => Reason::Text(NOT_ALLOWED),
            Ok(()) => return,
        };
        findings.push(Finding { code: Code::Unresolvable, reason });
    }

    fn node_order(&self, view: SessionView<'_>, task: TaskId, node: NodeId) -> Result<f64, String> {
        let zone = &*view.cluster.nodes[node].revocable_zone;
        if zone.is_empty() {
            return Ok(0.0);
        }
        self.usable(view, zone)?;
        Ok(if view.cluster.class(task).any_revocable_zone { MAX_SCORE } else { 0.0 })
    }

    fn preemptable(
        &self,
        view: SessionView<'_>,
        preemptor: TaskId,
        candidates: &[TaskId],
    ) -> VictimVote {
        let cluster = view.cluster;
        if cluster.is_for_revocable_zones(preemptor) || is_preemptable(cluster, preemptor) {
            return VictimVote::Victims(Vec::new());
        }
        let on_plain_node = |&task: &TaskId| {
            let node = cluster.tasks[task].node.map(|node| &cluster.nodes[node]);
            node.is_some_and(|node| node.revocable_zone.is_empty())
        };
        let victims = within_budgets(cluster, candidates.iter().copied().filter(on_plain_node));
        let chosen = |task: &TaskId| victims.contains(task);
        VictimVote::Victims(candidates.iter().copied().filter(chosen).collect())
    }

    fn victim_tasks(&self, view: SessionView<'_>, _running: &[TaskId]) -> Vec<TaskId> {
        if !self.has_victim_tasks() {
            return Vec::new();
        }
        let is_closed = |&node: &NodeId| {
            let zone = self.zones.get(&*view.cluster.nodes[node].revocable_zone);
            let window = zone.and_then(|zone| zone.window);
            window.is_some_and(|window| !window.is_active(now_seconds(view)))
        };
        let nodes = view.info.nodes.iter().filter(|&node| is_closed(node));
        let tasks = nodes.flat_map(|&node| view.cluster.nodes[node].tasks.iter().copied());
        within_budgets(view.cluster, tasks)
    }
}

impl CacheKeys for Tdm {
    /// Returns the time until which answers hold: the next edge of a window, the next round, or a
    /// possible change of the UTC offset.
    fn clock(&self, view: SessionView<'_>) -> Clock {
        let now = view.now_micros();
        let round = self.last_round_micros.map_or(now, |last| self.due_micros(last));
        let seconds = now_seconds(view);
        let until = |window: Window| window.seconds_to_turn(seconds) * 1_000_000;
        let windows = self.zones.values().filter_map(|zone| zone.window);
        let turns = windows.map(|window| now - now.rem_euclid(1_000_000) + until(window));
        let until = turns.fold(round.min(offset_may_change_micros(now)), i64::min);
        Clock::Until(until)
    }

    /// True if this session is a round and the window of some zone is closed.
    fn has_victim_tasks(&self) -> bool {
        let mut zones = self.zones.values().zip(&self.active);
        self.is_round && zones.any(|(zone, is_active)| zone.window.is_some() && !is_active)
    }

    /// Returns a number that changes when a window opens or closes.
    fn revision(&self) -> Option<u64> {
        Some(self.revision)
    }
}

impl VectorizedPlugin for Tdm {
    fn node_tests<'a>(&'a self, view: SessionView<'a>, task: TaskId) -> Option<NodeTests<'a>> {
        let is_marked = view.cluster.class(task).any_revocable_zone;
        let passes = move |node: NodeId| {
            let zone = &*view.cluster.nodes[node].revocable_zone;
            zone.is_empty() || (is_marked && self.is_usable(view, zone))
        };
        let rule = NodeColumnRule {
            name: "zone",
            part: ClassField::RevocableZones,
            version: 0,
            value: Box::new(move |node| i64::from(passes(node))),
        };
        Some(NodeTests { tests: vec![NodeTest::Object(rule)], cluster_scoped: None })
    }
}

impl Tdm {
    /// Records whether the budget of a job can be parsed.
    fn enter(&mut self, view: SessionView<'_>, job: JobId) {
        match view.has_job(job) && unreadable(&view.cluster.jobs[job]).is_some() {
            true => self.unreadable.insert(job),
            false => self.unreadable.remove(&job),
        };
    }

    /// Returns the earliest time of the next round, in microseconds.
    fn due_micros(&self, last_micros: i64) -> i64 {
        last_micros.saturating_add(self.period_micros)
    }

    fn is_usable(&self, view: SessionView<'_>, name: &str) -> bool {
        self.zones.get(name).is_some_and(|zone| zone.is_active(now_seconds(view)))
    }

    /// Returns `Ok` if the zone is known and its window is open, else the message of the fit error.
    fn usable(&self, view: SessionView<'_>, name: &str) -> Result<(), String> {
        let zone = self.zones.get(name);
        let zone = zone.ok_or_else(|| format!("revocable zone {name} not support"))?;
        let text = &zone.text;
        match zone.window {
            None => Err(format!("revocable zone {name} has no readable window: {text}")),
            Some(window) if window.is_active(now_seconds(view)) => Ok(()),
            Some(_) => Err(format!("current time beyond revocable zone {name}:{text}")),
        }
    }
}

impl RevocableZone {
    /// True if the window is open at this number of seconds after midnight.
    fn is_active(&self, seconds: i64) -> bool {
        self.window.is_some_and(|window| window.is_active(seconds))
    }
}

fn now_seconds(view: SessionView<'_>) -> i64 {
    let now_micros = view.now_micros();
    seconds_of_day(now_micros, view.cluster.settings.utc_offset.seconds(now_micros))
}

/// Returns the text of a budget that cannot be parsed. Returns `None` for other budgets.
fn unreadable(job: &Job) -> Option<&Arc<str>> {
    match job.pod_group.as_ref()?.budget.as_deref()? {
        JobBudget::Unreadable(text) => Some(text),
        JobBudget::MaxUnavailable(_) | JobBudget::MinAvailable(_) => None,
    }
}

fn is_preemptable_job(job: &Job) -> bool {
    job.pod_group.as_ref().is_some_and(|group| group.preemptable)
}

/// True if the pod or its PodGroup is explicitly preemptable. D26: the default does not count.
fn is_preemptable(cluster: &Cluster, task: TaskId) -> bool {
    let row = &cluster.tasks[task];
    let by_job = || cluster.job_of(task).is_some_and(is_preemptable_job);
    row.preemptable && (row.marked_preemptable || by_job())
}

/// Selects preemptable Running tasks, as many of each job as its budget allows. D27: the lowest
/// priority goes first, then the youngest, then by uid. Tasks without a job in the session stay
/// (section 1.6), and so do tasks whose eviction was refused and is not repeated yet (core.md 7.2).
fn within_budgets(cluster: &Cluster, tasks: impl Iterator<Item = TaskId>) -> Vec<TaskId> {
    let mut by_job: BTreeMap<&ObjectKey, (&Job, Vec<TaskId>)> = BTreeMap::new();
    for task in tasks {
        let row = &cluster.tasks[task];
        let runs = row.status == TaskStatus::Running && row.pause.is_none();
        if let Some((_, job)) = session_job(cluster, task)
            && runs
            && is_preemptable(cluster, task)
        {
            by_job.entry(&job.key).or_insert((job, Vec::new())).1.push(task);
        }
    }
    let mut chosen = Vec::new();
    for (job, mut tasks) in by_job.into_values() {
        tasks.sort_by_key(|&task| {
            let row = &cluster.tasks[task];
            (row.priority, Reverse(row.created_micros), &row.uid)
        });
        tasks.truncate(budget(job));
        chosen.append(&mut tasks);
    }
    chosen
}

/// Returns the number of Running tasks of the job that may be evicted now.
fn budget(job: &Job) -> usize {
    let (n_tasks, n_running) = (job.counts.total(), job.counts.of(TaskStatus::Running));
    let n_ended = job.counts.of(TaskStatus::Succeeded) + job.counts.of(TaskStatus::Failed);
    let unavailable = i64::from(n_tasks) - i64::from(n_ended) - i64::from(n_running);
    let allowed = match job.pod_group.as_ref().and_then(|group| group.budget.as_deref()) {
        None => 1,
        Some(JobBudget::MaxUnavailable(portion)) => portion.of(n_tasks) - unavailable,
        // D25: no task is evicted below the minimum.
        Some(JobBudget::MinAvailable(portion)) => i64::from(n_running) - portion.of(n_tasks),
        Some(JobBudget::Unreadable(_)) => 0,
    };
    usize::try_from(allowed).unwrap_or(0)
}
