//! What the containers of a pod request of vGPUs, and which GPUs its annotations allow.
//! Specification: plugins-nodes.md 16.5 ("Request", "Pod annotations").

use vc_model::{ContainerDemand, DeviceDemand};

use super::super::family::items;
use super::VgpuConfig;
use super::register::VgpuCard;

const MODE: &str = "volcano.sh/vgpu-mode";
const USE_UUID: &str = "volcano.sh/vgpu-use-gpuuuid";
const AVOID_UUID: &str = "volcano.sh/vgpu-nouse-gpuuuid";
const USE_MODEL: &str = "nvidia.com/use-gputype";
const AVOID_MODEL: &str = "nvidia.com/nouse-gputype";
/// Every model of this kind of devices contains the name of the vendor.
const VENDOR: &str = "NVIDIA";
const WHOLE: i64 = 100;

/// What a container requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// Number of different GPUs.
    pub(super) number: i64,
    pub(super) memory: RequestedMemory,
    /// Percent of the cores of each GPU.
    pub(super) cores: i64,
}

/// Memory of each GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestedMemory {
    /// An amount, in the unit of the device plugin.
    Amount(i64),
    /// A part of the memory of the GPU.
    Percent(i64),
}

impl Request {
    /// Returns the request of a container. Returns `None` if it requests no vGPU. An extended
    /// resource has equal requests and limits, so one of them is enough.
    pub(super) fn of(container: &ContainerDemand, config: &VgpuConfig) -> Option<Self> {
        let amount = |name: &str| container.get(name).copied();
        let memory = amount(&config.memory);
        let number = amount(&config.number).or(memory.map(|_| 1))?;
        let cores = amount(&config.cores).unwrap_or(0);
        let memory = match (amount(&config.percentage), memory.filter(|&memory| memory != 0)) {
            (Some(percent), _) => RequestedMemory::Percent(percent),
            (None, Some(memory)) => RequestedMemory::Amount(memory),
            (None, None) => RequestedMemory::Percent(WHOLE),
        };
        (0 < number).then_some(Self { number, memory, cores })
    }

    /// Returns the memory that the request takes of this card.
    pub(super) fn memory_of(&self, card: &VgpuCard<'_>) -> i64 {
        match self.memory {
            RequestedMemory::Amount(memory) => memory,
            RequestedMemory::Percent(WHOLE) => card.memory,
            RequestedMemory::Percent(percent) => card.memory.saturating_mul(percent) / WHOLE,
        }
    }

    /// True if the request wants the cores of a card for itself.
    pub(super) fn is_exclusive(&self) -> bool {
        self.cores == WHOLE
    }
}

/// The GPUs that the annotations of a pod allow.
pub(super) struct AllowedCards<'a> {
    /// The sharing mode. `None` if every mode is allowed.
    pub(super) mode: Option<&'a str>,
    use_uuids: Vec<&'a str>,
    avoid_uuids: Vec<&'a str>,
    use_models: Vec<String>,
    avoid_models: Vec<String>,
    demand: &'a DeviceDemand,
}

impl<'a> AllowedCards<'a> {
    pub(super) fn of(demand: &'a DeviceDemand) -> Self {
        let upper = |key| items(demand, key).map(str::to_uppercase).collect();
        Self {
            mode: demand.annotations.get(MODE).map(|mode| &**mode),
            use_uuids: items(demand, USE_UUID).collect(),
            avoid_uuids: items(demand, AVOID_UUID).collect(),
            use_models: upper(USE_MODEL),
            avoid_models: upper(AVOID_MODEL),
            demand,
        }
    }

    /// True if the lists of UUIDs allow the card. The list of cards to avoid wins.
    pub(super) fn has_uuid(&self, card: &VgpuCard<'_>) -> bool {
        let is_wanted = self.use_uuids.is_empty() || self.use_uuids.contains(&card.uuid);
        is_wanted && !self.avoid_uuids.contains(&card.uuid)
    }

    /// Returns the annotations with UUIDs, for messages. Returns `None` if no UUID is listed.
    pub(super) fn uuid_constraints(&self) -> Option<String> {
        let lists = [(USE_UUID, &self.use_uuids), (AVOID_UUID, &self.avoid_uuids)];
        let shown = lists.iter().filter(|(_, list)| !list.is_empty());
        let shown = shown.map(|(key, _)| format!("{key}=\"{}\"", self.demand.annotations[*key]));
        let shown: Vec<String> = shown.collect();
        (!shown.is_empty()).then(|| shown.join(", "))
    }

    /// True if the lists of models allow the card. The list of models to use wins.
    pub(super) fn has_model(&self, card: &VgpuCard<'_>) -> bool {
        let model = card.model.to_uppercase();
        let is_in = |list: &[String]| list.iter().any(|part| model.contains(part.as_str()));
        card.model.contains(VENDOR)
            && match self.use_models.is_empty() {
                true => !is_in(&self.avoid_models),
                false => is_in(&self.use_models),
            }
    }
}
