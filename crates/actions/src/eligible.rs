//! Eligibility of a task for evictions: its policy, and the room that was made before for it or its
//! job.
//! Specification: actions.md 6.5, 11.2, A27.

use vc_framework::{Cause, SessionState};
use vc_model::{Code, NodeId, Reason, TaskId, TaskStatus};

use crate::victims::{fits, is_evicted};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Eligibility {
    Yes,
    /// The nominated node has room, so nothing needs to be evicted (row 4a of the table).
    PlaceAt(NodeId),
    /// The task may not have pods evicted: text for the log, and cause.
    No(&'static str, Cause),
}

/// Returns the eligibility of a task by the table of actions.md 6.5 and the guarantee of 11.2.
pub(crate) fn eligibility(session: &SessionState<'_>, task: TaskId) -> Eligibility {
    if session.tasks[task].never_preempts {
        return Eligibility::No("preemptionPolicy is Never", Cause::PolicyNever);
    }
    let eligibility = by_node(session, task);
    if eligibility != Eligibility::Yes {
        return eligibility;
    }
    match awaits_victims(session, task) {
        Some(node) => {
            let why = "victims are terminating on a planned node of the job";
            Eligibility::No(why, Cause::AwaitsVictims(node))
        }
        None => Eligibility::Yes,
    }
}

/// Evaluates rows 2 to 8 of the table. A planned node without a nomination counts as a nominated
/// node (11.2). It has no nomination if no pod with a request was evicted there.
fn by_node(session: &SessionState<'_>, task: TaskId) -> Eligibility {
    let nominated = session.tasks[task].nominated_node.as_ref();
    let node = match nominated {
        Some(name) => session.node(name).filter(|&node| session.nodes[node].present),
        None => planned_node(session, task),
    };
    let Some(node) = node else {
        return match nominated {
            Some(_) => {
                let why = "the nominated node is not known";
                Eligibility::No(why, Cause::Filter(Reason::Text(why)))
            }
            None => Eligibility::Yes,
        };
    };
    if fits(session, task, node) {
        return Eligibility::PlaceAt(node);
    }
    let mut findings = Vec::new();
    session.plugins().predicate(session.view(), task, node, &mut findings);
    let found = |code: Code| findings.iter().any(|finding| finding.code == code);
    if found(Code::Unresolvable) {
        return Eligibility::Yes;
    }
    if let Some(finding) = findings.iter().find(|finding| finding.code == Code::Error) {
        let cause = Cause::Filter(finding.reason.clone());
        return Eligibility::No("the nominated node cannot be judged", cause);
    }
    match victim_leaves(session, task, node) {
        true => {
            let why = "victims are terminating on the nominated node";
            Eligibility::No(why, Cause::AwaitsVictims(node))
        }
        false => Eligibility::Yes,
    }
}

/// True if an evicted pod of lower priority is terminating on the node.
fn victim_leaves(session: &SessionState<'_>, task: TaskId, node: NodeId) -> bool {
    let own = session.tasks[task].pod_priority;
    let mut others = session.nodes[node].tasks.iter().map(|&other| &session.tasks[other]);
    others.any(|other| is_evicted(other) && other.pod_priority < own)
}

/// Returns the node that the job's eviction hold plans for the task.
pub(crate) fn planned_node(session: &SessionState<'_>, task: TaskId) -> Option<NodeId> {
    let row = &session.tasks[task];
    let node =
        session.node(session.eviction_holds.of(session, row.job?)?.planned.get(&row.uid)?)?;
    session.nodes[node].present.then_some(node)
}

/// Returns a planned node of a Pending task of the job on which victims of the job are still
/// terminating. Filters that see those pods may refuse the task, which is no reason to evict more
/// (11.2).
pub(crate) fn awaits_victims(session: &SessionState<'_>, task: TaskId) -> Option<NodeId> {
    let job = session.tasks[task].job?;
    let claim = session.eviction_holds.of(session, job)?;
    // After a restart the victims are unknown, but the pods are marked as preempted.
    let forgotten = claim.victims.is_empty();
    let is_victim = |&other: &TaskId| {
        let row = &session.tasks[other];
        let ours = claim.victims.contains(&row.uid) || (forgotten && row.preempted);
        row.status == TaskStatus::Releasing && ours
    };
    let pending = |member: &TaskId| session.tasks[*member].status == TaskStatus::Pending;
    let members = session.jobs[job].tasks.iter().copied().filter(pending);
    let mut planned = members.filter_map(|member| planned_node(session, member));
    planned.find(|&node| session.nodes[node].tasks.iter().any(is_victim))
}
