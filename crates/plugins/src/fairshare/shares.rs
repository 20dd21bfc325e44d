//! Usage of each queue by dimension, and the amounts that the cluster had over the same time. The
//! deserved shares of queues follow from both.
//! Specification: fair-share.md 2 (FS-17), 6.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vc_framework::SessionView;
use vc_model::{QueueId, SavedShare};
use vc_resource::{Dim, Fractional, Resource};

use super::decay::Decay;
use super::ledger::Usage;

/// What is configured of deserved shares by usage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ShareRule {
    /// How strongly usage counts, k, above 0.
    pub(super) k: f64,
    /// Time between two steps of shares in microseconds, above 0.
    pub(super) interval_micros: i64,
}

impl ShareRule {
    /// FS-51: returns the last step at this time.
    pub(super) fn step_of(&self, now: i64) -> i64 {
        now.div_euclid(self.interval_micros).saturating_mul(self.interval_micros)
    }
}

/// Usage by dimension, in internal units.
type UsageByDim = BTreeMap<Dim, Usage>;

/// Usage of all queues by dimension, and of the cluster as if it had used what its nodes offer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct ShareUsages {
    table: ShareTable,
    /// The table that was last saved.
    saved: ShareTable,
    /// Names of the resources, by dimension.
    names: BTreeMap<Dim, Arc<str>>,
    has_begun: bool,
    /// Time of the usage that an earlier process has saved. `None`: there is none.
    since_micros: Option<i64>,
    /// Time of the last step. `None`: there was none.
    step_micros: Option<i64>,
    /// By queue: its part of what the cluster had, at the last step.
    parts: BTreeMap<Arc<str>, Fractional>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct ShareTable {
    /// By name of the queue.
    queues: BTreeMap<Arc<str>, UsageByDim>,
    cluster: UsageByDim,
}

impl ShareTable {
    fn usages_mut(&mut self) -> impl Iterator<Item = &mut Usage> {
        let queues = self.queues.values_mut().flat_map(BTreeMap::values_mut);
        queues.chain(self.cluster.values_mut())
    }

    fn sweep(&mut self, is_gone: &impl Fn(&Usage) -> bool) {
        for usages in self.queues.values_mut() {
            usages.retain(|_, usage| !is_gone(usage));
        }
        self.queues.retain(|_, usages| !usages.is_empty());
    }
}

impl ShareUsages {
    /// Takes in the usage of an earlier process at a time.
    pub(super) fn restore(&mut self, view: SessionView<'_>, saved: &[SavedShare], at: RestoredAt) {
        for share in saved {
            let Some(dim) = view.cluster.dims.get(&share.resource) else { continue };
            let saved = Usage { closed: share.closed, rate: share.rate };
            let usage = Usage { closed: saved.at(at.weight), rate: 0 };
            match &share.queue {
                Some(queue) => {
                    self.table.queues.entry(queue.clone()).or_default().insert(dim, usage)
                }
                None => self.table.cluster.insert(dim, usage),
            };
            self.since_micros = Some(at.time_micros);
        }
    }

    /// Returns the usage as it is saved.
    pub(super) fn saved(&self) -> Vec<SavedShare> {
        let of_queues =
            self.table.queues.iter().map(|(queue, usages)| (Some(queue.clone()), usages));
        let mut saved = Vec::new();
        for (queue, usages) in of_queues.chain([(None, &self.table.cluster)]) {
            let used = usages.iter().filter(|(_, usage)| **usage != Usage::default());
            saved.extend(used.filter_map(|(dim, usage)| {
                let (queue, resource) = (queue.clone(), self.names.get(dim)?.clone());
                Some(SavedShare { queue, resource, closed: usage.closed, rate: usage.rate })
            }));
        }
        saved
    }

    /// Brings usage up to date with the begin of a session. The step comes first: nothing that
    /// changed since the last session was before it.
    pub(super) fn follow_session(&mut self, view: SessionView<'_>, decay: Decay, rule: ShareRule) {
        let (now, dims) = (view.now_micros(), &view.cluster.dims);
        if self.names.len() < dims.len() {
            self.names =
                dims.in_report_order().iter().map(|&dim| (dim, dims.name(dim).into())).collect();
        }
        if !std::mem::replace(&mut self.has_begun, true) {
            self.begin(view, decay);
            self.note_step(decay, rule.step_of(now));
            return;
        }
        self.note_step(decay, rule.step_of(now));
        self.enter(view, decay.weight(now));
    }

    /// Charges running tasks from their start, or from the time of the saved usage, and the cluster
    /// from the first of these times (FS-83, FS-84).
    fn begin(&mut self, view: SessionView<'_>, decay: Decay) {
        let now = view.now_micros();
        let since = self.since_micros.unwrap_or(i64::MIN);
        let mut first = self.since_micros.unwrap_or(now);
        for id in view.all_jobs() {
            let job = &view.cluster.jobs[id];
            let queue = &view.cluster.queues[job.queue].name;
            for &task in &job.tasks {
                let row = &view.cluster.tasks[task];
                if row.status.is_allocated() {
                    let started = row.started_micros.or(row.scheduled_micros).unwrap_or(now);
                    let started = started.max(since).min(now);
                    first = first.min(started);
                    let usages = self.table.queues.entry(queue.clone()).or_default();
                    change(usages, view.cluster.request(task), 1, decay.weight(started));
                }
            }
        }
        let total = view.cluster.total_amounts();
        change(&mut self.table.cluster, &total, 1, decay.weight(first));
    }

    fn enter(&mut self, view: SessionView<'_>, weight: i128) {
        set(&mut self.table.cluster, &view.cluster.total_amounts(), weight);
        let mut held: BTreeMap<Arc<str>, &Resource> = BTreeMap::new();
        for &queue in &view.info.queues {
            let sums = view.info.active_jobs.sums(queue);
            held.insert(view.cluster.queues[queue].name.clone(), &sums.allocated);
        }
        let nothing = Resource::default();
        for (queue, usages) in &mut self.table.queues {
            let held = held.remove(queue).unwrap_or(&nothing);
            set(usages, held, weight);
        }
        for (queue, held) in held.into_iter().filter(|(_, held)| !held.is_empty()) {
            set(self.table.queues.entry(queue).or_default(), held, weight);
        }
    }

    /// Follows an operation of the session: the queue holds so many more tasks of this request.
    pub(super) fn follow(
        &mut self,
        queue: &Arc<str>,
        request: &Resource,
        n_added: i128,
        weight: i128,
    ) {
        if self.has_begun {
            change(self.table.queues.entry(queue.clone()).or_default(), request, n_added, weight);
        }
    }

    /// Notes the part of each queue at a step, once.
    fn note_step(&mut self, decay: Decay, step_micros: i64) {
        if self.step_micros.replace(step_micros) == Some(step_micros) {
            return;
        }
        let weight = decay.weight(step_micros);
        let cluster = &self.table.cluster;
        let part = |(queue, usages): (&Arc<str>, &UsageByDim)| {
            let mut parts = Fractional::default();
            for (&dim, usage) in usages {
                let had = cluster.get(&dim).map_or(0, |usage| usage.at(weight));
                if 0 < had {
                    parts.set(dim, usage.at(weight) as f64 / had as f64);
                }
            }
            (queue.clone(), parts)
        };
        self.parts = self.table.queues.iter().map(part).collect();
    }

    /// FS-50: returns the weights of these queues by dimension. Returns `None` if no queue has a
    /// weight.
    pub(super) fn weights(
        &self,
        view: SessionView<'_>,
        rule: ShareRule,
        takers: &[QueueId],
    ) -> Option<Vec<Fractional>> {
        let weight = |queue: &QueueId| f64::from(view.cluster.queues[*queue].weight.max(0));
        let sum: f64 = takers.iter().map(weight).sum();
        let dims: Vec<Dim> = view.total().dims().collect();
        let nothing = Fractional::default();
        let weights = |queue: &QueueId| {
            let name = &view.cluster.queues[*queue].name;
            let (own, part) = (weight(queue) / sum, self.parts.get(name).unwrap_or(&nothing));
            let mut weights = Fractional::default();
            for &dim in &dims {
                let weight = own + rule.k * (own - part.get(dim));
                weights.set(dim, if weight <= 0.0 { 0.0 } else { weight });
            }
            weights
        };
        (0.0 < sum).then(|| takers.iter().map(weights).collect())
    }

    /// Returns the usage of all queues and of the cluster, now and as saved.
    pub(super) fn usages_mut(&mut self) -> impl Iterator<Item = &mut Usage> {
        self.table.usages_mut().chain(self.saved.usages_mut())
    }

    /// True if the usage is another than was saved.
    pub(super) fn is_unsaved(&self) -> bool {
        self.table != self.saved
    }

    /// Notes that the usage is saved as it is.
    pub(super) fn note_saved(&mut self) {
        if self.is_unsaved() {
            self.saved = self.table.clone();
        }
    }

    /// Another half-life: the parts are looked at anew.
    pub(super) fn forget_step(&mut self) {
        self.step_micros = None;
    }

    /// FS-16: forgets what has faded.
    pub(super) fn sweep(&mut self, is_gone: impl Fn(&Usage) -> bool) {
        self.table.sweep(&is_gone);
        self.saved.sweep(&is_gone);
    }
}

/// The time of saved usage.
#[derive(Clone, Copy, Debug)]
pub(super) struct RestoredAt {
    pub(super) time_micros: i64,
    /// Weight of that time.
    pub(super) weight: i128,
}

/// Raises the charge by `times` the amount, from the time with this weight on.
fn change(usages: &mut UsageByDim, amount: &Resource, times: i128, weight: i128) {
    for dim in amount.dims().filter(|&dim| amount.exact(dim) != 0) {
        usages.entry(dim).or_default().change(times * amount.exact(dim), weight);
    }
}

/// Sets the charge to this amount, from the time with this weight on.
fn set(usages: &mut UsageByDim, amount: &Resource, weight: i128) {
    let set = |usage: &mut Usage, rate: i128| usage.change(rate - usage.rate, weight);
    for (&dim, usage) in usages.iter_mut() {
        set(usage, amount.exact(dim));
    }
    for dim in amount.dims().filter(|&dim| amount.exact(dim) != 0) {
        set(usages.entry(dim).or_default(), amount.exact(dim));
    }
}
