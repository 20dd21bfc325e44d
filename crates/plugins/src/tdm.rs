//! Time-sharing of revocable nodes: usable for marked pods inside a daily window, drained outside of
//! it. Specification: plugins-jobs-queues.md 13, D23-D27.

mod window;

use std::any::Any;
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_conf::{PluginOption, Warning};
use vc_framework::{
    Ask, Clock, NodeTests, ObjectRule, Outbox, Part, Plugin, PluginEntry, Points, Reads, Records,
    Test, Verdict, Vote,
};
use vc_model::{
    Cluster, Code, Finding, Job, JobBudget, JobId, NodeId, ObjectKey, Reason, TaskId, TaskStatus,
    go_duration_micros,
};

use crate::rules::session_job;
use window::{Window, offset_may_change_micros, seconds_of_day};

pub(crate) const ENTRY: PluginEntry = PluginEntry { name: "tdm", build };

const POINTS: Points = Points::PREDICATE
    .and(Points::NODE_ORDER)
    .and(Points::PREEMPTABLE)
    .and(Points::VICTIM_TASKS)
    .and(Points::JOB_ORDER)
    .and(Points::JOB_PIPELINED)
    .and(Points::JOB_STARVING);

/// Before the name of a zone: its daily window, local time, as `H:MM-HH:MM`.
const ZONE: &str = "tdm.revocable-zone.";
/// A duration: the shortest time between two rounds of evictions.
const PERIOD: &str = "tdm.evict.period";
const DEFAULT_PERIOD_MICROS: i64 = 60_000_000;

const NOT_ALLOWED: &str = "not allow to dispatch to revocable node";
const MAX_SCORE: f64 = 100.0;

#[derive(Default)]
struct Tdm {
    zones: BTreeMap<String, Zone>,
    period_micros: i64,
    /// `None`: there was none yet.
    last_round_micros: Option<i64>,
    /// In this session tasks may be evicted.
    is_round: bool,
    /// The zones that are usable in this session, and how often others were before.
    active: Vec<bool>,
    edition: u64,
    /// Jobs whose budget cannot be read.
    unreadable: BTreeSet<JobId>,
}

/// What is configured for a zone.
struct Zone {
    text: String,
    /// `None`: it cannot be read; nothing is placed in the zone and nothing evicted from it.
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
        zones.insert(key.replacen(ZONE, "", 1), Zone { text: text.to_owned(), window });
    }
    let period_micros = period_micros(option, warnings);
    Box::new(Tdm { zones, period_micros, ..Tdm::default() })
}

fn period_micros(option: &PluginOption, warnings: &mut Vec<Warning>) -> i64 {
    let arguments = &option.arguments;
    let Some(value) = arguments.get(PERIOD) else { return DEFAULT_PERIOD_MICROS };
    let period = value.as_str().and_then(go_duration_micros);
    if period.is_none() {
        let remedy = "write a duration in quotes, such as \"30s\"; until then the default 1m is in \
                      force";
        let message = format!("not a duration: {value}");
        warnings.push(arguments.warning(PERIOD, &message, remedy));
    }
    period.unwrap_or(DEFAULT_PERIOD_MICROS)
}

impl Plugin for Tdm {
    fn points(&self) -> Points {
        POINTS
    }

    fn judges_rows(&self) -> bool {
        true
    }

    /// The clock is the process's, not the configuration's (13).
    fn hand_over(&mut self) -> Option<Box<dyn Any + Send>> {
        self.last_round_micros.map(|last| Box::new(last) as Box<dyn Any + Send>)
    }

    fn take_over(&mut self, memory: Box<dyn Any + Send>) {
        self.last_round_micros = memory.downcast().ok().map(|last| *last);
    }

    fn votes_by_job(&self, _ask: Ask<'_>) -> bool {
        true
    }

    fn knows_askers(&self, _ask: Ask<'_>, _task: TaskId) -> bool {
        true
    }

    /// Windows open and end, and rounds of evictions are due.
    fn clock(&self, ask: Ask<'_>) -> Clock {
        let now = ask.facts.now_micros;
        let round = self.last_round_micros.map_or(now, |last| self.due_micros(last));
        let seconds = now_seconds(ask);
        let until = |window: Window| window.seconds_to_turn(seconds) * 1_000_000;
        let windows = self.zones.values().filter_map(|zone| zone.window);
        let turns = windows.map(|window| now - now.rem_euclid(1_000_000) + until(window));
        let until = turns.fold(round.min(offset_may_change_micros(now)), i64::min);
        Clock::Until(until)
    }

    /// What is asked about nodes depends on their zone, on the pod's mark, and on the windows alone.
    fn reads(&self, _ask: Ask<'_>, _task: TaskId, _point: Points) -> Reads {
        Reads::ClassAndNode
    }

    fn edition(&self) -> u64 {
        self.edition
    }

    /// The clock moves on with every round that could be held, even if it finds nobody.
    fn open(&mut self, ask: Ask<'_>) {
        let now = ask.facts.now_micros;
        self.is_round = self.last_round_micros.is_none_or(|last| self.due_micros(last) <= now);
        if self.is_round {
            self.last_round_micros = Some(now);
        }
        let seconds = now_seconds(ask);
        let active = self.zones.values().map(|zone| zone.is_active(seconds)).collect();
        let before = std::mem::replace(&mut self.active, active);
        self.edition += u64::from(before != self.active);
        match ask.facts.roster.changed() {
            Some(changed) => changed.iter().for_each(|&job| self.enter(ask, job)),
            None => {
                self.unreadable.clear();
                ask.all_jobs().for_each(|job| self.enter(ask, job));
            }
        }
    }

    fn close(&mut self, ask: Ask<'_>, _records: &Records, out: &mut Outbox) {
        for job in ask.facts.roster.gone() {
            self.unreadable.remove(job);
        }
        let rows = self.unreadable.iter().filter_map(|&job| ask.cluster.jobs.get(job));
        let of_budget = |row: &Job| Some((row.key.clone(), unreadable(row)?.clone()));
        let texts: BTreeMap<ObjectKey, Arc<str>> = rows.filter_map(of_budget).collect();
        for (key, text) in texts {
            out.warnings.push(format!(
                "podgroup {key}: volcano.sh/jdb-*: neither a number nor a percentage: {text:?}, \
                 none of its pods is evicted by tdm\nhint: write 3 or 30%",
            ));
        }
    }

    fn job_order(&self, ask: Ask<'_>, l: JobId, r: JobId) -> Ordering {
        let preemptable = |job: JobId| is_preemptable_job(&ask.cluster.jobs[job]);
        preemptable(l).cmp(&preemptable(r))
    }

    fn job_pipelined(&self, ask: Ask<'_>, job: JobId) -> Vote {
        match ask.cluster.jobs[job].is_pipelined() {
            true => Vote::Permit,
            false => Vote::Reject,
        }
    }

    fn job_starving(&self, ask: Ask<'_>, job: JobId) -> bool {
        let job = &ask.cluster.jobs[job];
        !is_preemptable_job(job) && 0 < job.counts.of(TaskStatus::Pending)
    }

    fn node_tests<'a>(&'a self, ask: Ask<'a>, task: TaskId) -> Option<NodeTests<'a>> {
        let is_marked = ask.cluster.class(task).any_revocable_zone;
        let passes = move |node: NodeId| {
            let zone = &*ask.cluster.nodes[node].revocable_zone;
            zone.is_empty() || (is_marked && self.is_usable(ask, zone))
        };
        let rule = ObjectRule {
            name: "zone",
            part: Part::RevocableZones,
            version: 0,
            ask: Box::new(move |node| i64::from(passes(node))),
        };
        Some(NodeTests { tests: vec![Test::Object(rule)], wide: None })
    }

    fn predicate(&self, ask: Ask<'_>, task: TaskId, node: NodeId, findings: &mut Vec<Finding>) {
        let zone = &*ask.cluster.nodes[node].revocable_zone;
        if zone.is_empty() {
            return;
        }
        let reason = match self.usable(ask, zone) {
            Err(problem) => Reason::Owned(problem.into()),
            Ok(()) if !ask.cluster.class(task).any_revocable_zone => Reason::Text(NOT_ALLOWED),
            Ok(()) => return,
        };
        findings.push(Finding { code: Code::Unresolvable, reason });
    }

    fn node_order(&self, ask: Ask<'_>, task: TaskId, node: NodeId) -> Result<f64, String> {
        let zone = &*ask.cluster.nodes[node].revocable_zone;
        if zone.is_empty() {
            return Ok(0.0);
        }
        self.usable(ask, zone)?;
        Ok(if ask.cluster.class(task).any_revocable_zone { MAX_SCORE } else { 0.0 })
    }

    fn preemptable(&self, ask: Ask<'_>, preemptor: TaskId, candidates: &[TaskId]) -> Verdict {
        let cluster = ask.cluster;
        if cluster.class(preemptor).any_revocable_zone || is_preemptable(cluster, preemptor) {
            return Verdict::Victims(Vec::new());
        }
        let on_plain_node = |&task: &TaskId| {
            let node = cluster.tasks[task].node.map(|node| &cluster.nodes[node]);
            node.is_some_and(|node| node.revocable_zone.is_empty())
        };
        let victims = within_budgets(cluster, candidates.iter().copied().filter(on_plain_node));
        let chosen = |task: &TaskId| victims.contains(task);
        Verdict::Victims(candidates.iter().copied().filter(chosen).collect())
    }

    /// In a round, where a window that is configured is not in force.
    fn selects_victims(&self) -> bool {
        let mut zones = self.zones.values().zip(&self.active);
        self.is_round && zones.any(|(zone, is_active)| zone.window.is_some() && !is_active)
    }

    fn victim_tasks(&self, ask: Ask<'_>, _running: &[TaskId]) -> Vec<TaskId> {
        if !self.selects_victims() {
            return Vec::new();
        }
        let is_closed = |&node: &NodeId| {
            let zone = self.zones.get(&*ask.cluster.nodes[node].revocable_zone);
            let window = zone.and_then(|zone| zone.window);
            window.is_some_and(|window| !window.is_active(now_seconds(ask)))
        };
        let nodes = ask.facts.nodes.iter().filter(|&node| is_closed(node));
        let tasks = nodes.flat_map(|&node| ask.cluster.nodes[node].tasks.iter().copied());
        within_budgets(ask.cluster, tasks)
    }
}

impl Tdm {
    /// Notes whether the budget of a job can be read.
    fn enter(&mut self, ask: Ask<'_>, job: JobId) {
        match ask.has_job(job) && unreadable(&ask.cluster.jobs[job]).is_some() {
            true => self.unreadable.insert(job),
            false => self.unreadable.remove(&job),
        };
    }

    /// When the round after the last one may be held.
    fn due_micros(&self, last_micros: i64) -> i64 {
        last_micros.saturating_add(self.period_micros)
    }

    fn is_usable(&self, ask: Ask<'_>, name: &str) -> bool {
        self.zones.get(name).is_some_and(|zone| zone.is_active(now_seconds(ask)))
    }

    /// Whether the zone is known and its window is in force.
    fn usable(&self, ask: Ask<'_>, name: &str) -> Result<(), String> {
        let zone = self.zones.get(name);
        let zone = zone.ok_or_else(|| format!("revocable zone {name} not support"))?;
        let text = &zone.text;
        match zone.window {
            None => Err(format!("revocable zone {name} has no readable window: {text}")),
            Some(window) if window.is_active(now_seconds(ask)) => Ok(()),
            Some(_) => Err(format!("current time beyond revocable zone {name}:{text}")),
        }
    }
}

impl Zone {
    /// Whether its window is in force at so many seconds after midnight.
    fn is_active(&self, seconds: i64) -> bool {
        self.window.is_some_and(|window| window.is_active(seconds))
    }
}

fn now_seconds(ask: Ask<'_>) -> i64 {
    let now_micros = ask.facts.now_micros;
    seconds_of_day(now_micros, (ask.cluster.settings.utc_offset_seconds)(now_micros))
}

/// The text of a budget that cannot be read.
fn unreadable(job: &Job) -> Option<&Arc<str>> {
    match job.pod_group.as_ref()?.budget.as_deref()? {
        JobBudget::Unreadable(text) => Some(text),
        JobBudget::MaxUnavailable(_) | JobBudget::MinAvailable(_) => None,
    }
}

fn is_preemptable_job(job: &Job) -> bool {
    job.pod_group.as_ref().is_some_and(|group| group.preemptable)
}

/// Only what its pod or its PodGroup says counts, not the default (D26).
fn is_preemptable(cluster: &Cluster, task: TaskId) -> bool {
    let row = &cluster.tasks[task];
    let by_job = || cluster.job_of(task).is_some_and(is_preemptable_job);
    row.preemptable && (row.marked_preemptable || by_job())
}

/// Of the preemptable Running tasks, as many of each job as its budget allows: the lowest priority
/// first, then the youngest, then by uid (D27). Tasks of no job in the session stay (1.6).
fn within_budgets(cluster: &Cluster, tasks: impl Iterator<Item = TaskId>) -> Vec<TaskId> {
    let mut by_job: BTreeMap<&ObjectKey, (&Job, Vec<TaskId>)> = BTreeMap::new();
    for task in tasks {
        let runs = cluster.tasks[task].status == TaskStatus::Running;
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

/// How many Running tasks of the job may go now.
fn budget(job: &Job) -> usize {
    let (n_tasks, n_running) = (job.counts.total(), job.counts.of(TaskStatus::Running));
    let n_ended = job.counts.of(TaskStatus::Succeeded) + job.counts.of(TaskStatus::Failed);
    let unavailable = i64::from(n_tasks) - i64::from(n_ended) - i64::from(n_running);
    let allowed = match job.pod_group.as_ref().and_then(|group| group.budget.as_deref()) {
        None => 1,
        Some(JobBudget::MaxUnavailable(portion)) => portion.of(n_tasks) - unavailable,
        // Below the minimum nobody goes (D25).
        Some(JobBudget::MinAvailable(portion)) => i64::from(n_running) - portion.of(n_tasks),
        Some(JobBudget::Unreadable(_)) => 0,
    };
    usize::try_from(allowed).unwrap_or(0)
}
