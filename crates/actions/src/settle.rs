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
    if let Err(cause) = certify(&mut statement, terms) {
        klog!(3; "Evictions for Job <{}> would not help: {}",
            statement.jobs[terms.job].key, cause.text(&statement));
        statement.causes.note_job(terms.job, terms.action, cause);
        statement.discard();
        return false;
    }
    statement.causes.served(terms.job);
    if !statement.evicts() && statement.fits_idle_nodes() {
        statement.discard();
        return false;
    }
    let minimal = (terms.trim != Trim::Off).then_some(Unit::Pod);
    statement.commit_as(&Claimed { job: Some(terms.job), minimal, ..Claimed::default() })
}

fn below_minimum(session: &Session<'_>, job: JobId) -> Cause {
    let row = &session.jobs[job];
    let have = row.counts.ready() + row.counts.waiting() + row.counts.pending_best_effort;
    Cause::BelowMinimum { have, min: row.min_available }
}

/// Once all victims are gone the placements must hold, one after the other, for that is how the
/// claim pass makes them; and allocate must look at the queue at all.
///
/// # Errors
/// What is in the way. Whatever the answer, the statement is to be discarded then.
fn certify(statement: &mut Statement<'_, '_>, terms: &Terms<'_>) -> Result<(), Cause> {
    if !statement.evicts() {
        return Ok(());
    }
    let (victims, placed) = contents(statement);
    let as_it_was = statement.all();
    arrange(statement, terms, &victims, &placed)?;
    if terms.trim == Trim::Statement {
        let victims = minimal(statement, terms, victims, &placed);
        return arrange(statement, terms, &victims, &placed);
    }
    statement.clear();
    let again = statement.replay(&as_it_was);
    again.map_err(|refused| Cause::Filter(Reason::Owned(refused.to_string().into())))
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

/// No victim of the result can be left out. The most important ones are spared first. The
/// statement must be arranged with all of them.
fn minimal(
    statement: &mut Statement<'_, '_>,
    terms: &Terms<'_>,
    mut victims: Vec<Victim>,
    placed: &[Placed],
) -> Vec<Victim> {
    let Some(first) = placed.first() else { return victims };
    let mut order: Vec<TaskId> = victims.iter().map(|victim| victim.task).collect();
    in_eviction_order(statement, first.task, &mut order);
    let mut rooms = Rooms::of(statement, places(placed));
    loop {
        let mut spared_any = false;
        for &task in order.iter().rev() {
            if rooms.need(statement, task) {
                continue;
            }
            let fewer: Vec<Victim> =
                victims.iter().copied().filter(|victim| victim.task != task).collect();
            if fewer.len() < victims.len() && arrange(statement, terms, &fewer, placed).is_ok() {
                victims = fewer;
                rooms = Rooms::of(statement, places(placed));
                spared_any = true;
            }
        }
        // To spare one may make another needless, where a filter wants a pod to be there.
        if !spared_any {
            return victims;
        }
        let left: BTreeSet<TaskId> = victims.iter().map(|victim| victim.task).collect();
        order.retain(|task| left.contains(task));
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
