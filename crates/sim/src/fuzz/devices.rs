//! GPUs of a story that pods share by memory, and what the objects show of them: no GPU holds more than it has, and
//! a bound pod that asks for memory of one has one that exists (I1). A bind writes the number of the GPU together
//! with the node. Specification: plugins-nodes.md 16.4.

use std::collections::BTreeMap;

use serde_json::Value;

use super::check;
use super::configs::BAD;
use super::outside_event::OutsideEvent;
use super::script::NodeSize;
use super::world::group_of;
use crate::rng::Rng;
use crate::serve::{NODES, Object, PODS, Store};

/// Resource: the memory of all GPUs of a node together. A pod asks for memory of one GPU.
pub(super) const GPU_MEMORY: &str = "volcano.sh/gpu-memory";
/// Resource: the number of GPUs of a node.
const GPU_NUMBER: &str = "volcano.sh/gpu-number";
/// Annotation of a pod: the number of the GPU that it has.
const GPU_INDEX: &str = "volcano.sh/gpu-index";
/// Annotation of a pod: when the GPU was chosen.
const PREDICATE_TIME: &str = "volcano.sh/predicate-time";

/// Memory of each GPU.
const MEMORY_MIB: u64 = 16_000;
/// What pods of jobs ask for. Two parts may leave memory on two GPUs that would be enough for a third one on one.
const REQUESTS_MIB: [u64; 5] = [0, 4_000, 6_000, 10_000, 12_000];
/// GPUs of a node at most. Some nodes have none.
const MOST_GPUS: u64 = 3;

/// Gives the pods of most jobs random requests for memory of a GPU. They are drawn from numbers of their own, so
/// that the rest of the story stays the same. Pods of the other scheduler, which knows no GPUs, get none. Bad
/// configuration files are left out: a process that begins with one has the built-in one in force, without
/// `deviceshare`, and binds pods without a GPU.
pub(super) fn give_gpu_memory(seed: u64, steps: &mut Vec<(u64, OutsideEvent)>) {
    let mut rng = Rng::new(seed.rotate_left(24));
    for (_, event) in steps.iter_mut() {
        let job = match event {
            OutsideEvent::Job(job) => job,
            OutsideEvent::LonePod { pod, is_of_others: false } => pod,
            _ => continue,
        };
        job.gpu_memory_mib = rng.of(&REQUESTS_MIB);
    }
    steps.retain(|(_, event)| !brings_bad_file(event));
}

fn brings_bad_file(event: &OutsideEvent) -> bool {
    matches!(event, OutsideEvent::Configure { text, .. } if BAD.contains(text))
}

/// Adds the GPUs of a node of this size to the amounts that the node has.
pub(super) fn add_gpus(amounts: &mut Value, size: NodeSize) {
    let n_gpus = size.cpus % (MOST_GPUS + 1);
    if 0 < n_gpus {
        amounts[GPU_MEMORY] = (n_gpus * MEMORY_MIB).to_string().into();
        amounts[GPU_NUMBER] = n_gpus.to_string().into();
    }
}

/// Adds a request for memory of a GPU to the resources of a container. 0: none is asked for.
pub(super) fn request_memory(resources: &mut Value, memory_mib: u64) {
    if 0 < memory_mib {
        for list in ["requests", "limits"] {
            resources[list][GPU_MEMORY] = memory_mib.to_string().into();
        }
    }
}

/// Removes from the annotations of a pod what its bind has written.
pub(super) fn forget_gpu(annotations: &mut Value) {
    if let Some(annotations) = annotations.as_object_mut() {
        for key in [GPU_INDEX, PREDICATE_TIME] {
            annotations.remove(key);
        }
    }
}

/// Returns the memory of a GPU that a pod asks for.
pub(super) fn requested_mib(pod: &Value) -> u64 {
    let containers = pod["spec"]["containers"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of = |container: &Value| whole(&container["resources"]["requests"][GPU_MEMORY]);
    containers.iter().map(of).sum()
}

/// True if pods of the PodGroup ask for memory of a GPU.
pub(super) fn has_requests(store: &Store, group: &str) -> bool {
    let pods = store.list(&PODS, None).objects;
    pods.iter().any(|pod| group_of(&pod.value) == group && 0 < requested_mib(&pod.value))
}

/// Returns the nodes of which a GPU holds more than it has, or a pod has no GPU that exists (I1), with a text each.
pub(super) fn room(store: &Store) -> BTreeMap<String, String> {
    let mut nodes: BTreeMap<String, NodeGpus> = BTreeMap::new();
    let mut faults: BTreeMap<String, String> = BTreeMap::new();
    let pods = store.list(&PODS, None).objects;
    let holds = |pod: &Value| check::is_held(pod) && 0 < requested_mib(pod);
    for pod in pods.iter().filter(|pod| holds(&pod.value)) {
        let name = pod.value["spec"]["nodeName"].as_str().unwrap_or_default();
        // Pods of a node that has gone are on their way.
        let Some(node) = store.get(&NODES, "", name) else { continue };
        let gpus = nodes.entry(name.to_owned()).or_insert_with(|| NodeGpus::of_node(&node));
        if let Err(text) = gpus.add(pod) {
            faults.entry(name.to_owned()).or_insert_with(|| format!("I1: node {name}: {text}"));
        }
    }
    for (name, gpus) in nodes {
        if let Some(text) = gpus.overfull() {
            faults.entry(name.clone()).or_insert_with(|| format!("I1: node {name}: {text}"));
        }
    }
    faults
}

/// The GPUs of a node.
struct NodeGpus {
    /// Memory of each.
    memory_mib: u64,
    /// What the pods of each GPU ask for, by its number.
    held_mib: Vec<u64>,
}

impl NodeGpus {
    /// Returns the GPUs of a node, which no pod holds yet.
    fn of_node(node: &Object) -> Self {
        let capacity = |resource: &str| whole(&node.value["status"]["capacity"][resource]);
        let (memory_mib, n_gpus) = (capacity(GPU_MEMORY), capacity(GPU_NUMBER));
        let held_mib = vec![0; usize::try_from(n_gpus).unwrap_or_default()];
        Self { memory_mib: memory_mib / n_gpus.max(1), held_mib }
    }

    /// Adds a pod to the GPU that it has.
    ///
    /// # Errors
    /// The pod has no GPU of the node.
    fn add(&mut self, pod: &Object) -> Result<(), String> {
        let (name, n_gpus) = (pod.name(), self.held_mib.len());
        let Some(index) = pod.value["metadata"]["annotations"][GPU_INDEX].as_str() else {
            return Err(format!("pod {name} asks for memory of a GPU, and has none"));
        };
        let held = index.parse::<usize>().ok().and_then(|index| self.held_mib.get_mut(index));
        let Some(held) = held else {
            return Err(format!("pod {name} has GPU {index:?}, and there are {n_gpus} GPUs"));
        };
        *held += requested_mib(&pod.value);
        Ok(())
    }

    /// Returns a text about the first GPU that holds more than it has. `None`: there is none.
    fn overfull(&self) -> Option<String> {
        let memory = self.memory_mib;
        let (index, held) = self.held_mib.iter().enumerate().find(|(_, held)| memory < **held)?;
        Some(format!("GPU {index} has {memory} MiB, and holds {held}"))
    }
}

/// Returns a whole number that stands as a text in an object of a story. 0: there is none.
fn whole(amount: &Value) -> u64 {
    amount.as_str().and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::fuzz::configs::GOOD;
    use crate::fuzz::fault::FaultKind;
    use crate::fuzz::script::{JobSpec, Script, Step};
    use crate::fuzz::story::{StoryOptions, play};
    use crate::fuzz::world::{GROUP, NAMESPACE, World};
    use crate::serve::{Key, LOG_CAPACITY, in_process};

    /// A cluster with a node of two GPUs, and a job of four pods that ask for 10,000 MiB of a GPU each.
    fn world() -> World {
        let (_router, store) = in_process(1, |_| LOG_CAPACITY);
        let mut world = World::new(store);
        world.has_gpus = true;
        world.begin(&[NodeSize { cpus: 2, pods: 10 }]).unwrap();
        let job = JobSpec { pods: 4, gpu_memory_mib: 10_000, ..JobSpec::lone("j") };
        world.apply(&OutsideEvent::Job(job)).unwrap();
        world
    }

    /// Binds a pod with the annotations that the scheduler writes. `None`: it writes none.
    fn bind(world: &World, pod: &str, gpu: Option<&str>) {
        let annotations = gpu.map(|gpu| json!({ GPU_INDEX: gpu, PREDICATE_TIME: "7" }));
        let binding =
            json!({ "metadata": { "annotations": annotations }, "target": { "name": "n0" } });
        world.store.bind(&Key::new(NAMESPACE, pod), &binding).unwrap();
    }

    /// The texts about nodes.
    fn found(world: &World) -> Vec<String> {
        room(&world.store).into_values().collect()
    }

    #[tokio::test]
    async fn a_gpu_that_is_full_twice_is_found_until_a_pod_has_ended() {
        let world = world();
        bind(&world, "j-0", Some("0"));
        bind(&world, "j-1", Some("1"));
        assert_eq!(found(&world), [""; 0]);
        bind(&world, "j-2", Some("1"));
        assert_eq!(found(&world), ["I1: node n0: GPU 1 has 16000 MiB, and holds 20000"]);
        let ended = world.store.update(&PODS, &Key::new(NAMESPACE, "j-1"), |pod| {
            pod["status"]["phase"] = "Succeeded".into();
            Ok(())
        });
        ended.unwrap();
        assert_eq!(found(&world), [""; 0]);
    }

    /// A pod that is being deleted holds its GPU until it is gone, or its node is.
    #[tokio::test]
    async fn a_pod_that_is_leaving_holds_its_gpu() {
        let mut world = world();
        bind(&world, "j-0", Some("1"));
        bind(&world, "j-1", Some("1"));
        world.apply(&OutsideEvent::DeletePod { nth: 0 }).unwrap();
        assert_eq!(found(&world), ["I1: node n0: GPU 1 has 16000 MiB, and holds 20000"]);
        world.apply(&OutsideEvent::LoseNode { nth: 0 }).unwrap();
        assert_eq!(found(&world), [""; 0]);
    }

    #[tokio::test]
    async fn a_pod_without_a_gpu_that_exists_is_found() {
        for (gpu, text) in [
            (None, "I1: node n0: pod j-0 asks for memory of a GPU, and has none"),
            (Some("2"), "I1: node n0: pod j-0 has GPU \"2\", and there are 2 GPUs"),
            (Some("0,1"), "I1: node n0: pod j-0 has GPU \"0,1\", and there are 2 GPUs"),
        ] {
            let world = world();
            bind(&world, "j-0", gpu);
            assert_eq!(found(&world), [text]);
        }
    }

    #[tokio::test]
    async fn a_pod_that_asks_for_no_gpu_needs_none() {
        let mut world = world();
        world.apply(&OutsideEvent::Job(JobSpec::lone("k"))).unwrap();
        bind(&world, "k-0", None);
        assert_eq!(found(&world), [""; 0]);
        assert_eq!(["j", "k"].map(|group| has_requests(&world.store, group)), [true, false]);
    }

    #[tokio::test]
    async fn a_pod_that_is_made_again_has_no_gpu() {
        let mut world = world();
        bind(&world, "j-0", Some("1"));
        let bound = world.store.get(&PODS, NAMESPACE, "j-0").unwrap();
        world.make_again(&bound.value).unwrap();
        let again = world.store.get(&PODS, NAMESPACE, "j-r1").unwrap();
        assert_eq!(again.value["metadata"]["annotations"], json!({ GROUP: "j" }));
        assert_eq!(requested_mib(&again.value), 10_000);
    }

    /// True if the file is one that the story may bring.
    fn is_good_file(event: &OutsideEvent) -> bool {
        matches!(event, OutsideEvent::Configure { text, .. } if GOOD.contains(text))
    }

    /// Seed 296 has lone pods, because its story has controllers.
    #[test]
    fn most_jobs_of_a_story_ask_for_gpus_and_no_bad_file_comes() {
        let script = Script::of(296, 10, &FaultKind::ALL.into_iter().collect());
        assert!(script.has_gpus && script.has_controllers);
        let (mut n_jobs, mut n_asking, mut n_of_others) = (0, 0, 0);
        for Step { event, .. } in &script.steps {
            assert!(!brings_bad_file(event), "{event}");
            match event {
                OutsideEvent::LonePod { pod, is_of_others: true } => {
                    assert_eq!(pod.gpu_memory_mib, 0, "{event}");
                    n_of_others += 1;
                }
                OutsideEvent::Job(job) | OutsideEvent::LonePod { pod: job, .. } => {
                    n_jobs += 1;
                    n_asking += usize::from(0 < job.gpu_memory_mib);
                }
                _ => {}
            }
        }
        assert!(0 < n_of_others && script.steps.iter().any(|step| is_good_file(&step.event)));
        assert!(n_jobs < 2 * n_asking && n_asking < n_jobs, "{n_asking} of {n_jobs}");
    }

    #[test]
    fn a_story_finds_a_pod_without_a_gpu() {
        let options = StoryOptions { faults: BTreeSet::new() };
        let mut script = Script::of(3, 1, &options.faults);
        script.has_gpus = true;
        let at = Duration::from_secs(61);
        script.steps.push(Step { at, event: OutsideEvent::Overfill });
        let end = play(&script, &options).unwrap();
        let text = "I1: node n0: pod big-0 asks for memory of a GPU, and has none";
        assert_eq!(end.violations[0], text);
    }
}
