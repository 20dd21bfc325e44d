//! Decisions of a session so far: effects, conditions of PodGroups, warnings.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use vc_model::{JobId, PodGroupCondition};

use crate::certificate::{Certificate, Witness};
use crate::effect::Effect;
use crate::gang_text::WaitTexts;
use crate::sample::Sample;

/// Decisions that are collected while a session runs and returned at its close.
#[derive(Clone, Debug, Default)]
pub struct Outbox {
    /// Effects, in the order in which they were decided.
    pub effects: Vec<Effect>,
    /// True if `effects` has events with the reason why a PodGroup is not admitted.
    pub has_refusals: bool,
    /// New conditions of PodGroups; each replaces the condition of its type (core.md 7.6).
    pub conditions: Vec<(JobId, PodGroupCondition)>,
    /// Conditions, by job and type, that are written again unchanged except for time and transition
    /// id. They count like `conditions`, without a copy of the texts.
    pub confirmed: Vec<(JobId, &'static str)>,
    /// Texts of why a job waits, as the closing plugin has written them. Later records do not change
    /// them. Looked up by id only.
    pub job_texts: FxHashMap<JobId, WaitTexts>,
    /// Samples for metrics.
    pub samples: Vec<Sample>,
    /// Number of victims on the node that preempt tried last. `None` if it tried none (actions.md
    /// 10.4).
    pub preemption_victims: Option<u32>,
    /// Number of times that preempt tried evictions on a node or chose a candidate.
    pub n_preemption_attempts: u32,
    /// Number of places found for tasks of a job, including those that were given up later.
    pub placed: BTreeMap<JobId, u32>,
    /// Certificates, one per transaction that evicts, in commit order.
    pub certificates: Vec<Certificate>,
    /// The state after the operations of each certificate. Filled only for verification.
    pub witnesses: Vec<Witness>,
    /// Warnings for users.
    pub warnings: Vec<String>,
}
