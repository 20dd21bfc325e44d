//! The caches of a session, and the counters of what they answered. Specification: actions.md 12.2.

use vc_model::Cluster;

use crate::enqueue_refusals::EnqueueRefusals;
use crate::failed_preemption_cache::FailedPreemptionCache;
use crate::node_score_cache::{Evaluator, NodeScoreCache};
use crate::trial::EmptiedNodes;
use crate::unschedulable_cache::UnschedulableCache;

/// Cached answers about a [`SessionState`], which they borrow when they are asked. Between sessions
/// the engine keeps them. Without the fast evaluator all of them are absent.
#[derive(Debug, Default)]
pub struct Caches {
    /// Filter results and scores. `None` if the plain evaluator finds nodes.
    pub(crate) score_cache: Option<NodeScoreCache>,
    /// Failures of allocate in earlier cycles.
    pub(crate) unschedulable: UnschedulableCache,
    /// Refusals of enqueue in earlier cycles.
    pub(crate) refusals: EnqueueRefusals,
    /// Victim searches that failed in earlier cycles.
    pub(crate) failed_preemptions: FailedPreemptionCache,
    /// Filter results and scores of trials that lift no filter. Empty if no trial has read the nodes.
    pub(crate) trial_cache: NodeScoreCache,
    /// Rows of empty nodes for trials of this session, the ones that were used last behind the others.
    pub(crate) emptied_nodes: Vec<EmptiedNodes>,
    /// Counters of this session, for tests.
    pub stats: CacheStats,
}

impl Caches {
    /// Returns empty caches for this evaluator.
    pub fn new(evaluator: Evaluator) -> Self {
        let is_fast = evaluator == Evaluator::Fast;
        Self { score_cache: is_fast.then(NodeScoreCache::default), ..Self::default() }
    }

    /// Returns caches for trials on a copy of the cluster.
    pub fn copy_for_trials(&self) -> Self {
        Self { trial_cache: self.trial_cache.copy_rows(), ..Self::default() }
    }

    /// True if the fast evaluator is selected.
    pub fn is_fast(&self) -> bool {
        self.score_cache.is_some()
    }

    /// Returns the filter results and scores. `None` with the plain evaluator.
    pub fn score_cache(&self) -> Option<&NodeScoreCache> {
        self.score_cache.as_ref()
    }

    /// Returns the sizes of the caches by name: entries, or bytes where the name says so.
    pub fn sizes(&self) -> Vec<(&'static str, usize)> {
        let mut sizes = self.unschedulable.sizes().to_vec();
        sizes.extend(self.refusals.sizes());
        sizes.extend(self.failed_preemptions.sizes());
        sizes.extend(self.score_cache.iter().flat_map(NodeScoreCache::sizes));
        sizes
    }

    /// Begins a session: drops what changes since the last one have ended.
    pub(super) fn begin(&mut self, cluster: &Cluster, now_micros: i64) {
        self.stats = CacheStats::default();
        self.refusals.begin(cluster);
        self.emptied_nodes.clear();
        if self.is_fast() {
            self.unschedulable.begin(cluster);
            self.failed_preemptions.begin(now_micros);
        }
    }

    /// Ends a session. `until_micros` returns how long victim votes hold.
    pub(super) fn end(&mut self, until_micros: impl FnOnce() -> i64) {
        if self.is_fast() {
            self.failed_preemptions.end(until_micros);
            self.unschedulable.end();
            self.refusals.end();
        }
    }
}

/// Counters of how often each cache gave the answer, for tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Searches that were skipped because their failure was cached.
    pub n_repeated: u64,
    /// Searches that resumed from the victim node index and found a node.
    pub n_resumed: u64,
    /// Nodes that were skipped because the votes on victims would again leave too few there.
    pub n_skipped_nodes: u64,
    /// Simulations of gang actions that were skipped because too few members could find room.
    pub n_bounded: u64,
    /// Cache entries over all nodes for a kind of task that were evicted for lack of budget.
    pub n_forgotten: u64,
    /// Victims of gang actions that were put back together.
    pub n_returned: u64,
    /// Jobs whose failure of allocate or refusal by enqueue in an earlier session still holds.
    pub n_revalidated: u64,
    /// Jobs counted in `n_revalidated` that have their minimum and find no place for another
    /// member.
    pub n_surplus: u64,
    /// Jobs counted in `n_revalidated` that would give up the places that some members find.
    pub n_gave_up: u64,
    /// Gangs that were not tried, because one of their shape had failed in the same state.
    pub n_failed_alike: u64,
    /// Victim searches that were skipped because the nodes still lack what they lacked before.
    pub n_known_infeasible: u64,
    /// Nodes that were probed to count `n_known_infeasible`.
    pub n_probed: u64,
    /// Jobs whose attempt to make room was skipped, because it failed for an equal gang.
    pub n_equal_gangs: u64,
    /// HyperNodes that were not tried for a sub-job, because an equal one failed there (12.2 S14).
    pub n_equal_sub_jobs: u64,
    /// HyperNodes that were not tried, because too few tasks find room there (12.2 S12).
    pub n_pruned_hyper_nodes: u64,
    /// HyperNodes that were not tried, because their score cannot be the highest (12.2 S13).
    pub n_outscored_hyper_nodes: u64,
}
