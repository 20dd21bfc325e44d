//! What a cycle has done, as plain data for metrics and for `vcsim`. Specification: core.md 9, actions.md 10.4.

use std::sync::Arc;

use vc_model::ObjectKey;

/// A task that ended the last action Pipelined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipelinedTask {
    pub pod: ObjectKey,
    pub node: Arc<str>,
}

/// A task that waits at the end of the cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingTask {
    pub pod: ObjectKey,
    pub pod_group: ObjectKey,
    pub queue: Arc<str>,
    /// Condition reason: `Schedulable`, `Unschedulable`.
    pub reason: &'static str,
    /// One line for people.
    pub message: String,
}

/// Use of a queue against its share.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueUse {
    pub queue: Arc<str>,
    /// Resource name and quantity text, by name.
    pub allocated: Vec<(String, String)>,
    /// `None`: no plugin divides the cluster between queues.
    pub deserved: Option<Vec<(String, String)>>,
    /// Largest allocated / deserved over the dimensions.
    pub share: Option<f64>,
}

/// Data of one cycle.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub n_nodes: usize,
    pub n_jobs: usize,
    pub n_binds: usize,
    pub n_evictions: usize,
    pub pipelined: Vec<PipelinedTask>,
    /// Filled only when asked for: `Engine::explain(true)`.
    pub waiting: Vec<WaitingTask>,
    pub queues: Vec<QueueUse>,
    /// Things that users should know, once per cycle: unknown plugins, missing parents, clamped sums.
    pub warnings: Vec<String>,
}

impl Report {
    /// Counts the binds and evictions among the effects of the cycle.
    pub fn count(&mut self, effects: &[crate::effect::Effect]) {
        use crate::effect::Effect;
        let number = |wanted: fn(&Effect) -> bool| effects.iter().filter(|effect| wanted(effect)).count();
        self.n_binds = number(|effect| matches!(effect, Effect::Bind { .. }));
        self.n_evictions = number(|effect| matches!(effect, Effect::Evict { .. }));
    }
}
