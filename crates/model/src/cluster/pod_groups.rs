//! Events of PodGroups, and the overlay of our status writes until the watch shows them.
//! Specification: core.md 3.7, 4.6, 11 (c).

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_resource::Resource;

use crate::cluster::apply::go_bool;
use crate::cluster::{Cluster, groups};
use crate::duration::go_duration_micros;
use crate::ids::{JobId, QueueId};
use crate::job::{Job, JobBudget, MinResources, PodGroup, Portion, TaskTopology, WrittenStatus};
use crate::record::{ObjectKey, PodGroupCondition, PodGroupRecord, PodGroupStatus, ResourceList};
use crate::request::to_resource;
use crate::selector::Labels;
use crate::sums::Seldom;

impl Cluster {
    /// Returns the job with this PodGroup name. It is created if the name is new.
    pub(super) fn job_row(&mut self, key: &ObjectKey) -> JobId {
        // Pods of a gang arrive one after the other, so the last job is tried first.
        let is_it = |id: &JobId| self.jobs.get(*id).is_some_and(|job| job.key == *key);
        if let Some(job) = self.last_job.filter(is_it).or_else(|| self.job(key)) {
            self.last_job = Some(job);
            return job;
        }
        let default_queue = self.settings.default_queue.clone();
        let queue = self.queue_row(&default_queue);
        let mut job = Job {
            key: key.clone(),
            pod_group: None,
            bare: false,
            queue,
            priority: 0,
            min_available: 0,
            task_min_available: Default::default(),
            task_min_available_total: 0,
            tasks: Vec::new(),
            sub_jobs: Vec::with_capacity(1),
            sub_job_rows: None,
            counts: Default::default(),
            roles: Default::default(),
            allocated: Resource::default(),
            pending_request: Seldom::default(),
            other_request: Seldom::default(),
            gated: Seldom::default(),
        };
        job.sub_jobs.push(groups::default_sub_job(&job));
        let id = self.jobs.insert(job);
        self.queues[queue].n_jobs += 1;
        self.job_by_key.insert(key, id);
        Arc::make_mut(&mut self.job_order).insert(key.clone(), id);
        id
    }

    /// Removes a job that has neither PodGroup nor tasks.
    pub(super) fn drop_empty_job(&mut self, id: JobId) {
        let job = &self.jobs[id];
        if job.pod_group.is_none() && job.tasks.is_empty() {
            let key = job.key.clone();
            self.job_by_key.remove(&key, id);
            Arc::make_mut(&mut self.job_order).remove(&key);
            let queue = job.queue;
            self.jobs.remove(id);
            self.leave_queue(queue);
            self.job_changes.push(id);
        }
    }

    /// Applies a PodGroup. Returns true if something that sessions read has changed.
    pub(super) fn pod_group_applied(&mut self, record: PodGroupRecord) -> bool {
        if !self.in_division(record.owner_name.as_ref(), &record.key) {
            self.pod_group_deleted(&record.key);
            return true;
        }
        self.put_pod_group(record)
    }

    /// Writes a PodGroup of ours to the tables. Returns true if something that sessions read has
    /// changed.
    pub(super) fn put_pod_group(&mut self, record: PodGroupRecord) -> bool {
        let id = self.job_row(&record.key);
        self.job_changes.push(id);
        let known = self.jobs[id].pod_group.as_ref().filter(|group| group.uid == record.uid);
        let version = &record.resource_version;
        if known.is_some_and(|group| !version.is_empty() && group.resource_version == *version) {
            return false;
        }
        let overlay = known.map(Overlay::of).unwrap_or_default().see(&record);
        let queue_name = match record.queue.is_empty() {
            true => self.settings.default_queue.clone(),
            false => record.queue.clone(),
        };
        let queue = self.queue_row(&queue_name);
        let min_resources = record.min_resources.as_ref();
        let min_resources = min_resources.map(|list| self.shared_minimum(list));
        share(&mut self.last_labels, &record.labels);
        share(&mut self.last_annotations, &record.annotations);
        let texts = (self.last_labels.clone(), self.last_annotations.clone());
        // In the first list every PodGroup is new, so the comparison is skipped.
        let is_known = self.jobs[id].pod_group.is_some();
        let before = is_known.then(|| Heading::of(&self.jobs[id]));
        self.move_job(id, queue);
        let job = &mut self.jobs[id];
        let regroups = *job.policies() != *record.sub_group_policies;
        job.min_available = record.min_member;
        let minimums = record.min_task_member.values();
        job.task_min_available_total = minimums.map(|&minimum| i64::from(minimum)).sum();
        job.task_min_available = Arc::new(record.min_task_member.clone());
        job.pod_group = Some(pod_group(record, texts, min_resources, overlay));
        job.sub_jobs[0].min_available = groups::default_minimum(job);
        self.jobs[id].priority = self.job_priority(id);
        if regroups {
            self.regroup(id);
        }
        before.is_none_or(|before| before != Heading::of(&self.jobs[id]))
    }

    /// Returns the `minResources` for a list. Consecutive PodGroups with equal lists share one
    /// value.
    fn shared_minimum(&mut self, list: &ResourceList) -> Arc<MinResources> {
        if let Some(last) = self.last_minimum.as_ref().filter(|last| last.list == *list) {
            return last.clone();
        }
        let amounts = to_resource(list, &mut self.dims);
        let own = Arc::new(MinResources { amounts, list: list.clone() });
        self.last_minimum.insert(own).clone()
    }

    pub(super) fn pod_group_deleted(&mut self, key: &ObjectKey) {
        let Some(id) = self.job(key) else { return };
        self.job_changes.push(id);
        let default_queue = self.settings.default_queue.clone();
        let queue = self.queue_row(&default_queue);
        self.move_job(id, queue);
        let job = &mut self.jobs[id];
        job.pod_group = None;
        job.priority = 0;
        job.min_available = 0;
        job.task_min_available = Arc::default();
        job.task_min_available_total = 0;
        self.regroup(id);
        self.drop_empty_job(id);
    }

    /// Records a status write of ours that was stored; watch events up to that version bring
    /// nothing new. The watch may have shown a newer version before this answer.
    ///
    /// Returns true if something that sessions read has changed.
    pub(super) fn pod_group_written(
        &mut self,
        key: &ObjectKey,
        version: &str,
        status: PodGroupStatus,
    ) -> bool {
        let Some(id) = self.job(key) else { return false };
        self.job_changes.push(id);
        let Some(group) = &mut self.jobs[id].pod_group else { return false };
        group.status_in_flight = false;
        group.written = number(version).map(|version| Box::new(WrittenStatus { version, status }));
        let written = group.written.as_ref().map(|written| written.version);
        let versions = written.zip(number(&group.resource_version));
        if versions.is_none_or(|(written, seen)| seen <= written) {
            return false;
        }
        let before = std::mem::replace(&mut group.status, group.observed_status.clone());
        group.written = None;
        !before.same_content(&group.status)
    }

    /// Forgets a status that was not stored: the one that was stored last counts again. A status that
    /// was decided since is on its way, and stays.
    pub(super) fn pod_group_failed(&mut self, key: &ObjectKey, failed: &PodGroupStatus) {
        let Some(id) = self.job(key) else { return };
        self.job_changes.push(id);
        let group = self.jobs[id].pod_group.as_mut();
        if let Some(group) = group.filter(|group| group.status.same_content(failed)) {
            group.status_in_flight = false;
            let stored = group.written.as_ref().map(|written| &written.status);
            group.status = stored.unwrap_or(&group.observed_status).clone();
        }
    }

    /// Replaces the conditions that the PodGroup already has by given ones of the same types. Other
    /// conditions stay. Nothing changes while a status write of ours is in flight.
    pub fn show_group_conditions(&mut self, key: &ObjectKey, conditions: &[PodGroupCondition]) {
        let Some(id) = self.job(key) else { return };
        let group = self.jobs[id].pod_group.as_mut().filter(|group| !group.status_in_flight);
        let Some(group) = group else { return };
        let others = group.status.conditions.iter().map(|other| {
            let shown = conditions.iter().find(|shown| shown.kind == other.kind);
            shown.unwrap_or(other).clone()
        });
        group.status.conditions = others.collect();
        self.job_changes.push(id);
        self.version += 1;
    }

    /// Sets the phase of a job's PodGroup in the session (core.md 7.5).
    pub fn set_phase(&mut self, job: JobId, phase: crate::record::PodGroupPhase) {
        self.job_changes.push(job);
        if let Some(group) = &mut self.jobs[job].pod_group {
            group.status.phase = phase;
        }
    }
}

/// The data of a PodGroup that sessions read. Versions and writes in flight are left out.
#[derive(PartialEq)]
struct Heading {
    queue: QueueId,
    priority: i32,
    min_available: i32,
    task_min_available: Arc<BTreeMap<Arc<str>, i32>>,
    pod_group: Option<PodGroup>,
}

impl Heading {
    fn of(job: &Job) -> Self {
        let read = |group: &PodGroup| PodGroup {
            status: group.status.without_times(),
            observed_status: PodGroupStatus::default(),
            status_in_flight: false,
            written: None,
            resource_version: Arc::default(),
            ..group.clone()
        };
        Self {
            queue: job.queue,
            priority: job.priority,
            min_available: job.min_available,
            task_min_available: job.task_min_available.clone(),
            pod_group: job.pod_group.as_ref().map(read),
        }
    }
}

/// Our own status of a PodGroup, which overlays the object that has just arrived (core.md 11 (c)).
#[derive(Default)]
struct Overlay {
    /// Status that we wrote. `None` for a PodGroup that is new to us.
    status: Option<PodGroupStatus>,
    in_flight: bool,
    written: Option<Box<WrittenStatus>>,
}

impl Overlay {
    fn of(group: &PodGroup) -> Self {
        Self {
            status: Some(group.status.clone()),
            in_flight: group.status_in_flight,
            written: group.written.clone(),
        }
    }

    /// Updates the overlay for a record. Our own status is kept while a write is in flight, and
    /// while the watch shows older versions. A stored one ends with a newer version.
    fn see(mut self, record: &PodGroupRecord) -> Self {
        let written = self.written.as_ref().map(|written| written.version);
        let versions = written.zip(number(&record.resource_version));
        let echo_awaited = match versions {
            // An echo of an earlier write of ours; the answer to a later write is still to come.
            Some((ours, seen)) if ours == seen => {
                !self.status.as_ref().is_some_and(|status| status.same_content(&record.status))
            }
            Some((ours, seen)) => seen < ours,
            None => false,
        };
        if !self.in_flight && !echo_awaited {
            self.status = None;
            self.written = None;
        }
        if versions.is_some_and(|(ours, seen)| ours < seen) {
            self.written = None;
        }
        self
    }
}

/// Returns a resource version as a number. The API calls versions opaque, but all known servers use
/// numbers.
fn number(version: &str) -> Option<u64> {
    version.parse().ok()
}

/// Makes `last` equal to `texts`, in memory of its own only if it is not equal yet.
fn share(last: &mut Arc<Labels>, texts: &Labels) {
    if **last != *texts {
        *last = Arc::new(texts.clone());
    }
}

fn pod_group(
    record: PodGroupRecord,
    (labels, annotations): (Arc<Labels>, Arc<Labels>),
    min_resources: Option<Arc<MinResources>>,
    overlay: Overlay,
) -> PodGroup {
    PodGroup {
        sla_waiting_micros: sla_waiting_micros(&record.annotations),
        preemptable: preemptable(&record.annotations, &record.labels) == Some(true),
        not_preemptable: preemptable(&record.annotations, &record.labels) == Some(false),
        budget: budget(&record.annotations).map(Box::new),
        task_topology: task_topology(&record.annotations).map(Box::new),
        labels,
        annotations,
        owner_name: record.owner_name.clone(),
        controller_uid: record.controller_uid.clone(),
        controller_kind: record.controller_kind.clone(),
        uid: record.uid,
        created_micros: record.created_micros,
        status: overlay.status.unwrap_or_else(|| record.status.clone()),
        observed_status: record.status,
        status_in_flight: overlay.in_flight,
        written: overlay.written,
        resource_version: record.resource_version,
        priority_class_name: record.priority_class_name,
        min_resources,
        network_topology: record.network_topology.map(Box::new),
        policies: record.sub_group_policies.into(),
    }
}

/// Returns the value of the first of the two annotations that is a duration above 0.
pub(super) fn sla_waiting_micros(annotations: &Labels) -> Option<i64> {
    ["volcano.sh/sla-waiting-time", "sla-waiting-time"]
        .iter()
        .filter_map(|&key| go_duration_micros(annotations.get(key)?))
        .find(|&micros| 0 < micros)
}

/// Returns the limit of the first of the two annotations that is present (plugins-jobs-queues.md
/// 13).
pub(super) fn budget(annotations: &Labels) -> Option<JobBudget> {
    type Limit = fn(Portion) -> JobBudget;
    let minimum = annotations.get("volcano.sh/jdb-min-available");
    let (text, kind): (_, Limit) = match minimum {
        Some(text) => (text, JobBudget::MinAvailable),
        None => (annotations.get("volcano.sh/jdb-max-unavailable")?, JobBudget::MaxUnavailable),
    };
    let portion = match text.strip_suffix('%') {
        Some(percent) => percent.parse().ok().map(Portion::Percent),
        None => text.parse().ok().map(Portion::Number),
    };
    Some(portion.map_or_else(|| JobBudget::Unreadable(text.clone()), kind))
}

/// Returns the annotations about roles that belong together (plugins-nodes.md 13.1). Returns `None`
/// if there are none.
fn task_topology(annotations: &Labels) -> Option<TaskTopology> {
    let of = |key: &str| annotations.get(key).cloned().unwrap_or_default();
    let topology = TaskTopology {
        affinity: of("volcano.sh/task-topology-affinity"),
        anti_affinity: of("volcano.sh/task-topology-anti-affinity"),
        order: of("volcano.sh/task-topology-task-order"),
    };
    (topology != TaskTopology::default()).then_some(topology)
}

/// Returns the value of the annotation, else of the label; unparsable counts false (core.md 3.3).
/// Returns `None` if both are absent.
pub(super) fn preemptable(annotations: &Labels, labels: &Labels) -> Option<bool> {
    let key = "volcano.sh/preemptable";
    let text: Option<&Arc<str>> = annotations.get(key).or_else(|| labels.get(key));
    text.map(|text| go_bool(text).unwrap_or(false))
}
