//! Victim minimization of a statement: victims that became needless by later, larger victims are
//! put back (`trimStatement`).
//! Specification: actions.md 6.6 with A28, 7.3 with A38.
//!
//! Most trials are skipped. Exact because:
//! - a victim counts as needed without a trial only if the placements are known to fail without it;
//! - victims are put back together only if the placements hold without all of them.
//!
//! The verifier of certificates leaves out each victim by itself.

use std::collections::{BTreeMap, BTreeSet};

use vc_framework::{Op, Room, SessionState, Statement};
use vc_model::{NodeId, TaskId};
use vc_resource::Resource;

use super::{CommitTerms, PlacedTask, StatementVictim, arrange};
use crate::victims::{in_eviction_order, obstacle};

/// Upper bound of trial operations: enough for hundreds of victims that are all needed.
const MOST_OPERATIONS: usize = 1 << 16;

/// Returns the victims without those that are not needed, and whether all that remain are needed.
/// Most important victims are put back first. The second part is false if the trials exceed
/// [`MOST_OPERATIONS`]. The statement must be arranged with all victims.
pub(super) fn minimize_victims(
    statement: &mut Statement<'_, '_>,
    terms: &CommitTerms<'_>,
    mut victims: Vec<StatementVictim>,
    placed: &[PlacedTask],
) -> (Vec<StatementVictim>, bool) {
    let Some(first) = placed.first() else { return (victims, true) };
    let mut order: Vec<TaskId> = victims.iter().map(|victim| victim.task).collect();
    in_eviction_order(statement, first.task, &mut order);
    let mut n_left = MOST_OPERATIONS;
    loop {
        let needed = needed(statement, terms, placed);
        let doubtful = order.iter().rev().filter(|task| !needed.contains(task));
        let doubtful: Vec<TaskId> = doubtful.copied().collect();
        let mut minimizer =
            VictimMinimizer { statement, terms, placed, victims: &mut victims, n_left };
        match minimizer.keep_running(&doubtful) {
            None => return (victims, false),
            Some(false) => return (victims, true),
            Some(true) => n_left = minimizer.n_left,
        }
        // Keeping one victim may make another needless, if a filter requires a pod to be there.
        let stay: BTreeSet<TaskId> = victims.iter().map(|victim| victim.task).collect();
        order.retain(|task| stay.contains(task));
        if arrange(statement, terms, &victims, placed).is_err() {
            return (victims, false);
        }
    }
}

/// The state of a minimization.
struct VictimMinimizer<'t, 's, 'c> {
    statement: &'t mut Statement<'s, 'c>,
    terms: &'t CommitTerms<'t>,
    placed: &'t [PlacedTask],
    victims: &'t mut Vec<StatementVictim>,
    /// Evictions and placements that may still be made.
    n_left: usize,
}

impl VictimMinimizer<'_, '_, '_> {
    /// Keeps these pods running if that is possible for all, else tries each half separately. Few
    /// trials then find what is needed and what is not. Returns true if some pod is kept running.
    /// Returns `None` if the trials exceed the bound.
    fn keep_running(&mut self, doubtful: &[TaskId]) -> Option<bool> {
        if doubtful.is_empty() {
            return Some(false);
        }
        self.n_left = self.n_left.checked_sub(self.victims.len() + self.placed.len())?;
        let kept_running: BTreeSet<TaskId> = doubtful.iter().copied().collect();
        let goes = |victim: &&StatementVictim| !kept_running.contains(&victim.task);
        let fewer: Vec<StatementVictim> = self.victims.iter().filter(goes).copied().collect();
        if arrange(self.statement, self.terms, &fewer, self.placed).is_ok() {
            *self.victims = fewer;
            return Some(true);
        }
        if doubtful.len() == 1 {
            return Some(false);
        }
        let (first, rest) = doubtful.split_at(doubtful.len() / 2);
        let (first, rest) = (self.keep_running(first)?, self.keep_running(rest)?);
        Some(first || rest)
    }
}

/// Returns victims without which the placements are known to fail. The statement must be arranged
/// before, and is not arranged afterwards.
///
/// A victim is needed if without it:
/// - its node would lack a resource;
/// - the queue would be overused;
/// - the task for which it was evicted would be blocked at its turn;
/// - the last task would be blocked, when the queue's whole use is counted.
fn needed(
    statement: &mut Statement<'_, '_>,
    terms: &CommitTerms<'_>,
    placed: &[PlacedTask],
) -> BTreeSet<TaskId> {
    let rooms = NodeRooms::of(statement, places(placed));
    let evictions = statement.ops().iter().filter(|op| matches!(op, Op::Evict { .. }));
    let evictions: Vec<Op> = evictions.copied().collect();
    let mut undecided = UndecidedEvictions::default();
    for &op in &evictions {
        match rooms.need(statement, op.task()) {
            true => undecided.needed.extend([op.task()]),
            false => undecided.open.entry(beneficiary(op)).or_default().push(op),
        }
    }
    let Some((last, others)) = placed.split_last().filter(|_| !undecided.open.is_empty()) else {
        return undecided.needed;
    };
    let queue = statement.jobs[terms.job].queue;
    statement.clear();
    // These evictions were made before, so they can be repeated.
    if statement.repeat(&evictions).is_err() {
        return undecided.needed;
    }
    undecided.query_all(statement, |session| session.plugins().overused(session.view(), queue));
    for placed in others {
        undecided.query(statement, Some(placed.task), |session| is_blocked(session, placed));
        if statement.pipeline(placed.task, placed.node, Room::Releasing).is_err() {
            return undecided.needed;
        }
    }
    undecided.query_all(statement, |session| is_blocked(session, last));
    undecided.needed
}

fn is_blocked(session: &SessionState<'_>, placed: &PlacedTask) -> bool {
    obstacle(session, placed.task, placed.node).is_some()
}

fn beneficiary(op: Op) -> Option<TaskId> {
    match op {
        Op::Evict { for_task, .. } => for_task,
        Op::Pipeline { .. } | Op::Allocate { .. } => None,
    }
}

/// Evictions that are not known to be needed, by the task that they are for.
#[derive(Default)]
struct UndecidedEvictions {
    open: BTreeMap<Option<TaskId>, Vec<Op>>,
    needed: BTreeSet<TaskId>,
}

impl UndecidedEvictions {
    /// Marks the evictions for this task as needed without which it is blocked.
    fn query(
        &mut self,
        statement: &mut Statement<'_, '_>,
        for_task: Option<TaskId>,
        is_blocked: impl Fn(&SessionState<'_>) -> bool,
    ) {
        let Some(open) = self.open.get_mut(&for_task) else { return };
        open.retain(|&op| {
            let is_needed = statement.with_back(op, &is_blocked);
            if is_needed {
                self.needed.insert(op.task());
            }
            !is_needed
        });
    }

    fn query_all(
        &mut self,
        statement: &mut Statement<'_, '_>,
        is_blocked: impl Fn(&SessionState<'_>) -> bool,
    ) {
        let all: Vec<Option<TaskId>> = self.open.keys().copied().collect();
        all.into_iter().for_each(|for_task| self.query(statement, for_task, &is_blocked));
    }
}

fn places(placed: &[PlacedTask]) -> impl Iterator<Item = (TaskId, NodeId)> {
    placed.iter().map(|placed| (placed.task, placed.node))
}

/// Per used node: the room that is left, and the sum of requests placed there. With it most victims
/// are known to be needed without a trial.
#[derive(Debug, Default)]
pub(crate) struct NodeRooms(BTreeMap<NodeId, (Resource, Resource)>);

impl NodeRooms {
    /// Computes the rooms. The placements and all evictions must have been made.
    pub(crate) fn of(
        session: &SessionState<'_>,
        placed: impl IntoIterator<Item = (TaskId, NodeId)>,
    ) -> Self {
        let mut rooms: BTreeMap<NodeId, (Resource, Resource)> = BTreeMap::new();
        for (task, node) in placed {
            let left = || session.nodes[node].future_idle();
            let (_, wanted) = rooms.entry(node).or_insert_with(|| (left(), Resource::default()));
            wanted.add(session.request(task));
        }
        Self(rooms)
    }

    /// True if there is no information.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if the victim is on a used node.
    pub(crate) fn concern(&self, session: &SessionState<'_>, victim: TaskId) -> bool {
        session.tasks[victim].node.is_some_and(|node| self.0.contains_key(&node))
    }

    /// True if the node would lack a requested resource without this eviction. The last placement
    /// that requests it then fails.
    pub(crate) fn need(&self, session: &SessionState<'_>, victim: TaskId) -> bool {
        let room = session.tasks[victim].node.and_then(|node| self.0.get(&node));
        let Some((left, wanted)) = room else { return false };
        let request = session.request(victim);
        request.dims().any(|dim| {
            0 < request.get(dim) && 0 < wanted.get(dim) && left.get(dim) < request.get(dim)
        })
    }
}
