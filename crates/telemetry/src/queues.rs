//! Series per queue: they vanish with the Queue. Specification: core.md 9.2.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_engine::{Amounts, PendingPods, PendingReason, QueueAmount, QueueGauges, Sample};

use crate::text;

/// In the order of their names.
const AMOUNTS: [(QueueAmount, &str); 6] = [
    (QueueAmount::Allocated, "volcano_queue_allocated"),
    (QueueAmount::Capability, "volcano_queue_capacity"),
    (QueueAmount::Deserved, "volcano_queue_deserved"),
    (QueueAmount::Inqueue, "volcano_queue_inqueue"),
    (QueueAmount::RealCapability, "volcano_queue_real_capacity"),
    (QueueAmount::Request, "volcano_queue_request"),
];

/// The queues by name.
#[derive(Debug, Default)]
pub(crate) struct QueueSeriesTable {
    by_name: BTreeMap<Arc<str>, QueueSeries>,
    /// Once told, 0 when nobody waits any more: an alert must see that it is over.
    pending: BTreeMap<(Arc<str>, PendingReason), u32>,
}

#[derive(Debug, Default)]
struct QueueSeries {
    amounts: BTreeMap<QueueAmount, ShownGauges>,
    /// Scalars that were ever told, in whichever amounts.
    scalars: BTreeSet<String>,
    share: Option<f64>,
    weight: Option<f64>,
    overused: Option<f64>,
}

#[derive(Debug)]
struct ShownGauges {
    cpu_milli: f64,
    memory_bytes: f64,
    scalars: BTreeMap<String, f64>,
}

impl QueueSeriesTable {
    pub(crate) fn take(&mut self, sample: &Sample) {
        match sample {
            Sample::Queue(gauges) => {
                self.by_name.entry(gauges.queue.clone()).or_default().update(gauges);
            }
            Sample::QueueGone(name) => {
                self.by_name.remove(name);
                self.pending.retain(|(queue, _), _| queue != name);
            }
            Sample::PendingPods(pods) => self.update_pending(pods),
            _ => {}
        }
    }

    fn update_pending(&mut self, pods: &[PendingPods]) {
        self.pending.values_mut().for_each(|n_pods| *n_pods = 0);
        for entry in pods {
            self.pending.insert((entry.queue.clone(), entry.reason), entry.n_pods);
        }
    }

    pub(crate) fn write(&self, out: &mut String) {
        for (amount, name) in AMOUNTS {
            let shown = |queue: &QueueSeries| queue.amounts.contains_key(&amount);
            if !self.by_name.values().any(shown) {
                continue;
            }
            let of = |value: fn(&ShownGauges) -> f64| {
                move |queue: &QueueSeries| queue.amounts.get(&amount).map(value)
            };
            self.write_one(out, &format!("{name}_memory_bytes"), of(|shown| shown.memory_bytes));
            self.write_one(out, &format!("{name}_milli_cpu"), of(|shown| shown.cpu_milli));
            self.write_scalars(out, &format!("{name}_scalar_resources"), amount);
        }
        self.write_one(out, "volcano_queue_overused", |queue| queue.overused);
        self.write_one(out, "volcano_queue_share", |queue| queue.share);
        self.write_one(out, "volcano_queue_weight", |queue| queue.weight);
        self.write_pending(out);
    }

    fn write_one(
        &self,
        out: &mut String,
        metric: &str,
        value: impl Fn(&QueueSeries) -> Option<f64>,
    ) {
        let mut begun = false;
        for (name, queue) in &self.by_name {
            let Some(value) = value(queue) else { continue };
            if !std::mem::replace(&mut begun, true) {
                text::begin(out, metric);
            }
            text::series(out, metric, &[("queue_name", name)], value);
        }
    }

    fn write_scalars(&self, out: &mut String, metric: &str, amount: QueueAmount) {
        let mut begun = false;
        for (name, queue) in &self.by_name {
            let scalars = queue.amounts.get(&amount).map(|shown| &shown.scalars);
            for (resource, &value) in scalars.into_iter().flatten() {
                if !std::mem::replace(&mut begun, true) {
                    text::begin(out, metric);
                }
                let labels = [("queue_name", &**name), ("resource", resource)];
                text::series(out, metric, &labels, value);
            }
        }
    }

    fn write_pending(&self, out: &mut String) {
        const NAME: &str = "volcano_pending_pods";
        if !self.pending.is_empty() {
            text::begin(out, NAME);
        }
        for ((queue, reason), &n_pods) in &self.pending {
            let labels = [("queue", &**queue), ("reason", reason.text().0)];
            text::series(out, NAME, &labels, f64::from(n_pods));
        }
    }
}

impl QueueSeries {
    fn update(&mut self, gauges: &QueueGauges) {
        let names = gauges.amounts.iter().flat_map(|(_, amounts)| &amounts.scalars);
        for (name, _) in names {
            if !self.scalars.contains(name) {
                self.scalars.insert(name.clone());
            }
        }
        for (kind, amounts) in &gauges.amounts {
            let shown = ShownGauges::of(amounts, &self.scalars);
            self.amounts.insert(*kind, shown);
        }
        let reported = |new: Option<f64>, old: &mut Option<f64>| *old = new.or(*old);
        reported(gauges.share, &mut self.share);
        reported(gauges.weight.map(f64::from), &mut self.weight);
        reported(gauges.overused.map(|overused| f64::from(u8::from(overused))), &mut self.overused);
    }
}

impl ShownGauges {
    /// A scalar that is known of the queue and missing here is 0, not gone.
    fn of(amounts: &Amounts, known: &BTreeSet<String>) -> Self {
        let mut scalars: BTreeMap<String, f64> =
            known.iter().map(|name| (name.clone(), 0.0)).collect();
        scalars.extend(amounts.scalars.iter().cloned());
        Self { cpu_milli: amounts.cpu_milli, memory_bytes: amounts.memory_bytes, scalars }
    }
}
