//! The final check of a statement that evicts: with all victims gone every placement must still
//! hold, and no victim may be useless.
//! Specification: actions.md 2.4, 6.6 with A28, 7.3 with A38, A29.

mod minimize;

use std::collections::BTreeSet;

use vc_framework::{
    Cause, CertificateTerms, EvictReason, Op, OperationRefused, Room, SessionState, Statement,
    Unit, klog,
};
use vc_model::{JobId, NodeId, Reason, TaskId};

use crate::kept_room::find_taken;
use crate::victims::obstacle;
pub(crate) use minimize::NodeRooms;
use minimize::minimize_victims;

/// Which victims that are not needed are put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VictimMinimization {
    /// No victim is put back, and the certificate claims no minimality.
    Off,
    /// Victims that their task did not need when it was placed (A28, A38). The search has put them
    /// back before.
    PerTask,
    /// Also victims that became needless by later, larger victims of the statement.
    Statement,
}

impl VictimMinimization {
    pub(crate) fn of(trim_victims: bool, trim_statement: bool) -> Self {
        match (trim_victims, trim_statement) {
            (false, _) => Self::Off,
            (true, false) => Self::PerTask,
            (true, true) => Self::Statement,
        }
    }
}

/// The conditions for committing a statement.
pub(crate) struct CommitTerms<'f> {
    /// The job that the statement serves.
    pub(crate) job: JobId,
    /// The name of the action.
    pub(crate) action: &'static str,
    /// Returns true if the placements are worth the evictions.
    pub(crate) is_enough: &'f dyn Fn(&SessionState<'_>) -> bool,
    pub(crate) minimization: VictimMinimization,
}

#[derive(Clone, Copy, Debug)]
struct StatementVictim {
    task: TaskId,
    reason: EvictReason,
    for_task: Option<TaskId>,
}

#[derive(Clone, Copy, Debug)]
struct PlacedTask {
    task: TaskId,
    node: NodeId,
    room: Room,
}

/// Commits the statement if it meets the terms, else discards it. Returns true if it was committed.
/// A29: a statement without evictions that idle nodes can hold is left to allocate.
pub(crate) fn commit_or_discard(mut statement: Statement<'_, '_>, terms: &CommitTerms<'_>) -> bool {
    // Without a vote on JobPipelined the job got nothing either, and its causes must stay
    // (actions.md 10.6).
    if statement.is_empty() {
        statement.discard();
        return false;
    }
    if !(terms.is_enough)(&statement) {
        let cause = below_minimum(&statement, terms.job);
        statement.outcome().causes.note_job(terms.job, terms.action, cause);
        statement.discard();
        return false;
    }
    let minimal = match certify(&mut statement, terms) {
        Ok(minimal) => minimal,
        Err(cause) => {
            klog!(3; "Evictions for Job <{}> would not help: {}",
                statement.jobs[terms.job].key, cause.text(&statement));
            statement.outcome().causes.note_job(terms.job, terms.action, cause);
            statement.discard();
            return false;
        }
    };
    // The job gets nothing here, so the causes of its other tasks stay.
    if !statement.evicts() && statement.fits_idle_nodes() {
        statement.discard();
        return false;
    }
    statement.outcome().causes.served(terms.job);
    statement.commit_as(&CertificateTerms {
        job: Some(terms.job),
        minimal,
        ..CertificateTerms::default()
    })
}

fn below_minimum(session: &SessionState<'_>, job: JobId) -> Cause {
    let row = &session.jobs[job];
    let have = row.counts.ready() + row.counts.waiting() + row.counts.pending_best_effort;
    Cause::BelowMinimum { have, min: row.min_available }
}

/// Checks that the placements hold, with as few victims as the terms say, and that they take no
/// room that is kept for pods of other jobs. Returns the unit in which the victims are minimal.
///
/// # Errors
/// What is in the way. The statement has to be discarded then.
fn certify(
    statement: &mut Statement<'_, '_>,
    terms: &CommitTerms<'_>,
) -> Result<Option<Unit>, Cause> {
    let minimal = minimize(statement, terms)?;
    let taken = find_taken(statement, terms.job).filter(|_| statement.evicts());
    taken.map_or(Ok(minimal), |node| Err(Cause::RoomKept(node)))
}

/// Checks that the placements hold one after the other with all victims gone, as the pass for
/// eviction holds will make them. The queue must not be overused, or allocate would skip it.
/// Victims that are not needed are put back, as the terms say. Returns the unit in which the
/// victims are minimal.
///
/// # Errors
/// What is in the way. The statement has to be discarded then.
fn minimize(
    statement: &mut Statement<'_, '_>,
    terms: &CommitTerms<'_>,
) -> Result<Option<Unit>, Cause> {
    let minimal = (terms.minimization != VictimMinimization::Off).then_some(Unit::Pod);
    if !statement.evicts() {
        return Ok(minimal);
    }
    let (victims, placed) = contents(statement);
    let as_it_was = statement.all();
    arrange(statement, terms, &victims, &placed)?;
    if terms.minimization == VictimMinimization::Statement {
        let (victims, all_needed) = minimize_victims(statement, terms, victims, &placed);
        arrange(statement, terms, &victims, &placed)?;
        return Ok(minimal.filter(|_| all_needed));
    }
    statement.clear();
    let again = statement.replay(&as_it_was);
    again.map_err(|refused| Cause::Filter(Reason::Owned(refused.to_string().into())))?;
    Ok(minimal)
}

fn contents(statement: &Statement<'_, '_>) -> (Vec<StatementVictim>, Vec<PlacedTask>) {
    let (mut victims, mut placed) = (Vec::new(), Vec::new());
    for op in statement.ops() {
        match *op {
            Op::Evict { task, reason, for_task, .. } => {
                victims.push(StatementVictim { task, reason, for_task });
            }
            Op::Pipeline { task, node, room } => placed.push(PlacedTask { task, node, room }),
            Op::Allocate { .. } => {}
        }
    }
    (victims, placed)
}

/// Rebuilds the statement: evicts exactly these victims, then places the tasks one by one.
///
/// # Errors
/// Why a task does not fit, or that the placements are not enough.
fn arrange(
    statement: &mut Statement<'_, '_>,
    terms: &CommitTerms<'_>,
    victims: &[StatementVictim],
    placed: &[PlacedTask],
) -> Result<(), Cause> {
    let refused =
        |refused: OperationRefused| Cause::Filter(Reason::Owned(refused.to_string().into()));
    statement.clear();
    for victim in victims {
        statement.evict(victim.task, victim.reason, victim.for_task).map_err(refused)?;
    }
    let queue = statement.jobs[terms.job].queue;
    if statement.plugins().overused(statement.view(), queue) {
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

/// Returns the nodes on which victims free room.
fn freed(session: &SessionState<'_>, victims: &[StatementVictim]) -> BTreeSet<NodeId> {
    let rows = victims.iter().map(|victim| &session.tasks[victim.task]);
    rows.filter(|row| !row.best_effort).filter_map(|row| row.node).collect()
}

/// Returns the kind of room of a placement. It counts as made by eviction only while a victim on
/// the node is needed (actions.md 6.6 step 6).
fn room(freed: &BTreeSet<NodeId>, placed: &PlacedTask) -> Room {
    match placed.room == Room::Evicted && freed.contains(&placed.node) {
        true => Room::Evicted,
        false => Room::Releasing,
    }
}
