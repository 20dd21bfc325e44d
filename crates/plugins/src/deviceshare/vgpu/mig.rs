//! Instances of GPUs in mode `mig`: how a GPU can be divided, and which of its slots pods have.
//! Specification: plugins-nodes.md 16.7.

use std::collections::BTreeSet;

use super::super::assigned::GpuSlot;

/// How GPUs of some models can be divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct MigGeometry {
    /// A GPU is of one of these models if its name contains the text.
    pub(in super::super) models: Vec<String>,
    /// The ways to divide it. The first one with an instance of enough memory is taken.
    pub(in super::super) groups: Vec<MigGroup>,
}

/// One way to divide a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct MigGroup {
    pub(in super::super) name: String,
    /// Types of instances. Slots are numbered through them in this order.
    pub(in super::super) instances: Vec<MigInstance>,
}

/// A type of instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct MigInstance {
    /// Memory in MiB.
    pub(in super::super) memory: i64,
    /// Number of such instances.
    pub(in super::super) count: i64,
}

/// The instances of one GPU, with the slots that pods have.
#[derive(Clone, Debug)]
pub(super) struct GpuInstances<'a> {
    groups: &'a [MigGroup],
    /// A unit of requested memory is so many MiB.
    factor: i64,
    used: BTreeSet<GpuSlot<'a>>,
}

impl<'a> GpuInstances<'a> {
    /// Returns the instances of a GPU of this model. Returns `None` if no geometry is for it.
    pub(super) fn of(geometries: &'a [MigGeometry], model: &str, factor: i64) -> Option<Self> {
        let is_of = |it: &&MigGeometry| it.models.iter().any(|part| model.contains(part.as_str()));
        let groups = &geometries.iter().find(is_of)?.groups;
        Some(Self { groups, factor, used: BTreeSet::new() })
    }

    /// Counts a slot as taken.
    pub(super) fn occupy(&mut self, slot: GpuSlot<'a>) {
        self.used.insert(slot);
    }

    /// Returns the slot that a request gets, with its memory in units of requests. While slots are
    /// taken, only their group is possible.
    pub(super) fn find(&self, memory: i64) -> Option<(GpuSlot<'a>, i64)> {
        let memory = memory.saturating_mul(self.factor);
        let is_open = |group: &&MigGroup| self.used.iter().all(|(name, _)| *name == group.name);
        self.groups.iter().filter(is_open).find_map(|group| {
            let (number, instance) = self.slot(group, memory)?;
            Some(((group.name.as_str(), number), instance.memory / self.factor))
        })
    }

    /// Returns the free slot of the smallest instance with so much memory in MiB.
    fn slot(&self, group: &'a MigGroup, memory: i64) -> Option<(i64, MigInstance)> {
        let starts = group.instances.iter().scan(0, |next, instance| {
            let start = *next;
            *next += instance.count;
            Some((start, *instance))
        });
        let mut types: Vec<(i64, MigInstance)> = starts.collect();
        types.sort_by_key(|(_, instance)| instance.memory);
        let is_free = |number: &i64| !self.used.contains(&(group.name.as_str(), *number));
        let large = types.into_iter().filter(|(_, instance)| memory <= instance.memory);
        large.filter_map(|(start, it)| Some(((start..start + it.count).find(is_free)?, it))).next()
    }
}

/// Returns the ways to divide GPUs as NVIDIA documents them.
pub(super) fn known_geometries() -> Vec<MigGeometry> {
    let group = |(at, types): (usize, &Instances)| {
        let instances = types.iter().map(|&(memory, count)| MigInstance { memory, count });
        MigGroup { name: format!("group{}", at + 1), instances: instances.collect() }
    };
    let geometry = |(models, groups): &(Models, &[Instances])| MigGeometry {
        models: models.iter().map(|&model| model.to_owned()).collect(),
        groups: groups.iter().enumerate().map(group).collect(),
    };
    KNOWN.iter().map(geometry).collect()
}

type Models = &'static [&'static str];
/// Pairs of memory and count.
type Instances = &'static [(i64, i64)];

const KNOWN: &[(Models, &[Instances])] = &[
    (&["A30"], &[&[(6_144, 4)], &[(12_288, 2)], &[(24_576, 1)]]),
    (
        &["A100-SXM4-40GB", "A100-40GB-PCIe", "A100-PCIE-40GB"],
        &[&[(5_120, 7)], &[(10_240, 3), (5_120, 1)], &[(20_480, 2)], &[(40_960, 1)]],
    ),
    (
        &["A100-SXM4-80GB", "A100-80GB-PCIe", "A100-PCIE-80GB"],
        &[&[(10_240, 7)], &[(20_480, 3), (10_240, 1)], &[(40_960, 2)], &[(80_896, 1)]],
    ),
];
