//! The totals of candidates. What reads amounts alone is worked out once for all nodes of a kind.
//! Only the total of a node is kept: its parts are worked out again where another extreme changes
//! all totals, and kept from then on where candidates are compared among themselves. Exact because
//! sums are made in the order of the plain evaluator, with which the engine's `columns.rs`
//! compares. Specification: actions.md 4.7, 12.2 S1, S2, S4.

use std::ops::Range;

use super::blocks::{BLOCK, Blocks, NONE};
use super::budget::bytes_of;
use super::class::{ClassMemo, Look};
use super::columns::NodeColumns;
use super::examine::group;
use super::parts::Used;
use super::prepared::{Base, Column, Raw};

/// What goes into the totals of all nodes and does not depend on the candidates.
#[derive(Debug)]
pub(super) struct Sums {
    /// Σ NodeOrder.
    pub(super) bases: Vec<f64>,
    /// Per plugin Σ weight × score of the columns that are not normalised.
    pub(super) fixed: Vec<Vec<i64>>,
    /// A score is none.
    broken: bool,
}

/// The same of each kind of nodes, as far as it reads amounts alone.
struct OfKinds {
    /// Of each plugin, in tier order; where all of them read amounts alone, one Σ.
    bases: Vec<Vec<f64>>,
    fixed: Vec<Vec<i64>>,
    broken: bool,
}

impl OfKinds {
    fn new(look: Look<'_, '_>) -> Self {
        let (columns, n_kinds) = (&look.rows.kinds.columns, look.rows.kinds.len());
        let n_bases = if look.rules.bases_read_amounts() { 1 } else { look.rules.bases.len() };
        let mut of_kinds =
            Self { bases: vec![vec![0.0; n_kinds]; n_bases], fixed: Vec::new(), broken: false };
        for (number, base) in look.rules.bases.iter().enumerate() {
            let Base::Amounts(add) = base else { continue };
            let sums = &mut of_kinds.bases[number.min(n_bases - 1)];
            for range in Blocks::ranges(n_kinds) {
                add(columns, range.clone(), &mut sums[range]);
            }
        }
        for plugin in &look.rules.plugins {
            let mut fixed = vec![0; n_kinds];
            for range in Blocks::ranges(n_kinds) {
                let sums_of = &mut fixed[range.clone()];
                of_kinds.broken |= !add_amounts::<BLOCK>(columns, plugin, range, sums_of);
            }
            of_kinds.fixed.push(fixed);
        }
        of_kinds
    }

    /// Σ NodeOrder of a range of nodes, by position; it is asked about candidates only.
    fn add_bases(&self, look: Look<'_, '_>, groups: &[u8], range: Range<usize>, sums: &mut [f64]) {
        let kinds = &look.rows.kinds.of()[range.clone()];
        let add = |sums: &mut [f64], of: &[f64]| {
            sums.iter_mut().zip(kinds).for_each(|(sum, &kind)| *sum += of[kind as usize]);
        };
        match look.rules.bases_read_amounts() {
            true => add(sums, &self.bases[0]),
            false => {
                let add = |number: usize, sums: &mut [f64]| add(sums, &self.bases[number]);
                add_in_order(look, groups, range, sums, add);
            }
        }
    }
}

impl Sums {
    pub(super) fn n_bytes(&self) -> usize {
        let fixed = self.fixed.iter().map(bytes_of).sum::<usize>();
        bytes_of(&self.bases) + bytes_of(&self.fixed) + fixed
    }

    /// Of each node, by position.
    fn of_nodes(look: Look<'_, '_>, groups: &[u8]) -> Self {
        let of_kinds = OfKinds::new(look);
        let kinds = look.rows.kinds.of();
        let mut bases = vec![0.0; kinds.len()];
        of_kinds.add_bases(look, groups, 0..kinds.len(), &mut bases);
        let mut sums = Self { bases, fixed: Vec::new(), broken: of_kinds.broken };
        let mut used = look.used[look.rules.n_test_parts..].iter();
        for (columns, fixed) in look.rules.plugins.iter().zip(&of_kinds.fixed) {
            let mut fixed: Vec<i64> = kinds.iter().map(|&kind| fixed[kind as usize]).collect();
            sums.broken |= !add_objects(look, columns, &mut used, 0..kinds.len(), &mut fixed);
            sums.fixed.push(fixed);
        }
        sums
    }

    /// Works the sums of a node, which is in this group, out anew.
    pub(super) fn update(&mut self, look: Look<'_, '_>, at: usize, group: u8) {
        let (range, columns, row) = (at..at + 1, &look.rows.kinds.columns, look.rows.kinds.row(at));
        self.bases[at] = base_of(look, group, at);
        let mut used = look.used[look.rules.n_test_parts..].iter();
        for (plugin, fixed) in look.rules.plugins.iter().zip(&mut self.fixed) {
            let fixed = &mut fixed[range.clone()];
            fixed.fill(0);
            self.broken |= !add_amounts::<1>(columns, plugin, row.clone(), fixed);
            self.broken |= !add_objects(look, plugin, &mut used, range.clone(), fixed);
        }
    }
}

impl Look<'_, '_> {
    /// Whether nodes of a kind and a group have the same total.
    fn scorers_read_amounts(&self) -> bool {
        let mut used = self.used[self.rules.n_test_parts..].iter();
        self.rules.bases_read_amounts()
            && used.all(|used| self.parts.column(used.slot).distinct().len() <= 1)
    }
}

impl ClassMemo {
    /// The parts of the totals of all nodes. `None`: a score is none.
    pub(super) fn kept_sums(&mut self, look: Look<'_, '_>) -> Option<&Sums> {
        let groups = self.blocks.groups();
        let sums = self.sums.get_or_insert_with(|| Sums::of_nodes(look, groups));
        self.broken |= sums.broken;
        (!sums.broken).then_some(sums)
    }

    /// Works the totals of all candidates out.
    pub(super) fn rank_all(&mut self, look: Look<'_, '_>) {
        let of_kinds = OfKinds::new(look);
        self.broken |= of_kinds.broken;
        match look.scorers_read_amounts() {
            true => self.rank_kinds(look, of_kinds),
            false => self.rank_nodes(look, &of_kinds),
        }
    }

    /// The same where nodes of a kind have the same total.
    fn rank_kinds(&mut self, look: Look<'_, '_>, of_kinds: OfKinds) {
        let kinds = &look.rows.kinds;
        let mut groups = vec![0; kinds.len()];
        group(look, &kinds.columns, 0..kinds.len(), &mut groups);
        let mut used = look.used[look.rules.n_test_parts..].iter();
        let OfKinds { bases, fixed, .. } = of_kinds;
        let mut totals = bases.into_iter().next().unwrap_or_default();
        let columns = look.rules.plugins.iter().zip(fixed);
        for (plugin, (columns, mut sums)) in columns.enumerate() {
            self.broken |= !add_objects(look, columns, &mut used, 0..kinds.len(), &mut sums);
            self.normals.add_one_number(plugin, &groups, &mut sums);
            totals.iter_mut().zip(&sums).for_each(|(total, &sum)| *total += sum as f64);
        }
        // One kind that no node is of any more may have broken it for nothing.
        self.broken |= totals.iter().any(|total| total.is_nan());
        let scores = self.blocks.all_mut().1.iter_mut();
        scores.zip(kinds.of()).for_each(|(score, &kind)| *score = totals[kind as usize]);
    }

    fn rank_nodes(&mut self, look: Look<'_, '_>, of_kinds: &OfKinds) {
        for range in Blocks::ranges(look.rows.len()) {
            let kinds = &look.rows.kinds.of()[range.clone()];
            let mut totals = [0.0; BLOCK];
            let totals = &mut totals[..range.len()];
            let groups = &self.blocks.groups()[range.clone()];
            of_kinds.add_bases(look, groups, range.clone(), totals);
            self.rank::<BLOCK>(look, range, totals, |plugin, sums| {
                let fixed = &of_kinds.fixed[plugin];
                let sums = sums.iter_mut().zip(kinds);
                sums.for_each(|(sum, &kind)| *sum = fixed[kind as usize]);
                true
            });
        }
    }

    /// Works the total of a node out, if it is a candidate.
    pub(super) fn rank_one(&mut self, look: Look<'_, '_>, at: usize) {
        if self.blocks.group(at) == NONE {
            return;
        }
        let (range, columns, row) = (at..at + 1, &look.rows.kinds.columns, look.rows.kinds.row(at));
        let mut base = [base_of(look, self.blocks.group(at), at)];
        self.rank::<1>(look, range.clone(), &mut base, |plugin, sums| {
            add_amounts::<1>(columns, &look.rules.plugins[plugin], row.clone(), sums)
        });
    }

    /// Works the totals of the candidates of one block out, at most N, in the order of the plain
    /// evaluator; within a plugin all terms are whole numbers, whose order does not matter.
    /// `totals`: Σ NodeOrder; `amounts` adds what reads amounts alone.
    fn rank<const N: usize>(
        &mut self,
        look: Look<'_, '_>,
        range: Range<usize>,
        totals: &mut [f64],
        amounts: impl Fn(usize, &mut [i64]) -> bool,
    ) {
        let mut used = look.used[look.rules.n_test_parts..].iter();
        for (plugin, columns) in look.rules.plugins.iter().enumerate() {
            let mut sums = [0; N];
            let sums = &mut sums[..range.len()];
            self.broken |= !amounts(plugin, sums);
            self.broken |= !add_objects(look, columns, &mut used, range.clone(), sums);
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

/// Σ NodeOrder of the node at this position, which is in this group.
fn base_of(look: Look<'_, '_>, group: u8, at: usize) -> f64 {
    let (mut sum, row) = ([0.0], look.rows.kinds.row(at));
    add_in_order(look, &[group], at..at + 1, &mut sum, |number, sum| {
        let Base::Amounts(add) = &look.rules.bases[number] else { return };
        add(&look.rows.kinds.columns, row.clone(), sum);
    });
    sum[0]
}

/// Adds NodeOrder of the plugins one after the other, of a range of nodes; plugins that read more than
/// amounts are asked about candidates only, and may fail. `add` adds that of the one of this number.
fn add_in_order(
    look: Look<'_, '_>,
    groups: &[u8],
    range: Range<usize>,
    sums: &mut [f64],
    add: impl Fn(usize, &mut [f64]),
) {
    let nodes = &look.session.facts().nodes[range];
    let mut failed = Vec::new();
    for (number, base) in look.rules.bases.iter().enumerate() {
        let Base::Row(score) = base else {
            add(number, sums);
            continue;
        };
        for (index, (sum, group)) in sums.iter_mut().zip(groups).enumerate() {
            match (*group != NONE).then(|| score(nodes[index])) {
                Some(Some(score)) => *sum += score,
                Some(None) => failed.push(index),
                None => {}
            }
        }
    }
    failed.into_iter().for_each(|index| sums[index] = 0.0);
}

/// Adds, of one plugin, Σ weight × score by amounts, for at most N rows. False: a score is none.
fn add_amounts<const N: usize>(
    rows: &NodeColumns,
    columns: &[Column<'_>],
    range: Range<usize>,
    sums: &mut [i64],
) -> bool {
    let mut scores = [0; N];
    let scores = &mut scores[..range.len()];
    let mut sound = true;
    for column in columns {
        let Raw::Amounts(fill) = &column.raw else { continue };
        fill(rows, range.clone(), scores);
        let (mut least, mut most) = (0, 0);
        for (sum, &score) in sums.iter_mut().zip(&*scores) {
            (least, most) = (score.min(least), score.max(most));
            *sum += column.weight * score;
        }
        sound &= least == 0 && most <= 100;
    }
    sound
}

/// Adds, of one plugin, Σ weight × score by the objects of nodes that is not normalised. `used`:
/// columns of its object rules, and of those of the plugins behind it. False: a score is none.
fn add_objects<'u>(
    look: Look<'_, '_>,
    columns: &[Column<'_>],
    used: &mut impl Iterator<Item = &'u Used>,
    range: Range<usize>,
    sums: &mut [i64],
) -> bool {
    let mut sound = true;
    for column in columns {
        let Raw::Object { normal, .. } = &column.raw else { continue };
        let Some(used) = used.next().filter(|_| normal.is_none()) else { continue };
        let part = look.parts.column(used.slot);
        if part.distinct() == [0] {
            continue;
        }
        sound &= part.distinct().iter().all(|score| (0..=100).contains(score));
        if let &[score] = part.distinct() {
            sums.iter_mut().for_each(|sum| *sum += column.weight * score);
            continue;
        }
        let numbers = range.clone().map(|at| part.at(at));
        let weighted = numbers.map(|number| column.weight * number);
        sums.iter_mut().zip(weighted).for_each(|(sum, score)| *sum += score);
    }
    sound
}
