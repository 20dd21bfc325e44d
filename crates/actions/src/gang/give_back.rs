//! Victim minimization for gangs: units that a placement does not need are put back, from most to
//! least important.
//!
//! Units on nodes that the placement does not use are put back together if that is monotone
//! (`stands_by_nodes`). Each of them, tried alone, would have been put back as well.
//!
//! Specification: actions.md 9.5, A41.

use vc_framework::Statement;
use vc_model::TaskId;

use super::GangEvictionAttempt;
use super::simulate::{self, PlannedNodes, holds};
use crate::commit_or_discard::NodeRooms;

/// Returns the units without which the placement does not hold. Keeping one unit may make another
/// needless, if a filter requires a pod to be there. All units are then tried again.
pub(super) fn needed(
    statement: &mut Statement<'_, '_>,
    attempt: &GangEvictionAttempt,
    places: &PlannedNodes,
    mut units: Vec<Vec<TaskId>>,
) -> Vec<Vec<TaskId>> {
    loop {
        let n_units = units.len();
        units = without_needless(statement, attempt, places, units);
        let tasks = places.iter().map(|&(task, _)| task);
        if units.len() == n_units || statement.stands_by_nodes(tasks) {
            return units;
        }
    }
}

/// Puts back each unit without which the placement holds, from most to least important.
fn without_needless(
    statement: &mut Statement<'_, '_>,
    attempt: &GangEvictionAttempt,
    places: &PlannedNodes,
    mut units: Vec<Vec<TaskId>>,
) -> Vec<Vec<TaskId>> {
    let mut rooms = simulate::rooms(statement, attempt, places, &units.concat());
    let mut batch_size = BatchSize::Unknown;
    let mut n_left = units.len();
    while let Some(last) = n_left.checked_sub(1) {
        if is_needed(statement, &rooms, &units[last]) {
            n_left = last;
            continue;
        }
        let is_here = is_here(statement, &rooms, &units[last]);
        let together = match is_here {
            true => vec![last],
            false => {
                let most = batch_size.most(statement, &rooms, places);
                elsewhere(statement, &rooms, &units[..n_left], most)
            }
        };
        let first = together.last().copied().unwrap_or(last);
        let fewer = without(&units, &together);
        let victims = fewer.concat();
        match holds(statement, attempt, places, &victims) {
            true => {
                units = fewer;
                n_left = first;
                batch_size.faster();
                if 1 < together.len() {
                    statement.stats().n_returned += together.len() as u64;
                }
                if is_here {
                    rooms = simulate::rooms(statement, attempt, places, &victims);
                }
            }
            false if together.len() <= 1 => n_left = last,
            false => batch_size.slower(together.len()),
        }
    }
    units
}

/// The number of units that are put back together.
enum BatchSize {
    Unknown,
    OneByOne,
    AtMost(usize),
}

impl BatchSize {
    fn most(
        &mut self,
        statement: &Statement<'_, '_>,
        rooms: &NodeRooms,
        places: &PlannedNodes,
    ) -> usize {
        if let Self::Unknown = self {
            let tasks = places.iter().map(|&(task, _)| task);
            let stands = !rooms.is_empty() && statement.stands_by_nodes(tasks);
            *self = if stands { Self::AtMost(1) } else { Self::OneByOne };
        }
        match self {
            Self::AtMost(most) => *most,
            Self::Unknown | Self::OneByOne => 1,
        }
    }

    fn faster(&mut self) {
        if let Self::AtMost(most) = self {
            *most *= 2;
        }
    }

    fn slower(&mut self, n_refused: usize) {
        if let Self::AtMost(most) = self {
            *most = n_refused / 2;
        }
    }
}

fn is_needed(statement: &Statement<'_, '_>, rooms: &NodeRooms, unit: &[TaskId]) -> bool {
    unit.iter().any(|&victim| rooms.need(statement, victim))
}

/// True if a pod of the unit is on a node that the placement uses.
fn is_here(statement: &Statement<'_, '_>, rooms: &NodeRooms, unit: &[TaskId]) -> bool {
    unit.iter().any(|&victim| rooms.concern(statement, victim))
}

/// Returns the indices of up to `most` units on unused nodes, last one first. It stops at the first
/// undecided unit on a used node.
fn elsewhere(
    statement: &Statement<'_, '_>,
    rooms: &NodeRooms,
    units: &[Vec<TaskId>],
    most: usize,
) -> Vec<usize> {
    let open = (0..units.len()).rev().filter(|&at| !is_needed(statement, rooms, &units[at]));
    open.take_while(|&at| !is_here(statement, rooms, &units[at])).take(most).collect()
}

/// Returns the units without those at `places`, which are in descending order.
fn without(units: &[Vec<TaskId>], places: &[usize]) -> Vec<Vec<TaskId>> {
    let mut gone = places.iter().rev().copied().peekable();
    let stays = |&(at, _): &(usize, &Vec<TaskId>)| gone.next_if_eq(&at).is_none();
    units.iter().enumerate().filter(stays).map(|(_, unit)| unit.clone()).collect()
}
