//! The CPUs that a pod would get on a node, or why it may not run there.
//! Specification: plugins-nodes.md 14.2, 14.3.

use std::collections::BTreeSet;

use vc_model::{Cluster, CpuSet, NodeId, NumaDemand, NumaTopology, Reason, TaskId};

use super::cpus::{assign, take};
use super::hints::{NumaHints, NumaPolicy};

const NO_DATA: &str = "numa info is empty";
const NOT_STATIC: &str = "cpu manager policy isn't static";
const NO_CPUS: &str = "no topo information";
const NO_FREE_CPUS: &str = "cpu allocatable map is empty";

/// Returns the CPUs that a task gets to itself on a node; none if nothing is decided about it.
///
/// # Errors
/// Why the task may not run there.
pub(super) fn choose(cluster: &Cluster, task: TaskId, node: NodeId) -> Result<CpuSet, Reason> {
    let Some(demand) = &cluster.class(task).numa_demand else { return Ok(CpuSet::new()) };
    let topology = cluster.nodes[node].numa.as_deref();
    let free = topology.and_then(|topology| free_cpus(cluster, node, topology));
    if let Some(policy) = &demand.policy {
        required(topology, policy, free.as_ref())?;
    }
    let Some(topology) = topology.filter(|topology| is_static(topology)) else {
        return Ok(CpuSet::new());
    };
    let policy = NumaPolicy::named(&topology.topology_manager_policy);
    match policy.zip(free) {
        Some((policy, free)) => containers(demand, topology, policy, &free),
        None => Ok(CpuSet::new()),
    }
}

fn is_static(topology: &NumaTopology) -> bool {
    &*topology.cpu_manager_policy == "static"
}

/// Checks what a pod with a policy requires of a node.
fn required(
    topology: Option<&NumaTopology>,
    policy: &str,
    free: Option<&CpuSet>,
) -> Result<(), Reason> {
    let topology = topology.ok_or(Reason::Text(NO_DATA))?;
    if !is_static(topology) {
        return Err(Reason::Text(NOT_STATIC));
    }
    let of_node = &topology.topology_manager_policy;
    if **of_node != *policy {
        let text = format!("task topology policy[{policy}] is different with node[{of_node}]");
        return Err(Reason::Owned(text.into()));
    }
    let free = free.ok_or(Reason::Text(NO_CPUS))?;
    if free.is_empty() { Err(Reason::Text(NO_FREE_CPUS)) } else { Ok(()) }
}

/// Returns the CPUs of all containers, each from those that the earlier ones have left. A container
/// that is admitted without enough CPUs gets none: the kubelet decides.
fn containers(
    demand: &NumaDemand,
    topology: &NumaTopology,
    policy: NumaPolicy,
    free: &CpuSet,
) -> Result<CpuSet, Reason> {
    let places = &topology.places;
    let all: CpuSet = places.keys().copied().collect();
    let reserved = take(places, &all, topology.n_reserved.min(all.len())).unwrap_or_default();
    let mut free = free - &reserved;
    let mut assigned = CpuSet::new();
    for (name, n_cpus) in &demand.containers {
        let hints = NumaHints::of(places, &free, *n_cpus);
        let Some(numas) = hints.admitted(policy) else {
            let text = format!("container {name} cannot be assigned by numa");
            return Err(Reason::Owned(text.into()));
        };
        let cpus = n_cpus.and_then(|n_cpus| assign(places, &free, &numas, n_cpus));
        let cpus = cpus.unwrap_or_default();
        free = &free - &cpus;
        assigned.extend(cpus);
    }
    Ok(assigned)
}

/// Returns the CPUs of a node that no pod has to itself: neither by the report of the kubelet, nor
/// by a decision that the kubelet has not reported yet. Returns `None` if they are not known.
///
/// If the kubelet has given CPUs of such a decision to another pod, it will choose others for it.
/// So many of those that are left are then taken as its choice.
fn free_cpus(cluster: &Cluster, node: NodeId, topology: &NumaTopology) -> Option<CpuSet> {
    let mut free = topology.free.clone()?;
    let mut displaced = BTreeSet::new();
    for &task in &cluster.nodes[node].tasks {
        let row = &cluster.tasks[task];
        let Some(cpus) = row.cpus.as_ref().filter(|_| !topology.has_reported(&row.uid, &row.key))
        else {
            continue;
        };
        match cpus.is_subset(&free) {
            true => free = &free - cpus,
            false => drop(displaced.insert((&row.key, cpus.len()))),
        }
    }
    for (_, n_cpus) in displaced {
        let chosen = take(&topology.places, &free, n_cpus.min(free.len()));
        free = &free - &chosen.unwrap_or_default();
    }
    Some(free)
}

/// Returns the number of NUMA nodes that the CPUs are on.
pub(super) fn n_numa_nodes(topology: &NumaTopology, cpus: &CpuSet) -> usize {
    let numas = cpus.iter().filter_map(|cpu| Some(topology.places.get(cpu)?.numa));
    numas.collect::<BTreeSet<u32>>().len()
}
