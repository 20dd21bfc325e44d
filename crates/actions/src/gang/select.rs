//! Selects victims: adds bundles until the job fits, then gives back what is not needed.
//! Specification: actions.md 9.5, A41.

use rustc_hash::FxHashSet;
use vc_framework::{Cause, Question, SessionState, Statement};
use vc_model::{JobId, TaskId};

use super::bundles::{Bundle, BundleKind, bundles};
use super::domains::EvictionDomain;
use super::give_back::needed;
use super::simulate::{PlannedNodes, apply};
use super::victim_trials::VictimTrials;
use super::{GangEvictionAttempt, order};

/// A gang that falls below its minimum by evictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BrokenGang {
    pub(super) job: JobId,
    pub(super) n_victims: usize,
}

/// Victims and placements that were chosen but not yet applied.
pub(super) struct VictimChoice {
    /// Victims by unit. The pods of a unit are evicted together or not at all.
    pub(super) units: Vec<Vec<TaskId>>,
    pub(super) places: PlannedNodes,
    pub(super) broken: Vec<BrokenGang>,
}

impl VictimChoice {
    /// Evicts the victims and places the tasks. Returns false if that fails; then nothing is
    /// changed.
    pub(super) fn apply(
        &self,
        statement: &mut Statement<'_, '_>,
        attempt: &GangEvictionAttempt,
    ) -> bool {
        apply(statement, attempt, &self.places, &self.units.concat())
    }
}

/// Returns the first victims in bundle order with whose room the job fits into the domain. Returns
/// `None` if it never fits.
pub(super) fn select(
    statement: &mut Statement<'_, '_>,
    attempt: &GangEvictionAttempt,
    domain: &EvictionDomain,
) -> Option<VictimChoice> {
    let mut trials = VictimTrials::new(attempt, domain);
    // Room that is becoming free may suffice without evictions.
    if let Some(places) = trials.run(statement) {
        return Some(VictimChoice { units: Vec::new(), places, broken: Vec::new() });
    }
    let offered = offered(statement, attempt, domain);
    let (mut places, taken) = first_plan(statement, &mut trials, &offered)?;
    let mut victims = trials.victims().to_vec();
    if !attempt.settings(statement).trim_boundary_bundle {
        let units = units(taken, &victims);
        return Some(VictimChoice { broken: broken(statement, taken, &units), units, places });
    }
    if let Some(last) = taken.last().filter(|last| last.kind == BundleKind::Safe) {
        let mut trials = VictimTrials::new(attempt, domain);
        trials.add(statement, &victims[..victims.len() - last.tasks.len()]);
        if let Some(found) = first_part(statement, &mut trials, &last.tasks) {
            places = found;
            victims = trials.victims().to_vec();
        }
    }
    let units = needed(statement, attempt, &places, units(taken, &victims));
    Some(VictimChoice { broken: broken(statement, taken, &units), units, places })
}

fn offered(
    session: &mut Statement<'_, '_>,
    attempt: &GangEvictionAttempt,
    domain: &EvictionDomain,
) -> Vec<Bundle> {
    let candidates = candidates(session, attempt, domain);
    let bundles = bundles(session, &candidates, &attempt.need);
    order::allowed(session, attempt, bundles)
}

/// Returns the candidates of the domain.
pub(super) fn candidates(
    session: &SessionState<'_>,
    attempt: &GangEvictionAttempt,
    domain: &EvictionDomain,
) -> Vec<TaskId> {
    let tasks = domain.nodes.iter().flat_map(|&node| session.nodes[node].tasks.iter().copied());
    tasks.filter(|&task| attempt.may_lose(session, task)).collect()
}

/// Returns the causes of a failed selection (actions.md 10.6).
pub(super) fn why_none(
    session: &mut Statement<'_, '_>,
    attempt: &GangEvictionAttempt,
    domain: &EvictionDomain,
) -> Vec<Cause> {
    let candidates = candidates(session, attempt, domain);
    if candidates.is_empty() {
        return vec![Cause::NoCandidate];
    }
    let question = Question::Gang(attempt.job, attempt.kind);
    let selection = session.plugins().select_victims(session.view(), question, &candidates);
    if selection.victims.is_empty() {
        return vec![Cause::Refused(selection.refused_by)];
    }
    let offered = offered(session, attempt, domain);
    if offered.is_empty() {
        // No gang has surplus pods, and whole gangs may not be evicted or not completely.
        let breaks = attempt.settings(session).allow_whole_bundle;
        return vec![Cause::Refused(selection.refused_by.filter(|_| breaks).or(Some("gang")))];
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
    let held =
        selection.refused_by.filter(|_| lacking_without(&mut candidates.into_iter()).is_none());
    let held = held.map(|plugin| Cause::Refused(Some(plugin)));
    [Cause::TooFew(dim)].into_iter().chain(held).collect()
}

/// Adds bundles until the job fits. Returns the placements and the bundles used.
fn first_plan<'b>(
    statement: &mut Statement<'_, '_>,
    trials: &mut VictimTrials<'_>,
    offered: &'b [Bundle],
) -> Option<(PlannedNodes, &'b [Bundle])> {
    for (index, bundle) in offered.iter().enumerate() {
        trials.add(statement, &bundle.tasks);
        if let Some(places) = trials.run_unless_infeasible(statement) {
            return Some((places, &offered[..=index]));
        }
    }
    None
}

/// Adds pods of a bundle until the job fits, except the last pod: with all of them the plan is
/// known. What these trials leave behind is overwritten by later ones.
fn first_part(
    statement: &mut Statement<'_, '_>,
    trials: &mut VictimTrials<'_>,
    bundle: &[TaskId],
) -> Option<PlannedNodes> {
    let (_, others) = bundle.split_last()?;
    others.iter().find_map(|&victim| {
        trials.add(statement, &[victim]);
        trials.run_unless_infeasible(statement)
    })
}

/// Returns the units of the bundles: each pod of a safe bundle, and each whole bundle. `victims`
/// may end before the last bundle does.
fn units(taken: &[Bundle], victims: &[TaskId]) -> Vec<Vec<TaskId>> {
    let goes: FxHashSet<TaskId> = victims.iter().copied().collect();
    let mut units = Vec::new();
    for bundle in taken {
        match bundle.kind {
            BundleKind::Whole => units.push(bundle.tasks.clone()),
            BundleKind::Safe => {
                let chosen = bundle.tasks.iter().filter(|task| goes.contains(task));
                units.extend(chosen.map(|&task| vec![task]));
            }
        }
    }
    units
}

/// Returns the jobs whose whole bundles are evicted.
fn broken(session: &SessionState<'_>, taken: &[Bundle], units: &[Vec<TaskId>]) -> Vec<BrokenGang> {
    let goes = |bundle: &&Bundle| bundle.kind == BundleKind::Whole && units.contains(&bundle.tasks);
    let victims = || units.iter().flatten();
    let n_victims =
        |job: JobId| victims().filter(|&&task| session.tasks[task].job == Some(job)).count();
    let jobs = taken.iter().filter(goes).map(|bundle| bundle.job);
    jobs.map(|job| BrokenGang { job, n_victims: n_victims(job) }).collect()
}
