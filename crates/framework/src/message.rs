//! Texts of pod conditions and of a job's state. Specification: core.md 3.10, actions.md 10.1-10.2
//! (A43).

use std::collections::BTreeMap;

use vc_model::{JobId, Pause, STATUSES, Task, TaskId, TaskStatus, joined};

use crate::gang_text::{gated_members, missing_members};
use crate::plugin::SessionView;
use crate::records::Records;

/// Reason and message of the condition of a waiting task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskMessage {
    /// Condition reason.
    pub reason: &'static str,
    /// Condition message. Empty if there is none for this task in particular.
    pub message: String,
}

/// Returns reason and message of one task, by its last transaction if it has one (core.md 3.10).
pub fn task_message(view: SessionView<'_>, records: &Records, id: TaskId) -> TaskMessage {
    let mut message = String::new();
    let reason = write_task_message(view, records, id, &mut message);
    TaskMessage { reason, message }
}

/// Appends the message of one task to `text`, as [`task_message`] returns it. Returns the reason.
pub fn write_task_message(
    view: SessionView<'_>,
    records: &Records,
    id: TaskId,
    text: &mut String,
) -> &'static str {
    let task = &view.cluster.tasks[id];
    let last = records.last_transaction.get(id);
    let (status, node) = last.map_or((task.status, task.node), |last| (last.status, last.node));
    let mut assigned = |once: &str| {
        let (namespace, pod) = (&*task.key.namespace, &*task.key.name);
        let node = node.map_or("", |node| &*view.cluster.nodes[node].name);
        let to = " can possibly be assigned to ";
        for part in ["Pod ", namespace, "/", pod, to, node, ", once ", once] {
            text.push_str(part);
        }
    };
    match status {
        TaskStatus::Allocated => {
            assigned("minAvailable is satisfied");
            "Schedulable"
        }
        TaskStatus::Pipelined => {
            assigned("resource is released and minAvailable is satisfied");
            "Unschedulable"
        }
        TaskStatus::Binding if !task.keeps_place => {
            text.push_str(job_fit(records, task.job));
            status.as_str()
        }
        TaskStatus::Pending | TaskStatus::Binding => {
            write_pending_message(view, records, id, text);
            pending_reason(task)
        }
        other => {
            text.push_str(job_fit(records, task.job));
            other.as_str()
        }
    }
}

/// Returns the condition reason of a task that waits. A refused bind is an error of the scheduler
/// until it is repeated (core.md 7.2).
fn pending_reason(task: &Task) -> &'static str {
    match task.pause {
        Some(Pause::Bind(_)) => "SchedulerError",
        Some(Pause::Eviction) | None => "Unschedulable",
    }
}

fn write_pending_message(view: SessionView<'_>, records: &Records, id: TaskId, text: &mut String) {
    let task = &view.cluster.tasks[id];
    if let Some(Pause::Bind(error)) = &task.pause {
        text.push_str(error);
    } else if let Some(invalid) = &task.invalid {
        text.push_str(invalid);
    } else if let Some(errors) = records.fit_errors.get(id) {
        text.push_str(&errors.text(&view.cluster.dims));
    } else {
        text.push_str(job_fit(records, task.job));
    }
}

fn job_fit(records: &Records, job: Option<JobId>) -> &str {
    job.and_then(|job| records.fit_of(job)).map_or("", |text| &**text)
}

/// Returns why a job is or is not ready: histograms over its tasks and their earlier statuses
/// (core.md 3.10).
pub fn job_text(view: SessionView<'_>, records: &Records, id: JobId) -> String {
    let job = &view.cluster.jobs[id];
    // D6: a group that lacks only minimums of roles or sub-groups is not ready either.
    let ready = job.is_ready() && job.roles_ready() && job.sub_jobs_ready();
    let state = if ready { "ready" } else { "not ready" };
    let counted = STATUSES.iter().map(|&status| (job.counts.of(status), status.as_str()));
    let present = counted.filter(|(count, _)| 0 < *count);
    let mut entries: Vec<String> =
        present.map(|(count, status)| format!("{count} {status}")).collect();
    entries.push(format!("{} minAvailable", job.min_available));
    let mut text = format!("pod group is {state}, {}", joined(entries));
    if 0 < job.counts.of(TaskStatus::Pending) {
        text.push_str(&format!("; Pending: {}", pending_histogram(view, records, id)));
    }
    if let Some(origin) = records.fit_of(id) {
        text.push_str(&format!(". Origin reason is: {origin}"));
    } else if let Some(origin) = first_fit_error(view, records, id) {
        text.push_str(&format!(". Origin reason is {origin}"));
    } else if let Some(missing) = missing_members(job) {
        text.push_str(&format!(". {missing}"));
    }
    let gated = gated_members(view, job);
    let problems = records.field_problems.get(&id).map(|text| &**text);
    for sentence in [gated.as_deref(), problems].into_iter().flatten() {
        let end = if text.ends_with('.') { "" } else { "." };
        text.push_str(&format!("{end} {sentence}"));
    }
    text
}

fn pending_histogram(view: SessionView<'_>, records: &Records, id: JobId) -> String {
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    let is_pending = |&&task: &&TaskId| view.cluster.tasks[task].status == TaskStatus::Pending;
    let pending = view.cluster.jobs[id].tasks.iter().filter(is_pending);
    let reasons: Vec<&str> = pending.map(|&task| task_reason(view, records, task)).collect();
    for alike in reasons.chunk_by(|l, r| l == r) {
        *counts.entry(alike[0]).or_default() += alike.len();
    }
    joined(counts.into_iter().map(|(reason, count)| format!("{count} {reason}")).collect())
}

/// Returns the condition reason of a task without building its message.
fn task_reason(view: SessionView<'_>, records: &Records, id: TaskId) -> &'static str {
    let last = records.last_transaction.get(id);
    let task = &view.cluster.tasks[id];
    match last.map_or(task.status, |last| last.status) {
        TaskStatus::Allocated => "Schedulable",
        TaskStatus::Pipelined => "Unschedulable",
        TaskStatus::Pending => pending_reason(task),
        other => other.as_str(),
    }
}

fn first_fit_error(view: SessionView<'_>, records: &Records, id: JobId) -> Option<String> {
    view.cluster.jobs[id].tasks.iter().find_map(|task| {
        let errors = records.fit_errors.get(*task)?;
        let name = &view.cluster.tasks[*task].key.name;
        Some(format!("{name}: {}", errors.text(&view.cluster.dims)))
    })
}
