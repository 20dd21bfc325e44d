//! Dry-run (topology-aware) preemption: several nodes are tried and the one that costs least is
//! taken. A trial is a part of the open statement that is rolled back. Specification: actions.md
//! 6.7, A30-A34.

use std::cmp::Reverse;

use vc_conf::PreemptSettings;
use vc_framework::{EvictReason, Question, Room, Statement};
use vc_model::{NodeId, TaskId};

use super::Phase;
use super::normal::note_victims;
use crate::trim::trimmed;
use crate::victims::{
    candidates, in_eviction_order, log_made_room, log_too_few, log_try, note_too_few, obstacle,
};

/// A node where the task fits once the victims are gone.
#[derive(Clone, Debug)]
struct Candidate {
    node: NodeId,
    /// Most important first.
    victims: Vec<TaskId>,
}

/// Places the task on the best candidate. Whether there was one.
pub(super) fn preempt(
    statement: &mut Statement<'_, '_>,
    task: TaskId,
    nodes: &[NodeId],
    phase: Phase,
) -> bool {
    let wanted = n_candidates(&statement.settings.preempt, nodes.len());
    let offset = statement.draw(nodes.len());
    let mut found: Vec<Candidate> = Vec::new();
    for index in 0..nodes.len() {
        if wanted <= found.len() {
            break;
        }
        let node = nodes[(offset + index) % nodes.len()];
        found.extend(try_node(statement, task, node, phase));
    }
    let Some(best) = choose(statement, found) else { return false };
    apply(statement, task, &best)
}

/// How many candidates are enough (6.7.1).
fn n_candidates(settings: &PreemptSettings, n_nodes: usize) -> usize {
    let all = i64::try_from(n_nodes).unwrap_or(i64::MAX);
    let share = all.saturating_mul(settings.min_candidate_nodes_percentage) / 100;
    let wanted = share
        .max(settings.min_candidate_nodes_absolute)
        .min(settings.max_candidate_nodes_absolute)
        .min(all);
    usize::try_from(wanted).unwrap_or(0)
}

/// Removes victims until the task fits, then spares those that are not needed, most important first
/// (6.7.3).
fn try_node(
    statement: &mut Statement<'_, '_>,
    task: TaskId,
    node: NodeId,
    phase: Phase,
) -> Option<Candidate> {
    if statement.hooks().has_standing_findings(statement.ask(), task, node) {
        return None;
    }
    let found = candidates(statement, task, node, |victim| phase.admits(statement, task, victim));
    let ruling = statement.ruling(Question::Preempt(task), &found);
    note_victims(statement, ruling.victims.len());
    if !statement.victims_suffice(task, node, &ruling.victims) {
        log_too_few(statement, task, node);
        note_too_few(statement, task, node, &found, &ruling);
        return None;
    }
    let mut victims = ruling.victims;
    in_eviction_order(statement, task, &mut victims);
    let mark = statement.mark();
    let mut removed = Vec::new();
    let mut left = victims.into_iter();
    while let Some(cause) = obstacle(statement, task, node) {
        let Some(victim) = left.next() else {
            statement.roll_back(mark);
            statement.causes.add(cause);
            return None;
        };
        if statement.evict(victim, EvictReason::Preempt, Some(task)).is_ok() {
            removed.push(victim);
        }
    }
    let mut needed = trimmed(statement, mark, EvictReason::Preempt, (task, node), removed);
    statement.roll_back(mark);
    needed.reverse();
    Some(Candidate { node, victims: needed })
}

fn evict_all(statement: &mut Statement<'_, '_>, task: TaskId, victims: &[TaskId]) -> bool {
    let mut evict =
        |&victim: &TaskId| statement.evict(victim, EvictReason::Preempt, Some(task)).is_ok();
    victims.iter().all(&mut evict)
}

/// The five levels of 6.7.4 as one key: smaller is better.
fn choose(statement: &Statement<'_, '_>, found: Vec<Candidate>) -> Option<Candidate> {
    let key = |candidate: &Candidate| {
        let pods = || candidate.victims.iter().map(|&victim| &statement.tasks[victim]);
        let highest = pods().map(|pod| pod.pod_priority).max();
        // The shift makes every term at least 0, so that more pods never look cheaper.
        let sum: i64 = pods().map(|pod| i64::from(pod.pod_priority) + (1 << 31)).sum();
        let now = statement.facts().now_micros;
        let of_highest = pods().filter(|pod| Some(pod.pod_priority) == highest);
        let earliest = of_highest.map(|pod| pod.started_micros.unwrap_or(now)).min();
        let name = statement.nodes[candidate.node].name.clone();
        (highest, sum, candidate.victims.len(), Reverse(earliest), name)
    };
    found.into_iter().min_by_key(key)
}

/// Evicts the victims of the candidate and pipelines the task; on failure nothing is left.
fn apply(statement: &mut Statement<'_, '_>, task: TaskId, best: &Candidate) -> bool {
    let mark = statement.mark();
    statement.out.n_preemption_attempts += 1;
    best.victims.iter().for_each(|&victim| log_try(statement, victim, task, EvictReason::Preempt));
    log_made_room(statement, task, best.node, &best.victims, EvictReason::Preempt);
    let room = if best.victims.is_empty() { Room::Releasing } else { Room::Evicted };
    let done = evict_all(statement, task, &best.victims)
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
                ..PreemptSettings::default()
            };
            n_candidates(&settings, n_nodes)
        };
        for (n_nodes, wanted) in [(0, 0), (5, 1), (200, 20), (5000, 100)] {
            assert_eq!(n_candidates(&PreemptSettings::default(), n_nodes), wanted, "{n_nodes}");
        }
        assert_eq!(of(10, 50, 200), 50);
        assert_eq!(of(10, 50, 3), 3);
    }
}
