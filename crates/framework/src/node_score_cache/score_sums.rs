//! Total scores of candidates. A scorer that reads only amounts is computed once per kind of node,
//! for all nodes of that kind. A class keeps one total per node. The summands are computed again
//! when an extreme changes all totals, and kept once candidates are compared among themselves.
//!
//! Exact because:
//! - sums are made in the order of the plain evaluator, with which the engine's `columns.rs`
//!   compares.
//!
//! Specification: actions.md 4.7, 12.2 S1, S2, S4.

use std::ops::Range;

use super::budget::bytes_of;
use super::class_scores::{ClassScores, EvaluationContext};
use super::column_cache::UsedColumn;
use super::columns::NodeColumns;
use super::examine::group;
use super::node_tournament::{BLOCK, NONE, NodeTournament};
use super::prepared::{NodeOrderForm, RawScore, ScoreColumn};

/// The summands of the totals of all nodes that do not depend on the set of candidates.
#[derive(Debug)]
pub(super) struct ScoreSums {
    /// Σ NodeOrder.
    pub(super) bases: Vec<f64>,
    /// Per plugin: Σ weight × score of the columns that are not normalised.
    pub(super) fixed: Vec<Vec<i64>>,
    /// True if a score is outside of its range.
    broken: bool,
}

/// Summands of the total per kind of node, for scorers that read only amounts.
struct KindSums {
    /// One column per plugin in tier order; a single sum if all of them read only amounts.
    bases: Vec<Vec<f64>>,
    fixed: Vec<Vec<i64>>,
    broken: bool,
}

impl KindSums {
    fn new(context: EvaluationContext<'_, '_>) -> Self {
        let (columns, n_kinds) = (&context.rows.kinds.columns, context.rows.kinds.len());
        let n_bases =
            if context.rules.bases_read_amounts() { 1 } else { context.rules.bases.len() };
        let mut of_kinds =
            Self { bases: vec![vec![0.0; n_kinds]; n_bases], fixed: Vec::new(), broken: false };
        for (number, base) in context.rules.bases.iter().enumerate() {
            let NodeOrderForm::Amounts(add) = base else { continue };
            let sums = &mut of_kinds.bases[number.min(n_bases - 1)];
            for range in NodeTournament::ranges(n_kinds) {
                add(columns, range.clone(), &mut sums[range]);
            }
        }
        for plugin in &context.rules.plugins {
            let mut fixed = vec![0; n_kinds];
            for range in NodeTournament::ranges(n_kinds) {
                let sums_of = &mut fixed[range.clone()];
                of_kinds.broken |= !add_amounts::<BLOCK>(columns, plugin, range, sums_of);
            }
            of_kinds.fixed.push(fixed);
        }
        of_kinds
    }

    /// Adds Σ NodeOrder for a range of node positions. Scorers that read more than amounts run for
    /// candidates only.
    fn add_bases(
        &self,
        context: EvaluationContext<'_, '_>,
        groups: &[u8],
        range: Range<usize>,
        sums: &mut [f64],
    ) {
        let kinds = &context.rows.kinds.of()[range.clone()];
        let add = |sums: &mut [f64], of: &[f64]| {
            sums.iter_mut().zip(kinds).for_each(|(sum, &kind)| *sum += of[kind as usize]);
        };
        match context.rules.bases_read_amounts() {
            true => add(sums, &self.bases[0]),
            false => {
                let add = |number: usize, sums: &mut [f64]| add(sums, &self.bases[number]);
                add_in_order(context, groups, range, sums, add);
            }
        }
    }
}

impl ScoreSums {
    pub(super) fn n_bytes(&self) -> usize {
        let fixed = self.fixed.iter().map(bytes_of).sum::<usize>();
        bytes_of(&self.bases) + bytes_of(&self.fixed) + fixed
    }

    /// Computes the sums of every node, by position.
    fn of_nodes(context: EvaluationContext<'_, '_>, groups: &[u8]) -> Self {
        let of_kinds = KindSums::new(context);
        let kinds = context.rows.kinds.of();
        let mut bases = vec![0.0; kinds.len()];
        of_kinds.add_bases(context, groups, 0..kinds.len(), &mut bases);
        let mut sums = Self { bases, fixed: Vec::new(), broken: of_kinds.broken };
        let mut used = context.used[context.rules.n_test_columns..].iter();
        for (columns, fixed) in context.rules.plugins.iter().zip(&of_kinds.fixed) {
            let mut fixed: Vec<i64> = kinds.iter().map(|&kind| fixed[kind as usize]).collect();
            sums.broken |= !add_objects(context, columns, &mut used, 0..kinds.len(), &mut fixed);
            sums.fixed.push(fixed);
        }
        sums
    }

    /// Computes the sums of the node at a position again; `group` is its group.
    pub(super) fn update(&mut self, context: EvaluationContext<'_, '_>, at: usize, group: u8) {
        let (range, columns, row) =
            (at..at + 1, &context.rows.kinds.columns, context.rows.kinds.row(at));
        self.bases[at] = base_of(context, group, at);
        let mut used = context.used[context.rules.n_test_columns..].iter();
        for (plugin, fixed) in context.rules.plugins.iter().zip(&mut self.fixed) {
            let fixed = &mut fixed[range.clone()];
            fixed.fill(0);
            self.broken |= !add_amounts::<1>(columns, plugin, row.clone(), fixed);
            self.broken |= !add_objects(context, plugin, &mut used, range.clone(), fixed);
        }
    }
}

impl EvaluationContext<'_, '_> {
    /// True if all nodes of the same kind and group have the same total.
    fn scorers_read_amounts(&self) -> bool {
        let mut used = self.used[self.rules.n_test_columns..].iter();
        self.rules.bases_read_amounts()
            && used.all(|used| self.column_cache.column(used.slot).distinct().len() <= 1)
    }
}

impl ClassScores {
    /// Returns the summands of the totals of all nodes, and computes them on first use. Returns
    /// `None` if a score is outside of its range.
    pub(super) fn kept_sums(&mut self, context: EvaluationContext<'_, '_>) -> Option<&ScoreSums> {
        let groups = self.tournament.groups();
        let sums = self.sums.get_or_insert_with(|| ScoreSums::of_nodes(context, groups));
        self.broken |= sums.broken;
        (!sums.broken).then_some(sums)
    }

    /// Computes the totals of all candidates.
    pub(super) fn rank_all(&mut self, context: EvaluationContext<'_, '_>) {
        let of_kinds = KindSums::new(context);
        self.broken |= of_kinds.broken;
        match context.scorers_read_amounts() {
            true => self.rank_kinds(context, of_kinds),
            false => self.rank_nodes(context, &of_kinds),
        }
    }

    /// Computes the totals once per kind. Requires that nodes of a kind and group have the same
    /// total.
    fn rank_kinds(&mut self, context: EvaluationContext<'_, '_>, of_kinds: KindSums) {
        let kinds = &context.rows.kinds;
        let mut groups = vec![0; kinds.len()];
        group(context, &kinds.columns, 0..kinds.len(), &mut groups);
        let mut used = context.used[context.rules.n_test_columns..].iter();
        let KindSums { bases, fixed, .. } = of_kinds;
        let mut totals = bases.into_iter().next().unwrap_or_default();
        let columns = context.rules.plugins.iter().zip(fixed);
        for (plugin, (columns, mut sums)) in columns.enumerate() {
            self.broken |= !add_objects(context, columns, &mut used, 0..kinds.len(), &mut sums);
            self.normalized.add_one_number(plugin, &groups, &mut sums);
            totals.iter_mut().zip(&sums).for_each(|(total, &sum)| *total += sum as f64);
        }
        // A kind without nodes may have set `broken` before, which costs speed only.
        self.broken |= totals.iter().any(|total| total.is_nan());
        let scores = self.tournament.all_mut().1.iter_mut();
        scores.zip(kinds.of()).for_each(|(score, &kind)| *score = totals[kind as usize]);
    }

    fn rank_nodes(&mut self, context: EvaluationContext<'_, '_>, of_kinds: &KindSums) {
        for range in NodeTournament::ranges(context.rows.len()) {
            let kinds = &context.rows.kinds.of()[range.clone()];
            let mut totals = [0.0; BLOCK];
            let totals = &mut totals[..range.len()];
            let groups = &self.tournament.groups()[range.clone()];
            of_kinds.add_bases(context, groups, range.clone(), totals);
            self.rank::<BLOCK>(context, range, totals, |plugin, sums| {
                let fixed = &of_kinds.fixed[plugin];
                let sums = sums.iter_mut().zip(kinds);
                sums.for_each(|(sum, &kind)| *sum = fixed[kind as usize]);
                true
            });
        }
    }

    /// Computes the total of the node at a position, if it is a candidate.
    pub(super) fn rank_one(&mut self, context: EvaluationContext<'_, '_>, at: usize) {
        if self.tournament.group(at) == NONE {
            return;
        }
        let (range, columns, row) =
            (at..at + 1, &context.rows.kinds.columns, context.rows.kinds.row(at));
        let mut base = [base_of(context, self.tournament.group(at), at)];
        self.rank::<1>(context, range.clone(), &mut base, |plugin, sums| {
            add_amounts::<1>(columns, &context.rules.plugins[plugin], row.clone(), sums)
        });
    }

    /// Computes the totals of the candidates of one block of at most N nodes, in the order of the
    /// plain evaluator. Within a plugin all terms are whole numbers, so their order does not
    /// matter. `totals` comes with Σ NodeOrder. `amounts` adds the scores of a plugin that read
    /// only amounts.
    fn rank<const N: usize>(
        &mut self,
        context: EvaluationContext<'_, '_>,
        range: Range<usize>,
        totals: &mut [f64],
        amounts: impl Fn(usize, &mut [i64]) -> bool,
    ) {
        let mut used = context.used[context.rules.n_test_columns..].iter();
        for (plugin, columns) in context.rules.plugins.iter().enumerate() {
            let mut sums = [0; N];
            let sums = &mut sums[..range.len()];
            self.broken |= !amounts(plugin, sums);
            self.broken |= !add_objects(context, columns, &mut used, range.clone(), sums);
            let groups = &self.tournament.groups()[range.clone()];
            self.normalized.add(context.column_cache, plugin, range.start, groups, sums);
            totals.iter_mut().zip(&*sums).for_each(|(total, &sum)| *total += sum as f64);
        }
        for (at, &total) in range.zip(&*totals) {
            let group = self.tournament.group(at);
            if group != NONE {
                self.broken |= total.is_nan();
                self.tournament.set(at, group, total);
            }
        }
    }
}

/// Returns Σ NodeOrder of the node at a position; `group` is its group.
fn base_of(context: EvaluationContext<'_, '_>, group: u8, at: usize) -> f64 {
    let (mut sum, row) = ([0.0], context.rows.kinds.row(at));
    add_in_order(context, &[group], at..at + 1, &mut sum, |number, sum| {
        let NodeOrderForm::Amounts(add) = &context.rules.bases[number] else { return };
        add(&context.rows.kinds.columns, row.clone(), sum);
    });
    sum[0]
}

/// Adds NodeOrder of all plugins, in tier order, for a range of nodes. `add` adds the one with a
/// given number, for a plugin that reads only amounts. Other plugins are asked about candidates
/// only. If one of them fails for a node, its sum is 0.
fn add_in_order(
    context: EvaluationContext<'_, '_>,
    groups: &[u8],
    range: Range<usize>,
    sums: &mut [f64],
    add: impl Fn(usize, &mut [f64]),
) {
    let nodes = &context.session.info().nodes[range];
    let mut failed = Vec::new();
    for (number, base) in context.rules.bases.iter().enumerate() {
        let NodeOrderForm::Row(score) = base else {
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

/// Adds Σ weight × score of the columns of one plugin that read only amounts, for at most N rows.
/// Returns false if a score is outside of 0..=100.
fn add_amounts<const N: usize>(
    rows: &NodeColumns,
    columns: &[ScoreColumn<'_>],
    range: Range<usize>,
    sums: &mut [i64],
) -> bool {
    let mut scores = [0; N];
    let scores = &mut scores[..range.len()];
    let mut sound = true;
    for column in columns {
        let RawScore::Amounts(fill) = &column.raw else { continue };
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

/// Adds Σ weight × score of the columns of one plugin that read node objects and are not
/// normalised. `used` yields the columns of object rules, of this plugin and of later ones. Returns
/// false if a score is outside of 0..=100.
fn add_objects<'u>(
    context: EvaluationContext<'_, '_>,
    columns: &[ScoreColumn<'_>],
    used: &mut impl Iterator<Item = &'u UsedColumn>,
    range: Range<usize>,
    sums: &mut [i64],
) -> bool {
    let mut sound = true;
    for column in columns {
        let RawScore::Object { normal, .. } = &column.raw else { continue };
        let Some(used) = used.next().filter(|_| normal.is_none()) else { continue };
        let part = context.column_cache.column(used.slot);
        if matches!(part.distinct(), [] | [0]) {
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
