//! The objects of a story, and those who write them beside the scheduler: users, controllers and the
//! owner of the nodes.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::script::{JobSpec, NodeSize, OutsideEvent, QUEUES};
use crate::serve::{
    DeleteOptions, Key, LEASES, NODES, Object, POD_GROUPS, PODS, QUEUES as QUEUE_KIND, RUN_SECONDS,
    Refused, ServedKind, Store,
};

/// Namespace of all jobs.
const NAMESPACE: &str = "default";

/// The cluster.
pub(super) struct World {
    pub(super) store: Arc<Store>,
    /// PodGroups of which somebody else has deleted pods.
    pub(super) broken: BTreeSet<String>,
    n_nodes: u64,
}

impl World {
    pub(super) fn new(store: Arc<Store>) -> Self {
        Self { store, broken: BTreeSet::new(), n_nodes: 0 }
    }

    /// Creates what a story begins with.
    ///
    /// # Errors
    /// An object is refused, which is a fault of this module.
    pub(super) fn begin(&mut self, nodes: &[NodeSize]) -> Result<(), Refused> {
        let urgent = json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": { "name": "urgent" }, "value": 1_000,
        });
        self.store.create(&crate::serve::PRIORITY_CLASSES, &urgent)?;
        for name in &QUEUES[1..] {
            let queue = json!({
                "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
                "metadata": { "name": name }, "spec": { "weight": 1 },
            });
            self.store.create(&QUEUE_KIND, &queue)?;
        }
        nodes.iter().try_for_each(|&size| self.add_node(size))
    }

    /// Does what the script says to the objects. What concerns the server or a process is done
    /// elsewhere.
    ///
    /// # Errors
    /// An object is refused, which is a fault of this module.
    pub(super) fn apply(&mut self, event: &OutsideEvent) -> Result<(), Refused> {
        match event {
            OutsideEvent::Job(job) => self.create_job(job),
            OutsideEvent::DeleteJob { nth } => self.delete_job(*nth),
            OutsideEvent::DeletePod { nth } => match self.pick(&PODS, *nth) {
                Some(pod) => self.delete_pod(&pod),
                None => Ok(()),
            },
            OutsideEvent::AddNode(size) => self.add_node(*size),
            OutsideEvent::LoseNode { nth } => self.lose_node(*nth),
            OutsideEvent::Cordon { nth, on } => self.cordon(*nth, *on),
            OutsideEvent::SetQueue { name, weight, cpus } => self.set_queue(name, *weight, *cpus),
            OutsideEvent::StealLease => self.steal_lease(),
            OutsideEvent::Compact => {
                self.store.compact();
                Ok(())
            }
            OutsideEvent::Outage { .. } | OutsideEvent::Crash { .. } => Ok(()),
            #[cfg(test)]
            OutsideEvent::Overfill => {
                let job = JobSpec { cpu_milli: 1_000_000, ..JobSpec::lone("big") };
                let mut pod = pod(&job, 0);
                pod["spec"]["nodeName"] = "n0".into();
                self.store.create(&PODS, &pod).map(drop)
            }
        }
    }

    /// Deletes everything that the story has made, but for the queues.
    ///
    /// # Errors
    /// An object is refused, which is a fault of this module.
    pub(super) fn clear(&mut self) -> Result<(), Refused> {
        for kind in [&PODS, &POD_GROUPS, &NODES] {
            for object in self.store.list(kind, None).objects {
                self.delete(kind, &Key::of(&object.value))?;
            }
        }
        Ok(())
    }

    fn pick(&self, kind: &'static ServedKind, nth: u64) -> Option<Arc<Object>> {
        let objects = self.store.list(kind, None).objects;
        let count = u64::try_from(objects.len()).ok().filter(|count| 0 < *count)?;
        objects.get(usize::try_from(nth % count).ok()?).cloned()
    }

    fn create_job(&self, job: &JobSpec) -> Result<(), Refused> {
        let mut spec = json!({ "minMember": job.min, "queue": job.queue });
        if job.is_urgent {
            spec["priorityClassName"] = "urgent".into();
        }
        let group = json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
            "metadata": { "name": job.name, "namespace": NAMESPACE }, "spec": spec,
        });
        self.store.create(&POD_GROUPS, &group)?;
        for at in 0..job.pods {
            self.store.create(&PODS, &pod(job, at))?;
        }
        Ok(())
    }

    /// Deletes a PodGroup and its pods, as a controller does whose job is deleted.
    fn delete_job(&mut self, nth: u64) -> Result<(), Refused> {
        let Some(group) = self.pick(&POD_GROUPS, nth) else { return Ok(()) };
        let pods = self.store.list(&PODS, None).objects;
        for pod in pods.iter().filter(|pod| group_of(&pod.value) == group.name()) {
            self.delete_pod(pod)?;
        }
        self.delete(&POD_GROUPS, &Key::of(&group.value))
    }

    fn add_node(&mut self, size: NodeSize) -> Result<(), Refused> {
        let name = format!("n{}", self.n_nodes);
        self.n_nodes += 1;
        let amounts = json!({
            "cpu": size.cpus.to_string(), "memory": "64Gi", "pods": size.pods.to_string(),
        });
        let ready = json!({ "type": "Ready", "status": "True" });
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name } },
            "status": { "allocatable": amounts, "capacity": amounts, "conditions": [ready] },
        });
        self.store.create(&NODES, &node).map(drop)
    }

    /// The node goes, and its pods with it.
    fn lose_node(&mut self, nth: u64) -> Result<(), Refused> {
        let Some(node) = self.pick(&NODES, nth) else { return Ok(()) };
        self.delete(&NODES, &Key::of(&node.value))?;
        let pods = self.store.list(&PODS, None).objects;
        let is_there = |pod: &&Arc<Object>| pod.value["spec"]["nodeName"] == node.name();
        pods.iter().filter(is_there).try_for_each(|pod| self.delete_pod(pod))
    }

    fn delete_pod(&mut self, pod: &Object) -> Result<(), Refused> {
        self.broken.insert(group_of(&pod.value).to_owned());
        self.delete(&PODS, &Key::of(&pod.value))
    }

    fn cordon(&self, nth: u64, on: bool) -> Result<(), Refused> {
        let Some(node) = self.pick(&NODES, nth) else { return Ok(()) };
        self.change(&NODES, &Key::of(&node.value), |node| {
            node["spec"]["unschedulable"] = on.into();
        })
    }

    fn set_queue(&self, name: &str, weight: u64, cpus: Option<u64>) -> Result<(), Refused> {
        self.change(&QUEUE_KIND, &Key::new("", name), |queue| {
            queue["spec"]["weight"] = weight.into();
            queue["spec"]["capability"] = match cpus {
                Some(cpus) => json!({ "cpu": cpus.to_string() }),
                None => Value::Null,
            };
        })
    }

    fn steal_lease(&self) -> Result<(), Refused> {
        self.change(&LEASES, &Key::new("volcano-system", "vc-scheduler"), |lease| {
            lease["spec"]["holderIdentity"] = "somebody-else".into();
        })
    }

    /// What is gone already needs no change.
    fn change(
        &self,
        kind: &'static ServedKind,
        key: &Key,
        change: impl FnOnce(&mut Value),
    ) -> Result<(), Refused> {
        let changed = self.store.update(kind, key, |value| {
            change(value);
            Ok(())
        });
        found(changed.map(drop))
    }

    fn delete(&self, kind: &'static ServedKind, key: &Key) -> Result<(), Refused> {
        found(self.store.delete(kind, key, &DeleteOptions::default()).map(drop))
    }
}

fn found(answer: Result<(), Refused>) -> Result<(), Refused> {
    match answer {
        Err(Refused::NotFound { .. }) => Ok(()),
        answer => answer,
    }
}

/// Returns the name of the PodGroup of a pod.
pub(super) fn group_of(pod: &Value) -> &str {
    let name = pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"].as_str();
    name.unwrap_or_default()
}

fn pod(job: &JobSpec, at: u64) -> Value {
    let mut annotations = json!({ "scheduling.k8s.io/group-name": job.name });
    if let Some(seconds) = job.run_seconds {
        annotations[RUN_SECONDS] = seconds.to_string().into();
    }
    let requests = match job.cpu_milli {
        0 => json!({}),
        milli => json!({ "cpu": format!("{milli}m") }),
    };
    let mut spec = json!({
        "schedulerName": "volcano",
        "terminationGracePeriodSeconds": 3,
        "containers": [{ "name": "c", "image": "i", "resources": { "requests": requests } }],
    });
    if job.is_urgent {
        spec["priorityClassName"] = "urgent".into();
    }
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("{}-{at}", job.name), "namespace": NAMESPACE, "annotations": annotations,
        },
        "spec": spec,
    })
}
