//! What accounts have used, as reports and answers show it. Specification: fair-share.md 13.

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_framework::{AccountUse, SessionView};
use vc_model::{JobId, TaskStatus};

use super::Fairshare;

const MICROS_PER_HOUR: f64 = 3_600e6;
/// Weights are in thousandths.
const WEIGHT_ONE: i64 = 1_000;

/// Returns the usage of all accounts by queue and account. Costs a pass over jobs and accounts.
pub(super) fn account_use(plugin: &Fairshare, view: SessionView<'_>) -> Vec<AccountUse> {
    let Some(ledger) = &plugin.ledger else { return Vec::new() };
    let now = view.now_micros();
    let weight = ledger.now_weight();
    let mut n_waiting: BTreeMap<(Arc<str>, Arc<str>), usize> = BTreeMap::new();
    for job in view.all_jobs() {
        let row = &view.cluster.jobs[job];
        if row.is_pending() || 0 < row.counts.of(TaskStatus::Pending) {
            let queue = view.cluster.queues[row.queue].name.clone();
            let account = plugin.arguments.account.of(row).clone();
            *n_waiting.entry((queue, account)).or_default() += 1;
        }
    }
    // By queue: the sums of weights and of usage.
    let mut sums: BTreeMap<&Arc<str>, (f64, f64)> = BTreeMap::new();
    for account in ledger.accounts() {
        let sum = sums.entry(&account.queue).or_default();
        sum.0 += account.weight as f64;
        sum.1 += account.usage.at(weight) as f64;
    }
    let account_use = |account: &super::Account| {
        let rule = plugin.arguments.charge(&account.queue);
        let unit = rule.unit(view.cluster) as f64;
        let hours =
            |usage: i128| ledger.decay.decayed_micros(usage, now) as f64 / MICROS_PER_HOUR / unit;
        let (weights, usages) = sums.get(&account.queue).copied().unwrap_or_default();
        let used = account.usage.at(weight) as f64;
        let level = (account.weight as f64 / weights) / (used / usages);
        let key = (account.queue.clone(), account.name.clone());
        AccountUse {
            charged: rule.name().to_owned(),
            running: account.usage.rate as f64 / unit,
            used_hours: hours(account.usage.at(weight)),
            projected_hours: hours(account.usage.at(plugin.ahead_weight)),
            weight: account.weight as f64 / 1e3,
            level: (0.0 < used).then_some(level),
            n_waiting_jobs: n_waiting.get(&key).copied().unwrap_or_default(),
            queue: key.0,
            account: key.1,
        }
    };
    let mut found: Vec<AccountUse> = ledger.accounts().map(account_use).collect();
    found.sort_by(|l, r| (&l.queue, &l.account).cmp(&(&r.queue, &r.account)));
    found
}

/// Returns what JobOrder compares of the account of a job (FS-20, FS-21, FS-23), as text for answers: its
/// projected usage, what its pods hold, and its weight if that is not 1. The text does not name the account, as
/// a reader of answers may not see it. Returns `None` if the queue of the job is no target.
pub(super) fn order_value(plugin: &Fairshare, view: SessionView<'_>, job: JobId) -> Option<String> {
    let (_, account) = plugin.target(view, job)?;
    let decay = plugin.ledger.as_ref()?.decay;
    let rule = plugin.arguments.charge(&account.queue);
    let unit = rule.unit(view.cluster) as f64;
    let projected = decay.decayed_micros(account.usage.at(plugin.ahead_weight), view.now_micros());
    let hours = projected as f64 / MICROS_PER_HOUR / unit;
    // To a thousandth, without zeros at the end.
    let held = (account.usage.rate.max(0) as f64 / unit * 1e3).round() / 1e3;
    let mut text = format!("{hours:.3} hours of {}, {held} held", rule.name());
    if account.weight != WEIGHT_ONE {
        text.push_str(&format!(", weight {}", account.weight as f64 / 1e3));
    }
    Some(text)
}
