//! Dry-run (topology-aware) preemption: several nodes are tried, and the cheapest one is taken.
//! Each try is rolled back in the open statement.
//! Specification: actions.md 6.7, A30-A34.

use std::cmp::Reverse;

use vc_conf::PreemptSettings;
use vc_framework::{Room, Statement};
use vc_model::{NodeId, TaskId};

use super::{Preemptor, ask_for_victims, note_victims};
use crate::victims::{
    evict_until_fits, in_eviction_order, log_made_room, log_try, minimize_victims,
};

/// A node where the task fits once the victims are gone.
#[derive(Clone, Debug)]
struct DryRunCandidate {
    node: NodeId,
    /// Most important first.
    victims: Vec<TaskId>,
}

/// Places the task on the cheapest candidate node. Returns true if the task was placed.
pub(super) fn place_on_cheapest(
    statement: &mut Statement<'_, '_>,
    preemptor: &Preemptor<'_>,
    nodes: &[NodeId],
) -> bool {
    let wanted = n_candidates(&statement.settings.preempt, nodes.len());
    let offset = statement.draw(nodes.len());
    let mut found: Vec<DryRunCandidate> = Vec::new();
    for index in 0..nodes.len() {
        if wanted <= found.len() {
            break;
        }
        let node = nodes[(offset + index) % nodes.len()];
        found.extend(try_node(statement, preemptor, node));
    }
    let Some(best) = choose(statement, found) else { return false };
    apply(statement, preemptor, &best)
}

/// Returns the number of candidates that are enough (actions.md 6.7.1).
fn n_candidates(settings: &PreemptSettings, n_nodes: usize) -> usize {
    let all = i64::try_from(n_nodes).unwrap_or(i64::MAX);
    let share = all.saturating_mul(settings.min_candidate_nodes_percentage) / 100;
    let wanted = share
        .max(settings.min_candidate_nodes_absolute)
        .min(settings.max_candidate_nodes_absolute)
        .min(all);
    usize::try_from(wanted).unwrap_or(0)
}

/// Evicts victims until the task fits, then keeps those running that are not needed, most important
/// first (6.7.3).
fn try_node(
    statement: &mut Statement<'_, '_>,
    preemptor: &Preemptor<'_>,
    node: NodeId,
) -> Option<DryRunCandidate> {
    let task = preemptor.task;
    if statement.plugins().has_standing_findings(statement.view(), task, node) {
        return None;
    }
    let offer = ask_for_victims(statement, preemptor, node);
    note_victims(statement, offer.selection.victims.len());
    if offer.too_few.is_some() {
        return None;
    }
    let mut victims = offer.selection.victims;
    in_eviction_order(statement, task, &mut victims);
    let mark = statement.mark();
    let removed =
        evict_until_fits(statement, (task, node), preemptor.reason(), &victims, |_, _| {});
    let needed = removed.map(|()| minimize_victims(statement, mark, (task, node)));
    statement.roll_back(mark);
    match needed {
        Ok(mut victims) => {
            victims.reverse();
            Some(DryRunCandidate { node, victims })
        }
        Err(cause) => {
            statement.outcome().causes.add(cause);
            None
        }
    }
}

/// Returns the cheapest candidate by the five criteria of actions.md 6.7.4. A smaller key is
/// better.
fn choose(statement: &Statement<'_, '_>, found: Vec<DryRunCandidate>) -> Option<DryRunCandidate> {
    let key = |candidate: &DryRunCandidate| {
        let pods = || candidate.victims.iter().map(|&victim| &statement.tasks[victim]);
        let highest = pods().map(|pod| pod.pod_priority).max();
        // The shift makes every term at least 0, so that more pods never look cheaper.
        let sum: i64 = pods().map(|pod| i64::from(pod.pod_priority) + (1 << 31)).sum();
        let now = statement.info().now_micros;
        let of_highest = pods().filter(|pod| Some(pod.pod_priority) == highest);
        let earliest = of_highest.map(|pod| pod.started_micros.unwrap_or(now)).min();
        let name = statement.nodes[candidate.node].name.clone();
        (highest, sum, candidate.victims.len(), Reverse(earliest), name)
    };
    found.into_iter().min_by_key(key)
}

/// Evicts the victims of the candidate and pipelines the task; on failure nothing is left.
fn apply(
    statement: &mut Statement<'_, '_>,
    preemptor: &Preemptor<'_>,
    best: &DryRunCandidate,
) -> bool {
    let (task, reason, victims) = (preemptor.task, preemptor.reason(), &best.victims);
    let mark = statement.mark();
    statement.outcome().out.n_preemption_attempts += 1;
    victims.iter().for_each(|&victim| log_try(statement, victim, task, reason));
    log_made_room(statement, task, best.node, victims, reason);
    let room = if victims.is_empty() { Room::Releasing } else { Room::Evicted };
    let done = victims.iter().all(|&victim| statement.evict(victim, reason, Some(task)).is_ok())
        && statement.pipeline(task, best.node, room).is_ok();
    if !done {
        statement.roll_back(mark);
    }
    done
}

#[cfg(test)]
mod tests {
    #![allow(non_snake_case)]

    use super::*;

    #[test]
    fn dry__candidates() {
        let of = |percentage, absolute, n_nodes| {
            let settings = PreemptSettings {
                min_candidate_nodes_percentage: percentage,
                min_candidate_nodes_absolute: absolute,
                ..vc_conf::ActionSettings::default().preempt
            };
            n_candidates(&settings, n_nodes)
        };
        for (n_nodes, wanted) in [(0, 0), (5, 1), (200, 20), (5000, 100)] {
            assert_eq!(
                n_candidates(&vc_conf::ActionSettings::default().preempt, n_nodes),
                wanted,
                "{n_nodes}"
            );
        }
        assert_eq!(of(10, 50, 200), 50);
        assert_eq!(of(10, 50, 3), 3);
    }
}
