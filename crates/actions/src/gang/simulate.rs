//! Tries out an eviction: the victims go, then every task of the job finds a place. Specification:
//! actions.md 9.5.

use std::collections::BTreeSet;

use vc_framework::{Filter, Found, Room, Session, Statement};
use vc_model::{NodeId, TaskId};

use super::Attempt;
use crate::settle::Rooms;
use crate::victims::fits;

/// Where the tasks go, in the order in which they were placed.
pub(super) type Places = Vec<(TaskId, NodeId)>;

/// How the job fits into the domain without the victims. All is as before.
///
/// # Errors
/// It does not: how many sub-jobs were placed with which it was not complete.
pub(super) fn simulate(
    statement: &mut Statement<'_, '_>,
    attempt: &Attempt,
    domain: &[NodeId],
    victims: &[TaskId],
) -> Result<Places, usize> {
    let mut placed = Placed { places: Places::new(), n_short: 0 };
    let done = undone(statement, |statement| {
        evict(statement, attempt, victims)
            && place_all(statement, attempt, domain, room(victims), &mut placed)
    });
    if done { Ok(placed.places) } else { Err(placed.n_short) }
}

/// What a trial has placed.
struct Placed {
    places: Places,
    /// Sub-jobs with which the job was not complete.
    n_short: usize,
}

/// Whether the same placement passes all filters without these victims. All is as before.
pub(super) fn holds(
    statement: &mut Statement<'_, '_>,
    attempt: &Attempt,
    places: &Places,
    victims: &[TaskId],
) -> bool {
    undone(statement, |statement| put(statement, attempt, places, victims))
}

/// What the placement leaves on its nodes without these victims, by which most of them are seen to
/// be needed without trying. All is as before.
pub(super) fn rooms(
    statement: &mut Statement<'_, '_>,
    attempt: &Attempt,
    places: &Places,
    victims: &[TaskId],
) -> Rooms {
    let mut rooms = Rooms::default();
    undone(statement, |statement| {
        let done = put(statement, attempt, places, victims);
        if done && statement.is_fast() {
            rooms = Rooms::of(statement, places.iter().copied());
        }
        done
    });
    rooms
}

/// Evicts the victims and places the tasks. Whether it could be done; if not, all is as before.
pub(super) fn apply(
    statement: &mut Statement<'_, '_>,
    attempt: &Attempt,
    places: &Places,
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
    attempt: &Attempt,
    places: &Places,
    victims: &[TaskId],
) -> bool {
    if !evict(statement, attempt, victims) {
        return false;
    }
    let mut again = |&(task, node): &(TaskId, NodeId)| {
        let fits = may_place(statement, attempt, task) && fits(statement, task, node);
        fits && statement.pipeline(task, node, room(victims)).is_ok()
    };
    places.iter().all(&mut again) && statement.hooks().job_pipelined(statement.ask(), attempt.job)
}

fn evict(statement: &mut Statement<'_, '_>, attempt: &Attempt, victims: &[TaskId]) -> bool {
    let mut gone = |&victim: &TaskId| statement.evict(victim, attempt.reason(), None).is_ok();
    // A queue that stays overused gets nothing from allocate, whoever goes.
    victims.iter().all(&mut gone) && !statement.hooks().overused(statement.ask(), attempt.queue)
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

/// Sub-jobs in worksheet order, until the job is pipelined.
fn place_all(
    statement: &mut Statement<'_, '_>,
    attempt: &Attempt,
    domain: &[NodeId],
    room: Room,
    placed: &mut Placed,
) -> bool {
    for sheet in &attempt.sheets {
        for &task in &sheet.tasks {
            let Some(node) = place(statement, attempt, domain, task, room) else { return false };
            placed.places.push((task, node));
        }
        let (ask, hooks) = (statement.ask(), statement.hooks());
        let complete = hooks.sub_job_ready(ask, attempt.job, sheet.sub_job)
            || hooks.sub_job_pipelined(ask, attempt.job, sheet.sub_job);
        if !complete {
            return false;
        }
        if attempt.was_ready || hooks.job_pipelined(ask, attempt.job) {
            break;
        }
        placed.n_short += 1;
    }
    statement.hooks().job_pipelined(statement.ask(), attempt.job)
}

/// The best node of the domain that passes all filters, not only those that eviction cannot cure:
/// the victims are gone already.
fn place(
    statement: &mut Statement<'_, '_>,
    attempt: &Attempt,
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

/// Nodes on which eviction cannot help are out. What is remembered speaks of all nodes; mostly none
/// of those would be a candidate.
fn choose(statement: &mut Statement<'_, '_>, domain: &[NodeId], task: TaskId) -> Option<NodeId> {
    let errors = statement.records.fit_errors.get(&task);
    let hopeless = errors.map(|errors| errors.unresolvable().iter().collect());
    let hopeless: Vec<NodeId> = hopeless.unwrap_or_default();
    if domain.len() == statement.facts().nodes.len()
        && statement.filter(task, &hopeless, Filter::Allocate).feasible.is_empty()
        && let Some(found) = statement.find_remembered(task, Filter::Allocate)
    {
        return match found {
            Found::Node(node) => Some(node),
            Found::Nowhere(_) => None,
        };
    }
    let hopeless: BTreeSet<NodeId> = hopeless.into_iter().collect();
    let nodes = domain.iter().copied().filter(|node| !hopeless.contains(node));
    let nodes: Vec<NodeId> = nodes.collect();
    let feasible = statement.filter(task, &nodes, Filter::Allocate).feasible;
    statement.choose_by_group(task, &feasible)
}

fn may_place(session: &Session<'_>, attempt: &Attempt, task: TaskId) -> bool {
    session.hooks().allocatable(session.ask(), attempt.queue, task).is_ok()
        && session.hooks().pre_predicate(session.ask(), task).is_ok()
}
