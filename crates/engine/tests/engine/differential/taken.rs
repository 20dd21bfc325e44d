//! Which shortcuts of the fast evaluator stories took, and how often: those that are never taken
//! are not compared with anything.

use std::fmt;
use std::ops::Add;

use vc_engine::{CacheStats, EvaluatorPaths};

use crate::support::*;

const N_HITS: usize = 16;
const N_PATHS: usize = 4;
const N: usize = N_HITS + N_PATHS + 4;

/// Name, and how often it is taken at least in 2,500 stories.
const NAMES: [(&str, u64); N] = [
    ("repeated", 2_000),
    ("resumed", 1_000),
    ("passed over", 20),
    ("bounded", 3),
    ("forgotten", 20),
    // Rare: `gang_bound.rs` has it.
    ("returned", 0),
    ("stood", 500),
    ("surplus", 300),
    ("gave up", 1),
    ("failed alike", 1),
    ("dead ends", 500),
    ("looked at", 1_000),
    ("alike", 100),
    ("equal sub-jobs", 1),
    ("pruned HyperNodes", 200),
    ("outscored HyperNodes", 10),
    ("filled", 2_000),
    ("remembered", 10_000),
    ("asked", 800),
    ("plain", 1_000),
    ("binds", 2_000),
    ("evictions", 150),
    ("pipelined", 300),
    ("writes before binds", 15),
];

/// How often, in the order of [`NAMES`].
#[derive(Clone, Copy, Default)]
pub(super) struct Taken {
    counts: [u64; N],
    /// As last seen: they are counted from configuration to configuration.
    paths: EvaluatorPaths,
    cache_stats: CacheStats,
}

impl Taken {
    /// Adds those of the cycle.
    pub(super) fn count(&mut self, world: &World, cycle: &Cycle) {
        let cache_stats = world.engine.cache_stats();
        // A quiet cycle leaves those of the one before.
        if cache_stats != self.cache_stats {
            self.add(0, &of_hits(&cache_stats));
        }
        let paths = world.engine.paths().unwrap_or_default();
        let (now, before) = (of_paths(&paths), of_paths(&self.paths));
        let begun_anew = (0..N_PATHS).any(|index| now[index] < before[index]);
        let before = if begun_anew { [0; N_PATHS] } else { before };
        self.add(N_HITS, &std::array::from_fn::<_, N_PATHS, _>(|index| now[index] - before[index]));
        (self.cache_stats, self.paths) = (cache_stats, paths);
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        let report = &cycle.report;
        let n_written = cycle.lines.iter().filter(|line| line.starts_with("prebind")).count();
        let decided = [report.n_binds, report.n_evictions, report.pipelined.len(), n_written];
        self.add(N_HITS + N_PATHS, &decided.map(count));
    }

    fn add(&mut self, first: usize, counts: &[u64]) {
        self.counts[first..].iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }

    /// Names of those that were not taken as often as they should.
    pub(super) fn seldom(&self) -> Vec<&'static str> {
        let pairs = NAMES.iter().zip(self.counts);
        pairs.filter(|((_, least), count)| count < least).map(|((name, _), _)| *name).collect()
    }
}

fn of_hits(cache_stats: &CacheStats) -> [u64; N_HITS] {
    let CacheStats {
        n_repeated,
        n_resumed,
        n_skipped_nodes,
        n_bounded,
        n_forgotten,
        n_returned,
        n_revalidated,
        n_surplus,
        n_gave_up,
        n_failed_alike,
        n_known_infeasible,
        n_probed,
        n_equal_gangs,
        n_equal_sub_jobs,
        n_pruned_hyper_nodes,
        n_outscored_hyper_nodes,
    } = *cache_stats;
    [
        n_repeated,
        n_resumed,
        n_skipped_nodes,
        n_bounded,
        n_forgotten,
        n_returned,
        n_revalidated,
        n_surplus,
        n_gave_up,
        n_failed_alike,
        n_known_infeasible,
        n_probed,
        n_equal_gangs,
        n_equal_sub_jobs,
        n_pruned_hyper_nodes,
        n_outscored_hyper_nodes,
    ]
}

fn of_paths(paths: &EvaluatorPaths) -> [u64; N_PATHS] {
    let EvaluatorPaths { filled, remembered, asked, plain } = *paths;
    [filled, remembered, asked, plain]
}

impl fmt::Debug for Taken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = NAMES.iter().zip(self.counts).map(|((name, _), count)| (name, count));
        out.debug_map().entries(entries).finish()
    }
}

impl Add for Taken {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let counts = std::array::from_fn(|index| self.counts[index] + other.counts[index]);
        Self { counts, ..Self::default() }
    }
}
