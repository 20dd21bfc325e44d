//! Numbers and texts about a gang that waits: how many members it lacks, and which do not exist.
//! The PodGroup's condition, its event and its pods share them. Specification: core.md 3.10, 7.6;
//! plugins-jobs-queues.md 2.3.

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_model::{Counts, Gates, Job, JobId, Task, TaskId, TaskStatus};

use crate::message::job_text;
use crate::plugin::SessionView;
use crate::records::Records;

/// Texts of why a job waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitTexts {
    /// The text of [`job_text`].
    pub why: String,
    /// `<n>/<m> tasks in gang unschedulable: <why>`. `m` counts all members of the gang, including
    /// those that do not exist yet.
    pub gang: String,
}

impl WaitTexts {
    /// Returns the texts about a job.
    pub fn of(view: SessionView<'_>, records: &Records, id: JobId) -> Self {
        let n_lacking = n_lacking(view, records, &view.cluster.jobs[id]);
        Self::with_lacking(view, records, id, n_lacking)
    }

    /// Returns the texts about a job that lacks so many members.
    pub fn with_lacking(
        view: SessionView<'_>,
        records: &Records,
        id: JobId,
        n_lacking: i64,
    ) -> Self {
        let why = job_text(view, records, id);
        let gang = gang_text(&view.cluster.jobs[id], n_lacking.max(1), &why);
        Self { why, gang }
    }
}

fn gang_text(job: &Job, n_lacking: i64, why: &str) -> String {
    let minimum = usize::try_from(job.min_available).unwrap_or(0);
    let n_members = job.tasks.len().max(minimum);
    format!("{n_lacking}/{n_members} tasks in gang unschedulable: {why}")
}

/// Returns the number of members that a gang lacks. It is at least one where only a role or a
/// sub-group is short (D6: full readiness counts).
pub fn n_lacking(view: SessionView<'_>, records: &Records, job: &Job) -> i64 {
    if job.is_ready() {
        return role_deficit(job).max(1);
    }
    let was_placed = |task: &&TaskId| {
        let last = records.last_transaction.get(**task);
        view.cluster.tasks[**task].status == TaskStatus::Pending
            && last.is_some_and(|last| last.status.is_allocated())
    };
    let n_placed = job.tasks.iter().filter(was_placed).count() as i64;
    i64::from(job.min_available) - i64::from(job.counts.ready()) - n_placed
}

fn role_deficit(job: &Job) -> i64 {
    if !job.enforces_roles() {
        return 0;
    }
    let none = Counts::default();
    let deficit = |(role, &minimum): (&Arc<str>, &i32)| {
        let counts = job.roles.get(role).unwrap_or(&none);
        (i64::from(minimum) - i64::from(counts.ready() + counts.pending_best_effort)).max(0)
    };
    job.task_min_available.iter().map(deficit).sum()
}

/// Returns which members of a gang do not exist, so that no other member is tried. Returns `None`
/// if all members that the gang needs exist.
pub(crate) fn missing_members(job: &Job) -> Option<String> {
    let (valid, minimum) = (i64::from(job.counts.valid()), i64::from(job.min_available));
    let total = (valid < minimum).then(|| {
        let n_others = i64::from(job.counts.total()) - valid;
        let others = match n_others {
            0 => String::new(),
            _ => format!(", {n_others} failed or terminating"),
        };
        format!("{}{others}", missing("pod", "", valid, minimum))
    });
    let parts: Vec<String> =
        total.into_iter().chain(missing_of_roles(job)).chain(missing_sub_groups(job)).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn missing_of_roles(job: &Job) -> impl Iterator<Item = String> + '_ {
    let minimums = job.task_min_available.iter().filter(|_| job.enforces_roles());
    minimums.filter_map(|(role, &minimum)| {
        let valid = i64::from(job.roles.get(role).map_or(0, Counts::valid));
        let minimum = i64::from(minimum);
        let of_role = format!(" of role {role}");
        (valid < minimum).then(|| missing("pod", &of_role, valid, minimum))
    })
}

fn missing_sub_groups(job: &Job) -> impl Iterator<Item = String> + '_ {
    job.policies().iter().enumerate().filter_map(|(index, policy)| {
        let existing = i64::from(job.n_existing_sub_jobs(index));
        let minimum = i64::from(policy.min_sub_groups);
        let of_policy = format!(" of policy {}", policy.name);
        (existing < minimum).then(|| missing("sub-group", &of_policy, existing, minimum))
    })
}

/// Returns the scheduling gates that keep members of a job from being placed, by name. Returns
/// `None` if no member has a gate, apart from gates that are being removed.
pub fn gated_members(view: SessionView<'_>, job: &Job) -> Option<String> {
    if job.counts.of(TaskStatus::Pending) == 0 {
        return None;
    }
    let mut pods: BTreeMap<(&str, &'static str), Vec<&str>> = BTreeMap::new();
    for &task in &job.tasks {
        let row = &view.cluster.tasks[task];
        let is_gated = row.status == TaskStatus::Pending && !row.ungating;
        if let Some(names) = row.gate_names.as_ref().filter(|_| is_gated) {
            pods.entry((&**names, gate_hint(view, row))).or_default().push(&*row.key.name);
        }
    }
    let entry = |((names, hint), pods): (&(&str, &'static str), &Vec<&str>)| {
        let gates = if names.contains(", ") { "gates" } else { "gate" };
        match pods.as_slice() {
            [pod] => format!("1 pod ({pod}) has scheduling {gates} {names}{hint}"),
            [first, ..] => {
                let n_pods = pods.len();
                format!("{n_pods} pods ({first}, ...) have scheduling {gates} {names}{hint}")
            }
            [] => String::new(),
        }
    };
    let entries: Vec<String> = pods.iter().map(entry).collect();
    (!entries.is_empty()).then(|| entries.join("; "))
}

/// Returns what is missing before this scheduler removes the queue allocation gate (core.md 7.8).
fn gate_hint(view: SessionView<'_>, task: &Task) -> &'static str {
    match (task.gates, view.cluster.settings.queue_gate_admission, task.manages_queue_gate) {
        (Gates::QueueAllocationOnly, false, _) => {
            ", lifted with feature gate SchedulingGatesQueueAdmission only"
        }
        (Gates::QueueAllocationOnly, true, false) => {
            ", lifted with annotation scheduling.volcano.sh/queue-allocation-gate: \"true\" only"
        }
        _ => "",
    }
}

fn missing(kind: &str, whose: &str, existing: i64, minimum: i64) -> String {
    let n_missing = minimum - existing;
    let (plural, verb) = if n_missing == 1 { ("", "is") } else { ("s", "are") };
    format!("{n_missing} {kind}{plural}{whose} {verb} missing: {existing} of {minimum} exist")
}
