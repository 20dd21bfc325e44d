//! The objects of a story, and those who write them beside the scheduler: users, controllers and the
//! owner of the nodes.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::controllers::{Controllers, OTHER_SCHEDULER};
use super::devices::{self, GPU_MEMORY};
use super::outside_event::{OutsideEvent, PodState};
use super::quota;
use super::script::{JobSpec, NodeSize, QUEUES};
use super::topology;
use crate::serve::{
    Backup, DeleteOptions, HYPER_NODES, Key, LEASES, NODES, Object, POD_GROUPS, PODS,
    QUEUES as QUEUE_KIND, RUN_SECONDS, Refused, ServedKind, Store, micro_time,
};

/// Namespace of all jobs.
pub(super) const NAMESPACE: &str = "default";

/// Annotation of a pod that names its PodGroup.
pub(super) const GROUP: &str = "scheduling.k8s.io/group-name";

/// The cluster.
pub(super) struct World {
    pub(super) store: Arc<Store>,
    /// PodGroups of which somebody else has deleted pods, and all that there were when the server
    /// began anew from a backup.
    pub(super) broken: BTreeSet<String>,
    /// `None`: whoever creates a job creates its pods with it.
    pub(super) controllers: Option<Controllers>,
    /// True if nodes have 1 GiB of memory per cpu, in place of plenty.
    pub(super) has_little_memory: bool,
    /// True if most nodes have GPUs.
    pub(super) has_gpus: bool,
    backup: Option<Backup>,
    n_nodes: u64,
    n_replaced: u64,
}

impl World {
    pub(super) fn new(store: Arc<Store>) -> Self {
        Self {
            store,
            broken: BTreeSet::new(),
            controllers: None,
            has_little_memory: false,
            has_gpus: false,
            backup: None,
            n_nodes: 0,
            n_replaced: 0,
        }
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
            OutsideEvent::LonePod { pod, is_of_others } => self.create_alone(pod, *is_of_others),
            OutsideEvent::DeleteJob { nth } => {
                self.pick(&POD_GROUPS, *nth).map_or(Ok(()), |group| self.delete_job(&group))
            }
            OutsideEvent::DeleteJobNamed { name } => {
                // A lone pod gets its PodGroup from the controllers, under another name.
                let (group, pod) = (
                    self.store.get(&POD_GROUPS, NAMESPACE, name),
                    self.store.get(&PODS, NAMESPACE, &format!("{name}-0")),
                );
                match (group, pod) {
                    (Some(group), _) => self.delete_job(&group),
                    (None, Some(pod)) => self.delete_pod(&pod),
                    (None, None) => Ok(()),
                }
            }
            OutsideEvent::DeletePod { nth } => {
                self.pick(&PODS, *nth).map_or(Ok(()), |pod| self.delete_pod(&pod))
            }
            OutsideEvent::DeletePodIn { state, nth, by_force } => {
                self.delete_pod_in(*state, *nth, *by_force)
            }
            OutsideEvent::ReplacePod { nth, cpu_milli } => self.replace_pod(*nth, *cpu_milli),
            OutsideEvent::AddNode(size) => self.add_node(*size),
            OutsideEvent::LoseNode { nth } => self.lose_node(*nth).map(drop),
            OutsideEvent::ReplaceNode { nth, is_renamed } => self.replace_node(*nth, *is_renamed),
            OutsideEvent::FlapNode { nth, is_ready } => self.flap(*nth, *is_ready),
            OutsideEvent::Cordon { nth, on } => self.cordon(*nth, *on),
            OutsideEvent::SetQueue { name, weight, cpus } => self.set_queue(name, *weight, *cpus),
            OutsideEvent::SetPodQuota { pods } => self.set_pod_quota(*pods),
            OutsideEvent::SetRack { number, pattern } => {
                topology::set_rack(&self.store, *number, *pattern)
            }
            OutsideEvent::StealLease => self.steal_lease(),
            OutsideEvent::Compact => {
                self.store.compact();
                Ok(())
            }
            OutsideEvent::Backup => {
                self.backup = Some(self.store.backup());
                Ok(())
            }
            #[cfg(test)]
            OutsideEvent::Overfill => {
                let gpu_memory_mib = u64::from(self.has_gpus);
                let lone = JobSpec::lone("big");
                let job = JobSpec { cpu_milli: 1_000_000, gpu_memory_mib, ..lone };
                let mut pod = pod(&job, 0);
                pod["spec"]["nodeName"] = "n0".into();
                self.store.create(&PODS, &pod).map(drop)
            }
            // What concerns the server, the network or a process.
            _ => Ok(()),
        }
    }

    /// Returns the version of the server, which every change of an object raises.
    pub(super) fn revision(&self) -> u64 {
        self.store.list(&LEASES, None).revision
    }

    /// The server begins anew from the last backup. False: there is none.
    pub(super) fn restore(&mut self) -> bool {
        let Some(backup) = &self.backup else { return false };
        let before = self.store.list(&POD_GROUPS, None).objects;
        self.store.restore(backup);
        let groups = before.into_iter().chain(self.store.list(&POD_GROUPS, None).objects);
        self.broken.extend(groups.map(|group| group.name().to_owned()));
        true
    }

    /// Makes a pod that the scheduler has evicted anew, as its controller does.
    ///
    /// # Errors
    /// An object is refused, which is a fault of this module.
    pub(super) fn make_again(&mut self, evicted: &Value) -> Result<(), Refused> {
        let group = group_of(evicted).to_owned();
        let is_made = self.controllers.as_ref().is_some_and(|it| it.makes_pods_of(&group));
        if is_made || self.store.get(&POD_GROUPS, NAMESPACE, &group).is_none() {
            return Ok(());
        }
        self.n_replaced += 1;
        let name = format!("{group}-r{}", self.n_replaced);
        self.store.create(&PODS, &anew(evicted, &name)).map(drop)
    }

    /// Lets the controllers look at the objects. Returns the nodes to which another scheduler has bound pods.
    ///
    /// # Errors
    /// An object is refused, which is a fault of this module.
    pub(super) fn control(&mut self) -> Result<Vec<String>, Refused> {
        self.controllers.as_mut().map_or(Ok(Vec::new()), |it| it.act(&self.store))
    }

    /// Deletes everything that the story has made, but for the queues. Controllers make nothing any more.
    ///
    /// # Errors
    /// An object is refused, which is a fault of this module.
    pub(super) fn clear(&mut self) -> Result<(), Refused> {
        self.controllers = None;
        for kind in [&PODS, &POD_GROUPS, &NODES, &HYPER_NODES] {
            for object in self.store.list(kind, None).objects {
                self.delete(kind, &Key::of(&object.value))?;
            }
        }
        Ok(())
    }

    fn pick(&self, kind: &'static ServedKind, nth: u64) -> Option<Arc<Object>> {
        nth_of(&self.store.list(kind, None).objects, nth)
    }

    fn create_job(&mut self, job: &JobSpec) -> Result<(), Refused> {
        let mut spec = json!({ "minMember": job.min, "queue": job.queue });
        if job.is_urgent {
            spec["priorityClassName"] = "urgent".into();
        }
        if let Some(topology) = job.topology {
            spec["networkTopology"] = topology.spec();
        }
        if self.controllers.is_some() {
            spec["minResources"] = json!({ "cpu": format!("{}m", job.min * job.cpu_milli) });
            if 0 < job.memory_gib {
                let memory = format!("{}Gi", job.min * job.memory_gib);
                spec["minResources"]["memory"] = memory.into();
            }
            if 0 < job.gpu_memory_mib {
                let memory = (job.min * job.gpu_memory_mib).to_string();
                spec["minResources"][GPU_MEMORY] = memory.into();
            }
        }
        let group = json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
            "metadata": { "name": job.name, "namespace": NAMESPACE }, "spec": spec,
        });
        self.store.create(&POD_GROUPS, &group)?;
        if let Some(controllers) = &mut self.controllers {
            controllers.take_on(job);
            return Ok(());
        }
        for at in 0..job.pods {
            self.store.create(&PODS, &pod(job, at))?;
        }
        Ok(())
    }

    /// Creates a pod that has no PodGroup yet, and perhaps is another scheduler's.
    fn create_alone(&self, job: &JobSpec, is_of_others: bool) -> Result<(), Refused> {
        let mut pod = pod(job, 0);
        if let Some(annotations) = pod["metadata"]["annotations"].as_object_mut() {
            annotations.remove(GROUP);
        }
        if is_of_others {
            pod["spec"]["schedulerName"] = OTHER_SCHEDULER.into();
        }
        // Who is refused gives up.
        match quota::create_pod(&self.store, &pod) {
            Err(Refused::Forbidden { .. }) => Ok(()),
            created => created,
        }
    }

    fn set_pod_quota(&self, pods: Option<u64>) -> Result<(), Refused> {
        quota::set(&self.store, pods)
    }

    /// Deletes a PodGroup and its pods, as a controller does whose job is deleted.
    fn delete_job(&mut self, group: &Object) -> Result<(), Refused> {
        let pods = self.store.list(&PODS, None).objects;
        for pod in pods.iter().filter(|pod| group_of(&pod.value) == group.name()) {
            self.delete_pod(pod)?;
        }
        self.delete(&POD_GROUPS, &Key::of(&group.value))
    }

    fn add_node(&mut self, size: NodeSize) -> Result<(), Refused> {
        let name = format!("n{}", self.n_nodes);
        self.n_nodes += 1;
        let memory_gib = if self.has_little_memory { size.cpus } else { 64 };
        let mut amounts = json!({
            "cpu": size.cpus.to_string(), "memory": format!("{memory_gib}Gi"),
            "pods": size.pods.to_string(),
        });
        if self.has_gpus {
            devices::add_gpus(&mut amounts, size);
        }
        let ready = json!({ "type": "Ready", "status": "True" });
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name } },
            "status": { "allocatable": amounts, "capacity": amounts, "conditions": [ready] },
        });
        self.store.create(&NODES, &node).map(drop)
    }

    /// Returns the node that goes by this event.
    pub(super) fn node_that_goes(&self, event: &OutsideEvent) -> Option<Arc<Object>> {
        match event {
            OutsideEvent::LoseNode { nth } | OutsideEvent::ReplaceNode { nth, .. } => {
                self.pick(&NODES, *nth)
            }
            _ => None,
        }
    }

    /// True if the pod has a node that does not exist.
    pub(super) fn is_orphan(&self, pod: &Value) -> bool {
        let node = pod["spec"]["nodeName"].as_str();
        node.is_some_and(|node| self.store.get(&NODES, "", node).is_none())
    }

    /// Deletes a pod whose node does not exist, as the garbage collector of pods does.
    ///
    /// # Errors
    /// The deletion is refused, which is a fault of this module.
    pub(super) fn collect_orphan(&mut self, uid: &Value) -> Result<(), Refused> {
        let pods = self.store.list(&PODS, None).objects;
        let is_it =
            |pod: &&Arc<Object>| pod.value["metadata"]["uid"] == *uid && self.is_orphan(&pod.value);
        let found = pods.iter().find(is_it);
        found.map_or(Ok(()), |pod| self.delete_by_force(pod))
    }

    /// The node goes, and its pods with it.
    fn lose_node(&mut self, nth: u64) -> Result<Option<Arc<Object>>, Refused> {
        let Some(node) = self.pick(&NODES, nth) else { return Ok(None) };
        self.delete(&NODES, &Key::of(&node.value))?;
        let pods = self.store.list(&PODS, None).objects;
        let is_there = |pod: &&Arc<Object>| pod.value["spec"]["nodeName"] == node.name();
        pods.iter().filter(is_there).try_for_each(|pod| self.delete_pod(pod))?;
        Ok(Some(node))
    }

    fn replace_node(&mut self, nth: u64, is_renamed: bool) -> Result<(), Refused> {
        let Some(node) = self.lose_node(nth)? else { return Ok(()) };
        let mut value = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": { "name": node.name() },
            "status": node.value["status"],
        });
        if is_renamed {
            value["metadata"]["name"] = format!("n{}", self.n_nodes).into();
            self.n_nodes += 1;
        }
        let name = value["metadata"]["name"].clone();
        value["metadata"]["labels"] = json!({ "kubernetes.io/hostname": name });
        self.store.create(&NODES, &value).map(drop)
    }

    /// A node that is not ready has the taint that the node controller sets.
    fn flap(&self, nth: u64, is_ready: bool) -> Result<(), Refused> {
        let Some(node) = self.pick(&NODES, nth) else { return Ok(()) };
        self.change(&NODES, &Key::of(&node.value), |node| {
            let status = if is_ready { "True" } else { "False" };
            node["status"]["conditions"] = json!([{ "type": "Ready", "status": status }]);
            let taint = json!({ "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule" });
            node["spec"]["taints"] = if is_ready { Value::Null } else { json!([taint]) };
        })
    }

    fn delete_pod(&mut self, pod: &Object) -> Result<(), Refused> {
        self.broken.insert(group_of(&pod.value).to_owned());
        self.delete(&PODS, &Key::of(&pod.value))
    }

    fn delete_pod_in(&mut self, state: PodState, nth: u64, by_force: bool) -> Result<(), Refused> {
        let mut pods = self.store.list(&PODS, None).objects;
        pods.retain(|pod| state_of(&pod.value) == state);
        let Some(pod) = nth_of(&pods, nth) else { return Ok(()) };
        match by_force {
            true => self.delete_by_force(&pod),
            false => self.delete_pod(&pod),
        }
    }

    fn delete_by_force(&mut self, pod: &Object) -> Result<(), Refused> {
        self.broken.insert(group_of(&pod.value).to_owned());
        found(self.store.delete(&PODS, &Key::of(&pod.value), &DeleteOptions::now()).map(drop))
    }

    fn replace_pod(&mut self, nth: u64, cpu_milli: u64) -> Result<(), Refused> {
        let Some(pod) = self.pick(&PODS, nth) else { return Ok(()) };
        self.delete_by_force(&pod)?;
        let mut value = anew(&pod.value, pod.name());
        let requests = &mut value["spec"]["containers"][0]["resources"]["requests"];
        requests["cpu"] = format!("{cpu_milli}m").into();
        self.store.create(&PODS, &value).map(drop)
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
            // Who gave it back has left a second.
            lease["spec"]["leaseDurationSeconds"] = 15.into();
            // Or, after a restore, a Lease that is taken again would be the one that was taken before.
            lease["spec"]["renewTime"] = micro_time().into();
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

fn nth_of(objects: &[Arc<Object>], nth: u64) -> Option<Arc<Object>> {
    let count = u64::try_from(objects.len()).ok().filter(|count| 0 < *count)?;
    objects.get(usize::try_from(nth % count).ok()?).cloned()
}

fn state_of(pod: &Value) -> PodState {
    match () {
        () if is_leaving(pod) => PodState::Leaving,
        () if has_ended(pod) => PodState::Ended,
        () if pod["spec"]["nodeName"].is_string() => PodState::Placed,
        () => PodState::Waiting,
    }
}

/// Returns a copy of a pod under this name, as the pod was before it got a node and a GPU.
fn anew(pod: &Value, name: &str) -> Value {
    let mut spec = pod["spec"].clone();
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("nodeName");
    }
    let mut annotations = pod["metadata"]["annotations"].clone();
    devices::forget_gpu(&mut annotations);
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": NAMESPACE, "annotations": annotations },
        "spec": spec,
    })
}

/// True if the pod is being deleted.
pub(super) fn is_leaving(pod: &Value) -> bool {
    !pod["metadata"]["deletionTimestamp"].is_null()
}

/// True if the pod has run to its end.
pub(super) fn has_ended(pod: &Value) -> bool {
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    matches!(phase, "Succeeded" | "Failed")
}

/// What is gone already was found.
///
/// # Errors
/// Every other refusal.
pub(super) fn found(answer: Result<(), Refused>) -> Result<(), Refused> {
    match answer {
        Err(Refused::NotFound { .. }) => Ok(()),
        answer => answer,
    }
}

/// True if the scheduler has evicted the pod.
pub(super) fn was_evicted(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    conditions.iter().any(|condition| condition["reason"] == "PreemptionByScheduler")
}

/// Returns the name of the PodGroup of a pod.
pub(super) fn group_of(pod: &Value) -> &str {
    let name = pod["metadata"]["annotations"][GROUP].as_str();
    name.unwrap_or_default()
}

/// Returns the pod of this number of a job.
pub(super) fn pod(job: &JobSpec, at: u64) -> Value {
    let mut annotations = json!({ GROUP: job.name });
    if let Some(seconds) = job.run_seconds {
        annotations[RUN_SECONDS] = seconds.to_string().into();
    }
    let mut requests = json!({});
    if 0 < job.cpu_milli {
        requests["cpu"] = format!("{}m", job.cpu_milli).into();
    }
    if 0 < job.memory_gib {
        requests["memory"] = format!("{}Gi", job.memory_gib).into();
    }
    let mut resources = json!({ "requests": requests });
    devices::request_memory(&mut resources, job.gpu_memory_mib);
    let mut spec = json!({
        "schedulerName": "volcano",
        "terminationGracePeriodSeconds": 3,
        "containers": [{ "name": "c", "image": "i", "resources": resources }],
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
