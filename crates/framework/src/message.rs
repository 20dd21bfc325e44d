//! Texts of pod conditions and of a job's state. Specification: core.md 3.10, actions.md 10.1-10.2
//! (A43).

use std::collections::BTreeMap;

use vc_model::{JobId, NodeId, Pause, STATUSES, Task, TaskId, TaskStatus, joined};

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
    let task = &view.cluster.tasks[id];
    let last = records.last_transaction.get(id);
    let (status, node) = last.map_or((task.status, task.node), |last| (last.status, last.node));
    let name = |node: NodeId| &*view.cluster.nodes[node].name;
    let node_name = node.map_or("", name);
    let assigned = |once: &str| {
        let (namespace, pod) = (&*task.key.namespace, &*task.key.name);
        // `concat` writes into one allocation.
        let node = [" can possibly be assigned to ", node_name];
        ["Pod ", namespace, "/", pod, node[0], node[1], ", once ", once].concat()
    };
    let (reason, message) = match status {
        TaskStatus::Allocated => ("Schedulable", assigned("minAvailable is satisfied")),
        TaskStatus::Pipelined => {
            ("Unschedulable", assigned("resource is released and minAvailable is satisfied"))
        }
        TaskStatus::Binding if !task.keeps_place => (status.as_str(), job_fit(records, task.job)),
        TaskStatus::Pending | TaskStatus::Binding => {
            (pending_reason(task), pending_message(view, records, id))
        }
        other => (other.as_str(), job_fit(records, task.job)),
    };
    TaskMessage { reason, message }
}

/// Returns the condition reason of a task that waits. A refused bind is an error of the scheduler
/// until it is repeated (core.md 7.2).
fn pending_reason(task: &Task) -> &'static str {
    match task.pause {
        Some(Pause::Bind(_)) => "SchedulerError",
        Some(Pause::Eviction) | None => "Unschedulable",
    }
}

fn pending_message(view: SessionView<'_>, records: &Records, id: TaskId) -> String {
    let task = &view.cluster.tasks[id];
    if let Some(Pause::Bind(text)) = &task.pause {
        return text.to_string();
    }
    if let Some(invalid) = &task.invalid {
        return invalid.to_string();
    }
    match records.fit_errors.get(id) {
        Some(errors) => errors.text(&view.cluster.dims),
        None => job_fit(records, task.job),
    }
}

fn job_fit(records: &Records, job: Option<JobId>) -> String {
    let text = job.and_then(|job| records.fit_of(job));
    text.map(|text| text.to_string()).unwrap_or_default()
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
    if let Some(gated) = gated_members(view, job) {
        let end = if text.ends_with('.') { "" } else { "." };
        text.push_str(&format!("{end} {gated}"));
    }
    text
}

fn pending_histogram(view: SessionView<'_>, records: &Records, id: JobId) -> String {
    let mut counts: BTreeMap<&'static str, u32> = BTreeMap::new();
    for &task in &view.cluster.jobs[id].tasks {
        if view.cluster.tasks[task].status == TaskStatus::Pending {
            *counts.entry(task_reason(view, records, task)).or_default() += 1;
        }
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
