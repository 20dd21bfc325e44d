//! What is remembered for one class: per node the verdict of the filters and the parts of the
//! score. Specification: actions.md 12.2 S2, S4, 4.7.

use std::collections::BTreeMap;

use vc_model::{Code, Finding, FitErrors, NodeId, ShardingMode, TaskId};

use super::tree::{NONE, Tree};
use super::{Column, Found, Normal, Positions, Prepared};
use crate::dispatch::NodeRules;
use crate::scan::Filter;
use crate::session::Session;

/// Candidates of 4.7 in the order in which they are tried: idle before future room, and with soft
/// sharding own nodes before others.
const N_GROUPS: usize = 4;

/// Whether what is remembered can be brought up to date.
pub(super) enum Staleness {
    /// By looking at the nodes that changed.
    Nodes,
    /// By starting over.
    All,
}

/// The results of one class for all nodes, by position in name order.
#[derive(Debug)]
pub(super) struct ClassMemo {
    pub(super) last_use: u64,
    /// In the log of changes.
    seen_until: u64,
    set_version: u64,
    n_dims: usize,
    /// Of the columns.
    versions: Vec<u64>,
    /// Of each plugin that scores in batches, in tier order.
    plugins: Vec<Vec<Shape>>,
    /// 0: the node passes, else one more than the index in `refusals`.
    verdicts: Vec<u16>,
    refusals: Vec<Refusal>,
    /// Σ NodeOrder; empty without such plugins.
    bases: Vec<f64>,
    /// Per node and plugin Σ weight × score of the columns that are not normalised.
    fixed: Vec<i64>,
    /// Per node the raw scores of the columns that are.
    raws: Vec<i32>,
    n_raws: usize,
    groups: [Group; N_GROUPS],
    tree: Tree,
    /// A score is none that the plain evaluator would count: it is asked for this class.
    broken: bool,
}

/// What a column does with raw scores.
#[derive(Clone, Copy, Debug)]
struct Shape {
    weight: i64,
    normal: Option<Normal>,
}

/// Findings that some nodes have, and how many.
#[derive(Debug)]
struct Refusal {
    findings: Vec<Finding>,
    /// No plugin was asked.
    before_plugins: bool,
    n_nodes: u32,
}

/// The candidates of one group: how often each raw score occurs, per normalised column.
#[derive(Debug, Default)]
struct Group {
    counts: Vec<BTreeMap<i32, u32>>,
}

impl Group {
    fn highest(&self, raw: usize) -> i64 {
        let last = self.counts.get(raw).and_then(BTreeMap::last_key_value);
        last.map_or(0, |(&score, _)| i64::from(score.max(0)))
    }
}

impl ClassMemo {
    /// Looks at every node.
    pub(super) fn new(session: &Session<'_>, rules: &Prepared<'_>) -> Self {
        let n_nodes = session.facts().nodes.len();
        let shapes = rules.columns.iter().map(|columns| {
            let shape =
                |column: &Column<'_>| Shape { weight: column.weight, normal: column.normal };
            columns.iter().map(shape).collect()
        });
        let plugins: Vec<Vec<Shape>> = shapes.collect();
        let n_raws = plugins.iter().flatten().filter(|column| column.normal.is_some()).count();
        let scores_nodes = session.hooks().scores_nodes();
        let mut memo = Self {
            last_use: 0,
            seen_until: session.node_changes().end(),
            set_version: session.node_changes().set_version(),
            n_dims: session.dims.len(),
            versions: rules.versions(),
            verdicts: vec![0; n_nodes],
            refusals: Vec::new(),
            bases: vec![0.0; if scores_nodes { n_nodes } else { 0 }],
            fixed: vec![0; n_nodes * plugins.len()],
            raws: vec![0; n_nodes * n_raws],
            n_raws,
            groups: std::array::from_fn(|_| Group { counts: vec![BTreeMap::new(); n_raws] }),
            tree: Tree::new(n_nodes),
            plugins,
            broken: false,
        };
        let groups: Vec<u8> = (0..n_nodes).map(|at| memo.examine(session, rules, at)).collect();
        for (at, &group) in groups.iter().enumerate() {
            memo.count_in(at, group);
        }
        for (at, group) in groups.into_iter().enumerate() {
            let score = memo.total(at, group);
            memo.tree.seed(at, group, score);
        }
        memo.tree.play_all();
        memo
    }

    pub(super) fn staleness(&self, session: &Session<'_>, versions: &[u64]) -> Staleness {
        let changes = session.node_changes();
        let same = self.set_version == changes.set_version()
            && self.n_dims == session.dims.len()
            && self.versions == versions;
        match same && !self.broken && changes.since(self.seen_until).is_some() {
            true => Staleness::Nodes,
            false => Staleness::All,
        }
    }

    /// Looks at the nodes that changed since the last time.
    pub(super) fn catch_up(
        &mut self,
        session: &Session<'_>,
        rules: &Prepared<'_>,
        positions: &mut Positions,
    ) {
        let changes = session.node_changes();
        let changed = positions.distinct(changes.since(self.seen_until).unwrap_or(&[]));
        self.seen_until = changes.end();
        for at in changed {
            self.look_again(session, rules, at);
        }
    }

    /// The best node, or why there is none. `None`: only the plain evaluator can tell.
    pub(super) fn found(&self, session: &Session<'_>) -> Option<Found> {
        if self.broken {
            return None;
        }
        let nodes = &session.facts().nodes;
        Some(match self.tree.best() {
            Some(at) => Found::Node(nodes[at]),
            None => Found::Nowhere(self.fit_errors(nodes)),
        })
    }

    /// The best node that also passes what cannot be remembered: the best ones are asked until one
    /// does. `None`: only the plain evaluator can tell, also why there is none.
    pub(super) fn found_passing(
        &mut self,
        session: &Session<'_>,
        wide: &NodeRules<'_>,
    ) -> Option<Found> {
        // Without a raw score above 0 no candidate that drops out changes the score of another.
        if self.broken || self.highest().iter().any(|&highest| 0 < highest) {
            return None;
        }
        let nodes = &session.facts().nodes;
        let mut dropped = Vec::new();
        let best = loop {
            let best = self.tree.best();
            match best {
                Some(at) if !wide.pass(nodes[at]) => {
                    dropped.push((at, self.tree.group(at), self.tree.score(at)));
                    self.tree.set(at, NONE, 0.0);
                }
                _ => break best,
            }
        };
        for &(at, group, score) in &dropped {
            self.tree.set(at, group, score);
        }
        match best {
            Some(at) => Some(Found::Node(nodes[at])),
            None if dropped.is_empty() && self.all_lack_room() => self.found(session),
            None => None,
        }
    }

    /// No plugin was asked about any node.
    fn all_lack_room(&self) -> bool {
        self.refusals.iter().all(|refusal| refusal.n_nodes == 0 || refusal.before_plugins)
    }

    /// About the size in memory.
    pub(super) fn n_bytes(&self) -> usize {
        let n_nodes = self.verdicts.len();
        n_nodes * (2 + 9 + 8) + 8 * self.bases.len() + 8 * self.fixed.len() + 4 * self.raws.len()
    }

    fn look_again(&mut self, session: &Session<'_>, rules: &Prepared<'_>, at: usize) {
        let before = self.highest();
        let old = self.tree.group(at);
        self.count_out(at, old);
        if let Some(refusal) = self.verdicts[at].checked_sub(1) {
            self.refusals[usize::from(refusal)].n_nodes -= 1;
        }
        let group = self.examine(session, rules, at);
        self.count_in(at, group);
        let score = self.total(at, group);
        self.tree.set(at, group, score);
        if self.n_raws != 0 && before != self.highest() {
            self.rescale();
        }
    }

    /// The extremes on which normalised scores rest.
    fn highest(&self) -> Vec<i64> {
        let groups = self.groups.iter();
        groups.flat_map(|group| (0..self.n_raws).map(|raw| group.highest(raw))).collect()
    }

    /// Another extreme changes the score of every candidate (S4).
    fn rescale(&mut self) {
        for at in 0..self.verdicts.len() {
            let group = self.tree.group(at);
            let score = self.total(at, group);
            self.tree.seed(at, group, score);
        }
        self.tree.play_all();
    }

    /// Asks filters and scorers about a node. Its group.
    fn examine(&mut self, session: &Session<'_>, rules: &Prepared<'_>, at: usize) -> u8 {
        let node = session.facts().nodes[at];
        let mut findings = Vec::new();
        let unusable = session.unusable(rules.task, node, Filter::Allocate);
        let before_plugins = unusable.is_some();
        match unusable {
            Some(finding) => findings.push(finding),
            None => rules.filters.find(node, &mut findings),
        }
        if !findings.is_empty() {
            self.refuse(at, findings, before_plugins);
            return NONE;
        }
        self.verdicts[at] = 0;
        self.score(session, rules, node, at);
        group_of(session, rules.task, node)
    }

    fn refuse(&mut self, at: usize, findings: Vec<Finding>, before_plugins: bool) {
        let known = self.refusals.iter().position(|refusal| {
            refusal.before_plugins == before_plugins && refusal.findings == findings
        });
        let index = known.unwrap_or_else(|| {
            self.refusals.push(Refusal { findings, before_plugins, n_nodes: 0 });
            self.refusals.len() - 1
        });
        self.refusals[index].n_nodes += 1;
        match u16::try_from(index + 1) {
            Ok(verdict) => self.verdicts[at] = verdict,
            // Texts that differ from node to node: not worth remembering.
            Err(_) => self.broken = true,
        }
    }

    fn score(&mut self, session: &Session<'_>, rules: &Prepared<'_>, node: NodeId, at: usize) {
        if let Some(base) = self.bases.get_mut(at) {
            *base = session.hooks().node_score(session.ask(), rules.task, node);
        }
        let n_plugins = self.plugins.len();
        let mut raw = at * self.n_raws;
        for (plugin, columns) in rules.columns.iter().enumerate() {
            let mut sum = 0;
            for column in columns {
                let score = (column.raw)(node);
                match (column.normal, i32::try_from(score)) {
                    (Some(_), Ok(score)) if 0 <= score => {
                        self.raws[raw] = score;
                        raw += 1;
                    }
                    (None, Ok(0..=100)) => sum += column.weight * score,
                    _ => self.broken = true,
                }
            }
            self.fixed[at * n_plugins + plugin] = sum;
        }
    }

    fn count_in(&mut self, at: usize, group: u8) {
        let Some(group) = self.groups.get_mut(usize::from(group)) else { return };
        for (raw, counts) in group.counts.iter_mut().enumerate() {
            *counts.entry(self.raws[at * self.n_raws + raw]).or_default() += 1;
        }
    }

    fn count_out(&mut self, at: usize, group: u8) {
        let Some(group) = self.groups.get_mut(usize::from(group)) else { return };
        for (raw, counts) in group.counts.iter_mut().enumerate() {
            let score = self.raws[at * self.n_raws + raw];
            if let Some(count) = counts.get_mut(&score) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(&score);
                }
            }
        }
    }

    /// The sum in the order of the plain evaluator; within a plugin all terms are whole numbers,
    /// whose order does not matter.
    fn total(&mut self, at: usize, group: u8) -> f64 {
        let Some(group) = self.groups.get(usize::from(group)) else { return 0.0 };
        let mut total = self.bases.get(at).copied().unwrap_or(0.0);
        let mut raw = 0;
        for (plugin, columns) in self.plugins.iter().enumerate() {
            let mut sum = self.fixed[at * self.plugins.len() + plugin];
            for column in columns {
                let Some(normal) = column.normal else { continue };
                let score = normal(self.raws[at * self.n_raws + raw].into(), group.highest(raw));
                self.broken |= !(0..=100).contains(&score);
                sum += column.weight * score;
                raw += 1;
            }
            total += sum as f64;
        }
        self.broken |= total.is_nan();
        total
    }

    fn fit_errors(&self, nodes: &[NodeId]) -> FitErrors {
        let mut errors = FitErrors::default();
        for refusal in self.refusals.iter().filter(|refusal| 0 < refusal.n_nodes) {
            errors.add_many(refusal.n_nodes, &refusal.findings);
        }
        let hopeless: Vec<bool> = self.refusals.iter().map(Refusal::is_unresolvable).collect();
        if hopeless.contains(&true) {
            for (&node, &verdict) in nodes.iter().zip(&self.verdicts) {
                if 0 < verdict && hopeless[usize::from(verdict) - 1] {
                    errors.mark_unresolvable(node);
                }
            }
        }
        errors
    }
}

impl Refusal {
    fn is_unresolvable(&self) -> bool {
        self.findings.iter().any(|finding| finding.code == Code::Unresolvable)
    }
}

/// Where a node that passes stands in the order of the groups.
fn group_of(session: &Session<'_>, task: TaskId, node: NodeId) -> u8 {
    let waits = !session.fits_idle(task, node);
    let foreign = session.cluster.settings.sharding.mode == ShardingMode::Soft
        && !session.nodes[node].in_shard;
    2 * u8::from(waits) + u8::from(foreign)
}
