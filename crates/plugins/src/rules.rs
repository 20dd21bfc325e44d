//! Rules that several plugins share: who is in the session, dominant shares, what admitted jobs hold back.
//! Specification: plugins-jobs-queues.md 1.6, 4.1, 5.1.

use vc_model::{Cluster, Job, JobId, PodGroupPhase, TaskId};
use vc_resource::{Amount, Fractional, Resource, Vector, share};

/// The job of a task. `None` for an orphan: the job, or its queue, is not in the session (1.6).
pub(crate) fn session_job(cluster: &Cluster, task: TaskId) -> Option<(JobId, &Job)> {
    let id = cluster.tasks[task].job?;
    let job = &cluster.jobs[id];
    (job.pod_group.is_some() && cluster.queues[job.queue].present).then_some((id, job))
}

/// Largest part of `of` that is allocated, over the names of `of`; 0 if it has none (4.1, 5.2).
pub(crate) fn dominant_share<T: Amount>(allocated: &Vector<T>, of: &Fractional) -> f64 {
    let shares = of.names().map(|dim| share(allocated.get(dim).to_f64(), of.get(dim)));
    shares.fold(0.0, f64::max)
}

/// The amount that a job must find room for when it is enqueued; `None`: it asks for nothing.
pub(crate) fn min_resources(job: &Job) -> Option<&Resource> {
    job.pod_group.as_ref()?.min_resources.as_ref()
}

/// What an admitted job still holds back of its `minResources`, without gated tasks (5.1, 16.1; for
/// overcommit D20). `None`: the job is not admitted, or asks for nothing.
pub(crate) fn reserved(job: &Job) -> Option<Resource> {
    let min_resources = min_resources(job)?;
    let admitted = match job.phase() {
        PodGroupPhase::Inqueue => true,
        // A finished driver may leave the group Running: what it had must not be reserved again.
        PodGroupPhase::Running => i64::from(job.min_available) <= job.counts.allocated().into(),
        PodGroupPhase::Pending | PodGroupPhase::Unknown | PodGroupPhase::Completed => false,
    };
    admitted.then(|| job.minus_gated(&min_resources.excess(&job.allocated)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_has_share_zero_and_pods_count() {
        let mut total = Fractional::default();
        let mut allocated = Resource::default();
        assert_eq!(dominant_share(&allocated, &total), 0.0);
        total.set(vc_resource::Dim::CPU, 4000.0);
        total.set(vc_resource::Dim::PODS, 10.0);
        allocated.set(vc_resource::Dim::CPU, 1000);
        allocated.set(vc_resource::Dim::PODS, 5);
        assert_eq!(dominant_share(&allocated, &total), 0.5);
    }
}
