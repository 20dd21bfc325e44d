//! Samples for metrics that follow from events and from the state at the end of a cycle. They cover
//! objects that came and went, placed jobs, and waiting pods by reason. Specification: core.md 4.6,
//! 9.1, actions.md 4.10.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_framework::{PendingPods, PendingReason, Sample, Session, SessionState};
use vc_model::{Cluster, ClusterEvent, Job, JobId, ObjectKey, QueueId, TaskStatus};
use vc_resource::Dim;

/// Number of waiting pods by queue and reason. `None` stands for all queues that do not exist:
/// users choose their names, so they must not become metric labels.
type PendingCounts = BTreeMap<(Option<QueueId>, PendingReason), u32>;

/// Objects that came and went since the last cycle, and the numbers of waiting pods that were
/// reported last.
#[derive(Clone, Debug, Default)]
pub(crate) struct MetricSamples {
    /// PodGroups with an event since the last cycle.
    seen: Vec<ObjectKey>,
    deleted_queues: Vec<Arc<str>>,
    /// PodGroups that were deleted. Their jobs stay as long as they have pods.
    leaving: BTreeSet<ObjectKey>,
    pending: PendingCounts,
    /// Jobs that were repeated in the last session, and their part of the numbers.
    repeated: (Vec<JobId>, PendingCounts),
}

impl MetricSamples {
    /// Records an event before it is applied.
    pub(crate) fn note(&mut self, event: &ClusterEvent) {
        match event {
            ClusterEvent::PodGroupApplied(group) => self.seen.push(group.key.clone()),
            ClusterEvent::PodGroupDeleted { key } => {
                self.leaving.insert(key.clone());
            }
            ClusterEvent::QueueDeleted { name } => self.deleted_queues.push(name.clone()),
            _ => {}
        }
    }

    /// Returns samples for PodGroups with an event since the last cycle.
    pub(crate) fn take_seen(&mut self, cluster: &Cluster) -> impl Iterator<Item = Sample> {
        let mut seen = std::mem::take(&mut self.seen);
        // Sorted by name, so that a report does not depend on the order of arrival.
        seen.sort_unstable();
        seen.dedup();
        seen.into_iter().filter_map(|key| job_seen(cluster, &key))
    }

    /// Returns the samples of this cycle. The operations of the session are still in place.
    pub(crate) fn take(&mut self, session: &mut Session<'_>) -> Vec<Sample> {
        let mut samples = std::mem::take(&mut session.outcome.out.samples);
        let n_attempts = std::mem::take(&mut session.outcome.out.n_preemption_attempts);
        samples
            .extend(session.outcome.out.preemption_victims.take().map(Sample::PreemptionVictims));
        samples.extend((0 < n_attempts).then_some(Sample::PreemptionAttempts(n_attempts)));
        samples.reserve(self.seen.len());
        samples.extend(self.take_seen(session));
        let placed = std::mem::take(&mut session.outcome.out.placed);
        let mut placed: Vec<(&Job, u32)> =
            placed.into_iter().map(|(job, n_tasks)| (&session.jobs[job], n_tasks)).collect();
        placed.sort_unstable_by_key(|(job, _)| &job.key);
        samples.extend(placed.into_iter().filter_map(|(job, n)| job_placed(session, job, n)));
        self.note_gone(session, &mut samples);
        self.note_pending(session, &mut samples);
        samples
    }

    /// Reports deleted queues and jobs. A job is gone with its last pod, unless its PodGroup was
    /// created again.
    fn note_gone(&mut self, cluster: &Cluster, samples: &mut Vec<Sample>) {
        let known = |name: &Arc<str>| {
            cluster.queue(name).is_some_and(|queue| cluster.queues[queue].present)
        };
        let mut queues = std::mem::take(&mut self.deleted_queues);
        queues.sort_unstable();
        samples.extend(queues.into_iter().filter(|name| !known(name)).map(Sample::QueueGone));
        self.leaving.retain(|key| match cluster.job(key) {
            Some(job) => cluster.jobs[job].pod_group.is_none(),
            None => {
                samples.push(Sample::JobGone(key.clone()));
                false
            }
        });
    }

    fn note_pending(&mut self, session: &SessionState<'_>, samples: &mut Vec<Sample>) {
        let info = session.info();
        // Numbers of repeated jobs do not change while the same jobs are repeated.
        if self.repeated.0 != info.repeated {
            let of_repeated = pending(session, PendingCounts::new(), &info.repeated);
            self.repeated = (info.repeated.clone(), of_repeated);
        }
        let jobs = info.to_close.iter().chain(info.active_jobs.outside());
        let pending = pending(session, self.repeated.1.clone(), jobs);
        if pending == self.pending {
            return;
        }
        self.pending = pending;
        let entry = |(&(queue, reason), &n_pods): (&(Option<QueueId>, _), &u32)| {
            let queue = queue.map(|queue| session.queues[queue].name.clone()).unwrap_or_default();
            PendingPods { queue, reason, n_pods }
        };
        let mut pods: Vec<PendingPods> = self.pending.iter().map(entry).collect();
        pods.sort_unstable_by(|l, r| (&l.queue, l.reason).cmp(&(&r.queue, r.reason)));
        samples.push(Sample::PendingPods(pods));
    }
}

fn job_seen(cluster: &Cluster, key: &ObjectKey) -> Option<Sample> {
    let row = &cluster.jobs[cluster.job(key)?];
    Some(Sample::JobSeen {
        job: row.key.clone(),
        queue: cluster.queues[row.queue].name.clone(),
        created_micros: row.pod_group.as_ref()?.created_micros,
    })
}

/// Returns the sample of a placed job. Returns `None` for a bare pod, which has no metric series.
fn job_placed(session: &SessionState<'_>, row: &Job, n_tasks: u32) -> Option<Sample> {
    let group = row.pod_group.as_ref().filter(|_| !row.bare)?;
    let now_micros = session.info().now_micros;
    Some(Sample::JobPlaced {
        job: row.key.clone(),
        queue: session.queues[row.queue].name.clone(),
        n_tasks,
        waited_micros: now_micros - group.created_micros,
        now_micros,
    })
}

/// Adds the waiting pods of the jobs to the numbers.
fn pending<'j>(
    session: &SessionState<'_>,
    mut pending: PendingCounts,
    jobs: impl IntoIterator<Item = &'j JobId>,
) -> PendingCounts {
    for &job in jobs {
        let row = &session.jobs[job];
        let counts = &row.counts;
        let n_waiting = counts.of(TaskStatus::Pending) + counts.of(TaskStatus::Allocated);
        if n_waiting + counts.waiting() == 0 {
            continue;
        }
        let queue = Some(row.queue).filter(|&queue| session.queues[queue].present);
        let n_gated = u32::try_from(row.gated.get(Dim::PODS)).unwrap_or(0).min(n_waiting);
        let mut add = |reason, n_pods| {
            if 0 < n_pods {
                *pending.entry((queue, reason)).or_default() += n_pods;
            }
        };
        add(PendingReason::Gated, n_gated);
        add(PendingReason::WaitsForRoom, counts.waiting());
        add(reason(session, row), n_waiting - n_gated);
    }
    pending
}

/// Returns the reason why the tasks of a job wait.
fn reason(session: &SessionState<'_>, row: &Job) -> PendingReason {
    let queue = &session.queues[row.queue];
    let n_valid = i64::from(row.counts.valid());
    if row.pod_group.is_none() {
        PendingReason::NoPodGroup
    } else if !queue.present {
        PendingReason::NoQueue
    } else if !queue.is_open() {
        PendingReason::QueueNotOpen
    } else if row.is_pending() && session.info().enqueue_configured {
        PendingReason::NotAdmitted
    } else if n_valid < i64::from(row.min_available) || !row.roles_valid() {
        PendingReason::GangIncomplete
    } else {
        PendingReason::NoFit
    }
}
