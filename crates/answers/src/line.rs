//! The place of a job among the waiting jobs of its queue, explained by the comparisons that made
//! the order. Specification: answers.md 6 (ANS-31 to ANS-35).

use vc_framework::{JobDecider, Session, SessionState, rfc3339};
use vc_model::{JobId, ObjectKey, PodGroupPhase, QueueId};
use vc_resource::Resource;

use crate::amounts::positive;
use crate::explanation::{JobsAhead, LineNeighbour, LinePlace};
use crate::trials::waiting_members;

/// True if the job has pods without a node, or no pods yet.
pub(crate) fn waits(session: &Session<'_>, job: JobId) -> bool {
    let row = &session.jobs[job];
    let begins = matches!(row.phase(), PodGroupPhase::Pending | PodGroupPhase::Inqueue);
    let awaits_pods = row.tasks.is_empty() && begins && row.pod_group.is_some();
    awaits_pods || !waiting_members(session, job).is_empty()
}

/// Returns the waiting jobs of a queue, the first one first.
pub(crate) fn line_of(session: &Session<'_>, queue: QueueId) -> Vec<JobId> {
    let view = session.view();
    let is_in = |&job: &JobId| session.jobs[job].queue == queue && waits(session, job);
    let mut jobs: Vec<JobId> = view.all_jobs().filter(is_in).collect();
    jobs.sort_by(|&l, &r| session.plugins().job_order(view, l, r));
    jobs
}

/// Returns the place of a job. Returns `None` if it is in no line. `turns` are the jobs in the order
/// of the last cycle.
pub(crate) fn place_of(
    session: &Session<'_>,
    job: JobId,
    turns: &[ObjectKey],
) -> Option<(LinePlace, Vec<JobId>)> {
    let queue = session.jobs[job].queue;
    let line = line_of(session, queue);
    let at = line.iter().position(|&other| other == job)?;
    let neighbour = |other: Option<&JobId>| other.map(|&other| neighbour(session, job, other));
    let before = at.checked_sub(1).and_then(|at| line.get(at));
    let ahead = line[..at].to_vec();
    let key = &session.jobs[job].key;
    let place = LinePlace {
        in_queue: at + 1,
        of_queue: line.len(),
        turn: turns.iter().position(|other| other == key).map(|at| at + 1),
        queue_turn: queue_turn(session, queue),
        before: neighbour(before),
        behind: neighbour(line.get(at + 1)),
        ahead: jobs_ahead(session, &ahead),
    };
    Some((place, ahead))
}

/// Returns the rank of a queue by QueueOrder among the queues in which jobs wait.
fn queue_turn(session: &Session<'_>, queue: QueueId) -> usize {
    let view = session.view();
    let waiting = view.all_jobs().filter(|&job| waits(session, job));
    let mut queues: Vec<QueueId> = waiting.map(|job| session.jobs[job].queue).collect();
    queues.sort_unstable();
    queues.dedup();
    let is_before = |other: &&QueueId| session.plugins().queue_order(view, **other, queue).is_lt();
    queues.iter().filter(is_before).count() + 1
}

fn neighbour(session: &SessionState<'_>, job: JobId, other: JobId) -> LineNeighbour {
    let (decided_by, values) = match session.plugins().job_decider(session.view(), job, other) {
        JobDecider::Plugin(name, values) => (name, values),
        JobDecider::Created => {
            let created = |job: JobId| {
                let group = session.jobs[job].pod_group.as_ref();
                rfc3339(group.map_or(0, |group| group.created_micros))
            };
            ("created", Some((created(job), created(other))))
        }
        JobDecider::Name => {
            let name = |job: JobId| session.jobs[job].key.to_string();
            ("name", Some((name(job), name(other))))
        }
    };
    LineNeighbour { job: session.jobs[other].key.clone(), decided_by, values }
}

fn jobs_ahead(session: &Session<'_>, jobs: &[JobId]) -> JobsAhead {
    let (mut n_pods, mut amounts) = (0, Resource::default());
    for &job in jobs {
        let pods = waiting_members(session, job);
        n_pods += pods.len();
        pods.iter().for_each(|&task| amounts.add(session.request(task)));
    }
    JobsAhead {
        jobs: jobs.len(),
        pods: n_pods,
        amounts: positive(&amounts, &session.dims),
        blocked: None,
    }
}
