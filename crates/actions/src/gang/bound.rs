//! How many members could find room at most once the victims are gone: per node the largest k whose
//! k requests fit FutureIdle with the victims' room. Exact because members only go where tests of
//! objects let them, each into FutureIdle less the members there, which only evictions make grow;
//! other filters are left out, so the bound stays an upper one. What failed trials leave behind:
//! `tries_without_trace`; `first_plan` in `select.rs`. Specification: actions.md 12.2 S6, S15.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;
use vc_framework::Session;
use vc_model::{NodeId, TaskId};
use vc_resource::{Absent, Resource};

use super::Attempt;

/// So many kinds of members are told apart.
const MOST_KINDS: usize = 16;

/// Members of a kind: they ask for the same and may go to the same nodes. Or of several kinds.
#[derive(Clone)]
struct Members {
    /// Each asks for at least so much.
    request: Resource,
    /// Where some may go, by position in the domain.
    open: Vec<bool>,
    /// By sub-job, in the order in which they are placed.
    n_wanted: Vec<i64>,
    /// By position in the domain.
    n_places: Vec<i64>,
    /// Σ of them.
    n_places_total: i64,
}

/// What is known of one domain and one growing list of victims.
pub(super) struct Bound {
    positions: FxHashMap<NodeId, usize>,
    /// FutureIdle without the victims, by position in the domain.
    rooms: Vec<Resource>,
    members: Vec<Members>,
}

impl Bound {
    /// Before anybody is evicted. `None`: trials cannot be spared.
    pub(super) fn new(session: &Session<'_>, attempt: &Attempt, domain: &[NodeId]) -> Option<Self> {
        let members = with_joint(members(session, attempt, domain)?);
        let positions = domain.iter().enumerate().map(|(at, &node)| (node, at)).collect();
        let rooms = domain.iter().map(|&node| session.nodes[node].future_idle()).collect();
        let mut bound = Self { positions, rooms, members };
        for at in 0..bound.rooms.len() {
            bound.count_places(at);
        }
        Some(bound)
    }

    /// These go as well.
    pub(super) fn add(&mut self, session: &Session<'_>, victims: &[TaskId]) {
        for &victim in victims {
            let node = session.tasks[victim].node;
            if let Some(&at) = node.and_then(|node| self.positions.get(&node)) {
                self.rooms[at].add(session.request(victim));
                self.count_places(at);
            }
        }
    }

    /// Whether the first so many sub-jobs cannot all find room.
    pub(super) fn excludes(&self, n_sub_jobs: usize) -> bool {
        self.members.iter().any(|members| {
            let n_wanted: i64 = members.n_wanted.iter().take(n_sub_jobs).sum();
            members.n_places_total < n_wanted
        })
    }

    fn count_places(&mut self, at: usize) {
        for members in self.members.iter_mut().filter(|members| members.open[at]) {
            let n_places = n_places(&members.request, &self.rooms[at]);
            members.n_places_total += n_places - members.n_places[at];
            members.n_places[at] = n_places;
        }
    }
}

fn members(session: &Session<'_>, attempt: &Attempt, domain: &[NodeId]) -> Option<Vec<Members>> {
    let mut members: Vec<Members> = Vec::new();
    let mut known_classes = BTreeSet::new();
    let mut by_serial: BTreeMap<u64, usize> = BTreeMap::new();
    for (sub_job, sheet) in attempt.sheets.iter().enumerate() {
        for &task in &sheet.tasks {
            let class = session.tasks[task].class;
            if known_classes.insert(class) && !session.tries_without_trace(task) {
                return None;
            }
            let new = || {
                let open = session.open_nodes(task, domain);
                let n_sub_jobs = attempt.sheets.len();
                position(
                    &mut members,
                    Members::new(session.request(task).clone(), open, n_sub_jobs),
                )
            };
            let at = *by_serial.entry(session.classes.serial(class)).or_insert_with(new);
            members[at].n_wanted[sub_job] += 1;
        }
    }
    Some(members)
}

/// Where members of this kind stand.
fn position(members: &mut Vec<Members>, new: Members) -> usize {
    let is_alike = |it: &Members| it.request == new.request && it.open == new.open;
    if let Some(known) = members.iter().position(is_alike) {
        return known;
    }
    let is_full = members.len() == MOST_KINDS;
    match members.last_mut().filter(|_| is_full) {
        Some(last) => last.join(&new),
        None => members.push(new),
    }
    members.len() - 1
}

/// The largest members are counted together as well, for they may want the same rooms: the two
/// largest kinds, the three largest, and so on to all of them.
fn with_joint(mut members: Vec<Members>) -> Vec<Members> {
    let size =
        |it: &Members| -> Vec<i64> { it.request.dims().map(|dim| it.request.get(dim)).collect() };
    members.sort_by_cached_key(|it| Reverse(size(it)));
    let joint = members.iter().skip(1).scan(members.first().cloned(), |joint, next| {
        joint.as_mut()?.join(next);
        joint.clone()
    });
    let joint: Vec<Members> = joint.collect();
    members.into_iter().chain(joint).collect()
}

impl Members {
    fn new(request: Resource, open: Vec<bool>, n_sub_jobs: usize) -> Self {
        let (n_wanted, n_places) = (vec![0; n_sub_jobs], vec![0; open.len()]);
        Self { request, open, n_wanted, n_places, n_places_total: 0 }
    }

    /// Before places are counted.
    fn join(&mut self, other: &Self) {
        self.request = self.request.min_dim(&other.request, Absent::Zero);
        self.open.iter_mut().zip(&other.open).for_each(|(open, other)| *open |= other);
        self.n_wanted.iter_mut().zip(&other.n_wanted).for_each(|(sum, other)| *sum += other);
    }
}

/// A dimension of which nothing is requested never lacks. A pod asks for a slot at least.
fn n_places(request: &Resource, room: &Resource) -> i64 {
    let requested = request.dims().filter(|&dim| 0 < request.get(dim));
    let places = requested.map(|dim| room.get(dim).max(0) / request.get(dim));
    // More than any job has members, so that sums over nodes stay far from the bounds of numbers.
    places.min().unwrap_or(i64::from(u16::MAX)).min(i64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use vc_resource::Dim;

    use super::*;

    fn amounts(amounts: &[(Dim, i64)]) -> Resource {
        let mut resource = Resource::default();
        amounts.iter().for_each(|&(dim, amount)| resource.set(dim, amount));
        resource
    }

    #[test]
    fn the_scarcest_dimension_counts() {
        let request = amounts(&[(Dim::CPU, 3), (Dim::PODS, 1)]);
        let cases = [
            (amounts(&[(Dim::CPU, 8), (Dim::PODS, 5)]), 2),
            (amounts(&[(Dim::CPU, 9), (Dim::PODS, 2)]), 2),
            (amounts(&[(Dim::CPU, 2), (Dim::PODS, 5)]), 0),
            (amounts(&[(Dim::CPU, -3), (Dim::PODS, 5)]), 0),
            (amounts(&[(Dim::CPU, 9)]), 0),
            // Nobody asks for memory.
            (amounts(&[(Dim::CPU, 9), (Dim::PODS, 5), (Dim::MEMORY, -1)]), 3),
        ];
        for (room, expected) in cases {
            assert_eq!(n_places(&request, &room), expected, "{room:?}");
        }
    }

    #[test]
    fn what_members_of_several_kinds_ask_for_at_least() {
        let kind = |cpu, pool: usize, n_wanted| Members {
            n_wanted: vec![n_wanted],
            ..Members::new(
                amounts(&[(Dim::CPU, cpu), (Dim::PODS, 1)]),
                (0..3).map(|node| node == pool).collect(),
                1,
            )
        };
        let all = with_joint(vec![kind(2, 0, 5), kind(4, 1, 3), kind(3, 1, 1)]);
        let cpus: Vec<i64> = all.iter().map(|it| it.request.get(Dim::CPU)).collect();
        let n_wanted: Vec<i64> = all.iter().map(|it| it.n_wanted[0]).collect();
        let open: Vec<Vec<bool>> = all.iter().map(|it| it.open.clone()).collect();
        assert_eq!((cpus, n_wanted), (vec![4, 3, 2, 3, 2], vec![3, 1, 5, 4, 9]));
        assert_eq!(open[3..], [vec![false, true, false], vec![true, true, false]]);
        // Too many kinds are as good as one.
        let mut members = Vec::new();
        let at: Vec<usize> = (1..20).map(|cpu| position(&mut members, kind(cpu, 0, 0))).collect();
        assert_eq!((members.len(), at[15], at[18]), (MOST_KINDS, 15, 15));
        assert_eq!(members[15].request.get(Dim::CPU), 16);
    }
}
