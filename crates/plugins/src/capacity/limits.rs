//! What each queue may have, deserves and is guaranteed. Specification: plugins-jobs-queues.md
//! 6.2 for flat queues, 6.3 for the tree, D13, D15.

use std::collections::BTreeMap;

use vc_framework::{Ask, klog};
use vc_model::{Cluster, Queue, QueueId};
use vc_resource::{Absent, Dim, Resource};

use super::quota::{Limits, Quotas, UNLIMITED};
use super::shape::{Shape, Standing};
use crate::guarantee::counted;
use crate::rules::capability;

/// Every queue is bounded by the cluster without the guarantees of the others.
pub(super) fn flat(ask: Ask<'_>, quotas: &mut Quotas) {
    let total = ask.cluster.total_amounts();
    let mut guaranteed = Resource::default();
    for &id in &ask.facts.queues {
        guaranteed.add(&counted(&ask.cluster.queues[id], &total));
    }
    let free = total.excess(&guaranteed);
    for &id in &ask.facts.queues {
        let queue = &ask.cluster.queues[id];
        let (capability, guarantee) = (capability(queue), counted(queue, &total));
        let mut real_capability = free.clone();
        real_capability.add(&guarantee);
        if let Some(capability) = &capability {
            real_capability = real_capability.min_dim(capability, Absent::Infinity);
        }
        let lent = queue.deserved.min_dim(&real_capability, Absent::Infinity);
        let deserved = lent.max_dim(&guarantee);
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
    let total = cluster.total_amounts();
    let promised = promised(cluster, shape, &queues, &total);
    let none = Promised::default();
    let promised_below = |id: Option<QueueId>| promised.get(&id).unwrap_or(&none);
    let root = root_limits(cluster, &total, shape.root(), promised_below(shape.root()));
    for id in queues {
        let limits = if Some(id) == shape.root() {
            root.clone()
        } else {
            let parent = shape.path(id).get(1).copied();
            let above = parent.and_then(|parent| quotas.get(parent));
            let above = above.map_or(&root, |quota| &quota.limits);
            child_limits(&cluster.queues[id], &total, above, &promised_below(parent).guarantee)
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
    total: &Resource,
) -> BTreeMap<Option<QueueId>, Promised> {
    let mut promised: BTreeMap<Option<QueueId>, Promised> = BTreeMap::new();
    for &id in queues.iter().filter(|&&id| Some(id) != shape.root()) {
        let queue = &cluster.queues[id];
        let sums = promised.entry(shape.path(id).get(1).copied()).or_default();
        let guarantee = counted(queue, total);
        sums.deserved.add(&queue.deserved.max_dim(&guarantee));
        sums.guarantee.add(&guarantee);
    }
    promised
}

/// What root does not list is unlimited (D15), for scalars that the cluster has. Its own guarantee
/// and deserved amount do not count.
fn root_limits(
    cluster: &Cluster,
    total: &Resource,
    root: Option<QueueId>,
    below: &Promised,
) -> Limits {
    let mut capability = root.map(|id| cluster.queues[id].capability.clone()).unwrap_or_default();
    for dim in total.dims() {
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

fn child_limits(queue: &Queue, total: &Resource, above: &Limits, promised: &Resource) -> Limits {
    let guarantee = counted(queue, total);
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
    let left = left_by_siblings(&above.real_capability, promised, &guarantee);
    Limits {
        real_capability: left.min_dim(&capability, Absent::Infinity),
        capability: Some(capability),
        deserved: queue.deserved.max_dim(&guarantee),
        guarantee,
    }
}

/// What is left of the parent's when all guarantees of its children are taken and one's own is
/// given back. What is unlimited stays so.
fn left_by_siblings(above: &Resource, promised: &Resource, own: &Resource) -> Resource {
    let mut left = above.excess(promised);
    left.add(own);
    for dim in above.dims().filter(|&dim| above.exact(dim) == UNLIMITED) {
        left.set(dim, i64::MAX);
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
