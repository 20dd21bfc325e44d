//! The fast evaluator: filter results and scores per class and node, cached until the node changes.
//! Missing results are computed over columns of all nodes. A placement then costs one node, and a
//! new class little more than reading the amounts.
//!
//! Exact because:
//! - every plugin that filters or scores declares what it reads ([`PreparedRules`]);
//! - a task for which some plugin declares nothing is left to the plain evaluator;
//! - every test of the engine compares the two evaluators.
//!
//! Specification: actions.md 12.2 S1-S5.

mod budget;
mod class_scores;
mod cluster_scoped;
mod column_cache;
mod columns;
mod examine;
mod gangs;
mod node_kinds;
mod node_rows;
pub(crate) mod node_tournament;
mod normalized_scores;
mod place_counts;
mod prepared;
mod score_sums;

use vc_model::{ByteLruCache, FitErrors, NodeId, QueueId, TaskId};

use crate::scan::Filter;
use crate::session::{Session, SessionState};
use crate::victim_node_index::VictimNodeIndex;
use budget::CacheBudget;
use class_scores::{ClassScores, EvaluationContext, Staleness};
use column_cache::{ColumnCache, UsedColumn};
use node_rows::NodeRows;

pub use column_cache::{ClassField, NodeColumnRule};
pub use columns::{DimColumns, NodeColumns};
pub use prepared::{BatchFill, ColumnFill, NodeTest, NodeTests, Normalizer, RawScore, ScoreColumn};
pub(crate) use prepared::{NodeOrderForm, PreparedRules};

/// The evaluator that finds nodes for tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Evaluator {
    /// Filters and scores every node for every task. It is the oracle of the fast evaluator.
    Plain,
    /// Uses cached results.
    #[default]
    Fast,
}

/// The result of a node search by the fast evaluator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeSearch {
    /// The node that the plain evaluator would choose.
    Node(NodeId),
    /// No node fits; the errors say why.
    Nowhere(FitErrors),
}

/// Counters of the ways in which the evaluator found its answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvaluatorPaths {
    /// Classes whose results were computed for every node.
    pub filled: u64,
    /// Searches that cached results alone decided.
    pub remembered: u64,
    /// Searches that also checked candidates against cluster-scoped rules, which are not cached.
    pub asked: u64,
    /// Searches that were left to the plain evaluator.
    pub plain: u64,
}

/// Cache key: shape id, filter mode, number of tests, and queue. The number of tests is part of it
/// because some tests exist only for tasks with claims, and the shape id does not cover claims. The
/// queue is `None` if no plugin reads it of a task ([`crate::Inputs::OWN_QUEUE`]).
type ClassScoresKey = (u64, Filter, usize, Option<QueueId>);

/// Bytes of the hash table per class. The factor allows for a table that is not full.
const BYTES_OF_ENTRY: usize = 4 * size_of::<(ClassScoresKey, Box<ClassScores>)>();

/// Cached results by pod shape and filter mode. They live across cycles until the configuration
/// changes. Classes that differ only in fields that cannot be cached share one entry
/// ([`vc_model::Classes::shape_id`]).
#[derive(Debug, Default)]
pub struct NodeScoreCache {
    by_class: ByteLruCache<ClassScoresKey, Box<ClassScores>>,
    /// The entry that was evicted last. The next entry reuses its memory.
    recycled: Option<Box<ClassScores>>,
    budget: CacheBudget,
    rows: NodeRows,
    column_cache: ColumnCache,
    paths: EvaluatorPaths,
}

impl Session<'_> {
    /// Returns the best node for a task among all nodes, by group, shard, score and name. Returns
    /// `None` if cached results cannot decide; the caller then uses [`SessionState::filter`] and
    /// chooses.
    pub fn find_cached(&mut self, task: TaskId, filter: Filter) -> Option<NodeSearch> {
        self.caches.score_cache.as_mut()?.search(&self.state, task, filter)
    }

    /// Ranks the nodes of a victim index in the order in which evictions are tried for the task
    /// (actions.md 6.6). Returns false if cached results cannot rank them.
    pub(crate) fn rank_cached(&mut self, task: TaskId, victim_index: &mut VictimNodeIndex) -> bool {
        let score_cache = self.caches.score_cache.as_mut();
        score_cache.is_some_and(|score_cache| score_cache.rank(&self.state, task, victim_index))
    }
}

impl SessionState<'_> {
    /// Returns the queue of the task, if filters or scores of some plugin depend on it.
    fn queue_for_scores(&self, task: TaskId) -> Option<QueueId> {
        if !self.plugins().scores_by_queue {
            return None;
        }
        self.tasks[task].job.map(|job| self.jobs[job].queue)
    }
}

impl NodeScoreCache {
    /// Keeps the budget small: most classes of trials are lent, and never come back.
    pub(crate) fn fix_budget(&mut self) {
        self.budget.fix();
    }

    /// Returns a cache for another copy of the cluster, with the rows of the nodes alone.
    pub(crate) fn copy_rows(&self) -> Self {
        Self { rows: self.rows.clone(), ..Self::default() }
    }

    /// Returns the bytes of the parts.
    pub(crate) fn sizes(&self) -> [(&'static str, usize); 2] {
        [
            ("class_score_bytes", self.by_class.n_bytes()),
            ("node_column_bytes", self.column_cache.n_bytes()),
        ]
    }

    /// Returns how often each way was taken.
    pub fn paths(&self) -> EvaluatorPaths {
        self.paths
    }

    /// Returns the number of cached classes.
    pub fn n_classes(&self) -> usize {
        self.by_class.len()
    }

    /// Returns roughly the bytes that the cached results take.
    pub fn n_bytes(&self) -> usize {
        self.by_class.n_bytes()
    }

    /// Returns the node that the plain evaluator would choose, and counts the way it was found.
    pub fn search(
        &mut self,
        session: &SessionState<'_>,
        task: TaskId,
        filter: Filter,
    ) -> Option<NodeSearch> {
        let found = self.find(session, task, filter);
        self.paths.plain += u64::from(found.is_none());
        found
    }

    fn find(
        &mut self,
        session: &SessionState<'_>,
        task: TaskId,
        filter: Filter,
    ) -> Option<NodeSearch> {
        let rules = PreparedRules::new(session, task, filter)?;
        let alone = rules.decide_alone();
        let found = self.of_class(session, &rules, |cached, context| match alone {
            true => cached.found(context),
            false => cached.found_passing(context),
        });
        let path = if alone { &mut self.paths.remembered } else { &mut self.paths.asked };
        *path += u64::from(found.is_some());
        found
    }

    fn rank(
        &mut self,
        session: &SessionState<'_>,
        task: TaskId,
        victim_index: &mut VictimNodeIndex,
    ) -> bool {
        let rules =
            PreparedRules::new(session, task, Filter::Preempt).filter(PreparedRules::decide_alone);
        let Some(rules) = rules else { return false };
        self.of_class(session, &rules, |cached, _| cached.rank_places(victim_index))
    }

    /// Runs `query` on the cached results of the task's class, after they were brought up to date.
    fn of_class<T>(
        &mut self,
        session: &SessionState<'_>,
        rules: &PreparedRules<'_>,
        query: impl FnOnce(&mut ClassScores, EvaluationContext<'_, '_>) -> T,
    ) -> T {
        self.rows.follow(session);
        self.column_cache.follow(session, &self.rows);
        let shape_id = session.classes.shape_id(session.tasks[rules.task].class);
        let queue = session.queue_for_scores(rules.task);
        let key = (shape_id, rules.filter, rules.tests.len(), queue);
        let kept = self.by_class.take(&key);
        self.budget.asked(&key);
        let kept =
            kept.filter(|cached| cached.columns_revision == self.column_cache.columns_revision);
        let used = self.use_columns(session, rules, kept.as_ref().map(|cached| &cached.used[..]));
        let mut cached = self.up_to_date(session, rules, kept, &used);
        let Self { rows, column_cache, .. } = &*self;
        let answer = query(
            &mut cached,
            EvaluationContext { session, rules, rows, column_cache, used: &used },
        );
        let n_bytes = cached.n_bytes() + BYTES_OF_ENTRY;
        self.by_class.put(key, cached, n_bytes);
        self.evict();
        answer
    }

    /// Returns the columns that the rules read. `kept` holds the slots of an earlier use, which
    /// need no lookup.
    fn use_columns(
        &mut self,
        session: &SessionState<'_>,
        rules: &PreparedRules<'_>,
        kept: Option<&[UsedColumn]>,
    ) -> Vec<UsedColumn> {
        let class = session.class(rules.task);
        let mut kept = kept.into_iter().flatten().map(|used| used.slot);
        let get = |(owner, rule)| {
            self.column_cache.get(session, &self.rows, (owner, rule, class), kept.next())
        };
        rules.object_rules().map(get).collect()
    }

    fn up_to_date(
        &mut self,
        session: &SessionState<'_>,
        rules: &PreparedRules<'_>,
        kept: Option<Box<ClassScores>>,
        used: &[UsedColumn],
    ) -> Box<ClassScores> {
        let kept = kept.map(|cached| (cached.staleness(session, used), cached));
        let Some((Staleness::Nodes, mut cached)) = kept else {
            self.paths.filled += 1;
            let recycled = self.recycled.take();
            let Self { rows, column_cache, .. } = &*self;
            let context = EvaluationContext { session, rules, rows, column_cache, used };
            return Box::new(ClassScores::new(context, recycled));
        };
        let Self { rows, column_cache, .. } = &*self;
        let changed = cached.changed(session, rows);
        cached.catch_up(EvaluationContext { session, rules, rows, column_cache, used }, &changed);
        cached
    }

    /// Evicts the least recently used classes until the others fit the budget.
    fn evict(&mut self) {
        while self.budget.most_bytes() < self.by_class.n_bytes() && 1 < self.by_class.len() {
            let Some((key, evicted)) = self.by_class.pop_oldest() else { return };
            self.recycled = Some(evicted);
            self.budget.forgot(key);
        }
    }
}
