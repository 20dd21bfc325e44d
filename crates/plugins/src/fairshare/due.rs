//! The times at which the passing of time changes an order, or ends an account.
//! Specification: fair-share.md 10, FS-66, FS-67.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_framework::{Clock, SessionView};
use vc_model::QueueId;

use super::ledger::{Account, Ledger};
use super::shares::ShareRule;
use super::{Fairshare, compare_usage, preempt};

/// Number of half-lives that are looked ahead. Later changes are looked for again then.
const HALF_LIVES_AHEAD: i64 = 12;

/// Returns the first time at which an order may change. Costs a pass over accounts, after a session
/// that decided nothing.
pub(super) fn clock(plugin: &Fairshare, view: SessionView<'_>) -> Clock {
    let Some(ledger) = &plugin.ledger else { return Clock::Ignores };
    let now = view.now_micros();
    let half_life = ledger.decay.half_life;
    let sweep = (now.div_euclid(half_life) + 1).saturating_mul(half_life);
    let save = plugin.arguments.save.as_ref().and_then(|rule| ledger.saves.due_micros(rule));
    let next_step = |rule: ShareRule| rule.step_of(now).saturating_add(rule.interval_micros);
    // What queues deserve is reported, whether or not somebody waits.
    let of_shares = plugin.arguments.shares.map(next_step);
    let swept = ledger.has_leavers().then_some(sweep);
    let mut due = swept.into_iter().chain(save).chain(of_shares).min();
    let has_waiting = view.info.jobs.iter().any(|&job| {
        let row = &view.cluster.jobs[job];
        row.is_pending() || 0 < row.counts.of(vc_model::TaskStatus::Pending)
    });
    if has_waiting {
        let of_jobs = next_of_accounts(plugin, ledger, now);
        let of_queues = plugin.arguments.has_queue_order.then(|| next_of_queues(plugin, view, now));
        let step = preempt::step_of(now).saturating_add(preempt::STEP_MICROS);
        let of_votes = plugin.arguments.keeps_young_pods().then_some(step);
        due = due.into_iter().chain(of_votes).chain(of_jobs).chain(of_queues.flatten()).min();
    }
    due.map_or(Clock::Ignores, Clock::Until)
}

fn next_of_accounts(plugin: &Fairshare, ledger: &Ledger, now: i64) -> Option<i64> {
    let mut by_queue: BTreeMap<&Arc<str>, Vec<&Account>> = BTreeMap::new();
    let targets = ledger.accounts().filter(|it| plugin.arguments.is_target(&it.queue));
    for account in targets.filter(|account| account.has_jobs()) {
        by_queue.entry(&account.queue).or_default().push(account);
    }
    let compare = |l: &Account, r: &Account, weight: i128| {
        compare_usage((l.usage, l.weight), (r.usage, r.weight), weight)
    };
    let mut due: Option<i64> = None;
    for accounts in by_queue.values_mut() {
        accounts
            .sort_by(|l, r| compare(l, r, plugin.ahead_weight).then_with(|| l.name.cmp(&r.name)));
        for pair in accounts.windows(2) {
            let order = |weight| compare(pair[0], pair[1], weight);
            due = due.into_iter().chain(next_change(plugin, now, order)).min();
        }
    }
    due
}

fn next_of_queues(plugin: &Fairshare, view: SessionView<'_>, now: i64) -> Option<i64> {
    let inner: BTreeSet<QueueId> = plugin.queue_usages.inner_queues().collect();
    let queues = view.info.queues.iter().copied();
    // An inner queue moves together with the queues below it.
    let mut leaves: Vec<QueueId> = queues.filter(|queue| !inner.contains(queue)).collect();
    let compare = |l: QueueId, r: QueueId, weight: i128| {
        plugin.queue_usages.compare(view.cluster, (l, r), plugin.is_tree, weight)
    };
    leaves.sort_by(|&l, &r| compare(l, r, plugin.ahead_weight).then_with(|| l.cmp(&r)));
    let pairs = leaves.windows(2);
    let changes = pairs
        .filter_map(|pair| next_change(plugin, now, |weight| compare(pair[0], pair[1], weight)));
    changes.min()
}

/// Returns the first time at which the order of two neighbours, by weight of the time, is not that
/// of now. It changes at most once. Returns `None` if it stays.
fn next_change(plugin: &Fairshare, now: i64, order: impl Fn(i128) -> Ordering) -> Option<i64> {
    let decay = plugin.ledger.as_ref()?.decay;
    let horizon = plugin.arguments.entry_horizon_micros;
    let is_changed =
        |time: i64| order(decay.weight(time.saturating_add(horizon))) != order(plugin.ahead_weight);
    let (mut before, mut after) =
        (now, now.saturating_add(decay.half_life.saturating_mul(HALF_LIVES_AHEAD)));
    if !is_changed(after) {
        // Even with the largest weight the order is the same.
        return (order(1 << 60) != order(plugin.ahead_weight)).then_some(after);
    }
    while 1 < after - before {
        let middle = before + (after - before) / 2;
        match is_changed(middle) {
            true => after = middle,
            false => before = middle,
        }
    }
    Some(after)
}
