//! Time-sharing of revocable nodes: usable for marked pods inside a daily window, drained outside of
//! it. Specification: plugins-jobs-queues.md 13, D23-D27.

mod window;

use std::any::Any;
use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use vc_conf::{PluginOption, Warning};
use vc_framework::{Ask, Outbox, Plugin, PluginEntry, Points, Records, Verdict, Vote};
use vc_model::{
    Cluster, Code, Finding, Job, JobBudget, JobId, NodeId, ObjectKey, Reason, TaskId, TaskStatus,
    go_duration_micros,
};

use crate::rules::session_job;
use window::{Window, seconds_of_day};

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

struct Tdm {
    zones: BTreeMap<String, Zone>,
    period_micros: i64,
    /// `None`: there was none yet.
    last_round_micros: Option<i64>,
    /// In this session tasks may be evicted.
    is_round: bool,
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
    Box::new(Tdm { zones, period_micros, last_round_micros: None, is_round: false })
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

    /// The clock moves on with every round that could be held, even if it finds nobody.
    fn open(&mut self, ask: Ask<'_>) {
        let now = ask.facts.now_micros;
        let due = |last: i64| last.saturating_add(self.period_micros) <= now;
        self.is_round = self.last_round_micros.is_none_or(due);
        if self.is_round {
            self.last_round_micros = Some(now);
        }
    }

    fn close(&mut self, ask: Ask<'_>, _records: &Records, out: &mut Outbox) {
        for job in ask.all_jobs() {
            let row = &ask.cluster.jobs[job];
            let budget = row.pod_group.as_ref().and_then(|group| group.budget.as_deref());
            if let Some(JobBudget::Unreadable(text)) = budget {
                out.warnings.push(format!(
                    "podgroup {}: volcano.sh/jdb-*: neither a number nor a percentage: {text:?}, \
                     none of its pods is evicted by tdm\nhint: write 3 or 30%",
                    row.key,
                ));
            }
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

    fn predicate(&self, ask: Ask<'_>, task: TaskId, node: NodeId, findings: &mut Vec<Finding>) {
        let zone = &*ask.cluster.nodes[node].revocable_zone;
        if zone.is_empty() {
            return;
        }
        let reason = match self.usable(ask, zone) {
            Err(problem) => Reason::Owned(problem.into()),
            Ok(()) if !ask.cluster.tasks[task].any_revocable_zone => Reason::Text(NOT_ALLOWED),
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
        Ok(if ask.cluster.tasks[task].any_revocable_zone { MAX_SCORE } else { 0.0 })
    }

    fn preemptable(&self, ask: Ask<'_>, preemptor: TaskId, candidates: &[TaskId]) -> Verdict {
        let cluster = ask.cluster;
        let own = &cluster.tasks[preemptor];
        if own.any_revocable_zone || is_preemptable(cluster, preemptor) {
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

    fn victim_tasks(&self, ask: Ask<'_>, _running: &[TaskId]) -> Vec<TaskId> {
        if !self.is_round {
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

fn now_seconds(ask: Ask<'_>) -> i64 {
    let now_micros = ask.facts.now_micros;
    seconds_of_day(now_micros, (ask.cluster.settings.utc_offset_seconds)(now_micros))
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
