//! Who may be evicted: protective filters first, then the tiered intersection. Specification:
//! core.md 5.5, actions.md 2.3 with A5, plugins-jobs-queues.md D1.

use vc_model::{JobId, TaskId};

use crate::dispatch::Dispatch;
use crate::plugin::{Ask, GangEviction, Plugin, Verdict};
use crate::points::Points;

impl Dispatch {
    /// Candidates that `preemptor` may evict, in the order of the first answer.
    pub fn preemptable(
        &self,
        ask: Ask<'_>,
        preemptor: TaskId,
        candidates: &[TaskId],
    ) -> Vec<TaskId> {
        self.intersect(ask, Points::PREEMPTABLE, candidates, |plugin, candidates| {
            plugin.preemptable(ask, preemptor, candidates)
        })
    }

    /// Candidates that `reclaimer` may evict from other queues.
    pub fn reclaimable(
        &self,
        ask: Ask<'_>,
        reclaimer: TaskId,
        candidates: &[TaskId],
    ) -> Vec<TaskId> {
        self.intersect(ask, Points::RECLAIMABLE, candidates, |plugin, candidates| {
            plugin.reclaimable(ask, reclaimer, candidates)
        })
    }

    /// Candidates that the gang actions may evict for `initiator`.
    pub fn unified_evictable(
        &self,
        ask: Ask<'_>,
        initiator: JobId,
        kind: GangEviction,
        candidates: &[TaskId],
    ) -> Vec<TaskId> {
        self.intersect(ask, Points::UNIFIED_EVICTABLE, candidates, |plugin, candidates| {
            plugin.unified_evictable(ask, initiator, kind, candidates)
        })
    }

    /// Union of a tier without repetition, less what the filters protect (D2); the first tier with
    /// any.
    pub fn victim_tasks(&self, ask: Ask<'_>, running: &[TaskId]) -> Vec<TaskId> {
        for tier in self.tiers(Points::VICTIM_TASKS) {
            let mut union: Vec<TaskId> = Vec::new();
            for task in tier.flat_map(|plugin| plugin.victim_tasks(ask, running)) {
                if !union.contains(&task) {
                    union.push(task);
                }
            }
            if !union.is_empty() {
                let filters = self.all(Points::PREEMPTABLE).chain(self.all(Points::VICTIM_TASKS));
                return unprotected(ask, filters, &union);
            }
        }
        Vec::new()
    }

    fn intersect(
        &self,
        ask: Ask<'_>,
        point: Points,
        candidates: &[TaskId],
        answer: impl Fn(&dyn Plugin, &[TaskId]) -> Verdict,
    ) -> Vec<TaskId> {
        let candidates = unprotected(ask, self.all(point), candidates);
        let mut anyone_voted = false;
        for tier in self.tiers(point) {
            let voters = tier.filter(|plugin| !plugin.is_victim_filter());
            match tier_outcome(voters.map(|plugin| answer(plugin, &candidates))) {
                Outcome::Victims(victims) => return victims,
                Outcome::Nothing => anyone_voted = true,
                Outcome::NoVote => {}
            }
        }
        // Only filters have spoken: what they leave is the result (D1).
        let filtered = self.all(point).any(|plugin| plugin.is_victim_filter());
        if filtered && !anyone_voted { candidates } else { Vec::new() }
    }
}

/// What the protective filters among `plugins` leave. Budgets are spent on what none protects (D1).
fn unprotected<'p>(
    ask: Ask<'_>,
    plugins: impl Iterator<Item = &'p dyn Plugin>,
    candidates: &[TaskId],
) -> Vec<TaskId> {
    let filters: Vec<&dyn Plugin> = plugins.filter(|plugin| plugin.is_victim_filter()).collect();
    let free = |&task: &TaskId| !filters.iter().any(|filter| filter.protects(ask, task));
    let free: Vec<TaskId> = candidates.iter().copied().filter(free).collect();
    filters.iter().fold(free, |left, filter| filter.within_budget(ask, &left))
}

/// What a tier says.
enum Outcome {
    /// All abstain.
    NoVote,
    /// Somebody answered with nothing, or the answers have nothing in common.
    Nothing,
    Victims(Vec<TaskId>),
}

/// The intersection of a tier. One that becomes empty stays so (A5); later plugins are not asked.
fn tier_outcome(answers: impl Iterator<Item = Verdict>) -> Outcome {
    let mut outcome = Outcome::NoVote;
    for verdict in answers {
        let Verdict::Victims(list) = verdict else { continue };
        let next = match outcome {
            Outcome::Victims(earlier) => {
                earlier.into_iter().filter(|task| list.contains(task)).collect()
            }
            _ => list,
        };
        if next.is_empty() {
            return Outcome::Nothing;
        }
        outcome = Outcome::Victims(next);
    }
    outcome
}
