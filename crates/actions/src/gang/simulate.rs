//! Trial evictions: the victims are evicted, then every task of the job is placed.
//! Specification: actions.md 9.5.

use std::collections::BTreeSet;

use vc_framework::{Filter, NodeSearch, Room, SessionState, Statement};
use vc_model::{NodeId, TaskId};

use super::GangEvictionAttempt;
use super::domains::{self, EvictionDomain};
use crate::commit_or_discard::NodeRooms;
use crate::sub_job_tasks::SubJobTasks;
use crate::victims::fits;

/// The tasks with their nodes, in placement order.
pub(super) type PlannedNodes = Vec<(TaskId, NodeId)>;

/// Returns a placement of the job in the domain with the victims gone. Nothing is changed
/// afterwards.
///
/// # Errors
/// Number of placed sub-jobs with which the job was not complete.
pub(super) fn simulate(
    statement: &mut Statement<'_, '_>,
    attempt: &GangEvictionAttempt,
    domain: &EvictionDomain,
    victims: &[TaskId],
) -> Result<PlannedNodes, usize> {
    let mut placed = TrialPlacement { places: PlannedNodes::new(), n_short: 0 };
    let done = undone(statement, |statement| {
        evict(statement, attempt, victims)
            && place_all(statement, attempt, domain, room(victims), &mut placed)
    });
    if done { Ok(placed.places) } else { Err(placed.n_short) }
}

/// The placements of a trial.
struct TrialPlacement {
    places: PlannedNodes,
    /// Number of placed sub-jobs with which the job was not complete.
    n_short: usize,
}

/// True if the placements pass all filters with only these victims gone. Nothing is changed
/// afterwards.
pub(super) fn holds(
    statement: &mut Statement<'_, '_>,
    attempt: &GangEvictionAttempt,
    places: &PlannedNodes,
    victims: &[TaskId],
) -> bool {
    undone(statement, |statement| put(statement, attempt, places, victims))
}

/// Returns the room that the placements leave on their nodes, by which most victims are known to be
/// needed without a trial. Empty in the plain evaluator. Nothing is changed afterwards.
pub(super) fn rooms(
    statement: &mut Statement<'_, '_>,
    attempt: &GangEvictionAttempt,
    places: &PlannedNodes,
    victims: &[TaskId],
) -> NodeRooms {
    let Some(mut rooms) = statement.cache::<NodeRooms>() else { return NodeRooms::default() };
    undone(statement, |statement| {
        let done = put(statement, attempt, places, victims);
        if done {
            rooms = NodeRooms::of(statement, places.iter().copied());
        }
        done
    });
    rooms
}

/// Evicts the victims and places the tasks. Returns false if that fails; then nothing is changed.
pub(super) fn apply(
    statement: &mut Statement<'_, '_>,
    attempt: &GangEvictionAttempt,
    places: &PlannedNodes,
    victims: &[TaskId],
) -> bool {
    let mark = statement.mark();
    let done = put(statement, attempt, places, victims);
    if !done {
        statement.roll_back(mark);
    }
    done
}

fn put(
    statement: &mut Statement<'_, '_>,
    attempt: &GangEvictionAttempt,
    places: &PlannedNodes,
    victims: &[TaskId],
) -> bool {
    if !evict(statement, attempt, victims) {
        return false;
    }
    let mut again = |&(task, node): &(TaskId, NodeId)| {
        let fits = may_place(statement, attempt, task) && fits(statement, task, node);
        fits && statement.pipeline(task, node, room(victims)).is_ok()
    };
    places.iter().all(&mut again)
        && statement.plugins().job_pipelined(statement.view(), attempt.job)
}

fn evict(
    statement: &mut Statement<'_, '_>,
    attempt: &GangEvictionAttempt,
    victims: &[TaskId],
) -> bool {
    let mut gone = |&victim: &TaskId| statement.evict(victim, attempt.reason(), None).is_ok();
    // Allocate places nothing for a queue that is still overused.
    victims.iter().all(&mut gone) && !statement.plugins().overused(statement.view(), attempt.queue)
}

fn room(victims: &[TaskId]) -> Room {
    if victims.is_empty() { Room::Releasing } else { Room::Evicted }
}

fn undone(
    statement: &mut Statement<'_, '_>,
    trial: impl FnOnce(&mut Statement<'_, '_>) -> bool,
) -> bool {
    let mark = statement.mark();
    let done = trial(statement);
    statement.roll_back(mark);
    done
}

/// Places the sub-jobs in order until the job is pipelined.
fn place_all(
    statement: &mut Statement<'_, '_>,
    attempt: &GangEvictionAttempt,
    domain: &EvictionDomain,
    room: Room,
    placed: &mut TrialPlacement,
) -> bool {
    let is_in_hyper_nodes = statement.view().is_in_hyper_nodes(attempt.job);
    for entry in &attempt.sub_jobs {
        let is_placed = match is_in_hyper_nodes {
            true => {
                let ids = domains::of_sub_job(statement, attempt.job, entry.sub_job, domain.id);
                ids.into_iter().any(|id| {
                    let nodes = domains::nodes(statement, id);
                    place_sub_job(statement, attempt, entry, &nodes, room, placed)
                })
            }
            false => place_sub_job(statement, attempt, entry, &domain.nodes, room, placed),
        };
        if !is_placed {
            return false;
        }
        if attempt.was_ready || statement.plugins().job_pipelined(statement.view(), attempt.job) {
            break;
        }
        placed.n_short += 1;
    }
    statement.plugins().job_pipelined(statement.view(), attempt.job)
}

/// Places all tasks of a sub-job on these nodes. Returns false if the sub-job does not become
/// pipelined; then nothing is changed.
fn place_sub_job(
    statement: &mut Statement<'_, '_>,
    attempt: &GangEvictionAttempt,
    entry: &SubJobTasks,
    nodes: &[NodeId],
    room: Room,
    placed: &mut TrialPlacement,
) -> bool {
    let (mark, n_placed) = (statement.mark(), placed.places.len());
    let all_placed = entry.tasks.iter().all(|&task| {
        let node = place(statement, attempt, nodes, task, room);
        placed.places.extend(node.map(|node| (task, node)));
        node.is_some()
    });
    let (view, plugins) = (statement.view(), statement.plugins());
    let is_complete = all_placed
        && (plugins.sub_job_ready(view, attempt.job, entry.sub_job)
            || plugins.sub_job_pipelined(view, attempt.job, entry.sub_job));
    if !is_complete {
        statement.roll_back(mark);
        placed.places.truncate(n_placed);
    }
    is_complete
}

/// Places a task on the best node of the domain that passes all filters. Findings that eviction
/// could cure count too, since the victims are gone already.
fn place(
    statement: &mut Statement<'_, '_>,
    attempt: &GangEvictionAttempt,
    domain: &[NodeId],
    task: TaskId,
    room: Room,
) -> Option<NodeId> {
    if !may_place(statement, attempt, task) {
        return None;
    }
    let node = choose(statement, domain, task)?;
    statement.pipeline(task, node, room).is_ok().then_some(node)
}

/// Returns the best node without the unresolvable ones. Cached results cover all nodes of the
/// session, and are used if no unresolvable node is a candidate.
fn choose(statement: &mut Statement<'_, '_>, domain: &[NodeId], task: TaskId) -> Option<NodeId> {
    let errors = statement.records.fit_errors.get(task);
    let unresolvable = errors.map(|errors| errors.unresolvable().iter().collect());
    let unresolvable: Vec<NodeId> = unresolvable.unwrap_or_default();
    if domain.len() == statement.info().nodes.len()
        && statement.filter(task, &unresolvable, Filter::Allocate).feasible.is_empty()
        && let Some(found) = statement.find_cached(task, Filter::Allocate)
    {
        return match found {
            NodeSearch::Node(node) => Some(node),
            NodeSearch::Nowhere(_) => None,
        };
    }
    let unresolvable: BTreeSet<NodeId> = unresolvable.into_iter().collect();
    let nodes = domain.iter().copied().filter(|node| !unresolvable.contains(node));
    let nodes: Vec<NodeId> = nodes.collect();
    let feasible = statement.filter(task, &nodes, Filter::Allocate).feasible;
    statement.choose_by_group(task, &feasible)
}

fn may_place(session: &SessionState<'_>, attempt: &GangEvictionAttempt, task: TaskId) -> bool {
    session.plugins().allocatable(session.view(), attempt.queue, task).is_ok()
        && session.plugins().pre_predicate(session.view(), task).is_ok()
}
