//! May a task have others evicted: policy, and the room that was made for it before. Specification:
//! actions.md 6.5, A27.

use vc_framework::Session;
use vc_model::{Code, NodeId, TaskId, TaskStatus};

use super::fits;
use crate::victims::{awaits_victims, planned_node};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Eligibility {
    Yes,
    /// Nothing needs to be evicted: the nominated node has room (4a).
    PlaceAt(NodeId),
    No(&'static str),
}

/// The table of 6.5, and the guarantee of 11.2.
pub(super) fn eligibility(session: &Session<'_>, task: TaskId) -> Eligibility {
    if session.tasks[task].never_preempts {
        return Eligibility::No("preemptionPolicy is Never");
    }
    if session.tasks[task].unjudged.is_some() {
        return Eligibility::No("no filter judges what the pod asks for");
    }
    match by_node(session, task) {
        Eligibility::Yes if awaits_victims(session, task) => {
            Eligibility::No("victims are terminating on a planned node of the job")
        }
        eligibility => eligibility,
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
            Some(_) => Eligibility::No("the nominated node is not known"),
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
    if found(Code::Error) {
        return Eligibility::No("the nominated node cannot be judged");
    }
    match victim_leaves(session, task, node) {
        true => Eligibility::No("victims are terminating on the nominated node"),
        false => Eligibility::Yes,
    }
}

/// A pod of lower priority is terminating there because of preemption.
fn victim_leaves(session: &Session<'_>, task: TaskId, node: NodeId) -> bool {
    let own = session.tasks[task].pod_priority;
    session.nodes[node].tasks.iter().map(|&other| &session.tasks[other]).any(|other| {
        other.status == TaskStatus::Releasing
            && (other.preempted || other.evicting)
            && other.pod_priority < own
    })
}
