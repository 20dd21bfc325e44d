//! Preemption by usage: pods of an account that has used much more may be evicted for an account that
//! has used less. Specification: fair-share.md 8.

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_framework::{Certificate, EvictReason, Sample, SessionView};
use vc_model::reads::{self, Read};
use vc_model::{JobId, Task, TaskId, TaskStatus};

use super::Fairshare;
use super::arguments::FairshareArguments;
use super::decay::Decay;
use super::ledger::{Account, Ledger};
use super::wide::WideInt;

/// Time between two looks at usage and age, in microseconds. In between votes follow from what the
/// accounts hold, so that they change with decisions and events alone.
pub(super) const STEP_MICROS: i64 = 10_000_000;

/// What is configured of preemption by usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PreemptRule {
    /// Time in which the whole cluster uses as much as the gap between two accounts must be, m.
    pub(super) hysteresis_micros: i64,
}

/// What votes of a session read besides accounts.
#[derive(Debug, Default)]
pub(super) struct VoteTerms {
    /// Time of the last step, in microseconds since 1970.
    step_micros: i64,
    /// Growth of the weight from the step to the horizon.
    ahead_growth: i128,
    /// By queue: the gap between two accounts, in terms of weights.
    gaps: BTreeMap<Arc<str>, Gap>,
}

/// The least gap between the usage of two accounts of a queue: `amount` / `least_weight` / 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gap {
    amount: WideInt,
    least_weight: i64,
}

/// Returns the last step at this time.
pub(super) fn step_of(now: i64) -> i64 {
    now.div_euclid(STEP_MICROS).saturating_mul(STEP_MICROS)
}

impl VoteTerms {
    /// Returns the terms of a session in which only the age of pods counts.
    pub(super) fn at_step(now: i64) -> Self {
        Self { step_micros: step_of(now), ..Self::default() }
    }

    /// Computes the terms of a session. Costs a pass over accounts.
    pub(super) fn of_session(
        view: SessionView<'_>,
        arguments: &FairshareArguments,
        ledger: &Ledger,
        rule: PreemptRule,
    ) -> Self {
        let step_micros = step_of(view.info.now_micros);
        let decay = ledger.decay;
        let weight = decay.weight(step_micros);
        let horizon = step_micros.saturating_add(arguments.entry_horizon_micros);
        let mut least_weights: BTreeMap<Arc<str>, i64> = BTreeMap::new();
        for account in ledger.accounts().filter(|account| account.has_jobs()) {
            let least = least_weights.entry(account.queue.clone()).or_insert(account.weight);
            *least = account.weight.min(*least);
        }
        let total = view.cluster.total_amounts();
        let growth = growth(decay, rule.hysteresis_micros);
        let gap = |(queue, least_weight): (Arc<str>, i64)| {
            let capacity = arguments.charge(&queue).most_of(view.cluster, &total);
            let amount = WideInt::of(capacity).times(weight).times(growth);
            (queue, Gap { amount, least_weight })
        };
        let gaps = least_weights.into_iter().map(gap).collect();
        Self { step_micros, ahead_growth: decay.weight(horizon) - weight, gaps }
    }
}

/// Returns the part by which a weight grows in so much time, times 2^32. It is the same at every
/// time, and an upper bound of the growth of the interpolated weight, whose table is rounded.
fn growth(decay: Decay, micros: i64) -> i128 {
    const ORIGIN: i128 = 1 << 32;
    let later = decay.weight(decay.origin.saturating_add(micros));
    let growth = (later - ORIGIN).clamp(0, i128::from(u64::MAX));
    growth + (growth >> 18) + 2
}

/// The account that takes, and what it will hold.
struct Taker<'a> {
    place: usize,
    account: &'a Account,
    projected: i128,
}

/// What is known of an account that may give.
struct Giver {
    has_gap: bool,
    /// The charge that it holds, less that of accepted candidates.
    left: i128,
}

impl Fairshare {
    /// FS-61: returns the candidates that may go so that `job` gets pods of the charge `asked`.
    /// Returns `None` if usage has no opinion.
    pub(super) fn vote_by_usage(
        &self,
        view: SessionView<'_>,
        job: JobId,
        asked: i128,
        candidates: &[TaskId],
    ) -> Option<Vec<TaskId>> {
        self.arguments.preempt?;
        let is_own = |&task: &TaskId| view.cluster.tasks[task].job == Some(job);
        if candidates.iter().all(is_own) {
            return None;
        }
        let ledger = self.ledger.as_ref()?;
        let (place, account) = self.target(view, job)?;
        view.total();
        reads::note(Read::QueueUsage(view.cluster.jobs[job].queue));
        let held = account.usage.rate + account.pipelined + asked;
        let projected = self.votes.projected(account, held);
        let taker = Taker { place, account, projected };
        let mut givers = BTreeMap::new();
        let may_go =
            |task: &TaskId| self.may_go(view, ledger, &taker, *task, &mut givers).unwrap_or(false);
        Some(candidates.iter().copied().filter(may_go).collect())
    }

    /// Returns `None` if the candidate has no account.
    fn may_go(
        &self,
        view: SessionView<'_>,
        ledger: &Ledger,
        taker: &Taker<'_>,
        candidate: TaskId,
        givers: &mut BTreeMap<usize, Giver>,
    ) -> Option<bool> {
        let task = &view.cluster.tasks[candidate];
        let (place, account) = ledger.of_job(task.job?)?;
        if place == taker.place
            || account.queue != taker.account.queue
            || !self.has_run(view, candidate)
        {
            return Some(false);
        }
        let giver = givers.entry(place).or_insert_with(|| Giver {
            has_gap: self.votes.has_gap(taker.account, account),
            left: account.usage.rate,
        });
        let charge = self.arguments.charge(&account.queue);
        let left = giver.left - charge.of(view.cluster, view.cluster.request(candidate));
        let is_target = || {
            let projected = self.votes.projected(account, left);
            let product = |amount: i128, weight: i64| WideInt::of(amount).times(weight.into());
            product(taker.projected, account.weight) <= product(projected, taker.account.weight)
        };
        let may_go = giver.has_gap && is_target();
        if may_go {
            giver.left = left;
        }
        Some(may_go)
    }

    /// True if the task had run for long enough at the last step.
    pub(super) fn has_run(&self, view: SessionView<'_>, task: TaskId) -> bool {
        let since = |task: &Task| task.started_micros.or(task.scheduled_micros);
        view.now_micros();
        since(&view.cluster.tasks[task])
            .is_some_and(|since| self.arguments.min_run_micros <= self.votes.step_micros - since)
    }

    /// Returns the charge of the Pending tasks of a job.
    pub(super) fn pending_charge(&self, view: SessionView<'_>, job: JobId) -> i128 {
        let row = &view.cluster.jobs[job];
        let charge = self.arguments.charge(&view.cluster.queues[row.queue].name);
        let is_pending = |task: &TaskId| view.cluster.tasks[*task].status == TaskStatus::Pending;
        let tasks = row.tasks.iter().copied().filter(is_pending);
        tasks.map(|task| charge.of(view.cluster, view.cluster.request(task))).sum()
    }
}

impl VoteTerms {
    /// Returns what an account will have used at the horizon if it holds so much from the step on.
    fn projected(&self, account: &Account, held: i128) -> i128 {
        account.step_usage.saturating_add(held.max(0).saturating_mul(self.ahead_growth))
    }

    /// True if `giver` had used so much more than `taker` at the step.
    fn has_gap(&self, taker: &Account, giver: &Account) -> bool {
        const SCALE: i128 = 1 << 32;
        let Some(gap) = self.gaps.get(&taker.queue) else { return false };
        let [of_taker, of_giver] = [taker, giver].map(|account| i128::from(account.weight));
        let usage = |account: &Account, weight: i128| {
            WideInt::of(account.step_usage)
                .times(weight)
                .times(gap.least_weight.into())
                .times(SCALE)
        };
        let least = gap.amount.times(of_taker).times(of_giver);
        usage(taker, of_giver) + least <= usage(giver, of_taker)
    }
}

/// Returns the numbers of pods that these transactions evicted by usage, by queue.
pub(super) fn counted(view: SessionView<'_>, certificates: &[Certificate]) -> Vec<Sample> {
    let by_usage = |certificate: &&Certificate| {
        matches!(certificate.action, EvictReason::Preempt | EvictReason::GangPreempt)
    };
    let mut counts: BTreeMap<Arc<str>, u32> = BTreeMap::new();
    for certificate in certificates.iter().filter(by_usage) {
        for victim in &certificate.victims {
            let plugins = victim.rule.as_ref().map_or(&[][..], |rule| &rule.plugins);
            let job = view.cluster.job(&victim.pod_group);
            if let Some(job) = job.filter(|_| plugins.contains(&super::ENTRY.name())) {
                let queue = view.cluster.queues[view.cluster.jobs[job].queue].name.clone();
                *counts.entry(queue).or_default() += 1;
            }
        }
    }
    let count = |(queue, n_pods)| Sample::FairshareEvictions { queue, n_pods };
    counts.into_iter().map(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000_000;

    /// F3: the gap is at least what the cluster can use in the time of the hysteresis.
    #[test]
    fn fs_law_f3_the_growth_of_a_gap_is_an_upper_bound() {
        let decay = Decay { half_life: 4 * HOUR, origin: 77 };
        for micros in [1, 1_000_000, HOUR / 6, 3 * HOUR, 9 * HOUR] {
            for at in 0..2_000 {
                let time = 77 + at * HOUR / 311;
                let grown = decay.weight(time + micros) - decay.weight(time);
                let bound = WideInt::of(decay.weight(time)).times(growth(decay, micros));
                assert!(WideInt::of(grown).times(1 << 32) <= bound, "{micros} at {time}");
            }
        }
    }
}
