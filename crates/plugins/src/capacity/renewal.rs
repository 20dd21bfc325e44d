//! What the queues hold when a session begins, kept from session to session: only those are new whose
//! jobs changed, and those above them, unless a queue or the cluster is another one. The engine's
//! `histories.rs` and random stories compare with all made anew. Specification: plugins-jobs-queues.md
//! 6.2, 6.3, actions.md 12.3.

use std::collections::BTreeMap;

use vc_framework::{Ask, JobSums};
use vc_model::QueueId;

use super::quota::Quotas;
use super::shape::Shape;
use super::{Capacity, limits};

impl Capacity {
    pub(super) fn renew(&mut self, ask: Ask<'_>) {
        let basis = Some((ask.cluster.queue_version(), ask.cluster.total_amounts()));
        let is_same = self.basis == basis;
        self.basis = basis;
        match ask.facts.roster.changed_queues().filter(|_| is_same) {
            Some(changed) => self.renew_sums(ask, changed),
            None => {
                self.begin(ask);
                self.renew_sums(ask, &ask.facts.queues);
            }
        }
        self.check_sums(ask);
    }

    /// All queues, without what they hold.
    fn begin(&mut self, ask: Ask<'_>) {
        self.shape = if self.hierarchy { Shape::tree(ask) } else { Shape::flat(ask) };
        self.quotas = Quotas::of(&ask.facts.queues);
        match self.hierarchy {
            true => limits::tree(ask, &self.shape, &mut self.quotas),
            false => limits::flat(ask, &mut self.quotas),
        }
        self.cut_guarantees.renew(ask, &ask.cluster.total_amounts());
        for id in std::mem::take(&mut self.listed) {
            if self.quotas.get(id).is_none() {
                self.told.forget(id);
            }
        }
        self.listed.clone_from(&ask.facts.queues);
        self.moved.clone_from(&ask.facts.queues);
        self.device_quotas.look(ask);
    }

    fn renew_sums(&mut self, ask: Ask<'_>, changed: &[QueueId]) {
        let mut outdated = std::mem::take(&mut self.moved);
        for &id in changed {
            let now = ask.facts.roster.sums(id);
            let own = self.quotas.get_mut(id).map(|quota| &mut quota.own);
            let Some(own) = own.filter(|own| *own != now) else { continue };
            let before = std::mem::replace(own, now.clone());
            for &above in self.shape.path(id) {
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

    /// The plain way, where it costs nothing: in every story of the tests.
    fn check_sums(&self, ask: Ask<'_>) {
        if cfg!(debug_assertions) && self.listed.len() < 64 {
            let mut anew: BTreeMap<QueueId, JobSums> = BTreeMap::new();
            for &id in &self.listed {
                for &above in self.shape.path(id) {
                    anew.entry(above).or_default().add(ask.facts.roster.sums(id));
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
