//! The fast evaluator: what was worked out for a class and a node is kept until the node changes,
//! and what has to be worked out runs over columns, so that a placement costs one node and a new
//! class little more than reading the amounts. Exact where every plugin that filters or scores says
//! what it reads ([`Prepared`]); for any other task the plain evaluator is asked. Every test of the
//! engine compares the two. Specification: actions.md 12.2 S1-S5.

pub(crate) mod blocks;
mod budget;
mod class;
mod columns;
mod examine;
mod gangs;
mod kinds;
mod normals;
mod parts;
mod prepared;
mod rows;
mod sums;
mod wide;

use vc_model::{ByteLruCache, FitErrors, NodeId, TaskId};

use crate::dead_ends::DeadEnds;
use crate::refusals::Refusals;
use crate::scan::Filter;
use crate::session::Session;
use crate::standing::Standings;
use crate::walk::Walk;
use budget::Budget;
use class::{ClassMemo, Look, Staleness};
use parts::{Parts, Used};
use rows::Rows;

pub use columns::{DimColumns, NodeColumns};
pub use parts::{ObjectRule, Part};
pub(crate) use prepared::{Base, Prepared};
pub use prepared::{BatchFill, Column, Fill, NodeTests, Normal, Raw, Reads, Test};

/// Which evaluator finds nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Evaluator {
    /// Every node for every task: what the other one is compared with.
    Plain,
    /// Remembered results.
    #[default]
    Fast,
}

/// What the fast evaluator found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The node that filter and choice of the plain evaluator lead to.
    Node(NodeId),
    /// No node, and why.
    Nowhere(FitErrors),
}

/// How often which path was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    /// Every node was looked at for a class.
    pub filled: u64,
    /// What was remembered decided alone.
    pub remembered: u64,
    /// Candidates were asked what cannot be remembered.
    pub asked: u64,
    /// The plain evaluator was needed.
    pub plain: u64,
}

/// Class, which findings reject a node, and number of tests: some tests are for claims only, which
/// are no part of what classes that share results have in common.
type Key = (u64, Filter, usize);

/// What a class takes in the cache, whose table is not full.
const BYTES_OF_ENTRY: usize = 4 * size_of::<(Key, Box<ClassMemo>)>();

/// Results by class and by what has to be fulfilled, kept from cycle to cycle as long as the
/// configuration. Classes that differ only in what cannot be remembered share them
/// ([`vc_model::Classes::serial`]).
#[derive(Debug, Default)]
pub struct Memo {
    by_class: ByteLruCache<Key, Box<ClassMemo>>,
    /// The last one that had to go: the next one is made in its memory.
    spare: Option<Box<ClassMemo>>,
    budget: Budget,
    rows: Rows,
    parts: Parts,
    paths: Paths,
    /// Between sessions.
    pub(crate) standings: Box<Standings>,
    pub(crate) refusals: Refusals,
    pub(crate) dead_ends: Box<DeadEnds>,
}

impl Session<'_> {
    /// The node for a task among all nodes, by group, shard, score and name, if that can be said
    /// from what is remembered. `None`: ask [`Session::filter`] and choose.
    pub fn find_remembered(&mut self, task: TaskId, filter: Filter) -> Option<Found> {
        let mut memo = self.memo.take()?;
        let found = memo.find(self, task, filter);
        if found.is_none() {
            memo.paths.plain += 1;
        }
        self.memo = Some(memo);
        found
    }

    /// Puts the nodes of a walk in the order in which evictions are tried for the task, if that can
    /// be said from what is remembered (actions.md 6.6).
    pub fn rank_remembered(&mut self, task: TaskId, walk: &mut Walk) -> bool {
        let Some(mut memo) = self.memo.take() else { return false };
        let is_ranked = memo.rank(self, task, walk);
        self.memo = Some(memo);
        is_ranked
    }
}

impl Memo {
    /// How often which path was taken.
    pub fn paths(&self) -> Paths {
        self.paths
    }

    /// How many classes are remembered.
    pub fn n_classes(&self) -> usize {
        self.by_class.len()
    }

    /// Bytes that the results by class take, about.
    pub fn n_bytes(&self) -> usize {
        self.by_class.n_bytes()
    }

    fn find(&mut self, session: &Session<'_>, task: TaskId, filter: Filter) -> Option<Found> {
        let rules = Prepared::new(session, task, filter)?;
        let alone = rules.decide_alone();
        let found = self.of_class(session, &rules, |memo, look| match alone {
            true => memo.found(look),
            false => memo.found_passing(look),
        });
        let path = if alone { &mut self.paths.remembered } else { &mut self.paths.asked };
        *path += u64::from(found.is_some());
        found
    }

    fn rank(&mut self, session: &Session<'_>, task: TaskId, walk: &mut Walk) -> bool {
        let rules = Prepared::new(session, task, Filter::Preempt).filter(Prepared::decide_alone);
        let Some(rules) = rules else { return false };
        self.of_class(session, &rules, |memo, _| memo.rank_places(walk))
    }

    /// Asks what is remembered of the class, once it is up to date.
    fn of_class<T>(
        &mut self,
        session: &Session<'_>,
        rules: &Prepared<'_>,
        ask: impl FnOnce(&mut ClassMemo, Look<'_, '_>) -> T,
    ) -> T {
        self.rows.follow(session);
        self.parts.follow(session);
        let serial = session.classes.serial(session.tasks[rules.task].class);
        let key = (serial, rules.filter, rules.tests.len());
        let kept = self.by_class.take(&key);
        self.budget.asked(&key);
        let kept = kept.filter(|memo| memo.epoch == self.parts.epoch);
        let used = self.use_parts(session, rules, kept.as_ref().map(|memo| &memo.used[..]));
        let mut memo = self.up_to_date(session, rules, kept, &used);
        let Self { rows, parts, .. } = &*self;
        let answer = ask(&mut memo, Look { session, rules, rows, parts, used: &used });
        let n_bytes = memo.n_bytes() + BYTES_OF_ENTRY;
        self.by_class.put(key, memo, n_bytes);
        self.evict();
        answer
    }

    /// The columns that the rules read; those of the class as it was kept are known.
    fn use_parts(
        &mut self,
        session: &Session<'_>,
        rules: &Prepared<'_>,
        kept: Option<&[Used]>,
    ) -> Vec<Used> {
        let class = session.class(rules.task);
        let mut kept = kept.into_iter().flatten().map(|used| used.slot);
        let get =
            |(owner, rule)| self.parts.get(session, &self.rows, (owner, rule, class), kept.next());
        rules.object_rules().map(get).collect()
    }

    fn up_to_date(
        &mut self,
        session: &Session<'_>,
        rules: &Prepared<'_>,
        kept: Option<Box<ClassMemo>>,
        used: &[Used],
    ) -> Box<ClassMemo> {
        let kept = kept.map(|memo| (memo.staleness(session, used), memo));
        let Some((Staleness::Nodes, mut memo)) = kept else {
            self.paths.filled += 1;
            let spare = self.spare.take();
            let Self { rows, parts, .. } = &*self;
            let look = Look { session, rules, rows, parts, used };
            return Box::new(ClassMemo::new(look, spare));
        };
        let Self { rows, parts, .. } = &*self;
        let changed = memo.changed(session, rows);
        memo.catch_up(Look { session, rules, rows, parts, used }, &changed);
        memo
    }

    /// Evicts the least recently used classes until the others fit the budget.
    fn evict(&mut self) {
        while self.budget.most_bytes() < self.by_class.n_bytes() && 1 < self.by_class.len() {
            let Some((key, evicted)) = self.by_class.pop_oldest() else { return };
            self.spare = Some(evicted);
            self.budget.forgot(key);
        }
    }
}
