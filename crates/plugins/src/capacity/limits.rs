//! What each queue may have, deserves and is guaranteed. Specification: plugins-jobs-queues.md
//! 6.2 for flat queues, 6.3 for the tree, D13, D15.

use std::collections::BTreeMap;

use vc_framework::{Ask, klog};
use vc_model::{Cluster, QueueId};
use vc_resource::{Absent, Dim, Resource};

use super::quota::{Limits, Quotas};
use super::shape::{Shape, Standing};
use crate::rules::capability;

/// Every queue is bounded by the cluster without the guarantees of the others.
pub(super) fn flat(ask: Ask<'_>, quotas: &mut Quotas) {
    let mut guaranteed = Resource::default();
    for &id in &ask.facts.queues {
        guaranteed.add(&ask.cluster.queues[id].guarantee);
    }
    let free = ask.cluster.total_amounts().excess(&guaranteed);
    for &id in &ask.facts.queues {
        let queue = &ask.cluster.queues[id];
        let capability = capability(queue);
        let mut real_capability = free.clone();
        real_capability.add(&queue.guarantee);
        if let Some(capability) = &capability {
            real_capability = real_capability.min_dim(capability, Absent::Infinity);
        }
        let lent = queue.deserved.min_dim(&real_capability, Absent::Infinity);
        let deserved = lent.max_dim(&queue.guarantee);
        let guarantee = queue.guarantee.clone();
        if let Some(quota) = quotas.get_mut(id) {
            quota.limits = Limits { capability, guarantee, real_capability, deserved };
        }
    }
}

/// From root down: a child has what its parent has where it says nothing, and is bounded by the
/// parent without the guarantees of its siblings. Root is not bounded by the cluster.
pub(super) fn tree(ask: Ask<'_>, shape: &Shape, quotas: &mut Quotas) {
    let cluster = ask.cluster;
    let usable = |id: &QueueId| shape.standing(*id) != Standing::Unusable;
    let mut queues: Vec<QueueId> = ask.facts.queues.iter().copied().filter(usable).collect();
    queues.sort_by_key(|&id| shape.path(id).len());
    let promised = promised(cluster, shape, &queues);
    let none = Promised::default();
    let promised_below = |id: Option<QueueId>| promised.get(&id).unwrap_or(&none);
    let root = root_limits(cluster, shape.root(), promised_below(shape.root()));
    for id in queues {
        let limits = if Some(id) == shape.root() {
            root.clone()
        } else {
            let parent = shape.path(id).get(1).copied();
            let above = parent.and_then(|parent| quotas.get(parent));
            let above = above.map_or(&root, |quota| &quota.limits);
            child_limits(cluster, id, above, &promised_below(parent).guarantee)
        };
        log_excess(cluster, id, &limits, promised_below(Some(id)));
        if let Some(quota) = quotas.get_mut(id) {
            quota.limits = limits;
        }
    }
}

/// Sums over the children of a queue.
#[derive(Default)]
struct Promised {
    guarantee: Resource,
    deserved: Resource,
}

/// By parent; under `None` those below a root that is not there.
fn promised(
    cluster: &Cluster,
    shape: &Shape,
    queues: &[QueueId],
) -> BTreeMap<Option<QueueId>, Promised> {
    let mut promised: BTreeMap<Option<QueueId>, Promised> = BTreeMap::new();
    for &id in queues.iter().filter(|&&id| Some(id) != shape.root()) {
        let queue = &cluster.queues[id];
        let sums = promised.entry(shape.path(id).get(1).copied()).or_default();
        sums.guarantee.add(&queue.guarantee);
        sums.deserved.add(&queue.deserved.max_dim(&queue.guarantee));
    }
    promised
}

/// What root does not list is unlimited (D15), for scalars that the cluster has. Its own guarantee
/// and deserved amount do not count.
fn root_limits(cluster: &Cluster, root: Option<QueueId>, below: &Promised) -> Limits {
    let mut capability = root.map(|id| cluster.queues[id].capability.clone()).unwrap_or_default();
    for dim in cluster.total_amounts().dims() {
        let is_listed = match dim {
            Dim::CPU | Dim::MEMORY => 0 < capability.get(dim),
            _ => capability.has(dim),
        };
        if !is_listed {
            capability.set(dim, i64::MAX);
        }
    }
    Limits {
        real_capability: capability.clone(),
        capability: Some(capability),
        guarantee: below.guarantee.clone(),
        deserved: below.deserved.clone(),
    }
}

fn child_limits(cluster: &Cluster, id: QueueId, above: &Limits, promised: &Resource) -> Limits {
    let queue = &cluster.queues[id];
    let mut capability = queue.capability.clone();
    let inherited = above.capability.as_ref().unwrap_or(&above.real_capability);
    for dim in inherited.dims() {
        let is_given = match dim {
            Dim::CPU | Dim::MEMORY => 0 < capability.get(dim),
            _ => capability.has(dim),
        };
        if !is_given {
            capability.set(dim, inherited.get(dim));
        }
    }
    let left = left_by_siblings(&above.real_capability, promised, &queue.guarantee);
    Limits {
        real_capability: left.min_dim(&capability, Absent::Infinity),
        capability: Some(capability),
        deserved: queue.deserved.max_dim(&queue.guarantee),
        guarantee: queue.guarantee.clone(),
    }
}

/// What is left of the parent's when all guarantees of its children are taken and one's own is
/// given back. Unlimited cpu and memory stay so.
fn left_by_siblings(above: &Resource, promised: &Resource, own: &Resource) -> Resource {
    let mut left = above.excess(promised);
    left.add(own);
    for dim in [Dim::CPU, Dim::MEMORY] {
        if above.get(dim) == i64::MAX {
            left.set(dim, i64::MAX);
        }
    }
    left
}

/// Children that were promised more than the parent has: said, never fatal.
fn log_excess(cluster: &Cluster, id: QueueId, limits: &Limits, below: &Promised) {
    let name = &cluster.queues[id].name;
    for (what, sum, own) in [
        ("deserved amounts", &below.deserved, &limits.deserved),
        ("guarantees", &below.guarantee, &limits.guarantee),
    ] {
        if !sum.less_equal(own, Absent::Zero) {
            klog!(4; "Queue <{name}>: the {what} of its children <{}> exceed its own <{}>",
                sum.text(&cluster.dims), own.text(&cluster.dims));
        }
    }
}
