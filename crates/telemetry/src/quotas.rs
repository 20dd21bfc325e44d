//! Series of quota between queues: they vanish with the Queues that they name. Specification:
//! cohort.md B.8.

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_engine::Sample;

use crate::text;

type QueueName = Arc<str>;

/// What is known of the queues, by name.
#[derive(Debug, Default)]
pub(crate) struct QuotaSeries {
    /// By the queue that got the quota, the one that had it, and the reason.
    preempted: BTreeMap<(QueueName, QueueName, &'static str), u64>,
    /// By queue and cause.
    refused: BTreeMap<(QueueName, &'static str), u64>,
    /// Parent and share.
    shares: BTreeMap<QueueName, (QueueName, f64)>,
}

impl QuotaSeries {
    pub(crate) fn take(&mut self, sample: &Sample) {
        match sample {
            Sample::QuotaPreempted { preempting, preempted, reason } => {
                let key = (preempting.clone(), preempted.clone(), *reason);
                *self.preempted.entry(key).or_default() += 1;
            }
            Sample::QuotaRefused { queue, cause, count } => {
                *self.refused.entry((queue.clone(), cause)).or_default() += count;
            }
            Sample::WeightedShare { queue, parent, value } => {
                self.shares.insert(queue.clone(), (parent.clone(), *value));
            }
            Sample::QueueGone(name) => {
                self.preempted.retain(|(winner, loser, _), _| winner != name && loser != name);
                self.refused.retain(|(queue, _), _| queue != name);
                self.shares.remove(name);
            }
            _ => {}
        }
    }

    pub(crate) fn write(&self, out: &mut String) {
        self.write_preempted(out);
        self.write_refused(out);
        self.write_shares(out);
    }

    fn write_preempted(&self, out: &mut String) {
        const NAME: &str = "volcano_cohort_preempted_podgroups_total";
        if !self.preempted.is_empty() {
            text::begin(out, NAME);
        }
        for ((preempting, preempted, reason), &count) in &self.preempted {
            let labels = [
                ("preempted_queue", &**preempted),
                ("preempting_queue", &**preempting),
                ("reason", *reason),
            ];
            text::series(out, NAME, &labels, count as f64);
        }
    }

    fn write_refused(&self, out: &mut String) {
        const NAME: &str = "volcano_cohort_preemption_refused_total";
        if !self.refused.is_empty() {
            text::begin(out, NAME);
        }
        for ((queue, cause), &count) in &self.refused {
            let labels = [("cause", *cause), ("queue_name", &**queue)];
            text::series(out, NAME, &labels, count as f64);
        }
    }

    fn write_shares(&self, out: &mut String) {
        const NAME: &str = "volcano_cohort_weighted_share";
        if !self.shares.is_empty() {
            text::begin(out, NAME);
        }
        for (queue, (parent, share)) in &self.shares {
            let labels = [("parent", &**parent), ("queue_name", &**queue)];
            text::series(out, NAME, &labels, *share);
        }
    }
}
