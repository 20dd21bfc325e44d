//! What queues are guaranteed: `spec.guarantee.resource`, at most what the cluster has, with a
//! warning where that cuts it. Specification: plugins-jobs-queues.md 5.1, D39.

use std::collections::BTreeSet;
use std::sync::Arc;

use vc_framework::{About, Ask, Effect, Outbox};
use vc_model::{Queue, QueueId};
use vc_resource::{Dim, Resource};

const REASON: &str = "GuaranteeExceedsCluster";

/// `spec.guarantee.resource` as it counts: at least 0 and at most what the cluster has.
pub(crate) fn counted(queue: &Queue, total: &Resource) -> Resource {
    let mut counted = queue.guarantee.clone();
    for dim in queue.guarantee.dims() {
        let most = total.get(dim).max(0);
        counted.set(dim, queue.guarantee.get(dim).clamp(0, most));
    }
    counted
}

/// The guarantees that are cut, so that each is reported once.
#[derive(Default)]
pub(crate) struct CutGuarantees {
    /// Name of the queue, dimension and guarantee.
    known: BTreeSet<(Arc<str>, Dim, i64)>,
    due: Vec<(QueueId, String)>,
}

impl CutGuarantees {
    /// Compares the guarantees of all queues with the cluster. The caller does so when queues or
    /// nodes have changed. A cluster without nodes gives no warning: it would cut every guarantee.
    pub(crate) fn renew(&mut self, ask: Ask<'_>, total: &Resource) {
        if ask.facts.nodes.is_empty() {
            return;
        }
        let mut found = BTreeSet::new();
        for &id in &ask.facts.queues {
            let queue = &ask.cluster.queues[id];
            let most = counted(queue, total);
            let guarantee = &queue.guarantee;
            for dim in guarantee.dims().filter(|&dim| guarantee.get(dim) != most.get(dim)) {
                let key = (queue.name.clone(), dim, guarantee.get(dim));
                if !self.known.contains(&key) {
                    self.due.push((id, text(ask, queue, &most, dim)));
                }
                found.insert(key);
            }
        }
        self.known = found;
    }

    /// Reports those that are new, in the log and on the queue.
    pub(crate) fn report(&mut self, ask: Ask<'_>, out: &mut Outbox) {
        for (id, message) in self.due.drain(..) {
            let queue = &ask.cluster.queues[id];
            let about = About::Queue { name: queue.name.clone(), uid: queue.uid.clone() };
            out.warnings.push(format!("queue {}: {message}", queue.name));
            let (reason, message) = (REASON, message.into());
            out.effects.push(Effect::Event { about, warning: true, reason, message });
        }
    }
}

fn text(ask: Ask<'_>, queue: &Queue, most: &Resource, dim: Dim) -> String {
    let dims = &ask.cluster.dims;
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
