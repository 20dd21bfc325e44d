//! Normal preemption: the first node in score order that works. Specification: actions.md 6.6.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use vc_framework::{EvictReason, Question, Session, Statement, Walk, Walks, klog};
use vc_model::{NodeId, TaskId, TaskStatus};

use super::lineup::Lineups;
use super::{Phase, is_tried, shards};
use crate::victims::{OnNode, Try, candidates, granted, log_too_few, note_too_few, prospect};

/// Places the task on the best of the nodes where evictions make it fit. Whether.
pub(super) fn preempt(
    statement: &mut Statement<'_, '_>,
    task: TaskId,
    nodes: &[NodeId],
    phase: Phase,
) -> bool {
    let best_first = by_score(statement, task, nodes);
    best_first.into_iter().any(|index| {
        let node = nodes[index];
        let found =
            candidates(statement, task, node, |victim| phase.admits(statement, task, victim));
        on_node(statement, task, node, found).is_placed()
    })
}

/// The same with what is known of the nodes. Whether the task was placed; if not, nothing is said
/// about it.
pub(super) fn resume(
    statement: &mut Statement<'_, '_>,
    task: TaskId,
    phase: Phase,
    walks: &mut Walks,
    lineups: &mut Lineups,
) -> bool {
    statement.hits.n_forgotten += walks.take_forgotten();
    let row = &statement.tasks[task];
    let Some(job) = row.job.filter(|_| !row.best_effort) else { return false };
    let counts = &statement.jobs[job].counts;
    let has_victims = 0 < counts.of(TaskStatus::Running) + counts.of(TaskStatus::Bound);
    let own = (has_victims || phase == Phase::InsideJob).then_some(job);
    let look = |node: NodeId| {
        let tasks = statement.nodes[node].tasks.iter().copied();
        prospect(statement, task, node, tasks.filter(|&it| phase.admits(statement, task, it)))
    };
    let Some(walk) = walks.of(statement, task, own, look) else { return false };
    if walk.next_worth_it(0).is_none() {
        return false;
    }
    if statement.rank_remembered(task, walk) {
        statement.hits.n_passed_over += walk.n_parked();
        let next = |walk: &mut Walk| walk.take_best();
        return first_that_works(statement, (task, phase), walk, lineups, next);
    }
    shards(statement).into_iter().any(|shard| {
        let nodes = &statement.facts().nodes;
        let open = std::iter::successors(walk.next_open(0), |&last| walk.next_open(last + 1));
        let open = open.filter(|&place| is_tried(statement, task, nodes[place], shard));
        let places: Vec<usize> = open.collect();
        let open: Vec<NodeId> = places.iter().map(|&place| nodes[place]).collect();
        let scores = statement.hooks().scores(statement.ask(), task, &open);
        // What is no number has no place in an order.
        if scores.iter().any(|score| score.is_nan()) {
            return false;
        }
        let ranked = |index: usize| Ranked { score: scores[index], place: Reverse(places[index]) };
        let may_suffice = |&index: &usize| walk.prospect(places[index]).may_suffice;
        let mut best_first: BinaryHeap<Ranked> =
            (0..open.len()).filter(may_suffice).map(ranked).collect();
        let next =
            |_: &mut Walk| best_first.pop().map(|Ranked { place: Reverse(place), .. }| place);
        first_that_works(statement, (task, phase), walk, lineups, next)
    })
}

/// Tries nodes in this order, but for those whose votes leave too few again. Whether the task was
/// placed.
fn first_that_works(
    statement: &mut Statement<'_, '_>,
    (task, phase): (TaskId, Phase),
    walk: &mut Walk,
    lineups: &mut Lineups,
    mut next: impl FnMut(&mut Walk) -> Option<usize>,
) -> bool {
    while let Some(place) = next(walk) {
        if walk.is_rejected(statement, place) {
            statement.hits.n_passed_over += 1;
            walk.park(place);
            continue;
        }
        let node = statement.facts().nodes[place];
        let found = lineups.candidates(statement, task, node, phase);
        match on_node(statement, task, node, found) {
            OnNode::Placed => return true,
            OnNode::TooFew(found, ruling) => {
                walk.reject(statement, place, Question::Preempt(task), &found, &ruling);
                walk.park(place);
            }
            OnNode::InTheWay => {}
        }
    }
    false
}

/// Greater is tried first: the higher score, then the name that comes first.
#[derive(Clone, Copy, Debug)]
struct Ranked {
    score: f64,
    place: Reverse<usize>,
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = self.score.partial_cmp(&other.score).unwrap_or(Ordering::Equal);
        by_score.then(self.place.cmp(&other.place))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ranked {}

/// Indices of the nodes, the best first; equal scores by name.
fn by_score(session: &Session<'_>, task: TaskId, nodes: &[NodeId]) -> Vec<usize> {
    let scores = session.hooks().scores(session.ask(), task, nodes);
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    order.sort_by(|&l, &r| scores[r].partial_cmp(&scores[l]).unwrap_or(Ordering::Equal));
    order
}

/// Of the candidates `found`, in eviction order, as many as it takes go.
fn on_node(
    statement: &mut Statement<'_, '_>,
    task: TaskId,
    node: NodeId,
    found: Vec<TaskId>,
) -> OnNode {
    log_considered(statement, task, node);
    let ruling = statement.ruling(Question::Preempt(task), &found);
    if !statement.victims_suffice(task, node, &ruling.victims) {
        log_too_few(statement, task, node);
        note_too_few(statement, task, node, &found, &ruling);
        return OnNode::TooFew(found, ruling);
    }
    statement.out.n_preemption_attempts += 1;
    let victims = granted(statement, task, &found, &ruling);
    let attempt = Try {
        task,
        node,
        reason: EvictReason::Preempt,
        trim: statement.settings.preempt.trim_victims,
    };
    let Err(cause) = attempt.run(statement, &victims) else {
        note_victims(statement, ruling.victims.len());
        return OnNode::Placed;
    };
    // With nobody to evict, who refused the candidates matters more than what was in the way.
    match victims.is_empty() && !found.is_empty() {
        true => note_too_few(statement, task, node, &found, &ruling),
        false => statement.causes.add(cause),
    }
    OnNode::InTheWay
}

/// Before a node is looked at (10.5).
pub(super) fn log_considered(session: &Session<'_>, task: TaskId, node: NodeId) {
    let (key, name) = (&session.tasks[task].key, &session.nodes[node].name);
    klog!(3; "Considering Task <{key}> on Node <{name}>.");
}

/// The gauge of 10.4.
pub(super) fn note_victims(session: &mut Session<'_>, n_victims: usize) {
    let n_victims = u32::try_from(n_victims).unwrap_or(u32::MAX);
    session.out.preemption_victims = Some(n_victims);
}
