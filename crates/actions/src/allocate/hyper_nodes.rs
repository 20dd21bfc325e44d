//! One attempt at a job with a network topology: every HyperNode of a tier is tried without
//! committing, and the best one of the lowest tier that suffices is taken.
//! Specification: actions.md 4.5, A17, A18.

mod best_first;

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_framework::{GradientPurpose, GradientQuery, Plan, Session, Statement, WaitCause};
use vc_model::{HyperNodeId, HyperNodeTree, JobId, TaskId};

use super::pending_tasks::PendingTasks;
use super::place::{PlacementOutcome, commit_or_discard, task_loop};
use crate::sub_job_tasks::{SubJobTasks, put_back, sort, take_first};

/// A trial that would make the job ready or pipelined.
struct Trial {
    id: HyperNodeId,
    plan: Plan,
    /// The tasks that are still to be placed after it.
    rest: Vec<SubJobTasks>,
    /// Σ scores of the HyperNodes that the sub-jobs chose first.
    score: f64,
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
        session.note_job_fit(job, WaitCause::Topology, format!("network topology: {problem}"));
    }
    let mut statement = session.statement();
    let mut closest: Option<(usize, HyperNodeId)> = None;
    for group in gradient.groups {
        let best = best_of(&mut statement, job, &pending.sub_jobs, group, &mut closest);
        let Some(best) = best else { continue };
        if repeat(&mut statement, &best.plan) {
            pending.sub_jobs = best.rest;
            let outcome = commit_or_discard(statement, job);
            // The binder may have refused placements that the order of the rest had counted.
            sort(session, job, &mut pending.sub_jobs);
            return outcome;
        }
    }
    if let Some((_, id)) = closest {
        // The pods are told what the closest HyperNode lacks.
        if let Some(problem) = try_in(&mut statement, job, &pending.sub_jobs, id).problem {
            statement.note_job_fit(job, WaitCause::Topology, problem);
        }
    }
    pending.sub_jobs.clear();
    commit_or_discard(statement, job)
}

/// Returns the trial with the highest score in HyperNodes of one tier; of equal ones the first by
/// name. `closest` becomes the HyperNode in which most tasks found a place.
fn best_of(
    statement: &mut Statement<'_, '_>,
    job: JobId,
    pending: &[SubJobTasks],
    group: Vec<HyperNodeId>,
    closest: &mut Option<(usize, HyperNodeId)>,
) -> Option<Trial> {
    let mut best: Option<Trial> = None;
    let mut last_tried = None;
    for (id, bound) in best_first::by_bound(statement, job, pending, group) {
        let leads = |best: &Trial| bound < best.score || bound == best.score && best.id < id;
        if best.as_ref().is_some_and(leads) {
            continue;
        }
        last_tried = Some(id);
        let TrialOutcome { trial, n_placed, .. } = try_in(statement, job, pending, id);
        let is_closer =
            |&(most, at): &(usize, HyperNodeId)| most < n_placed || most == n_placed && id < at;
        if closest.as_ref().is_none_or(is_closer) {
            *closest = Some((n_placed, id));
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
        Some(best) if last_tried != Some(best.id) => try_in(statement, job, pending, best.id).trial,
        best => best,
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
    /// Number of tasks that found a place.
    n_placed: usize,
    /// Why a sub-job may be placed in no HyperNode there; of several the last one.
    problem: Option<String>,
}

/// Tries to place the job in a HyperNode, and undoes it.
fn try_in(
    statement: &mut Statement<'_, '_>,
    job: JobId,
    pending: &[SubJobTasks],
    id: HyperNodeId,
) -> TrialOutcome {
    let n_noted = statement.outcome().out.placed.get(&job).copied();
    let mut sub_jobs = pending.to_vec();
    for &task in sub_jobs.iter().flat_map(|entry| &entry.tasks) {
        statement.forget_trials(task);
    }
    let mut scores: BTreeMap<usize, f64> = BTreeMap::new();
    let mut problem = None;
    while let Some(mut entry) = take_first(statement, job, &mut sub_jobs) {
        let of_sub_job = match place_sub_job(statement, job, &mut entry, id) {
            Ok(score) => score,
            Err(why) => {
                problem = why.or(problem);
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
    let n_placed = statement.ops().len();
    let suffices =
        n_placed != 0 && (plugins.job_ready(view, job) || plugins.job_pipelined(view, job));
    let score = scores.values().sum();
    let trial = suffices.then(|| Trial { id, plan: statement.all(), rest: sub_jobs, score });
    statement.clear();
    match n_noted {
        Some(n_noted) => drop(statement.outcome().out.placed.insert(job, n_noted)),
        None => drop(statement.outcome().out.placed.remove(&job)),
    }
    TrialOutcome { trial, n_placed, problem }
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
) -> Result<f64, Option<String>> {
    let purpose = GradientPurpose::Allocate;
    let query = GradientQuery { job, sub_job: Some(entry.sub_job), under, purpose };
    let gradient = statement.plugins().gradient(statement.view(), query);
    for group in gradient.groups {
        let ranked = best_first::by_score(statement, job, entry.sub_job, group);
        let best =
            ranked.first_that(statement, |statement, id| try_sub_job(statement, job, entry, id));
        let Some((SubJobTrial { plan, rest }, score)) = best else { continue };
        if statement.replay(&plan).is_ok() {
            *entry = rest;
            return Ok(score);
        }
    }
    let sub_job = &statement.jobs[job].sub_jobs[entry.sub_job];
    Err(gradient.problem.map(|problem| match sub_job.policy {
        Some(_) => format!("network topology: sub-group {}: {problem}", sub_job.id),
        None => format!("network topology: {problem}"),
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
        let errors = statement.records.fit_errors.get(&task);
        let Some(errors) = errors.filter(|errors| errors.n_nodes != 0) else { continue };
        let mut errors = (**errors).clone();
        errors.hyper_node = Some(name.clone());
        statement.note_fit_errors(task, errors.into());
    }
}
