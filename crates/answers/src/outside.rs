//! Verdicts about what no session has: pods of other schedulers, jobs of which nothing waits, and jobs without a PodGroup
//! or without a queue. Specification: answers.md 2 (ANS-6).

use vc_framework::Session;
use vc_model::{JobId, OtherScheduler, TaskId, TaskStatus};

use crate::amounts::count;
use crate::code::WaitCode;
use crate::explanation::Verdict;
use crate::line::waits;
use crate::stage_rows::{StageRow, bind_failed, gated, invalid, not_valid, verdict_of};
use crate::subject::Subject;
use crate::trials::asks_admission;

/// Returns the verdict about a subject that no trial is needed for. Returns `None` if it waits in the session.
pub(crate) fn outside_verdict(session: &Session<'_>, subject: Subject) -> Option<Verdict> {
    if let Some(row) = settled(session, subject) {
        return verdict_of(vec![row]);
    }
    let group = group_missing(session, subject);
    let without_queue = subject.job.filter(|&job| group.is_none() && lacks_queue(session, job));
    if group.is_none() && without_queue.is_none() {
        return None;
    }
    let alone: Vec<TaskId> = subject.pod.into_iter().collect();
    let members = subject.job.map_or(&alone, |job| &session.jobs[job].tasks);
    let rows =
        [bind_failed(session, members), invalid(session, members), group, gated(session, members)];
    let mut rows: Vec<StageRow> = rows.into_iter().flatten().collect();
    rows.extend(without_queue.into_iter().flat_map(|job| queue_rows(session, job)));
    verdict_of(rows)
}

/// Returns the row of a subject that another scheduler decides about, or that does not wait.
fn settled(session: &Session<'_>, subject: Subject) -> Option<StageRow> {
    if let Some(other) = other_scheduler(session, subject) {
        return Some((WaitCode::NotOurs, not_ours_text(other)));
    }
    if let Some(row) = subject.pod.and_then(|pod| pod_row(session, pod)) {
        return Some(row);
    }
    let job = subject.job.filter(|&job| !waits(session, job))?;
    let pods = &session.jobs[job].tasks;
    let binding = pods.iter().find_map(|&task| pod_row(session, task));
    let text = match pods.len() {
        0 => "no pod of it waits".to_owned(),
        1 => "its pod has a node".to_owned(),
        n_pods => format!("all {} have a node", count(n_pods, "pod")),
    };
    let is_binding = |row: &StageRow| row.0 == WaitCode::Binding;
    binding.filter(is_binding).or(Some((WaitCode::Placed, text)))
}

/// Returns the row of a pod that names no PodGroup, or of a job whose PodGroup does not exist.
fn group_missing(session: &Session<'_>, subject: Subject) -> Option<StageRow> {
    let Some(job) = subject.job else {
        let why = "the pod names no PodGroup: annotation scheduling.k8s.io/group-name is missing";
        return Some((WaitCode::NoGroup, why.to_owned()));
    };
    let row = &session.jobs[job];
    if row.pod_group.is_some() {
        return None;
    }
    let elsewhere = match session.view().cluster.settings.division {
        Some(_) => ", or falls to another scheduler of MULTI_SCHEDULER_ENABLE",
        None => "",
    };
    Some((WaitCode::NoGroup, format!("PodGroup {} does not exist{elsewhere}", row.key)))
}

fn lacks_queue(session: &Session<'_>, job: JobId) -> bool {
    !session.queues[session.jobs[job].queue].present
}

/// Returns the rows of the stages `queue` and `members` of a job whose queue does not exist. No session has it, so
/// that nothing is known of the later stages.
fn queue_rows(session: &Session<'_>, job: JobId) -> Vec<StageRow> {
    let row = &session.jobs[job];
    let text = format!("queue {} does not exist", session.queues[row.queue].name);
    let mut rows = vec![(WaitCode::QueueMissing, text)];
    // Controllers may create the pods once the job is admitted.
    let has_pods = !row.tasks.is_empty() || !asks_admission(session, job);
    if has_pods && let Err(refused) = session.plugins().job_valid(session.view(), job) {
        rows.push(not_valid(row, &refused.message));
    }
    rows
}

/// Returns the scheduler that decides in place of this one about a pod, or about all pods of a job.
/// Returns `None` if this one decides about some of them, or if several others decide.
fn other_scheduler<'s>(session: &'s Session<'_>, subject: Subject) -> Option<&'s OtherScheduler> {
    let cluster = session.view().cluster;
    if let Some(pod) = subject.pod {
        return cluster.other_scheduler(pod);
    }
    let pods = &cluster.jobs[subject.job?].tasks;
    let mut schedulers = pods.iter().map(|&pod| cluster.other_scheduler(pod));
    let first = schedulers.next()??;
    schedulers.all(|other| other == Some(first)).then_some(first)
}

/// Returns the text of a verdict about what another scheduler decides about.
pub(crate) fn not_ours_text(other: &OtherScheduler) -> String {
    let name: &str = match other {
        // An API server writes this name if there is none.
        OtherScheduler::ByName(name) if name.is_empty() => "default-scheduler",
        OtherScheduler::ByName(name) => name,
        OtherScheduler::ByDivision(name) => {
            let by = "by the division of work of MULTI_SCHEDULER_ENABLE";
            return format!("scheduler {name} decides about it, {by}");
        }
        OtherScheduler::Unnamed => return "another scheduler decides about it".to_owned(),
    };
    format!("scheduler {name} decides about it")
}

/// Returns the row of a pod that has a node, or has ended.
fn pod_row(session: &Session<'_>, pod: TaskId) -> Option<StageRow> {
    let row = &session.tasks[pod];
    let node = &session.nodes[row.node?].name;
    Some(match row.status {
        TaskStatus::Binding => {
            let text = format!("bind of {} to {node} is being written", row.key);
            (WaitCode::Binding, text)
        }
        _ => (WaitCode::Placed, format!("pod {} has node {node}", row.key)),
    })
}
