//! Plays Volcano's controllers and another scheduler, as far as the scheduler meets what they write: the pods of a
//! job come when its PodGroup is admitted, a pod alone gets a PodGroup, the status of a queue has two
//! writers, and pods of others take room on nodes. Specification: docs/spec/invariants.md.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::check::HeldRoom;
use super::quota;
use super::script::JobSpec;
use super::world::{GROUP, NAMESPACE, found, group_of, has_ended, is_leaving, pod};
use crate::serve::{Key, NODES, Object, POD_GROUPS, PODS, QUEUES, Refused, Store};

/// How often they look at the objects.
pub(super) const PERIOD: Duration = Duration::from_millis(700);
/// Name of the other scheduler.
pub(super) const OTHER_SCHEDULER: &str = "default-scheduler";

/// Volcano's controllers and another scheduler.
pub(super) struct Controllers {
    /// Jobs whose pods they make.
    jobs: Vec<JobSpec>,
}

impl Controllers {
    pub(super) fn new() -> Self {
        Self { jobs: Vec::new() }
    }

    /// Makes the pods of this job from now on.
    pub(super) fn take_on(&mut self, job: &JobSpec) {
        self.jobs.push(job.clone());
    }

    /// True if they make the pods of this PodGroup.
    pub(super) fn makes_pods_of(&self, group: &str) -> bool {
        self.jobs.iter().any(|job| job.name == group)
    }

    /// Lets each of them look at the objects once. Returns the nodes to which the other scheduler has bound
    /// pods.
    ///
    /// # Errors
    /// A write is refused, which is a fault of this module.
    pub(super) fn act(&mut self, store: &Store) -> Result<Vec<String>, Refused> {
        self.make_pods(store)?;
        make_pod_groups(store)?;
        count_pod_groups(store)?;
        bind_others(store)
    }

    /// The job controller: an admitted PodGroup gets the pods that it lacks, under the names that it gives them.
    fn make_pods(&mut self, store: &Store) -> Result<(), Refused> {
        let group_of_job = |job: &JobSpec| store.get(&POD_GROUPS, NAMESPACE, &job.name);
        self.jobs.retain(|job| group_of_job(job).is_some());
        let admitted = self.jobs.iter().filter(|job| {
            group_of_job(job).is_some_and(|group| !matches!(phase(&group.value), "" | "Pending"))
        });
        for job in admitted {
            for pod in (0..job.pods).map(|at| pod(job, at)) {
                let name = pod["metadata"]["name"].as_str().unwrap_or_default();
                if store.get(&PODS, NAMESPACE, name).is_some() {
                    continue;
                }
                match quota::create_pod(store, &pod) {
                    // It tries again when it looks at the objects next.
                    Err(Refused::Forbidden { .. }) => return Ok(()),
                    created => created?,
                }
            }
        }
        Ok(())
    }
}

/// The PodGroup controller: a pod without a PodGroup gets one of its own, which goes with it.
fn make_pod_groups(store: &Store) -> Result<(), Refused> {
    let pods = store.list(&PODS, None).objects;
    let is_alone = |pod: &&Arc<Object>| group_of(&pod.value).is_empty() && is_ours(&pod.value);
    for pod in pods.iter().filter(is_alone) {
        let name = format!("podgroup-{}", pod.uid());
        let owner = json!({
            "apiVersion": "v1", "kind": "Pod", "name": pod.name(), "uid": pod.uid(), "controller": true,
        });
        let group = json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
            "metadata": { "name": name, "namespace": NAMESPACE, "ownerReferences": [owner] },
            "spec": { "minMember": 1, "queue": "default" },
        });
        if store.get(&POD_GROUPS, NAMESPACE, &name).is_none() {
            store.create(&POD_GROUPS, &group)?;
        }
        let annotated = store.update(&PODS, &Key::of(&pod.value), |pod| {
            pod["metadata"]["annotations"][GROUP] = name.into();
            Ok(())
        });
        found(annotated.map(drop))?;
    }
    Ok(())
}

/// The queue controller: the status of each queue says how many PodGroups it has of each phase.
fn count_pod_groups(store: &Store) -> Result<(), Refused> {
    let mut counts: BTreeMap<(String, String), u64> = BTreeMap::new();
    for group in store.list(&POD_GROUPS, None).objects {
        let queue = group.value["spec"]["queue"].as_str().unwrap_or("default").to_owned();
        *counts.entry((queue, phase(&group.value).to_lowercase())).or_default() += 1;
    }
    for queue in store.list(&QUEUES, None).objects {
        let counted = store.update(&QUEUES, &Key::of(&queue.value), |value| {
            value["status"]["state"] = "Open".into();
            for phase in ["pending", "inqueue", "running", "unknown", "completed"] {
                let count = counts.get(&(queue.name().to_owned(), phase.to_owned()));
                value["status"][phase] = count.copied().unwrap_or(0).into();
            }
            Ok(())
        });
        found(counted.map(drop))?;
    }
    Ok(())
}

/// The other scheduler: each of its pods goes to the first node that has room for it.
fn bind_others(store: &Store) -> Result<Vec<String>, Refused> {
    let pods = store.list(&PODS, None).objects;
    let waits = |pod: &&Arc<Object>| {
        pod.value["spec"]["schedulerName"] == OTHER_SCHEDULER
            && pod.value["spec"]["nodeName"].is_null()
            && !is_leaving(&pod.value)
    };
    let nodes = store.list(&NODES, None).objects;
    let (mut bound, mut held) = (Vec::new(), HeldRoom::of(store));
    for pod in pods.iter().filter(waits) {
        let takes_it =
            |node: &&Arc<Object>| takes_pods(&node.value) && held.leaves_room(node, &pod.value);
        let Some(node) = nodes.iter().find(takes_it) else { continue };
        let placed = store.update(&PODS, &Key::of(&pod.value), |pod| {
            pod["spec"]["nodeName"] = node.name().into();
            pod["status"]["conditions"] = json!([{ "type": "PodScheduled", "status": "True" }]);
            Ok(())
        });
        found(placed.map(drop))?;
        held.add(node.name(), &pod.value);
        bound.push(node.name().to_owned());
    }
    Ok(bound)
}

fn takes_pods(node: &Value) -> bool {
    node["spec"]["unschedulable"] != true && node["spec"]["taints"].is_null()
}

fn phase(group: &Value) -> &str {
    group["status"]["phase"].as_str().unwrap_or_default()
}

/// True if the pod is of our scheduler, and neither ends nor has ended.
fn is_ours(pod: &Value) -> bool {
    pod["spec"]["schedulerName"] != OTHER_SCHEDULER && !is_leaving(pod) && !has_ended(pod)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::outside_event::OutsideEvent;
    use crate::fuzz::script::NodeSize;
    use crate::fuzz::world::World;
    use crate::serve::{LOG_CAPACITY, in_process};

    /// A cluster of one node with 2 cpu, and controllers.
    fn world() -> World {
        let (_router, store) = in_process(1, |_| LOG_CAPACITY);
        let mut world = World::new(store);
        world.controllers = Some(Controllers::new());
        world.begin(&[NodeSize { cpus: 2, pods: 10 }]).unwrap();
        world
    }

    fn alone(name: &str, is_of_others: bool) -> OutsideEvent {
        let pod = JobSpec { cpu_milli: 1_500, ..JobSpec::lone(name) };
        OutsideEvent::LonePod { pod, is_of_others }
    }

    /// Names and nodes of the pods.
    fn pods(world: &World) -> Vec<(String, String)> {
        let pods = world.store.list(&PODS, None).objects;
        let node = |pod: &Object| pod.value["spec"]["nodeName"].as_str().unwrap_or("-").to_owned();
        pods.iter().map(|pod| (pod.name().to_owned(), node(pod))).collect()
    }

    fn set_phase(world: &World, group: &str, phase: &str) {
        let set = world.store.update(&POD_GROUPS, &Key::new(NAMESPACE, group), |group| {
            group["status"]["phase"] = phase.into();
            Ok(())
        });
        set.unwrap();
    }

    #[tokio::test]
    async fn the_pods_of_a_job_come_when_it_is_admitted() {
        let mut world = world();
        let job = JobSpec { pods: 2, min: 2, ..JobSpec::lone("j") };
        world.apply(&OutsideEvent::Job(job)).unwrap();
        set_phase(&world, "j", "Pending");
        world.control().unwrap();
        assert_eq!(pods(&world), []);
        set_phase(&world, "j", "Inqueue");
        world.control().unwrap();
        let both = ["j-0", "j-1"].map(|name| (name.to_owned(), "-".to_owned()));
        assert_eq!(pods(&world), both);
        // One that is deleted is made again.
        world.apply(&OutsideEvent::DeletePod { nth: 1 }).unwrap();
        world.control().unwrap();
        assert_eq!(pods(&world), both);
    }

    #[tokio::test]
    async fn a_pod_alone_gets_a_pod_group_that_goes_with_it() {
        let mut world = world();
        world.apply(&alone("p", false)).unwrap();
        world.control().unwrap();
        let pod = world.store.get(&PODS, NAMESPACE, "p-0").unwrap();
        let group = format!("podgroup-{}", pod.uid());
        assert_eq!(group_of(&pod.value), group);
        assert!(world.store.get(&POD_GROUPS, NAMESPACE, &group).is_some());
        world.apply(&OutsideEvent::DeletePod { nth: 0 }).unwrap();
        assert!(world.store.get(&POD_GROUPS, NAMESPACE, &group).is_none());
    }

    #[tokio::test]
    async fn another_scheduler_binds_its_pods_where_there_is_room() {
        let mut world = world();
        world.apply(&alone("p", true)).unwrap();
        world.apply(&alone("q", true)).unwrap();
        assert_eq!(world.control().unwrap(), ["n0"]);
        let expected = [("p-0", "n0"), ("q-0", "-")];
        assert_eq!(pods(&world), expected.map(|(pod, node)| (pod.to_owned(), node.to_owned())));
        assert_eq!(world.control().unwrap(), [""; 0]);
    }

    #[tokio::test]
    async fn a_queue_says_how_many_pod_groups_it_has() {
        let mut world = world();
        world.apply(&OutsideEvent::Job(JobSpec { queue: "q1", ..JobSpec::lone("j") })).unwrap();
        set_phase(&world, "j", "Inqueue");
        world.control().unwrap();
        let queue = world.store.get(&QUEUES, "", "q1").unwrap();
        let status = &queue.value["status"];
        assert_eq!((&status["inqueue"], &status["running"]), (&json!(1), &json!(0)));
    }
}
