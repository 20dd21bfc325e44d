//! Hints about NUMA nodes, and how the policies of the kubelet's topology manager judge them.
//! Specification: plugins-nodes.md 14.4.

use std::collections::{BTreeMap, BTreeSet};

use vc_model::CpuSet;

use super::cpus::CpuPlaces;

/// A policy of the topology manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumaPolicy {
    BestEffort,
    Restricted,
    SingleNumaNode,
}

impl NumaPolicy {
    /// Returns the policy of this name. Returns `None` for `none`, and for names that nobody knows.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "best-effort" => Some(Self::BestEffort),
            "restricted" => Some(Self::Restricted),
            "single-numa-node" => Some(Self::SingleNumaNode),
            _ => None,
        }
    }
}

/// NUMA nodes from which a container could get its CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NumaHint {
    /// One bit for each NUMA node, by its position. `None` means any.
    mask: Option<u32>,
    is_preferred: bool,
}

/// The hints of a container, over the NUMA nodes of its node.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NumaHints {
    /// Ids of the NUMA nodes, ascending.
    numas: Vec<u32>,
    hints: Vec<NumaHint>,
}

impl NumaHints {
    /// Returns the hints of a container that needs `n_cpus` of the free ones. `None` means that it
    /// gets no CPUs to itself.
    pub(super) fn of(places: &CpuPlaces, free: &CpuSet, n_cpus: Option<usize>) -> Self {
        let mut counts: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
        for (cpu, place) in places {
            let (n_all, n_free) = counts.entry(place.numa).or_default();
            *n_all += 1;
            *n_free += usize::from(free.contains(cpu));
        }
        let numas: Vec<u32> = counts.keys().copied().collect();
        let counts: Vec<(usize, usize)> = counts.into_values().collect();
        let hints = match n_cpus {
            None => vec![NumaHint { mask: None, is_preferred: true }],
            Some(n_cpus) => combinations(&counts, n_cpus),
        };
        Self { numas, hints }
    }

    /// Returns the NUMA nodes of the best hint. Returns `None` if the policy admits no hint.
    pub(super) fn admitted(&self, policy: NumaPolicy) -> Option<BTreeSet<u32>> {
        let all = (1_u32 << self.numas.len()) - 1;
        let is_single = |hint: &&NumaHint| {
            hint.is_preferred && hint.mask.is_none_or(|mask| mask.count_ones() == 1)
        };
        let counts = |hint: &&NumaHint| policy != NumaPolicy::SingleNumaNode || is_single(hint);
        let key = |hint: &NumaHint| {
            let mask = hint.mask.unwrap_or(all) & all;
            (!hint.is_preferred, mask.count_ones(), mask)
        };
        let hints = self.hints.iter().filter(counts).map(key);
        let any = (true, all.count_ones(), all);
        let (is_worse, _, mask) = hints
            .filter(|&(.., mask)| mask != 0 || all == 0)
            .min()
            .map_or(any, |best| best.min(any));
        if is_worse && policy != NumaPolicy::BestEffort {
            return None;
        }
        let named = self.numas.iter().enumerate().filter(|(place, _)| mask >> place & 1 == 1);
        Some(named.map(|(_, &numa)| numa).collect())
    }
}

/// Returns a hint for each combination of NUMA nodes with enough free CPUs, small ones first. Those
/// with the fewest NUMA nodes that could ever do are preferred. `counts` has the number of all and
/// of free CPUs of each NUMA node.
fn combinations(counts: &[(usize, usize)], n_cpus: usize) -> Vec<NumaHint> {
    let sums = |mask: u32| {
        let inside = counts.iter().enumerate().filter(|(place, _)| mask >> place & 1 == 1);
        inside.fold((0, 0), |(all, free), (_, (n_all, n_free))| (all + n_all, free + n_free))
    };
    let mut masks: Vec<u32> = (1..1_u32 << counts.len()).collect();
    masks.sort_by_key(|mask| (mask.count_ones(), *mask));
    let smallest = masks.iter().find(|&&mask| n_cpus <= sums(mask).0).map(|mask| mask.count_ones());
    let fitting = masks.into_iter().filter(|&mask| n_cpus <= sums(mask).1);
    let hint = |mask: u32| NumaHint {
        mask: Some(mask),
        is_preferred: Some(mask.count_ones()) == smallest,
    };
    let hints: Vec<NumaHint> = fitting.map(hint).collect();
    match hints.is_empty() {
        true => vec![NumaHint { mask: None, is_preferred: false }],
        false => hints,
    }
}

#[cfg(test)]
mod tests {
    use super::super::cpus::tests::{cpus, places};
    use super::*;

    /// The hints as in the cases, such as `{0}p {0,1}`.
    fn hints(free: &str, n_cpus: usize) -> String {
        let hints = NumaHints::of(&places(), &cpus(free), Some(n_cpus));
        let text = |hint: &NumaHint| {
            let nodes = match hint.mask {
                Some(1) => "{0}",
                Some(2) => "{1}",
                Some(_) => "{0,1}",
                None => "none",
            };
            format!("{nodes}{}", if hint.is_preferred { "p" } else { "" })
        };
        hints.hints.iter().map(text).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn nodes_117_hints_name_each_combination_with_room() {
        assert_eq!(hints("0-7", 4), "{0}p {1}p {0,1}");
        assert_eq!(hints("1-7", 4), "{1}p {0,1}");
        assert_eq!(hints("0-7", 5), "{0,1}p");
        assert_eq!(hints("0-7", 8), "{0,1}p");
        assert_eq!(hints("0-7", 9), "none");
        assert_eq!(hints("2-5", 4), "{0,1}");
    }

    fn admitted(free: &str, n_cpus: Option<usize>, policy: &str) -> Option<Vec<u32>> {
        let hints = NumaHints::of(&places(), &cpus(free), n_cpus);
        let admitted = hints.admitted(NumaPolicy::named(policy).unwrap());
        admitted.map(|numas| numas.into_iter().collect())
    }

    #[test]
    fn nodes_119_policies_admit_hints() {
        for (free, n_cpus, best_effort, restricted, single) in [
            ("0-7", Some(4), Some(vec![0]), Some(vec![0]), Some(vec![0])),
            ("1-7", Some(4), Some(vec![1]), Some(vec![1]), Some(vec![1])),
            ("0-7", Some(5), Some(vec![0, 1]), Some(vec![0, 1]), None),
            ("2-5", Some(4), Some(vec![0, 1]), None, None),
            ("2-5", Some(5), Some(vec![0, 1]), None, None),
            ("0-7", None, Some(vec![0, 1]), Some(vec![0, 1]), Some(vec![0, 1])),
        ] {
            assert_eq!(admitted(free, n_cpus, "best-effort"), best_effort, "{free} {n_cpus:?}");
            assert_eq!(admitted(free, n_cpus, "restricted"), restricted, "{free} {n_cpus:?}");
            assert_eq!(admitted(free, n_cpus, "single-numa-node"), single, "{free} {n_cpus:?}");
        }
        assert_eq!(NumaPolicy::named("none"), None);
    }
}
