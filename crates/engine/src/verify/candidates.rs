//! Checks which pods may be victims, without the votes of plugins. Specification: actions.md 6.2,
//! 6.3, 7.3, 7.4, 8, 9.

use std::collections::BTreeSet;

use vc_framework::{CertifiedVictim, EvictReason, Relation, SessionState};
use vc_model::{JobId, TaskId, TaskStatus};

use super::ResolvedCertificate;

/// Checks every victim. The session must be in the state before the transaction.
pub(super) fn check(
    session: &SessionState<'_>,
    case: &ResolvedCertificate<'_>,
    faults: &mut Vec<String>,
) {
    if case.victims.is_empty() {
        faults.push("nobody is evicted".to_owned());
    }
    if case.victims.iter().collect::<BTreeSet<_>>().len() < case.victims.len() {
        faults.push("a pod is evicted twice".to_owned());
    }
    if case.job.is_none() && case.certificate.action != EvictReason::Shuffle {
        faults.push("there is no job for which somebody is evicted".to_owned());
    }
    let victims = case.victims.iter().zip(&case.certificate.victims).zip(&case.beneficiaries);
    for ((&task, victim), for_task) in victims {
        let mut fault = |text: &str| faults.push(format!("victim {}: {text}", victim.pod));
        of_victim(session, case, task, victim, &mut fault);
        if for_task.is_some_and(|own| !case.placements.iter().any(|&(task, _)| task == own)) {
            fault("the pod for which it goes gets no room");
        }
    }
    of_preemptors(session, case, faults);
}

fn of_victim(
    session: &SessionState<'_>,
    case: &ResolvedCertificate<'_>,
    task: TaskId,
    victim: &CertifiedVictim,
    fault: &mut impl FnMut(&str),
) {
    let row = &session.tasks[task];
    let Some(own) = row.job.filter(|&job| session.jobs[job].pod_group.is_some()) else {
        return fault("it belongs to no PodGroup");
    };
    if !row.preemptable {
        fault("it is not preemptable");
    }
    if row.pause.is_some() {
        fault("its eviction was refused and is not repeated yet");
    }
    if is_protected(session, case, own) {
        fault("its PodGroup is not preemptable");
    }
    if victim.rule.is_none() {
        fault("no plugin was asked");
    }
    if row.node.is_none_or(|node| session.nodes[node].name != victim.node) {
        fault("it does not run there");
    }
    if !status_lets_go(session, case, victim.status) {
        fault("its status keeps it from being a victim");
    }
    if victim.relation != relation(session, case.job, own) {
        fault("its relation to the preemptor is another one");
    }
    if !takes_there(session, case, own, victim.relation) {
        fault("the action takes no victims there");
    }
    if is_as_important(session, case, own) {
        fault("its job is as important as the preemptor");
    }
}

/// True if the PodGroup of the victim protects it from the actions that take bundles.
fn is_protected(session: &SessionState<'_>, case: &ResolvedCertificate<'_>, own: JobId) -> bool {
    let action = case.certificate.action;
    let in_bundles = matches!(action, EvictReason::GangPreempt | EvictReason::GangReclaim);
    let group = session.jobs[own].pod_group.as_ref();
    in_bundles
        && !case.certificate.is_for_quota()
        && group.is_some_and(|group| group.not_preemptable)
}

/// True if the action takes victims of this status.
fn status_lets_go(
    session: &SessionState<'_>,
    case: &ResolvedCertificate<'_>,
    status: TaskStatus,
) -> bool {
    let bound_may_go = match case.certificate.action {
        _ if case.certificate.is_for_quota() => true,
        EvictReason::Preempt | EvictReason::GangPreempt => true,
        EvictReason::Reclaim => session.settings.reclaim.reclaim_bound_tasks,
        EvictReason::GangReclaim | EvictReason::Shuffle => false,
    };
    status == TaskStatus::Running || (status == TaskStatus::Bound && bound_may_go)
}

/// True if the action takes victims of the job `own`, given its relation to the preemptor.
fn takes_there(
    session: &SessionState<'_>,
    case: &ResolvedCertificate<'_>,
    own: JobId,
    relation: Relation,
) -> bool {
    let queue = &session.queues[session.jobs[own].queue];
    match case.certificate.action {
        // With quotas, whichever action comes first may take from both sides (cohort.md B.5.4).
        _ if case.certificate.is_for_quota() => match relation {
            Relation::SameQueue => session.info().sides.own,
            Relation::OtherQueue => session.info().sides.others && queue.reclaimable,
            Relation::OwnJob | Relation::Chosen => false,
        },
        EvictReason::Preempt => match case.is_inside_job() {
            true => relation == Relation::OwnJob,
            false => relation == Relation::SameQueue,
        },
        EvictReason::GangPreempt => relation == Relation::SameQueue,
        EvictReason::Reclaim | EvictReason::GangReclaim => {
            relation == Relation::OtherQueue && queue.reclaimable
        }
        EvictReason::Shuffle => relation == Relation::Chosen,
    }
}

/// True if the victim's job is as important as the preemptor. Within a queue `gangpreempt` takes
/// only from less important jobs.
fn is_as_important(session: &SessionState<'_>, case: &ResolvedCertificate<'_>, own: JobId) -> bool {
    let priority = |job: JobId| session.jobs[job].priority;
    case.certificate.action == EvictReason::GangPreempt
        && !case.certificate.is_for_quota()
        && case.job.is_some_and(|job| priority(job) <= priority(own))
}

fn relation(session: &SessionState<'_>, preemptor: Option<JobId>, victim: JobId) -> Relation {
    let Some(own) = preemptor else { return Relation::Chosen };
    let queue = |job: JobId| session.jobs[job].queue;
    match (own == victim, queue(own) == queue(victim)) {
        (true, _) => Relation::OwnJob,
        (false, true) => Relation::SameQueue,
        (false, false) => Relation::OtherQueue,
    }
}

fn of_preemptors(
    session: &SessionState<'_>,
    case: &ResolvedCertificate<'_>,
    faults: &mut Vec<String>,
) {
    if case.certificate.action == EvictReason::Shuffle {
        if !case.placements.is_empty() {
            faults.push("shuffle places nobody".to_owned());
        }
        return;
    }
    if case.placements.is_empty() {
        faults.push("nobody gets the room".to_owned());
    }
    let rows = || case.placements.iter().map(|(task, _)| &session.tasks[*task]);
    for row in rows() {
        if row.status != TaskStatus::Pending || row.job != case.job {
            faults.push(format!("{}: is no waiting pod of the preemptor", row.key));
        }
    }
    if !case.placements.is_empty() && rows().all(|row| row.never_preempts) {
        faults.push("every pod that gets room has preemptionPolicy Never".to_owned());
    }
    let preempts = case.certificate.action == EvictReason::Preempt;
    let takes_requests = case.victims.iter().any(|&victim| !session.tasks[victim].best_effort);
    if preempts && takes_requests && rows().all(|row| row.best_effort) {
        faults.push("best-effort pods take the room of pods with requests".to_owned());
    }
}
