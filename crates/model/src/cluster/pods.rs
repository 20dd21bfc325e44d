//! Events of pods: which are tracked, what task they make, and what of our own decisions stays on top until
//! the watch shows it. Specification: core.md 3.2, 3.4, 4.2, 4.5, 11 (a) and (b).

use std::sync::Arc;

use vc_resource::Resource;

use crate::class::Class;
use crate::cluster::Cluster;
use crate::cluster::apply::go_bool;
use crate::ids::TaskId;
use crate::record::{ObjectKey, PodPhase, PodRecord};
use crate::request::{non_zero_request, pod_request};
use crate::selector::HostPort;
use crate::status::TaskStatus;
use crate::task::{Gates, Task};

const GROUP_ANNOTATION: &str = "scheduling.k8s.io/group-name";
const QUEUE_GATE: &str = "scheduling.volcano.sh/queue-allocation-gate";

impl Cluster {
    pub(super) fn pod_applied(&mut self, pod: PodRecord) {
        let known = self.task(&pod.uid);
        let assumed = known.map(|task| (self.tasks[task].status, self.tasks[task].evicting));
        if let Some((status, evicting)) = assumed {
            // A decision is under way; the outcome of the bind decides (core.md 4.5).
            if status.is_allocated() && pod.node_name.is_none() && self.tracks(&pod) {
                return;
            }
            self.put_pod(pod, evicting);
        } else {
            self.put_pod(pod, false);
        }
    }

    pub(super) fn pod_resynced(&mut self, pod: PodRecord) {
        self.put_pod(pod, false);
    }

    pub(super) fn pod_deleted(&mut self, key: &ObjectKey, uid: &str) {
        let by_key = || self.task_named(key).filter(|_| uid.is_empty());
        if let Some(task) = self.task(uid).or_else(by_key) {
            self.unlink(task);
            self.tasks.remove(task);
        }
    }

    pub(super) fn forget_condition(&mut self, uid: &str) {
        if let Some(task) = self.task(uid) {
            self.tasks[task].condition = None;
            self.tasks[task].nominated_node = None;
        }
    }

    /// Ours by scheduler name, or placed on a node by anybody (core.md 4.2).
    fn tracks(&self, pod: &PodRecord) -> bool {
        pod.node_name.is_some() || self.settings.scheduler_names.contains(&pod.scheduler_name)
    }

    fn put_pod(&mut self, pod: PodRecord, evicting: bool) {
        if !self.tracks(&pod) {
            return self.pod_deleted(&pod.key, &pod.uid);
        }
        // A successor of the same name: the end of the old pod was missed.
        if let Some(old) = self.task_named(&pod.key).filter(|&old| self.tasks[old].uid != pod.uid) {
            self.unlink(old);
            self.tasks.remove(old);
        }
        let known = self.task(&pod.uid);
        if let Some(task) = known {
            self.unlink(task);
        }
        let row = self.task_of(pod, evicting);
        let id = match known {
            Some(id) => {
                self.tasks[id] = row;
                id
            }
            None => self.tasks.insert(row),
        };
        self.link(id);
    }

    fn task_of(&mut self, pod: PodRecord, evicting: bool) -> Task {
        let status = status_of(&pod);
        let still_evicting = evicting && status.is_preemptable();
        let status = if still_evicting { TaskStatus::Releasing } else { status };
        let group = pod.annotations.get(GROUP_ANNOTATION).filter(|name| !name.is_empty());
        let job_key = group.map(|name| ObjectKey {
            namespace: pod.key.namespace.clone(),
            name: name.clone(),
        });
        let job = job_key.map(|key| self.job_row(&key));
        let node = pod.node_name.as_ref().map(|name| self.node_row(name));
        let class = self.class_of(&pod);
        let best_effort = class.request.is_empty();
        Task {
            job,
            sub_job: job.map_or(0, |job| self.sub_job_for(job, &class.labels)),
            class: self.classes.acquire(class),
            role: role_of(&pod),
            priority: priority_of(&pod),
            status,
            node,
            created_micros: pod.created_micros,
            best_effort,
            preemptable: preemptable(&pod),
            any_revocable_zone: any_revocable_zone(&pod),
            gates: gates_of(&pod),
            manages_queue_gate: pod.annotations.get(QUEUE_GATE).is_some_and(|v| &**v == "true"),
            priority_class_name: pod.priority_class_name,
            never_preempts: pod.never_preempts,
            index: pod_index(&pod.key.name),
            condition: pod.scheduled_condition,
            nominated_node: pod.nominated_node,
            evicting: still_evicting,
            hidden: false,
            invalid: pod.invalid,
            key: pod.key,
            uid: pod.uid,
        }
    }

    fn class_of(&mut self, pod: &PodRecord) -> Class {
        let gates = self.settings.gates;
        let request = pod_request(pod, gates, &mut self.dims);
        Class {
            namespace: pod.key.namespace.clone(),
            labels: pod.labels.clone(),
            request,
            non_zero: non_zero_request(pod, gates, &mut self.dims),
            node_selector: pod.node_selector.clone(),
            node_affinity: pod.node_affinity.clone(),
            tolerations: pod.tolerations.clone(),
            host_ports: host_ports(pod),
        }
    }

    /// Enters a complete task in the indexes, its job and its node.
    fn link(&mut self, task: TaskId) {
        let row = &self.tasks[task];
        self.task_by_uid.insert(row.uid.clone(), task);
        self.task_by_key.insert(row.key.clone(), task);
        if let Some(job) = row.job {
            let sub_job = row.sub_job;
            let request = self.request(task).clone();
            let (place, sub_place) = (self.place_in(job, None, task), self.place_in(job, Some(sub_job), task));
            let counts_gated = self.tasks[task].gates == Gates::Foreign;
            let job = &mut self.jobs[job];
            job.tasks.insert(place, task);
            job.sub_jobs[sub_job].tasks.insert(sub_place, task);
            job.total_request.add(&request);
            if counts_gated {
                job.gated.add(&request);
            }
        }
        self.attach(task);
    }

    /// Where the task belongs in its job's (or sub-job's) list by (namespace, name, uid).
    fn place_in(&self, job: crate::ids::JobId, sub_job: Option<usize>, task: TaskId) -> usize {
        let job = &self.jobs[job];
        let list = sub_job.map_or(&job.tasks, |index| &job.sub_jobs[index].tasks);
        let key = |id: TaskId| (&self.tasks[id].key, &self.tasks[id].uid);
        list.partition_point(|&other| key(other) < key(task))
    }

    /// Takes a task out of everything but its table row.
    fn unlink(&mut self, task: TaskId) {
        self.detach(task);
        let row = &self.tasks[task];
        let (uid, key, node, job, class) =
            (row.uid.clone(), row.key.clone(), row.node, row.job, row.class);
        let (sub_job, counts_gated) = (row.sub_job, row.gates == Gates::Foreign);
        self.task_by_uid.remove(&uid);
        if self.task_by_key.get(&key) == Some(&task) {
            self.task_by_key.remove(&key);
        }
        if let Some(id) = job {
            let request = self.classes[class].request.clone();
            let job = &mut self.jobs[id];
            job.tasks.retain(|&other| other != task);
            job.sub_jobs[sub_job].tasks.retain(|&other| other != task);
            job.total_request.sub(&request);
            if counts_gated {
                job.gated.sub(&request);
            }
            job.settle_empty_sums();
            self.drop_empty_job(id);
        }
        self.classes.release(class);
        if let Some(node) = node {
            self.drop_empty_node(node);
        }
    }
}

impl crate::job::Job {
    /// A job without tasks has no dimension left over from the tasks that it had.
    fn settle_empty_sums(&mut self) {
        if self.tasks.is_empty() {
            for sum in [
                &mut self.allocated,
                &mut self.total_request,
                &mut self.pending_request,
                &mut self.gated,
            ] {
                *sum = Resource::default();
            }
        }
        self.roles.retain(|_, counts| 0 < counts.total());
    }
}

fn status_of(pod: &PodRecord) -> TaskStatus {
    match pod.phase {
        PodPhase::Running if pod.deleting => TaskStatus::Releasing,
        PodPhase::Running => TaskStatus::Running,
        PodPhase::Pending if pod.deleting => TaskStatus::Releasing,
        PodPhase::Pending if pod.node_name.is_some() => TaskStatus::Bound,
        PodPhase::Pending => TaskStatus::Pending,
        // A pod that we evicted and that ends well is no finished member (A46).
        PodPhase::Succeeded if pod.deleting && pod.evicted_by_scheduler => TaskStatus::Failed,
        PodPhase::Succeeded => TaskStatus::Succeeded,
        PodPhase::Failed => TaskStatus::Failed,
        PodPhase::Unknown => TaskStatus::Unknown,
    }
}

fn role_of(pod: &PodRecord) -> Arc<str> {
    let key = "volcano.sh/task-spec";
    let annotation = pod.annotations.get(key).filter(|role| !role.is_empty());
    annotation.or_else(|| pod.labels.get(key)).cloned().unwrap_or_default()
}

fn priority_of(pod: &PodRecord) -> i32 {
    let annotation = pod.annotations.get("volcano.sh/task-priority");
    let overriding = annotation.and_then(|text| text.parse::<i32>().ok());
    overriding.or(pod.priority).unwrap_or(1)
}

fn preemptable(pod: &PodRecord) -> bool {
    let key = "volcano.sh/preemptable";
    match pod.annotations.get(key).or_else(|| pod.labels.get(key)) {
        Some(text) => go_bool(text).unwrap_or(false),
        None => true,
    }
}

fn any_revocable_zone(pod: &PodRecord) -> bool {
    match pod.annotations.get("volcano.sh/revocable-zone") {
        Some(zone) => &**zone == "*",
        None => {
            let annotation = pod.annotations.get("volcano.sh/preemptable");
            annotation.and_then(|text| go_bool(text)).unwrap_or(false)
        }
    }
}

fn gates_of(pod: &PodRecord) -> Gates {
    match pod.scheduling_gates.as_slice() {
        [] => Gates::None,
        [gate] if &**gate == QUEUE_GATE => Gates::QueueAllocationOnly,
        _ => Gates::Foreign,
    }
}

/// The last part of a name of at least three parts, if it is a number (core.md 5.4).
fn pod_index(name: &str) -> Option<i64> {
    let parts = name.split('-').count();
    let last = name.rsplit('-').next().filter(|_| 3 <= parts)?;
    last.parse().ok()
}

fn host_ports(pod: &PodRecord) -> Vec<HostPort> {
    let sidecars = pod.init_containers.iter().filter(|container| container.restartable);
    let containers = pod.containers.iter().chain(sidecars);
    let mut ports: Vec<HostPort> =
        containers.flat_map(|container| container.host_ports.iter().cloned()).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}
