//! Splits the candidates of a victim job into surplus pods and pods that it needs.
//! Specification: actions.md 9.4.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_framework::SessionState;
use vc_model::{Counts, Job, JobId, SubJob, Task, TaskId};
use vc_resource::Resource;

/// The loss that evicting a bundle means for its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BundleKind {
    /// Surplus pods beyond every minimum of their job. Each of them may be evicted without the
    /// others.
    Safe,
    /// Pods that the job needs. They are evicted all together or not at all.
    Whole,
}

/// Victims of one job that are offered together.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bundle {
    pub(super) kind: BundleKind,
    pub(super) job: JobId,
    /// By priority, then uid.
    pub(super) tasks: Vec<TaskId>,
    /// Covered part of the need relative to what the job loses. Infinite for safe bundles.
    pub(super) benefit: f64,
}

/// Returns the bundles of the candidates, in no particular order.
pub(super) fn bundles(
    session: &SessionState<'_>,
    candidates: &[TaskId],
    need: &Resource,
) -> Vec<Bundle> {
    let mut by_job: BTreeMap<JobId, Vec<TaskId>> = BTreeMap::new();
    for &task in candidates {
        if let Some(job) = session.tasks[task].job {
            by_job.entry(job).or_default().push(task);
        }
    }
    let mut bundles = Vec::new();
    for (job, mut tasks) in by_job {
        let key = |&task: &TaskId| (session.tasks[task].priority, session.tasks[task].uid.clone());
        tasks.sort_by_key(key);
        let (safe, whole) = split(session, &session.jobs[job], tasks);
        for (kind, tasks) in [(BundleKind::Safe, safe), (BundleKind::Whole, whole)] {
            if !tasks.is_empty() {
                let benefit = benefit(session, kind, job, &tasks, need);
                bundles.push(Bundle { kind, job, tasks, benefit });
            }
        }
    }
    bundles
}

fn split(session: &SessionState<'_>, job: &Job, tasks: Vec<TaskId>) -> (Vec<TaskId>, Vec<TaskId>) {
    // A job below its minimum is broken already.
    if i64::from(job.counts.ready()) < i64::from(job.min_available) {
        return (tasks, Vec::new());
    }
    let mut budgets = SurplusBudgets::of(job);
    tasks.into_iter().partition(|&task| budgets.take(&session.tasks[task]))
}

/// The surplus of a job beyond its minimums.
struct SurplusBudgets<'j> {
    job: &'j Job,
    surplus: i64,
    /// Ready members beyond the minimum, per role with a minimum.
    roles: BTreeMap<Arc<str>, i64>,
    /// Ready sub-jobs beyond the minimum, per policy with a minimum.
    groups: BTreeMap<usize, i64>,
    /// Sub-jobs that are not ready, at first or after evictions.
    broken: BTreeSet<usize>,
}

impl<'j> SurplusBudgets<'j> {
    fn of(job: &'j Job) -> Self {
        let is_broken = |sub: &SubJob| !sub.counts.is_ready(sub.min_available);
        let broken = job.sub_jobs.iter().enumerate().filter(|(_, sub)| is_broken(sub));
        Self {
            job,
            surplus: i64::from(job.counts.ready()) - i64::from(job.min_available),
            roles: role_surplus(job),
            groups: group_surplus(job),
            broken: broken.map(|(index, _)| index).collect(),
        }
    }

    /// True if the task is surplus. Its budgets are then reduced.
    fn take(&mut self, task: &Task) -> bool {
        let role_allows = self.roles.get(&task.role).is_none_or(|&left| 0 < left);
        if self.surplus <= 0 || !role_allows || !self.take_of_group(task.sub_job) {
            return false;
        }
        self.surplus -= 1;
        if let Some(left) = self.roles.get_mut(&task.role) {
            *left -= 1;
        }
        true
    }

    /// True if the sub-job's policy allows the eviction. The first pod of a ready sub-job breaks
    /// it; its other pods cost nothing more.
    fn take_of_group(&mut self, sub_job: usize) -> bool {
        let policy = self.job.sub_jobs.get(sub_job).and_then(|sub| sub.policy);
        let Some(left) = policy.and_then(|policy| self.groups.get_mut(&policy)) else {
            return true;
        };
        if self.broken.contains(&sub_job) {
            return true;
        }
        if *left <= 0 {
            return false;
        }
        *left -= 1;
        self.broken.insert(sub_job);
        true
    }
}

fn role_surplus(job: &Job) -> BTreeMap<Arc<str>, i64> {
    if !job.enforces_roles() {
        return BTreeMap::new();
    }
    let none = Counts::default();
    let surplus = |(role, &minimum): (&Arc<str>, &i32)| {
        let counts = job.roles.get(role).unwrap_or(&none);
        let present = i64::from(counts.ready()) + i64::from(counts.pending_best_effort);
        (role.clone(), present - i64::from(minimum))
    };
    let limited = job.task_min_available.iter().filter(|(_, minimum)| **minimum != 0);
    limited.map(surplus).collect()
}

fn group_surplus(job: &Job) -> BTreeMap<usize, i64> {
    let policies = job.policies().iter().enumerate();
    let limited = policies.filter(|(_, policy)| 0 < policy.min_sub_groups);
    let ready = |index: usize| {
        let of_policy = job.existing_sub_jobs().filter(|sub| sub.policy == Some(index));
        of_policy.filter(|sub| sub.counts.is_ready(sub.min_available)).count()
    };
    let surplus = |index: usize, minimum: i32| ready(index) as i64 - i64::from(minimum);
    limited.map(|(index, policy)| (index, surplus(index, policy.min_sub_groups))).collect()
}

/// Returns the covered part of the need, summed over dimensions, divided by what the job loses in
/// the same units.
fn benefit(
    session: &SessionState<'_>,
    kind: BundleKind,
    job: JobId,
    tasks: &[TaskId],
    need: &Resource,
) -> f64 {
    if kind == BundleKind::Safe {
        return f64::INFINITY;
    }
    let mut local = Resource::default();
    tasks.iter().for_each(|&task| local.add(session.request(task)));
    let global = session.jobs[job].total_request();
    let (mut gain, mut loss) = (0.0, 0.0);
    for dim in need.dims().filter(|&dim| 0 < need.get(dim)) {
        let wanted = need.get(dim);
        gain += local.get(dim).min(wanted) as f64 / wanted as f64;
        loss += global.get(dim) as f64 / wanted as f64;
    }
    if loss == 0.0 { f64::INFINITY } else { gain / loss }
}
