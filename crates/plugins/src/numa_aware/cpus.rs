//! Which CPUs a container gets: the arithmetic of the kubelet's static CPU manager.
//! Specification: plugins-nodes.md 14.5.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use vc_model::{CpuPlace, CpuSet};

/// The places of the CPUs of a node, by CPU.
pub(super) type CpuPlaces = BTreeMap<u32, CpuPlace>;

/// A core: its socket, and its number in the socket.
type CoreId = (u32, u32);

/// Returns `n_cpus` of the free CPUs: first those of the NUMA nodes `numas`, then any others.
/// Returns `None` if there are too few.
pub(super) fn assign(
    places: &CpuPlaces,
    free: &CpuSet,
    numas: &BTreeSet<u32>,
    n_cpus: usize,
) -> Option<CpuSet> {
    let is_near = |cpu: &&u32| places.get(cpu).is_some_and(|place| numas.contains(&place.numa));
    let near: CpuSet = free.iter().filter(is_near).copied().collect();
    let mut taken = take(places, &near, n_cpus.min(near.len()))?;
    let others = free - &taken;
    taken.extend(take(places, &others, n_cpus - taken.len())?);
    Some(taken)
}

/// Returns `n_cpus` of the free CPUs: whole sockets, then whole cores, then single CPUs. Returns
/// `None` if there are too few.
pub(super) fn take(places: &CpuPlaces, free: &CpuSet, n_cpus: usize) -> Option<CpuSet> {
    if free.len() < n_cpus {
        return None;
    }
    let mut choice = CpuChoice { places, free: free.clone(), taken: CpuSet::new(), n_cpus };
    let sockets = group(places, places.keys(), |place| place.socket);
    for cpus in sockets.values() {
        choice.take_whole(cpus);
    }
    let cores = group(places, places.keys(), core_of);
    for core in choice.free_cores(&cores) {
        choice.take_whole(&cores[&core]);
    }
    for cpu in choice.single_cpus() {
        if choice.taken.len() < n_cpus {
            choice.taken.insert(cpu);
        }
    }
    Some(choice.taken)
}

/// A choice of CPUs in the making.
struct CpuChoice<'a> {
    places: &'a CpuPlaces,
    free: CpuSet,
    taken: CpuSet,
    n_cpus: usize,
}

impl CpuChoice<'_> {
    /// Takes the CPUs if all are free and no more than are still needed.
    fn take_whole(&mut self, cpus: &CpuSet) {
        if cpus.len() <= self.n_cpus - self.taken.len() && cpus.is_subset(&self.free) {
            self.taken.extend(cpus);
            self.free = &self.free - cpus;
        }
    }

    /// Returns the cores that are free as a whole: those of sockets with the fewest such cores
    /// first.
    fn free_cores(&self, cores: &BTreeMap<CoreId, CpuSet>) -> Vec<CoreId> {
        let free = cores.iter().filter(|(_, cpus)| cpus.is_subset(&self.free));
        let mut free: Vec<CoreId> = free.map(|(&core, _)| core).collect();
        let mut n_of_socket: BTreeMap<u32, usize> = BTreeMap::new();
        for (socket, _) in &free {
            *n_of_socket.entry(*socket).or_default() += 1;
        }
        free.sort_by_key(|&(socket, core)| (n_of_socket[&socket], socket, core));
        free
    }

    /// Returns the free CPUs: those of the sockets of which most is taken first, then those of the
    /// fullest sockets and cores.
    fn single_cpus(&self) -> Vec<u32> {
        let taken = group(self.places, &self.taken, |place| place.socket);
        let sockets = group(self.places, &self.free, |place| place.socket);
        let cores = group(self.places, &self.free, core_of);
        let mut ranked: Vec<_> = cores
            .iter()
            .map(|(&(socket, core), cpus)| {
                let n_taken = taken.get(&socket).map_or(0, CpuSet::len);
                (Reverse(n_taken), sockets[&socket].len(), cpus.len(), socket, core)
            })
            .collect();
        ranked.sort_unstable();
        ranked.iter().flat_map(|&(.., socket, core)| cores[&(socket, core)].clone()).collect()
    }
}

fn core_of(place: CpuPlace) -> CoreId {
    (place.socket, place.core)
}

/// Returns the CPUs by a part of their places.
fn group<'c, K: Ord>(
    places: &CpuPlaces,
    cpus: impl IntoIterator<Item = &'c u32>,
    part: impl Fn(CpuPlace) -> K,
) -> BTreeMap<K, CpuSet> {
    let mut groups: BTreeMap<K, CpuSet> = BTreeMap::new();
    for cpu in cpus {
        if let Some(&place) = places.get(cpu) {
            groups.entry(part(place)).or_default().insert(*cpu);
        }
    }
    groups
}

#[cfg(test)]
pub(super) mod tests {
    use vc_model::parse_cpu_list;

    use super::*;

    /// The node of the cases: CPUs 0-3 on NUMA node and socket 0, 4-7 on 1, two CPUs a core.
    pub(in super::super) fn places() -> CpuPlaces {
        let place = |cpu| (cpu, CpuPlace { numa: cpu / 4, socket: cpu / 4, core: cpu / 2 });
        (0..8).map(place).collect()
    }

    pub(in super::super) fn cpus(text: &str) -> CpuSet {
        parse_cpu_list(text).unwrap()
    }

    #[test]
    fn nodes_118_cpus_are_assigned_by_sockets_cores_and_numbers() {
        let assigned = |free: &str, numas: &[u32], n_cpus| {
            assign(&places(), &cpus(free), &numas.iter().copied().collect(), n_cpus)
        };
        assert_eq!(assigned("0-7", &[0], 4), Some(cpus("0-3")));
        assert_eq!(assigned("1-7", &[1], 4), Some(cpus("4-7")));
        assert_eq!(assigned("0-7", &[0, 1], 5), Some(cpus("0-4")));
        assert_eq!(assigned("1-7", &[0, 1], 5), Some(cpus("1,4-7")));
        assert_eq!(assigned("1-7", &[0, 1], 8), None, "8 of 7");
        assert_eq!(assigned("0-7", &[1], 6), Some(cpus("0-1,4-7")), "the rest from elsewhere");
    }

    #[test]
    fn nodes_118_single_cpus_come_from_the_fullest_socket_and_core() {
        let taken = |free: &str, n_cpus| take(&places(), &cpus(free), n_cpus);
        assert_eq!(taken("0-7", 1), Some(cpus("0")));
        assert_eq!(taken("0-2,4-7", 1), Some(cpus("2")), "a core that is used already");
        assert_eq!(taken("0-1,4-7", 2), Some(cpus("0-1")), "the socket with fewer free cores");
        assert_eq!(taken("2-7", 3), Some(cpus("2-3,4")), "no other core of the socket is free");
        assert_eq!(taken("0-7", 0), Some(CpuSet::new()));
        // Cores are numbered per socket.
        let alike = |cpu| (cpu, CpuPlace { numa: cpu / 2, socket: cpu / 2, core: 0 });
        let places: CpuPlaces = (0..4).map(alike).collect();
        assert_eq!(take(&places, &cpus("1-3"), 2), Some(cpus("2-3")));
    }
}
