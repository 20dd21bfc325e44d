//! Filters all nodes for a class. A filter that reads only amounts runs once per kind of node,
//! other filters once per node.
//!
//! Exact because:
//! - a node's row equals the row of its kind;
//! - the engine's `columns.rs` compares with the plain evaluator.
//!
//! Specification: actions.md 2.6, 4.7, 12.2 S1, S2.

use std::ops::Range;

use vc_model::Code;

use super::class_scores::{ClassScores, EvaluationContext, PASSES, REFUSED};
use super::columns::{NodeColumns, Shard};
use super::node_tournament::{BLOCK, NONE};
use super::prepared::NodeTest;

impl ClassScores {
    /// Runs the filters for every node.
    pub(super) fn examine_all(&mut self, context: EvaluationContext<'_, '_>) {
        let kinds = &context.rows.kinds;
        let (mut filter_results, mut groups) = (vec![PASSES; kinds.len()], vec![0; kinds.len()]);
        self.check_amounts(context, &kinds.columns, 0..kinds.len(), &mut filter_results);
        group(context, &kinds.columns, 0..kinds.len(), &mut groups);
        spread(&filter_results, kinds.of(), &mut self.filter_results);
        spread(&groups, kinds.of(), self.tournament.all_mut().0);
        check_nodes(context, 0..self.filter_results.len(), &mut self.filter_results);
        self.count_verdicts();
        let groups = self.tournament.all_mut().0;
        for (group, &filter_result) in groups.iter_mut().zip(&self.filter_results) {
            *group = if filter_result == PASSES { *group } else { NONE };
        }
        self.normalized.count(context.column_cache, groups);
    }

    /// Runs the filters for the node at a position.
    pub(super) fn examine(&mut self, context: EvaluationContext<'_, '_>, at: usize) {
        let (mut filter_result, mut groups) = ([PASSES], [0]);
        let kinds = &context.rows.kinds;
        self.check_amounts(context, &kinds.columns, kinds.row(at), &mut filter_result);
        check_nodes(context, at..at + 1, &mut filter_result);
        group(context, &kinds.columns, kinds.row(at), &mut groups);
        let group = if filter_result[0] == PASSES { groups[0] } else { NONE };
        self.enter(context, at, filter_result[0], group);
    }

    /// Runs the filters that read only amounts, on a range of rows.
    fn check_amounts(
        &self,
        context: EvaluationContext<'_, '_>,
        columns: &NodeColumns,
        range: Range<usize>,
        filter_results: &mut [u16],
    ) {
        self.check_room(context, columns, range.clone(), filter_results);
        let tests = context.rules.tests.iter().filter_map(|(_, test)| match test {
            NodeTest::Amounts(run) => Some(run),
            NodeTest::Object(_) | NodeTest::Row(_) => None,
        });
        for run in tests {
            for (block, filter_results) in
                range.clone().step_by(BLOCK).zip(filter_results.chunks_mut(BLOCK))
            {
                let mut passes = [true; BLOCK];
                let passes = &mut passes[..filter_results.len()];
                run(columns, block..block + filter_results.len(), passes);
                refuse(filter_results, passes.iter().copied());
            }
        }
    }

    /// Checks shard and room, which need no plugin. Resources are checked in reverse, so that the
    /// first one that is short is named.
    fn check_room(
        &self,
        context: EvaluationContext<'_, '_>,
        columns: &NodeColumns,
        range: Range<usize>,
        filter_results: &mut [u16],
    ) {
        for (&(dim, amount), &refused) in context.rules.room.iter().zip(&self.no_room).rev() {
            let room = &columns.of(dim).future_idle[range.clone()];
            for (filter_result, &room) in filter_results.iter_mut().zip(room) {
                *filter_result = if room < amount { refused } else { *filter_result };
            }
        }
        if context.rows.n_foreign == 0 {
            return;
        }
        for (filter_result, &shard) in filter_results.iter_mut().zip(&columns.shards[range]) {
            *filter_result =
                if shard == Shard::Forbidden { self.forbidden } else { *filter_result };
        }
    }
}

/// Copies the value of each kind to its nodes.
fn spread<T: Copy + PartialEq>(of_kinds: &[T], kinds: &[u32], of_nodes: &mut [T]) {
    match of_kinds {
        [first, others @ ..] if others.iter().all(|other| other == first) => of_nodes.fill(*first),
        _ => {
            let nodes = of_nodes.iter_mut().zip(kinds);
            nodes.for_each(|(node, &kind)| *node = of_kinds[kind as usize]);
        }
    }
}

/// Marks nodes that passed so far and fail this filter as refused.
fn refuse(filter_results: &mut [u16], passes: impl Iterator<Item = bool>) {
    for (filter_result, passes) in filter_results.iter_mut().zip(passes) {
        *filter_result = if *filter_result == PASSES && !passes { REFUSED } else { *filter_result };
    }
}

/// Runs the filters that read more than amounts, on a range of nodes.
fn check_nodes(
    context: EvaluationContext<'_, '_>,
    range: Range<usize>,
    filter_results: &mut [u16],
) {
    let mut used = context.used.iter();
    for (_, test) in &context.rules.tests {
        match test {
            NodeTest::Amounts(_) => {}
            NodeTest::Object(_) => {
                let Some(used) = used.next() else { continue };
                let part = context.column_cache.column(used.slot);
                if part.distinct() != [1] {
                    refuse(filter_results, range.clone().map(|at| part.at(at) != 0));
                }
            }
            NodeTest::Row(run) => {
                let nodes = &context.session.info().nodes[range.clone()];
                let open = filter_results
                    .iter_mut()
                    .zip(nodes)
                    .filter(|(filter_result, _)| **filter_result == PASSES);
                open.filter(|(_, node)| !run(**node))
                    .for_each(|(filter_result, _)| *filter_result = REFUSED);
            }
        }
    }
    pardon(context, range, filter_results);
}

/// Lets refused nodes pass whose findings are all curable by eviction. Runs only in the filter
/// modes that ignore such findings (actions.md 2.6).
fn pardon(context: EvaluationContext<'_, '_>, range: Range<usize>, filter_results: &mut [u16]) {
    let Some(rules) = &context.rules.whole else { return };
    let nodes = &context.session.info().nodes[range];
    let refused = filter_results
        .iter_mut()
        .zip(nodes)
        .filter(|(filter_result, _)| **filter_result == REFUSED);
    for (filter_result, &node) in refused {
        let mut findings = Vec::new();
        rules.find(node, &mut findings);
        if findings.iter().all(|finding| finding.code == Code::Unschedulable) {
            *filter_result = PASSES;
        }
    }
}

/// Computes the group of nodes that pass. Idle room comes before future room; with soft sharding
/// own nodes come before others.
pub(super) fn group(
    context: EvaluationContext<'_, '_>,
    columns: &NodeColumns,
    range: Range<usize>,
    groups: &mut [u8],
) {
    if 0 < context.rows.n_foreign {
        for (group, &shard) in groups.iter_mut().zip(&columns.shards[range.clone()]) {
            *group |= u8::from(shard == Shard::Other);
        }
    }
    // Without releasing or pipelined tasks, future idle equals idle.
    if context.rows.n_moving == 0 {
        return;
    }
    for &(dim, amount) in &context.rules.room {
        let idle = &columns.of(dim).idle[range.clone()];
        for (group, &idle) in groups.iter_mut().zip(idle) {
            *group |= u8::from(idle < amount) << 1;
        }
    }
}
