//! An upper bound of the members that find room once the victims are gone. Per node it is the
//! largest k whose k requests fit FutureIdle with the victims' room.
//!
//! Exact because:
//! - members are placed only on nodes that the tests of node objects allow;
//! - each goes into FutureIdle less the members there, which only evictions increase;
//! - other filters are left out, which keeps the bound an upper one;
//! - failed trials leave nothing else behind (`tries_without_trace`, and `first_plan` in
//!   `select.rs`).
//!
//! Specification: actions.md 12.2 S6, S15.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;
use vc_framework::SessionState;
use vc_model::{NodeId, TaskId};
use vc_resource::{Absent, Resource};

use super::GangEvictionAttempt;
use crate::places::n_places;

/// Upper bound of the number of member classes.
const MOST_KINDS: usize = 16;

/// Members with equal requests and equal open nodes, or the union of several such classes.
#[derive(Clone)]
struct MemberClass {
    /// Lower bound of each member's request.
    request: Resource,
    /// Nodes on which some members may be placed, by position in the domain.
    open: Vec<bool>,
    /// Number of members by sub-job, in placement order.
    n_wanted: Vec<i64>,
    /// Number of members that fit on each node, by position in the domain.
    n_places: Vec<i64>,
    /// Σ of `n_places`.
    n_places_total: i64,
}

/// The bound for one domain and one growing list of victims.
pub(super) struct MemberBound {
    positions: FxHashMap<NodeId, usize>,
    /// FutureIdle without the victims, by position in the domain.
    rooms: Vec<Resource>,
    members: Vec<MemberClass>,
}

impl MemberBound {
    /// Creates the bound before any eviction. Returns `None` if trials cannot be skipped.
    pub(super) fn new(
        session: &SessionState<'_>,
        attempt: &GangEvictionAttempt,
        domain: &[NodeId],
    ) -> Option<Self> {
        let members = with_joint(members(session, attempt, domain)?);
        let positions = domain.iter().enumerate().map(|(at, &node)| (node, at)).collect();
        let rooms = domain.iter().map(|&node| session.nodes[node].future_idle()).collect();
        let mut bound = Self { positions, rooms, members };
        for at in 0..bound.rooms.len() {
            bound.count_places(at);
        }
        Some(bound)
    }

    /// Adds victims.
    pub(super) fn add(&mut self, session: &SessionState<'_>, victims: &[TaskId]) {
        for &victim in victims {
            let node = session.tasks[victim].node;
            if let Some(&at) = node.and_then(|node| self.positions.get(&node)) {
                self.rooms[at].add(session.request(victim));
                self.count_places(at);
            }
        }
    }

    /// True if the first `n_sub_jobs` sub-jobs cannot all find room.
    pub(super) fn excludes(&self, n_sub_jobs: usize) -> bool {
        self.members.iter().any(|members| {
            let n_wanted: i64 = members.n_wanted.iter().take(n_sub_jobs).sum();
            members.n_places_total < n_wanted
        })
    }

    fn count_places(&mut self, at: usize) {
        for members in self.members.iter_mut().filter(|members| members.open[at]) {
            let n_places = n_places(&members.request, |dim| self.rooms[at].get(dim));
            members.n_places_total += n_places - members.n_places[at];
            members.n_places[at] = n_places;
        }
    }
}

fn members(
    session: &SessionState<'_>,
    attempt: &GangEvictionAttempt,
    domain: &[NodeId],
) -> Option<Vec<MemberClass>> {
    let mut members: Vec<MemberClass> = Vec::new();
    let mut known_classes = BTreeSet::new();
    let mut by_serial: BTreeMap<u64, usize> = BTreeMap::new();
    for (sub_job, entry) in attempt.sub_jobs.iter().enumerate() {
        for &task in &entry.tasks {
            let class = session.tasks[task].class;
            if known_classes.insert(class) && !session.tries_without_trace(task) {
                return None;
            }
            let new = || {
                let open = session.open_nodes(task, domain);
                let n_sub_jobs = attempt.sub_jobs.len();
                position(
                    &mut members,
                    MemberClass::new(session.request(task).clone(), open, n_sub_jobs),
                )
            };
            let at = *by_serial.entry(session.classes.shape_id(class)).or_insert_with(new);
            members[at].n_wanted[sub_job] += 1;
        }
    }
    Some(members)
}

/// Returns the index of an equal class of members, and adds it if it is new. If there are too many
/// classes, it is joined with the last one.
fn position(members: &mut Vec<MemberClass>, new: MemberClass) -> usize {
    let is_alike = |it: &MemberClass| it.request == new.request && it.open == new.open;
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

/// Adds the unions of the two largest classes, of the three largest, and so on. Classes may compete
/// for the same room, which a bound per class does not see.
fn with_joint(mut members: Vec<MemberClass>) -> Vec<MemberClass> {
    let size = |it: &MemberClass| -> Vec<i64> {
        it.request.dims().map(|dim| it.request.get(dim)).collect()
    };
    members.sort_by_cached_key(|it| Reverse(size(it)));
    let joint = members.iter().skip(1).scan(members.first().cloned(), |joint, next| {
        joint.as_mut()?.join(next);
        joint.clone()
    });
    let joint: Vec<MemberClass> = joint.collect();
    members.into_iter().chain(joint).collect()
}

impl MemberClass {
    fn new(request: Resource, open: Vec<bool>, n_sub_jobs: usize) -> Self {
        let (n_wanted, n_places) = (vec![0; n_sub_jobs], vec![0; open.len()]);
        Self { request, open, n_wanted, n_places, n_places_total: 0 }
    }

    /// Joins another class into this one. This must happen before nodes are counted.
    fn join(&mut self, other: &Self) {
        self.request = self.request.min_dim(&other.request, Absent::Zero);
        self.open.iter_mut().zip(&other.open).for_each(|(open, other)| *open |= other);
        self.n_wanted.iter_mut().zip(&other.n_wanted).for_each(|(sum, other)| *sum += other);
    }
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
    fn what_members_of_several_kinds_ask_for_at_least() {
        let kind = |cpu, pool: usize, n_wanted| MemberClass {
            n_wanted: vec![n_wanted],
            ..MemberClass::new(
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
