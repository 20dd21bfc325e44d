//! Pods without group annotation as jobs of one task (`--bare-pods=schedule`). Volcano's controller
//! makes a PodGroup for each such pod; here none is written. Specification: core.md 3.7, 4.2.

use std::sync::Arc;

use vc_resource::Resource;

use crate::cluster::Cluster;
use crate::cluster::pod_groups::{budget, preemptable, sla_waiting_micros};
use crate::ids::JobId;
use crate::job::{MinResources, PodGroup};
use crate::record::{ObjectKey, PodGroupPhase, PodGroupStatus, PodRecord, ResourceList};

const QUEUE_NAME: &str = "scheduling.volcano.sh/queue-name";

impl Cluster {
    /// Returns the job of a bare pod, updated from the pod. Its phase is kept as long as the pod is
    /// the same.
    pub(super) fn bare_job(&mut self, pod: &PodRecord, request: &Resource) -> JobId {
        let id = self.job_row(&bare_key(&pod.key));
        self.job_changes.push(id);
        let queue_name = queue_of(pod).unwrap_or_else(|| self.settings.default_queue.clone());
        let queue = self.queue_row(&queue_name);
        self.move_job(id, queue);
        let job = &mut self.jobs[id];
        let known = job.pod_group.take().filter(|group| group.uid == pod.uid);
        let status = known.map_or_else(|| first_status(pod), |group| group.status);
        job.bare = true;
        job.min_available = 1;
        job.sub_jobs[0].min_available = 1;
        job.pod_group = Some(pod_group(pod, request, status));
        self.jobs[id].priority = self.job_priority(id);
        id
    }

    /// Removes the job of a bare pod that is gone or has joined a PodGroup.
    pub(super) fn drop_bare_job(&mut self, job: Option<JobId>) {
        let bare = |&id: &JobId| self.jobs.get(id).is_some_and(|job| job.bare);
        let Some(id) = job.filter(bare) else { return };
        if self.jobs[id].tasks.is_empty() {
            self.jobs[id].pod_group = None;
            self.drop_empty_job(id);
        }
    }
}

/// Returns the job key of a bare pod. Object names have no colon, so it is never the key of a
/// PodGroup.
fn bare_key(pod: &ObjectKey) -> ObjectKey {
    ObjectKey { namespace: pod.namespace.clone(), name: format!("pod:{}", pod.name).into() }
}

/// Returns the queue name of the annotation, else of the label. Returns `None` for the default
/// queue.
fn queue_of(pod: &PodRecord) -> Option<Arc<str>> {
    let places = [&pod.annotations, &pod.labels].into_iter();
    let mut named = places.filter_map(|place| place.get(QUEUE_NAME));
    named.find(|name| !name.is_empty()).cloned()
}

/// Returns the first status of a bare job. A pod that is placed already is past admission.
fn first_status(pod: &PodRecord) -> PodGroupStatus {
    let phase = match pod.node_name {
        Some(_) => PodGroupPhase::Running,
        None => PodGroupPhase::Pending,
    };
    PodGroupStatus { phase, ..PodGroupStatus::default() }
}

fn pod_group(pod: &PodRecord, request: &Resource, status: PodGroupStatus) -> PodGroup {
    let minimum = MinResources { amounts: request.clone(), list: ResourceList::new() };
    PodGroup {
        controller_uid: None,
        controller_kind: None,
        owner_name: None,
        uid: pod.uid.clone(),
        created_micros: pod.created_micros,
        observed_status: status.clone(),
        status,
        status_in_flight: false,
        written: None,
        resource_version: Arc::default(),
        priority_class_name: pod.priority_class_name.clone(),
        min_resources: Some(Arc::new(minimum)),
        network_topology: None,
        policies: Arc::default(),
        sla_waiting_micros: sla_waiting_micros(&pod.annotations),
        labels: Arc::new(pod.labels.clone()),
        annotations: Arc::default(),
        preemptable: preemptable(&pod.annotations, &pod.labels) == Some(true),
        not_preemptable: preemptable(&pod.annotations, &pod.labels) == Some(false),
        budget: budget(&pod.annotations).map(Box::new),
        task_topology: None,
    }
}
