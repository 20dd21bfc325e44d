//! The use of Ascend 310P chips, read from the pods of their node. Specification: plugins-nodes.md
//! 16.10 ("Use").

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use vc_model::Code;

use super::super::family::{Choice, DeviceNode, Refusal};
use super::template::{ChipTemplate, Dvpp};
use super::{CORES, refusal, register};

/// AI CPUs of a chip.
const CPUS_PER_CHIP: i64 = 7;
/// Annotation of a pod that names what the device plugin has given it.
const REAL: &str = "huawei.com/AscendReal";
/// The health of a node that takes no new pods.
const SEPARATED: &str = "PreSeparate";

/// A chip with what is free of it.
#[derive(Debug)]
pub(super) struct FreeChip {
    pub(super) id: i64,
    cores: i64,
    cpus: i64,
    dvpp: Dvpp,
    /// True if a pod has a part of it.
    is_divided: bool,
    /// True if the device plugin has not reported the part of a pod yet.
    is_unstable: bool,
    /// Groups of parts that the device plugin has made on the chip.
    groups: BTreeSet<i64>,
}

impl FreeChip {
    fn new(id: i64, cores: i64) -> Self {
        Self {
            id,
            cores,
            cpus: CPUS_PER_CHIP,
            dvpp: Dvpp::Yes,
            is_divided: false,
            is_unstable: false,
            groups: BTreeSet::new(),
        }
    }

    fn take(&mut self, cores: i64, cpus: i64, dvpp: Dvpp) {
        self.cores -= cores;
        self.cpus -= cpus;
        self.dvpp = match (self.dvpp, dvpp) {
            (Dvpp::No, _) | (_, Dvpp::Yes) => Dvpp::No,
            (_, Dvpp::Null) => Dvpp::Null,
            (free, Dvpp::No) => free,
        };
    }

    /// True if a pod can have this part of the chip.
    fn has_room(&self, template: &ChipTemplate) -> bool {
        let has_dvpp = match template.dvpp {
            Dvpp::Yes => self.dvpp == Dvpp::Yes,
            Dvpp::Null => self.dvpp != Dvpp::No,
            Dvpp::No => true,
        };
        let most_cores = match (self.is_divided, self.groups.len()) {
            (true, 3) => 2,
            (true, 4) => 1,
            _ => i64::MAX,
        };
        !self.is_unstable
            && template.cores <= self.cores.min(most_cores)
            && template.cpus <= self.cpus
            && has_dvpp
    }
}

/// The chips of a pod, as the annotation names them: `0,3`, or `0-vir04` for a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PodChips<'a> {
    ids: Vec<&'a str>,
    template: Option<&'a str>,
}

impl<'a> PodChips<'a> {
    fn parse(text: &'a str) -> Self {
        let (ids, template) = match text.split_once('-') {
            Some((id, template)) => (id, Some(template)),
            None => (text, None),
        };
        Self { ids: ids.split(',').collect(), template }
    }

    fn ids(&self) -> impl Iterator<Item = i64> {
        self.ids.iter().filter_map(|id| id.trim().parse().ok())
    }

    /// True if the device plugin cannot take pods with these chips for each other: they are of
    /// different templates, or of different numbers of whole chips.
    fn differs(&self, other: &Self) -> bool {
        (self.template, self.ids.len()) != (other.template, other.ids.len())
    }
}

impl<'a> From<&'a Choice> for PodChips<'a> {
    fn from(choice: &'a Choice) -> Self {
        let parts = choice.containers.iter().flatten();
        Self { ids: parts.map(|part| part.device.as_str()).collect(), template: choice.template }
    }
}

impl fmt::Display for PodChips<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.ids.join(","))?;
        self.template.map_or(Ok(()), |template| write!(f, "-{template}"))
    }
}

/// The chips of a node with their use.
pub(super) struct NodeChips<'a> {
    pub(super) cores_per_chip: i64,
    /// Those with the least room first.
    chips: Vec<FreeChip>,
    /// The chips of pods that the device plugin has not reported yet.
    unfinished: Vec<PodChips<'a>>,
}

impl<'a> NodeChips<'a> {
    /// Reads the chips of the node.
    ///
    /// # Errors
    /// The node has no chips, or takes no pods.
    pub(super) fn of(at: DeviceNode<'a>) -> Result<Self, Refusal> {
        let node = at.node();
        let Ok(Some(registered)) = register::parse(node) else {
            let detail = "no Ascend310P is registered on this node";
            return Err(refusal(Code::Unresolvable, detail));
        };
        if register::text_of(node, register::NODE_HEALTH) == Some(SEPARATED) {
            // Begins as in Volcano.
            let reason = format!("node is {SEPARATED}, due to nodeD reported node status");
            return Err(Refusal { code: Code::Unresolvable, reason });
        }
        let cores_per_chip = registered.cores_per_chip;
        let new = |id| (id, FreeChip::new(id, cores_per_chip));
        let mut chips: BTreeMap<i64, FreeChip> = registered.usable.into_iter().map(new).collect();
        let mut unfinished = Vec::new();
        for (pod, text) in at.holders(CORES) {
            let held = PodChips::parse(text);
            let real = pod.devices.as_ref().and_then(|devices| devices.get(REAL));
            let real = real.map_or("", |real| &**real);
            for id in held.ids().filter(|id| !registered.broken.contains(id)) {
                // The list of a device plugin may name free chips only.
                let chip = chips.entry(id).or_insert_with(|| FreeChip::new(id, cores_per_chip));
                occupy(chip, held.template, cores_per_chip);
                chip.is_unstable |= real.is_empty();
                chip.groups.extend(group_of(real));
            }
            unfinished.extend(real.is_empty().then_some(held));
        }
        let mut chips: Vec<FreeChip> = chips.into_values().collect();
        chips.sort_by_key(|chip| (chip.cores, chip.cpus, chip.id));
        Ok(Self { cores_per_chip, chips, unfinished })
    }

    /// Returns the chips that nobody uses.
    pub(super) fn idle(&self) -> impl Iterator<Item = &FreeChip> {
        self.chips.iter().filter(|chip| chip.cores == self.cores_per_chip && !chip.is_divided)
    }

    /// Returns the chip with the least room that has enough for the template.
    pub(super) fn with_room(&self, template: &ChipTemplate) -> Option<&FreeChip> {
        self.chips.iter().find(|chip| chip.has_room(template))
    }

    /// True if a pod with other chips than these waits for the device plugin.
    pub(super) fn has_other_unfinished(&self, chips: &PodChips<'_>) -> bool {
        self.unfinished.iter().any(|held| held.differs(chips))
    }
}

/// Counts the part that a pod has of a chip. A template that nobody knows takes all of it.
fn occupy(chip: &mut FreeChip, template: Option<&str>, cores_per_chip: i64) {
    chip.is_divided |= template.is_some();
    match template.and_then(ChipTemplate::named) {
        Some(template) => chip.take(template.cores, template.cpus, template.dvpp),
        None => chip.take(cores_per_chip, CPUS_PER_CHIP, Dvpp::Null),
    }
}

/// Reads the group of a part from its name, such as `Ascend310P-2c.1cpu-105-0_3`.
fn group_of(real: &str) -> Option<i64> {
    real.rsplit_once('_')?.1.parse().ok()
}
