//! NUMA topologies of nodes, what pods ask of them, and sets of CPUs. Specification:
//! plugins-nodes.md 14.1, 14.3.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vc_resource::amount;

use crate::record::{ContainerRecord, ObjectKey, PodRecord};

/// CPUs of a node, by their ids.
pub type CpuSet = BTreeSet<u32>;

/// CPU ids are below this number. Linux numbers fewer.
pub const MAX_CPUS: u32 = 1 << 14;

/// Annotation of a pod with its policy.
const POLICY: &str = "volcano.sh/numa-topology-policy";

/// A Numatopology: the CPUs of the node of the same name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumaTopology {
    /// `metadata.name`, which is the name of the node.
    pub name: Arc<str>,
    /// `spec.policies.CPUManagerPolicy`.
    pub cpu_manager_policy: Arc<str>,
    /// `spec.policies.TopologyManagerPolicy`.
    pub topology_manager_policy: Arc<str>,
    /// Number of CPUs that the kubelet reserves: `spec.resReserved.cpu`, rounded up.
    pub n_reserved: usize,
    /// `spec.numares.cpu.allocatable`: the CPUs that no pod has to itself. `None` if they are not
    /// known.
    pub free: Option<CpuSet>,
    /// `spec.cpuDetail`: where each CPU is.
    pub places: BTreeMap<u32, CpuPlace>,
    /// `spec.podAllocations`: the CPUs that pods have to themselves.
    pub allocations: Vec<CpuAllocation>,
}

/// The place of a CPU in its node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuPlace {
    /// NUMA node.
    pub numa: u32,
    /// Socket.
    pub socket: u32,
    /// Core, unique in its socket.
    pub core: u32,
}

/// CPUs that the kubelet has given to a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuAllocation {
    /// Uid of the pod.
    pub uid: Arc<str>,
    /// Namespace and name of the pod.
    pub key: ObjectKey,
    /// The CPUs of all containers.
    pub cpus: CpuSet,
}

impl NumaTopology {
    /// True if the kubelet has reported CPUs of the pod.
    pub fn has_reported(&self, uid: &str, key: &ObjectKey) -> bool {
        self.allocations.iter().any(|reported| *reported.uid == *uid || reported.key == *key)
    }
}

/// What a pod of the class Guaranteed asks of the CPUs of its node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NumaDemand {
    /// Annotation `volcano.sh/numa-topology-policy`. `None` if it is absent, empty or `none`.
    pub policy: Option<Arc<str>>,
    /// Names of `spec.containers`, and the CPUs that each gets to itself. `None` if a container
    /// requests no whole number of CPUs.
    pub containers: Vec<(Arc<str>, Option<usize>)>,
}

/// Returns the demand of a pod. Returns `None` if it is not Guaranteed, or if it has no policy and
/// no container gets CPUs to itself.
pub(crate) fn numa_demand_of(pod: &PodRecord) -> Option<NumaDemand> {
    let mut all = pod.containers.iter().chain(&pod.init_containers);
    let is_guaranteed = all.all(|container| container.is_guaranteed);
    if !is_guaranteed || pod.containers.is_empty() || !pod.pod_requests.is_empty() {
        return None;
    }
    let policy = pod.annotations.get(POLICY);
    let policy = policy.filter(|policy| !policy.is_empty() && &***policy != "none").cloned();
    let whole = |container: &ContainerRecord| (container.name.clone(), whole_cpus(container));
    let containers: Vec<_> = pod.containers.iter().map(whole).collect();
    let is_asking = policy.is_some() || containers.iter().any(|(_, n_cpus)| n_cpus.is_some());
    is_asking.then_some(NumaDemand { policy, containers })
}

/// Returns the number of CPUs that a container requests. Returns `None` if it is 0 or not whole.
fn whole_cpus(container: &ContainerRecord) -> Option<usize> {
    let (name, quantity) = container.requests.iter().find(|(name, _)| &**name == "cpu")?;
    let milli = amount(name, *quantity)?;
    let is_whole = 0 < milli && milli % 1000 == 0;
    usize::try_from(milli / 1000).ok().filter(|_| is_whole)
}

/// Returns the CPUs of a list such as `0-3,8`. An empty list has none.
///
/// # Errors
/// What is wrong with the text.
pub fn parse_cpu_list(text: &str) -> Result<CpuSet, String> {
    let number = |part: &str| {
        let parsed: Option<u32> = part.trim().parse().ok();
        parsed.filter(|&cpu| cpu < MAX_CPUS).ok_or_else(|| {
            format!("{part:?} is no number of a CPU: write numbers and ranges, such as 0-3,8")
        })
    };
    let mut cpus = CpuSet::new();
    for part in text.split(',').filter(|part| !part.trim().is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(number(first)?..=number(last)?);
    }
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_numbers_and_ranges() {
        let parsed = |text: &str| parse_cpu_list(text).map(|cpus| cpus.into_iter().collect());
        assert_eq!(parsed("0-3,8"), Ok(vec![0, 1, 2, 3, 8]));
        assert_eq!(parsed(" 5 , 1"), Ok(vec![1, 5]));
        assert_eq!(parsed(""), Ok(vec![]));
        assert_eq!(parsed("3-1"), Ok(vec![]), "as an empty range");
        for wrong in ["x", "1-", "-1", "99999999", "0-4294967295"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
