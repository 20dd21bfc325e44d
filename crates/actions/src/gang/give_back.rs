//! Gives back what a placement does not need: from most to least important, a unit without which
//! the same placement holds stays. Units that are all elsewhere go back together where a placement
//! that holds without some evictions elsewhere also holds with them (`stands_by_nodes`): then each,
//! asked by itself, would have been given back. Specification: actions.md 9.5, A41.

use vc_framework::Statement;
use vc_model::TaskId;

use super::Attempt;
use super::simulate::{self, Places, holds};
use crate::settle::Rooms;

/// The units without which the placement does not hold.
pub(super) fn needed(
    statement: &mut Statement<'_, '_>,
    attempt: &Attempt,
    places: &Places,
    mut units: Vec<Vec<TaskId>>,
) -> Vec<Vec<TaskId>> {
    let mut rooms = simulate::rooms(statement, attempt, places, &units.concat());
    let mut pace = Pace::Unknown;
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
                let most = pace.most(statement, &rooms, places);
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
                pace.faster();
                if 1 < together.len() {
                    statement.hits.n_returned += together.len() as u64;
                }
                if is_here {
                    rooms = simulate::rooms(statement, attempt, places, &victims);
                }
            }
            false if together.len() <= 1 => n_left = last,
            false => pace.slower(together.len()),
        }
    }
    units
}

/// How many units are given back together.
enum Pace {
    Unknown,
    OneByOne,
    AtMost(usize),
}

impl Pace {
    fn most(&mut self, statement: &Statement<'_, '_>, rooms: &Rooms, places: &Places) -> usize {
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

fn is_needed(statement: &Statement<'_, '_>, rooms: &Rooms, unit: &[TaskId]) -> bool {
    unit.iter().any(|&victim| rooms.need(statement, victim))
}

/// One of them leaves room on a node that is used.
fn is_here(statement: &Statement<'_, '_>, rooms: &Rooms, unit: &[TaskId]) -> bool {
    unit.iter().any(|&victim| rooms.concern(statement, victim))
}

/// The last units that are elsewhere, last one first, up to one of which it is open whether it is
/// needed.
fn elsewhere(
    statement: &Statement<'_, '_>,
    rooms: &Rooms,
    units: &[Vec<TaskId>],
    most: usize,
) -> Vec<usize> {
    let open = (0..units.len()).rev().filter(|&at| !is_needed(statement, rooms, &units[at]));
    open.take_while(|&at| !is_here(statement, rooms, &units[at])).take(most).collect()
}

/// `places` in descending order.
fn without(units: &[Vec<TaskId>], places: &[usize]) -> Vec<Vec<TaskId>> {
    let mut gone = places.iter().rev().copied().peekable();
    let stays = |&(at, _): &(usize, &Vec<TaskId>)| gone.next_if_eq(&at).is_none();
    units.iter().enumerate().filter(stays).map(|(_, unit)| unit.clone()).collect()
}
