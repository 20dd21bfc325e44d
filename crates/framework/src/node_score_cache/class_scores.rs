//! Cached results of one class: per node whether it is a candidate, and the total of its scores.
//! `examine.rs` and `score_sums.rs` compute them.
//!
//! Exact because:
//! - [`PreparedRules`] exist only where every plugin declares what it reads;
//! - the engine's laws compare with the plain evaluator, messages included.
//!
//! Specification: actions.md 12.2 S2, S4, 4.7.

use vc_model::{ChangeReader, Code, Finding, FitErrors, NodeId, Reason};

use super::NodeSearch;
use super::budget::bytes_of;
use super::column_cache::{ColumnCache, UsedColumn};
use super::node_rows::NodeRows;
use super::node_tournament::NodeTournament;
use super::normalized_scores::NormalizedScores;
use super::prepared::PreparedRules;
use super::score_sums::ScoreSums;
use crate::session::SessionState;
use crate::victim_node_index::VictimNodeIndex;

/// Filter result of a node that passes. Every other result is one more than the index of a refusal.
pub(super) const PASSES: u16 = 0;
/// Filter result of a node that a rule refuses and whose findings were not asked for yet.
pub(super) const REFUSED: u16 = u16::MAX;

/// Upper bound of candidates that drop out one by one by cluster-scoped rules. Beyond it all others are looked
/// through.
const MOST_DROPS: usize = 16;

/// Cost of one node by itself, in nodes of a computation over all nodes.
const MANY: usize = 48;

/// How cached results are brought up to date.
pub(super) enum Staleness {
    /// Only changed nodes have to be computed.
    Nodes,
    /// Everything has to be computed.
    All,
}

/// The inputs from which results are computed.
#[derive(Clone, Copy)]
pub(super) struct EvaluationContext<'l, 's> {
    pub(super) session: &'l SessionState<'s>,
    pub(super) rules: &'l PreparedRules<'l>,
    pub(super) rows: &'l NodeRows,
    pub(super) column_cache: &'l ColumnCache,
    /// The columns that the rules use, in their order.
    pub(super) used: &'l [UsedColumn],
}

/// The results of one class for all nodes, by position in name order.
#[derive(Debug)]
pub(super) struct ClassScores {
    /// Columns by class field, in the state in which they were used.
    pub(super) used: Vec<UsedColumn>,
    /// Revision of the columns. It changes with the set of nodes.
    pub(super) columns_revision: u64,
    changed_nodes: ChangeReader<NodeId>,
    pub(super) filter_results: Vec<u16>,
    n_unexplained: usize,
    refusals: Vec<NodeRefusal>,
    /// Heap bytes of the refusals' findings.
    n_bytes_of_findings: usize,
    /// Filter results of nodes without room, by position of the resource in the request.
    pub(super) no_room: Vec<u16>,
    /// Filter result of nodes of other shards.
    pub(super) forbidden: u16,
    /// Summands of the totals. `None` until they are first needed.
    pub(super) sums: Option<ScoreSums>,
    pub(super) normalized: NormalizedScores,
    pub(super) tournament: NodeTournament,
    /// True if a score is out of range but counts in the plain evaluator, which then serves this
    /// class.
    pub(super) broken: bool,
}

/// A list of findings, with the number of nodes that have it.
#[derive(Debug)]
struct NodeRefusal {
    findings: Vec<Finding>,
    /// True if the findings come from checks before any plugin (room, shard).
    before_plugins: bool,
    n_nodes: u32,
}

impl ClassScores {
    /// Computes the results for every node. `recycled` lends its memory, because first touches of
    /// memory cost more than the results.
    pub(super) fn new(context: EvaluationContext<'_, '_>, recycled: Option<Box<Self>>) -> Self {
        let EvaluationContext { session, rows, .. } = context;
        let n_nodes = rows.len();
        let recycled = recycled.filter(|recycled| recycled.filter_results.len() == n_nodes);
        let (filter_results, tournament) = match recycled.map(|recycled| *recycled) {
            Some(Self { filter_results, tournament, .. }) => (filter_results, tournament),
            None => (vec![PASSES; n_nodes], NodeTournament::new(n_nodes)),
        };
        let mut class_scores = Self {
            used: context.used.to_vec(),
            columns_revision: context.column_cache.columns_revision,
            changed_nodes: ChangeReader::at_end(session.node_changes()),
            filter_results,
            n_unexplained: 0,
            refusals: Vec::new(),
            n_bytes_of_findings: 0,
            no_room: Vec::new(),
            forbidden: PASSES,
            sums: None,
            normalized: NormalizedScores::new(context),
            tournament,
            broken: false,
        };
        class_scores.name_refusals(context);
        class_scores.examine_all(context);
        class_scores.normalized.update_scores(context.column_cache, &mut class_scores.broken);
        class_scores.rank_all(context);
        class_scores
    }

    /// Enters the refusals that need no plugin: no room, and outside of the shard.
    fn name_refusals(&mut self, context: EvaluationContext<'_, '_>) {
        for &(dim, _) in &context.rules.room {
            let filter_result = self.verdict_of(vec![crate::scan::no_room(dim)], true);
            self.no_room.push(filter_result);
        }
        self.forbidden = self.verdict_of(vec![crate::scan::outside_shard()], true);
    }

    pub(super) fn staleness(&self, session: &SessionState<'_>, used: &[UsedColumn]) -> Staleness {
        let is_logged = self.changed_nodes.unread(session.node_changes()).is_some();
        match self.used == used && !self.broken && is_logged {
            true => Staleness::Nodes,
            false => Staleness::All,
        }
    }

    /// Returns the positions of the nodes that changed since the last call, for
    /// [`ClassScores::catch_up`].
    pub(super) fn changed(&mut self, session: &SessionState<'_>, rows: &NodeRows) -> Vec<usize> {
        let changed = self.changed_nodes.read(session.node_changes());
        changed.into_iter().flatten().filter_map(|node| rows.position(node)).collect()
    }

    fn are_many(&self, n_changed: usize) -> bool {
        self.filter_results.len() < MANY * n_changed
    }

    /// Computes the nodes at these positions again.
    pub(super) fn catch_up(&mut self, context: EvaluationContext<'_, '_>, changed: &[usize]) {
        let many = self.are_many(changed.len());
        match many {
            true => {
                self.sums = None;
                self.examine_all(context);
            }
            false => {
                changed.iter().for_each(|&at| self.examine(context, at));
                let Self { sums, tournament, .. } = &mut *self;
                if let Some(sums) = sums {
                    changed.iter().for_each(|&at| sums.update(context, at, tournament.group(at)));
                }
            }
        }
        // S4: another extreme changes the score of every candidate.
        match self.normalized.update_scores(context.column_cache, &mut self.broken) || many {
            true => self.rank_all(context),
            false => changed.iter().for_each(|&at| self.rank_one(context, at)),
        }
    }

    /// Returns the best node, or the errors if there is none. Returns `None` if only the plain
    /// evaluator can decide.
    pub(super) fn found(&mut self, context: EvaluationContext<'_, '_>) -> Option<NodeSearch> {
        if self.broken {
            return None;
        }
        match self.tournament.best() {
            Some(at) => Some(NodeSearch::Node(context.session.info().nodes[at])),
            None => self.fit_errors(context).map(NodeSearch::Nowhere),
        }
    }

    /// Returns the best node that also passes the cluster-scoped filters. Returns `None` if only
    /// the plain evaluator can decide.
    pub(super) fn found_passing(
        &mut self,
        context: EvaluationContext<'_, '_>,
    ) -> Option<NodeSearch> {
        if self.broken {
            return None;
        }
        let nodes = &context.session.info().nodes;
        let one_by_one = !context.rules.scores_batches() && !self.normalized.depend_on_candidates();
        let best = match one_by_one {
            true => self.best_one_by_one(context),
            false => self.best_of_all(context)?,
        };
        match best {
            Some(at) => Some(NodeSearch::Node(nodes[at])),
            None if context.rules.cluster_scoped.is_empty() => self.found(context),
            None => self.queried_errors(context).map(NodeSearch::Nowhere),
        }
    }

    /// Passes groups and scores to a victim index. Returns false if they are not valid.
    pub(super) fn rank_places(&self, victim_index: &mut VictimNodeIndex) -> bool {
        if !self.broken {
            let result = |at| (self.tournament.group(at), self.tournament.score(at));
            victim_index.rank(self.filter_results.len(), result);
        }
        !self.broken
    }

    /// Returns the best node that passes the cluster-scoped filters. Requires that no raw score is above 0: then a
    /// candidate that drops out does not change other scores.
    fn best_one_by_one(&mut self, context: EvaluationContext<'_, '_>) -> Option<usize> {
        let nodes = &context.session.info().nodes;
        let passes = |at: usize| context.rules.cluster_scoped.pass(nodes[at]);
        let mut dropped = Vec::new();
        let best = loop {
            match self.tournament.best() {
                Some(_) if MOST_DROPS <= dropped.len() => {
                    break self.tournament.best_passing(passes);
                }
                Some(at) if !passes(at) => dropped.push(self.tournament.take_out(at)),
                best => break best,
            }
        };
        dropped.into_iter().for_each(|node| self.tournament.put_back(node));
        best
    }

    /// Returns roughly the size in memory, in time independent of the number of nodes.
    pub(super) fn n_bytes(&self) -> usize {
        size_of::<Self>()
            + bytes_of(&self.used)
            + bytes_of(&self.filter_results)
            + bytes_of(&self.refusals)
            + self.n_bytes_of_findings
            + bytes_of(&self.no_room)
            + self.sums.as_ref().map_or(0, ScoreSums::n_bytes)
            + self.normalized.n_bytes()
            + self.tournament.n_bytes()
    }

    /// Replaces filter result and group of a node. The caller computes its score next.
    pub(super) fn enter(
        &mut self,
        context: EvaluationContext<'_, '_>,
        at: usize,
        filter_result: u16,
        group: u8,
    ) {
        let before = std::mem::replace(&mut self.filter_results[at], filter_result);
        if before != filter_result {
            match before {
                PASSES => {}
                REFUSED => self.n_unexplained -= 1,
                refusal => self.refusals[usize::from(refusal) - 1].n_nodes -= 1,
            }
            match filter_result {
                PASSES => {}
                REFUSED => self.n_unexplained += 1,
                refusal => self.refusals[usize::from(refusal) - 1].n_nodes += 1,
            }
        }
        let before = self.tournament.group(at);
        if before != group {
            self.normalized.moves(context.column_cache, at, before, group);
            self.tournament.set(at, group, 0.0);
        }
    }

    /// Counts the nodes of each refusal.
    pub(super) fn count_verdicts(&mut self) {
        self.n_unexplained = 0;
        self.refusals.iter_mut().for_each(|refusal| refusal.n_nodes = 0);
        for &filter_result in
            self.filter_results.iter().filter(|filter_result| **filter_result != PASSES)
        {
            match filter_result {
                REFUSED => self.n_unexplained += 1,
                refusal => self.refusals[usize::from(refusal) - 1].n_nodes += 1,
            }
        }
    }

    /// Returns the filter result that stands for these findings. Returns [`REFUSED`] if there are
    /// too many different ones.
    fn verdict_of(&mut self, findings: Vec<Finding>, before_plugins: bool) -> u16 {
        let known = self.refusals.iter().position(|refusal| {
            refusal.before_plugins == before_plugins && refusal.findings == findings
        });
        let index = known.unwrap_or_else(|| {
            self.n_bytes_of_findings += n_bytes_of(&findings);
            self.refusals.push(NodeRefusal { findings, before_plugins, n_nodes: 0 });
            self.refusals.len() - 1
        });
        u16::try_from(index + 1).unwrap_or(REFUSED)
    }

    /// Returns the fit errors of a class without a candidate. Returns `None` if too many nodes have
    /// different findings.
    fn fit_errors(&mut self, context: EvaluationContext<'_, '_>) -> Option<FitErrors> {
        let nodes = &context.session.info().nodes;
        self.explain(context, nodes)?;
        let mut errors = FitErrors::default();
        for refusal in self.refusals.iter().filter(|refusal| 0 < refusal.n_nodes) {
            errors.add_many(refusal.n_nodes, &refusal.findings);
        }
        let unresolvable: Vec<bool> =
            self.refusals.iter().map(NodeRefusal::is_unresolvable).collect();
        if unresolvable.contains(&true) {
            for (&node, &filter_result) in nodes.iter().zip(&self.filter_results) {
                if filter_result != PASSES && unresolvable[usize::from(filter_result) - 1] {
                    errors.mark_unresolvable(node);
                }
            }
        }
        Some(errors)
    }

    /// Returns the fit errors where some filters are cluster-scoped: the rules run for each node
    /// that passes room and shard. Returns `None` if the rules find nothing against some node.
    fn queried_errors(&self, context: EvaluationContext<'_, '_>) -> Option<FitErrors> {
        let nodes = &context.session.info().nodes;
        let rules =
            context.session.plugins().node_rules(context.session.view(), context.rules.task);
        let mut errors = FitErrors::default();
        let mut findings = Vec::new();
        let before = self.refusals.iter().filter(|it| it.before_plugins && 0 < it.n_nodes);
        before.for_each(|refusal| errors.add_many(refusal.n_nodes, &refusal.findings));
        for (&node, &filter_result) in nodes.iter().zip(&self.filter_results) {
            let refusal = match filter_result {
                PASSES | REFUSED => None,
                refusal => self.refusals.get(usize::from(refusal) - 1),
            };
            if let Some(refusal) = refusal.filter(|refusal| refusal.before_plugins) {
                if refusal.is_unresolvable() {
                    errors.mark_unresolvable(node);
                }
                continue;
            }
            findings.clear();
            rules.find(node, &mut findings);
            if findings.is_empty() {
                return None;
            }
            errors.add(node, &findings);
        }
        Some(errors)
    }

    /// Runs the rules for the nodes that they refused, to learn their findings. Returns `None` if
    /// there are too many different findings. Requires that the task has no cluster-scoped filter,
    /// because these rules include all filters.
    fn explain(&mut self, context: EvaluationContext<'_, '_>, nodes: &[NodeId]) -> Option<()> {
        if self.n_unexplained == 0 {
            return Some(());
        }
        let rules =
            context.session.plugins().node_rules(context.session.view(), context.rules.task);
        for (at, &node) in nodes.iter().enumerate() {
            if self.filter_results[at] != REFUSED {
                continue;
            }
            let mut findings = Vec::new();
            rules.find(node, &mut findings);
            debug_assert!(!findings.is_empty(), "tests refuse what the rules do not");
            let filter_result = self.verdict_of(findings, false);
            if filter_result == REFUSED {
                self.broken = true;
                return None;
            }
            self.n_unexplained -= 1;
            self.filter_results[at] = filter_result;
            self.refusals[usize::from(filter_result) - 1].n_nodes += 1;
        }
        Some(())
    }
}

impl NodeRefusal {
    fn is_unresolvable(&self) -> bool {
        self.findings.iter().any(|finding| finding.code == Code::Unresolvable)
    }
}

fn n_bytes_of(findings: &Vec<Finding>) -> usize {
    let owned = |finding: &Finding| match &finding.reason {
        Reason::Owned(text) => text.len(),
        Reason::Text(_) | Reason::Insufficient(_) => 0,
    };
    bytes_of(findings) + findings.iter().map(owned).sum::<usize>()
}
