//! Effective guarantees of queues: `spec.guarantee.resource`, at most what the cluster has. A
//! guarantee that is cut gives a warning.
//! Specification: plugins-jobs-queues.md 5.1, D39.

use std::collections::BTreeSet;
use std::sync::Arc;

use vc_framework::{About, Effect, Outbox, SessionView};
use vc_model::{Queue, QueueId};
use vc_resource::{Dim, Resource};

const REASON: &str = "GuaranteeExceedsCluster";

/// Returns the effective `spec.guarantee.resource`: at least 0 and at most what the cluster has.
pub(crate) fn counted(queue: &Queue, total: &Resource) -> Resource {
    let mut counted = queue.guarantee.clone();
    for dim in queue.guarantee.dims() {
        let most = total.get(dim).max(0);
        counted.set(dim, queue.guarantee.get(dim).clamp(0, most));
    }
    counted
}

/// Cut guarantees as queue name, dimension and guarantee.
pub(crate) type KnownGuarantees = BTreeSet<(Arc<str>, Dim, i64)>;

/// The guarantees that are cut, so that each is reported once.
#[derive(Default)]
pub(crate) struct CutGuarantees {
    /// What is reported.
    pub(crate) known: KnownGuarantees,
    due: Vec<(QueueId, String)>,
}

impl CutGuarantees {
    /// Finds guarantees that exceed the cluster or are negative. The caller must call it when
    /// queues or nodes have changed. A cluster without nodes gives no warning, because every
    /// guarantee would exceed it.
    pub(crate) fn renew(&mut self, view: SessionView<'_>, total: &Resource) {
        if view.info.nodes.is_empty() {
            return;
        }
        let mut found = BTreeSet::new();
        for &id in &view.info.queues {
            let queue = &view.cluster.queues[id];
            let most = counted(queue, total);
            let guarantee = &queue.guarantee;
            for dim in guarantee.dims().filter(|&dim| guarantee.get(dim) != most.get(dim)) {
                let key = (queue.name.clone(), dim, guarantee.get(dim));
                if !self.known.contains(&key) {
                    self.due.push((id, text(view, queue, &most, dim)));
                }
                found.insert(key);
            }
        }
        self.known = found;
    }

    /// Reports newly cut guarantees, in the log and as an event of the queue.
    pub(crate) fn report(&mut self, view: SessionView<'_>, out: &mut Outbox) {
        for (id, message) in self.due.drain(..) {
            let queue = &view.cluster.queues[id];
            let about = About::Queue { name: queue.name.clone(), uid: queue.uid.clone() };
            out.warnings.push(format!("queue {}: {message}", queue.name));
            let (reason, message) = (REASON, message.into());
            out.effects.push(Effect::Event { about, warning: true, reason, message });
        }
    }
}

fn text(view: SessionView<'_>, queue: &Queue, most: &Resource, dim: Dim) -> String {
    let dims = &view.cluster.dims;
    let name = dims.name(dim);
    let amount = |of: &Resource| {
        let mut amounts = of.to_quantities(dims).into_iter();
        amounts.find(|(other, _)| other == name).map_or("0".to_owned(), |(_, text)| text)
    };
    let (given, counts) = (amount(&queue.guarantee), amount(most));
    match queue.guarantee.get(dim) < 0 {
        true => format!("spec.guarantee.resource.{name} is {given}, below zero: it counts as 0"),
        false => format!(
            "spec.guarantee.resource.{name} is {given}, the cluster has {counts}: it counts as \
             {counts}. Lower the guarantee, or add nodes"
        ),
    }
}

#[cfg(test)]
mod tests {
    use vc_model::fixture;

    use super::*;

    #[test]
    fn a_guarantee_counts_from_nothing_to_what_the_cluster_has() {
        for (given, expected) in [
            ("guarantee.cpu=2", "cpu 2000.00, memory 0.00"),
            ("guarantee.cpu=9", "cpu 4000.00, memory 0.00"),
            ("guarantee.cpu=-9 guarantee.memory=8Ei", "cpu 0.00, memory 8.00"),
            ("guarantee.gpu=1", "cpu 0.00, memory 0.00, nvidia.com/gpu 0.00"),
        ] {
            let cluster = fixture::cluster(&format!("node n cpu=4 memory=8\n queue q {given}"));
            let queue = &cluster.queues[fixture::queue(&cluster, "q")];
            let found = counted(queue, &cluster.total_amounts());
            assert_eq!(found.text(&cluster.dims), expected, "{given}");
        }
    }
}
