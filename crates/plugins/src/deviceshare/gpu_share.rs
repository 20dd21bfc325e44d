//! Cards by memory, or as a whole by number, without a device plugin that registers them: the cards of
//! a node are what its capacity says. Specification: plugins-nodes.md 16.4.

use vc_model::{Code, ContainerDemand, DeviceDemand, Node};

use super::family::{
    Annotation, Choice, DeviceFamily, DeviceNode, DevicePart, NodeProblem, Query, Refusal,
};
use super::locks;

const MEMORY: &str = "volcano.sh/gpu-memory";
const NUMBER: &str = "volcano.sh/gpu-number";
const UNHEALTHY: &str = "volcano.sh/gpu-unhealthy-ids";
const INDEX: &str = "volcano.sh/gpu-index";
const NANOS_PER_MICRO: i128 = 1_000;
/// Amounts of nodes are in thousandths.
const MILLI: i64 = 1_000;
/// Cards of a node beyond this number are not used.
const MOST_CARDS: i64 = 1_024;

/// The kind of devices that `deviceshare.GPUSharingEnable` or `deviceshare.GPUNumberEnable` switches
/// on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GpuShare {
    /// A pod gets memory of one card.
    ByMemory,
    /// A pod gets whole cards.
    ByNumber,
}

/// A card with what pods use of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct GpuCard {
    id: i64,
    free_memory: i64,
    is_idle: bool,
}

impl GpuShare {
    /// Returns what the pod requests: memory or a number of cards.
    fn request(self, demand: &DeviceDemand) -> i64 {
        match self {
            Self::ByMemory => amount(demand, MEMORY),
            Self::ByNumber => amount(demand, NUMBER),
        }
    }

    fn refusal(self, node: &Node, code: Code) -> Refusal {
        let text = match self {
            Self::ByMemory => "GpuShare no enough gpu memory on node",
            Self::ByNumber => "GpuNumber no enough gpu number on node",
        };
        Refusal { code, reason: format!("{text} {}", node.name) }
    }

    /// Returns the ids of the cards that the pod gets, the lowest ones. Returns `None` if too few
    /// cards fit.
    fn ids(self, cards: &[GpuCard], request: i64) -> Option<Vec<i64>> {
        let number = match self {
            Self::ByMemory => 1,
            Self::ByNumber => usize::try_from(request).ok()?,
        };
        let fits = |card: &&GpuCard| match self {
            Self::ByMemory => request <= card.free_memory,
            Self::ByNumber => card.is_idle,
        };
        let ids: Vec<i64> = cards.iter().filter(fits).map(|card| card.id).take(number).collect();
        (ids.len() == number).then_some(ids)
    }
}

impl DeviceFamily for GpuShare {
    fn is_requested(&self, demand: &DeviceDemand) -> bool {
        0 < self.request(demand)
    }

    fn choose(&self, query: Query<'_>) -> Result<Choice, Refusal> {
        let Some(demand) = query.demand() else { return Ok(Choice::default()) };
        let (node, request) = (query.at.node(), self.request(demand));
        let cards = cards(query.at).ok_or_else(|| self.refusal(node, Code::Unresolvable))?;
        let ids = self.ids(&cards, request);
        let ids = ids.ok_or_else(|| self.refusal(node, Code::Unschedulable))?;
        let memory = if *self == Self::ByMemory { request } else { 0 };
        let share = |id: i64| DevicePart { device: id.to_string(), memory, cores: 0 };
        let containers = vec![ids.into_iter().map(share).collect()];
        Ok(Choice { containers, ..Choice::default() })
    }

    fn annotations(&self, choice: &Choice, _node: &Node, now_micros: i64) -> Vec<Annotation> {
        let ids = choice.containers.iter().flatten().map(|share| share.device.as_str());
        let ids: Vec<&str> = ids.collect();
        let nanos = i128::from(now_micros) * NANOS_PER_MICRO;
        vec![
            (INDEX.into(), ids.join(",").into()),
            ("volcano.sh/predicate-time".into(), nanos.to_string().into()),
        ]
    }

    fn lock(&self) -> Option<&'static str> {
        (*self == Self::ByMemory).then_some(locks::GPU)
    }

    fn problem(&self, node: &Node) -> Option<NodeProblem> {
        let problem = format!("{}, its devices are not used", unhealthy(node).err()?);
        let remedy = "write the numbers of the cards with commas, such as 0,3";
        Some(NodeProblem { annotation: UNHEALTHY.into(), problem, remedy })
    }
}

/// Returns the amount that the pod requests: that of its largest init container, or the sum of its
/// containers if that is more.
fn amount(demand: &DeviceDemand, name: &str) -> i64 {
    let of = |container: &ContainerDemand| container.get(name).copied().unwrap_or(0);
    let sum = demand.containers.iter().map(of).fold(0, i64::saturating_add);
    demand.init_containers.iter().map(of).fold(sum, i64::max)
}

/// Returns the cards of the node that may take pods, by id. Returns `None` if it has no cards.
fn cards(at: DeviceNode<'_>) -> Option<Vec<GpuCard>> {
    let node = at.node();
    let capacity = |name: &str| {
        let dim = at.cluster.dims.get(name)?;
        Some(node.capacity.get(dim) / MILLI).filter(|&amount| 0 < amount)
    };
    let (memory, number) = (capacity(MEMORY)?, capacity(NUMBER)?);
    let unhealthy = unhealthy(node).ok()?;
    let new = |id| GpuCard { id, free_memory: memory / number, is_idle: true };
    let ids = (0..number.min(MOST_CARDS)).filter(|id| !unhealthy.contains(id));
    let mut cards: Vec<GpuCard> = ids.map(new).collect();
    for (pod, ids) in at.holders(INDEX) {
        let class = &at.cluster.classes[pod.class];
        let used = class.device_demand.as_ref().map_or(0, |demand| amount(demand, MEMORY));
        for id in ids.split(',').filter_map(|id| id.trim().parse::<i64>().ok()) {
            for card in cards.iter_mut().filter(|card| card.id == id) {
                card.free_memory = card.free_memory.saturating_sub(used).max(0);
                card.is_idle = false;
            }
        }
    }
    Some(cards)
}

/// Returns the ids of the cards that take no pods.
///
/// # Errors
/// An id is no number: the node then has no cards.
fn unhealthy(node: &Node) -> Result<Vec<i64>, String> {
    let text = node.devices.as_ref().and_then(|devices| devices.get(UNHEALTHY));
    let items = text.map_or("", |text| &**text).split(',').map(str::trim);
    let id = |item: &str| item.parse().map_err(|_| format!("not the number of a card: {item:?}"));
    items.filter(|item| !item.is_empty()).map(id).collect()
}
