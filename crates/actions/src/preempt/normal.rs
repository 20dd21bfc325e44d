//! Normal preemption: the first node in score order that works. Specification: actions.md 6.6.

use std::cmp::Ordering;

use vc_framework::{EvictReason, Question, Sample, Session, Statement, klog};
use vc_model::{NodeId, TaskId};

use super::Phase;
use crate::victims::{Try, candidates, in_eviction_order, log_too_few, note_too_few};

/// Places the task on the best of the nodes where evictions make it fit. Whether.
pub(super) fn preempt(
    statement: &mut Statement<'_, '_>,
    task: TaskId,
    nodes: &[NodeId],
    phase: Phase,
) -> bool {
    by_score(statement, task, nodes).into_iter().any(|node| on_node(statement, task, node, phase))
}

/// Best first; equal scores by name.
fn by_score(session: &Session<'_>, task: TaskId, nodes: &[NodeId]) -> Vec<NodeId> {
    let scores = session.hooks().scores(session.ask(), task, nodes);
    let mut scored: Vec<(NodeId, f64)> = nodes.iter().copied().zip(scores).collect();
    scored.sort_by(|l, r| r.1.partial_cmp(&l.1).unwrap_or(Ordering::Equal));
    scored.into_iter().map(|(node, _)| node).collect()
}

fn on_node(statement: &mut Statement<'_, '_>, task: TaskId, node: NodeId, phase: Phase) -> bool {
    let (key, name) = (&statement.tasks[task].key, &statement.nodes[node].name);
    klog!(3; "Considering Task <{key}> on Node <{name}>.");
    let found = candidates(statement, task, node, |victim| phase.admits(statement, task, victim));
    let ruling = statement.ruling(Question::Preempt(task), &found);
    note_victims(statement, &ruling.victims);
    if !statement.victims_suffice(task, node, &ruling.victims) {
        log_too_few(statement, task, node);
        note_too_few(statement, task, node, &found, &ruling);
        return false;
    }
    let mut victims = ruling.victims.clone();
    statement.out.samples.push(Sample::PreemptionAttempt);
    in_eviction_order(statement, task, &mut victims);
    let attempt = Try {
        task,
        node,
        reason: EvictReason::Preempt,
        trim: statement.settings.preempt.trim_victims,
    };
    let Err(cause) = attempt.run(statement, &victims) else { return true };
    // With nobody to evict, who refused the candidates matters more than what was in the way.
    match victims.is_empty() && !found.is_empty() {
        true => note_too_few(statement, task, node, &found, &ruling),
        false => statement.causes.add(cause),
    }
    false
}

/// The gauge of 10.4.
pub(super) fn note_victims(session: &mut Session<'_>, victims: &[TaskId]) {
    let n_victims = u32::try_from(victims.len()).unwrap_or(u32::MAX);
    session.out.samples.push(Sample::PreemptionVictims(n_victims));
}
