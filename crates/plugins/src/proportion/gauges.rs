//! Metrics of the queues at the end of a session.
//! Specification: plugins-jobs-queues.md 5.4, core.md 9.2.

use vc_framework::{Amounts, Outbox, QueueAmount, QueueGauges, ReportLog, Sample, SessionView};
use vc_model::{Queue, QueueId};
use vc_resource::{Fractional, Resource};

use super::QueueAttributes;

/// The values that metrics show for a queue.
#[derive(Clone, PartialEq)]
pub(super) struct ProportionGauges {
    allocated: Resource,
    request: Resource,
    inqueue: Resource,
    /// `None` if the queue has no jobs and takes no part in the division.
    part: Option<QueueShareGauge>,
}

#[derive(Clone, PartialEq)]
struct QueueShareGauge {
    weight: i32,
    deserved: Fractional,
    share: f64,
    overused: bool,
}

/// Emits the metrics of a queue if they have changed.
pub(super) fn tell(
    view: SessionView<'_>,
    (id, queue): (QueueId, &Queue),
    attributes: &QueueAttributes,
    reported: &mut ReportLog<QueueId, ProportionGauges>,
    out: &mut Outbox,
) {
    let gauges = ProportionGauges::of(attributes, queue);
    if reported.record_if_new(id, gauges.clone()) {
        out.samples.push(Sample::Queue(Box::new(gauges.sample(view, queue))));
    }
}

impl ProportionGauges {
    fn of(attributes: &QueueAttributes, queue: &Queue) -> Self {
        let part = || QueueShareGauge {
            weight: queue.weight,
            deserved: attributes.deserved.clone(),
            share: attributes.share,
            overused: attributes.is_overused(),
        };
        Self {
            allocated: attributes.allocated.clone().without_zero_scalars(),
            request: attributes.at_open.request.clone(),
            inqueue: attributes.at_open.inqueue.clone(),
            part: (0 < attributes.at_open.n_jobs).then(part),
        }
    }

    fn sample(self, view: SessionView<'_>, queue: &Queue) -> QueueGauges {
        let of = |amount: &Fractional| Amounts::of(amount, &view.cluster.dims);
        let whole = [
            (QueueAmount::Allocated, &self.allocated),
            (QueueAmount::Request, &self.request),
            (QueueAmount::Inqueue, &self.inqueue),
        ];
        let mut amounts: Vec<(QueueAmount, Amounts)> =
            whole.map(|(kind, amount)| (kind, of(&amount.to_fractional()))).into();
        if let Some(part) = &self.part {
            amounts.push((QueueAmount::Deserved, of(&part.deserved)));
        }
        QueueGauges {
            queue: queue.name.clone(),
            amounts,
            weight: self.part.as_ref().map(|part| part.weight),
            share: self.part.as_ref().map(|part| part.share),
            overused: self.part.as_ref().map(|part| part.overused),
        }
    }
}
