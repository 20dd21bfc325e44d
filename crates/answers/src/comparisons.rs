//! What plugins that refused victims have compared, one text each. Specification: answers.md 8
//! (ANS-43).

use std::cell::OnceCell;
use std::collections::BTreeMap;

use vc_engine::{SkippedAction, SkippedCause};
use vc_framework::SessionState;
use vc_model::{Budget, Job, JobId, NodeId, ObjectKey, QueueId, TaskId, TaskStatus};
use vc_resource::{EPS, Fractional, Resource, share};

use crate::amounts::count;
use crate::evict::{OF_OTHERS, OF_QUEUE};
use crate::state_tables::StateTables;

/// Budgets that a text names.
const MOST_BUDGETS: usize = 3;

/// The jobs of one queue with pods that run.
#[derive(Default)]
pub(crate) struct RunningJobs {
    /// Number of jobs that have no pod beyond their minimum.
    n_at_minimum: usize,
    /// Number of jobs by priority.
    by_priority: BTreeMap<i32, usize>,
}

impl RunningJobs {
    /// Counts the jobs of each queue.
    pub(crate) fn by_queue(session: &SessionState<'_>) -> BTreeMap<QueueId, Self> {
        let mut found: BTreeMap<QueueId, Self> = BTreeMap::new();
        let jobs = session.view().cluster.jobs_by_key().map(|job| &session.jobs[job]);
        for job in jobs.filter(|job| has_running(job)) {
            let of_queue = found.entry(job.queue).or_default();
            of_queue.n_at_minimum += usize::from(is_at_minimum(job));
            *of_queue.by_priority.entry(job.priority).or_default() += 1;
        }
        found
    }

    /// Returns the lowest priority. A job that does not count may be one of these jobs.
    fn lowest_but(&self, own: Option<&Job>) -> Option<i32> {
        let is_own = |priority: i32| own.is_some_and(|own| own.priority == priority);
        let others = self
            .by_priority
            .iter()
            .filter(|(priority, n_jobs)| usize::from(is_own(**priority)) < **n_jobs);
        others.map(|(priority, _)| *priority).next()
    }
}

fn has_running(job: &Job) -> bool {
    0 < job.counts.of(TaskStatus::Running) + job.counts.of(TaskStatus::Bound)
}

fn is_at_minimum(job: &Job) -> bool {
    i64::from(job.counts.ready()) <= i64::from(job.min_available)
}

/// Returns what the plugins that refused victims of an action have compared. The list is empty for
/// an action that evicts nobody.
pub(crate) fn describe_comparisons(
    session: &SessionState<'_>,
    tables: &StateTables,
    (action, job): (&SkippedAction, JobId),
) -> Vec<String> {
    let name = action.action;
    let of_queue = OF_QUEUE.contains(&name);
    if !of_queue && !OF_OTHERS.contains(&name) {
        return Vec::new();
    }
    let failed =
        FailedEviction { session, action: name, job, of_queue, candidates: OnceCell::new() };
    action.causes.iter().filter_map(|cause| failed.describe(tables, cause)).collect()
}

/// An action that evicted nothing for a job.
struct FailedEviction<'a, 's> {
    session: &'a SessionState<'s>,
    action: &'static str,
    job: JobId,
    /// True if the action evicts pods of the job's queue, false if those of other queues.
    of_queue: bool,
    /// Pods that the action may evict before plugins are asked, in groups that are asked together.
    candidates: OnceCell<Vec<Vec<TaskId>>>,
}

impl FailedEviction<'_, '_> {
    /// Returns what the plugin of this cause has compared. Returns `None` if no plugin refused, or
    /// if there is no text about its comparison.
    fn describe(&self, tables: &StateTables, cause: &SkippedCause) -> Option<String> {
        match cause.plugin {
            Some("gang") => Some(self.describe_gang(tables)),
            Some("priority") => self.describe_priority(tables),
            Some("pdb") => self.describe_budgets(),
            Some("cdp") => self.describe_cooldowns(),
            Some("drf") => self.describe_job_shares(),
            Some(plugin @ ("proportion" | "capacity")) => self.describe_queue_shares(plugin),
            // The refusal of `cohort` is the cause itself.
            Some(_) | None => None,
        }
    }

    fn describe_gang(&self, tables: &StateTables) -> String {
        let n_jobs: usize = self.running_jobs(tables).map(|jobs| jobs.n_at_minimum).sum();
        let n_jobs = n_jobs - usize::from(self.own_running().is_some_and(is_at_minimum));
        let are = if n_jobs == 1 { "is at its" } else { "are at their" };
        format!("gang: {} {are} minimum", count(n_jobs, "candidate job"))
    }

    fn describe_priority(&self, tables: &StateTables) -> Option<String> {
        let own = self.own_running();
        let lowest = self.running_jobs(tables).filter_map(|jobs| jobs.lowest_but(own)).min()?;
        let priority = self.session.jobs[self.job].priority;
        Some(format!("priority: the job has {priority}, the lowest candidate {lowest}"))
    }

    /// Names the budgets that hold back most candidates. Of several budgets of a pod, those that
    /// allow least hold it back.
    fn describe_budgets(&self) -> Option<String> {
        let session = self.session;
        let mut by_budget: BTreeMap<ObjectKey, usize> = BTreeMap::new();
        for task in self.removed_by("pdb") {
            let (key, labels) = (&session.tasks[task].key, &session.class(task).labels);
            let namespace = &key.namespace;
            let of_namespace = session.budgets.of(namespace);
            let counting: Vec<(_, &Budget)> =
                of_namespace.filter(|(_, budget)| budget.counts(&key.name, labels)).collect();
            let least = counting.iter().map(|(_, budget)| budget.left()).min();
            for (name, _) in counting.iter().filter(|(_, budget)| Some(budget.left()) == least) {
                let budget = ObjectKey::new(namespace, name);
                *by_budget.entry(budget).or_default() += 1;
            }
        }
        let mut found: Vec<(ObjectKey, usize)> = by_budget.into_iter().collect();
        // The sort is stable, so budgets with as many pods stay in name order.
        found.sort_by_key(|(_, n_pods)| std::cmp::Reverse(*n_pods));
        let named = found.iter().take(MOST_BUDGETS);
        let mut parts: Vec<String> = named
            .map(|(budget, n_pods)| format!("{} of budget {budget}", count(*n_pods, "pod")))
            .collect();
        let n_more = found.len().saturating_sub(MOST_BUDGETS);
        if 0 < n_more {
            parts.push(format!("pods of {}", count(n_more, "more budget")));
        }
        (!parts.is_empty()).then(|| format!("pdb: {} may not go", parts.join(", ")))
    }

    fn describe_cooldowns(&self) -> Option<String> {
        let protected = self.removed_by("cdp");
        let cooldown = |&task: &TaskId| {
            let row = &self.session.tasks[task];
            Some(row.cooling_until_micros?.saturating_sub(row.scheduled_micros?))
        };
        let cooldowns: Vec<i64> = protected.iter().filter_map(cooldown).collect();
        let (shortest, longest) = (cooldowns.iter().min()?, cooldowns.iter().max()?);
        let are =
            if protected.len() == 1 { "is younger than its" } else { "are younger than their" };
        let up_to = if shortest == longest { "" } else { "up to " };
        let (pods, longest) = (count(protected.len(), "candidate pod"), duration_text(*longest));
        Some(format!("cdp: {pods} {are} cooldown of {up_to}{longest}"))
    }

    /// Compares the least share that the job would have with one more pod, and the highest share
    /// that a candidate job would have without one of its pods (plugins-jobs-queues.md 4.2).
    fn describe_job_shares(&self) -> Option<String> {
        // For other actions `drf` compares shares of queues, in the tree of `enableHierarchy`.
        if self.action != "preempt" {
            return None;
        }
        let (session, own) = (self.session, &self.session.jobs[self.job]);
        let total = session.view().total();
        let is_waiting = |task: &&TaskId| session.tasks[**task].status == TaskStatus::Pending;
        let share_with = |&task: &TaskId| {
            let mut held = own.allocated.clone();
            held.add(session.request(task));
            dominant_share(&held, total)
        };
        let share_without = |&task: &TaskId| {
            let mut left = session.jobs[session.tasks[task].job?].allocated.clone();
            left.sub(session.request(task));
            Some(dominant_share(&left, total))
        };
        let own_shares = own.tasks.iter().filter(is_waiting).map(share_with);
        let own_share = own_shares.min_by(f64::total_cmp)?;
        let others = self.candidates().iter().flatten().filter_map(share_without);
        let highest = others.max_by(f64::total_cmp).filter(|highest| *highest < own_share)?;
        let (own_share, highest) = share_texts(own_share, highest);
        let other = format!("the highest candidate would have {highest}");
        Some(format!("drf: its share would be {own_share}, {other}"))
    }

    /// Counts the queues that hold no more than they deserve of what their candidates request.
    fn describe_queue_shares(&self, plugin: &str) -> Option<String> {
        let session = self.session;
        let mut by_queue: BTreeMap<QueueId, Vec<TaskId>> = BTreeMap::new();
        for &task in self.candidates().iter().flatten() {
            if let Some(job) = session.tasks[task].job {
                by_queue.entry(session.jobs[job].queue).or_default().push(task);
            }
        }
        let is_within = |queue: QueueId, tasks: &[TaskId]| match plugin {
            "proportion" => self.is_within_division(queue, tasks),
            _ => self.is_within_quota(queue, tasks),
        };
        let n_queues =
            by_queue.iter().filter(|(queue, tasks)| is_within(**queue, tasks.as_slice())).count();
        let hold = match n_queues {
            0 => return None,
            1 => "holds no more than it deserves",
            _ => "hold no more than they deserve",
        };
        Some(format!("{plugin}: {} of candidates {hold}", count(n_queues, "queue")))
    }

    /// True if the queue has no surplus in a dimension that one of these pods requests, by the rule
    /// of `proportion` (plugins-jobs-queues.md 5.3).
    fn is_within_division(&self, queue: QueueId, tasks: &[TaskId]) -> bool {
        let Some((held, deserved)) = self.held_and_deserved(queue) else { return false };
        let is_above = |dim| deserved.get(dim) + EPS <= held.to_f64(dim);
        tasks.iter().all(|&task| !self.session.request(task).names().any(is_above))
    }

    /// True if the queue has no surplus for any of these pods, by the rule of `capacity`
    /// (plugins-jobs-queues.md 6.8).
    fn is_within_quota(&self, queue: QueueId, tasks: &[TaskId]) -> bool {
        let Some((held, deserved)) = self.held_and_deserved(queue) else { return false };
        let (held, dims) = (held.to_fractional(), &self.session.dims);
        tasks.iter().all(|&task| {
            let request = self.session.request(task).to_fractional();
            let is_lent = request.intersection(&deserved).next().is_some();
            is_lent && held.greater_partly_relevant(&deserved, &request, dims).is_empty()
        })
    }

    /// Returns what the jobs of the queue hold, and what the queue deserves. Returns `None` if no
    /// plugin divides the cluster between queues.
    fn held_and_deserved(&self, queue: QueueId) -> Option<(&Resource, Fractional)> {
        let found = self.session.plugins().queue_share(self.session.view(), queue)?;
        let held = &self.session.info().active_jobs.sums(queue).allocated;
        Some((held, found.deserved))
    }

    /// Returns the jobs with pods that run, of the queues from which the action evicts.
    fn running_jobs<'t>(&self, tables: &'t StateTables) -> impl Iterator<Item = &'t RunningJobs> {
        let (own, of_queue) = (self.session.jobs[self.job].queue, self.of_queue);
        let queues = tables.running_jobs(self.session).iter();
        queues.filter(move |(queue, _)| (**queue == own) == of_queue).map(|(_, jobs)| jobs)
    }

    /// Returns the job itself if it is counted among the jobs with pods that run.
    fn own_running(&self) -> Option<&Job> {
        let own = &self.session.jobs[self.job];
        (self.of_queue && has_running(own)).then_some(own)
    }

    /// Returns the candidates that this protective filter removes.
    fn removed_by(&self, filter: &str) -> Vec<TaskId> {
        let (plugins, view) = (self.session.plugins(), self.session.view());
        let asked = (self.of_queue, filter);
        let removed = |group: &Vec<TaskId>| plugins.removed_by_filter(view, asked, group);
        self.candidates().iter().flat_map(removed).collect()
    }

    fn candidates(&self) -> &[Vec<TaskId>] {
        self.candidates.get_or_init(|| self.find_candidates())
    }

    /// Returns the pods that the action may evict before plugins are asked. preempt and reclaim ask
    /// about the pods of one node at a time, the gang actions about all together.
    fn find_candidates(&self) -> Vec<Vec<TaskId>> {
        let session = self.session;
        let is_by_node = matches!(self.action, "preempt" | "reclaim");
        let mut groups: BTreeMap<Option<NodeId>, Vec<TaskId>> = BTreeMap::new();
        for job in session.view().cluster.jobs_by_key().filter(|&job| self.may_lose_pods(job)) {
            for &task in session.jobs[job].tasks.iter().filter(|task| self.may_go(**task)) {
                let node = session.tasks[task].node.filter(|_| is_by_node);
                groups.entry(node).or_default().push(task);
            }
        }
        groups.into_values().collect()
    }

    /// True if the action may evict pods of this job (actions.md 6.2, 7.3, 9.1).
    fn may_lose_pods(&self, job: JobId) -> bool {
        let (own, other) = (&self.session.jobs[self.job], &self.session.jobs[job]);
        let queue = &self.session.queues[other.queue];
        let is_in_reach = match self.of_queue {
            true => other.queue == own.queue,
            false => other.queue != own.queue && queue.present && queue.reclaimable,
        };
        let is_open = other.pod_group.as_ref().is_some_and(|group| match self.action {
            "gangpreempt" => !group.not_preemptable && other.priority < own.priority,
            "gangreclaim" => !group.not_preemptable,
            _ => true,
        });
        job != self.job && is_in_reach && is_open && has_running(other)
    }

    /// True if the action may evict this pod of a job that may lose pods.
    fn may_go(&self, task: TaskId) -> bool {
        let row = &self.session.tasks[task];
        let with_bound = match self.action {
            "reclaim" => self.session.settings.reclaim.reclaim_bound_tasks,
            "gangreclaim" => false,
            _ => true,
        };
        let is_running = row.status == TaskStatus::Running;
        row.can_be_evicted() && (is_running || with_bound && row.status == TaskStatus::Bound)
    }
}

/// Returns the largest share of the cluster in one dimension (plugins-jobs-queues.md 4.1).
fn dominant_share(held: &Resource, total: &Fractional) -> f64 {
    let shares = total.names().map(|dim| share(held.to_f64(dim), total.to_f64(dim)));
    shares.fold(0.0, f64::max)
}

/// Returns two shares with so many digits that the texts differ: at least 2, at most 6.
fn share_texts(own: f64, other: f64) -> (String, String) {
    let texts = |digits: usize| (format!("{own:.digits$}"), format!("{other:.digits$}"));
    (2..6).map(texts).find(|(own, other)| own != other).unwrap_or_else(|| texts(6))
}

/// Returns a duration in its largest whole unit: `1h`, `10m`, `90s`.
fn duration_text(micros: i64) -> String {
    let seconds = micros / 1_000_000;
    match seconds {
        1.. if seconds % 3_600 == 0 => format!("{}h", seconds / 3_600),
        1.. if seconds % 60 == 0 => format!("{}m", seconds / 60),
        _ => format!("{seconds}s"),
    }
}
