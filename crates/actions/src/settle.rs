//! The last look at a statement that evicts, before it is committed: with all victims gone every
//! placement must still hold, and nobody goes in vain. Specification: actions.md 2.4, 6.6 with A28,
//! 7.3 with A38, A29.

use std::collections::{BTreeMap, BTreeSet};

use vc_framework::{
    Cause, Claimed, EvictReason, Op, Refused, Room, Session, Statement, Unit, klog,
};
use vc_model::{JobId, NodeId, Reason, TaskId};
use vc_resource::Resource;

use crate::victims::{in_eviction_order, obstacle};

/// Evictions and placements that are made to find out who can be spared in the end: enough for
/// hundreds of victims of whom none can.
const MOST_OPERATIONS: usize = 1 << 16;

/// Which victims are spared in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trim {
    /// None; the certificate claims nothing.
    Off,
    /// Those that their task did not need when it was placed (A28, A38); this is done before.
    PerTask,
    /// Also those that later, larger victims of the statement made needless.
    Statement,
}

impl Trim {
    pub(crate) fn of(trim_victims: bool, trim_statement: bool) -> Self {
        match (trim_victims, trim_statement) {
            (false, _) => Self::Off,
            (true, false) => Self::PerTask,
            (true, true) => Self::Statement,
        }
    }
}

/// What a statement must fulfil.
pub(crate) struct Terms<'f> {
    /// The job that it is for.
    pub(crate) job: JobId,
    /// The name of the action.
    pub(crate) action: &'static str,
    /// Whether what is placed is worth the evictions.
    pub(crate) is_enough: &'f dyn Fn(&Session<'_>) -> bool,
    pub(crate) trim: Trim,
}

#[derive(Clone, Copy, Debug)]
struct Victim {
    task: TaskId,
    reason: EvictReason,
    for_task: Option<TaskId>,
}

#[derive(Clone, Copy, Debug)]
struct Placed {
    task: TaskId,
    node: NodeId,
    room: Room,
}

/// Commits what fulfils the terms, else undoes it. Whether it was committed. A statement that evicts
/// nobody and that idle nodes can hold is allocate's business (A29).
pub(crate) fn settle(mut statement: Statement<'_, '_>, terms: &Terms<'_>) -> bool {
    // Also where nobody votes JobPipelined the job got nothing then, and is to be told why (10.6).
    if statement.is_empty() {
        statement.discard();
        return false;
    }
    if !(terms.is_enough)(&statement) {
        let cause = below_minimum(&statement, terms.job);
        statement.causes.note_job(terms.job, terms.action, cause);
        statement.discard();
        return false;
    }
    let minimal = match certify(&mut statement, terms) {
        Ok(minimal) => minimal,
        Err(cause) => {
            klog!(3; "Evictions for Job <{}> would not help: {}",
                statement.jobs[terms.job].key, cause.text(&statement));
            statement.causes.note_job(terms.job, terms.action, cause);
            statement.discard();
            return false;
        }
    };
    // The job gets nothing here, so that the causes noted for its other tasks stay.
    if !statement.evicts() && statement.fits_idle_nodes() {
        statement.discard();
        return false;
    }
    statement.causes.served(terms.job);
    statement.commit_as(&Claimed { job: Some(terms.job), minimal, ..Claimed::default() })
}

fn below_minimum(session: &Session<'_>, job: JobId) -> Cause {
    let row = &session.jobs[job];
    let have = row.counts.ready() + row.counts.waiting() + row.counts.pending_best_effort;
    Cause::BelowMinimum { have, min: row.min_available }
}

/// Once all victims are gone the placements must hold, one after the other, for that is how the
/// claim pass makes them; and allocate must look at the queue at all. What the result is minimal in.
///
/// # Errors
/// What is in the way. Whatever the answer, the statement is to be discarded then.
fn certify(statement: &mut Statement<'_, '_>, terms: &Terms<'_>) -> Result<Option<Unit>, Cause> {
    let minimal = (terms.trim != Trim::Off).then_some(Unit::Pod);
    if !statement.evicts() {
        return Ok(minimal);
    }
    let (victims, placed) = contents(statement);
    let as_it_was = statement.all();
    arrange(statement, terms, &victims, &placed)?;
    if terms.trim == Trim::Statement {
        let (victims, all_needed) = least(statement, terms, victims, &placed);
        arrange(statement, terms, &victims, &placed)?;
        return Ok(minimal.filter(|_| all_needed));
    }
    statement.clear();
    let again = statement.replay(&as_it_was);
    again.map_err(|refused| Cause::Filter(Reason::Owned(refused.to_string().into())))?;
    Ok(minimal)
}

fn contents(statement: &Statement<'_, '_>) -> (Vec<Victim>, Vec<Placed>) {
    let (mut victims, mut placed) = (Vec::new(), Vec::new());
    for op in statement.ops() {
        match *op {
            Op::Evict { task, reason, for_task, .. } => {
                victims.push(Victim { task, reason, for_task });
            }
            Op::Pipeline { task, node, room } => placed.push(Placed { task, node, room }),
            Op::Allocate { .. } => {}
        }
    }
    (victims, placed)
}

/// Evicts exactly these and then places the tasks one by one.
///
/// # Errors
/// Why one does not fit, or that it is not enough.
fn arrange(
    statement: &mut Statement<'_, '_>,
    terms: &Terms<'_>,
    victims: &[Victim],
    placed: &[Placed],
) -> Result<(), Cause> {
    let refused = |refused: Refused| Cause::Filter(Reason::Owned(refused.to_string().into()));
    statement.clear();
    for victim in victims {
        statement.evict(victim.task, victim.reason, victim.for_task).map_err(refused)?;
    }
    let queue = statement.jobs[terms.job].queue;
    if statement.hooks().overused(statement.ask(), queue) {
        return Err(Cause::QueueFull(queue));
    }
    let freed = freed(statement, victims);
    for placed in placed {
        let room = room(&freed, placed);
        if let Some(cause) = obstacle(statement, placed.task, placed.node) {
            return Err(cause);
        }
        statement.pipeline(placed.task, placed.node, room).map_err(refused)?;
    }
    match (terms.is_enough)(statement) {
        true => Ok(()),
        false => Err(below_minimum(statement, terms.job)),
    }
}

/// Nodes on which victims leave room.
fn freed(session: &Session<'_>, victims: &[Victim]) -> BTreeSet<NodeId> {
    let rows = victims.iter().map(|victim| &session.tasks[victim.task]);
    rows.filter(|row| !row.best_effort).filter_map(|row| row.node).collect()
}

/// Room made by an eviction stays that only as long as one of the victims there is needed (6.6
/// step 6).
fn room(freed: &BTreeSet<NodeId>, placed: &Placed) -> Room {
    match placed.room == Room::Evicted && freed.contains(&placed.node) {
        true => Room::Evicted,
        false => Room::Releasing,
    }
}

/// No victim of the result can be left out, which is what the second part says: after
/// [`MOST_OPERATIONS`] nobody else is tried. The most important ones are spared first. The statement
/// must be arranged with all of them.
fn least(
    statement: &mut Statement<'_, '_>,
    terms: &Terms<'_>,
    mut victims: Vec<Victim>,
    placed: &[Placed],
) -> (Vec<Victim>, bool) {
    let Some(first) = placed.first() else { return (victims, true) };
    let mut order: Vec<TaskId> = victims.iter().map(|victim| victim.task).collect();
    in_eviction_order(statement, first.task, &mut order);
    let mut n_left = MOST_OPERATIONS;
    loop {
        let needed = needed(statement, terms, placed);
        let doubtful = order.iter().rev().filter(|task| !needed.contains(task));
        let doubtful: Vec<TaskId> = doubtful.copied().collect();
        let mut trial = Trial { statement, terms, placed, victims: &mut victims, n_left };
        match trial.spare(&doubtful) {
            None => return (victims, false),
            Some(false) => return (victims, true),
            Some(true) => n_left = trial.n_left,
        }
        // To spare one may make another needless, where a filter wants a pod to be there.
        let stay: BTreeSet<TaskId> = victims.iter().map(|victim| victim.task).collect();
        order.retain(|task| stay.contains(task));
        if arrange(statement, terms, &victims, placed).is_err() {
            return (victims, false);
        }
    }
}

/// Victims that are tried to be spared.
struct Trial<'t, 's, 'c> {
    statement: &'t mut Statement<'s, 'c>,
    terms: &'t Terms<'t>,
    placed: &'t [Placed],
    victims: &'t mut Vec<Victim>,
    /// Evictions and placements that may still be made.
    n_left: usize,
}

impl Trial<'_, '_, '_> {
    /// Spares these if they can be spared together, else one half after the other, as far as each can
    /// be: what cannot be spared is found with few trials, and so is what can. Whether somebody was;
    /// `None`: too much would be tried.
    fn spare(&mut self, doubtful: &[TaskId]) -> Option<bool> {
        if doubtful.is_empty() {
            return Some(false);
        }
        self.n_left = self.n_left.checked_sub(self.victims.len() + self.placed.len())?;
        let spared: BTreeSet<TaskId> = doubtful.iter().copied().collect();
        let goes = |victim: &&Victim| !spared.contains(&victim.task);
        let fewer: Vec<Victim> = self.victims.iter().filter(goes).copied().collect();
        if arrange(self.statement, self.terms, &fewer, self.placed).is_ok() {
            *self.victims = fewer;
            return Some(true);
        }
        if doubtful.len() == 1 {
            return Some(false);
        }
        let (first, rest) = doubtful.split_at(doubtful.len() / 2);
        let (first, rest) = (self.spare(first)?, self.spare(rest)?);
        Some(first || rest)
    }
}

/// Victims without which the placements are known to fail, without making them all again for each:
/// a node would be short of something, the queue would be overused, or something is in the way of the
/// task that the victim was evicted for, when its turn comes, or of the last one, when all that the
/// queue gets is in use. The statement must be arranged; it is not any more then.
fn needed(
    statement: &mut Statement<'_, '_>,
    terms: &Terms<'_>,
    placed: &[Placed],
) -> BTreeSet<TaskId> {
    let rooms = Rooms::of(statement, places(placed));
    let evictions = statement.ops().iter().filter(|op| matches!(op, Op::Evict { .. }));
    let evictions: Vec<Op> = evictions.copied().collect();
    let mut doubts = Doubts::default();
    for &op in &evictions {
        match rooms.need(statement, op.task()) {
            true => doubts.needed.extend([op.task()]),
            false => doubts.open.entry(beneficiary(op)).or_default().push(op),
        }
    }
    let Some((last, others)) = placed.split_last().filter(|_| !doubts.open.is_empty()) else {
        return doubts.needed;
    };
    let queue = statement.jobs[terms.job].queue;
    statement.clear();
    // What was done before can be done again.
    if statement.repeat(&evictions).is_err() {
        return doubts.needed;
    }
    doubts.ask_all(statement, |session| session.hooks().overused(session.ask(), queue));
    for placed in others {
        doubts.ask(statement, Some(placed.task), |session| is_blocked(session, placed));
        if statement.pipeline(placed.task, placed.node, Room::Releasing).is_err() {
            return doubts.needed;
        }
    }
    doubts.ask_all(statement, |session| is_blocked(session, last));
    doubts.needed
}

fn is_blocked(session: &Session<'_>, placed: &Placed) -> bool {
    obstacle(session, placed.task, placed.node).is_some()
}

fn beneficiary(op: Op) -> Option<TaskId> {
    match op {
        Op::Evict { for_task, .. } => for_task,
        Op::Pipeline { .. } | Op::Allocate { .. } => None,
    }
}

/// Evictions of which it is not known yet whether they are needed, by the task that they are for.
#[derive(Default)]
struct Doubts {
    open: BTreeMap<Option<TaskId>, Vec<Op>>,
    needed: BTreeSet<TaskId>,
}

impl Doubts {
    /// Those for this task are needed if it is blocked without one of them.
    fn ask(
        &mut self,
        statement: &mut Statement<'_, '_>,
        for_task: Option<TaskId>,
        is_blocked: impl Fn(&Session<'_>) -> bool,
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

    fn ask_all(
        &mut self,
        statement: &mut Statement<'_, '_>,
        is_blocked: impl Fn(&Session<'_>) -> bool,
    ) {
        let all: Vec<Option<TaskId>> = self.open.keys().copied().collect();
        all.into_iter().for_each(|for_task| self.ask(statement, for_task, &is_blocked));
    }
}

fn places(placed: &[Placed]) -> impl Iterator<Item = (TaskId, NodeId)> {
    placed.iter().map(|placed| (placed.task, placed.node))
}

/// What is left on the nodes that are used, and what is asked for there: with it most victims are
/// seen to be needed without trying.
#[derive(Debug, Default)]
pub(crate) struct Rooms(BTreeMap<NodeId, (Resource, Resource)>);

impl Rooms {
    /// The placements and all evictions have been made.
    pub(crate) fn of(
        session: &Session<'_>,
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

    /// Nothing is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the victim leaves a node that is used.
    pub(crate) fn concern(&self, session: &Session<'_>, victim: TaskId) -> bool {
        session.tasks[victim].node.is_some_and(|node| self.0.contains_key(&node))
    }

    /// The node would be short of something that is asked for there. Then the last placement that
    /// asks for it fails.
    pub(crate) fn need(&self, session: &Session<'_>, victim: TaskId) -> bool {
        let room = session.tasks[victim].node.and_then(|node| self.0.get(&node));
        let Some((left, wanted)) = room else { return false };
        let request = session.request(victim);
        request.dims().any(|dim| {
            0 < request.get(dim) && 0 < wanted.get(dim) && left.get(dim) < request.get(dim)
        })
    }
}
