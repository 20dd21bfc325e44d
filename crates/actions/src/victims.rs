//! Victims on a node: the order of the candidates, and how many of them are evicted.
//! preempt and reclaim share it.
//! Specification: actions.md 2.9, 6.6, 7.3, A28, A38.

use std::cmp::Ordering;

use smallvec::smallvec;
use vc_framework::{
    Cause, DependsOn, EvictReason, EvictableSet, Mark, NodeCauses, PreemptionBound, Question, Room,
    SessionState, Statement, VictimSelection, klog, outside_shard, sort_stably,
};
use vc_model::{JobId, NodeId, Reason, Task, TaskId, TaskStatus};
use vc_resource::{Dim, Resource};

/// Returns an upper bound of what evictions on a node can free, from its row alone. S8: plugins
/// only remove candidates.
pub(crate) fn preemption_bound(
    session: &SessionState<'_>,
    task: TaskId,
    node: NodeId,
    candidates: impl Iterator<Item = TaskId>,
) -> PreemptionBound {
    let mut n_candidates = 0;
    let mut given = Resource::default();
    for candidate in candidates {
        n_candidates += 1;
        given.add(session.request(candidate));
    }
    let fits = |given| lacking_without(session, task, node, given).is_none();
    let (has_room, may_suffice) = (fits(None), fits(Some(&given)));
    PreemptionBound { has_room, may_suffice, has_candidates: 0 < n_candidates }
}

/// Sorts victims in eviction order. Pods are sorted within each queue, then the queues are merged.
/// S17: the order between queues may change at any time. It must not swap two pods of one queue,
/// because votes that read only those pods would change with it (S7).
pub(crate) fn in_eviction_order(
    session: &SessionState<'_>,
    preemptor: TaskId,
    tasks: &mut [TaskId],
) {
    let job = session.tasks[preemptor].job;
    let order =
        |&l: &TaskId, &r: &TaskId| session.plugins().victim_order(session.view(), job, l, r);
    let known = |job: &JobId| session.view().has_job(*job);
    let queue =
        |&task: &TaskId| session.tasks[task].job.filter(known).map(|job| session.jobs[job].queue);
    let Some((first, others)) = tasks.split_first() else { return };
    let first = queue(first);
    let is_one = others.iter().all(|other| queue(other) == first);
    if is_one || !job.as_ref().is_some_and(known) {
        return sort_pods(session, tasks, order);
    }
    tasks.sort_by_key(queue);
    let mut parts: Vec<&mut [TaskId]> = tasks.chunk_by_mut(|l, r| queue(l) == queue(r)).collect();
    parts.iter_mut().for_each(|part| sort_pods(session, part, order));
    let mut places: Vec<usize> = (0..parts.len()).collect();
    sort_stably(&mut places, |&l, &r| order(&parts[l][0], &parts[r][0]));
    let sorted: Vec<TaskId> = places.into_iter().flat_map(|place| parts[place].to_vec()).collect();
    tasks.copy_from_slice(&sorted);
}

/// Sorts pods. If only some of them have an index, the order may have cycles: they are put into the order of
/// their uids before, so that the result does not depend on the order in which they came (A10).
fn sort_pods(
    session: &SessionState<'_>,
    pods: &mut [TaskId],
    order: impl Fn(&TaskId, &TaskId) -> Ordering,
) {
    let n_indexed = pods.iter().filter(|pod| session.tasks[**pod].index.is_some()).count();
    if 0 < n_indexed && n_indexed < pods.len() {
        pods.sort_by(|l, r| session.tasks[*l].uid.cmp(&session.tasks[*r].uid));
    }
    sort_stably(pods, order);
}

/// Returns the victims of a selection in eviction order. `found` has its candidates in that order.
pub(crate) fn granted(
    session: &SessionState<'_>,
    preemptor: TaskId,
    found: &[TaskId],
    selection: &VictimSelection,
) -> Vec<TaskId> {
    let mut victims = selection.victims.clone();
    let mut rest = found.iter();
    // Plugins mostly keep the order, and there may be many victims.
    if !victims.iter().all(|victim| rest.any(|candidate| candidate == victim)) {
        in_eviction_order(session, preemptor, &mut victims);
    }
    victims
}

/// True if the queue and the node have room and no filter objects (actions.md 6.6 step 5). Without
/// room in the queue allocate would not place the task, and its victims would be evicted for
/// nothing.
pub(crate) fn fits(session: &SessionState<'_>, task: TaskId, node: NodeId) -> bool {
    obstacle(session, task, node).is_none()
}

/// Returns why the task cannot be placed on the node now. Returns `None` if it can.
pub(crate) fn obstacle(session: &SessionState<'_>, task: TaskId, node: NodeId) -> Option<Cause> {
    let queue = session.jobs[session.tasks[task].job?].queue;
    // The nominated node may have left the shard.
    if session.is_outside_shard(node) {
        return Some(Cause::Filter(outside_shard().reason));
    }
    if session.plugins().allocatable(session.view(), queue, task).is_err() {
        return Some(Cause::QueueFull(queue));
    }
    if let Some(dim) = lacking_without(session, task, node, None) {
        return Some(Cause::TooFew(dim));
    }
    let mut findings = Vec::new();
    session.plugins().predicate(session.view(), task, node, &mut findings);
    findings.into_iter().next().map(|finding| Cause::Filter(finding.reason))
}

/// Notes why the victims of a node are not enough, and returns the sums. If all candidates would be
/// enough, the plugin that refused some of them is named, too.
pub(crate) fn note_too_few(
    statement: &mut Statement<'_, '_>,
    task: TaskId,
    node: NodeId,
    found: &[TaskId],
    selection: &VictimSelection,
) -> EvictableSet {
    let evictable_set = evictable_set_of(statement, found, selection);
    for (cause, count) in too_few(statement, task, node, &evictable_set) {
        statement.outcome().causes.add_times(cause, count);
    }
    evictable_set
}

/// Returns the sums of these candidates and of the victims among them.
pub(crate) fn evictable_set_of(
    session: &SessionState<'_>,
    found: &[TaskId],
    selection: &VictimSelection,
) -> EvictableSet {
    let sum = |tasks: &[TaskId]| {
        let mut sum = Resource::default();
        tasks.iter().for_each(|&task| sum.add(session.request(task)));
        (!tasks.is_empty()).then_some(sum)
    };
    EvictableSet {
        candidates: sum(found),
        victims: sum(&selection.victims),
        refused_by: selection.refused_by,
        depends_on: DependsOn::State,
        is_shared: false,
    }
}

/// Has the plugins vote on these candidates. Returns the sums, and what ends the answer (12.2 S7).
pub(crate) fn vote(
    session: &SessionState<'_>,
    question: Question,
    found: &[TaskId],
) -> EvictableSet {
    if found.is_empty() {
        return voted(
            session,
            question,
            (found, &VictimSelection::default()),
            EvictableSet::default(),
        );
    }
    let selection = session.plugins().select_victims(session.view(), question, found);
    let sums = evictable_set_of(session, found, &selection);
    voted(session, question, (found, &selection), sums)
}

/// Returns the sums of a vote on these candidates, with what ends the answer.
pub(crate) fn voted(
    session: &SessionState<'_>,
    question: Question,
    (found, selection): (&[TaskId], &VictimSelection),
    sums: EvictableSet,
) -> EvictableSet {
    if found.is_empty() {
        return EvictableSet {
            depends_on: DependsOn::Rows,
            is_shared: true,
            ..EvictableSet::default()
        };
    }
    let depends_on = session.votes_depend_on(question, found, selection);
    let is_shared = depends_on == DependsOn::Rows || session.votes_are_shared(question);
    EvictableSet { depends_on, is_shared, ..sums }
}

/// Returns why the victims of a node are not enough, with the count of each cause.
pub(crate) fn too_few(
    session: &SessionState<'_>,
    task: TaskId,
    node: NodeId,
    evictable_set: &EvictableSet,
) -> NodeCauses {
    let refused = || (Cause::Refused(evictable_set.refused_by), 1);
    if evictable_set.candidates.is_none() {
        return smallvec![(Cause::NoCandidate, 1)];
    }
    if evictable_set.victims.is_none() {
        return smallvec![refused()];
    }
    let Some(dim) = lacking_without(session, task, node, evictable_set.victims.as_ref()) else {
        return smallvec![(Cause::NoCandidate, 1)];
    };
    let is_held_back =
        lacking_without(session, task, node, evictable_set.candidates.as_ref()).is_none();
    let too_few = (Cause::TooFew(dim), 1);
    if is_held_back { smallvec![too_few, refused()] } else { smallvec![too_few] }
}

/// Returns the first resource that the node lacks for the task once `given` is free. Returns `None`
/// if it lacks nothing.
pub(crate) fn lacking_without(
    session: &SessionState<'_>,
    task: TaskId,
    node: NodeId,
    given: Option<&Resource>,
) -> Option<Dim> {
    session.nodes[node].future_lacking(session.request(task), given, &session.dims)
}

/// Evicts `victims` in order until the task fits on the node, and pipelines the task. With `trims`,
/// victims that are not needed are put back. On failure everything since the call is undone.
///
/// # Errors
/// What was in the way with all victims gone.
pub(crate) fn make_room(
    statement: &mut Statement<'_, '_>,
    (task, node): (TaskId, NodeId),
    (reason, trims): (EvictReason, bool),
    victims: &[TaskId],
) -> Result<(), Cause> {
    let mark = statement.mark();
    let log = |session: &SessionState<'_>, victim| log_try(session, victim, task, reason);
    let done = evict_until_fits(statement, (task, node), reason, victims, log);
    done.inspect_err(|_| statement.roll_back(mark))?;
    let evicted = match trims {
        true => minimize_victims(statement, mark, (task, node)),
        false => statement.evicted_since(mark),
    };
    log_made_room(statement, task, node, &evicted, reason);
    let makes_room = evicted.iter().any(|&victim| !statement.tasks[victim].best_effort);
    let room = if makes_room { Room::Evicted } else { Room::Releasing };
    statement.pipeline(task, node, room).map_err(|refused| {
        let (key, name) = (&statement.tasks[task].key, &statement.nodes[node].name);
        vc_framework::tracing::error!(
            "Failed to pipeline Task <{key}> on Node <{name}>: {refused}"
        );
        statement.roll_back(mark);
        Cause::Filter(Reason::Owned(refused.to_string().into()))
    })
}

/// Evicts `victims` in order until the task fits on the node. `log` is called before each eviction.
///
/// # Errors
/// What is in the way with all victims gone.
pub(crate) fn evict_until_fits(
    statement: &mut Statement<'_, '_>,
    (task, node): (TaskId, NodeId),
    reason: EvictReason,
    victims: &[TaskId],
    log: impl Fn(&SessionState<'_>, TaskId),
) -> Result<(), Cause> {
    let mut left = victims.iter();
    while let Some(cause) = obstacle(statement, task, node) {
        let &victim = left.next().ok_or(cause)?;
        log(statement, victim);
        // A victim that cannot be evicted is skipped.
        let _ = statement.evict(victim, reason, Some(task));
    }
    Ok(())
}

/// Puts back the victims that the task does not need, from most to least important, and returns the
/// others (A28, A38, 6.7.3). Since `mark` the statement may only have evicted.
pub(crate) fn minimize_victims(
    statement: &mut Statement<'_, '_>,
    mark: Mark,
    (task, node): (TaskId, NodeId),
) -> Vec<TaskId> {
    // If the room is too small without this victim, it is needed, and no trial is run.
    let leaves_room = |session: &SessionState<'_>, victim: TaskId| {
        let mut room = session.nodes[node].future_idle();
        room.sub(session.request(victim));
        session.request(task).first_lacking(&room, &session.dims).is_none()
    };
    statement.minimize_victims(mark, leaves_room, |session| fits(session, task, node))
}

/// Logs that a node is tried (actions.md 10.5).
pub(crate) fn log_considered(session: &SessionState<'_>, task: TaskId, node: NodeId) {
    let (key, name) = (&session.tasks[task].key, &session.nodes[node].name);
    klog!(3; "Considering Task <{key}> on Node <{name}>.");
}

/// True if the pod leaves its node because a scheduler evicted it.
pub(crate) fn is_evicted(row: &Task) -> bool {
    row.status == TaskStatus::Releasing && (row.preempted || row.evicting)
}

/// Logs that a victim is tried (actions.md 10.5).
pub(crate) fn log_try(
    session: &SessionState<'_>,
    victim: TaskId,
    task: TaskId,
    reason: EvictReason,
) {
    let (victim, task) = (&session.tasks[victim].key, &session.tasks[task].key);
    match reason {
        EvictReason::Reclaim | EvictReason::GangReclaim => {
            klog!(3; "Try to reclaim Task <{victim}> for Tasks <{task}>");
        }
        _ => klog!(3; "Try to preempt Task <{victim}> for Task <{task}>"),
    }
}

/// Logs what the victims free (actions.md 10.5). The text is made only if the log level is enabled.
pub(crate) fn log_made_room(
    session: &SessionState<'_>,
    task: TaskId,
    node: NodeId,
    victims: &[TaskId],
    reason: EvictReason,
) {
    if victims.is_empty() {
        return;
    }
    let given = || {
        let mut sum = Resource::default();
        victims.iter().for_each(|&victim| sum.add(session.request(victim)));
        sum.text(&session.dims)
    };
    let (key, wanted) = (&session.tasks[task].key, session.request(task));
    let row = &session.nodes[node];
    match reason {
        EvictReason::Reclaim | EvictReason::GangReclaim => {
            klog!(3; "Reclaimed <{}> for task <{key}> requested <{}>, and Node <{}> \
                availableResources <{}>.", given(), wanted.text(&session.dims), row.name,
                row.future_idle().text(&session.dims));
        }
        _ => klog!(3; "Preempted <{}> for Task <{key}> requested <{}>.", given(),
            wanted.text(&session.dims)),
    }
}

/// Logs why a node was passed over (actions.md 10.5).
pub(crate) fn log_too_few(session: &SessionState<'_>, task: TaskId, node: NodeId) {
    let row = &session.nodes[node];
    klog!(3; "No validated victims on Node <{}>: not enough resources: requested <{}>, \
        but future idle <{}>", row.name, session.request(task).text(&session.dims),
        row.future_idle().text(&session.dims));
}
