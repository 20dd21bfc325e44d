//! The victim search with caches.
//! Specification: actions.md 12.2 S7, S8, S9.
//!
//! - A task fails as an equal one did in the same state ([`SearchFailureCache`]).
//! - A search fails as in an earlier cycle if the nodes that changed since still fail
//!   ([`vc_framework::Session::known_infeasible`]).
//! - A search skips nodes whose row shows that no eviction helps ([`VictimNodeIndexCache`]). It
//!   also skips nodes whose votes would leave too few victims again. If it finds nothing, the plain
//!   search runs for the causes.
//!
//! Exact because:
//! - each cache only leaves out steps that are known to fail, as its module explains;
//! - in the plain evaluator all of them stay empty.

use rustc_hash::FxHashMap;
use smallvec::smallvec;
use vc_framework::{
    Cause, EvictableSet, FailureCaching, InfeasibleSearch, NodeCauses, NodeFailure, NodeProbe,
    PreemptionBound, PreemptionKind, SessionState, Statement, VictimNodeIndex,
    VictimNodeIndexCache, VictimSelection,
};
use vc_model::{Cluster, NodeId, ShardingMode, TaskId};

use super::failure_cache::SearchFailureCache;
use super::{
    NO_NODES, NodeOutcome, Offer, Preemptor, SearchOutcome, by_score, free_node, may_be_reclaimed,
    note_victims, place_on, search,
};
use crate::victims::{
    in_eviction_order, lacking_without, log_considered, log_too_few, preemption_bound, too_few,
    vote, voted,
};

/// The caches of one action for its victim searches.
#[derive(Debug, Default)]
pub(crate) struct SearchCaches {
    failures: SearchFailureCache,
    indexes: FxHashMap<PreemptionKind, VictimNodeIndexCache>,
}

impl SearchCaches {
    /// Places the task as the plain search would.
    pub(crate) fn search(
        &mut self,
        statement: &mut Statement<'_, '_>,
        preemptor: &Preemptor<'_>,
    ) -> SearchOutcome {
        let Self { failures, indexes } = self;
        // A dry run draws a random number even if it fails, so it cannot be skipped. What is cached
        // is about all nodes.
        let outcome = match preemptor.is_dry_run(statement) || preemptor.domain.is_some() {
            true => search(statement, preemptor),
            false => {
                failures.get_or_search(statement, preemptor.task, preemptor.kind, |statement| {
                    let victim_indexes = indexes.entry(preemptor.kind).or_default();
                    search_unless_known(statement, preemptor, victim_indexes)
                })
            }
        };
        if preemptor.is_preempt() && outcome == Ok(false) {
            note_victims(statement, 0);
        }
        outcome
    }
}

/// The candidates of the nodes that a search has passed over for too few victims, with the votes on
/// them and the sums. They hold as long as nothing is placed.
type Votes = FxHashMap<NodeId, (Vec<TaskId>, VictimSelection, EvictableSet)>;

/// Tries the failures of earlier cycles, then the index of nodes, then the plain search.
fn search_unless_known(
    statement: &mut Statement<'_, '_>,
    preemptor: &Preemptor<'_>,
    victim_indexes: &mut VictimNodeIndexCache,
) -> SearchOutcome {
    let no_votes = Votes::default();
    if let Some(failed) = known_failure(statement, preemptor, FailureCaching::No, &no_votes) {
        return failed;
    }
    let n_attempts = statement.outcome().out.n_preemption_attempts;
    let mut votes = Votes::default();
    if search_index(statement, preemptor, victim_indexes, &mut votes) {
        statement.stats().n_resumed += 1;
        return Ok(true);
    }
    // The plain search notes the causes and counts the attempts again.
    statement.outcome().causes.drop_task();
    statement.outcome().out.n_preemption_attempts = n_attempts;
    known_failure(statement, preemptor, FailureCaching::Yes, &votes)
        .unwrap_or_else(|| search(statement, preemptor))
}

/// Returns the failure of the search if cached node failures prove it; its causes are noted.
/// Returns `None` if the search has to run.
fn known_failure(
    statement: &mut Statement<'_, '_>,
    preemptor: &Preemptor<'_>,
    caching: FailureCaching,
    votes: &Votes,
) -> Option<SearchOutcome> {
    let probe = Probe { preemptor, logs: caching == FailureCaching::Yes, votes };
    let InfeasibleSearch { nowhere } =
        statement.known_infeasible(preemptor.task, preemptor.kind, caching, &probe)?;
    Some(if nowhere { Err(NO_NODES.into()) } else { Ok(false) })
}

/// Searches the nodes that the index does not rule out. Returns true if the task was placed.
/// Otherwise the plain search has to run; `votes` has those of the nodes that were tried.
fn search_index(
    statement: &mut Statement<'_, '_>,
    preemptor: &Preemptor<'_>,
    victim_indexes: &mut VictimNodeIndexCache,
    votes: &mut Votes,
) -> bool {
    statement.stats().n_forgotten += victim_indexes.take_forgotten();
    let row = &statement.tasks[preemptor.task];
    let Some(job) = row.job.filter(|_| !(preemptor.is_preempt() && row.best_effort)) else {
        return false;
    };
    let queue = Some(statement.jobs[job].queue);
    let job = Some(job).filter(|_| preemptor.job_has_victims(statement));
    let candidates_of = match preemptor.kind {
        PreemptionKind::BetweenJobs | PreemptionKind::InsideJob => (queue, job),
        PreemptionKind::Reclaim => (None, None),
    };
    let probe = |node: NodeId| bound(statement, preemptor, node);
    let Some(victim_index) = victim_indexes.of(statement, preemptor.task, candidates_of, probe)
    else {
        return false;
    };
    match preemptor.is_preempt() {
        true => search_by_score(statement, preemptor, (victim_index, votes)),
        false => search_by_name(statement, preemptor, (victim_index, votes)),
    }
}

/// Returns an upper bound of what evictions on the node can free for the task: the room with all
/// candidates gone. Reclaim counts the pods of all queues, so that tasks of different queues have
/// one bound.
fn bound(session: &SessionState<'_>, preemptor: &Preemptor<'_>, node: NodeId) -> PreemptionBound {
    let tasks = session.nodes[node].tasks.iter().copied();
    let task = preemptor.task;
    let bound = match preemptor.kind {
        PreemptionKind::Reclaim => {
            let candidates = tasks.filter(|&victim| may_be_reclaimed(session, victim));
            preemption_bound(session, task, node, candidates)
        }
        _ => preemption_bound(session, task, node, preemptor.candidates_on(session, node)),
    };
    // Reclaim searches free nodes separately.
    let may_suffice = bound.may_suffice && (bound.has_candidates || preemptor.is_preempt());
    PreemptionBound { may_suffice, ..bound }
}

fn search_by_score(
    statement: &mut Statement<'_, '_>,
    preemptor: &Preemptor<'_>,
    (victim_index, votes): (&mut VictimNodeIndex, &mut Votes),
) -> bool {
    if victim_index.next_promising(0).is_none() {
        return false;
    }
    if statement.rank_cached(preemptor.task, victim_index) {
        return place_on_next(statement, preemptor, (victim_index, votes), |_, victim_index| {
            victim_index.take_best()
        });
    }
    shards(statement).into_iter().any(|shard| {
        let all = &statement.info().nodes;
        let open = std::iter::successors(victim_index.next_open(0), |&last| {
            victim_index.next_open(last + 1)
        });
        let open: Vec<usize> = open.filter(|&at| is_in(statement, all[at], shard)).collect();
        let nodes: Vec<NodeId> = open.iter().map(|&at| all[at]).collect();
        let best_first = by_score(statement, preemptor.task, &nodes);
        let mut places = best_first.into_iter().map(|index| open[index]);
        place_on_next(statement, preemptor, (victim_index, votes), |_, victim_index| {
            places.find(|&place| victim_index.preemption_bound(place).may_suffice)
        })
    })
}

fn search_by_name(
    statement: &mut Statement<'_, '_>,
    preemptor: &Preemptor<'_>,
    (victim_index, votes): (&mut VictimNodeIndex, &mut Votes),
) -> bool {
    for shard in shards(statement) {
        let session: &SessionState<'_> = statement;
        let all = &session.info().nodes;
        let roomy = std::iter::successors(victim_index.next_with_room(0), |&last| {
            victim_index.next_with_room(last + 1)
        });
        let roomy = roomy.map(|at| all[at]).filter(|&node| is_in(session, node, shard));
        if let Some(node) = free_node(session, preemptor, roomy) {
            let room = preemptor.freed.room_of(node);
            return statement.pipeline(preemptor.task, node, room).is_ok();
        }
        let mut from = 0;
        let is_placed =
            place_on_next(statement, preemptor, (victim_index, votes), |session, victim_index| {
                loop {
                    let place = victim_index.next_promising(from)?;
                    from = place + 1;
                    if is_in(session, session.info().nodes[place], shard) {
                        return Some(place);
                    }
                }
            });
        if is_placed {
            return true;
        }
    }
    false
}

/// Tries the nodes in the order of `next`, without those whose votes would leave too few victims
/// again. Returns true if the task was placed.
fn place_on_next(
    statement: &mut Statement<'_, '_>,
    preemptor: &Preemptor<'_>,
    (victim_index, votes): (&mut VictimNodeIndex, &mut Votes),
    mut next: impl FnMut(&SessionState<'_>, &mut VictimNodeIndex) -> Option<usize>,
) -> bool {
    while let Some(place) = next(statement, victim_index) {
        if victim_index.is_rejected(statement, place) {
            statement.stats().n_skipped_nodes += 1;
            continue;
        }
        let node = statement.info().nodes[place];
        match place_on(statement, preemptor, node) {
            NodeOutcome::Placed => return true,
            NodeOutcome::TooFew(offer) => {
                let Offer { candidates, selection, too_few } = *offer;
                let question = preemptor.question();
                victim_index.reject(statement, place, question, &candidates, &selection);
                votes.insert(node, (candidates, selection, too_few.unwrap_or_default()));
            }
            NodeOutcome::InTheWay => {}
        }
    }
    false
}

/// Returns the shard groups in which nodes are tried: own nodes, then others. A `None` entry stands
/// for all nodes.
fn shards(session: &SessionState<'_>) -> Vec<Option<bool>> {
    let cluster: &Cluster = session;
    match cluster.settings.sharding.mode == ShardingMode::Soft {
        true => vec![Some(true), Some(false)],
        false => vec![None],
    }
}

fn is_in(session: &SessionState<'_>, node: NodeId, shard: Option<bool>) -> bool {
    shard.is_none_or(|own| session.nodes[node].in_shard == own)
}

/// Computes the failure that the plain search would find on a node.
struct Probe<'a> {
    preemptor: &'a Preemptor<'a>,
    /// True if the log lines of the plain search are written. Cached failures are not logged again.
    logs: bool,
    votes: &'a Votes,
}

impl NodeProbe for Probe<'_> {
    fn vote(&self, session: &SessionState<'_>, node: NodeId) -> EvictableSet {
        let (task, question) = (self.preemptor.task, self.preemptor.question());
        if let Some((candidates, selection, sums)) = self.votes.get(&node) {
            return voted(session, question, (candidates, selection), sums.clone());
        }
        let mut candidates: Vec<TaskId> = self.preemptor.candidates_on(session, node).collect();
        in_eviction_order(session, task, &mut candidates);
        vote(session, question, &candidates)
    }

    fn node_failure(
        &self,
        session: &SessionState<'_>,
        node: NodeId,
        evictable_set: &EvictableSet,
        has_quota: bool,
    ) -> Option<NodeFailure> {
        let (causes, n_attempts) = match self.preemptor.is_preempt() {
            true => self.of_preempt(session, node, evictable_set, has_quota)?,
            false => (self.of_reclaim(session, node, evictable_set, has_quota)?, 0),
        };
        Some(NodeFailure { causes, n_attempts, depends_on: evictable_set.depends_on })
    }
}

impl Probe<'_> {
    /// Returns the causes and the counted attempts. Returns `None` if preempt may place the task
    /// there.
    fn of_preempt(
        &self,
        session: &SessionState<'_>,
        node: NodeId,
        evictable_set: &EvictableSet,
        has_quota: bool,
    ) -> Option<(NodeCauses, u32)> {
        let task = self.preemptor.task;
        self.logs.then(|| log_considered(session, task, node));
        if lacking_without(session, task, node, evictable_set.victims.as_ref()).is_some() {
            self.logs.then(|| log_too_few(session, task, node));
            return Some((too_few(session, task, node, evictable_set), 0));
        }
        if evictable_set.victims.is_some() {
            return None;
        }
        // The node has room without victims, and something else is in the way.
        let obstacle = obstacle(session, task, node, has_quota)?;
        let causes = match evictable_set.candidates {
            None => smallvec![(obstacle, 1)],
            Some(_) => too_few(session, task, node, evictable_set),
        };
        Some((causes, 1))
    }

    /// Returns the causes. Returns `None` if reclaim may place the task there.
    fn of_reclaim(
        &self,
        session: &SessionState<'_>,
        node: NodeId,
        evictable_set: &EvictableSet,
        has_quota: bool,
    ) -> Option<NodeCauses> {
        let task = self.preemptor.task;
        let has_room = session.fits_future_idle(task, node);
        if evictable_set.candidates.is_none() {
            let is_free = has_room && obstacle(session, task, node, has_quota).is_none();
            return (!is_free).then(|| smallvec![(Cause::NoCandidate, 1)]);
        }
        if has_room
            || lacking_without(session, task, node, evictable_set.victims.as_ref()).is_none()
        {
            return None;
        }
        self.logs.then(|| log_too_few(session, task, node));
        Some(too_few(session, task, node, evictable_set))
    }
}

/// Returns what keeps the task from a node with room for it.
fn obstacle(
    session: &SessionState<'_>,
    task: TaskId,
    node: NodeId,
    has_quota: bool,
) -> Option<Cause> {
    if !has_quota {
        return Some(Cause::QueueFull(session.jobs[session.tasks[task].job?].queue));
    }
    let mut findings = Vec::new();
    session.plugins().predicate(session.view(), task, node, &mut findings);
    findings.into_iter().next().map(|finding| Cause::Filter(finding.reason))
}
