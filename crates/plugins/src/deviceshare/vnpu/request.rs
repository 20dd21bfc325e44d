//! What the containers of a pod request of NPUs, and which NPUs its annotations allow. Specification:
//! plugins-nodes.md 16.9.

use vc_model::{Code, ContainerDemand, DeviceDemand};

use super::super::family::{Refusal, items};
use super::chip::VnpuChip;
use super::refusal;
use super::register::Npu;

const MODE: &str = "huawei.com/vnpu-mode";

/// What a container requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NpuRequest {
    /// Number of different NPUs.
    pub(super) number: i64,
    /// Memory of each NPU in MiB. `None` for all of its memory.
    memory: Option<i64>,
    /// Cores of each NPU.
    pub(super) cores: i64,
}

impl NpuRequest {
    /// Returns the request of a container. Returns `None` if it requests no NPU of this kind.
    pub(super) fn of(container: &ContainerDemand, chip: &VnpuChip) -> Option<Self> {
        let amount = |name: &str| container.get(name).copied();
        let memory = amount(&chip.memory);
        let number = amount(&chip.number).or(memory.map(|_| 1))?;
        let cores = amount(&chip.cores).unwrap_or(0);
        (0 < number).then_some(Self { number, memory: memory.filter(|&memory| 0 < memory), cores })
    }

    /// Returns the request with the memory of a template, unless the pod gets a part of any size.
    ///
    /// # Errors
    /// No NPU has so much memory, or parts of several NPUs are requested.
    pub(super) fn raised(self, chip: &VnpuChip, is_soft: bool) -> Result<Self, Refusal> {
        let Some(memory) = self.memory.filter(|_| !is_soft) else { return Ok(self) };
        let Some(raised) = chip.raised(memory) else {
            let most = format!("{memory} MiB are more than an NPU has, {}", chip.capacity);
            return Err(refusal(Code::Unresolvable, &most));
        };
        if 1 < self.number && raised != chip.allocatable {
            let reason = "vNPU does not support partial memory allocation when requesting multiple \
                devices";
            return Err(Refusal { code: Code::Error, reason: reason.to_owned() });
        }
        Ok(Self { memory: Some(raised), ..self })
    }

    /// Returns the memory that the request takes of this NPU.
    pub(super) fn memory_of(&self, npu: &Npu) -> i64 {
        self.memory.unwrap_or(npu.memory)
    }
}

/// What the annotations of a pod say about its NPUs.
pub(super) struct Wishes<'a> {
    /// True if the pod gets parts of any size.
    pub(super) is_soft: bool,
    use_uuids: Vec<&'a str>,
    avoid_uuids: Vec<&'a str>,
}

impl<'a> Wishes<'a> {
    pub(super) fn of(demand: &'a DeviceDemand, word: &str) -> Self {
        let list = |prefix: &str| items(demand, &format!("hami.io/{prefix}-{word}-uuid")).collect();
        Self {
            is_soft: demand.annotations.get(MODE).is_some_and(|mode| &**mode == "hami-core"),
            use_uuids: list("use"),
            avoid_uuids: list("no-use"),
        }
    }

    /// True if the lists of UUIDs allow the NPU. The list of NPUs to avoid wins.
    pub(super) fn has_uuid(&self, id: &str) -> bool {
        let is_wanted = self.use_uuids.is_empty() || self.use_uuids.contains(&id);
        is_wanted && !self.avoid_uuids.contains(&id)
    }
}
