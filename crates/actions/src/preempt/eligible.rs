//! May a task have others evicted: policy, and the room that was made for it before. Specification:
//! actions.md 6.5, A27.

use vc_framework::{Cause, Session};
use vc_model::{Code, NodeId, Reason, TaskId};

use crate::victims::{awaits_victims, fits, is_evicted, planned_node};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Eligibility {
    Yes,
    /// Nothing needs to be evicted: the nominated node has room (4a).
    PlaceAt(NodeId),
    /// With what the log says.
    No(&'static str, Cause),
}

/// The table of 6.5, and the guarantee of 11.2.
pub(super) fn eligibility(session: &Session<'_>, task: TaskId) -> Eligibility {
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

/// Rows 2 to 8. A node that is planned without a nomination, because only pods without requests
/// were evicted there or none, counts as a nominated one (11.2).
fn by_node(session: &Session<'_>, task: TaskId) -> Eligibility {
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
    session.hooks().predicate(session.ask(), task, node, &mut findings);
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

/// A pod of lower priority is terminating there because of preemption.
fn victim_leaves(session: &Session<'_>, task: TaskId, node: NodeId) -> bool {
    let own = session.tasks[task].pod_priority;
    let mut others = session.nodes[node].tasks.iter().map(|&other| &session.tasks[other]);
    others.any(|other| is_evicted(other) && other.pod_priority < own)
}
