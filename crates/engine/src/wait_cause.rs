//! Why a pod waits, from the session's records of the pod and its job, and the texts of pods that
//! no action tried. Specification: core.md 3.10 (C-43).

use vc_framework::{SessionState, WaitCause};
use vc_model::{Gates, JobId, Pause, Task, TaskId, TaskStatus};

use crate::record::held;

/// Returns why this pod waits. The pod must be Pending, Allocated or Pipelined, or its bind must
/// wait or be refused.
pub(crate) fn wait_cause(session: &SessionState<'_>, task: TaskId) -> WaitCause {
    let row = &session.tasks[task];
    let Some(job) = row.job else { return WaitCause::NoGroupName };
    let records = &session.records;
    if let Some(cause) = outside_cause(session, row) {
        return cause;
    }
    if held::is_held(session, task) {
        return WaitCause::AwaitsVolumes;
    }
    if row.gates != Gates::None {
        return WaitCause::Gated;
    }
    let last = records.last_transaction.get(task);
    match last.map_or(row.status, |last| last.status) {
        TaskStatus::Allocated => return WaitCause::GangIncomplete,
        TaskStatus::Pipelined => return WaitCause::AwaitsRoom,
        _ => {}
    }
    if matches!(row.pause, Some(Pause::Bind(_))) {
        return WaitCause::BindRefused;
    }
    if row.invalid.is_some() {
        return WaitCause::Incomplete;
    }
    match records.fit_errors.get(task) {
        None => job_cause(session, job),
        Some(errors) if 0 < errors.n_nodes => WaitCause::FitsNowhere,
        Some(errors) if errors.head.is_none() => WaitCause::NoNodes,
        Some(_) if !session.queues[session.jobs[job].queue].is_open() => WaitCause::QueueNotOpen,
        Some(_) => WaitCause::QueueFull,
    }
}

/// Returns why a pod is not part of the session. Returns `None` if it is part of it.
pub(crate) fn outside_cause(session: &SessionState<'_>, row: &Task) -> Option<WaitCause> {
    let Some(job) = row.job else { return Some(WaitCause::NoGroupName) };
    let job = &session.jobs[job];
    if job.pod_group.is_none() {
        return Some(WaitCause::GroupMissing);
    }
    (!session.queues[job.queue].present).then_some(WaitCause::QueueMissing)
}

/// Returns why the pods of a job wait that have no record of their own.
pub(crate) fn job_cause(session: &SessionState<'_>, job: JobId) -> WaitCause {
    let row = &session.jobs[job];
    if let Some(cause) = session.records.job_cause(job) {
        return cause;
    }
    if session.plugins().job_valid(session.view(), job).is_err() {
        return WaitCause::MembersMissing;
    }
    let is_tried = |task: &TaskId| session.records.has(*task);
    let n_placed = row.counts.waiting() + row.counts.of(TaskStatus::Allocated);
    if 0 < n_placed || row.tasks.iter().any(is_tried) {
        return WaitCause::OtherMember;
    }
    match row.is_pending() && session.info().enqueue_configured {
        true => WaitCause::NotAdmitted,
        false => WaitCause::NotTried,
    }
}

/// Returns the text of a pod that is not part of the session. Volcano writes no text for such a
/// pod.
pub(crate) fn outside_text(session: &SessionState<'_>, cause: WaitCause, row: &Task) -> String {
    let job = row.job.map(|job| &session.jobs[job]);
    match (cause, job) {
        (WaitCause::GroupMissing, Some(job)) => {
            let elsewhere = match session.view().cluster.settings.division {
                Some(_) => ", or falls to another scheduler of MULTI_SCHEDULER_ENABLE",
                None => "",
            };
            format!("PodGroup {} does not exist{elsewhere}", job.key)
        }
        (WaitCause::QueueMissing, Some(job)) => {
            format!("queue {} does not exist", session.queues[job.queue].name)
        }
        _ => "the pod belongs to no PodGroup: annotation scheduling.k8s.io/group-name is missing. \
              Volcano's controllers add it; with --bare-pods=schedule it is not needed"
            .to_owned(),
    }
}

/// Returns the sentence after the text of the job, for a pod without a record of its own. Returns
/// `None` if the text of the job suffices.
pub(crate) fn job_sentence(session: &SessionState<'_>, job: JobId) -> Option<String> {
    let row = &session.jobs[job];
    match job_cause(session, job) {
        WaitCause::NotAdmitted => {
            let queue = &session.queues[row.queue].name;
            Some(format!("{} is not admitted to queue {queue}", row.key))
        }
        WaitCause::NotTried => {
            let why = "no action has tried the pod: allocate places pods with a request, backfill \
                       those without";
            Some(why.to_owned())
        }
        _ => None,
    }
}
