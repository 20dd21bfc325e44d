//! The choice among all candidates with cluster-scoped filters and scores, which are not cached.
//! Cached filter results and scores are not computed again.
//!
//! Exact because:
//! - scores that look at all candidates come from the plain evaluator's own code, over the same
//!   candidates;
//! - sums are made in the plain evaluator's order, and the engine's `columns.rs` compares the two.
//!
//! Specification: actions.md 4.7, 12.2 S3, S4.

use super::class_scores::{ClassScores, EvaluationContext};
use super::normalized_scores::{N_GROUPS, n_in};
use super::prepared::RawScore;

impl ClassScores {
    /// Returns the position of the best candidate, by score and then name. The inner `None` means
    /// that there is no candidate. The outer `None` means that only the plain evaluator can decide.
    pub(super) fn best_of_all(
        &mut self,
        context: EvaluationContext<'_, '_>,
    ) -> Option<Option<usize>> {
        let candidates = self.first_group(context);
        if candidates.len() <= 1 {
            return Some(candidates.first().copied());
        }
        let totals = self.totals(context, &candidates)?;
        let mut best = (0, totals[0]);
        for (index, &total) in totals.iter().enumerate() {
            if best.1 < total {
                best = (index, total);
            }
        }
        Some(Some(candidates[best.0]))
    }

    /// Returns the positions of the candidates of the first group that has any.
    fn first_group(&self, context: EvaluationContext<'_, '_>) -> Vec<usize> {
        let (nodes, groups) = (&context.session.info().nodes, self.tournament.groups());
        let cluster_scoped = &context.rules.cluster_scoped;
        let of_group = |group: usize| -> Vec<usize> {
            let n_own = n_in(groups, group);
            if cluster_scoped.is_empty() && n_own == groups.len() {
                return (0..n_own).collect();
            }
            let mut found = Vec::with_capacity(n_own);
            let own = groups.iter().enumerate().filter(|(_, of)| usize::from(**of) == group);
            let own = own.map(|(at, _)| at);
            found.extend(
                own.filter(|&at| cluster_scoped.is_empty() || cluster_scoped.pass(nodes[at])),
            );
            found
        };
        let mut found = (0..N_GROUPS).map(of_group);
        found.find(|candidates| !candidates.is_empty()).unwrap_or_default()
    }

    fn totals(
        &mut self,
        context: EvaluationContext<'_, '_>,
        candidates: &[usize],
    ) -> Option<Vec<f64>> {
        self.kept_sums(context)?;
        let kept = self.sums.as_ref()?;
        let nodes = &context.session.info().nodes;
        let candidate_nodes = rows_of(candidates, nodes);
        let mut totals = rows_of(candidates, &kept.bases);
        let mut scores = vec![0; candidates.len()];
        let mut fractions = vec![0.0; candidates.len()];
        let plugins = context.rules.plugins.iter().enumerate();
        for (plugin, columns) in plugins.filter(|(_, columns)| !columns.is_empty()) {
            let mut sums = rows_of(candidates, &kept.fixed[plugin]);
            self.normalized.add_among(context.column_cache, plugin, candidates, &mut sums)?;
            for column in columns {
                let RawScore::Batch(score) = &column.raw else { continue };
                if !score(&candidate_nodes, &mut scores) {
                    return None;
                }
                let weighted = scores.iter().map(|score| column.weight * score);
                sums.iter_mut().zip(weighted).for_each(|(sum, score)| *sum += score);
            }
            totals.iter_mut().zip(&sums).for_each(|(total, &sum)| *total += sum as f64);
            for column in columns {
                let RawScore::Fractions(score) = &column.raw else { continue };
                fractions.fill(0.0);
                if !score(&candidate_nodes, &mut fractions) {
                    return None;
                }
                totals.iter_mut().zip(&fractions).for_each(|(total, score)| *total += score);
            }
        }
        (!totals.iter().any(|total| total.is_nan())).then_some(totals)
    }
}

/// Picks the values of the candidates out of the values of all nodes. Usually all nodes are
/// candidates.
fn rows_of<T: Copy>(candidates: &[usize], of_nodes: &[T]) -> Vec<T> {
    match candidates.len() == of_nodes.len() {
        true => of_nodes.to_vec(),
        false => candidates.iter().map(|&at| of_nodes[at]).collect(),
    }
}
