//! Index of the nodes on which evictions could make room for one preemptor signature. An entry is
//! dropped when its node changes. The search for the next task of the same gang continues with the
//! same index.
//!
//! Exact because the index leaves out only nodes that the plain search would pass over:
//! - An unresolvable filter result, no candidate, or too little room even without all candidates.
//!   All three follow from the node's row.
//! - Votes that read only candidates and their jobs, which have not changed since those votes left
//!   too few victims for a task of the same queue.
//! - Tasks of different queues share an index if candidates are those of all queues (reclaim): then
//!   a pod of the task's own queue counts as one, which only leaves more nodes to the search.
//! - With a single filter plugin the open nodes are final. An unresolvable finding ([`Code`]) comes
//!   from no placement, so it holds from before allocate to the end of the action.
//! - With several filter plugins the first finding hides the others, so changed nodes are filtered
//!   again. If allocate found a node unresolvable that is open here, the plain search serves the
//!   task.
//! - Causes are not recorded here: if nothing is found, the plain search runs and records them.
//! - Evicted indexes are built again from all nodes, so it does not matter which ones are kept.
//!
//! The engine's `evictions` tests compare the two searches.
//! Specification: actions.md 2.6, 12.2 S2, S8, S9.

mod ranking;

use rustc_hash::FxHashSet;
use vc_model::{
    ByteLruCache, ChangeReader, Code, Counts, Id, JobId, NodeId, QueueId, Revision, TaskId,
    TaskStatus,
};

use crate::node_score_cache::node_tournament::NONE;
use crate::plugin_set::NodeRules;
use crate::scan::Filter;
use crate::session::SessionState;
use crate::victim_selection::{Question, VictimSelection};
use ranking::Ranking;

/// A cheap upper bound of what evictions on a node can free for a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PreemptionBound {
    /// True if the task fits without evictions.
    pub has_room: bool,
    /// True if the task would fit with all candidates gone.
    pub may_suffice: bool,
    /// True if the node has a candidate.
    pub has_candidates: bool,
}

/// Key of an index: all of a task that filters and victim votes read, and that determines its
/// candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct PreemptorSignature {
    shape_id: u64,
    /// The queue of the task, if filters or candidates depend on it.
    queue: Option<QueueId>,
    best_effort: bool,
    /// The job of the task, if candidates depend on it.
    job: Option<JobId>,
    priorities: (i32, i32, i32),
    /// Preemptable: the task, as the pod says itself, and the PodGroup.
    preemptable: (bool, bool, bool),
    any_revocable_zone: bool,
}

impl PreemptorSignature {
    fn of(
        session: &SessionState<'_>,
        task: TaskId,
        (queue, own): (Option<QueueId>, Option<JobId>),
    ) -> Option<Self> {
        let row = &session.tasks[task];
        let job = &session.jobs[row.job?];
        let group = job.pod_group.as_ref()?;
        let by_queue = session.plugins().scores_by_queue.then_some(job.queue);
        Some(Self {
            shape_id: session.classes.shape_id(row.class),
            queue: queue.or(by_queue),
            best_effort: row.best_effort,
            job: own,
            priorities: (row.priority, row.pod_priority, job.priority),
            preemptable: (row.preemptable, row.marked_preemptable, group.preemptable),
            any_revocable_zone: session.classes[row.class].any_revocable_zone,
        })
    }
}

/// Candidates that the votes left too few of.
#[derive(Clone, Debug)]
struct RejectedCandidates {
    /// The queue of the task that the victims were for.
    queue: QueueId,
    /// The jobs of the candidates, with the counts they had then.
    jobs: Vec<(JobId, Counts)>,
}

/// Upper bound of the bytes of all indexes of one action: enough for some dozen signatures on
/// 20,000 nodes.
pub(crate) const MOST_BYTES: usize = 64 << 20;

/// The indexes of one action by preemptor signature.
#[derive(Debug, Default)]
pub struct VictimNodeIndexCache {
    by_signature: ByteLruCache<PreemptorSignature, VictimNodeIndex>,
    /// Signatures for which a search was run.
    met: FxHashSet<PreemptorSignature>,
    positions: NodePositions,
    n_forgotten: u64,
}

/// The index of one preemptor signature.
#[derive(Debug)]
pub struct VictimNodeIndex {
    changed_nodes: ChangeReader<NodeId>,
    /// Bounds by position in name order.
    bounds: Vec<PreemptionBound>,
    /// The queue of the task whose victims are searched.
    queue: QueueId,
    /// Per node: the candidates that votes left too few of.
    rejections: Vec<Option<RejectedCandidates>>,
    /// Number of jobs in `rejections`.
    n_rejecting: usize,
    /// Nodes that no unresolvable finding rules out.
    open: PositionSet,
    /// True if `open` never changes during the action.
    is_final: bool,
    with_room: PositionSet,
    promising: PositionSet,
    ranking: Ranking,
}

/// Positions of nodes in name order.
#[derive(Debug, Default)]
struct NodePositions {
    by_node: Vec<u32>,
    /// Revision of the set of nodes, which stays the same within a cycle.
    node_set: Option<Revision>,
}

impl NodePositions {
    fn follow(&mut self, session: &SessionState<'_>) {
        let node_set = Some(session.node_set_revision());
        if self.node_set == node_set {
            return;
        }
        let nodes = &session.info().nodes;
        let n_ids = nodes.iter().map(|node| node.index() + 1).max().unwrap_or(0);
        self.by_node = vec![u32::MAX; n_ids];
        for (position, node) in nodes.iter().enumerate() {
            self.by_node[node.index()] = position as u32;
        }
        self.node_set = node_set;
    }

    fn of(&self, node: NodeId) -> Option<usize> {
        self.by_node.get(node.index()).filter(|&&at| at != u32::MAX).map(|&at| at as usize)
    }
}

/// A set of positions, one bit each.
#[derive(Clone, Debug, Default)]
struct PositionSet(Vec<u64>);

impl PositionSet {
    fn set(&mut self, place: usize, is_in: bool) {
        let bit = 1 << (place % 64);
        match is_in {
            true => self.0[place / 64] |= bit,
            false => self.0[place / 64] &= !bit,
        }
    }

    fn n_bytes(&self) -> usize {
        size_of_val(&*self.0)
    }

    fn has(&self, place: usize) -> bool {
        self.0.get(place / 64).is_some_and(|bits| bits & (1 << (place % 64)) != 0)
    }

    /// Returns the first member from this position on.
    fn next(&self, from: usize) -> Option<usize> {
        let first = self.0.get(from / 64)? & (u64::MAX << (from % 64));
        let words = self.0[from / 64..].iter().enumerate().map(|(word, &bits)| (word, bits));
        let mut words = words.map(|(word, bits)| (word, if word == 0 { first } else { bits }));
        let (word, bits) = words.find(|(_, bits)| *bits != 0)?;
        Some(64 * (from / 64 + word) + bits.trailing_zeros() as usize)
    }
}

impl VictimNodeIndexCache {
    /// Returns the index for the task, brought up to date. Returns `None` if only the plain search
    /// can decide. `candidates_of` has the queue and the job of the task, each if candidates depend
    /// on it. `probe` computes the bound of an open node from its row.
    pub fn of(
        &mut self,
        session: &SessionState<'_>,
        task: TaskId,
        candidates_of: (Option<QueueId>, Option<JobId>),
        probe: impl Fn(NodeId) -> PreemptionBound,
    ) -> Option<&mut VictimNodeIndex> {
        let signature = PreemptorSignature::of(session, task, candidates_of)?;
        let (plugins, view) = (session.plugins(), session.view());
        if !session.is_fast || plugins.pre_predicate(view, task).is_err() {
            return None;
        }
        if !plugins.filters_read_rows(view, task) {
            return None;
        }
        // An index pays from the second task of a signature on. A task that is alone in its job may
        // be the last of its signature.
        let job = session.tasks[task].job.map(|job| &session.jobs[job]);
        let is_alone = job.is_some_and(|job| job.counts.of(TaskStatus::Pending) == 1);
        if is_alone && !self.by_signature.contains(&signature) && self.met.insert(signature) {
            return None;
        }
        self.positions.follow(session);
        let queue = session.jobs[session.tasks[task].job?].queue;
        let scan = IndexScan { session, task, queue, probe };
        // The most recently used index may have grown since its bytes were counted.
        self.by_signature.recount_newest(VictimNodeIndex::n_bytes);
        let mut victim_index =
            self.by_signature.take(&signature).unwrap_or_else(|| VictimNodeIndex::new(&scan));
        victim_index.queue = queue;
        victim_index.catch_up(&scan, &self.positions);
        let agrees = || victim_index.agrees(session, task, &self.positions);
        debug_assert!(!victim_index.is_final || agrees());
        let is_sure = victim_index.is_final || agrees();
        let n_bytes = victim_index.n_bytes();
        self.by_signature.put(signature, victim_index, n_bytes);
        while session.victim_index_bytes < self.by_signature.n_bytes()
            && 1 < self.by_signature.len()
        {
            self.by_signature.pop_oldest();
            self.n_forgotten += 1;
        }
        self.by_signature.get_mut(&signature).filter(|_| is_sure)
    }

    /// Returns the number of indexes that were evicted since the last call.
    pub fn take_forgotten(&mut self) -> u64 {
        std::mem::take(&mut self.n_forgotten)
    }
}

/// The inputs for filtering and probing a node.
struct IndexScan<'a, 'c, F> {
    session: &'a SessionState<'c>,
    task: TaskId,
    queue: QueueId,
    probe: F,
}

impl<F> IndexScan<'_, '_, F> {
    fn rules(&self) -> NodeRules<'_> {
        self.session.plugins().node_rules(self.session.view(), self.task)
    }

    /// True if the node has no unresolvable finding.
    fn is_open(&self, rules: &NodeRules<'_>, node: NodeId) -> bool {
        let mut findings = Vec::new();
        match self.session.unusable(self.task, node, Filter::Preempt) {
            Some(finding) => findings.push(finding),
            None => rules.find(node, &mut findings),
        }
        findings.iter().all(|finding| finding.code == Code::Unschedulable)
    }
}

impl VictimNodeIndex {
    fn new<F: Fn(NodeId) -> PreemptionBound>(scan: &IndexScan<'_, '_, F>) -> Self {
        let nodes = &scan.session.info().nodes;
        let n_words = nodes.len().div_ceil(64);
        let mut victim_index = Self {
            changed_nodes: ChangeReader::at_end(scan.session.node_changes()),
            bounds: vec![PreemptionBound::default(); nodes.len()],
            queue: scan.queue,
            rejections: vec![None; nodes.len()],
            n_rejecting: 0,
            open: PositionSet(vec![0; n_words]),
            is_final: scan.session.plugins().n_filters() <= 1,
            with_room: PositionSet(vec![0; n_words]),
            promising: PositionSet(vec![0; n_words]),
            ranking: Ranking::default(),
        };
        let rules = scan.rules();
        for (place, &node) in nodes.iter().enumerate() {
            if scan.is_open(&rules, node) {
                victim_index.open.set(place, true);
                victim_index.enter(place, (scan.probe)(node));
            }
        }
        victim_index
    }

    fn enter(&mut self, place: usize, preemption_bound: PreemptionBound) {
        self.ranking.outdate(place);
        self.bounds[place] = preemption_bound;
        self.set_rejection(place, None);
        self.with_room.set(place, preemption_bound.has_room);
        self.promising.set(place, preemption_bound.may_suffice);
    }

    /// Filters and probes the changed nodes again. Final open nodes are only probed.
    fn catch_up<F: Fn(NodeId) -> PreemptionBound>(
        &mut self,
        scan: &IndexScan<'_, '_, F>,
        positions: &NodePositions,
    ) {
        let changed: Vec<usize> = match self.changed_nodes.read(scan.session.node_changes()) {
            Some(changed) => changed.filter_map(|node| positions.of(node)).collect(),
            None => (0..self.bounds.len()).collect(),
        };
        for place in changed {
            let node = scan.session.info().nodes[place];
            let is_open = || scan.is_open(&scan.rules(), node);
            debug_assert!(!self.is_final || self.open.has(place) == is_open());
            if !self.is_final {
                self.open.set(place, is_open());
                self.enter(place, PreemptionBound::default());
            }
            if self.open.has(place) {
                self.enter(place, (scan.probe)(node));
            }
        }
    }

    /// Returns the first open node from this position on, in name order.
    pub fn next_open(&self, from: usize) -> Option<usize> {
        self.open.next(from)
    }

    /// Returns the first node from this position on, in name order, on which the task has room.
    pub fn next_with_room(&self, from: usize) -> Option<usize> {
        self.with_room.next(from)
    }

    /// Returns the first node from this position on, in name order, on which victims may suffice.
    pub fn next_promising(&self, from: usize) -> Option<usize> {
        self.promising.next(from)
    }

    /// True if no open node is unresolvable according to allocate's fit errors.
    fn agrees(&self, session: &SessionState<'_>, task: TaskId, positions: &NodePositions) -> bool {
        let errors = session.records.fit_errors.get(task);
        let unresolvable = errors.into_iter().flat_map(|errors| errors.unresolvable().iter());
        let mut places = unresolvable.filter_map(|node| positions.of(node));
        places.all(|place| !self.open.has(place))
    }

    /// Ranks the promising nodes; `result` returns the current group and score of a position.
    pub(crate) fn rank(&mut self, n_nodes: usize, result: impl Fn(usize) -> (u8, f64)) {
        let Self { ranking, promising, .. } = self;
        let of_worthy = |at| match promising.has(at) {
            true => result(at),
            false => (NONE, 0.0),
        };
        ranking.follow(n_nodes, of_worthy);
    }

    /// Takes out the best promising node that was not taken since the last ranking
    /// ([`Session::rank_cached`]).
    pub fn take_best(&mut self) -> Option<usize> {
        self.ranking.take_best()
    }

    /// Caches that the votes left too few of these candidates. `selection` is the result of the
    /// votes. Nothing is cached if they read more than the candidates and their jobs
    /// ([`crate::Depends`]).
    pub fn reject(
        &mut self,
        session: &SessionState<'_>,
        place: usize,
        question: Question,
        candidates: &[TaskId],
        selection: &VictimSelection,
    ) {
        self.set_rejection(place, None);
        let tier = selection.rule.as_ref().and_then(|rule| rule.tier);
        if !session.plugins().vote_by_job(session.view(), question, tier, candidates) {
            return;
        }
        let mut jobs: Vec<JobId> =
            candidates.iter().filter_map(|&candidate| session.tasks[candidate].job).collect();
        jobs.sort_unstable();
        jobs.dedup();
        let stand = |job: JobId| (job, session.jobs[job].counts.clone());
        let jobs = jobs.into_iter().map(stand).collect();
        self.set_rejection(place, Some(RejectedCandidates { queue: self.queue, jobs }));
    }

    fn set_rejection(&mut self, place: usize, rejection: Option<RejectedCandidates>) {
        let n_jobs = |rejection: &Option<RejectedCandidates>| {
            rejection.as_ref().map_or(0, |rejection| rejection.jobs.len())
        };
        self.n_rejecting += n_jobs(&rejection);
        let before = std::mem::replace(&mut self.rejections[place], rejection);
        self.n_rejecting -= n_jobs(&before);
    }

    /// Returns roughly the bytes in memory, in time independent of the number of nodes.
    fn n_bytes(&self) -> usize {
        let sets = [&self.open, &self.with_room, &self.promising];
        size_of_val(&*self.bounds)
            + size_of_val(&*self.rejections)
            + self.n_rejecting * size_of::<(JobId, Counts)>()
            + sets.iter().map(|set| set.n_bytes()).sum::<usize>()
            + self.ranking.n_bytes()
    }

    /// True if the cached votes still leave too few candidates: they were for a task of the same
    /// queue, and neither the node's row nor the candidates' jobs changed.
    pub fn is_rejected(&self, session: &SessionState<'_>, place: usize) -> bool {
        let rejection = self.rejections[place].as_ref();
        rejection.filter(|rejection| rejection.queue == self.queue).is_some_and(|rejection| {
            let mut jobs = rejection.jobs.iter();
            jobs.all(|(job, counts)| session.jobs[*job].counts == *counts)
        })
    }

    /// Returns the bound of the node at this position.
    pub fn preemption_bound(&self, place: usize) -> PreemptionBound {
        self.bounds[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_in_order() {
        let mut places = PositionSet(vec![0; 3]);
        for place in [0, 5, 63, 64, 130, 5] {
            places.set(place, true);
        }
        places.set(63, false);
        let all = std::iter::successors(places.next(0), |&last| places.next(last + 1));
        assert_eq!(all.collect::<Vec<_>>(), [0, 5, 64, 130]);
        assert_eq!((places.next(131), places.next(1000)), (None, None));
        assert_eq!(PositionSet::default().next(0), None);
    }
}
