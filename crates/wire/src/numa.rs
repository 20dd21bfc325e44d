//! Numatopologies: the CPUs of nodes, as an exporter on each node reports them.
//! Specification: core.md 3.9, plugins-nodes.md 14.1.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize;
use vc_model::{
    CpuAllocation, CpuPlace, CpuSet, MAX_CPUS, NumaTopology, ObjectKey, parse_cpu_list,
};
use vc_resource::Quantity;

use crate::metadata::{self, SlimMetadata};
use crate::problems::{FieldPath, Problems};
use crate::soft::{LenientField, LenientList, LenientMap, object};
use crate::{Kind, WireError, finish_noted};

/// A Numatopology as it is decoded.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimNumaTopology {
    pub metadata: LenientField<SlimMetadata>,
    pub spec: LenientField<SlimNumaSpec>,
}

/// `spec` of a Numatopology.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimNumaSpec {
    pub policies: LenientField<LenientMap<Arc<str>>>,
    #[serde(rename = "resReserved")]
    pub reserved: LenientField<LenientMap<Quantity>>,
    #[serde(rename = "numares")]
    pub resources: LenientField<LenientMap<SlimNumaResource>>,
    #[serde(rename = "cpuDetail")]
    pub cpu_detail: LenientField<LenientMap<SlimCpuPlace>>,
    #[serde(rename = "podAllocations")]
    pub allocations: LenientList<SlimPodAllocation>,
}

/// An entry of `numares`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimNumaResource {
    pub allocatable: LenientField<Arc<str>>,
}

/// An entry of `cpuDetail`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimCpuPlace {
    pub numa: LenientField<i64>,
    pub socket: LenientField<i64>,
    pub core: LenientField<i64>,
}

/// An entry of `podAllocations`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimPodAllocation {
    pub uid: LenientField<Arc<str>>,
    pub name: LenientField<Arc<str>>,
    pub namespace: LenientField<Arc<str>>,
    #[serde(rename = "containerAllocations")]
    pub containers: LenientList<SlimContainerAllocation>,
}

/// An entry of `containerAllocations`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimContainerAllocation {
    pub allocations: LenientField<LenientMap<Arc<str>>>,
}

object!(
    SlimNumaTopology { "metadata" => metadata, "spec" => spec },
    SlimNumaSpec,
    SlimNumaResource,
    SlimCpuPlace,
    SlimPodAllocation,
    SlimContainerAllocation,
);

/// NUMA nodes of a node, at most. More would need too many combinations.
const MAX_NUMA_NODES: usize = 16;
/// What follows from CPUs that are not known.
const UNKNOWN: &str = "the CPUs of the node count as not known";

impl SlimNumaTopology {
    /// The record, and what is wrong with the object besides. CPUs that contradict each other count
    /// as not known.
    ///
    /// # Errors
    /// The object cannot be identified, or a field has a wrong type.
    pub fn to_record(self) -> Result<(NumaTopology, Vec<String>), WireError> {
        let mut problems = Problems::default();
        let metadata = metadata::read(Kind::NumaTopology, self.metadata, &mut problems)?;
        let path = FieldPath::root("spec");
        let spec = problems.or_default(self.spec, &path);
        let policies = problems.map(spec.policies, &path.field("policies"));
        let policy = |name: &str| {
            let found = policies.iter().find(|(key, _)| &**key == name);
            found.map(|(_, policy)| policy.clone()).unwrap_or_default()
        };
        let n_reserved = reserved(&mut problems, spec.reserved, &path.field("resReserved"));
        let places = places(&mut problems, spec.cpu_detail, &path.field("cpuDetail"));
        let resources = problems.map(spec.resources, &path.field("numares"));
        let cpu = resources.into_iter().find(|(name, _)| &**name == "cpu");
        let resources = path.field("numares");
        let at = resources.key("cpu");
        let free = cpu.and_then(|(_, cpu)| {
            let field = at.field("allocatable");
            let text = problems.read(cpu.allocatable, &field)?;
            cpus(&mut problems, &text, &field)
        });
        let free = free.filter(|free| are_placed(&mut problems, free, places.as_ref(), &path));
        let allocations =
            problems.list(spec.allocations, &path.field("podAllocations"), allocation);
        let record = NumaTopology {
            name: metadata.name.clone(),
            cpu_manager_policy: policy("CPUManagerPolicy"),
            topology_manager_policy: policy("TopologyManagerPolicy"),
            n_reserved,
            free,
            places: places.unwrap_or_default(),
            allocations,
        };
        let name = metadata.name;
        finish_noted(record, Kind::NumaTopology, "", &name, problems)
    }
}

/// The CPUs that the kubelet reserves. A negative amount makes the whole map be ignored.
fn reserved(
    problems: &mut Problems,
    field: LenientField<LenientMap<Quantity>>,
    path: &FieldPath<'_>,
) -> usize {
    let amounts = problems.map(field, path);
    if let Some((name, amount)) = amounts.iter().find(|(_, amount)| amount.is_negative()) {
        let text = amount.text(name);
        problems.note(path, &format!("is ignored, as {name} is below zero: {text}"));
        return 0;
    }
    let cpu = amounts.iter().find(|(name, _)| &**name == "cpu");
    cpu.map_or(0, |(_, amount)| usize::try_from(amount.value()).unwrap_or(usize::MAX))
}

/// The places of the CPUs. `None` if some are unreadable, or if there are too many NUMA nodes.
fn places(
    problems: &mut Problems,
    field: LenientField<LenientMap<SlimCpuPlace>>,
    path: &FieldPath<'_>,
) -> Option<BTreeMap<u32, CpuPlace>> {
    let mut places = BTreeMap::new();
    for (key, slim) in problems.map(field, path) {
        let at = path.key(&key);
        let cpu = key.parse().ok().filter(|&cpu: &u32| cpu < MAX_CPUS);
        let number = |field| match field {
            LenientField::Good(number) => u32::try_from(number).ok(),
            LenientField::Absent => Some(0),
            LenientField::Bad(_) => None,
        };
        let numbers = (number(slim.numa), number(slim.socket), number(slim.core));
        let (Some(cpu), (Some(numa), Some(socket), Some(core))) = (cpu, numbers) else {
            let wanted = "write the number of a CPU, and its numa, socket and core";
            problems.note(&at, &format!("is no place of a CPU, {UNKNOWN}: {wanted}"));
            return None;
        };
        places.insert(cpu, CpuPlace { numa, socket, core });
    }
    let numa_nodes: BTreeSet<u32> = places.values().map(|place| place.numa).collect();
    if MAX_NUMA_NODES < numa_nodes.len() {
        let n_nodes = numa_nodes.len();
        let limit = format!("names {n_nodes} NUMA nodes, {UNKNOWN}: at most {MAX_NUMA_NODES}");
        problems.note(path, &limit);
        return None;
    }
    Some(places)
}

/// True if each free CPU has a place. Otherwise the contradiction is noted.
fn are_placed(
    problems: &mut Problems,
    free: &CpuSet,
    places: Option<&BTreeMap<u32, CpuPlace>>,
    spec: &FieldPath<'_>,
) -> bool {
    let Some(places) = places else { return false };
    let Some(cpu) = free.iter().find(|cpu| !places.contains_key(cpu)) else { return true };
    let problem = format!("lacks CPU {cpu} of numares.cpu.allocatable, {UNKNOWN}");
    problems.note(&spec.field("cpuDetail"), &problem);
    false
}

fn allocation(
    problems: &mut Problems,
    slim: SlimPodAllocation,
    path: &FieldPath<'_>,
) -> CpuAllocation {
    let namespace = problems.text(slim.namespace, &path.field("namespace"));
    let name = problems.text(slim.name, &path.field("name"));
    let uid = problems.text(slim.uid, &path.field("uid"));
    let containers = path.field("containerAllocations");
    let sets = problems.list(slim.containers, &containers, |problems, slim, path| {
        let at = path.field("allocations");
        let sets = problems.map(slim.allocations, &at);
        let cpu = sets.iter().find(|(name, _)| &**name == "cpu");
        cpu.and_then(|(_, text)| cpus(problems, text, &at.key("cpu"))).unwrap_or_default()
    });
    let cpus = sets.into_iter().flatten().collect();
    CpuAllocation { uid, key: ObjectKey { namespace, name }, cpus }
}

/// The CPUs of a list. `None` if it cannot be read, which is noted.
fn cpus(problems: &mut Problems, text: &str, path: &FieldPath<'_>) -> Option<CpuSet> {
    match parse_cpu_list(text) {
        Ok(cpus) => Some(cpus),
        Err(problem) => {
            problems.note(path, &format!("{problem}; {UNKNOWN}"));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn decoded(spec: Value) -> (NumaTopology, Vec<String>) {
        let object = json!({"metadata": {"name": "n1"}, "spec": spec});
        let slim: SlimNumaTopology = serde_json::from_value(object).unwrap();
        slim.to_record().unwrap()
    }

    fn spec() -> Value {
        json!({
            "policies": {"CPUManagerPolicy": "static", "TopologyManagerPolicy": "restricted"},
            "resReserved": {"cpu": "1500m"},
            "numares": {"cpu": {"allocatable": "1-3", "capacity": 4}, "memory": {}},
            "cpuDetail": {
                "0": {"numa": 0, "socket": 0, "core": 0}, "1": {"core": 1},
                "2": {"numa": 1, "socket": 1}, "3": {"numa": 1, "socket": 1, "core": 1},
            },
            "podAllocations": [{"uid": "u", "name": "p", "namespace": "ns",
                "containerAllocations": [{"name": "a", "allocations": {"cpu": "0"}}, {"name": "b", "allocations": {}}]}],
        })
    }

    #[test]
    fn core_3_9_a_numatopology_is_read() {
        let (topology, problems) = decoded(spec());
        assert_eq!(problems, [""; 0]);
        assert_eq!((&*topology.name, &*topology.cpu_manager_policy), ("n1", "static"));
        assert_eq!((&*topology.topology_manager_policy, topology.n_reserved), ("restricted", 2));
        assert_eq!(topology.free, parse_cpu_list("1-3").ok());
        assert_eq!(topology.places[&3], CpuPlace { numa: 1, socket: 1, core: 1 });
        let [pod] = &topology.allocations[..] else { panic!("one pod: {topology:?}") };
        assert_eq!((&*pod.uid, pod.key.to_string()), ("u", "ns/p".to_owned()));
        assert_eq!(pod.cpus, parse_cpu_list("0").unwrap());
    }

    /// Each contradiction is named with its field, and the CPUs are then not known.
    #[test]
    fn core_3_9_contradictions_are_named() {
        for (change, problem) in [
            (
                json!({"numares": {"cpu": {"allocatable": "0-x"}}}),
                "spec.numares.cpu.allocatable: \"x\"",
            ),
            (
                json!({"numares": {"cpu": {"allocatable": "0-9"}}}),
                "spec.cpuDetail: lacks CPU 4 of numares.cpu.allocatable",
            ),
            (json!({"cpuDetail": {"first": {}}}), "spec.cpuDetail.first: is no place of a CPU"),
            (json!({"cpuDetail": {"0": {"numa": -1}}}), "spec.cpuDetail.0: is no place of a CPU"),
            (
                json!({"cpuDetail": (0..20).map(|numa| {
                    (numa.to_string(), json!({"numa": numa}))
                }).collect::<serde_json::Map<_, _>>()}),
                "spec.cpuDetail: names 20 NUMA nodes",
            ),
        ] {
            let mut spec = spec();
            for (field, value) in change.as_object().unwrap() {
                spec[field] = value.clone();
            }
            let (topology, problems) = decoded(spec);
            assert_eq!(topology.free, None, "{change}");
            let found = problems.first().map_or("", String::as_str);
            assert!(found.starts_with(&format!("numatopology n1: {problem}")), "{found}");
            assert_eq!(problems.len(), 1, "{problems:?}");
        }
        let mut negative = spec();
        negative["resReserved"] = json!({"cpu": "2", "memory": "-1"});
        let (topology, problems) = decoded(negative);
        assert_eq!(topology.n_reserved, 0);
        assert!(problems[0].contains("spec.resReserved: is ignored"), "{problems:?}");
    }
}
