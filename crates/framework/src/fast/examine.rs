//! Which nodes are candidates for a class. What reads amounts alone is asked once for all nodes of a
//! kind, the rest node by node. Exact because a node's row equals that of its kind; the engine's
//! `columns.rs` compares with the plain evaluator. Specification: actions.md 2.6, 4.7, 12.2 S1, S2.

use std::ops::Range;

use vc_model::Code;

use super::blocks::{BLOCK, NONE};
use super::class::{ClassMemo, Look, PASSES, REFUSED};
use super::columns::{NodeColumns, Shard};
use super::prepared::Test;

impl ClassMemo {
    /// Asks filters about every node.
    pub(super) fn examine_all(&mut self, look: Look<'_, '_>) {
        let kinds = &look.rows.kinds;
        let (mut verdicts, mut groups) = (vec![PASSES; kinds.len()], vec![0; kinds.len()]);
        self.check_amounts(look, &kinds.columns, 0..kinds.len(), &mut verdicts);
        group(look, &kinds.columns, 0..kinds.len(), &mut groups);
        spread(&verdicts, kinds.of(), &mut self.verdicts);
        spread(&groups, kinds.of(), self.blocks.all_mut().0);
        check_nodes(look, 0..self.verdicts.len(), &mut self.verdicts);
        self.count_verdicts();
        let groups = self.blocks.all_mut().0;
        for (group, &verdict) in groups.iter_mut().zip(&self.verdicts) {
            *group = if verdict == PASSES { *group } else { NONE };
        }
        self.normals.count(look.parts, groups);
    }

    /// Asks filters about one node.
    pub(super) fn examine(&mut self, look: Look<'_, '_>, at: usize) {
        let (mut verdict, mut groups) = ([PASSES], [0]);
        let kinds = &look.rows.kinds;
        self.check_amounts(look, &kinds.columns, kinds.row(at), &mut verdict);
        check_nodes(look, at..at + 1, &mut verdict);
        group(look, &kinds.columns, kinds.row(at), &mut groups);
        let group = if verdict[0] == PASSES { groups[0] } else { NONE };
        self.enter(look, at, verdict[0], group);
    }

    /// What reads the amounts of some rows alone.
    fn check_amounts(
        &self,
        look: Look<'_, '_>,
        columns: &NodeColumns,
        range: Range<usize>,
        verdicts: &mut [u16],
    ) {
        self.check_room(look, columns, range.clone(), verdicts);
        let tests = look.rules.tests.iter().filter_map(|(_, test)| match test {
            Test::Amounts(run) => Some(run),
            Test::Object(_) | Test::Row(_) => None,
        });
        for run in tests {
            for (block, verdicts) in range.clone().step_by(BLOCK).zip(verdicts.chunks_mut(BLOCK)) {
                let mut passes = [true; BLOCK];
                let passes = &mut passes[..verdicts.len()];
                run(columns, block..block + verdicts.len(), passes);
                refuse(verdicts, passes.iter().copied());
            }
        }
    }

    /// What needs no plugin, the last one first: of several resources the first one is named.
    fn check_room(
        &self,
        look: Look<'_, '_>,
        columns: &NodeColumns,
        range: Range<usize>,
        verdicts: &mut [u16],
    ) {
        for (&(dim, amount), &refused) in look.rules.room.iter().zip(&self.no_room).rev() {
            let room = &columns.of(dim).future_idle[range.clone()];
            for (verdict, &room) in verdicts.iter_mut().zip(room) {
                *verdict = if room < amount { refused } else { *verdict };
            }
        }
        if look.rows.n_foreign == 0 {
            return;
        }
        for (verdict, &shard) in verdicts.iter_mut().zip(&columns.shards[range]) {
            *verdict = if shard == Shard::Forbidden { self.forbidden } else { *verdict };
        }
    }
}

/// What is known of kinds, for each node.
fn spread<T: Copy + PartialEq>(of_kinds: &[T], kinds: &[u32], of_nodes: &mut [T]) {
    match of_kinds {
        [first, others @ ..] if others.iter().all(|other| other == first) => of_nodes.fill(*first),
        _ => {
            let nodes = of_nodes.iter_mut().zip(kinds);
            nodes.for_each(|(node, &kind)| *node = of_kinds[kind as usize]);
        }
    }
}

/// Refuses nodes that passed so far.
fn refuse(verdicts: &mut [u16], passes: impl Iterator<Item = bool>) {
    for (verdict, passes) in verdicts.iter_mut().zip(passes) {
        *verdict = if *verdict == PASSES && !passes { REFUSED } else { *verdict };
    }
}

/// What reads more of nodes than their amounts.
fn check_nodes(look: Look<'_, '_>, range: Range<usize>, verdicts: &mut [u16]) {
    let mut used = look.used.iter();
    for (_, test) in &look.rules.tests {
        match test {
            Test::Amounts(_) => {}
            Test::Object(_) => {
                let Some(used) = used.next() else { continue };
                let part = look.parts.column(used.slot);
                if part.distinct() != [1] {
                    refuse(verdicts, range.clone().map(|at| part.at(at) != 0));
                }
            }
            Test::Row(run) => {
                let nodes = &look.session.facts().nodes[range.clone()];
                let open =
                    verdicts.iter_mut().zip(nodes).filter(|(verdict, _)| **verdict == PASSES);
                open.filter(|(_, node)| !run(**node)).for_each(|(verdict, _)| *verdict = REFUSED);
            }
        }
    }
    pardon(look, range, verdicts);
}

/// Lets nodes pass against which nothing is found that eviction cannot cure, where that is no
/// reason (actions.md 2.6).
fn pardon(look: Look<'_, '_>, range: Range<usize>, verdicts: &mut [u16]) {
    let Some(rules) = &look.rules.whole else { return };
    let nodes = &look.session.facts().nodes[range];
    let refused = verdicts.iter_mut().zip(nodes).filter(|(verdict, _)| **verdict == REFUSED);
    for (verdict, &node) in refused {
        let mut findings = Vec::new();
        rules.find(node, &mut findings);
        if findings.iter().all(|finding| finding.code == Code::Unschedulable) {
            *verdict = PASSES;
        }
    }
}

/// Where nodes of these rows stand in the order of the groups, if they pass: idle before future
/// room, and with soft sharding own nodes before others.
pub(super) fn group(
    look: Look<'_, '_>,
    columns: &NodeColumns,
    range: Range<usize>,
    groups: &mut [u8],
) {
    if 0 < look.rows.n_foreign {
        for (group, &shard) in groups.iter_mut().zip(&columns.shards[range.clone()]) {
            *group |= u8::from(shard == Shard::Other);
        }
    }
    // Without movement what passed fits idle room.
    if look.rows.n_moving == 0 {
        return;
    }
    for &(dim, amount) in &look.rules.room {
        let idle = &columns.of(dim).idle[range.clone()];
        for (group, &idle) in groups.iter_mut().zip(idle) {
            *group |= u8::from(idle < amount) << 1;
        }
    }
}
