//! The jobs for which the evicting actions make room, and their pending tasks.
//! Specification: actions.md 6.1, 7.1, 9.1.

use vc_framework::{EvictReason, SessionState, klog, sort_stably};
use vc_model::{Gates, JobId, QueueId, TaskId, TaskStatus};

/// The starving jobs of an action, with the queues that get turns.
#[derive(Debug, Default)]
pub(crate) struct Starving {
    pub(crate) jobs: Vec<JobId>,
    /// Starving jobs with a network topology. A39: nothing is evicted for them as long as allocate
    /// does not place them.
    pub(crate) with_topology: Vec<JobId>,
    /// The queues of all jobs that could starve, some of them several times.
    pub(crate) queues: Vec<QueueId>,
}

/// Returns the starving jobs that may be served.
pub(crate) fn collect(session: &SessionState<'_>, reason: EvictReason) -> Starving {
    let mut starving = Starving::default();
    starving.queues.extend(session.info().active_jobs.queues_with_idle_jobs());
    for &job in &session.info().jobs {
        let row = &session.jobs[job];
        if row.is_pending() {
            continue;
        }
        if let Err(invalid) = session.plugins().job_valid(session.view(), job) {
            let queue = &session.queues[row.queue].name;
            let (skipped, before_message) = match reason {
                EvictReason::Reclaim => ("reclaim", ":"),
                EvictReason::GangReclaim => ("reclaim", ", message"),
                _ => ("preemption", ", message"),
            };
            klog!(4; "Job <{}> Queue <{queue}> skip {skipped}, reason: {}{before_message} {}",
                row.key, invalid.reason, invalid.message);
            continue;
        }
        starving.queues.push(row.queue);
        if !waits(session, job) || !session.plugins().job_starving(session.view(), job) {
            continue;
        }
        match has_topology(session, job) {
            true => starving.with_topology.push(job),
            false => starving.jobs.push(job),
        }
    }
    starving
}

/// True if a task of the job is Pending. A job that lost all its pods in this session starves, too,
/// but has nothing to place: it takes no turn, and no cause is noted for it (actions.md 6.1, 10.6).
pub(crate) fn waits(session: &SessionState<'_>, job: JobId) -> bool {
    session.jobs[job].counts.of(TaskStatus::Pending) != 0
}

pub(crate) fn has_topology(session: &SessionState<'_>, job: JobId) -> bool {
    session.jobs[job].pod_group.as_ref().is_some_and(|group| {
        let of_policy = group.policies.iter().any(|policy| policy.network_topology.is_some());
        of_policy || group.network_topology.is_some()
    })
}

/// Returns the Pending tasks without gates in reverse task order.
pub(crate) fn pending(session: &SessionState<'_>, job: JobId) -> Vec<TaskId> {
    let wanted = |&task: &TaskId| {
        let row = &session.tasks[task];
        row.status == TaskStatus::Pending && row.gates == Gates::None && row.can_be_placed()
    };
    // Tasks mostly arrive in task order, and sorting a sorted list is cheap.
    let newest_first = session.jobs[job].tasks.iter().rev();
    let mut tasks: Vec<TaskId> = newest_first.copied().filter(wanted).collect();
    sort_stably(&mut tasks, |&l, &r| session.plugins().task_order(session.view(), r, l));
    tasks
}
