//! Victim filters: they remove candidates before the plugins vote on victims. Specification:
//! core.md 5.5, plugins-jobs-queues.md D1, D3.

use vc_model::TaskId;

use super::SessionView;

/// A plugin that filters eviction candidates where its Preemptable or Reclaimable switch is on. A
/// protective filter has no vote.
pub trait VictimFilter {
    /// True if the filter protects the shares of queues instead of single pods. Such a filter
    /// applies to the gang actions only, through its UnifiedEvictable, and votes at the other
    /// points.
    fn is_share_filter(&self) -> bool {
        false
    }
    /// True if the candidate must not be evicted.
    fn protects(&self, _view: SessionView<'_>, _candidate: TaskId) -> bool {
        false
    }
    /// Returns the candidates that may be evicted together, in eviction order. `candidates` has
    /// only those that no filter protects. Called only for a filter that declares
    /// [`crate::Inputs::BUDGETS`].
    fn within_budget(&self, _view: SessionView<'_>, candidates: &[TaskId]) -> Vec<TaskId> {
        candidates.to_vec()
    }
}
