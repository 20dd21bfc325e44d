//! The report of a cycle: counts, pipelined tasks and, on request, why tasks wait and how queues
//! use their shares.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_framework::{
    PipelinedTask, QueueUse, Report, Sentences, Session, WaitingTask, job_text, task_message,
};
use vc_model::{Gates, JobId, ObjectKey, QueueId, TaskId, TaskStatus};
use vc_resource::Resource;

use crate::queue_status::sums_with_descendants;
use crate::record::held;
use crate::skipped::skipped;
use crate::wait_cause::{outside_cause, outside_text, wait_cause};

/// Returns the report. It must be made before uncommitted operations are undone.
pub(crate) fn report(session: &Session<'_>, explain: bool) -> Report {
    let mut report = Report {
        n_nodes: session.info().nodes.len(),
        n_jobs: session.info().active_jobs.n_jobs(),
        ..Report::default()
    };
    for &job in &session.info().to_close {
        if session.jobs[job].counts.waiting() == 0 {
            continue;
        }
        let pipelined = session.jobs[job].tasks.iter();
        let pipelined = pipelined.filter(|&&task| status(session, task) == TaskStatus::Pipelined);
        report.pipelined.extend(pipelined.filter_map(|&task| pipelined_task(session, task)));
    }
    if explain {
        report.waiting = waiting(session);
        report.turns = turns(session);
        report.skipped = skipped(session).into_iter().map(|(_, skipped)| skipped).collect();
        let mut held = sums_with_descendants(session);
        let queues = session.info().queues.iter();
        let of_queue = |&queue| queue_use(session, queue, held.remove(&queue).unwrap_or_default());
        report.queues = queues.map(of_queue).collect();
        report.quotas = session.plugins().quota_use(session.view());
        report.usages = session.plugins().account_use(session.view());
    }
    report
}

/// Returns the jobs in the order of their first turns.
fn turns(session: &Session<'_>) -> Vec<ObjectKey> {
    let mut seen = BTreeSet::new();
    let turns = session.outcome.turns.iter().flatten();
    let first = turns.filter(|&&job| seen.insert(job));
    first.map(|&job| session.jobs[job].key.clone()).collect()
}

fn status(session: &Session<'_>, task: TaskId) -> TaskStatus {
    session.tasks[task].status
}

fn pipelined_task(session: &Session<'_>, task: TaskId) -> Option<PipelinedTask> {
    let row = &session.tasks[task];
    let node = session.nodes[row.node?].name.clone();
    Some(PipelinedTask { pod: row.key.clone(), node })
}

fn waiting(session: &Session<'_>) -> Vec<WaitingTask> {
    let waits = |&task: &TaskId| {
        let status = status(session, task);
        let placed = matches!(status, TaskStatus::Allocated | TaskStatus::Pipelined);
        let pauses = session.tasks[task].keeps_place;
        placed || status == TaskStatus::Pending || pauses || held::is_held(session, task)
    };
    let mut tasks: Vec<TaskId> = session.tasks.ids().filter(waits).collect();
    tasks.sort_by_key(|&task| &session.tasks[task].key);
    let (mut texts, mut sentences) = (BTreeMap::new(), Sentences::default());
    tasks.into_iter().map(|task| explain(session, task, (&mut texts, &mut sentences))).collect()
}

/// Texts by job. Each text depends on all tasks of the job, so it is computed once.
type JobTexts = BTreeMap<JobId, String>;

fn explain(
    session: &Session<'_>,
    task: TaskId,
    (texts, sentences): (&mut JobTexts, &mut Sentences),
) -> WaitingTask {
    let row = &session.tasks[task];
    let mut reported = task_message(session.view(), &session.records, task);
    if held::is_held(session, task) {
        reported.message = held::text(session, task);
    }
    if reported.message.is_empty() {
        reported.message = why_not_tried(session, task, texts);
    }
    // A refused bind has its own sentence (C-50: refused writes pause).
    if let Some(job) = row.job.filter(|_| row.gates == Gates::None && row.pause.is_none()) {
        sentences.append(session, job, task, &mut reported.message);
    }
    let nobody = || ObjectKey { namespace: row.key.namespace.clone(), name: "".into() };
    let job = row.job.map(|job| &session.jobs[job]);
    WaitingTask {
        pod: row.key.clone(),
        pod_group: job.filter(|job| !job.bare).map_or_else(nobody, |job| job.key.clone()),
        queue: job.map_or_else(Arc::default, |job| session.queues[job.queue].name.clone()),
        reason: reported.reason,
        cause: wait_cause(session, task),
        message: reported.message,
    }
}

/// Returns why no action tried a task. The obstacles are checked in the order in which actions
/// would check them.
fn why_not_tried(session: &Session<'_>, task: TaskId, texts: &mut JobTexts) -> String {
    let row = &session.tasks[task];
    if let Some(cause) = outside_cause(session, row) {
        return outside_text(session, cause, row);
    }
    if let Some(names) = &row.gate_names {
        return format!("the pod has scheduling gate {names}");
    }
    let Some(job) = row.job else { return String::new() };
    let row = &session.jobs[job];
    let queue = &session.queues[row.queue];
    if row.is_pending() && session.info().enqueue_configured {
        let (kind, key) = match row.bare {
            true => ("pod", &session.tasks[task].key),
            false => ("PodGroup", &row.key),
        };
        return format!("{kind} {key} is not admitted to queue {}", queue.name);
    }
    let text_of_job = || {
        not_valid(session, job).unwrap_or_else(|| job_text(session.view(), &session.records, job))
    };
    texts.entry(job).or_insert_with(text_of_job).clone()
}

fn not_valid(session: &Session<'_>, job: JobId) -> Option<String> {
    session.plugins().job_valid(session.view(), job).err().map(|invalid| invalid.message)
}

fn queue_use(session: &Session<'_>, queue: QueueId, allocated: Resource) -> QueueUse {
    let share = session.plugins().queue_share(session.view(), queue);
    QueueUse {
        queue: session.queues[queue].name.clone(),
        allocated: allocated.to_quantities(&session.dims),
        deserved: share.as_ref().map(|share| share.deserved.to_quantities(&session.dims)),
        share: share.map(|share| share.share),
    }
}
