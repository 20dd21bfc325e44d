//! Replays a certificate on the state before its transaction. The plugins must grant each victim.
//! With all victims gone, every placement must pass the whole filter stack, and the gang must be
//! complete. With any one unit of victims kept, this must fail.

use std::collections::{BTreeMap, BTreeSet};

use vc_conf::{Config, Switch};
use vc_framework::{
    CertifiedVictim, EvictReason, Question, Room, Session, SessionState, Statement,
};
use vc_model::{Cluster, JobId, NodeId, Reservation, TaskId, TaskStatus};

use super::ResolvedCertificate;

/// The operations of the session before the transaction.
#[derive(Default)]
pub(super) struct EarlierOperations {
    evicted: Vec<TaskId>,
    placed: Vec<ReplayedPlacement>,
}

struct ReplayedPlacement {
    task: TaskId,
    status: TaskStatus,
    node: NodeId,
    /// Reservation of the task. The order of the placements is not recorded, and the first task
    /// decided about shared claims.
    promise: Option<Reservation>,
}

/// Undoes the operations of the session. Pods that are not part of this certificate return to their
/// earlier state.
pub(super) fn rewind(cluster: &mut Cluster, case: &ResolvedCertificate<'_>) -> EarlierOperations {
    let victims: BTreeSet<TaskId> = case.victims.iter().copied().collect();
    let ours: BTreeSet<TaskId> = case.placements.iter().map(|(task, _)| *task).collect();
    let mut promises: BTreeMap<TaskId, Reservation> =
        cluster.tasks.ids().filter_map(|task| Some((task, cluster.promise(task)?))).collect();
    let mut earlier = EarlierOperations::default();
    let tasks: Vec<TaskId> = cluster.tasks.ids().collect();
    for task in tasks {
        let row = &cluster.tasks[task];
        match (row.status, row.node) {
            (status @ (TaskStatus::Pipelined | TaskStatus::Allocated), Some(node)) => {
                cluster.set_task(task, TaskStatus::Pending, None);
                if !ours.contains(&task) {
                    let promise = promises.remove(&task);
                    earlier.placed.push(ReplayedPlacement { task, status, node, promise });
                }
            }
            (TaskStatus::Releasing, Some(_)) if row.hidden => {
                let place = case.victims.iter().position(|&victim| victim == task);
                let before = place.map(|place| case.certificate.victims[place].status);
                cluster.unevict_task(task, before.unwrap_or(TaskStatus::Running));
                // The eviction was sent in this session, which starts again.
                cluster.tasks[task].evicting = false;
                if !victims.contains(&task) {
                    earlier.evicted.push(task);
                }
            }
            _ => {}
        }
    }
    earlier
}

/// Repeats the operations before the transaction, and leaves them in place.
pub(super) fn redo(
    session: &mut Session<'_>,
    earlier: EarlierOperations,
    faults: &mut Vec<String>,
) {
    let mut statement = session.statement();
    for task in earlier.evicted {
        if let Err(refused) = statement.evict(task, EvictReason::Preempt, None) {
            faults.push(format!("an earlier eviction cannot be repeated: {refused}"));
        }
    }
    for ReplayedPlacement { task, status, node, promise } in earlier.placed {
        if let Err(refused) = statement.place_again(task, status, node, promise) {
            faults.push(format!("an earlier placement cannot be repeated: {refused}"));
        }
    }
    statement.keep();
}

/// Checks victims, placements, the gang, and that no victim is needless.
pub(super) fn check(
    session: &mut Session<'_>,
    config: &Config,
    case: &ResolvedCertificate<'_>,
    faults: &mut Vec<String>,
) {
    let mut statement = session.statement();
    grants(&mut statement, case, faults);
    if case.certificate.action == EvictReason::Shuffle {
        return statement.discard();
    }
    for order in [EvictionOrder::AsMade, EvictionOrder::AllGone] {
        statement.clear();
        match fulfil(&mut statement, case, order, &|_| true) {
            Ok(()) => outcome(&statement, config, case, faults),
            Err(why) => faults.push(why),
        }
    }
    if case.certificate.minimal.is_some() && !quota_may_be_reserved(&statement, case) {
        needs(&mut statement, case, faults);
    }
    statement.discard();
}

/// True if a plugin may have reserved quota for a job that waits in another queue (cohort.md B.5.4).
/// The witness does not hold reservations, so a victim whose quota the pod needed would seem
/// needless.
fn quota_may_be_reserved(session: &SessionState<'_>, case: &ResolvedCertificate<'_>) -> bool {
    let own = case.job.map(|job| session.jobs[job].queue);
    let waits_elsewhere = |&job: &JobId| {
        let tasks = &session.jobs[job].tasks;
        Some(session.jobs[job].queue) != own
            && tasks.iter().any(|&task| session.tasks[task].status == TaskStatus::Pending)
    };
    session.plugins().has_targets()
        && (!case.certificate.is_for_quota() || session.info().jobs.iter().any(waits_elsewhere))
}

/// The time at which the victims of a replay are evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EvictionOrder {
    /// Each victim is evicted when the action evicted it.
    AsMade,
    /// All victims are evicted before the first placement, as the pass over eviction holds finds
    /// it.
    AllGone,
}

/// Checks that the plugins grant each victim for the pod that gets its room, once the pods before it
/// have theirs. A plugin may refuse one member of a gang what it grants another. One of two votes
/// must grant a victim: that on all victims for the same pod, as the action asks, or that on the
/// victim alone after those before it. A rule that tests each candidate alone may refuse the second
/// vote (plugins-jobs-queues.md 4.3). The first may be decided by an earlier tier than it was among
/// more candidates.
fn grants(
    statement: &mut Statement<'_, '_>,
    case: &ResolvedCertificate<'_>,
    faults: &mut Vec<String>,
) {
    let certificate = case.certificate;
    let is_judged = certificate.action != EvictReason::Shuffle && !certificate.is_for_quota();
    let places: Vec<usize> = (0..case.victims.len()).collect();
    let vote = |&place: &usize| (case.question(place), certificate.victims[place].before);
    let mut left = case.placements.iter();
    let mut n_placed = 0;
    for together in places.chunk_by(|l, r| vote(l) == vote(r)) {
        let (question, before) = vote(&together[0]);
        for &(task, node) in left.by_ref().take(before.saturating_sub(n_placed)) {
            // A placement that fails is a fault of `fulfil`.
            let _ = statement.pipeline(task, node, Room::Releasing);
        }
        n_placed = n_placed.max(before);
        let victims: Vec<TaskId> = together.iter().map(|&place| case.victims[place]).collect();
        let granted = question
            .filter(|_| is_judged)
            .map_or_else(Vec::new, |question| statement.select_victims(question, &victims).victims);
        for &place in together {
            let (victim, certified) = (case.victims[place], &certificate.victims[place]);
            let is_open = is_judged && !granted.contains(&victim);
            if let Some(by) = is_open.then(|| refusal(statement, question, victim)).flatten() {
                faults.push(format!("victim {}: {by}", certified.pod));
            }
            if let Err(refused) = statement.evict(victim, certificate.action, None) {
                faults.push(format!("victim {}: {refused}", certified.pod));
            }
        }
    }
}

/// Returns why this victim alone is not granted. Returns `None` if it is.
fn refusal(
    statement: &mut Statement<'_, '_>,
    question: Option<Question>,
    victim: TaskId,
) -> Option<String> {
    let Some(question) = question else {
        return Some("for nobody".to_owned());
    };
    let selection = statement.select_victims(question, &[victim]);
    let by = selection.refused_by.unwrap_or("nobody who grants it");
    (selection.victims != [victim]).then(|| format!("refused by {by}"))
}

/// Evicts the victims of the bundles in `goes`, and makes the placements in order.
fn fulfil(
    statement: &mut Statement<'_, '_>,
    case: &ResolvedCertificate<'_>,
    order: EvictionOrder,
    goes: &dyn Fn(usize) -> bool,
) -> Result<(), String> {
    let go = |statement: &mut Statement<'_, '_>, n_placed: usize| {
        for (&victim, certified) in case.victims.iter().zip(&case.certificate.victims) {
            let due = if order == EvictionOrder::AllGone { 0 } else { certified.before };
            if goes(certified.bundle) && due == n_placed {
                let evicted = statement.evict(victim, case.certificate.action, None);
                evicted.map_err(|refused| refused.to_string())?;
            }
        }
        Ok::<(), String>(())
    };
    go(statement, 0)?;
    let queue = case.job.map(|job| statement.jobs[job].queue);
    if order == EvictionOrder::AllGone
        && queue.is_some_and(|queue| statement.plugins().overused(statement.view(), queue))
    {
        return Err("the queue stays overused".to_owned());
    }
    for (place, &(task, node)) in case.placements.iter().enumerate() {
        let why = |why: String| {
            let (pod, node) = (&statement.tasks[task].key, &statement.nodes[node].name);
            format!("{pod} does not fit on {node}: {why}")
        };
        fits(statement, task, node).map_err(why)?;
        let done = statement.pipeline(task, node, Room::Releasing);
        done.map_err(|refused| refused.to_string())?;
        go(statement, place + 1)?;
    }
    Ok(())
}

/// Checks the whole filter stack: shard, queue, room, and every plugin.
fn fits(session: &SessionState<'_>, task: TaskId, node: NodeId) -> Result<(), String> {
    if !session.nodes[node].present || session.is_outside_shard(node) {
        return Err("the node is not ours".to_owned());
    }
    let queue = session.tasks[task].job.map(|job| session.jobs[job].queue);
    if queue.is_none_or(|queue| session.plugins().allocatable(session.view(), queue, task).is_err())
    {
        return Err("the queue has no room".to_owned());
    }
    let request = session.request(task);
    let room = session.nodes[node].future_idle();
    if let Some(dim) = request.dims().find(|&dim| room.get(dim).max(0) < request.get(dim)) {
        return Err(format!("insufficient {}", session.dims.name(dim)));
    }
    session.plugins().pre_predicate(session.view(), task)?;
    let mut findings = Vec::new();
    session.plugins().predicate(session.view(), task, node, &mut findings);
    match findings.first() {
        Some(finding) => Err(finding.reason.text(&session.dims)),
        None => Ok(()),
    }
}

/// Checks the state after the transaction. The preemptor must be complete. No gang may be broken if
/// the plugin gang has granted every victim of it; otherwise a later tier may break it (core.md
/// 5.5).
fn outcome(
    session: &SessionState<'_>,
    config: &Config,
    case: &ResolvedCertificate<'_>,
    faults: &mut Vec<String>,
) {
    if let Some(job) = case.job.filter(|_| !case.is_inside_job()) {
        if !session.plugins().job_pipelined(session.view(), job) {
            faults.push("the job is not pipelined by it".to_owned());
        }
        if gang_decides(config) && !is_complete(session, job) {
            faults.push("the gang does not reach minAvailable by it".to_owned());
        }
        let placed = case.placements.iter().map(|(task, _)| *task);
        if session.view().breaks_topology(job, placed) {
            faults.push("its pods are in no HyperNode of an allowed tier".to_owned());
        }
    }
    let in_bundles =
        matches!(case.certificate.action, EvictReason::GangPreempt | EvictReason::GangReclaim);
    let of_job = |&task: &TaskId| session.tasks[task].job;
    let certified = case.victims.iter().zip(&case.certificate.victims);
    let ungranted = certified.clone().filter(|(_, victim)| !granted_by_gang(victim));
    let broken: BTreeSet<JobId> = ungranted.filter_map(|(task, _)| of_job(task)).collect();
    for (victim, certified) in certified {
        let Some(job) = of_job(victim).filter(|job| !in_bundles && !broken.contains(job)) else {
            continue;
        };
        let row = &session.jobs[job];
        // A pod that takes the place of another member of its gang counts.
        let left = row.counts.ready() + row.counts.waiting();
        if i64::from(left) < i64::from(row.min_available) {
            faults.push(format!("victim {}: its gang is left with {left}", certified.pod));
        }
    }
}

fn granted_by_gang(victim: &CertifiedVictim) -> bool {
    victim.rule.as_ref().is_some_and(|rule| rule.plugins.contains(&"gang"))
}

/// True if gang is the only plugin that decides whether an incomplete job may wait for room.
fn gang_decides(config: &Config) -> bool {
    let mut plugins = config.tiers.iter().flat_map(|tier| &tier.plugins);
    let votes = plugins
        .clone()
        .any(|plugin| plugin.name == "gang" && plugin.switches.on(Switch::JobPipelined));
    votes && !plugins.any(|plugin| plugin.name == "sla")
}

fn is_complete(session: &SessionState<'_>, job: JobId) -> bool {
    let row = &session.jobs[job];
    let has = row.counts.ready() + row.counts.waiting() + row.counts.pending_best_effort;
    i64::from(row.min_available) <= i64::from(has)
}

/// Checks that every unit of victims is needed: with any one kept, the placements must fail.
fn needs(
    statement: &mut Statement<'_, '_>,
    case: &ResolvedCertificate<'_>,
    faults: &mut Vec<String>,
) {
    let units: BTreeSet<usize> =
        case.certificate.victims.iter().map(|victim| victim.bundle).collect();
    for kept in units {
        statement.clear();
        if fulfil(statement, case, EvictionOrder::AsMade, &|bundle| bundle != kept).is_ok() {
            let mut of_unit = case.certificate.victims.iter().filter(|it| it.bundle == kept);
            let names: Vec<String> = of_unit.by_ref().map(|it| it.pod.to_string()).collect();
            faults.push(format!("{} could be kept", names.join(" ")));
        }
    }
}
