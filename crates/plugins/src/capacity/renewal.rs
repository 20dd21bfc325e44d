//! Usage of the queues at the start of a session, kept across sessions. Only queues whose jobs
//! changed, and their ancestors, are recomputed. A change of a queue object or of the cluster
//! recomputes all. The engine's `histories.rs` and random stories compare the result with a full
//! recomputation.
//! Specification: plugins-jobs-queues.md 6.2, 6.3, actions.md 12.3.

use std::collections::BTreeMap;

use vc_framework::{JobSums, SessionView};
use vc_model::QueueId;

use super::queue_tree::QueueTree;
use super::quota::CapacityQuotas;
use super::{Capacity, limits};

impl Capacity {
    pub(super) fn renew(&mut self, view: SessionView<'_>) {
        let basis = Some((view.cluster.queue_version(), view.cluster.total_amounts()));
        let is_same = self.basis == basis;
        self.basis = basis;
        match view.info.active_jobs.changed_queues().filter(|_| is_same) {
            Some(changed) => {
                self.device_quotas.renew(view, &self.queue_tree, Some(changed), &self.moved);
                self.renew_sums(view, changed);
            }
            None => {
                self.begin(view);
                self.device_quotas.renew(view, &self.queue_tree, None, &[]);
                self.renew_sums(view, &view.info.queues);
            }
        }
        self.check_sums(view);
    }

    /// Rebuilds tree and limits of all queues, without their usage.
    fn begin(&mut self, view: SessionView<'_>) {
        self.queue_tree =
            if self.hierarchy { QueueTree::tree(view) } else { QueueTree::flat(view) };
        self.quotas = CapacityQuotas::of(&view.info.queues);
        match self.hierarchy {
            true => limits::tree(view, &self.queue_tree, &mut self.quotas),
            false => limits::flat(view, &mut self.quotas),
        }
        self.cut_guarantees.renew(view, &view.cluster.total_amounts());
        for id in std::mem::take(&mut self.listed) {
            if self.quotas.get(id).is_none() {
                self.reported.forget(id);
            }
        }
        self.listed.clone_from(&view.info.queues);
        self.moved.clone_from(&view.info.queues);
        self.device_quotas.begin(view);
    }

    fn renew_sums(&mut self, view: SessionView<'_>, changed: &[QueueId]) {
        let mut outdated = std::mem::take(&mut self.moved);
        for &id in changed {
            let now = view.info.active_jobs.sums(id);
            let own = self.quotas.get_mut(id).map(|quota| &mut quota.own);
            let Some(own) = own.filter(|own| *own != now) else { continue };
            let before = std::mem::replace(own, now.clone());
            for &above in self.queue_tree.path(id) {
                let Some(quota) = self.quotas.get_mut(above) else { continue };
                quota.at_open.sub(&before);
                quota.at_open.add(now);
                outdated.push(above);
            }
        }
        for id in outdated {
            self.quotas.get_mut(id).into_iter().for_each(|quota| quota.begin());
        }
    }

    /// Compares the kept sums with a full recomputation, in debug builds with few queues. All tests
    /// run it.
    fn check_sums(&self, view: SessionView<'_>) {
        if cfg!(debug_assertions) && self.listed.len() < 64 {
            let mut anew: BTreeMap<QueueId, JobSums> = BTreeMap::new();
            for &id in &self.listed {
                for &above in self.queue_tree.path(id) {
                    anew.entry(above).or_default().add(view.info.active_jobs.sums(id));
                }
            }
            for &id in &self.listed {
                let kept = self.quotas.get(id).map(|quota| (&quota.at_open, quota.is_fresh()));
                debug_assert_eq!(
                    kept,
                    anew.get(&id).map(|sums| (sums, true)),
                    "what a queue holds"
                );
            }
        }
    }
}
