//! Victims on a node: who is a candidate in which order, and evicting no more of them than needed.
//! Shared by preempt and reclaim. Specification: actions.md 2.9, 6.6, 7.3, A28, A38.

use vc_framework::{
    Ballot, Cause, EvictReason, Lasts, Prospect, Question, Refused, Room, Ruling, Session,
    Statement, klog, outside_shard, sort_stably,
};
use vc_model::{JobId, NodeId, Reason, Task, TaskId, TaskStatus};
use vc_resource::{Dim, Resource};

use crate::trim::trimmed;

/// Tasks of the node that pass `filter`, the one to be evicted first first.
pub(crate) fn candidates(
    session: &Session<'_>,
    preemptor: TaskId,
    node: NodeId,
    filter: impl Fn(TaskId) -> bool,
) -> Vec<TaskId> {
    let tasks = session.nodes[node].tasks.iter().copied();
    let mut found: Vec<TaskId> = tasks.filter(|&task| filter(task)).collect();
    in_eviction_order(session, preemptor, &mut found);
    found
}

/// What is known of a node without asking anybody but its row (S8): plugins only shrink the list of
/// candidates.
pub(crate) fn prospect(
    session: &Session<'_>,
    task: TaskId,
    node: NodeId,
    candidates: impl Iterator<Item = TaskId>,
) -> Prospect {
    let mut room = session.nodes[node].future_idle();
    let request = session.request(task);
    let has_room = request.fits(&room);
    let mut n_candidates = 0;
    for candidate in candidates {
        n_candidates += 1;
        room.add(session.request(candidate));
    }
    Prospect { has_room, may_suffice: request.fits(&room), has_candidates: 0 < n_candidates }
}

/// Sorts victims so that the first one is evicted first. Queue by queue: of the order between queues
/// not much is promised (S17), and what it is at the moment must not turn two pods of one queue round,
/// for then votes that read those pods alone would change with it (S7).
pub(crate) fn in_eviction_order(session: &Session<'_>, preemptor: TaskId, tasks: &mut [TaskId]) {
    let job = session.tasks[preemptor].job;
    let order = |&l: &TaskId, &r: &TaskId| session.hooks().victim_order(session.ask(), job, l, r);
    let known = |job: &JobId| session.ask().has_job(*job);
    let queue =
        |&task: &TaskId| session.tasks[task].job.filter(known).map(|job| session.jobs[job].queue);
    let is_one = tasks.windows(2).all(|pair| queue(&pair[0]) == queue(&pair[1]));
    if is_one || !job.as_ref().is_some_and(known) {
        return sort_stably(tasks, order);
    }
    tasks.sort_by_key(queue);
    let mut parts: Vec<&mut [TaskId]> = tasks.chunk_by_mut(|l, r| queue(l) == queue(r)).collect();
    parts.iter_mut().for_each(|part| sort_stably(part, order));
    let mut places: Vec<usize> = (0..parts.len()).collect();
    sort_stably(&mut places, |&l, &r| order(&parts[l][0], &parts[r][0]));
    let sorted: Vec<TaskId> = places.into_iter().flat_map(|place| parts[place].to_vec()).collect();
    tasks.copy_from_slice(&sorted);
}

/// The victims of a ruling about these candidates, which are in eviction order, in that order.
pub(crate) fn granted(
    session: &Session<'_>,
    preemptor: TaskId,
    found: &[TaskId],
    ruling: &Ruling,
) -> Vec<TaskId> {
    let mut victims = ruling.victims.clone();
    let mut rest = found.iter();
    // Mostly plugins leave the order as it is; there may be many.
    if !victims.iter().all(|victim| rest.any(|candidate| candidate == victim)) {
        in_eviction_order(session, preemptor, &mut victims);
    }
    victims
}

/// The queue and the node have room and no filter objects (6.6 step 5). Reclaim asks the queue,
/// too: without room there allocate would not place the task, and its victims would go in vain.
pub(crate) fn fits(session: &Session<'_>, task: TaskId, node: NodeId) -> bool {
    obstacle(session, task, node).is_none()
}

/// Why the task cannot be placed on the node now.
pub(crate) fn obstacle(session: &Session<'_>, task: TaskId, node: NodeId) -> Option<Cause> {
    let queue = session.jobs[session.tasks[task].job?].queue;
    // Where it was nominated may be outside by now.
    if session.is_outside_shard(node) {
        return Some(Cause::Filter(outside_shard().reason));
    }
    if session.hooks().allocatable(session.ask(), queue, task).is_err() {
        return Some(Cause::QueueFull(queue));
    }
    let room = session.nodes[node].future_idle();
    if let Some(dim) = session.request(task).first_lacking(&room, &session.dims) {
        return Some(Cause::TooFew(dim));
    }
    let mut findings = Vec::new();
    session.hooks().predicate(session.ask(), task, node, &mut findings);
    findings.into_iter().next().map(|finding| Cause::Filter(finding.reason))
}

/// Notes why the victims of a node are not enough. Where all candidates would be, whoever held some
/// of them back is named, too.
pub(crate) fn note_too_few(
    session: &mut Session<'_>,
    task: TaskId,
    node: NodeId,
    found: &[TaskId],
    ruling: &Ruling,
) {
    for (cause, count) in too_few(session, task, node, &ballot(session, found, ruling)) {
        session.causes.add_times(cause, count);
    }
}

/// What these candidates would leave, and what the ruling leaves of them.
pub(crate) fn ballot(session: &Session<'_>, found: &[TaskId], ruling: &Ruling) -> Ballot {
    let sum = |tasks: &[TaskId]| {
        let mut sum = Resource::default();
        tasks.iter().for_each(|&task| sum.add(session.request(task)));
        (!tasks.is_empty()).then_some(sum)
    };
    Ballot {
        candidates: sum(found),
        victims: sum(&ruling.victims),
        refused_by: ruling.refused_by,
        lasts: Lasts::Now,
        is_shared: false,
    }
}

/// The same of the plugins' answer about them, and how long it holds (12.2 S7).
pub(crate) fn vote(session: &Session<'_>, question: Question, found: &[TaskId]) -> Ballot {
    if found.is_empty() {
        return Ballot { lasts: Lasts::WhileRows, is_shared: true, ..Ballot::default() };
    }
    let ruling = session.hooks().ruling(session.ask(), question, found);
    let lasts = session.votes_last(question, found, &ruling);
    let is_shared = lasts == Lasts::WhileRows || session.votes_are_shared(question);
    Ballot { lasts, is_shared, ..ballot(session, found, &ruling) }
}

/// Why the victims of a node are not enough, with how often each cause counts.
pub(crate) fn too_few(
    session: &Session<'_>,
    task: TaskId,
    node: NodeId,
    ballot: &Ballot,
) -> Vec<(Cause, u32)> {
    let refused = || (Cause::Refused(ballot.refused_by), 1);
    if ballot.candidates.is_none() {
        return vec![(Cause::NoCandidate, 1)];
    }
    if ballot.victims.is_none() {
        return vec![refused()];
    }
    let Some(dim) = lacking_without(session, task, node, ballot.victims.as_ref()) else {
        return vec![(Cause::NoCandidate, 1)];
    };
    let is_held_back = lacking_without(session, task, node, ballot.candidates.as_ref()).is_none();
    let too_few = (Cause::TooFew(dim), 1);
    if is_held_back { vec![too_few, refused()] } else { vec![too_few] }
}

/// What the node would be short of for the task with so much given.
pub(crate) fn lacking_without(
    session: &Session<'_>,
    task: TaskId,
    node: NodeId,
    given: Option<&Resource>,
) -> Option<Dim> {
    let mut room = session.nodes[node].future_idle();
    given.into_iter().for_each(|given| room.add(given));
    session.request(task).first_lacking(&room, &session.dims)
}

/// How it went on one node.
pub(crate) enum OnNode {
    Placed,
    /// The votes left too few of these candidates.
    TooFew(Vec<TaskId>, Ruling),
    /// Something was in the way although there was room.
    InTheWay,
}

impl OnNode {
    pub(crate) fn is_placed(&self) -> bool {
        matches!(self, Self::Placed)
    }
}

/// One try to make room for a task on a node.
pub(crate) struct Try {
    pub(crate) task: TaskId,
    pub(crate) node: NodeId,
    pub(crate) reason: EvictReason,
    /// A28, A38.
    pub(crate) trim: bool,
}

impl Try {
    /// Evicts `victims` in order until the task fits, puts back those that turn out not to be
    /// needed, and pipelines the task. On failure everything since the call is undone.
    ///
    /// # Errors
    /// What was in the way with all victims gone.
    pub(crate) fn run(
        &self,
        statement: &mut Statement<'_, '_>,
        victims: &[TaskId],
    ) -> Result<(), Cause> {
        let mark = statement.mark();
        let evicted = self.evict_until_fits(statement, victims);
        let evicted = evicted.inspect_err(|_| statement.roll_back(mark))?;
        let evicted = match self.trim {
            true => trimmed(statement, mark, self.reason, (self.task, self.node), evicted),
            false => evicted,
        };
        log_made_room(statement, self.task, self.node, &evicted, self.reason);
        let makes_room = evicted.iter().any(|&victim| !statement.tasks[victim].best_effort);
        let room = if makes_room { Room::Evicted } else { Room::Releasing };
        if let Err(refused) = statement.pipeline(self.task, self.node, room) {
            self.log_refused(statement, refused);
            statement.roll_back(mark);
            return Err(Cause::Filter(Reason::Owned(refused.to_string().into())));
        }
        Ok(())
    }

    fn evict_until_fits(
        &self,
        statement: &mut Statement<'_, '_>,
        victims: &[TaskId],
    ) -> Result<Vec<TaskId>, Cause> {
        let mut evicted = Vec::new();
        let mut left = victims.iter();
        while let Some(cause) = obstacle(statement, self.task, self.node) {
            let &victim = left.next().ok_or(cause)?;
            log_try(statement, victim, self.task, self.reason);
            if statement.evict(victim, self.reason, Some(self.task)).is_ok() {
                evicted.push(victim);
            }
        }
        Ok(evicted)
    }

    fn log_refused(&self, session: &Session<'_>, refused: Refused) {
        let (task, node) = (&session.tasks[self.task].key, &session.nodes[self.node].name);
        vc_framework::tracing::error!(
            "Failed to pipeline Task <{task}> on Node <{node}>: {refused}"
        );
    }
}

/// The node that the claim of the task's job plans for it.
pub(crate) fn planned_node(session: &Session<'_>, task: TaskId) -> Option<NodeId> {
    let row = &session.tasks[task];
    let node = session.node(session.claims.of(session, row.job?)?.planned.get(&row.uid)?)?;
    session.nodes[node].present.then_some(node)
}

/// Pods that were evicted for the job have yet to leave the planned node of one of its Pending
/// tasks. As long as they do, filters that see them may refuse the task, which is no reason to
/// evict more for this job (11.2). The node that they leave.
pub(crate) fn awaits_victims(session: &Session<'_>, task: TaskId) -> Option<NodeId> {
    let job = session.tasks[task].job?;
    let claim = session.claims.of(session, job)?;
    // After a restart nobody knows the victims; pods carry the mark of preemption, though.
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

/// True if the pod leaves its node because a scheduler evicted it.
pub(crate) fn is_evicted(row: &Task) -> bool {
    row.status == TaskStatus::Releasing && (row.preempted || row.evicting)
}

/// Before a victim is tried out (10.5).
pub(crate) fn log_try(session: &Session<'_>, victim: TaskId, task: TaskId, reason: EvictReason) {
    let (victim, task) = (&session.tasks[victim].key, &session.tasks[task].key);
    match reason {
        EvictReason::Reclaim | EvictReason::GangReclaim => {
            klog!(3; "Try to reclaim Task <{victim}> for Tasks <{task}>");
        }
        _ => klog!(3; "Try to preempt Task <{victim}> for Task <{task}>"),
    }
}

/// What the victims give (10.5). The texts are made only where somebody reads them.
pub(crate) fn log_made_room(
    session: &Session<'_>,
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

/// The line that tells operators why a node was passed over (10.5).
pub(crate) fn log_too_few(session: &Session<'_>, task: TaskId, node: NodeId) {
    let row = &session.nodes[node];
    klog!(3; "No validated victims on Node <{}>: not enough resources: requested <{}>, \
        but future idle <{}>", row.name, session.request(task).text(&session.dims),
        row.future_idle().text(&session.dims));
}
