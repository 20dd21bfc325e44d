//! Metrics of the queues at the end of a session.
//! Specification: plugins-jobs-queues.md 6.11, core.md 9.2.

use vc_framework::{Amounts, Outbox, QueueAmount, QueueGauges, ReportLog, Sample, SessionView};
use vc_model::{Queue, QueueId};
use vc_resource::{Dim, Fractional, Resource};

use super::quota::{CapacityQuota, CapacityQuotas};

/// The values that metrics show for a queue.
#[derive(Clone, PartialEq)]
pub(super) struct CapacityGauges {
    amounts: Vec<(QueueAmount, Resource)>,
    share: f64,
}

/// Emits the metrics of the queues that have changed.
pub(super) fn tell(
    view: SessionView<'_>,
    hierarchy: bool,
    quotas: &mut CapacityQuotas,
    reported: &mut ReportLog<QueueId, CapacityGauges>,
    out: &mut Outbox,
) {
    for &id in &view.info.queues {
        let Some(quota) = quotas.get_mut(id) else { continue };
        if !quota.record_if_new() {
            continue;
        }
        let queue = &view.cluster.queues[id];
        let gauges = CapacityGauges::of(quota, queue, hierarchy);
        if reported.record_if_new(id, gauges.clone()) {
            out.samples.push(Sample::Queue(Box::new(gauges.sample(view, queue))));
        }
    }
}

impl CapacityGauges {
    fn of(quota: &CapacityQuota, queue: &Queue, hierarchy: bool) -> Self {
        let limits = &quota.limits;
        // A flat queue without jobs shows the deserved amount of its spec.
        let deserved = match hierarchy || 0 < quota.at_open.n_jobs {
            true => &limits.deserved,
            false => &queue.deserved,
        };
        let mut amounts = vec![
            (QueueAmount::Allocated, quota.allocated.clone().without_zero_scalars()),
            (QueueAmount::Request, quota.at_open.request.clone()),
            (QueueAmount::Inqueue, quota.at_open.inqueue.clone()),
            (QueueAmount::Deserved, deserved.clone()),
            (QueueAmount::RealCapability, limits.real_capability.clone()),
        ];
        let capability = limits.capability.clone();
        amounts.extend(capability.map(|capability| (QueueAmount::Capability, capability)));
        Self { amounts, share: quota.share }
    }

    fn sample(self, view: SessionView<'_>, queue: &Queue) -> QueueGauges {
        let dims = &view.cluster.dims;
        let amounts = self.amounts.into_iter();
        let shown = |(kind, amount): (_, Resource)| (kind, Amounts::of(&readable(&amount), dims));
        QueueGauges {
            queue: queue.name.clone(),
            amounts: amounts.map(shown).collect(),
            weight: None,
            share: Some(self.share),
            overused: Some(1.0 < self.share),
        }
    }
}

/// Replaces unlimited cpu and memory by the largest number, as Volcano shows them.
fn readable(amount: &Resource) -> Fractional {
    let mut shown = amount.to_fractional();
    for dim in [Dim::CPU, Dim::MEMORY] {
        if amount.get(dim) == i64::MAX {
            shown.set(dim, f64::MAX);
        }
    }
    shown
}
