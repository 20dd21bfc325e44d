//! May a task have others evicted: policy, and the room that was made for it before. Specification: actions.md
//! 6.5, A27.

use vc_framework::Session;
use vc_model::{Code, NodeId, TaskId, TaskStatus};

use super::{fits, passes_filters};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Eligibility {
    Yes,
    /// Nothing needs to be evicted: the nominated node has room (4a).
    PlaceAt(NodeId),
    No(&'static str),
}

/// The table of 6.5.
pub(super) fn eligibility(session: &Session<'_>, task: TaskId) -> Eligibility {
    let row = &session.tasks[task];
    if row.never_preempts {
        return Eligibility::No("preemptionPolicy is Never");
    }
    let Some(name) = &row.nominated_node else { return Eligibility::Yes };
    let Some(node) = session.node(name).filter(|&node| session.nodes[node].present) else {
        return Eligibility::No("the nominated node is not known");
    };
    if passes_filters(session, task, node) {
        return match (fits(session, task, node), victim_leaves(session, task, node)) {
            (true, _) => Eligibility::PlaceAt(node),
            (false, true) => Eligibility::No("victims are terminating on the nominated node"),
            (false, false) => Eligibility::Yes,
        };
    }
    let mut findings = Vec::new();
    session.hooks().predicate(session.ask(), task, node, &mut findings);
    if findings.iter().any(|finding| finding.code == Code::Unresolvable) {
        return Eligibility::Yes;
    }
    if findings.iter().any(|finding| finding.code == Code::Error) {
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
