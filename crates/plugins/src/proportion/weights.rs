//! Division by past usage: another plugin weighs the queues, by dimension.
//! Specification: fair-share.md 6.

use vc_framework::{QueueShare, QuotaPlugin, SessionView};
use vc_model::QueueId;
use vc_resource::Fractional;

use super::Proportion;
use super::deserved::divide;

/// What is known of the division by usage of the last session.
#[derive(Default)]
pub(super) struct DivisionByUsage {
    /// True if weights by usage have divided the cluster in the last session.
    is_in_force: bool,
    /// What the claims deserved in the last session with such weights.
    deserved: Vec<Fractional>,
    n_changes: u64,
}

impl DivisionByUsage {
    /// Ends the division of the last session. True if there was one: its weights are gone.
    pub(super) fn ends(&mut self) -> bool {
        std::mem::take(&mut self.is_in_force)
    }

    /// Returns a number that grows when the deserved amounts have changed.
    pub(super) fn n_changes(&self) -> u64 {
        self.n_changes
    }

    fn note(&mut self, deserved: Vec<Fractional>) {
        self.is_in_force = true;
        if self.deserved != deserved {
            self.deserved = deserved;
            self.n_changes += 1;
        }
    }
}

impl QuotaPlugin for Proportion {
    fn weight_takers(&self) -> Vec<QueueId> {
        let takes = |queue: &QueueId| self.queues.get(*queue).is_some_and(|it| it.claim.is_some());
        self.listed.iter().copied().filter(takes).collect()
    }

    fn divide_by(&mut self, view: SessionView<'_>, weights: Vec<Fractional>) {
        for (claim, weights) in self.claims.iter_mut().zip(weights) {
            claim.usage_weights = Some(weights);
        }
        self.division = divide(view.total(), &mut self.claims);
        self.hand_out();
        self.by_usage.note(self.claims.iter().map(|claim| claim.deserved.clone()).collect());
    }

    fn queue_share(&self, _view: SessionView<'_>, queue: QueueId) -> Option<QueueShare> {
        let queue = self.queues.get(queue)?;
        Some(QueueShare { deserved: queue.deserved.clone(), share: queue.share })
    }
}
