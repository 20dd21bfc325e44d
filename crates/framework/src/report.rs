//! What a cycle has done, as plain data for metrics and for `vcsim`. Specification: core.md 9,
//! actions.md 10.4.

use std::sync::Arc;

use vc_model::ObjectKey;

use crate::certificate::{Certificate, Witness};
use crate::sample::Sample;
use crate::wait_cause::WaitCause;

/// A task that ended the last action Pipelined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipelinedTask {
    /// Namespace and name.
    pub pod: ObjectKey,
    /// Name of the node whose room it waits for.
    pub node: Arc<str>,
}

/// A task that waits at the end of the cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingTask {
    /// Namespace and name.
    pub pod: ObjectKey,
    /// Its PodGroup; an empty name: it has none.
    pub pod_group: ObjectKey,
    /// Name of its queue; empty: it has none.
    pub queue: Arc<str>,
    /// Condition reason: `Schedulable`, `Unschedulable`.
    pub reason: &'static str,
    /// Why it waits.
    pub cause: WaitCause,
    /// One line for people.
    pub message: String,
}

/// A job for which nothing was evicted although it starves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Namespace and name.
    pub pod_group: ObjectKey,
    /// Action by action, as the event `PreemptionSkipped` has it.
    pub message: String,
    /// What would unblock it.
    pub remedy: &'static str,
}

/// Use of a queue against its share.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueUse {
    /// Name.
    pub queue: Arc<str>,
    /// Resource name and quantity text, by name.
    pub allocated: Vec<(String, String)>,
    /// Likewise; `None`: no plugin divides the cluster between queues.
    pub deserved: Option<Vec<(String, String)>>,
    /// Largest allocated / deserved over the dimensions; `None`: likewise.
    pub share: Option<f64>,
}

/// Amounts of one resource of a queue or cohort, as quantity texts; `unlimited` where there is no
/// end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaAmounts {
    /// Its name.
    pub resource: String,
    /// Quota of the subtree.
    pub nominal: String,
    /// What is in use in the subtree.
    pub used: String,
    /// What it uses of the quota of others.
    pub borrowed: String,
    /// What of its unused quota it cannot have now, because others use it.
    pub lent: String,
    /// What a job could get now.
    pub available: String,
}

/// Quota of a queue or cohort with its use (cohort.md B.2).
#[derive(Clone, Debug, PartialEq)]
pub struct QuotaUse {
    /// Name.
    pub queue: Arc<str>,
    /// `/top/.../name`.
    pub path: String,
    /// Jobs may be in it; else it has children.
    pub is_leaf: bool,
    /// By resource, in report order; those that some queue of its tree has a quota for.
    pub amounts: Vec<QuotaAmounts>,
    /// Weighted share in thousandths, infinite for a borrower of weight 0; `None`: shares are not
    /// compared.
    pub share: Option<f64>,
}

/// Which moment of a session a plugin took part in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PluginStage {
    /// Its opening.
    Open,
    /// Its close.
    Close,
}

/// How long a plugin took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PluginTime {
    /// Its name.
    pub plugin: &'static str,
    /// What it did.
    pub stage: PluginStage,
    /// Nanoseconds.
    pub nanos: u64,
}

/// How long the parts of a cycle took, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// All of it.
    pub cycle: u64,
    /// The events.
    pub apply: u64,
    /// The opening of the session.
    pub open: u64,
    /// Each action by name, in their order.
    pub actions: Vec<(&'static str, u64)>,
    /// The close of the session: plugins, records, what is undone.
    pub close: u64,
    /// Opening and close of each plugin.
    pub plugins: Vec<PluginTime>,
    /// Each filtering of nodes for a task.
    pub predicates: Vec<u64>,
    /// Each scoring of nodes for a task.
    pub scorings: Vec<u64>,
    /// The searches for groups that go for others, without the trials of placement in them.
    pub quota_search: u64,
}

/// Data of one cycle.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Nodes of the session.
    pub n_nodes: usize,
    /// Jobs of the session.
    pub n_jobs: usize,
    /// Pods handed to the binder.
    pub n_binds: usize,
    /// Pods whose eviction was sent.
    pub n_evictions: usize,
    /// Tasks that end the cycle Pipelined, by job.
    pub pipelined: Vec<PipelinedTask>,
    /// Tasks that end the cycle without being bound. Filled only when asked for:
    /// `Engine::explain(true)`.
    pub waiting: Vec<WaitingTask>,
    /// Likewise, by job: why nothing was evicted for it.
    pub skipped: Vec<Skipped>,
    /// Likewise, by name.
    pub queues: Vec<QueueUse>,
    /// Likewise, by path; empty: no plugin has quota trees.
    pub quotas: Vec<QuotaUse>,
    /// Things that users should know, once per cycle: unknown plugins, missing parents, clamped
    /// sums.
    pub warnings: Vec<String>,
    /// One per transaction that evicts, in order.
    pub certificates: Vec<Certificate>,
    /// The state at each certificate; filled only when asked for: `Engine::witness(true)`.
    pub witnesses: Vec<Witness>,
    /// Numbers for metrics, in any order but for those of one thing.
    pub samples: Vec<Sample>,
    /// `None`: there was no stopwatch.
    pub timings: Option<Timings>,
}

impl Report {
    /// Counts the binds and evictions among the effects of the cycle.
    pub fn count(&mut self, effects: &[crate::effect::Effect]) {
        use crate::effect::Effect;
        for effect in effects {
            self.n_binds += usize::from(matches!(effect, Effect::Bind { .. }));
            self.n_evictions += usize::from(matches!(effect, Effect::Evict { .. }));
        }
    }
}
