//! The choice among all candidates that pass what cannot be remembered, with scores that depend on
//! what is in the cluster: filters and scores that are remembered are not asked again. Exact,
//! because scores that look at all candidates are worked out by the plain evaluator's own code,
//! over the same candidates, and sums are made in its order; the engine's `columns.rs` compares the
//! two. Specification: actions.md 4.7, 12.2 S3, S4.

use super::class::{ClassMemo, Look};
use super::normals::{N_GROUPS, n_in};
use super::prepared::Raw;

impl ClassMemo {
    /// The best candidate by score, then name. The outer `None`: only the plain evaluator can tell.
    pub(super) fn best_of_all(&mut self, look: Look<'_, '_>) -> Option<Option<usize>> {
        let candidates = self.first_group(look);
        if candidates.len() <= 1 {
            return Some(candidates.first().copied());
        }
        let totals = self.totals(look, &candidates)?;
        let mut best = (0, totals[0]);
        for (index, &total) in totals.iter().enumerate() {
            if best.1 < total {
                best = (index, total);
            }
        }
        Some(Some(candidates[best.0]))
    }

    /// Positions of the candidates of the first group that has any.
    fn first_group(&self, look: Look<'_, '_>) -> Vec<usize> {
        let (nodes, groups) = (&look.session.facts().nodes, self.blocks.groups());
        let wide = &look.rules.wide;
        let of_group = |group: usize| -> Vec<usize> {
            let n_own = n_in(groups, group);
            if wide.is_empty() && n_own == groups.len() {
                return (0..n_own).collect();
            }
            let mut found = Vec::with_capacity(n_own);
            let own = groups.iter().enumerate().filter(|(_, of)| usize::from(**of) == group);
            let own = own.map(|(at, _)| at);
            found.extend(own.filter(|&at| wide.is_empty() || wide.pass(nodes[at])));
            found
        };
        let mut found = (0..N_GROUPS).map(of_group);
        found.find(|candidates| !candidates.is_empty()).unwrap_or_default()
    }

    fn totals(&mut self, look: Look<'_, '_>, candidates: &[usize]) -> Option<Vec<f64>> {
        self.kept_sums(look)?;
        let kept = self.sums.as_ref()?;
        let nodes = &look.session.facts().nodes;
        let candidate_nodes = rows_of(candidates, nodes);
        let mut totals = rows_of(candidates, &kept.bases);
        let mut scores = vec![0; candidates.len()];
        let plugins = look.rules.plugins.iter().enumerate();
        for (plugin, columns) in plugins.filter(|(_, columns)| !columns.is_empty()) {
            let mut sums = rows_of(candidates, &kept.fixed[plugin]);
            self.normals.add_among(look.parts, plugin, candidates, &mut sums)?;
            for column in columns {
                let Raw::Batch(score) = &column.raw else { continue };
                if !score(&candidate_nodes, &mut scores) {
                    return None;
                }
                let weighted = scores.iter().map(|score| column.weight * score);
                sums.iter_mut().zip(weighted).for_each(|(sum, score)| *sum += score);
            }
            totals.iter_mut().zip(&sums).for_each(|(total, &sum)| *total += sum as f64);
        }
        (!totals.iter().any(|total| total.is_nan())).then_some(totals)
    }
}

/// What is known of each candidate; mostly all nodes are.
fn rows_of<T: Copy>(candidates: &[usize], of_nodes: &[T]) -> Vec<T> {
    match candidates.len() == of_nodes.len() {
        true => of_nodes.to_vec(),
        false => candidates.iter().map(|&at| of_nodes[at]).collect(),
    }
}
