//! Numbers of the queues for metrics, as they stand when the session closes.
//! Specification: plugins-jobs-queues.md 6.11, core.md 9.2.

use vc_framework::{Amounts, Ask, Latest, Outbox, QueueAmount, QueueGauges, Sample};
use vc_model::{Queue, QueueId};
use vc_resource::{Dim, Fractional, Resource};

use super::quota::{Quota, Quotas};

/// What metrics show of a queue.
#[derive(Clone, PartialEq)]
pub(super) struct Gauges {
    amounts: Vec<(QueueAmount, Resource)>,
    share: f64,
}

/// Hands out the numbers of the queues that have changed.
pub(super) fn tell(
    ask: Ask<'_>,
    hierarchy: bool,
    quotas: &mut Quotas,
    told: &mut Latest<QueueId, Gauges>,
    out: &mut Outbox,
) {
    for &id in &ask.facts.queues {
        let Some(quota) = quotas.get_mut(id) else { continue };
        if !quota.is_news() {
            continue;
        }
        let queue = &ask.cluster.queues[id];
        let gauges = Gauges::of(quota, queue, hierarchy);
        if told.is_news(id, gauges.clone()) {
            out.samples.push(Sample::Queue(Box::new(gauges.sample(ask, queue))));
        }
    }
}

impl Gauges {
    fn of(quota: &Quota, queue: &Queue, hierarchy: bool) -> Self {
        let limits = &quota.limits;
        // A flat queue without jobs shows what its spec says.
        let deserved = match hierarchy || 0 < quota.at_open.n_jobs {
            true => &limits.deserved,
            false => &queue.deserved,
        };
        let mut amounts = vec![
            (QueueAmount::Allocated, quota.allocated.clone()),
            (QueueAmount::Request, quota.at_open.request.clone()),
            (QueueAmount::Inqueue, quota.at_open.inqueue.clone()),
            (QueueAmount::Deserved, deserved.clone()),
            (QueueAmount::RealCapability, limits.real_capability.clone()),
        ];
        let capability = limits.capability.clone();
        amounts.extend(capability.map(|capability| (QueueAmount::Capability, capability)));
        Self { amounts, share: quota.share }
    }

    fn sample(self, ask: Ask<'_>, queue: &Queue) -> QueueGauges {
        let dims = &ask.cluster.dims;
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

/// Unlimited cpu and memory show as the largest number, as they do in Volcano.
fn readable(amount: &Resource) -> Fractional {
    let mut shown = amount.to_fractional();
    for dim in [Dim::CPU, Dim::MEMORY] {
        if amount.get(dim) == i64::MAX {
            shown.set(dim, f64::MAX);
        }
    }
    shown
}
