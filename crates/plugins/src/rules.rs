//! Rules that several plugins share: which tasks belong to the session, dominant shares,
//! capabilities of queues.
//! Specification: plugins-jobs-queues.md 1.6, 4.1, 5.1, D5.

use vc_framework::{Outbox, Sample};
use vc_model::{Cluster, Job, JobId, Queue, TaskId};
use vc_resource::{Amount, Dim, Dims, Resource, Vector, share};

/// Returns the job of a task. Returns `None` for an orphan, whose job or queue is not in the
/// session (section 1.6).
pub(crate) fn session_job(cluster: &Cluster, task: TaskId) -> Option<(JobId, &Job)> {
    let id = cluster.tasks[task].job?;
    let job = &cluster.jobs[id];
    is_in_session(cluster, job).then_some((id, job))
}

/// True if the job has a PodGroup and its queue exists (section 1.6).
pub(crate) fn is_in_session(cluster: &Cluster, job: &Job) -> bool {
    job.pod_group.is_some() && cluster.queues[job.queue].present
}

/// Returns the largest ratio of `allocated` to `of` over the names of `of`, or 0 if it has none
/// (sections 4.1, 5.2).
pub(crate) fn dominant_share<T: Amount, U: Amount>(allocated: &Vector<T>, of: &Vector<U>) -> f64 {
    let shares = of.names().map(|dim| share(allocated.to_f64(dim), of.to_f64(dim)));
    shares.fold(0.0, f64::max)
}

/// Returns `spec.capability`. Missing or non-positive cpu and memory are unlimited. Returns `None`
/// if no capability is given (section 5.1).
pub(crate) fn capability(queue: &Queue) -> Option<Resource> {
    let given = &queue.capability;
    let is_given = given.has_scalars() || given.get(Dim::CPU) != 0 || given.get(Dim::MEMORY) != 0;
    let mut capability = given.clone();
    for dim in [Dim::CPU, Dim::MEMORY] {
        if capability.get(dim) <= 0 {
            capability.set(dim, i64::MAX);
        }
    }
    is_given.then_some(capability)
}

/// Names the source of a queue's limit, for messages.
pub(crate) fn set_by(capability: Option<&Resource>, dim: Dim, limit: i64) -> &'static str {
    match capability.is_some_and(|capability| capability.get(dim) == limit) {
        true => "spec.capability",
        false => "the cluster without the guarantees of other queues",
    }
}

/// Returns the message of a queue without room for a job (sections 5.3, 6.6).
pub(crate) fn quota_insufficient(lacking: &[Dim], dims: &Dims) -> String {
    let name = |&dim: &Dim| format!("insufficient {}", dims.name(dim));
    let names: Vec<String> = lacking.iter().map(name).collect();
    format!("queue resource quota insufficient: {}", names.join(", "))
}

/// Reports the number of subtractions that were clamped to zero (D5: amounts do not go below zero).
pub(crate) fn tell_clamped(plugin: &str, n_clamped: u32, out: &mut Outbox) {
    if n_clamped == 0 {
        return;
    }
    let text = "amounts of a queue below zero were taken as zero";
    out.warnings.push(format!("{plugin}: {text}: {n_clamped}"));
    out.samples.push(Sample::InternalErrors { kind: "amount_below_zero", n_errors: n_clamped });
}

/// Returns `spec.minResources`, the amount for which a job needs room to be enqueued. Returns
/// `None` if it is not given.
pub(crate) fn min_resources(job: &Job) -> Option<&Resource> {
    Some(&job.pod_group.as_ref()?.min_resources.as_ref()?.amounts)
}

#[cfg(test)]
mod tests {
    use vc_model::fixture;
    use vc_resource::Fractional;

    use super::*;

    fn reserved_text(job: &str) -> Option<String> {
        let cluster = fixture::cluster(&format!("node n cpu=9\n {job}"));
        cluster.jobs[fixture::job(&cluster, "j")]
            .reserved()
            .map(|amount| amount.text(&cluster.dims))
    }

    #[test]
    fn jobs_29_a_running_job_below_its_minimum_reserves_nothing() {
        let job = "job j min=2 running minres.cpu=4\n task a cpu=1 @n running\n task b cpu=1";
        assert_eq!(reserved_text(job), None);
        let both = job.replace("task b cpu=1", "task b cpu=1 @n bound");
        assert_eq!(reserved_text(&both).unwrap(), "cpu 2000.00, memory 0.00");
        let inqueue = job.replace("running minres", "inqueue minres");
        assert_eq!(reserved_text(&inqueue).unwrap(), "cpu 3000.00, memory 0.00");
        for other in ["pending", "unknown", "completed"] {
            let other = both.replace("running minres", &format!("{other} minres"));
            assert_eq!(reserved_text(&other), None);
        }
    }

    #[test]
    fn jobs_30_what_is_allocated_is_not_reserved_again() {
        let all = "job j inqueue minres.cpu=4 minres.memory=4Ki minres.gpu=8\n task a ";
        for (asks, allocated, expected) in [
            (all, "", "cpu 4000.00, memory 4096.00, nvidia.com/gpu 8000.00"),
            (
                all,
                "cpu=1 memory=1Ki gpu=4 @n running",
                "cpu 3000.00, memory 3072.00, nvidia.com/gpu 4000.00",
            ),
            ("job j inqueue minres.gpu=2\n task a ", "gpu=2 @n running", "cpu 0.00, memory 0.00"),
            (
                "job j inqueue minres.pods=10\n task a x4 ",
                "@n running",
                "cpu 0.00, memory 0.00, pods 6.00",
            ),
        ] {
            assert_eq!(reserved_text(&format!("{asks}{allocated}")).unwrap(), expected);
        }
        assert_eq!(reserved_text("job j inqueue\n task a"), None);
    }

    #[test]
    fn jobs_31_elastic_is_what_lies_above_the_minimum() {
        let elastic = |tasks: &str| {
            let mins = "minres.cpu=1 minres.memory=1G minres.gpu=1 minres.pods=1";
            let cluster = fixture::cluster(&format!("node n cpu=9\n job j {mins}\n{tasks}"));
            cluster.jobs[fixture::job(&cluster, "j")].elastic().text(&cluster.dims)
        };
        assert_eq!(
            elastic("task a x2 cpu=1 memory=1G gpu=1 @n running"),
            "cpu 1000.00, memory 1000000000.00, nvidia.com/gpu 1000.00, pods 1.00",
        );
        assert_eq!(
            elastic("task a cpu=1 memory=1G gpu=1 @n running\n task b cpu=1 memory=1G @n running"),
            "cpu 1000.00, memory 1000000000.00, pods 1.00",
        );
    }

    #[test]
    fn nothing_has_share_zero_and_pods_count() {
        let (mut total, mut allocated) = (Fractional::default(), Resource::default());
        assert_eq!(dominant_share(&allocated, &total), 0.0);
        total.set(Dim::CPU, 4000.0);
        total.set(Dim::PODS, 10.0);
        allocated.set(Dim::CPU, 1000);
        allocated.set(Dim::PODS, 5);
        assert_eq!(dominant_share(&allocated, &total), 0.5);
    }
}
