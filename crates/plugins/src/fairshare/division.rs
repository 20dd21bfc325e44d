//! The enqueue gate: the room of a queue is divided between its accounts by demand, and jobs of an
//! account that holds its part are rejected.
//! Specification: fair-share.md 7, FS-60.

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_framework::SessionView;
use vc_model::{Job, QueueId};

use super::arguments::FairshareArguments;
use super::charge::ChargeRule;
use crate::rules::{capability, min_resources};

/// Charge, demand and part of an account in its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AccountPart {
    pub(super) charge: i128,
    pub(super) demand: i128,
    pub(super) part: i128,
    weight: i128,
}

/// The parts of all accounts, by queue and account.
pub(super) type AccountParts = BTreeMap<QueueId, BTreeMap<Arc<str>, AccountPart>>;

/// Divides the room of each target queue between its accounts. Costs a pass over all jobs.
pub(super) fn divide(
    view: SessionView<'_>,
    arguments: &FairshareArguments,
    weight: impl Fn(&str) -> i64,
) -> AccountParts {
    let mut division = AccountParts::new();
    for id in view.all_jobs() {
        let job = &view.cluster.jobs[id];
        let queue = &view.cluster.queues[job.queue].name;
        if !arguments.is_target(queue) {
            continue;
        }
        let rule = arguments.charge(queue);
        let parts = division.entry(job.queue).or_default();
        let account = arguments.account.of(job);
        let part = parts.entry(account.clone()).or_default();
        part.weight = i128::from(weight(account));
        let charge = charge_of(view, rule, job, |status| status.is_allocated());
        part.charge += charge;
        part.demand += charge + waiting(view, rule, job);
    }
    for (&queue, parts) in &mut division {
        let queue = &view.cluster.queues[queue];
        let rule = arguments.charge(&queue.name);
        let room = capability(queue).map(|capability| rule.of(view.cluster, &capability));
        let total = rule.of(view.cluster, &view.cluster.total_amounts());
        let room = room.filter(|room| 0 < *room).map_or(total, |room| room.min(total));
        fill(parts, room);
    }
    division
}

/// Returns the charge of what a job waits for: its Pending tasks, or its `minResources` as long as
/// it has no pods.
fn waiting(view: SessionView<'_>, rule: &ChargeRule, job: &Job) -> i128 {
    match (job.tasks.is_empty() && job.is_pending(), min_resources(job)) {
        (true, Some(asked)) => rule.of(view.cluster, asked),
        _ => charge_of(view, rule, job, |status| status == vc_model::TaskStatus::Pending),
    }
}

fn charge_of(
    view: SessionView<'_>,
    rule: &ChargeRule,
    job: &Job,
    is_counted: impl Fn(vc_model::TaskStatus) -> bool,
) -> i128 {
    let tasks = job.tasks.iter().filter(|&&task| is_counted(view.cluster.tasks[task].status));
    tasks.map(|&task| rule.of(view.cluster, view.cluster.request(task))).sum()
}

/// Max-min division by weight: nobody gets more than it demands, and what is left goes to the
/// others. Parts are rounded down.
fn fill(parts: &mut BTreeMap<Arc<str>, AccountPart>, mut room: i128) {
    let mut open: Vec<&mut AccountPart> = parts.values_mut().collect();
    while !open.is_empty() {
        let weights: i128 = open.iter().map(|part| part.weight).sum();
        let fair = |part: &AccountPart| room.saturating_mul(part.weight) / weights.max(1);
        if open.iter().all(|part| fair(part) < part.demand) {
            open.iter_mut().for_each(|part| part.part = fair(part));
            return;
        }
        let mut rest = Vec::new();
        let mut given = 0;
        for part in open {
            if part.demand <= room.saturating_mul(part.weight) / weights.max(1) {
                part.part = part.demand;
                given += part.demand;
            } else {
                rest.push(part);
            }
        }
        room = (room - given).max(0);
        open = rest;
    }
}

/// Formats a charge for people.
pub(super) fn amount(charge: i128, rule: &ChargeRule) -> String {
    let unit: i128 = match rule {
        ChargeRule::Resource(name) if name == "memory" => 1,
        ChargeRule::Resource(_) => 1_000,
        ChargeRule::Weighted(_) => 1_000_000,
    };
    let (whole, rest) = (charge / unit, charge % unit * 1_000 / unit);
    match rest {
        0 => whole.to_string(),
        _ => format!("{whole}.{rest:03}").trim_end_matches('0').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(room: i128, of: &[(i128, i128)]) -> Vec<i128> {
        let part = |&(weight, demand)| AccountPart { weight, demand, ..AccountPart::default() };
        let names = (0..of.len()).map(|at| Arc::from(at.to_string()));
        let mut parts: BTreeMap<Arc<str>, AccountPart> = names.zip(of.iter().map(part)).collect();
        fill(&mut parts, room);
        parts.values().map(|part| part.part).collect()
    }

    #[test]
    fn fs_60_room_is_divided_by_demand_and_weight() {
        assert_eq!(parts(12, &[(1, 2), (1, 9), (1, 9)]), [2, 5, 5]);
        assert_eq!(parts(12, &[(2, 9), (1, 9)]), [8, 4]);
        assert_eq!(parts(12, &[(1, 3), (1, 4)]), [3, 4]);
        assert_eq!(parts(0, &[(1, 3)]), [0]);
        assert_eq!(parts(7, &[]), [0; 0]);
    }

    #[test]
    fn fs_60_amounts_are_written_in_pieces() {
        let gpu = ChargeRule::Resource("nvidia.com/gpu".to_owned());
        assert_eq!(amount(8_000, &gpu), "8");
        assert_eq!(amount(8_250, &gpu), "8.25");
        assert_eq!(amount(5, &ChargeRule::Resource("memory".to_owned())), "5");
    }
}
