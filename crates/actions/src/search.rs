//! The victim search: finds the first candidate node on which evictions make room for a task.
//! preempt and reclaim share it. They differ in whose pods may be evicted, in the order of the
//! nodes, and in the vote of the plugins.
//! Specification: actions.md 2.9, 6.4 to 6.7, 7.3.
//!
//! This file holds the plain search. [`cached`] gives the same outcomes with fewer steps. The plain
//! evaluator has no caches and runs the plain search for every task.

mod cached;
mod dry_run;
mod failure_cache;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeSet;

use vc_framework::{
    Cause, EvictReason, EvictableSet, Filter, Op, PreemptionKind, Question, Room, SessionState,
    Statement, VictimSelection,
};
use vc_model::{NodeId, Reason, TaskId, TaskStatus};

use crate::victims::{
    fits, granted, in_eviction_order, log_considered, log_too_few, make_room, note_too_few,
};
pub(crate) use cached::SearchCaches;

/// True if the task was placed. `Err` says why no node was tried.
pub(crate) type SearchOutcome = Result<bool, Cow<'static, str>>;

/// The error of a search for which no filter leaves a node.
const NO_NODES: &str = "no candidates that fit the pod";

/// A task that needs victims, with what determines its candidates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Preemptor<'a> {
    pub(crate) task: TaskId,
    pub(crate) kind: PreemptionKind,
    /// Nodes on which the open statement has evicted pods. Reclaim fills the room that is left
    /// there first.
    pub(crate) freed: &'a FreedNodes,
    /// The only nodes that may be used. `None` means all nodes.
    pub(crate) domain: Option<&'a BTreeSet<NodeId>>,
}

impl Preemptor<'_> {
    /// True if the pod is a candidate for the task, before any plugin is asked (actions.md 6.2,
    /// 6.3, 7.3 step 2, 7.4).
    fn may_evict(&self, session: &SessionState<'_>, victim: TaskId) -> bool {
        let (mine, theirs) = (&session.tasks[self.task], &session.tasks[victim]);
        let (Some(own), Some(other)) = (mine.job, theirs.job) else { return false };
        if !theirs.can_be_evicted() {
            return false;
        }
        let (own_queue, queue) = (session.jobs[own].queue, session.jobs[other].queue);
        let has_group = session.jobs[other].pod_group.is_some();
        let is_lighter = mine.best_effort && !theirs.best_effort;
        match self.kind {
            PreemptionKind::BetweenJobs => {
                let is_other_job = has_group && own != other && own_queue == queue;
                is_other_job && theirs.status.is_preemptable() && !is_lighter
            }
            PreemptionKind::InsideJob => {
                own == other && theirs.status.is_preemptable() && !is_lighter
            }
            PreemptionKind::Reclaim => own_queue != queue && may_be_reclaimed(session, victim),
        }
    }

    /// Returns the candidates of a node, the one that came last first: it mostly goes first, and what is in order
    /// costs fewer comparisons.
    fn candidates_on<'a>(
        &'a self,
        session: &'a SessionState<'_>,
        node: NodeId,
    ) -> impl Iterator<Item = TaskId> + 'a {
        let has_some = self.kind != PreemptionKind::InsideJob || self.job_has_victims(session);
        let tasks = has_some.then(|| session.nodes[node].tasks.iter().rev());
        tasks.into_iter().flatten().copied().filter(|&task| self.may_evict(session, task))
    }

    /// True if the job of the task has pods that could be evicted.
    fn job_has_victims(&self, session: &SessionState<'_>) -> bool {
        let counts = session.tasks[self.task].job.map(|job| &session.jobs[job].counts);
        counts.is_some_and(|counts| 0 < counts.preemptable())
    }

    /// Returns the question that the plugins vote on.
    fn question(&self) -> Question {
        match self.is_preempt() {
            true => Question::Preempt(self.task),
            false => Question::Reclaim(self.task),
        }
    }

    fn reason(&self) -> EvictReason {
        if self.is_preempt() { EvictReason::Preempt } else { EvictReason::Reclaim }
    }

    /// True if victims that are not needed are put back (A28, A38).
    fn trims(&self, session: &SessionState<'_>) -> bool {
        match self.is_preempt() {
            true => session.settings.preempt.trim_victims,
            false => session.settings.reclaim.trim_victims,
        }
    }

    fn is_preempt(&self) -> bool {
        self.kind != PreemptionKind::Reclaim
    }

    /// True if several nodes are tried in a dry run and the cheapest one is taken (actions.md 6.7).
    fn is_dry_run(&self, session: &SessionState<'_>) -> bool {
        self.is_preempt() && session.settings.preempt.topology_aware
    }
}

/// True if the pod is a candidate for tasks of other queues (actions.md 7.3 step 2).
fn may_be_reclaimed(session: &SessionState<'_>, victim: TaskId) -> bool {
    let row = &session.tasks[victim];
    let Some(job) = row.job.map(|job| &session.jobs[job]) else { return false };
    let with_bound = session.settings.reclaim.reclaim_bound_tasks;
    let runs = row.status == TaskStatus::Running || (with_bound && row.status == TaskStatus::Bound);
    let queue = &session.queues[job.queue];
    row.can_be_evicted() && runs && job.pod_group.is_some() && queue.present && queue.reclaimable
}

/// The nodes on which a statement has evicted pods.
#[derive(Clone, Debug, Default)]
pub(crate) struct FreedNodes {
    nodes: BTreeSet<NodeId>,
    /// Number of operations of the statement that are read already. A failed task leaves none
    /// behind.
    n_seen: usize,
}

impl FreedNodes {
    /// Adds the evictions of the statement since the last call.
    pub(crate) fn catch_up(&mut self, statement: &Statement<'_, '_>) {
        let ops = statement.ops();
        let new = ops.get(self.n_seen..).unwrap_or_default();
        self.nodes.extend(new.iter().filter_map(|op| match op {
            Op::Evict { task, .. } => statement.tasks[*task].node,
            _ => None,
        }));
        self.n_seen = ops.len();
    }

    /// Returns the kind of free room on a node. What an earlier task's victims left over counts as
    /// made by eviction.
    fn room_of(&self, node: NodeId) -> Room {
        if self.nodes.contains(&node) { Room::Evicted } else { Room::Releasing }
    }
}

/// Places the task on the first candidate node where it fits once victims are gone (actions.md 6.4,
/// 7.3).
fn search(statement: &mut Statement<'_, '_>, preemptor: &Preemptor<'_>) -> SearchOutcome {
    let nodes = candidate_nodes(statement, preemptor)?;
    if nodes.is_empty() {
        return Err(NO_NODES.into());
    }
    // Allocate does not place best-effort pods, and backfill runs later, so free room may exist.
    if preemptor.is_preempt()
        && statement.tasks[preemptor.task].best_effort
        && let Some(node) = free_node(statement, preemptor, nodes.iter().copied())
    {
        return Ok(statement.pipeline(preemptor.task, node, Room::Releasing).is_ok());
    }
    // With soft sharding the nodes of the own shard come first.
    let groups = statement.by_shard(&nodes).map_or_else(|| vec![nodes], Vec::from);
    Ok(groups.into_iter().any(|group| match preemptor.is_dry_run(statement) {
        false => place_on_first(statement, preemptor, &group),
        true => dry_run::place_on_cheapest(statement, preemptor, &group),
    }))
}

/// Returns the nodes on which evictions may help (6.4 steps 2 and 3). Notes the causes that rule
/// out the others.
fn candidate_nodes(
    statement: &mut Statement<'_, '_>,
    preemptor: &Preemptor<'_>,
) -> Result<Vec<NodeId>, String> {
    let task = preemptor.task;
    if let Err(error) = statement.plugins().pre_predicate(statement.view(), task) {
        statement.outcome().causes.add(Cause::Filter(Reason::Owned(error.as_str().into())));
        return Err(error);
    }
    let worth = statement.nodes_worth_evicting(task);
    let is_unresolvable = worth.is_empty();
    // If allocate found every node unresolvable, all are filtered again for the causes.
    let mut looked_at = if is_unresolvable { statement.info().nodes.to_vec() } else { worth };
    if let Some(domain) = preemptor.domain {
        looked_at.retain(|node| domain.contains(node));
    }
    let scan = statement.filter(task, &looked_at, Filter::Preempt);
    for (reason, count) in scan.errors.reasons {
        statement.outcome().causes.add_times(Cause::Filter(reason), count);
    }
    Ok(if is_unresolvable { Vec::new() } else { scan.feasible })
}

/// Places the task on the first node of a shard group that works (6.6, 7.3). A36: reclaim takes
/// free nodes before it evicts.
fn place_on_first(
    statement: &mut Statement<'_, '_>,
    preemptor: &Preemptor<'_>,
    nodes: &[NodeId],
) -> bool {
    if !preemptor.is_preempt()
        && let Some(node) = free_node(statement, preemptor, nodes.iter().copied())
    {
        let room = preemptor.freed.room_of(node);
        return statement.pipeline(preemptor.task, node, room).is_ok();
    }
    let order: Vec<usize> = match preemptor.is_preempt() {
        true => by_score(statement, preemptor.task, nodes),
        false => (0..nodes.len()).collect(),
    };
    order.into_iter().any(|at| place_on(statement, preemptor, nodes[at]).is_placed())
}

/// Returns a node on which the task fits without a further eviction: first one that the statement
/// freed, then one without candidates. A best-effort pod may go to any node where it fits, since
/// allocate has not tried it.
fn free_node(
    session: &SessionState<'_>,
    preemptor: &Preemptor<'_>,
    nodes: impl Iterator<Item = NodeId> + Clone,
) -> Option<NodeId> {
    let Preemptor { task, freed, .. } = *preemptor;
    let queue = session.jobs[session.tasks[task].job?].queue;
    session.plugins().allocatable(session.view(), queue, task).ok()?;
    let is_candidate = |&other: &TaskId| preemptor.may_evict(session, other);
    let is_free = |node: &NodeId| {
        session.tasks[task].best_effort || !session.nodes[*node].tasks.iter().any(is_candidate)
    };
    let fits = |node: &NodeId| fits(session, task, *node);
    let first = nodes.clone().filter(|node| freed.nodes.contains(node)).find(fits);
    first.or_else(|| nodes.filter(is_free).find(fits))
}

/// Returns the indices of the nodes by descending score; equal scores in name order.
fn by_score(session: &SessionState<'_>, task: TaskId, nodes: &[NodeId]) -> Vec<usize> {
    let scores = session.plugins().scores(session.view(), task, nodes);
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    order.sort_by(|&l, &r| scores[r].partial_cmp(&scores[l]).unwrap_or(Ordering::Equal));
    order
}

/// The candidates of a node and the victims that the plugins let go.
struct Offer {
    /// The candidates, in eviction order.
    candidates: Vec<TaskId>,
    selection: VictimSelection,
    /// The sums, if the victims do not make room for the task. Then the causes are noted.
    too_few: Option<EvictableSet>,
}

/// Has the plugins vote on the candidates of the node.
fn ask_for_victims(
    statement: &mut Statement<'_, '_>,
    preemptor: &Preemptor<'_>,
    node: NodeId,
) -> Offer {
    let (task, question) = (preemptor.task, preemptor.question());
    let mut candidates: Vec<TaskId> = preemptor.candidates_on(statement, node).collect();
    in_eviction_order(statement, task, &mut candidates);
    let selection = statement.select_victims(question, &candidates);
    // Reclaim has tried free nodes before.
    let is_no_match = candidates.is_empty() && !preemptor.is_preempt();
    let is_enough = !is_no_match && statement.victims_suffice(task, node, &selection.victims);
    if !is_no_match && !is_enough {
        log_too_few(statement, task, node);
    }
    let too_few =
        (!is_enough).then(|| note_too_few(statement, task, node, &candidates, &selection));
    Offer { candidates, selection, too_few }
}

/// The outcome of a try on one node.
enum NodeOutcome {
    Placed,
    /// The votes left too few victims.
    TooFew(Box<Offer>),
    /// The task was not placed although the victims make room.
    InTheWay,
}

impl NodeOutcome {
    fn is_placed(&self) -> bool {
        matches!(self, Self::Placed)
    }
}

/// Evicts as many victims of the node as the task needs, in eviction order, and places it there. On
/// failure nothing is changed.
fn place_on(
    statement: &mut Statement<'_, '_>,
    preemptor: &Preemptor<'_>,
    node: NodeId,
) -> NodeOutcome {
    let (task, is_preempt) = (preemptor.task, preemptor.is_preempt());
    if is_preempt {
        log_considered(statement, task, node);
    }
    let offer = ask_for_victims(statement, preemptor, node);
    if offer.too_few.is_some() {
        return NodeOutcome::TooFew(offer.into());
    }
    let Offer { candidates, selection, .. } = offer;
    let victims = granted(statement, task, &candidates, &selection);
    let trims = preemptor.trims(statement);
    let done = make_room(statement, (task, node), (preemptor.reason(), trims), &victims);
    statement.outcome().out.n_preemption_attempts += u32::from(is_preempt);
    let Err(cause) = done else {
        if is_preempt {
            note_victims(statement, selection.victims.len());
        }
        return NodeOutcome::Placed;
    };
    // Without a victim the refusals matter more than the obstacle.
    match victims.is_empty() && !candidates.is_empty() {
        true => drop(note_too_few(statement, task, node, &candidates, &selection)),
        false => statement.outcome().causes.add(cause),
    }
    NodeOutcome::InTheWay
}

/// Sets the gauge `pod_preemption_victims` (10.4).
fn note_victims(statement: &mut Statement<'_, '_>, n_victims: usize) {
    let n_victims = u32::try_from(n_victims).unwrap_or(u32::MAX);
    statement.outcome().out.preemption_victims = Some(n_victims);
}
