//! Report of a cycle, as plain data for metrics and for `vcsim`. Specification: core.md 9,
//! actions.md 10.4.

use std::sync::Arc;

use vc_model::ObjectKey;

use crate::cause::CountedIn;
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
    /// Its PodGroup; the name is empty if it has none.
    pub pod_group: ObjectKey,
    /// Name of its queue; empty if it has none.
    pub queue: Arc<str>,
    /// Condition reason: `Schedulable`, `Unschedulable`.
    pub reason: &'static str,
    /// The wait cause.
    pub cause: WaitCause,
    /// The message, one line.
    pub message: String,
}

/// Why one action evicted nothing for a job, in counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedCause {
    /// How often it was found.
    pub count: u32,
    /// What `count` counts.
    pub counted_in: CountedIn,
    /// The cause, in the words of the event `PreemptionSkipped`.
    pub text: String,
    /// The plugin that refused. `None` if no plugin did.
    pub plugin: Option<&'static str>,
}

/// An action that evicted nothing for a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedAction {
    /// Its name.
    pub action: &'static str,
    /// The causes.
    pub causes: Vec<SkippedCause>,
}

/// A job for which nothing was evicted although it starves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedCycle {
    /// Namespace and name.
    pub pod_group: ObjectKey,
    /// Causes by action, in the words of the event `PreemptionSkipped`.
    pub message: String,
    /// The causes by action, in the order of the actions.
    pub actions: Vec<SkippedAction>,
    /// A change that would unblock the job.
    pub remedy: &'static str,
}

/// Usage of a queue against its share.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueUse {
    /// Name.
    pub queue: Arc<str>,
    /// What its jobs and those of all queues below it hold: resource name and quantity text, by name.
    pub allocated: Vec<(String, String)>,
    /// Deserved amounts in the same form. `None` if no plugin divides the cluster between queues.
    pub deserved: Option<Vec<(String, String)>>,
    /// Largest allocated / deserved over the dimensions. `None` if no plugin divides the cluster
    /// between queues.
    pub share: Option<f64>,
}

/// Amounts of one resource of a queue or cohort, as quantity texts. An amount without a limit is
/// `unlimited`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaAmounts {
    /// Name of the resource.
    pub resource: String,
    /// Quota of the subtree.
    pub nominal: String,
    /// Usage of the subtree.
    pub used: String,
    /// Amount that it uses of the quota of others.
    pub borrowed: String,
    /// Part of its unused quota that it cannot get now, because others use it.
    pub lent: String,
    /// Amount that a job could get now.
    pub available: String,
}

/// Quota of a queue or cohort with its usage (cohort.md B.2).
#[derive(Clone, Debug, PartialEq)]
pub struct QuotaUse {
    /// Name.
    pub queue: Arc<str>,
    /// `/top/.../name`.
    pub path: String,
    /// True if it may have jobs; false if it has children.
    pub is_leaf: bool,
    /// Amounts by resource, in report order. A resource is listed if some queue of the tree has a
    /// quota for it.
    pub amounts: Vec<QuotaAmounts>,
    /// Weighted share in thousandths, infinite for a borrower of weight 0. `None` if shares are not
    /// compared.
    pub share: Option<f64>,
}

/// What an account of a queue has used, by usage that fades (fair-share.md 13).
#[derive(Clone, Debug, PartialEq)]
pub struct AccountUse {
    /// Name of the queue.
    pub queue: Arc<str>,
    /// Name of the account.
    pub account: Arc<str>,
    /// What is charged: the name of a resource, or `weighted resources`.
    pub charged: String,
    /// What its pods hold now, in units of the charge: cpus, GiB, pieces.
    pub running: f64,
    /// What it has used, in units of the charge times hours.
    pub used_hours: f64,
    /// What it will have used at the entry horizon, faded to now, in the same unit.
    pub projected_hours: f64,
    /// Weight of the account.
    pub weight: f64,
    /// Its part of the weights of the queue's accounts over its part of their usage: above 1 it is
    /// served first. `None` if it has used nothing.
    pub level: Option<f64>,
    /// Number of jobs with pods that wait.
    pub n_waiting_jobs: usize,
}

/// The part of a session in which a plugin was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PluginStage {
    /// The call of `open`.
    Open,
    /// The call of `close`.
    Close,
}

/// Time of one call of a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PluginTime {
    /// Name of the plugin.
    pub plugin: &'static str,
    /// The call.
    pub stage: PluginStage,
    /// Duration in nanoseconds.
    pub nanos: u64,
}

/// Times of the parts of a cycle, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// The whole cycle.
    pub cycle: u64,
    /// Applying the events.
    pub apply: u64,
    /// Opening the session.
    pub open: u64,
    /// Each action by name, in execution order.
    pub actions: Vec<(&'static str, u64)>,
    /// Closing the session: plugins, records, and undoing what was not committed.
    pub close: u64,
    /// Open and close of each plugin.
    pub plugins: Vec<PluginTime>,
    /// Each filtering of nodes for a task.
    pub predicates: Vec<u64>,
    /// Each scoring of nodes for a task.
    pub scorings: Vec<u64>,
    /// Quota searches for groups to evict, without the trial placements in them.
    pub quota_search: u64,
}

/// An invariant that the decisions of a cycle violate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenInvariant {
    /// Name of the invariant, such as `I1`.
    pub name: &'static str,
    /// What is wrong, with the names of the objects.
    pub text: String,
}

/// Report of one cycle.
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
    /// Tasks that end the cycle without being bound. Filled only with `Engine::explain(true)`.
    pub waiting: Vec<WaitingTask>,
    /// PodGroups in the order of their first turns in allocate. Filled only with
    /// `Engine::explain(true)`.
    pub turns: Vec<ObjectKey>,
    /// Jobs for which nothing was evicted, with the causes. Filled only with
    /// `Engine::explain(true)`.
    pub skipped: Vec<SkippedCycle>,
    /// Usage of queues, by name. Filled only with `Engine::explain(true)`.
    pub queues: Vec<QueueUse>,
    /// Usage of quota trees, by path. Filled only with `Engine::explain(true)`; empty if no plugin
    /// has quota trees.
    pub quotas: Vec<QuotaUse>,
    /// Usage of accounts, by queue and account. Filled only with `Engine::explain(true)`; empty if no
    /// plugin remembers usage. A skipped cycle repeats that of the last cycle that was run, although
    /// usage fades in between.
    pub usages: Vec<AccountUse>,
    /// Warnings for users, once per cycle: unknown plugins, missing parents, clamped sums.
    pub warnings: Vec<String>,
    /// The invariants that the decisions of the cycle violate. Always empty unless the scheduler has a
    /// fault.
    pub broken_invariants: Vec<BrokenInvariant>,
    /// Certificates, one per transaction that evicts, in order.
    pub certificates: Vec<Certificate>,
    /// The state after the operations of each certificate. Filled only with
    /// `Engine::witness(true)`.
    pub witnesses: Vec<Witness>,
    /// Samples for metrics. Only samples of the same object are in order.
    pub samples: Vec<Sample>,
    /// Times of the cycle. `None` without a stopwatch.
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
