//! Conversion of a pod to a task. Specification: core.md 3.2, 3.4, 5.4 (pod index), C-20,
//! actions.md A46.

use std::mem::take;
use std::sync::Arc;

use crate::class::Class;
use crate::cluster::Cluster;
use crate::cluster::apply::go_bool;
use crate::device_share::{devices_of, group_of};
use crate::duration::go_duration_micros;
use crate::ids::JobId;
use crate::record::{ObjectKey, PodCondition, PodPhase, PodRecord};
use crate::run_template::RunTemplate;
use crate::stated_run::StatedRun;
use crate::status::TaskStatus;
use crate::task::{Gates, QUEUE_GATE, Task};

const GROUP_ANNOTATION: &str = "scheduling.k8s.io/group-name";
const ROLE: &str = "volcano.sh/task-spec";

impl Cluster {
    /// Returns the task of a pod, and creates the rows that the pod names. `evicting` is true if we
    /// have sent its eviction.
    pub(super) fn task_of(&mut self, mut pod: PodRecord, evicting: bool) -> Task {
        let real_status = status_of(&pod);
        // The task stays Releasing until the pod shows that it is terminating (core.md 11 (b)).
        let still_evicting = evicting && !pod.deleting && !real_status.is_terminated();
        let status = if still_evicting { TaskStatus::Releasing } else { real_status };
        let job_key = group_key(&pod);
        let scheduler = self.acquire_scheduler(&pod);
        let node = pod.node_name.as_ref().map(|name| self.node_row(name));
        let (role, preemptable) = (role_of(&pod), preemptable_text(&pod));
        let cooling_until_micros = cooling_until_micros(&pod);
        let stated_run = StatedRun::of(&pod.labels, &pod.annotations)
            .with_deadline(pod.active_deadline_seconds)
            .with_deletion(pod.deletion_micros.filter(|_| pod.deleting));
        let run_template = RunTemplate::of(&pod.annotations, pod.owner_name.as_ref());
        let is_bare = job_key.is_none() && self.settings.bare_pods && self.schedules(&pod);
        let bare = is_bare.then(|| pod.clone());
        let (class, uncounted) = self.class_of(&mut pod);
        let bare_job = bare.map(|pod| self.bare_job(&pod, &class.request));
        let job = job_key.map(|key| self.job_row(&key)).or(bare_job);
        let run_template = self.shared_template(job, run_template);
        let sub_job = job.map_or(0, |job| self.sub_job_for(job, &class.labels));
        let best_effort = class.request.is_empty();
        let device_group = class.device_demand.as_ref().and_then(|_| group_of(&pod));
        let devices = node.and_then(|_| devices_of(&pod.annotations));
        let class = self.acquire_class(class);
        let condition = pod.scheduled_condition.take().map(|own| self.shared_condition(own));
        let known = &self.classes[class];
        pod.key.namespace = known.namespace.clone();
        Task {
            job,
            sub_job,
            best_effort,
            class,
            role: shared(role, known.labels.get(ROLE)),
            priority: priority_of(&pod),
            status,
            node,
            created_micros: pod.created_micros,
            preemptable: preemptable.unwrap_or(true),
            marked_preemptable: preemptable.unwrap_or(false),
            gates: gates_of(&pod),
            gate_names: gate_names(&pod),
            manages_queue_gate: pod.annotations.get(QUEUE_GATE).is_some_and(|v| &**v == "true"),
            index: pod_index(&pod.key.name),
            cooling_until_micros,
            evicting: still_evicting,
            ungating: false,
            hidden: false,
            deleting: pod.deleting,
            invalid: pod.invalid.or(uncounted),
            pause: None,
            keeps_place: false,
            devices,
            cpus: None,
            node_lock: None,
            device_group,
            scheduler,
            priority_class_name: pod.priority_class_name,
            never_preempts: pod.never_preempts,
            pod_priority: pod.priority.unwrap_or(0),
            stated_run: (!stated_run.is_empty()).then(|| Box::new(stated_run)),
            run_template,
            started_micros: pod.started_micros,
            scheduled_micros: pod.scheduled_micros,
            preempted: pod.deleting && pod.evicted_by_scheduler,
            condition,
            nominated_node: pod.nominated_node,
            key: pod.key,
            uid: pod.uid,
        }
    }

    /// Returns a condition. Nearly all running pods have equal conditions, which then share memory.
    fn shared_condition(&mut self, own: PodCondition) -> Arc<PodCondition> {
        match self.last_condition.as_ref().filter(|last| ***last == own) {
            Some(last) => last.clone(),
            None => self.last_condition.insert(Arc::new(own)).clone(),
        }
    }

    /// Returns a template. Pods of one job have the same one, which they share.
    fn shared_template(
        &self,
        job: Option<JobId>,
        own: Option<RunTemplate>,
    ) -> Option<Arc<RunTemplate>> {
        let own = own?;
        let last = job.and_then(|job| self.jobs[job].tasks.last());
        let last = last.and_then(|&task| self.tasks[task].run_template.as_ref());
        let equal = last.filter(|last| ***last == own).cloned();
        Some(equal.unwrap_or_else(|| Arc::new(own)))
    }

    /// Returns the class, and why its request is not complete. Moves the fields out of the pod that
    /// nothing else reads, because first lists are long.
    fn class_of(&mut self, pod: &mut PodRecord) -> (Class, Option<Arc<str>>) {
        let (shape, uncounted) = self.shape_of(pod);
        let mut class = Class {
            namespace: pod.key.namespace.clone(),
            labels: take(&mut pod.labels),
            pod_affinity: take(&mut pod.pod_affinity),
            spread: take(&mut pod.spread),
            volumes: take(&mut pod.volumes),
            resource_claims: take(&mut pod.resource_claims),
            controller: take(&mut pod.controller),
            shape,
        };
        self.count_claims(&mut class);
        (class, uncounted)
    }
}

/// Returns the key of the PodGroup that the pod names. Returns `None` if it names none.
fn group_key(pod: &PodRecord) -> Option<ObjectKey> {
    let name = pod.annotations.get(GROUP_ANNOTATION).filter(|name| !name.is_empty())?;
    Some(ObjectKey { namespace: pod.key.namespace.clone(), name: name.clone() })
}

fn status_of(pod: &PodRecord) -> TaskStatus {
    match pod.phase {
        PodPhase::Running if pod.deleting => TaskStatus::Releasing,
        PodPhase::Running => TaskStatus::Running,
        PodPhase::Pending if pod.deleting => TaskStatus::Releasing,
        PodPhase::Pending if pod.node_name.is_some() => TaskStatus::Bound,
        PodPhase::Pending => TaskStatus::Pending,
        // A46: a pod that we evicted and that ends successfully is not a finished member.
        PodPhase::Succeeded if pod.deleting && pod.evicted_by_scheduler => TaskStatus::Failed,
        PodPhase::Succeeded => TaskStatus::Succeeded,
        PodPhase::Failed => TaskStatus::Failed,
        PodPhase::Unknown => TaskStatus::Unknown,
    }
}

fn role_of(pod: &PodRecord) -> Arc<str> {
    let annotation = pod.annotations.get(ROLE).filter(|role| !role.is_empty());
    annotation.or_else(|| pod.labels.get(ROLE)).cloned().unwrap_or_default()
}

/// Returns the text, sharing the memory of a known equal text.
fn shared(word: Arc<str>, known: Option<&Arc<str>>) -> Arc<str> {
    known.filter(|known| **known == word).cloned().unwrap_or(word)
}

fn priority_of(pod: &PodRecord) -> i32 {
    let annotation = pod.annotations.get("volcano.sh/task-priority");
    let overriding = annotation.and_then(|text| text.parse::<i32>().ok());
    overriding.or(pod.priority).unwrap_or(1)
}

/// Returns the value of the annotation, else of the label; unparsable counts false (core.md 3.2).
/// Returns `None` if both are absent.
fn preemptable_text(pod: &PodRecord) -> Option<bool> {
    let key = "volcano.sh/preemptable";
    let text = pod.annotations.get(key).or_else(|| pod.labels.get(key))?;
    Some(go_bool(text).unwrap_or(false))
}

/// Returns the end of the cooldown in microseconds since 1970. If the label is present it decides,
/// even if it is no duration (plugins-jobs-queues.md 12).
fn cooling_until_micros(pod: &PodRecord) -> Option<i64> {
    let key = "volcano.sh/cooldown-time";
    let text = pod.labels.get(key).or_else(|| pod.annotations.get(key))?;
    Some(pod.scheduled_micros?.saturating_add(go_duration_micros(text)?))
}

fn gates_of(pod: &PodRecord) -> Gates {
    match pod.scheduling_gates.as_slice() {
        [] => Gates::None,
        [gate] if &**gate == QUEUE_GATE => Gates::QueueAllocationOnly,
        _ => Gates::Foreign,
    }
}

fn gate_names(pod: &PodRecord) -> Option<Arc<str>> {
    let gates = &pod.scheduling_gates;
    (!gates.is_empty()).then(|| gates.join(", ").into())
}

/// Returns the last part of a name of at least three parts, if it is a number (core.md 5.4).
fn pod_index(name: &str) -> Option<i64> {
    let parts = name.split('-').count();
    let last = name.rsplit('-').next().filter(|_| 3 <= parts)?;
    last.parse().ok()
}
