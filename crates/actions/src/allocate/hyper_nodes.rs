//! One attempt at a job with a network topology: every HyperNode of a tier is tried without
//! committing, and the best one of the lowest tier that suffices is taken.
//! Specification: actions.md 4.5, A17, A18.

mod best_first;
mod failed_sub_jobs;
mod pruning;

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_framework::{GradientProblem, GradientPurpose, GradientQuery, Plan, Session, Statement};
use vc_model::{Gates, HyperNodeId, HyperNodeTree, JobId, TaskId};

use super::pending_tasks::PendingTasks;
use super::place::{PlacementOutcome, commit_or_discard, may_try, task_loop};
use crate::places::{HyperNodePlaces, count_by_shape};
use crate::sub_job_tasks::{SubJobTasks, put_back, sort, take_first};
use pruning::{NeededPlaces, Pruning};

/// A trial that would make the job ready or pipelined.
struct Trial {
    id: HyperNodeId,
    plan: Plan,
    /// The tasks that are still to be placed after it.
    rest: Vec<SubJobTasks>,
    /// Σ scores of the HyperNodes that the sub-jobs chose first.
    score: f64,
}

/// A trial after which the job is neither ready nor pipelined.
struct FailedTrial {
    id: HyperNodeId,
    /// As in [`TrialOutcome`].
    problem: Option<GradientProblem>,
}

/// Places the job in the best HyperNode of the lowest tier in which it becomes ready or pipelined.
pub(super) fn attempt(
    session: &mut Session<'_>,
    job: JobId,
    pending: &mut PendingTasks,
) -> PlacementOutcome {
    pending.is_clear = false;
    let purpose = GradientPurpose::Allocate;
    let query = GradientQuery { job, sub_job: None, under: HyperNodeTree::ROOT, purpose };
    let gradient = session.plugins().gradient(session.view(), query);
    if let Some(problem) = gradient.problem {
        let text = format!("network topology: {}", problem.text);
        session.note_topology_problem(job, GradientProblem { text, ..problem });
    }
    let mut pruning = Pruning::default();
    let mut statement = session.statement();
    take_gated(&mut statement, job, &mut pending.sub_jobs);
    let mut last_failed: Option<FailedTrial> = None;
    for group in &gradient.groups {
        let best = best_of(&mut statement, job, &pending.sub_jobs, group.clone(), &mut pruning);
        let best = match best {
            Ok(best) => best,
            Err(failed) => {
                last_failed = failed.or(last_failed);
                continue;
            }
        };
        last_failed = None;
        if repeat(&mut statement, &best.plan) {
            pending.sub_jobs = best.rest;
            let outcome = commit_or_discard(statement, job);
            // The binder may have refused placements that the order of the rest had counted.
            sort(session, job, &mut pending.sub_jobs);
            return outcome;
        }
    }
    let candidates = gradient.groups.concat();
    let closest = match pruning.closest(&candidates) {
        Some(id) => Some(id),
        None => closest(&mut statement, &pending.sub_jobs, &candidates),
    };
    if let Some(id) = closest {
        // The pods are told what the closest HyperNode lacks.
        let problem = match last_failed.filter(|failed| failed.id == id) {
            Some(failed) => failed.problem,
            None => try_in(&mut statement, job, &pending.sub_jobs, id, &mut pruning).problem,
        };
        if let Some(problem) = problem {
            statement.note_topology_problem(job, problem);
        }
    }
    pending.sub_jobs.clear();
    commit_or_discard(statement, job)
}

/// Takes out tasks with a gate, which is removed if their queue has room. They would be placed in no
/// trial, and the gate does not depend on where the others go.
fn take_gated(statement: &mut Statement<'_, '_>, job: JobId, pending: &mut Vec<SubJobTasks>) {
    for entry in pending.iter_mut() {
        entry.tasks.retain(|&task| {
            let is_gated = statement.tasks[task].gates != Gates::None;
            if is_gated {
                may_try(statement, job, task);
            }
            !is_gated
        });
    }
    pending.retain(|entry| !entry.tasks.is_empty());
}

/// Returns the HyperNode that comes closest to holding all these tasks, now and by their requests.
/// Of equal ones it is the first candidate.
fn closest(
    statement: &mut Statement<'_, '_>,
    pending: &[SubJobTasks],
    candidates: &[HyperNodeId],
) -> Option<HyperNodeId> {
    if candidates.len() <= 1 {
        return candidates.first().copied();
    }
    let tasks = || pending.iter().flat_map(|entry| &entry.tasks);
    let places = HyperNodePlaces::count(statement, tasks());
    places.closest(candidates, &count_by_shape(statement, tasks()))
}

/// Returns the trial with the highest score in HyperNodes of one tier; of equal ones the first by
/// name.
///
/// # Errors
/// No trial suffices. The error is the last failed trial, or `None` if none was made.
fn best_of(
    statement: &mut Statement<'_, '_>,
    job: JobId,
    pending: &[SubJobTasks],
    mut group: Vec<HyperNodeId>,
    pruning: &mut Pruning,
) -> Result<Trial, Option<FailedTrial>> {
    let mut best: Option<Trial> = None;
    let (mut last_tried, mut last_failed) = (None, None);
    let n_candidates = group.len();
    group.retain(|&id| !pruning.excludes_job(statement, job, id));
    statement.stats().n_pruned_hyper_nodes += (n_candidates - group.len()) as u64;
    for (id, bound) in best_first::by_bound(statement, job, pending, group) {
        let leads = |best: &Trial| bound < best.score || bound == best.score && best.id < id;
        if best.as_ref().is_some_and(leads) {
            statement.stats().n_outscored_hyper_nodes += 1;
            continue;
        }
        if pruning.excludes_job(statement, job, id) {
            statement.stats().n_pruned_hyper_nodes += 1;
            continue;
        }
        last_tried = Some(id);
        let TrialOutcome { trial, problem } = try_in(statement, job, pending, id, pruning);
        if trial.is_none() {
            pruning.note_failure(statement, pending);
            last_failed = Some(FailedTrial { id, problem });
        }
        let is_better = |trial: &Trial| {
            best.as_ref().is_none_or(|best| {
                best.score < trial.score || best.score == trial.score && trial.id < best.id
            })
        };
        best = trial.filter(is_better).or(best);
    }
    match best {
        // What is noted about tasks without a place is that of the chosen HyperNode.
        Some(best) if last_tried != Some(best.id) => {
            let TrialOutcome { trial, problem } = try_in(statement, job, pending, best.id, pruning);
            trial.ok_or(Some(FailedTrial { id: best.id, problem }))
        }
        best => best.ok_or(last_failed),
    }
}

/// Applies a plan again, and counts its placements. Returns false if a placement was refused.
fn repeat(statement: &mut Statement<'_, '_>, plan: &Plan) -> bool {
    if statement.replay(plan).is_err() {
        return false;
    }
    let tasks: Vec<TaskId> = statement.ops().iter().map(|op| op.task()).collect();
    for task in tasks {
        statement.clear_fit_errors(task);
        statement.note_placed(task);
    }
    true
}

/// Outcome of a trial in one HyperNode.
struct TrialOutcome {
    /// The trial, if the job becomes ready or pipelined.
    trial: Option<Trial>,
    /// Why a sub-job may be placed in no HyperNode there; of several the last one, but rather one that
    /// lasts even when HyperNodes are empty.
    problem: Option<GradientProblem>,
}

/// Tries to place the job in a HyperNode, and undoes it.
fn try_in(
    statement: &mut Statement<'_, '_>,
    job: JobId,
    pending: &[SubJobTasks],
    id: HyperNodeId,
    pruning: &mut Pruning,
) -> TrialOutcome {
    let n_noted = statement.outcome().out.placed.get(&job).copied();
    let mut sub_jobs = pending.to_vec();
    for &task in sub_jobs.iter().flat_map(|entry| &entry.tasks) {
        statement.forget_trials(task);
    }
    let mut scores: BTreeMap<usize, f64> = BTreeMap::new();
    let mut problem = None;
    while let Some(mut entry) = take_first(statement, job, &mut sub_jobs) {
        let of_sub_job = match place_sub_job(statement, job, &mut entry, id, pruning) {
            Ok(score) => score,
            Err(why) => {
                let needed = entry.required || statement.jobs[job].policies().is_empty();
                let why = why.map(|why| match needed {
                    true => why,
                    // The job can do without it.
                    false => GradientProblem { field: None, ..why },
                });
                problem = prefer_lasting_problem(why, problem);
                continue;
            }
        };
        scores.entry(entry.sub_job).or_insert(of_sub_job);
        if !entry.tasks.is_empty() {
            put_back(statement, job, &mut sub_jobs, entry);
        }
        if statement.plugins().job_ready(statement.view(), job) {
            break;
        }
    }
    let (view, plugins) = (statement.view(), statement.plugins());
    let suffices =
        !statement.is_empty() && (plugins.job_ready(view, job) || plugins.job_pipelined(view, job));
    let score = scores.values().sum();
    let trial = suffices.then(|| Trial { id, plan: statement.all(), rest: sub_jobs, score });
    statement.clear();
    match n_noted {
        Some(n_noted) => drop(statement.outcome().out.placed.insert(job, n_noted)),
        None => drop(statement.outcome().out.placed.remove(&job)),
    }
    TrialOutcome { trial, problem }
}

/// Returns the problem of which a field of the PodGroup is the reason, or else the newer one.
fn prefer_lasting_problem(
    newer: Option<GradientProblem>,
    older: Option<GradientProblem>,
) -> Option<GradientProblem> {
    let names_field = |problem: &GradientProblem| problem.field.is_some();
    match newer.as_ref().is_some_and(names_field) || !older.as_ref().is_some_and(names_field) {
        true => newer.or(older),
        false => older,
    }
}

/// A trial in which a sub-job becomes ready or pipelined.
struct SubJobTrial {
    plan: Plan,
    rest: SubJobTasks,
}

/// Places tasks of a sub-job in the best HyperNode at or below `under`, until the sub-job is ready.
/// Returns the score of that HyperNode.
///
/// # Errors
/// Nothing was placed; why, if no HyperNode could be tried.
fn place_sub_job(
    statement: &mut Statement<'_, '_>,
    job: JobId,
    entry: &mut SubJobTasks,
    under: HyperNodeId,
    pruning: &mut Pruning,
) -> Result<f64, Option<GradientProblem>> {
    let purpose = GradientPurpose::Allocate;
    let query = GradientQuery { job, sub_job: Some(entry.sub_job), under, purpose };
    let gradient = statement.plugins().gradient(statement.view(), query);
    let needed = NeededPlaces::of(statement, job, entry);
    let mut last_tried = None;
    for group in &gradient.groups {
        let mut remaining = pruning.remaining(&needed, group.clone());
        statement.stats().n_pruned_hyper_nodes += (group.len() - remaining.len()) as u64;
        pruning.failed.exclude(statement, job, entry, &mut remaining);
        let ranked = best_first::by_score(statement, job, entry.sub_job, remaining);
        let mut failed = Vec::new();
        let best = ranked.first_that(statement, |statement, id| {
            if pruning.excludes_sub_group(statement, &needed, id) {
                statement.stats().n_pruned_hyper_nodes += 1;
                return None;
            }
            last_tried = Some(id);
            let trial = try_sub_job(statement, job, entry, id);
            if trial.is_none() {
                failed.push(id);
                pruning.note_failure_of_sub_group(statement, job, entry, &needed);
            }
            trial
        });
        pruning.failed.add(statement, job, entry, failed);
        let Some((SubJobTrial { plan, rest }, score)) = best else { continue };
        if statement.replay(&plan).is_ok() {
            *entry = rest;
            return Ok(score);
        }
    }
    let closest = closest(statement, std::slice::from_ref(entry), &gradient.groups.concat());
    if let Some(id) = closest.filter(|_| closest != last_tried) {
        // The pods are told what the closest HyperNode lacks.
        try_sub_job(statement, job, entry, id);
    }
    let sub_job = &statement.jobs[job].sub_jobs[entry.sub_job];
    let of_sub_group = match sub_job.policy {
        Some(_) => format!("sub-group {}: ", sub_job.id),
        None => String::new(),
    };
    Err(gradient.problem.map(|problem| {
        let text = format!("network topology: {of_sub_group}{}", problem.text);
        GradientProblem { text, ..problem }
    }))
}

/// Tries to place tasks of a sub-job on the nodes of a HyperNode, and undoes it.
fn try_sub_job(
    statement: &mut Statement<'_, '_>,
    job: JobId,
    entry: &SubJobTasks,
    id: HyperNodeId,
) -> Option<SubJobTrial> {
    let tree = statement.info().hyper_nodes.clone();
    entry.tasks.iter().for_each(|&task| statement.forget_trials(task));
    let mark = statement.mark();
    let mut rest = entry.clone();
    let n_placed = task_loop(statement, job, &mut rest, &tree[id].nodes);
    if id != HyperNodeTree::ROOT {
        name_hyper_node(statement, entry, &tree[id].name);
    }
    let (view, plugins) = (statement.view(), statement.plugins());
    let suffices = 0 < n_placed
        && (plugins.sub_job_ready(view, job, entry.sub_job)
            || plugins.sub_job_pipelined(view, job, entry.sub_job));
    let trial = suffices.then(|| SubJobTrial { plan: statement.plan(mark), rest });
    statement.roll_back(mark);
    trial
}

/// Adds the name of the HyperNode to the fit errors of the tasks.
fn name_hyper_node(statement: &mut Statement<'_, '_>, entry: &SubJobTasks, name: &Arc<str>) {
    for &task in &entry.tasks {
        let errors = statement.records.fit_errors.get(task);
        let Some(errors) = errors.filter(|errors| errors.n_nodes != 0) else { continue };
        let mut errors = (**errors).clone();
        errors.hyper_node = Some(name.clone());
        statement.note_fit_errors(task, errors.into());
    }
}
