//! Adds bundle after bundle until the job fits, then gives back what turns out not to be needed.
//! Specification: actions.md 9.5, A41.

use rustc_hash::FxHashSet;
use vc_framework::{Cause, Question, Session, Statement};
use vc_model::{JobId, NodeId, TaskId};
use vc_resource::Resource;

use super::bundles::{Bundle, Kind, bundles};
use super::give_back::needed;
use super::simulate::{Places, apply};
use super::trials::Trials;
use super::{Attempt, order};

/// One domain and what it has without victims.
pub(super) struct Domain {
    pub(super) nodes: Vec<NodeId>,
    /// Σ Idle + Releasing.
    pub(super) room: Resource,
}

impl Domain {
    pub(super) fn of(session: &Session<'_>, nodes: Vec<NodeId>) -> Self {
        let mut room = Resource::default();
        for &node in &nodes {
            room.add(&session.nodes[node].idle);
            room.add(&session.nodes[node].releasing);
        }
        Self { nodes, room }
    }
}

/// A gang that loses what it cannot do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken {
    pub(super) job: JobId,
    pub(super) n_victims: usize,
}

/// Who goes and who comes. The session knows nothing of it yet.
pub(super) struct Choice {
    /// By unit: pods that go together or not at all.
    pub(super) units: Vec<Vec<TaskId>>,
    pub(super) places: Places,
    pub(super) broken: Vec<Broken>,
}

impl Choice {
    /// Evicts and places. Whether it could be done; if not, all is as before.
    pub(super) fn apply(&self, statement: &mut Statement<'_, '_>, attempt: &Attempt) -> bool {
        apply(statement, attempt, &self.places, &self.units.concat())
    }
}

/// The first victims in bundle order with whose room the job fits into the domain, if any.
pub(super) fn select(
    statement: &mut Statement<'_, '_>,
    attempt: &Attempt,
    domain: &Domain,
) -> Option<Choice> {
    let mut trials = Trials::new(attempt, domain);
    // Nobody has to go where room is becoming free anyway.
    if let Some(places) = trials.run(statement) {
        return Some(Choice { units: Vec::new(), places, broken: Vec::new() });
    }
    let offered = offered(statement, attempt, domain);
    let (mut places, taken) = first_plan(statement, &mut trials, &offered)?;
    let mut victims = trials.victims().to_vec();
    if !attempt.settings(statement).trim_boundary_bundle {
        let units = units(taken, &victims);
        return Some(Choice { broken: broken(statement, taken, &units), units, places });
    }
    if let Some(last) = taken.last().filter(|last| last.kind == Kind::Safe) {
        let mut trials = Trials::new(attempt, domain);
        trials.add(statement, &victims[..victims.len() - last.tasks.len()]);
        if let Some(found) = first_part(statement, &mut trials, &last.tasks) {
            places = found;
            victims = trials.victims().to_vec();
        }
    }
    let units = needed(statement, attempt, &places, units(taken, &victims));
    Some(Choice { broken: broken(statement, taken, &units), units, places })
}

fn offered(session: &mut Session<'_>, attempt: &Attempt, domain: &Domain) -> Vec<Bundle> {
    let candidates = candidates(session, attempt, domain);
    let bundles = bundles(session, &candidates, &attempt.need);
    order::allowed(session, attempt, bundles)
}

fn candidates(session: &Session<'_>, attempt: &Attempt, domain: &Domain) -> Vec<TaskId> {
    let tasks = domain.nodes.iter().flat_map(|&node| session.nodes[node].tasks.iter().copied());
    tasks.filter(|&task| attempt.may_lose(session, task)).collect()
}

/// Why there is no choice (10.6).
pub(super) fn why_none(
    session: &mut Session<'_>,
    attempt: &Attempt,
    domain: &Domain,
) -> Vec<Cause> {
    let candidates = candidates(session, attempt, domain);
    if candidates.is_empty() {
        return vec![Cause::NoCandidate];
    }
    let question = Question::Gang(attempt.job, attempt.kind);
    let ruling = session.hooks().ruling(session.ask(), question, &candidates);
    if ruling.victims.is_empty() {
        return vec![Cause::Refused(ruling.refused_by)];
    }
    let offered = offered(session, attempt, domain);
    if offered.is_empty() {
        // Nobody that its gang can spare, and whole gangs may not go or are not whole.
        let breaks = attempt.settings(session).allow_whole_bundle;
        return vec![Cause::Refused(ruling.refused_by.filter(|_| breaks).or(Some("gang")))];
    }
    let lacking_without = |victims: &mut dyn Iterator<Item = TaskId>| {
        let mut room = domain.room.clone();
        victims.for_each(|victim| room.add(session.request(victim)));
        attempt.need.first_lacking(&room, &session.dims)
    };
    let mut victims = offered.iter().flat_map(|bundle| bundle.tasks.iter().copied());
    let Some(dim) = lacking_without(&mut victims) else {
        let row = &session.jobs[attempt.job];
        let have = row.counts.ready() + row.counts.pending_best_effort;
        return vec![Cause::BelowMinimum { have, min: row.min_available }];
    };
    let held = ruling.refused_by.filter(|_| lacking_without(&mut candidates.into_iter()).is_none());
    let held = held.map(|plugin| Cause::Refused(Some(plugin)));
    [Cause::TooFew(dim)].into_iter().chain(held).collect()
}

/// Adds as many bundles as it takes: these bundles, and the places.
fn first_plan<'b>(
    statement: &mut Statement<'_, '_>,
    trials: &mut Trials<'_>,
    offered: &'b [Bundle],
) -> Option<(Places, &'b [Bundle])> {
    for (index, bundle) in offered.iter().enumerate() {
        trials.add(statement, &bundle.tasks);
        let is_last = index + 1 == offered.len();
        // The last one is run in any case: what failed trials leave behind is the last answer of
        // Overused, which a gauge shows, and the last of them has the last word.
        let places = match is_last {
            true => trials.run(statement),
            false => trials.run_unless_vain(statement),
        };
        if let Some(places) = places {
            return Some((places, &offered[..=index]));
        }
    }
    None
}

/// Adds as many pods as it takes, but not the last one: with all of them there is a plan already.
/// Whatever the trials leave behind, those that follow have the last word.
fn first_part(
    statement: &mut Statement<'_, '_>,
    trials: &mut Trials<'_>,
    bundle: &[TaskId],
) -> Option<Places> {
    let (_, others) = bundle.split_last()?;
    others.iter().find_map(|&victim| {
        trials.add(statement, &[victim]);
        trials.run_unless_vain(statement)
    })
}

/// A pod of a safe bundle is a unit of its own, so is a whole bundle. `victims` may end before the
/// last bundle does.
fn units(taken: &[Bundle], victims: &[TaskId]) -> Vec<Vec<TaskId>> {
    let goes: FxHashSet<TaskId> = victims.iter().copied().collect();
    let mut units = Vec::new();
    for bundle in taken {
        match bundle.kind {
            Kind::Whole => units.push(bundle.tasks.clone()),
            Kind::Safe => {
                let chosen = bundle.tasks.iter().filter(|task| goes.contains(task));
                units.extend(chosen.map(|&task| vec![task]));
            }
        }
    }
    units
}

/// The jobs of whole bundles that go.
fn broken(session: &Session<'_>, taken: &[Bundle], units: &[Vec<TaskId>]) -> Vec<Broken> {
    let goes = |bundle: &&Bundle| bundle.kind == Kind::Whole && units.contains(&bundle.tasks);
    let victims = || units.iter().flatten();
    let n_victims =
        |job: JobId| victims().filter(|&&task| session.tasks[task].job == Some(job)).count();
    let jobs = taken.iter().filter(goes).map(|bundle| bundle.job);
    jobs.map(|job| Broken { job, n_victims: n_victims(job) }).collect()
}
