//! The failure of each node for one search key.
//! Specification: actions.md 12.2 S7.

use vc_model::{Code, FitErrors, Id, NodeId, NodeSet, QueueId, TaskId};

use super::changed_nodes::{ChangedNodes, ChangedNodesReader};
use super::evictable_sets::{DependsOn, EvictableSet, EvictableSets};
use super::{NodeFailure, NodeProbe, PreemptionKind, SearchKey};
use crate::cause::{Cause, Tally};
use crate::plugin_set::NodeRules;
use crate::scan::Filter;
use crate::session::SessionState;

/// Entry of a node without a cause: it is unresolvable for allocate, or it is gone.
const NOTHING: u16 = 0;
/// Entry of a node that is in `to_probe`.
const UNKNOWN: u16 = u16::MAX;

/// Upper bound of the number of different node failures. With more, comparing them is too slow.
const MOST_KINDS: usize = 256;

/// Counts of the causes of a search that finds nothing.
pub(super) struct FailureSummary {
    pub(super) causes: Tally,
    pub(super) n_attempts: u32,
    pub(super) n_probed: u64,
    /// True if filters rule out every node.
    pub(super) nowhere: bool,
}

/// The cached failure of one search.
#[derive(Debug, Default)]
pub(super) struct FailedPreemption {
    /// The session of the last use.
    pub(super) last_use: u64,
    reader: ChangedNodesReader,
    /// By index of the node: `NOTHING`, `UNKNOWN`, or one more than the index into `kinds`.
    of_node: Vec<u16>,
    kinds: Vec<NodeFailureClass>,
    /// Nodes that are `UNKNOWN`. `fleeting` has the nodes whose answer holds in one state only;
    /// they are checked at each search.
    to_probe: Vec<NodeId>,
    fleeting: Vec<NodeId>,
    conditions: SearchConditions,
}

/// A node failure, with the number of nodes that have it.
#[derive(Debug)]
struct NodeFailureClass {
    node_failure: NodeFailure,
    is_open: bool,
    n_nodes: u32,
}

/// Conditions of a search that do not depend on a node.
#[derive(Clone, Debug, Default, PartialEq)]
struct SearchConditions {
    /// True if the queue has room for the task.
    has_quota: bool,
    /// True if allocate found every node unresolvable. The filters then run again, for the causes.
    none_is_worth_it: bool,
    /// Nodes that allocate found unresolvable.
    unresolvable: NodeSet,
}

impl SearchConditions {
    fn now(session: &SessionState<'_>, task: TaskId) -> Self {
        let queue = session.tasks[task].job.map(|job| session.jobs[job].queue);
        let allocatable =
            |queue| session.plugins().allocatable(session.view(), queue, task).is_ok();
        let errors = session.records.fit_errors.get(task);
        let unresolvable = errors.map(|errors| errors.unresolvable().clone()).unwrap_or_default();
        let nodes = &session.info().nodes;
        let none_is_worth_it =
            errors.is_some_and(|errors| nodes.iter().all(|&node| errors.is_unresolvable(node)));
        let has_quota = queue.is_some_and(allocatable);
        Self { has_quota, none_is_worth_it, unresolvable }
    }
}

impl FailedPreemption {
    pub(super) fn bytes_for(n_nodes: usize) -> usize {
        2 * size_of::<(SearchKey, Self)>() + n_nodes * (size_of::<u16>() + size_of::<NodeId>())
    }

    pub(super) fn n_bytes(&self) -> usize {
        Self::bytes_for(self.of_node.len()) + self.kinds.len() * size_of::<NodeFailureClass>()
    }

    /// Checks the nodes that changed. Returns `None` if the task may be placed on some node.
    pub(super) fn query(
        &mut self,
        session: &SessionState<'_>,
        (task, key): (TaskId, &SearchKey),
        (changed, votes): (&mut ChangedNodes, &mut NodeVotes),
        now: (u64, u64),
        probe: &dyn NodeProbe,
    ) -> Option<FailureSummary> {
        let own = session.tasks[task].job.map(|job| session.jobs[job].queue);
        // True if candidates of this search may be in the queue.
        let reads = |queue: QueueId| (Some(queue) == own) == (key.kind != PreemptionKind::Reclaim);
        self.catch_up(session, (task, key), changed, reads);
        votes.by_signature.catch_up(changed, reads, now);
        // Tasks of any queue share these.
        votes.by_request.iter_mut().for_each(|sets| sets.catch_up(changed, |_| true, now));
        let rules = || session.plugins().node_rules(session.view(), task);
        let n_probed = self.to_probe.len() as u64;
        let check =
            (!self.to_probe.is_empty()).then(|| NodeCheck { session, task, own, rules: rules() });
        while let Some((&node, check)) = self.to_probe.last().zip(check.as_ref()) {
            // The node is entered in any case, since its votes are cached.
            changed.places.enter(session, node);
            let found = match changed.has(node) {
                true => check.see(node, &self.conditions, (votes, probe))?,
                false => None,
            };
            if MOST_KINDS <= self.kinds.len() {
                return None;
            }
            self.to_probe.pop();
            self.note(node, found);
        }
        Some(FailureSummary { n_probed, ..self.summary() })
    }

    /// Marks the nodes as unknown that changed since the last search.
    fn catch_up(
        &mut self,
        session: &SessionState<'_>,
        (task, key): (TaskId, &SearchKey),
        changed: &ChangedNodes,
        reads: impl Fn(QueueId) -> bool,
    ) {
        let conditions = SearchConditions::now(session, task);
        let before = std::mem::replace(&mut self.conditions, conditions);
        let is_kept = before.has_quota == self.conditions.has_quota
            && before.none_is_worth_it == self.conditions.none_is_worth_it
            && key.has_own_usage();
        match changed.read(&mut self.reader).filter(|_| is_kept) {
            Some(news) => {
                news.nodes.for_each(|node| self.outdate(node));
                let queues = news.queues.filter(|&queue| reads(queue));
                let nodes = queues.flat_map(|queue| changed.places.of_queue(queue));
                nodes.for_each(|&node| self.outdate_queue_usage(node));
            }
            None => self.start(&session.info().nodes),
        }
        if before.unresolvable != self.conditions.unresolvable {
            let now = self.conditions.unresolvable.clone();
            let differs =
                |node: &NodeId| before.unresolvable.contains(*node) != now.contains(*node);
            let different = before.unresolvable.iter().chain(now.iter()).filter(differs);
            different.for_each(|node| self.outdate(node));
        }
        for node in std::mem::take(&mut self.fleeting) {
            self.outdate(node);
        }
    }

    /// Marks all nodes as unknown.
    fn start(&mut self, nodes: &[NodeId]) {
        self.of_node.fill(NOTHING);
        self.kinds.clear();
        self.fleeting.clear();
        self.to_probe.clear();
        // Nodes are checked from the end of the list.
        nodes.iter().rev().for_each(|&node| self.outdate(node));
    }

    fn outdate(&mut self, node: NodeId) {
        if self.of_node.len() <= node.index() {
            self.of_node.resize(node.index() + 1, NOTHING);
        }
        let before = std::mem::replace(&mut self.of_node[node.index()], UNKNOWN);
        match before {
            UNKNOWN => return,
            NOTHING => {}
            kind => self.kinds[usize::from(kind) - 1].n_nodes -= 1,
        }
        self.to_probe.push(node);
    }

    /// Marks a node as unknown if its failure depends on queue usage.
    fn outdate_queue_usage(&mut self, node: NodeId) {
        let kind =
            self.of_node.get(node.index()).filter(|&&kind| kind != NOTHING && kind != UNKNOWN);
        let kind = kind.map(|&kind| &self.kinds[usize::from(kind) - 1]);
        if kind.is_some_and(|kind| kind.node_failure.depends_on == DependsOn::QueueUsage) {
            self.outdate(node);
        }
    }

    fn note(&mut self, node: NodeId, found: Option<(NodeFailure, bool)>) {
        let kind = found.map_or(NOTHING, |(node_failure, is_open)| {
            if node_failure.depends_on == DependsOn::State {
                self.fleeting.push(node);
            }
            self.kind(node_failure, is_open)
        });
        self.of_node[node.index()] = kind;
    }

    /// Adds a node to the class of this failure and returns the entry of the node.
    fn kind(&mut self, node_failure: NodeFailure, is_open: bool) -> u16 {
        let is_it =
            |kind: &NodeFailureClass| kind.is_open == is_open && kind.node_failure == node_failure;
        let place = self.kinds.iter().position(is_it).unwrap_or_else(|| {
            let unused = self.kinds.iter().position(|kind| kind.n_nodes == 0);
            let kind = NodeFailureClass { node_failure, is_open, n_nodes: 0 };
            match unused {
                Some(place) => self.kinds[place] = kind,
                None => self.kinds.push(kind),
            }
            unused.unwrap_or(self.kinds.len() - 1)
        });
        self.kinds[place].n_nodes += 1;
        (place + 1) as u16
    }

    fn summary(&self) -> FailureSummary {
        let mut causes = Tally::new();
        let mut n_attempts = 0;
        for kind in self.kinds.iter().filter(|kind| 0 < kind.n_nodes) {
            n_attempts += kind.n_nodes * kind.node_failure.n_attempts;
            for (cause, count) in &kind.node_failure.causes {
                *causes.entry(cause.clone()).or_default() += kind.n_nodes * count;
            }
        }
        let is_open = |kind: &NodeFailureClass| kind.is_open && 0 < kind.n_nodes;
        let nowhere = !self.kinds.iter().any(is_open);
        FailureSummary { causes, n_attempts, n_probed: 0, nowhere }
    }
}

/// The votes on the candidates of nodes that a search shares with others.
pub(super) struct NodeVotes {
    pub(super) by_signature: EvictableSets,
    /// Those that it shares with tasks of other queues, too. `None` if there are none.
    pub(super) by_request: Option<EvictableSets>,
}

/// The inputs for checking a node.
struct NodeCheck<'a, 'c> {
    session: &'a SessionState<'c>,
    task: TaskId,
    /// The task's queue.
    own: Option<QueueId>,
    rules: NodeRules<'a>,
}

impl NodeCheck<'_, '_> {
    /// True if pods of the task's queue are on the node.
    fn has_own_pods(&self, node: NodeId) -> bool {
        let jobs = |&task: &TaskId| self.session.tasks[task].job;
        let mut jobs = self.session.nodes[node].tasks.iter().filter_map(jobs);
        jobs.any(|job| Some(self.session.jobs[job].queue) == self.own)
    }

    /// Returns the failure of a node, and whether filters leave it open. An inner `None` means that
    /// the node does not count. Returns `None` if the task may be placed there.
    fn see(
        &self,
        node: NodeId,
        conditions: &SearchConditions,
        (votes, probe): (&mut NodeVotes, &dyn NodeProbe),
    ) -> Option<Option<(NodeFailure, bool)>> {
        if conditions.unresolvable.contains(node) && !conditions.none_is_worth_it {
            return Some(None);
        }
        let mut findings = Vec::new();
        match self.session.unusable(self.task, node, Filter::Preempt) {
            Some(finding) => findings.push(finding),
            None => self.rules.find(node, &mut findings),
        }
        if findings.iter().any(|finding| finding.code != Code::Unschedulable) {
            let mut errors = FitErrors::default();
            errors.add(node, &findings);
            let reasons = errors.reasons.into_iter();
            let causes = reasons.map(|(reason, count)| (Cause::Filter(reason), count)).collect();
            let lack = NodeFailure { causes, n_attempts: 0, depends_on: DependsOn::Rows };
            return Some(Some((lack, false)));
        }
        if conditions.none_is_worth_it {
            return Some(None);
        }
        let NodeVotes { by_signature, by_request } = votes;
        let vote = || probe.vote(self.session, node);
        let is_shared = |found: &EvictableSet| found.is_shared;
        // Pods of the own queue are candidates for other queues.
        let evictable_set = match by_request.as_mut().filter(|_| !self.has_own_pods(node)) {
            Some(sets) => {
                let vote = || by_signature.of(node, is_shared, vote).into_owned();
                sets.of(node, EvictableSet::is_lasting, vote)
            }
            None => by_signature.of(node, is_shared, vote),
        };
        let lack = probe.node_failure(self.session, node, &evictable_set, conditions.has_quota)?;
        Some(Some((lack, true)))
    }
}
