//! Searches for victims that lead nowhere, without running them: what each node lacks for the task, as
//! the search would find it. Specification: actions.md 6.6, 10.6, 12.2 S7.

use vc_framework::{
    Ballot, Cause, Failed, Hunt, Keep, Look, Question, Session, Shortfall, Statement,
};
use vc_model::{NodeId, TaskId};

use super::{Phase, normal};
use crate::failures::Outcome;
use crate::victims::{candidates, lacking_without, log_too_few, too_few, vote};

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
    let look = Vain { task, phase, is_told: keep == Keep::Yes };
    let Failed { nowhere } = statement.fails_to_find(task, hunt, keep, &look)?;
    if nowhere {
        return Some(Err("no candidates that fit the pod".into()));
    }
    normal::note_victims(statement, 0);
    Some(Ok(false))
}

/// How a node is looked at.
struct Vain {
    task: TaskId,
    phase: Phase,
    /// What stands is not told again.
    is_told: bool,
}

impl Look for Vain {
    fn vote(&self, session: &Session<'_>, node: NodeId) -> Ballot {
        let may_go = |victim| self.phase.admits(session, self.task, victim);
        let found = candidates(session, self.task, node, may_go);
        vote(session, Question::Preempt(self.task), &found)
    }

    fn shortfall(
        &self,
        session: &Session<'_>,
        node: NodeId,
        ballot: &Ballot,
        has_quota: bool,
    ) -> Option<Shortfall> {
        self.is_told.then(|| normal::log_considered(session, self.task, node));
        let lasts = ballot.lasts;
        if lacking_without(session, self.task, node, ballot.victims.as_ref()).is_some() {
            self.is_told.then(|| log_too_few(session, self.task, node));
            let causes = too_few(session, self.task, node, ballot);
            return Some(Shortfall { causes, n_attempts: 0, lasts });
        }
        if ballot.victims.is_some() {
            return None;
        }
        // The node has room as it is, and something else is in the way.
        let obstacle = obstacle(session, self.task, node, has_quota)?;
        let causes = match ballot.candidates {
            None => vec![(obstacle, 1)],
            Some(_) => too_few(session, self.task, node, ballot),
        };
        Some(Shortfall { causes, n_attempts: 1, lasts })
    }
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
