//! What is remembered for one class: per node whether it is a candidate and the total of its scores,
//! worked out in `examine.rs` and `sums.rs`. Exact where `Prepared` could be made; the engine's laws
//! compare with the plain evaluator, messages included. Specification: actions.md 12.2 S2, S4, 4.7.

use vc_model::{ChangeReader, Code, Finding, FitErrors, NodeId, Reason};

use super::Found;
use super::blocks::Blocks;
use super::budget::bytes_of;
use super::normals::Normals;
use super::parts::{Parts, Used};
use super::prepared::Prepared;
use super::rows::Rows;
use super::sums::Sums;
use crate::session::Session;
use crate::walk::Walk;

/// Verdict of a node that passes. Others are one more than the index of a refusal.
pub(super) const PASSES: u16 = 0;
/// Refused by a rule; what it finds is asked when somebody wants to know.
pub(super) const REFUSED: u16 = u16::MAX;

/// One in so many nodes at most is asked by itself what cannot be remembered; then all are at once.
const MOST_DROPS: usize = 8;

/// A node by itself costs as much as so many of all of them at once.
const MANY: usize = 48;

/// Whether what is remembered can be brought up to date.
pub(super) enum Staleness {
    /// By looking at the nodes that changed.
    Nodes,
    /// By starting over.
    All,
}

/// What results are worked out from.
#[derive(Clone, Copy)]
pub(super) struct Look<'l, 's> {
    pub(super) session: &'l Session<'s>,
    pub(super) rules: &'l Prepared<'l>,
    pub(super) rows: &'l Rows,
    pub(super) parts: &'l Parts,
    /// The columns that the rules use, in their order.
    pub(super) used: &'l [Used],
}

/// The results of one class for all nodes, by position in name order.
#[derive(Debug)]
pub(super) struct ClassMemo {
    /// Columns by part of the class, as they were used.
    pub(super) used: Vec<Used>,
    /// Of the columns; another one with each other set of nodes.
    pub(super) epoch: u64,
    changed_nodes: ChangeReader<NodeId>,
    pub(super) verdicts: Vec<u16>,
    n_unexplained: usize,
    refusals: Vec<Refusal>,
    /// Bytes behind them.
    n_bytes_of_findings: usize,
    /// Verdict of nodes that lack room, by the place of the resource in the request.
    pub(super) no_room: Vec<u16>,
    /// Verdict of nodes of other shards.
    pub(super) forbidden: u16,
    /// `None`: nobody has asked for the parts of the totals yet.
    pub(super) sums: Option<Sums>,
    pub(super) normals: Normals,
    pub(super) blocks: Blocks,
    /// A score is none that the plain evaluator would count: it is asked for this class.
    pub(super) broken: bool,
}

/// Findings that some nodes have, and how many.
#[derive(Debug)]
struct Refusal {
    findings: Vec<Finding>,
    /// No plugin was asked.
    before_plugins: bool,
    n_nodes: u32,
}

impl ClassMemo {
    /// Looks at every node, in the memory of one that nobody needs any more: first touches cost more
    /// than the results.
    pub(super) fn new(look: Look<'_, '_>, spare: Option<Box<Self>>) -> Self {
        let Look { session, rows, .. } = look;
        let n_nodes = rows.len();
        let spare = spare.filter(|spare| spare.verdicts.len() == n_nodes);
        let (verdicts, blocks) = match spare.map(|spare| *spare) {
            Some(Self { verdicts, blocks, .. }) => (verdicts, blocks),
            None => (vec![PASSES; n_nodes], Blocks::new(n_nodes)),
        };
        let mut memo = Self {
            used: look.used.to_vec(),
            epoch: look.parts.epoch,
            changed_nodes: ChangeReader::at_end(session.node_changes()),
            verdicts,
            n_unexplained: 0,
            refusals: Vec::new(),
            n_bytes_of_findings: 0,
            no_room: Vec::new(),
            forbidden: PASSES,
            sums: None,
            normals: Normals::new(look),
            blocks,
            broken: false,
        };
        memo.name_refusals(look);
        memo.examine_all(look);
        memo.normals.settle(look.parts, &mut memo.broken);
        memo.rank_all(look);
        memo
    }

    /// The refusals that need no plugin.
    fn name_refusals(&mut self, look: Look<'_, '_>) {
        for &(dim, _) in &look.rules.room {
            let verdict = self.verdict_of(vec![crate::scan::no_room(dim)], true);
            self.no_room.push(verdict);
        }
        self.forbidden = self.verdict_of(vec![crate::scan::outside_shard()], true);
    }

    pub(super) fn staleness(&self, session: &Session<'_>, used: &[Used]) -> Staleness {
        let is_logged = self.changed_nodes.unread(session.node_changes()).is_some();
        match self.used == used && !self.broken && is_logged {
            true => Staleness::Nodes,
            false => Staleness::All,
        }
    }

    /// Positions of the nodes that changed since the last time, for [`ClassMemo::catch_up`].
    pub(super) fn changed(&mut self, session: &Session<'_>, rows: &Rows) -> Vec<usize> {
        let changed = self.changed_nodes.read(session.node_changes());
        changed.into_iter().flatten().filter_map(|node| rows.position(node)).collect()
    }

    fn are_many(&self, n_changed: usize) -> bool {
        self.verdicts.len() < MANY * n_changed
    }

    /// Looks again at the nodes at these positions.
    pub(super) fn catch_up(&mut self, look: Look<'_, '_>, changed: &[usize]) {
        let many = self.are_many(changed.len());
        match many {
            true => {
                self.sums = None;
                self.examine_all(look);
            }
            false => {
                changed.iter().for_each(|&at| self.examine(look, at));
                let Self { sums, blocks, .. } = &mut *self;
                if let Some(sums) = sums {
                    changed.iter().for_each(|&at| sums.update(look, at, blocks.group(at)));
                }
            }
        }
        // Another extreme changes the score of every candidate (S4).
        match self.normals.settle(look.parts, &mut self.broken) || many {
            true => self.rank_all(look),
            false => changed.iter().for_each(|&at| self.rank_one(look, at)),
        }
    }

    /// The best node, or why there is none. `None`: only the plain evaluator can tell.
    pub(super) fn found(&mut self, look: Look<'_, '_>) -> Option<Found> {
        if self.broken {
            return None;
        }
        match self.blocks.best() {
            Some(at) => Some(Found::Node(look.session.facts().nodes[at])),
            None => self.fit_errors(look).map(Found::Nowhere),
        }
    }

    /// The best node that also passes what cannot be remembered. `None`: only the plain evaluator
    /// can tell.
    pub(super) fn found_passing(&mut self, look: Look<'_, '_>) -> Option<Found> {
        if self.broken {
            return None;
        }
        let nodes = &look.session.facts().nodes;
        let one_by_one = !look.rules.scores_batches() && !self.normals.depend_on_candidates();
        let best = match one_by_one.then(|| self.best_one_by_one(look)) {
            Some(Some(best)) => best,
            _ => self.best_of_all(look)?,
        };
        match best {
            Some(at) => Some(Found::Node(nodes[at])),
            None if look.rules.wide.is_empty() => self.found(look),
            None => self.asked_errors(look).map(Found::Nowhere),
        }
    }

    /// Hands groups and scores to a walk. Whether they can be said.
    pub(super) fn rank_places(&self, walk: &mut Walk) -> bool {
        if !self.broken {
            let result = |at| (self.blocks.group(at), self.blocks.score(at));
            walk.rank(self.verdicts.len(), result);
        }
        !self.broken
    }

    /// The best nodes are asked until one passes. `None`: too many did not. Where no raw score is
    /// above 0, no candidate that drops out changes the score of another.
    fn best_one_by_one(&mut self, look: Look<'_, '_>) -> Option<Option<usize>> {
        let nodes = &look.session.facts().nodes;
        let mut dropped = Vec::new();
        let best = loop {
            let best = self.blocks.best();
            match best {
                Some(at) if !look.rules.wide.pass(nodes[at]) => {
                    dropped.push(self.blocks.take_out(at));
                    if nodes.len() < MOST_DROPS * dropped.len() {
                        break None;
                    }
                }
                _ => break Some(best),
            }
        };
        dropped.into_iter().for_each(|node| self.blocks.put_back(node));
        best
    }

    /// About the size in memory, at no cost by node.
    pub(super) fn n_bytes(&self) -> usize {
        size_of::<Self>()
            + bytes_of(&self.used)
            + bytes_of(&self.verdicts)
            + bytes_of(&self.refusals)
            + self.n_bytes_of_findings
            + bytes_of(&self.no_room)
            + self.sums.as_ref().map_or(0, Sums::n_bytes)
            + self.normals.n_bytes()
            + self.blocks.n_bytes()
    }

    /// Replaces what was known about a node; its score follows.
    pub(super) fn enter(&mut self, look: Look<'_, '_>, at: usize, verdict: u16, group: u8) {
        let before = std::mem::replace(&mut self.verdicts[at], verdict);
        if before != verdict {
            match before {
                PASSES => {}
                REFUSED => self.n_unexplained -= 1,
                refusal => self.refusals[usize::from(refusal) - 1].n_nodes -= 1,
            }
            match verdict {
                PASSES => {}
                REFUSED => self.n_unexplained += 1,
                refusal => self.refusals[usize::from(refusal) - 1].n_nodes += 1,
            }
        }
        let before = self.blocks.group(at);
        if before != group {
            self.normals.moves(look.parts, at, before, group);
            self.blocks.set(at, group, 0.0);
        }
    }

    /// Counts the nodes that each refusal has.
    pub(super) fn count_verdicts(&mut self) {
        self.n_unexplained = 0;
        self.refusals.iter_mut().for_each(|refusal| refusal.n_nodes = 0);
        for &verdict in self.verdicts.iter().filter(|verdict| **verdict != PASSES) {
            match verdict {
                REFUSED => self.n_unexplained += 1,
                refusal => self.refusals[usize::from(refusal) - 1].n_nodes += 1,
            }
        }
    }

    /// The verdict that stands for these findings; [`REFUSED`] if there are too many.
    fn verdict_of(&mut self, findings: Vec<Finding>, before_plugins: bool) -> u16 {
        let known = self.refusals.iter().position(|refusal| {
            refusal.before_plugins == before_plugins && refusal.findings == findings
        });
        let index = known.unwrap_or_else(|| {
            self.n_bytes_of_findings += n_bytes_of(&findings);
            self.refusals.push(Refusal { findings, before_plugins, n_nodes: 0 });
            self.refusals.len() - 1
        });
        u16::try_from(index + 1).unwrap_or(REFUSED)
    }

    /// `None`: findings that differ from node to node are not worth remembering.
    fn fit_errors(&mut self, look: Look<'_, '_>) -> Option<FitErrors> {
        let nodes = &look.session.facts().nodes;
        self.explain(look, nodes)?;
        let mut errors = FitErrors::default();
        for refusal in self.refusals.iter().filter(|refusal| 0 < refusal.n_nodes) {
            errors.add_many(refusal.n_nodes, &refusal.findings);
        }
        let hopeless: Vec<bool> = self.refusals.iter().map(Refusal::is_unresolvable).collect();
        if hopeless.contains(&true) {
            for (&node, &verdict) in nodes.iter().zip(&self.verdicts) {
                if verdict != PASSES && hopeless[usize::from(verdict) - 1] {
                    errors.mark_unresolvable(node);
                }
            }
        }
        Some(errors)
    }

    /// The same where some findings cannot be remembered: the rules are asked about each node on which
    /// there is room. `None`: one has nothing against a node.
    fn asked_errors(&self, look: Look<'_, '_>) -> Option<FitErrors> {
        let nodes = &look.session.facts().nodes;
        let rules = look.session.hooks().node_rules(look.session.ask(), look.rules.task);
        let mut errors = FitErrors::default();
        let mut findings = Vec::new();
        let before = self.refusals.iter().filter(|it| it.before_plugins && 0 < it.n_nodes);
        before.for_each(|refusal| errors.add_many(refusal.n_nodes, &refusal.findings));
        for (&node, &verdict) in nodes.iter().zip(&self.verdicts) {
            let refusal = match verdict {
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

    /// Asks the rules themselves what they have against the nodes that they refused. There are no
    /// other rules for this task, or those here were not asked.
    fn explain(&mut self, look: Look<'_, '_>, nodes: &[NodeId]) -> Option<()> {
        if self.n_unexplained == 0 {
            return Some(());
        }
        let rules = look.session.hooks().node_rules(look.session.ask(), look.rules.task);
        for (at, &node) in nodes.iter().enumerate() {
            if self.verdicts[at] != REFUSED {
                continue;
            }
            let mut findings = Vec::new();
            rules.find(node, &mut findings);
            debug_assert!(!findings.is_empty(), "tests refuse what the rules do not");
            let verdict = self.verdict_of(findings, false);
            if verdict == REFUSED {
                self.broken = true;
                return None;
            }
            self.n_unexplained -= 1;
            self.verdicts[at] = verdict;
            self.refusals[usize::from(verdict) - 1].n_nodes += 1;
        }
        Some(())
    }
}

impl Refusal {
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
