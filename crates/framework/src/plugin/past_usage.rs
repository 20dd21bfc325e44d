//! Usage of the past that a plugin remembers, for other plugins and for reports. Specification:
//! fair-share.md 6, 12, 13.

use std::cmp::Ordering;
use std::sync::Arc;

use vc_model::{JobId, QueueId};
use vc_resource::Fractional;

use super::{Plugin, SessionView};
use crate::report::AccountUse;

/// A plugin that remembers what jobs and queues have used.
pub trait PastUsage: Plugin {
    /// Returns the account that is charged for a job. `None`: usage does not count in its queue.
    fn account<'a>(&'a self, view: SessionView<'a>, job: JobId) -> Option<&'a Arc<str>>;
    /// Compares two jobs by what their accounts have used: `Less` means that the account of `l` has
    /// used more, so that a quota search takes `l` first (fair-share.md FS-71).
    fn usage_order(&self, view: SessionView<'_>, l: JobId, r: JobId) -> Ordering;
    /// QueueWeight: returns weights of these queues by dimension, in the same order, for a plugin that
    /// divides the cluster by weight (fair-share.md 6). A dimension without a weight counts by
    /// `spec.weight`. `None` means that usage does not count.
    fn queue_weights(&self, view: SessionView<'_>, takers: &[QueueId]) -> Option<Vec<Fractional>>;
    /// Returns what accounts have used, by queue and account, for reports.
    fn account_use(&self, view: SessionView<'_>) -> Vec<AccountUse>;
}
