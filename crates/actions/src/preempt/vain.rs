//! Searches for victims that lead nowhere, without running them: what each node lacks for the task, as
//! the search would find it. Specification: actions.md 6.6, 10.6, 12.2 S7.

use vc_framework::{Cause, Failed, Hunt, Keep, Question, Ruling, Session, Shortfall, Statement};
use vc_model::{NodeId, TaskId};

use super::{Phase, normal};
use crate::failures::Outcome;
use crate::victims::{candidates, log_too_few, too_few};

/// How the search for the task fails, if what is known of the nodes shows that it does; its causes
/// are noted. `None`: it is to be run.
pub(super) fn search(
    statement: &mut Statement<'_, '_>,
    task: TaskId,
    phase: Phase,
    keep: Keep,
) -> Option<Outcome> {
    let hunt = match phase {
        Phase::BetweenJobs => Hunt::BetweenJobs,
        Phase::InsideJob => Hunt::InsideJob,
    };
    let look = |session: &Session<'_>, node: NodeId, has_quota: bool| {
        // What stands is not told again.
        let is_told = keep == Keep::Yes;
        is_told.then(|| normal::log_considered(session, task, node));
        let found = shortfall(session, task, (node, phase), has_quota);
        let lacks_room = |found: &&Shortfall| is_told && found.n_attempts == 0;
        found.iter().filter(lacks_room).for_each(|_| log_too_few(session, task, node));
        found
    };
    let Failed { nowhere } = statement.fails_to_find(task, hunt, keep, &look)?;
    if nowhere {
        return Some(Err("no candidates that fit the pod".into()));
    }
    normal::note_victims(statement, 0);
    Some(Ok(false))
}

/// What the node lacks. `None`: the task may find a place there.
fn shortfall(
    session: &Session<'_>,
    task: TaskId,
    (node, phase): (NodeId, Phase),
    has_quota: bool,
) -> Option<Shortfall> {
    let found = candidates(session, task, node, |victim| phase.admits(session, task, victim));
    let question = Question::Preempt(task);
    let ruling = match found.is_empty() {
        true => Ruling::default(),
        false => session.hooks().ruling(session.ask(), question, &found),
    };
    let lasts = found.is_empty() || session.votes_last(question, &ruling);
    if !session.victims_suffice(task, node, &ruling.victims) {
        let causes = too_few(session, task, node, &found, &ruling);
        return Some(Shortfall { causes, n_attempts: 0, lasts });
    }
    if !ruling.victims.is_empty() {
        return None;
    }
    // The node has room as it is, and something else is in the way.
    let obstacle = obstacle(session, task, node, has_quota)?;
    let causes = match found.is_empty() {
        true => vec![(obstacle, 1)],
        false => too_few(session, task, node, &found, &ruling),
    };
    Some(Shortfall { causes, n_attempts: 1, lasts })
}

/// What keeps the task from a node with room for it.
fn obstacle(session: &Session<'_>, task: TaskId, node: NodeId, has_quota: bool) -> Option<Cause> {
    if !has_quota {
        return Some(Cause::QueueFull(session.jobs[session.tasks[task].job?].queue));
    }
    let mut findings = Vec::new();
    session.hooks().predicate(session.ask(), task, node, &mut findings);
    findings.into_iter().next().map(|finding| Cause::Filter(finding.reason))
}
