//! A starving job takes back what other queues use beyond their share. Specification: actions.md 7.

use std::collections::BTreeSet;

use vc_framework::{
    Action, Ballot, Cause, EvictReason, Hunt, Keep, Look, Op, Prospect, Question, Room, Session,
    Shortfall, Statement, Walk, Walks, klog,
};
use vc_model::{JobId, NodeId, QueueId, TaskId, TaskStatus};

use crate::alike::Alike;
use crate::failures::Failures;
use crate::preempt::{has_topology, is_tried, nodes_to_try, pending, shard_groups, shards, waits};
use crate::quota_pass;
use crate::settle::{Terms, Trim, settle};
use crate::turns::Turns;
use crate::victims::{
    self, OnNode, Try, awaits_victims, candidates, fits, granted, lacking_without, log_too_few,
    note_too_few, planned_node, too_few, vote,
};

const NAME: &str = "reclaim";

pub(crate) struct Reclaim;

impl Action for Reclaim {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&self, session: &mut Session<'_>) {
        klog!(5; "Enter Reclaim ...");
        let (starving, queues) = match quota_pass::run(session, EvictReason::Reclaim) {
            true => Default::default(),
            false => collect(session),
        };
        let mut turns = Turns::new(session, &starving);
        queues.into_iter().for_each(|queue| turns.serve(queue));
        let (mut known, mut alike) = (Known::default(), Alike::default());
        while let Some(queue) = turns.next_queue(session) {
            let name = session.queues[queue].name.clone();
            if session.hooks().overused(session.ask(), queue) {
                klog!(3; "Queue <{name}> is overused, ignore it.");
                for job in turns.drop_queue(queue) {
                    if waits(session, job) {
                        session.causes.note_job(job, NAME, Cause::QueueFull(queue));
                    }
                }
                continue;
            }
            match turns.next_job_now(session, queue) {
                // The queue stays: overuse and order are asked again between two jobs (A35).
                Some(job) => alike.or_attempt(session, job, (NAME, "between queues"), |session| {
                    reclaim_for_job(session, queue, job, &mut known);
                }),
                None => {
                    klog!(4; "No preemptors in Queue <{name}>, break.");
                    turns.drop_queue(queue);
                }
            }
        }
        if !session.settings.reclaim.explain {
            session.causes.forget(NAME);
        }
        klog!(5; "Leaving Reclaim ...");
    }
}

/// The starving jobs, and the queues of all jobs that could (7.1).
fn collect(session: &Session<'_>) -> (Vec<JobId>, Vec<QueueId>) {
    let settled_queues = session.facts().roster.settled_queues();
    let (mut starving, mut queues) = (Vec::new(), settled_queues.collect::<Vec<QueueId>>());
    for &job in &session.facts().jobs {
        let row = &session.jobs[job];
        if row.is_pending() {
            continue;
        }
        if let Err(invalid) = session.hooks().job_valid(session.ask(), job) {
            let queue = &session.queues[row.queue].name;
            klog!(4; "Job <{}> Queue <{queue}> skip reclaim, reason: {}: {}",
                row.key, invalid.reason, invalid.message);
            continue;
        }
        queues.push(row.queue);
        // The domains of a topology come with HyperNodes (A39); until allocate places such a job,
        // nobody is evicted for it.
        if !has_topology(session, job) && session.hooks().job_starving(session.ask(), job) {
            starving.push(job);
        }
    }
    (starving, queues)
}

/// Either the job becomes pipelined as a whole, or nobody is evicted for it (7.2).
fn reclaim_for_job(session: &mut Session<'_>, queue: QueueId, job: JobId, known: &mut Known) {
    let settings = &session.settings.reclaim;
    let trim = Trim::of(settings.trim_victims, settings.trim_statement);
    let mut tasks = pending(session, job);
    let mut statement = session.evicting_statement();
    let mut freed = Freed::default();
    while statement.hooks().job_starving(statement.ask(), job) {
        let Some(task) = tasks.pop() else { break };
        match reclaim_for_task(&mut statement, queue, task, &mut freed, known) {
            true => statement.causes.drop_task(),
            false => statement.causes.end_task(job, NAME),
        }
    }
    let is_enough = |session: &Session<'_>| session.hooks().job_pipelined(session.ask(), job);
    settle(statement, &Terms { job, action: NAME, is_enough: &is_enough, trim });
}

/// Why pods of other queues must stay, whatever the task needs.
fn refusal(session: &Session<'_>, queue: QueueId, task: TaskId) -> Option<Cause> {
    if session.tasks[task].never_preempts {
        return Some(Cause::PolicyNever);
    }
    if !session.hooks().preemptive(session.ask(), queue, &[task]) {
        let (name, key) = (&session.queues[queue].name, &session.tasks[task].key);
        klog!(3; "Queue <{name}> cannot reclaim for task <{key}>, skip");
        return Some(Cause::QueueFull(queue));
    }
    None
}

/// What is remembered from task to task.
#[derive(Default)]
struct Known {
    failures: Failures<()>,
    walks: Walks,
}

/// The nodes that the statement frees.
#[derive(Default)]
struct Freed {
    nodes: BTreeSet<NodeId>,
    /// Operations that are looked at; a task that fails leaves none behind.
    n_seen: usize,
}

impl Freed {
    fn catch_up(&mut self, statement: &Statement<'_, '_>) {
        let ops = statement.ops();
        let new = ops.get(self.n_seen..).unwrap_or_default();
        self.nodes.extend(new.iter().filter_map(|op| match op {
            Op::Evict { task, .. } => statement.tasks[*task].node,
            _ => None,
        }));
        self.n_seen = ops.len();
    }

    /// Room that an earlier task's victims left over is room made by eviction, too.
    fn room_of(&self, node: NodeId) -> Room {
        match self.nodes.contains(&node) {
            true => Room::Evicted,
            false => Room::Releasing,
        }
    }
}

/// One task (7.3). Whether it was assigned a node.
fn reclaim_for_task(
    statement: &mut Statement<'_, '_>,
    queue: QueueId,
    task: TaskId,
    freed: &mut Freed,
    known: &mut Known,
) -> bool {
    if let Some(cause) = refusal(statement, queue, task) {
        statement.causes.add(cause);
        return false;
    }
    // What was made for the task before comes first (11.2).
    let planned = planned_node(statement, task);
    if let Some(node) = planned.filter(|&node| fits(statement, task, node)) {
        return statement.pipeline(task, node, Room::Releasing).is_ok();
    }
    if let Some(node) = awaits_victims(statement, task) {
        statement.causes.add(Cause::AwaitsVictims(node));
        return false;
    }
    freed.catch_up(statement);
    let Known { failures, walks } = known;
    let outcome = failures.or_search(statement, task, (), |statement| {
        if in_vain(statement, task, Keep::No) {
            return Ok(false);
        }
        if resume(statement, task, freed, walks) {
            statement.hits.n_resumed += 1;
            return Ok(true);
        }
        // It says the causes.
        statement.causes.drop_task();
        Ok(!in_vain(statement, task, Keep::Yes) && search(statement, task, freed))
    });
    outcome.is_ok_and(|assigned| assigned)
}

/// Nodes that this statement freed, then free nodes without anybody to evict, then the rest (7.3,
/// A36).
fn search(statement: &mut Statement<'_, '_>, task: TaskId, freed: &Freed) -> bool {
    let Ok(nodes) = nodes_to_try(statement, task) else { return false };
    shard_groups(statement, nodes).into_iter().any(|group| {
        let fits = |node: &NodeId| fits(statement, task, *node);
        let is_freed = |node: &NodeId| freed.nodes.contains(node);
        // Allocate has looked for free places already, but not for a best-effort pod.
        let best_effort = statement.tasks[task].best_effort;
        let gives = |node: &NodeId| {
            statement.nodes[*node].tasks.iter().any(|&other| may_give(statement, task, other))
        };
        let is_free = |node: &NodeId| fits(node) && (best_effort || !gives(node));
        let first = group.iter().copied().filter(is_freed).find(fits);
        let place = first.or_else(|| group.iter().copied().find(is_free));
        match place {
            Some(node) => statement.pipeline(task, node, freed.room_of(node)).is_ok(),
            None => group.iter().any(|&node| on_node(statement, task, node).is_placed()),
        }
    })
}

/// The same with what is known of the nodes. Whether the task was assigned one; if not, nothing is
/// said about it.
fn resume(
    statement: &mut Statement<'_, '_>,
    task: TaskId,
    freed: &Freed,
    walks: &mut Walks,
) -> bool {
    statement.hits.n_forgotten += walks.take_forgotten();
    let look = |node: NodeId| prospect(statement, task, node);
    let Some(walk) = walks.of(statement, task, None, look) else { return false };
    for shard in shards(statement) {
        let is_ours = |session: &Session<'_>, node| is_tried(session, task, node, shard);
        if let Some(node) = free_place(statement, walk, task, freed, &is_ours) {
            return statement.pipeline(task, node, freed.room_of(node)).is_ok();
        }
        let mut next = walk.next_worth_it(0);
        while let Some(place) = next {
            next = walk.next_worth_it(place + 1);
            let node = statement.facts().nodes[place];
            if !is_ours(statement, node) {
                continue;
            }
            if walk.is_rejected(statement, place) {
                statement.hits.n_passed_over += 1;
                continue;
            }
            match on_node(statement, task, node) {
                OnNode::Placed => return true,
                OnNode::TooFew(found, ruling) => {
                    walk.reject(statement, place, Question::Reclaim(task), &found, &ruling);
                }
                OnNode::InTheWay => {}
            }
        }
    }
    false
}

/// A node on which nobody has to go.
fn free_place(
    session: &Session<'_>,
    walk: &Walk,
    task: TaskId,
    freed: &Freed,
    is_ours: &dyn Fn(&Session<'_>, NodeId) -> bool,
) -> Option<NodeId> {
    let queue = session.jobs[session.tasks[task].job?].queue;
    session.hooks().allocatable(session.ask(), queue, task).ok()?;
    let best_effort = session.tasks[task].best_effort;
    let places = || {
        let places =
            std::iter::successors(walk.next_with_room(0), |&last| walk.next_with_room(last + 1));
        let nodes = places.map(|place| (place, session.facts().nodes[place]));
        nodes.filter(|&(_, node)| is_ours(session, node))
    };
    let is_freed = |&(_, node): &(usize, NodeId)| freed.nodes.contains(&node);
    let is_free =
        |&(place, _): &(usize, NodeId)| best_effort || !walk.prospect(place).has_candidates;
    let fits = |&(_, node): &(usize, NodeId)| fits(session, task, node);
    let first = places().filter(is_freed).find(fits);
    let place = first.or_else(|| places().filter(is_free).find(fits));
    place.map(|(_, node)| node)
}

/// Whether what is known of the nodes shows that the search finds nothing (12.2 S7); its causes are
/// noted.
fn in_vain(statement: &mut Statement<'_, '_>, task: TaskId, keep: Keep) -> bool {
    let look = Vain { task, is_told: keep == Keep::Yes };
    statement.fails_to_find(task, Hunt::Reclaim, keep, &look).is_some()
}

/// How a node is looked at, as [`search`] would.
struct Vain {
    task: TaskId,
    /// What stands is not told again.
    is_told: bool,
}

impl Look for Vain {
    fn vote(&self, session: &Session<'_>, node: NodeId) -> Ballot {
        vote(session, Question::Reclaim(self.task), &reclaimees(session, self.task, node))
    }

    fn shortfall(
        &self,
        session: &Session<'_>,
        node: NodeId,
        ballot: &Ballot,
        has_quota: bool,
    ) -> Option<Shortfall> {
        let has_room = session.fits_future_idle(self.task, node);
        let found = |causes| Some(Shortfall { causes, n_attempts: 0, lasts: ballot.lasts });
        if ballot.candidates.is_none() {
            let is_free = has_room && has_quota && passes(session, self.task, node);
            return if is_free { None } else { found(vec![(Cause::NoCandidate, 1)]) };
        }
        let lacking = || lacking_without(session, self.task, node, ballot.victims.as_ref());
        if has_room || lacking().is_none() {
            return None;
        }
        self.is_told.then(|| log_too_few(session, self.task, node));
        found(too_few(session, self.task, node, ballot))
    }
}

fn passes(session: &Session<'_>, task: TaskId, node: NodeId) -> bool {
    let mut findings = Vec::new();
    session.hooks().predicate(session.ask(), task, node, &mut findings);
    findings.is_empty()
}

/// What the row of a node says (S8).
fn prospect(session: &Session<'_>, task: TaskId, node: NodeId) -> Prospect {
    let tasks = session.nodes[node].tasks.iter().copied();
    let candidates = tasks.filter(|&victim| may_give(session, task, victim));
    let prospect = victims::prospect(session, task, node, candidates);
    // Free places are another matter.
    Prospect { may_suffice: prospect.may_suffice && prospect.has_candidates, ..prospect }
}

/// Pods of other reclaimable queues that may go, in eviction order (7.3 step 2, 7.4).
fn reclaimees(session: &Session<'_>, task: TaskId, node: NodeId) -> Vec<TaskId> {
    candidates(session, task, node, |victim| may_give(session, task, victim))
}

/// Whether the pod is one of another queue that may give.
fn may_give(session: &Session<'_>, task: TaskId, victim: TaskId) -> bool {
    let row = &session.tasks[victim];
    let with_bound = session.settings.reclaim.reclaim_bound_tasks;
    let runs = row.status == TaskStatus::Running || (with_bound && row.status == TaskStatus::Bound);
    if !runs || !row.can_be_evicted() {
        return false;
    }
    let Some(job) = row.job.filter(|&job| session.jobs[job].pod_group.is_some()) else {
        return false;
    };
    let own = session.tasks[task].job.map(|job| session.jobs[job].queue);
    let queue = session.jobs[job].queue;
    let row_of_queue = &session.queues[queue];
    Some(queue) != own && row_of_queue.present && row_of_queue.reclaimable
}

fn on_node(statement: &mut Statement<'_, '_>, task: TaskId, node: NodeId) -> OnNode {
    let found = reclaimees(statement, task, node);
    let ruling = statement.ruling(Question::Reclaim(task), &found);
    if found.is_empty() || !statement.victims_suffice(task, node, &ruling.victims) {
        if !found.is_empty() {
            log_too_few(statement, task, node);
        }
        note_too_few(statement, task, node, &found, &ruling);
        return OnNode::TooFew(found, ruling);
    }
    let victims = granted(statement, task, &found, &ruling);
    let attempt = Try {
        task,
        node,
        reason: EvictReason::Reclaim,
        trim: statement.settings.reclaim.trim_victims,
    };
    let Err(cause) = attempt.run(statement, &victims) else { return OnNode::Placed };
    match victims.is_empty() {
        true => note_too_few(statement, task, node, &found, &ruling),
        false => statement.causes.add(cause),
    }
    OnNode::InTheWay
}
