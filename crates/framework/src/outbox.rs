//! What a session has decided so far: effects, conditions of PodGroups, warnings.

use vc_model::{JobId, PodGroupCondition};

use crate::effect::Effect;

/// Collected while a session runs, handed out at its close.
#[derive(Clone, Debug, Default)]
pub struct Outbox {
    /// In the order in which they were decided.
    pub effects: Vec<Effect>,
    /// Conditions that replace those of the same type in the PodGroup (core.md 7.6).
    pub conditions: Vec<(JobId, PodGroupCondition)>,
    /// Things that users should know.
    pub warnings: Vec<String>,
}
