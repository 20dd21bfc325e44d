//! Scores that are normalised by the highest raw score among the candidates. Raw scores and the
//! number of candidates per raw score are kept. Other scores change only when the highest raw score
//! changes.
//!
//! Exact because:
//! - raw scores are whole numbers;
//! - the engine's `columns.rs` compares with the plain evaluator.
//!
//! Specification: actions.md 12.2 S4.

use super::budget::bytes_of;
use super::class_scores::EvaluationContext;
use super::column_cache::ColumnCache;
use super::node_tournament::NONE;
use super::prepared::{Normalizer, RawScore};

/// Number of candidate groups (actions.md 4.7). They are tried in ascending order.
pub(super) const N_GROUPS: usize = 4;

/// The normalised columns of a class.
#[derive(Debug)]
pub(super) struct NormalizedScores(Vec<NormalizedColumn>);

#[derive(Debug)]
struct NormalizedColumn {
    plugin: usize,
    weight: i64,
    normal: Normalizer,
    /// Slot of the column of raw scores.
    slot: usize,
    groups: [ScoreGroup; N_GROUPS],
}

/// The candidates of one group, by raw score.
#[derive(Clone, Debug)]
struct ScoreGroup {
    /// Number of candidates with each distinct raw score.
    counts: Vec<u32>,
    /// Highest raw score among the candidates. `None` until it is first computed.
    highest: Option<i64>,
    /// Weight × score for each distinct raw score.
    scores: Vec<i64>,
}

impl NormalizedScores {
    /// Creates the columns without candidates.
    pub(super) fn new(context: EvaluationContext<'_, '_>) -> Self {
        let mut used = context.used[context.rules.n_test_columns..].iter();
        let mut all = Vec::new();
        for (plugin, columns) in context.rules.plugins.iter().enumerate() {
            for column in columns {
                let RawScore::Object { normal, .. } = &column.raw else { continue };
                let Some((used, &normal)) = used.next().zip(normal.as_ref()) else { continue };
                let n_scores = context.column_cache.column(used.slot).distinct().len();
                let (counts, scores) = (vec![0; n_scores], vec![0; n_scores]);
                let group = ScoreGroup { counts, highest: None, scores };
                let groups = std::array::from_fn(|_| group.clone());
                all.push(NormalizedColumn {
                    plugin,
                    weight: column.weight,
                    normal,
                    slot: used.slot,
                    groups,
                });
            }
        }
        Self(all)
    }

    pub(super) fn n_bytes(&self) -> usize {
        let groups = self.0.iter().flat_map(|column| &column.groups);
        let behind = groups.map(|group| bytes_of(&group.counts) + bytes_of(&group.scores));
        bytes_of(&self.0) + behind.sum::<usize>()
    }

    /// Moves a node from one group to another. [`NONE`] stands for a node that is not a candidate.
    pub(super) fn moves(&mut self, column_cache: &ColumnCache, at: usize, from: u8, to: u8) {
        for column in &mut self.0 {
            let code = column_cache.column(column.slot).code(at);
            if from != NONE {
                column.groups[usize::from(from)].counts[code] -= 1;
            }
            if to != NONE {
                column.groups[usize::from(to)].counts[code] += 1;
            }
        }
    }

    /// Counts the candidates of all positions.
    pub(super) fn count(&mut self, column_cache: &ColumnCache, groups: &[u8]) {
        let sizes: [usize; N_GROUPS] = std::array::from_fn(|number| n_in(groups, number));
        for column in &mut self.0 {
            let codes = column_cache.column(column.slot).codes();
            for (group, &size) in column.groups.iter_mut().zip(&sizes) {
                group.counts.fill(0);
                if let [count] = &mut group.counts[..] {
                    *count = size as u32;
                }
            }
            if 1 < column.groups[0].counts.len() {
                for (&group, &code) in groups.iter().zip(codes).filter(|(of, _)| **of != NONE) {
                    column.groups[usize::from(group)].counts[code as usize] += 1;
                }
            }
        }
    }

    /// Computes the scores again whose highest raw score changed. Returns true if any did. Sets
    /// `broken` if a score is outside of 0..=100.
    pub(super) fn update_scores(&mut self, column_cache: &ColumnCache, broken: &mut bool) -> bool {
        let mut any = false;
        for column in &mut self.0 {
            let distinct = column_cache.column(column.slot).distinct();
            for group in &mut column.groups {
                let present = distinct.iter().zip(&group.counts).filter(|(_, count)| **count != 0);
                let highest = present.map(|(&raw, _)| raw).max().unwrap_or(0).max(0);
                if group.highest == Some(highest) {
                    continue;
                }
                group.highest = Some(highest);
                any = true;
                for (score, &raw) in group.scores.iter_mut().zip(distinct) {
                    // No candidate has a raw score above the highest.
                    let known = (0..=highest).contains(&raw);
                    *score = if known { column.weight * (column.normal)(raw, highest) } else { 0 };
                }
            }
            *broken |= !column.is_sound(distinct);
        }
        any
    }

    /// True if another set of candidates may change the scores of the candidates that remain.
    pub(super) fn depend_on_candidates(&self) -> bool {
        let mut groups = self.0.iter().flat_map(|column| &column.groups);
        groups.any(|group| group.highest.is_some_and(|highest| 0 < highest))
    }

    /// Adds the scores of a plugin for consecutive nodes from position `start`, by their groups.
    pub(super) fn add(
        &self,
        column_cache: &ColumnCache,
        plugin: usize,
        start: usize,
        groups: &[u8],
        sums: &mut [i64],
    ) {
        for column in self.0.iter().filter(|column| column.plugin == plugin) {
            let codes = &column_cache.column(column.slot).codes()[start..];
            for ((sum, &group), &code) in sums.iter_mut().zip(groups).zip(codes) {
                if group != NONE {
                    *sum += column.groups[usize::from(group)].scores[code as usize];
                }
            }
        }
    }

    /// Adds the scores of a plugin by group, for columns with a single raw score. The rows may be
    /// kinds or nodes.
    pub(super) fn add_one_number(&self, plugin: usize, groups: &[u8], sums: &mut [i64]) {
        for column in self.0.iter().filter(|column| column.plugin == plugin) {
            for (sum, &group) in sums.iter_mut().zip(groups) {
                *sum += column.groups[usize::from(group)].scores.first().copied().unwrap_or(0);
            }
        }
    }

    /// Adds the scores of a plugin, normalised over exactly these candidates. Returns `None` if a
    /// score is outside of 0..=100.
    pub(super) fn add_among(
        &self,
        column_cache: &ColumnCache,
        plugin: usize,
        candidates: &[usize],
        sums: &mut [i64],
    ) -> Option<()> {
        for column in self.0.iter().filter(|column| column.plugin == plugin) {
            let part = column_cache.column(column.slot);
            let highest = match part.distinct() {
                &[only] => only,
                _ => candidates.iter().map(|&at| part.at(at)).max().unwrap_or(0),
            };
            let highest = highest.max(0);
            let weighted = |&raw: &i64| {
                // No candidate has a raw score above the highest.
                let known = (0..=highest.min(i32::MAX.into())).contains(&raw);
                let score = known.then(|| (column.normal)(raw, highest))?;
                (0..=100).contains(&score).then_some(column.weight * score)
            };
            let by_code: Vec<Option<i64>> = part.distinct().iter().map(weighted).collect();
            match by_code[..] {
                [score] => {
                    let score = score?;
                    sums.iter_mut().for_each(|sum| *sum += score);
                }
                _ => {
                    for (sum, &at) in sums.iter_mut().zip(candidates) {
                        *sum += by_code[part.code(at)]?;
                    }
                }
            }
        }
        Some(())
    }
}

/// Returns the number of nodes in a group. Chunks of 255 keep each sum within a byte, so that the
/// compiler can use vector instructions.
pub(super) fn n_in(groups: &[u8], number: usize) -> usize {
    let number = number as u8;
    let own = |&of: &u8| u8::from(of == number);
    let sums = groups.chunks(255).map(|chunk| chunk.iter().map(own).sum::<u8>());
    sums.map(usize::from).sum()
}

impl NormalizedColumn {
    /// True if raw scores of candidates are in range and their scores are in 0..=100.
    fn is_sound(&self, distinct: &[i64]) -> bool {
        self.groups.iter().all(|group| {
            let highest = group.highest.unwrap_or(0);
            let present = distinct.iter().zip(&group.counts).filter(|(_, count)| **count != 0);
            present.map(|(&raw, _)| raw).all(|raw| {
                (0..=i64::from(i32::MAX)).contains(&raw)
                    && (0..=100).contains(&(self.normal)(raw, highest))
            })
        })
    }
}
