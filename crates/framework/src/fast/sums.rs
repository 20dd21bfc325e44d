//! The totals of candidates, worked out block by block. Only the total of a node is kept: its parts
//! are worked out again where another extreme changes all totals, and kept from then on where
//! candidates are compared among themselves. Exact because sums are made in the order of the plain
//! evaluator. Specification: actions.md 4.7, 12.2 S2, S4.

use std::ops::Range;
use std::slice::Iter;

use super::blocks::{BLOCK, Blocks, NONE};
use super::class::{ClassMemo, Look};
use super::parts::Used;
use super::prepared::{Column, Raw};

/// What goes into the totals of all nodes and does not depend on the candidates, by position.
#[derive(Debug)]
pub(super) struct Sums {
    /// Σ NodeOrder.
    pub(super) bases: Vec<f64>,
    /// Per plugin Σ weight × score of the columns that are not normalised.
    pub(super) fixed: Vec<Vec<i64>>,
    /// A score is none.
    broken: bool,
}

impl Sums {
    pub(super) fn n_bytes(&self) -> usize {
        8 * self.bases.len() * (1 + self.fixed.len())
    }

    fn new(look: Look<'_, '_>) -> Self {
        let n_nodes = look.columns.n_nodes();
        let fixed = look.rules.plugins.iter().map(|_| vec![0; n_nodes]).collect();
        let mut sums = Self { bases: vec![0.0; n_nodes], fixed, broken: false };
        Blocks::ranges(n_nodes).for_each(|range| sums.fill::<BLOCK>(look, range));
        sums
    }

    /// Works the sums of nodes of one block out, at most N.
    pub(super) fn fill<const N: usize>(&mut self, look: Look<'_, '_>, range: Range<usize>) {
        fill_bases(look, range.clone(), &mut self.bases[range.clone()]);
        let mut used = look.used[look.rules.n_test_parts..].iter();
        for (columns, fixed) in look.rules.plugins.iter().zip(&mut self.fixed) {
            let fixed = &mut fixed[range.clone()];
            self.broken |= !fill_fixed::<N>(look, columns, &mut used, range.clone(), fixed);
        }
    }
}

impl ClassMemo {
    /// The parts of the totals of all nodes. `None`: a score is none.
    pub(super) fn kept_sums(&mut self, look: Look<'_, '_>) -> Option<&Sums> {
        let sums = self.sums.get_or_insert_with(|| Sums::new(look));
        self.broken |= sums.broken;
        (!sums.broken).then_some(sums)
    }

    /// Works the totals of all candidates out.
    pub(super) fn rank_all(&mut self, look: Look<'_, '_>) {
        let n_nodes = look.columns.n_nodes();
        Blocks::ranges(n_nodes).for_each(|range| self.rank::<BLOCK>(look, range));
    }

    /// Works the totals of the candidates of one block out, at most N, in the order of the plain
    /// evaluator; within a plugin all terms are whole numbers, whose order does not matter.
    pub(super) fn rank<const N: usize>(&mut self, look: Look<'_, '_>, range: Range<usize>) {
        if self.blocks.groups()[range.clone()].iter().all(|&group| group == NONE) {
            return;
        }
        let mut totals = [0.0; N];
        let totals = &mut totals[..range.len()];
        match &self.sums {
            Some(sums) => totals.copy_from_slice(&sums.bases[range.clone()]),
            None => fill_bases(look, range.clone(), totals),
        }
        let mut used = look.used[look.rules.n_test_parts..].iter();
        for (plugin, columns) in look.rules.plugins.iter().enumerate() {
            let mut sums = [0; N];
            let sums = &mut sums[..range.len()];
            match &self.sums {
                Some(kept) => sums.copy_from_slice(&kept.fixed[plugin][range.clone()]),
                None => {
                    let range = range.clone();
                    self.broken |= !fill_fixed::<N>(look, columns, &mut used, range, sums);
                }
            }
            let groups = &self.blocks.groups()[range.clone()];
            self.normals.add(look.parts, plugin, range.start, groups, sums);
            totals.iter_mut().zip(&*sums).for_each(|(total, &sum)| *total += sum as f64);
        }
        for (at, &total) in range.zip(&*totals) {
            let group = self.blocks.group(at);
            if group != NONE {
                self.broken |= total.is_nan();
                self.blocks.set(at, group, total);
            }
        }
    }
}

/// Σ NodeOrder of nodes of one block.
fn fill_bases(look: Look<'_, '_>, range: Range<usize>, bases: &mut [f64]) {
    bases.fill(0.0);
    look.rules.bases.iter().for_each(|add| add(look.columns, range.clone(), bases));
}

/// Of one plugin: Σ weight × score of what is not normalised, for at most N nodes of one block.
/// `used`: columns of its object rules, and of those of the plugins behind it. False: a score is
/// none.
fn fill_fixed<const N: usize>(
    look: Look<'_, '_>,
    columns: &[Column<'_>],
    used: &mut Iter<'_, Used>,
    range: Range<usize>,
    sums: &mut [i64],
) -> bool {
    let mut scores = [0; N];
    let scores = &mut scores[..range.len()];
    let mut sound = true;
    sums.fill(0);
    for column in columns {
        match &column.raw {
            Raw::Object { normal, .. } => {
                let Some(used) = used.next().filter(|_| normal.is_none()) else { continue };
                let part = look.parts.column(used.slot);
                if part.distinct() == [0] {
                    continue;
                }
                let numbers = range.clone().map(|at| part.at(at));
                scores.iter_mut().zip(numbers).for_each(|(score, number)| *score = number);
            }
            Raw::Amounts(fill) => fill(look.columns, range.clone(), scores),
            Raw::Batch(_) => continue,
        }
        let (mut least, mut most) = (0, 0);
        for (sum, &score) in sums.iter_mut().zip(&*scores) {
            (least, most) = (score.min(least), score.max(most));
            *sum += column.weight * score;
        }
        sound &= least == 0 && most <= 100;
    }
    sound
}
