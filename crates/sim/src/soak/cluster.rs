//! The objects of a soak, and those who write them beside the scheduler: users who create jobs, and
//! controllers that create evicted pods again and delete what has ended.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::arrivals::{NODE_CPUS, QUEUES, SoakJob};
use crate::serve::{
    Change, DeleteOptions, EVENTS, Event, Key, NODES, POD_GROUPS, PODS, PRIORITY_CLASSES,
    QUEUES as QUEUE_KIND, RUN_SECONDS, Refused, Store,
};

/// Namespace of all jobs.
const NAMESPACE: &str = "default";
/// Annotation with the PodGroup of a pod.
const GROUP: &str = "scheduling.k8s.io/group-name";
/// Label with the job of a pod, as Volcano's controller sets it.
const JOB_LABEL: &str = "volcano.sh/job-name";
/// How long a job stays after its end (`ttlSecondsAfterFinished`).
const JOB_TTL: Duration = Duration::from_secs(30);
/// How long an event stays after its last write. A real API server keeps it for an hour.
const EVENT_TTL: Duration = Duration::from_secs(120);

/// The cluster.
pub(super) struct SoakCluster {
    store: Arc<Store>,
    jobs: HashMap<String, JobState>,
    /// Pods without a node, with the time of their creation.
    waiting: HashMap<String, Instant>,
    /// Jobs that have ended, with the time of their deletion.
    ended: VecDeque<(Instant, String)>,
    /// Events, with the time of their deletion and the version for which it holds.
    old_events: VecDeque<(Instant, (Key, u64))>,
    n_created_again: u64,
    counts: PodCounts,
}

struct JobState {
    /// Its pods that have not ended.
    n_left: u64,
    /// Names of its pods that exist.
    pods: Vec<String>,
}

/// Pods since the last call of [`SoakCluster::take_counts`].
#[derive(Default)]
pub(super) struct PodCounts {
    /// Pods that are gone.
    pub(super) n_lived: u64,
    /// Pods of those that were evicted.
    pub(super) n_evicted: u64,
    /// Simulated microseconds from creation to bind.
    pub(super) waits_micros: Vec<u64>,
}

impl SoakCluster {
    /// Creates nodes, queues and a PriorityClass.
    pub(super) fn begin(store: Arc<Store>, n_nodes: u32) -> Result<Self, Refused> {
        let urgent = json!({ "metadata": { "name": "urgent" }, "value": 1_000 });
        store.create(&PRIORITY_CLASSES, &urgent)?;
        for (name, weight) in &QUEUES[1..] {
            // Pods are reclaimed of the default queue alone, so that few have to run again.
            let spec = json!({ "weight": weight, "reclaimable": false });
            let queue = json!({ "metadata": { "name": name }, "spec": spec });
            store.create(&QUEUE_KIND, &queue)?;
        }
        for number in 0..n_nodes {
            store.create(&NODES, &node(&format!("node-{number:05}")))?;
        }
        Ok(Self {
            store,
            jobs: HashMap::new(),
            waiting: HashMap::new(),
            ended: VecDeque::new(),
            old_events: VecDeque::new(),
            n_created_again: 0,
            counts: PodCounts::default(),
        })
    }

    /// Creates a PodGroup and its pods.
    pub(super) fn create(&mut self, job: &SoakJob) -> Result<(), Refused> {
        let mut spec = json!({ "minMember": job.min, "queue": job.queue });
        if job.is_urgent {
            spec["priorityClassName"] = "urgent".into();
        }
        let metadata = json!({ "name": job.name, "namespace": NAMESPACE });
        self.store.create(&POD_GROUPS, &json!({ "metadata": metadata, "spec": spec }))?;
        let name = |number| format!("{}-{number}", job.name);
        for number in 0..job.pods {
            self.store.create(&PODS, &pod(job, &name(number)))?;
            self.waiting.insert(name(number), Instant::now());
        }
        let state = JobState { n_left: job.pods, pods: (0..job.pods).map(name).collect() };
        self.jobs.insert(job.name.clone(), state);
        Ok(())
    }

    /// Does what controllers do after a change of a pod.
    pub(super) fn see_pod(&mut self, event: &Event) -> Result<(), Refused> {
        let pod = &event.object.value;
        match event.change {
            Change::Added => {}
            Change::Modified => {
                if pod["spec"]["nodeName"].is_string()
                    && let Some(created) = self.waiting.remove(event.object.name())
                {
                    let waited = created.elapsed().as_micros();
                    self.counts.waits_micros.push(u64::try_from(waited).unwrap_or(u64::MAX));
                }
                let had_ended = event.previous.as_ref().is_some_and(|it| has_ended(&it.value));
                if has_ended(pod) && !had_ended {
                    self.note_end(group_of(pod));
                }
            }
            Change::Deleted => {
                self.counts.n_lived += 1;
                self.create_again(pod, event.object.name())?;
            }
        }
        Ok(())
    }

    /// The server deletes an event some time after its last write.
    pub(super) fn see_event(&mut self, event: &Event) {
        if event.change != Change::Deleted {
            let until = Instant::now() + EVENT_TTL;
            self.old_events.push_back((until, (event.key(), event.object.revision)));
        }
    }

    /// Deletes jobs and events whose time is over.
    pub(super) fn delete_old(&mut self) -> Result<(), Refused> {
        let (store, now) = (self.store.clone(), Instant::now());
        let delete =
            |kind, key: &Key, options: &DeleteOptions| match store.delete(kind, key, options) {
                // The scheduler may have evicted the pod as it ended, and an event may have a newer version.
                Err(Refused::NotFound { .. } | Refused::Conflict { .. }) | Ok(_) => Ok(()),
                Err(refused) => Err(refused),
            };
        while let Some(name) = pop_due(&mut self.ended, now) {
            for pod in self.jobs.remove(&name).into_iter().flat_map(|job| job.pods) {
                delete(&PODS, &Key::new(NAMESPACE, &pod), &DeleteOptions::default())?;
            }
            delete(&POD_GROUPS, &Key::new(NAMESPACE, &name), &DeleteOptions::default())?;
        }
        while let Some((key, revision)) = pop_due(&mut self.old_events, now) {
            let resource_version = Some(revision.to_string());
            delete(&EVENTS, &key, &DeleteOptions { resource_version, ..DeleteOptions::default() })?;
        }
        Ok(())
    }

    /// Returns what has happened to pods, and begins to count anew.
    pub(super) fn take_counts(&mut self) -> PodCounts {
        std::mem::take(&mut self.counts)
    }

    /// Returns the number of pods without a node.
    pub(super) fn n_waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the sizes of the server's tables, and of those of the controllers here.
    pub(super) fn sizes(&self) -> Vec<(&'static str, usize)> {
        let mut sizes = self.store.sizes().to_vec();
        sizes.push(("controllers", self.jobs.len() + self.ended.len() + self.old_events.len()));
        sizes
    }

    fn note_end(&mut self, group: &str) {
        let Some(job) = self.jobs.get_mut(group) else { return };
        job.n_left = job.n_left.saturating_sub(1);
        if job.n_left == 0 {
            self.ended.push_back((Instant::now() + JOB_TTL, group.to_owned()));
        }
    }

    /// Creates a pod again that was evicted, also one that has ended in its grace period: a gang needs as
    /// many pods as it had. What is deleted with its job is not created again.
    fn create_again(&mut self, evicted: &Value, name: &str) -> Result<(), Refused> {
        self.waiting.remove(name);
        let group = group_of(evicted);
        let Some(job) = self.jobs.get_mut(group).filter(|job| 0 < job.n_left) else {
            return Ok(());
        };
        job.n_left += u64::from(has_ended(evicted));
        self.counts.n_evicted += 1;
        self.n_created_again += 1;
        let new = format!("{group}-again-{}", self.n_created_again);
        self.store.create(&PODS, &anew(evicted, &new))?;
        job.pods.retain(|pod| pod != name);
        job.pods.push(new.clone());
        self.waiting.insert(new, Instant::now());
        Ok(())
    }
}

/// Returns the first item if its time has come.
fn pop_due<T>(items: &mut VecDeque<(Instant, T)>, now: Instant) -> Option<T> {
    let (at, _) = items.front()?;
    if now < *at { None } else { items.pop_front().map(|(_, item)| item) }
}

fn has_ended(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}

fn group_of(pod: &Value) -> &str {
    pod["metadata"]["annotations"][GROUP].as_str().unwrap_or_default()
}

fn node(name: &str) -> Value {
    let amounts = json!({ "cpu": NODE_CPUS.to_string(), "memory": "128Gi", "pods": "110" });
    let ready = json!({ "type": "Ready", "status": "True" });
    json!({
        "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name } },
        "status": { "allocatable": amounts, "capacity": amounts, "conditions": [ready] },
    })
}

fn pod(job: &SoakJob, name: &str) -> Value {
    let requests = json!({ "cpu": format!("{}m", job.cpu_milli), "memory": "256Mi" });
    let mut spec = json!({
        "schedulerName": "volcano",
        "terminationGracePeriodSeconds": 3,
        "containers": [{ "name": "c", "image": "i", "resources": { "requests": requests } }],
    });
    if job.is_urgent {
        spec["priorityClassName"] = "urgent".into();
    }
    let metadata = json!({
        "name": name, "namespace": NAMESPACE, "labels": { JOB_LABEL: job.name },
        "annotations": { GROUP: job.name, RUN_SECONDS: job.run_seconds.to_string() },
    });
    json!({ "metadata": metadata, "spec": spec })
}

/// Returns a copy of a pod under this name, as the pod was before it got a node.
fn anew(pod: &Value, name: &str) -> Value {
    let mut spec = pod["spec"].clone();
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("nodeName");
    }
    let old = &pod["metadata"];
    let metadata = json!({
        "name": name, "namespace": NAMESPACE, "labels": old["labels"],
        "annotations": { GROUP: old["annotations"][GROUP],
            RUN_SECONDS: old["annotations"][RUN_SECONDS] },
    });
    json!({ "metadata": metadata, "spec": spec })
}
