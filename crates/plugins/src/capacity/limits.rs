//! Computes capability, deserved amount and guarantee of each queue.
//! Specification: plugins-jobs-queues.md 6.2 for flat queues, 6.3 for the tree, D13, D15.

use std::collections::BTreeMap;

use vc_framework::{SessionView, klog};
use vc_model::{Cluster, Queue, QueueId};
use vc_resource::{Absent, Dim, Resource};

use super::queue_tree::{QueueRole, QueueTree};
use super::quota::{CapacityQuotas, Limits, UNLIMITED};
use crate::guarantee::counted;
use crate::rules::capability;

/// Sets the limits of flat queues. Each is bounded by the cluster without the guarantees of the
/// others.
pub(super) fn flat(view: SessionView<'_>, quotas: &mut CapacityQuotas) {
    let total = view.cluster.total_amounts();
    let mut guaranteed = Resource::default();
    for &id in &view.info.queues {
        guaranteed.add(&counted(&view.cluster.queues[id], &total));
    }
    let free = total.excess(&guaranteed);
    for &id in &view.info.queues {
        let queue = &view.cluster.queues[id];
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

/// Sets the limits of a tree of queues, from root down. A child inherits what its spec leaves out.
/// It is bounded by its parent without the guarantees of its siblings. Root is not bounded by the
/// cluster.
pub(super) fn tree(view: SessionView<'_>, queue_tree: &QueueTree, quotas: &mut CapacityQuotas) {
    let cluster = view.cluster;
    let usable = |id: &QueueId| queue_tree.role(*id) != QueueRole::Unusable;
    let mut queues: Vec<QueueId> = view.info.queues.iter().copied().filter(usable).collect();
    queues.sort_by_key(|&id| queue_tree.path(id).len());
    let total = cluster.total_amounts();
    let promised = promised(cluster, queue_tree, &queues, &total);
    let none = ChildSums::default();
    let promised_below = |id: Option<QueueId>| promised.get(&id).unwrap_or(&none);
    let root = root_limits(cluster, &total, queue_tree.root(), promised_below(queue_tree.root()));
    for id in queues {
        let limits = if Some(id) == queue_tree.root() {
            root.clone()
        } else {
            let parent = queue_tree.path(id).get(1).copied();
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
struct ChildSums {
    guarantee: Resource,
    deserved: Resource,
}

/// Returns the sums over children, by parent. Key `None` has the children of a root that does not
/// exist.
fn promised(
    cluster: &Cluster,
    queue_tree: &QueueTree,
    queues: &[QueueId],
    total: &Resource,
) -> BTreeMap<Option<QueueId>, ChildSums> {
    let mut promised: BTreeMap<Option<QueueId>, ChildSums> = BTreeMap::new();
    for &id in queues.iter().filter(|&&id| Some(id) != queue_tree.root()) {
        let queue = &cluster.queues[id];
        let sums = promised.entry(queue_tree.path(id).get(1).copied()).or_default();
        let guarantee = counted(queue, total);
        sums.deserved.add(&queue.deserved.max_dim(&guarantee));
        sums.guarantee.add(&guarantee);
    }
    promised
}

/// Returns the limits of root. D15: dimensions that root does not list are unlimited, if the
/// cluster has them. Root's own guarantee and deserved amount do not count.
fn root_limits(
    cluster: &Cluster,
    total: &Resource,
    root: Option<QueueId>,
    below: &ChildSums,
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

/// Returns what is left of the parent's amount after the guarantees of all children but this one.
/// Unlimited dimensions stay unlimited.
fn left_by_siblings(above: &Resource, promised: &Resource, own: &Resource) -> Resource {
    let mut left = above.excess(promised);
    left.add(own);
    for dim in above.dims().filter(|&dim| above.exact(dim) == UNLIMITED) {
        left.set(dim, i64::MAX);
    }
    left
}

/// Logs that the children were promised more than the parent has. This is never an error.
fn log_excess(cluster: &Cluster, id: QueueId, limits: &Limits, below: &ChildSums) {
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
