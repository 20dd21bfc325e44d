//! Numbers of the queues for metrics, as they stand when the session closes.
//! Specification: plugins-jobs-queues.md 5.4, core.md 9.2.

use vc_framework::{Amounts, Ask, Latest, Outbox, QueueAmount, QueueGauges, Sample};
use vc_model::{Queue, QueueId};
use vc_resource::{Fractional, Resource};

use super::Attributes;

/// What metrics show of a queue.
#[derive(Clone, PartialEq)]
pub(super) struct Gauges {
    allocated: Resource,
    request: Resource,
    inqueue: Resource,
    /// `None`: it has no jobs, and takes no part in the division.
    part: Option<Part>,
    overused: Option<bool>,
}

#[derive(Clone, PartialEq)]
struct Part {
    weight: i32,
    deserved: Fractional,
    share: f64,
}

/// Hands out the numbers of a queue if they are others than before.
pub(super) fn tell(
    ask: Ask<'_>,
    (id, queue): (QueueId, &Queue),
    attributes: &mut Attributes,
    session: u64,
    told: &mut Latest<QueueId, Gauges>,
    out: &mut Outbox,
) {
    let gauges = Gauges::of(attributes, queue, session);
    if told.is_news(id, gauges.clone()) {
        out.samples.push(Sample::Queue(Box::new(gauges.sample(ask, queue))));
    }
}

impl Gauges {
    fn of(attributes: &mut Attributes, queue: &Queue, session: u64) -> Self {
        let part = || Part {
            weight: queue.weight,
            deserved: attributes.deserved.clone(),
            share: attributes.share,
        };
        Self {
            allocated: attributes.allocated.clone(),
            request: attributes.at_open.request.clone(),
            inqueue: attributes.at_open.inqueue.clone(),
            part: (0 < attributes.at_open.n_jobs).then(part),
            overused: attributes.overused_in(session),
        }
    }

    fn sample(self, ask: Ask<'_>, queue: &Queue) -> QueueGauges {
        let of = |amount: &Fractional| Amounts::of(amount, &ask.cluster.dims);
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
            overused: self.overused,
        }
    }
}
