//! The times at which the passing of time changes an order, or ends an account.
//! Specification: fair-share.md 10, FS-66, FS-67.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_framework::{Clock, SessionView};
use vc_model::QueueId;

use super::ledger::{Account, Ledger, RateRange, Usage};
use super::shares::ShareRule;
use super::{Fairshare, compare_usage, preempt, wide};

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
        let is_operated = ledger.accounts().any(|account| account.in_session.is_some());
        // Which queue is next may depend on what pods hold that were placed in vain.
        let of_trials = (plugin.arguments.has_queue_order && is_operated).then_some(now + 1);
        let step = preempt::step_of(now).saturating_add(preempt::STEP_MICROS);
        let of_votes = plugin.arguments.keeps_young_pods().then_some(step);
        due = due.into_iter().chain(of_votes).chain(of_jobs).min();
        due = due.into_iter().chain(of_queues.flatten()).chain(of_trials).min();
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
        compare_usage((opened(l), l.weight), (opened(r), r.weight), weight)
    };
    let mut due: Option<i64> = None;
    for accounts in by_queue.values_mut() {
        accounts
            .sort_by(|l, r| compare(l, r, plugin.ahead_weight).then_with(|| l.name.cmp(&r.name)));
        for pair in accounts.windows(2) {
            let next = match pair[0].in_session.or(pair[1].in_session) {
                None => next_change(plugin, now, |weight| compare(pair[0], pair[1], weight)),
                Some(_) => next_change_in_trials(plugin, now, pair[0], pair[1]),
            };
            due = due.into_iter().chain(next).min();
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

/// Returns the usage without the operations of the session.
fn opened(account: &Account) -> Usage {
    account.in_session.map_or(account.usage, |range| range.opened)
}

/// Returns the order of two accounts that holds whatever the operations of the session have changed
/// before it was asked for, in a session of that time. Returns `None` if there is no such order.
fn order_in_trials(
    ledger: &Ledger,
    horizon: i64,
    time: i64,
    pair: [&Account; 2],
) -> Option<Ordering> {
    let (begin, ahead) =
        (ledger.decay.weight(time), ledger.decay.weight(time.saturating_add(horizon)));
    let usage = |account: &Account, is_most: bool, other: &Account| {
        let mut usage = opened(account);
        let by = |range: RateRange| if is_most { range.most } else { range.least };
        usage.change(account.in_session.map_or(0, by), begin);
        wide(usage.at(ahead), other.weight)
    };
    let [l, r] = pair;
    if usage(l, true, r) < usage(r, false, l) {
        return Some(Ordering::Less);
    }
    (usage(r, true, l) < usage(l, false, r)).then_some(Ordering::Greater)
}

/// Returns the first time at which a session that repeats the operations of this one may find another
/// order of two accounts. Returns `None` if it finds the same for ever.
fn next_change_in_trials(plugin: &Fairshare, now: i64, l: &Account, r: &Account) -> Option<i64> {
    let ledger = plugin.ledger.as_ref()?;
    let (of_l, of_r) = (opened(l), opened(r));
    let is_equal = |l_part: i128, r_part: i128| {
        let of_l = l_part.checked_mul(i128::from(r.weight));
        of_l.is_some() && of_l == r_part.checked_mul(i128::from(l.weight))
    };
    // Then time changes nothing: only what the operations add decides.
    if is_equal(of_l.closed, of_r.closed) && is_equal(of_l.rate, of_r.rate) {
        return None;
    }
    let horizon = plugin.arguments.entry_horizon_micros;
    let order = |time| order_in_trials(ledger, horizon, time, [l, r]);
    // The order depends on operations: the next session may find another one.
    let Some(present) = order(now) else { return Some(now + 1) };
    let end = now.saturating_add(ledger.decay.half_life.saturating_mul(HALF_LIVES_AHEAD));
    first(now, end, |time| order(time) != Some(present)).or(Some(end))
}

/// Returns the first time after `from` and up to `to` that is so, if all later ones are. Returns `None`
/// if `to` is not.
fn first(from: i64, to: i64, is_so: impl Fn(i64) -> bool) -> Option<i64> {
    if !is_so(to) {
        return None;
    }
    let (mut before, mut after) = (from, to);
    while 1 < after - before {
        let middle = before + (after - before) / 2;
        match is_so(middle) {
            true => after = middle,
            false => before = middle,
        }
    }
    Some(after)
}

/// Returns the first time at which the order of two neighbours, by weight of the time, is not that
/// of now. It changes at most once. Returns `None` if it stays.
fn next_change(plugin: &Fairshare, now: i64, order: impl Fn(i128) -> Ordering) -> Option<i64> {
    let decay = plugin.ledger.as_ref()?.decay;
    let horizon = plugin.arguments.entry_horizon_micros;
    let is_changed =
        |time: i64| order(decay.weight(time.saturating_add(horizon))) != order(plugin.ahead_weight);
    let end = now.saturating_add(decay.half_life.saturating_mul(HALF_LIVES_AHEAD));
    // Even with the largest weight the order may be the same.
    first(now, end, is_changed)
        .or_else(|| (order(1 << 60) != order(plugin.ahead_weight)).then_some(end))
}
