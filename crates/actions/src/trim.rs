//! Spares victims of one node: from most to least important, one without which the task fits as well
//! stays. The plain evaluator evicts everybody else anew for each; the fast one takes a single
//! eviction back. Exact, because the same victims are gone when it is asked whether the task fits,
//! and at the end the statement holds the same evictions in the same order. The engine's `trims`
//! tests compare the two. Specification: actions.md 6.6 with A28, 6.7.3, 7.3 with A38, 12.2 S11.

use vc_framework::{EvictReason, Mark, Session, Statement};
use vc_model::{NodeId, TaskId};

use crate::victims::fits;

/// Those that the task needs on the node of `evicted`, which is all that the statement did after
/// `mark`; afterwards it did no more than to evict these.
pub(crate) fn trimmed(
    statement: &mut Statement<'_, '_>,
    mark: Mark,
    reason: EvictReason,
    (task, node): (TaskId, NodeId),
    evicted: Vec<TaskId>,
) -> Vec<TaskId> {
    if !statement.is_fast() {
        return one_by_one(statement, mark, reason, (task, node), evicted);
    }
    let is_open = |session: &Session<'_>, victim| leaves_room(session, task, node, victim);
    statement.spare(mark, is_open, |session| fits(session, task, node))
}

/// The plain way.
fn one_by_one(
    statement: &mut Statement<'_, '_>,
    mark: Mark,
    reason: EvictReason,
    (task, node): (TaskId, NodeId),
    evicted: Vec<TaskId>,
) -> Vec<TaskId> {
    // The last one evicted was needed by construction; with one victim there is nothing to spare.
    let n_doubtful = evicted.len().saturating_sub(1);
    let mut needed = evicted;
    for index in (0..n_doubtful).rev() {
        if !leaves_room(statement, task, node, needed[index]) {
            continue;
        }
        let mut fewer = needed.clone();
        fewer.remove(index);
        evict_again(statement, mark, reason, (task, &fewer));
        match fits(statement, task, node) {
            true => needed = fewer,
            false => evict_again(statement, mark, reason, (task, &needed)),
        }
    }
    needed
}

fn evict_again(
    statement: &mut Statement<'_, '_>,
    mark: Mark,
    reason: EvictReason,
    (task, victims): (TaskId, &[TaskId]),
) {
    statement.roll_back(mark);
    for &victim in victims {
        let done = statement.evict(victim, reason, Some(task));
        debug_assert!(done.is_ok(), "it was evicted before");
    }
}

/// Whether the node has room for the task also if this victim, which is gone now, stays. If not,
/// nobody need be put back to see that it is needed.
fn leaves_room(session: &Session<'_>, task: TaskId, node: NodeId, victim: TaskId) -> bool {
    let mut room = session.nodes[node].future_idle();
    room.sub(session.request(victim));
    session.request(task).first_lacking(&room, &session.dims).is_none()
}
