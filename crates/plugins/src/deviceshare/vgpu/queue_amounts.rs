//! By how much the vGPUs of pods differ from what the pods request, for the status of queues.
//! Specification: plugins-nodes.md 16.3 ("Queue accounting").

use vc_model::{JobId, Task};
use vc_resource::Resource;

use super::super::assigned;
use super::super::family::DeviceNode;
use super::{ASSIGNED, UsedCard, Vgpu};

/// Amounts of resources are in thousandths.
const MILLI: i64 = 1_000;

/// Returns the differences, by job. Pods without devices of the node have none.
pub(super) fn corrections(
    kind: &Vgpu,
    cards: &[UsedCard<'_>],
    at: DeviceNode<'_>,
) -> Vec<(JobId, Resource)> {
    let holders = at.holders(ASSIGNED).filter(|(pod, _)| pod.status.is_allocated());
    let of_pod =
        |pod: &Task, devices: &str| Some((pod.job?, correction(kind, cards, at, (pod, devices))?));
    holders.filter_map(|(pod, devices)| of_pod(pod, devices)).collect()
}

/// Returns the difference of a pod. Returns `None` if there is none.
fn correction(
    kind: &Vgpu,
    cards: &[UsedCard<'_>],
    at: DeviceNode<'_>,
    (pod, devices): (&Task, &str),
) -> Option<Resource> {
    let is_of_node =
        |share: &assigned::Assigned<'_>| cards.iter().any(|it| it.card.uuid == share.uuid);
    let mut sums: Option<[i64; 2]> = None;
    for share in assigned::decode(devices).filter(is_of_node) {
        let [memory, cores] = sums.get_or_insert_default();
        *memory = memory.saturating_add(share.memory);
        *cores = cores.saturating_add(share.cores);
    }
    let [memory, cores] = sums?;
    let request = &at.cluster.classes[pod.class].request;
    let mut difference = Resource::default();
    for (name, amount) in [(&kind.config.memory, memory), (&kind.config.cores, cores)] {
        let Some(dim) = at.cluster.dims.get(name) else { continue };
        let amount = amount.saturating_mul(MILLI).saturating_sub(request.get(dim));
        if amount != 0 {
            difference.set(dim, amount);
        }
    }
    (difference != Resource::default()).then_some(difference)
}
