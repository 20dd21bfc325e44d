//! The invariants of docs/spec/invariants.md, as far as the objects of the API server show them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use vc_conf::Config;
use vc_engine::{Effect, EngineOptions, Nomination};
use vc_model::{ClusterEvent, ObjectKey, PodCondition, PodGroupStatus};
use vc_resource::Quantity;

use super::controllers::OTHER_SCHEDULER;
use super::devices;
use super::usage;
use super::world::{group_of, has_ended, is_leaving};
use crate::serve::{
    HYPER_NODES, KINDS, LEASES, NODES, Object, POD_GROUPS, PODS, PRIORITY_CLASSES, QUEUES,
    ServedKind, Store,
};
use crate::simulation::{KubeletMode, Setup, Simulation};
use vc_objects::input::{InputObject, Source};

/// Returns the nodes that hold more than they have (I1), with a text each.
pub(super) fn room(store: &Store) -> BTreeMap<String, String> {
    let mut faults = BTreeMap::new();
    for (node, held) in HeldRoom::of(store).0 {
        // Pods of a node that has gone are on their way.
        let Some(object) = store.get(&NODES, "", &node) else { continue };
        let has = Room::of_node(&object);
        if !held.is_within(&has) {
            faults.insert(node.clone(), format!("I1: node {node} has {has}, and holds {held}"));
        }
    }
    faults
}

/// An amount of each resource that nodes of stories have.
#[derive(Clone, Copy, Debug, Default)]
struct Room {
    cpu_milli: i128,
    memory_bytes: i128,
    pods: i128,
}

impl Room {
    /// Returns what a node has.
    fn of_node(node: &Object) -> Self {
        let has = |resource: &str| {
            milli(node.value["status"]["allocatable"][resource].as_str().unwrap_or_default())
        };
        let (memory, pods) = (has("memory") / 1_000, has("pods") / 1_000);
        Self { cpu_milli: has("cpu"), memory_bytes: memory, pods }
    }

    /// Returns what a pod takes.
    fn of_pod(pod: &Value) -> Self {
        let memory_bytes = requested_milli(pod, "memory") / 1_000;
        Self { cpu_milli: cpu_milli(pod), memory_bytes, pods: 1 }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            cpu_milli: self.cpu_milli + other.cpu_milli,
            memory_bytes: self.memory_bytes + other.memory_bytes,
            pods: self.pods + other.pods,
        }
    }

    fn is_within(&self, other: &Self) -> bool {
        self.cpu_milli <= other.cpu_milli
            && self.memory_bytes <= other.memory_bytes
            && self.pods <= other.pods
    }
}

impl fmt::Display for Room {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu_milli, memory_bytes, pods } = self;
        write!(out, "{cpu_milli}m cpu, {memory_bytes} bytes of memory and {pods} places of pods")
    }
}

/// What the pods of each node hold.
pub(super) struct HeldRoom(BTreeMap<String, Room>);

impl HeldRoom {
    pub(super) fn of(store: &Store) -> Self {
        let mut held = Self(BTreeMap::new());
        for pod in store.list(&PODS, None).objects.iter().filter(|pod| is_held(&pod.value)) {
            held.add(pod.value["spec"]["nodeName"].as_str().unwrap_or_default(), &pod.value);
        }
        held
    }

    /// Adds a pod on a node.
    pub(super) fn add(&mut self, node: &str, pod: &Value) {
        let sum = self.0.entry(node.to_owned()).or_default();
        *sum = sum.plus(Room::of_pod(pod));
    }

    /// True if there is room left on the node for the pod.
    pub(super) fn leaves_room(&self, node: &Object, pod: &Value) -> bool {
        let held = self.0.get(node.name()).copied().unwrap_or_default();
        held.plus(Room::of_pod(pod)).is_within(&Room::of_node(node))
    }
}

/// Returns the milli cpu that pods of our scheduler hold.
pub(super) fn held_by_ours(store: &Store) -> i128 {
    let pods = store.list(&PODS, None).objects;
    let is_ours = |pod: &&Arc<Object>| {
        is_held(&pod.value) && pod.value["spec"]["schedulerName"] != OTHER_SCHEDULER
    };
    pods.iter().filter(is_ours).map(|pod| cpu_milli(&pod.value)).sum()
}

/// True if the pod holds room on its node.
pub(super) fn is_held(pod: &Value) -> bool {
    pod["spec"]["nodeName"].is_string() && !has_ended(pod)
}

pub(super) fn cpu_milli(pod: &Value) -> i128 {
    requested_milli(pod, "cpu")
}

/// Returns thousandths of what the containers of a pod ask for of a resource.
fn requested_milli(pod: &Value, resource: &str) -> i128 {
    let containers = pod["spec"]["containers"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of = |container: &Value| {
        milli(container["resources"]["requests"][resource].as_str().unwrap_or_default())
    };
    containers.iter().map(of).sum()
}

fn milli(quantity: &str) -> i128 {
    quantity.parse::<Quantity>().map_or(0, |amount| i128::from(amount.milli()))
}

/// Returns the gangs of which some pods have a node, but fewer than are needed, while the others exist
/// (I2), one text each, but for those that others have broken. Pods without a request are placed one by one and count as placed (actions.md 8).
/// Holds once nothing moves any more: a gang may be short while it is bound.
pub(super) fn gangs(store: &Store, broken: &BTreeSet<String>) -> Vec<String> {
    let mut found = half_bound_with_text(store);
    found.retain(|group, _| !broken.contains(group));
    found.into_values().collect()
}

/// Returns the gangs of which some pods have a node, but fewer than are needed, while the others exist.
pub(super) fn half_bound(store: &Store) -> BTreeSet<String> {
    half_bound_with_text(store).into_keys().collect()
}

fn half_bound_with_text(store: &Store) -> BTreeMap<String, String> {
    let pods = store.list(&PODS, None).objects;
    let mut faults = BTreeMap::new();
    for group in store.list(&POD_GROUPS, None).objects {
        let min = group.value["spec"]["minMember"].as_u64().unwrap_or(0);
        let members: Vec<&Arc<Object>> =
            pods.iter().filter(|pod| group_of(&pod.value) == group.name()).collect();
        let count =
            |is: fn(&Value) -> bool| members.iter().filter(|pod| is(&pod.value)).count() as u64;
        let (placed, waiting) = (count(is_placed), count(is_waiting));
        let without_request = count(|pod| is_waiting(pod) && asks_for_nothing(pod));
        if 0 < placed && placed + without_request < min && min <= placed + waiting {
            let name = group.name();
            let text =
                format!("I2: {placed} of {min} needed pods of {name} have a node, {waiting} wait");
            faults.insert(name.to_owned(), text);
        }
    }
    faults
}

/// True if the containers of the pod ask for no cpu, no memory and no memory of a GPU.
fn asks_for_nothing(pod: &Value) -> bool {
    let Room { cpu_milli, memory_bytes, .. } = Room::of_pod(pod);
    (cpu_milli, memory_bytes, devices::requested_mib(pod)) == (0, 0, 0)
}

/// True if the pod has, or had, a node.
fn is_placed(pod: &Value) -> bool {
    pod["spec"]["nodeName"].is_string()
}

/// True if the pod is of our scheduler and waits for a node.
fn is_waiting(pod: &Value) -> bool {
    !is_placed(pod) && !is_leaving(pod) && pod["spec"]["schedulerName"] != OTHER_SCHEDULER
}

/// Returns one text for each violation of I4 and I11 at rest: a bind or eviction that the plain evaluator still
/// decides on these objects, a status, condition or nomination that it would write, and a pod that waits without
/// a condition.
pub(super) fn settled(store: &Store, config: &Config, now_micros: i64) -> Vec<String> {
    let mut simulation = plain_simulation(store, config, now_micros);
    let mut faults = Vec::new();
    let first = simulation.cycle().effects;
    faults.extend(first.iter().filter_map(|effect| unwritten(store, effect)));
    // The first cycle may admit, and the second one place.
    for effects in [first, simulation.cycle().effects] {
        for effect in effects {
            match effect {
                Effect::Bind { pod, node, .. } => {
                    faults.push(format!("I11: pod {pod} waits, although it fits on {node}"));
                }
                Effect::Evict { pod, .. } => {
                    faults.push(format!("I4: pod {pod} would be evicted next"));
                }
                _ => {}
            }
        }
    }
    let pods = store.list(&PODS, None).objects;
    let waiting = pods.iter().filter(|pod| is_waiting(&pod.value) && !is_told(&pod.value));
    faults.extend(waiting.map(|pod| format!("I11: pod {} waits without a condition", pod.name())));
    let placed = pods.iter().filter(|pod| is_placed(&pod.value) && is_told(&pod.value));
    faults.extend(placed.map(|pod| format!("I11: pod {} has a node, and waits", pod.name())));
    faults
}

/// Returns the status or condition that this effect writes and that no object has yet. `None`: the effect writes
/// none.
fn unwritten(store: &Store, effect: &Effect) -> Option<String> {
    match effect {
        Effect::PodGroupStatus { pod_group, status, .. } => {
            let PodGroupStatus { phase, running, succeeded, failed, conditions, .. } = status;
            let phase = phase.as_str();
            let messages: Vec<&str> = conditions.iter().map(|it| &*it.message).collect();
            Some(format!(
                "I11: PodGroup {pod_group} does not say {phase}, {running} running, {succeeded} \
                 succeeded, {failed} failed, and {messages:?}"
            ))
        }
        Effect::QueueStatus { queue, allocated } => {
            // The simulation supposes a default queue.
            store.get(&QUEUES, "", queue)?;
            Some(format!("I11: queue {queue} does not say that it holds {allocated:?}"))
        }
        Effect::PodCondition { pod, condition, nomination, .. } => {
            let object = store.get(&PODS, &pod.namespace, &pod.name)?;
            let PodCondition { reason, message, .. } = &**condition;
            if !messages(&object.value).any(|text| text == &**message) {
                return Some(format!("I11: pod {pod} does not say {reason}: {message}"));
            }
            unwritten_nomination(pod, &object.value, nomination)
        }
        Effect::ClearNomination { pod, .. } => {
            let object = store.get(&PODS, &pod.namespace, &pod.name)?;
            unwritten_nomination(pod, &object.value, &Nomination::Clear)
        }
        _ => None,
    }
}

/// Returns a text if the nominated node of the pod is not what the effect writes. `None`: it is.
fn unwritten_nomination(key: &ObjectKey, pod: &Value, nomination: &Nomination) -> Option<String> {
    let node = match nomination {
        Nomination::Keep => return None,
        Nomination::Set(node) => Some(&**node),
        Nomination::Clear => None,
    };
    let written = pod["status"]["nominatedNodeName"].as_str().filter(|node| !node.is_empty());
    (written != node)
        .then(|| format!("I11: pod {key} is nominated to {written:?}, not to {node:?}"))
}

/// Returns the plain evaluator with all that the scheduler reads, also the usage that is saved, if the configuration
/// keeps it.
pub(super) fn plain_simulation(store: &Store, config: &Config, now_micros: i64) -> Simulation {
    let evaluator = vc_engine::Evaluator::Plain;
    let options = EngineOptions { evaluator, ..EngineOptions::default() };
    simulation(store, config, now_micros, options)
}

/// Returns an engine with these options and all that the scheduler reads, as
/// [`plain_simulation`] does.
pub(super) fn simulation(
    store: &Store,
    config: &Config,
    now_micros: i64,
    options: EngineOptions,
) -> Simulation {
    let source = Source { file: "the API server".into(), line: 0 };
    let kinds = KINDS.iter().filter(|kind| is_watched(kind));
    let objects = kinds.flat_map(|kind| store.list(kind, None).objects);
    let objects = objects
        .map(|object| InputObject { value: object.value.clone(), source: source.clone() })
        .collect();
    let kubelet = KubeletMode::None;
    let setup = Setup { options, config, objects, now_micros, kubelet };
    let (mut simulation, _findings, _warnings) = Simulation::new(setup);
    if vc_engine::UsageConfigMap::of(config).is_some() {
        simulation.send(ClusterEvent::UsageRead(usage::to_read(store)));
    }
    simulation
}

fn is_watched(kind: &ServedKind) -> bool {
    *kind != LEASES
        && [&NODES, &PODS, &POD_GROUPS, &QUEUES, &PRIORITY_CLASSES, &HYPER_NODES]
            .iter()
            .any(|it| **it == *kind)
}

fn is_told(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let says =
        |condition: &Value| condition["type"] == "PodScheduled" && condition["status"] == "False";
    conditions.iter().any(says)
}

/// True if every pod of the group that waits says that its queue has no room, that nodes take no
/// pods, or that it waits for such pods of its group.
pub(super) fn waits_for_others(store: &Store, group: &str) -> bool {
    let pods = store.list(&PODS, None).objects;
    let waits = |pod: &&Arc<Object>| group_of(&pod.value) == group && is_waiting(&pod.value);
    let waiting: Vec<&Arc<Object>> = pods.iter().filter(waits).collect();
    let names_others = |pod: &&Arc<Object>| names_queue_or_closed_nodes(&pod.value);
    let waits_for_group = |pod: &Arc<Object>| {
        messages(&pod.value).any(|text| text.contains(", once minAvailable is satisfied"))
    };
    waiting.is_empty()
        || waiting.iter().any(names_others)
            && waiting.iter().all(|pod| names_others(pod) || waits_for_group(pod))
}

/// Returns the messages of the conditions of a pod.
fn messages(pod: &Value) -> impl Iterator<Item = &str> {
    let conditions = pod["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    conditions.iter().filter_map(|condition| condition["message"].as_str())
}

/// True if a condition of the pod says that its queue has no room, or that nodes take no pods.
pub(super) fn names_queue_or_closed_nodes(pod: &Value) -> bool {
    let of_queue = |text: &str| text.contains(" has no room") || text.contains(" is overused");
    let of_nodes = |text: &str| text.contains("were unschedulable") || text.contains(" taint");
    messages(pod).any(|text| (text.starts_with("queue ") && of_queue(text)) || of_nodes(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::outside_event::OutsideEvent;
    use crate::fuzz::script::{JobSpec, NodeSize};
    use crate::fuzz::world::World;
    use crate::serve::{Key, LOG_CAPACITY, in_process};

    /// A cluster of one node with 2 cpu, and a gang of two pods of 1 cpu each.
    fn gang_of_two() -> World {
        let (_router, store) = in_process(1, |_| LOG_CAPACITY);
        let mut world = World::new(store);
        world.begin(&[NodeSize { cpus: 2, pods: 10 }]).unwrap();
        let job = JobSpec { pods: 2, min: 2, cpu_milli: 1_000, ..JobSpec::lone("j") };
        world.apply(&OutsideEvent::Job(job)).unwrap();
        world
    }

    fn place(world: &World, pod: &str) {
        let key = Key::new("default", pod);
        let placed = world.store.update(&PODS, &key, |pod| {
            pod["spec"]["nodeName"] = "n0".into();
            Ok(())
        });
        placed.unwrap();
    }

    #[tokio::test]
    async fn half_a_gang_is_found_unless_others_have_broken_it() {
        let world = gang_of_two();
        assert_eq!(gangs(&world.store, &world.broken), [""; 0]);
        place(&world, "j-0");
        let found = gangs(&world.store, &world.broken);
        assert_eq!(found, ["I2: 1 of 2 needed pods of j have a node, 1 wait"]);
        assert_eq!(gangs(&world.store, &BTreeSet::from(["j".to_owned()])), [""; 0]);
        place(&world, "j-1");
        assert_eq!(gangs(&world.store, &world.broken), [""; 0]);
        assert_eq!(room(&world.store), BTreeMap::new());
    }

    #[tokio::test]
    async fn a_node_that_holds_more_than_it_has_is_found() {
        let (_router, store) = in_process(1, |_| LOG_CAPACITY);
        let mut world = World::new(store);
        world.has_little_memory = true;
        world.begin(&[NodeSize { cpus: 2, pods: 10 }]).unwrap();
        let job = JobSpec { pods: 2, min: 1, memory_gib: 2, ..JobSpec::lone("j") };
        world.apply(&OutsideEvent::Job(job)).unwrap();
        place(&world, "j-0");
        assert_eq!(room(&world.store), BTreeMap::new());
        place(&world, "j-1");
        let text = "I1: node n0 has 2000m cpu, 2147483648 bytes of memory and 10 places of pods, and holds \
                    0m cpu, 4294967296 bytes of memory and 2 places of pods";
        assert_eq!(room(&world.store), BTreeMap::from([("n0".to_owned(), text.to_owned())]));
    }

    #[test]
    fn a_nomination_that_is_not_written_is_found() {
        let pod = serde_json::json!({"status": {"nominatedNodeName": "n0"}});
        let key = ObjectKey::new("default", "j-0");
        let found = |nomination| unwritten_nomination(&key, &pod, &nomination);
        assert!(found(Nomination::Clear).is_some());
        assert!(found(Nomination::Set("n1".into())).is_some());
        assert_eq!([found(Nomination::Set("n0".into())), found(Nomination::Keep)], [None, None]);
    }

    #[tokio::test]
    async fn a_gang_that_fits_and_waits_is_found() {
        let world = gang_of_two();
        let config = vc_conf::parse("chart", vc_conf::CHART, &vc_engine::KNOWN).unwrap().config;
        let found = settled(&world.store, &config, 1_800_000_000_000_000);
        let expected = [
            "I11: PodGroup default/j does not say Inqueue, 0 running, 0 succeeded, 0 failed, and [\"\"]",
            "I11: queue q1 does not say that it holds [(\"cpu\", \"0\"), (\"memory\", \"0\")]",
            "I11: queue q2 does not say that it holds [(\"cpu\", \"0\"), (\"memory\", \"0\")]",
            "I11: pod default/j-0 waits, although it fits on n0",
            "I11: pod default/j-1 waits, although it fits on n0",
            "I11: pod j-0 waits without a condition",
            "I11: pod j-1 waits without a condition",
        ];
        assert_eq!(found, expected);
    }
}
