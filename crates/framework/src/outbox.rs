//! What a session has decided so far: effects, conditions of PodGroups, warnings.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use vc_model::{JobId, PodGroupCondition};

use crate::certificate::{Certificate, Witness};
use crate::effect::Effect;
use crate::sample::Sample;

/// Collected while a session runs, handed out at its close.
#[derive(Clone, Debug, Default)]
pub struct Outbox {
    /// In the order in which they were decided.
    pub effects: Vec<Effect>,
    /// Among them are events that tell PodGroups why they are not admitted.
    pub has_refusals: bool,
    /// Conditions that replace those of the same type in the PodGroup (core.md 7.6).
    pub conditions: Vec<(JobId, PodGroupCondition)>,
    /// Conditions of this type are written again as they stand; only their time and transition id
    /// are new. As good as one of `conditions`, without its texts.
    pub confirmed: Vec<(JobId, &'static str)>,
    /// Why a job waits ([`crate::job_text`]), where a plugin that closes has said it: nothing that is
    /// recorded afterwards changes it. Looked up by id only.
    pub job_texts: FxHashMap<JobId, String>,
    /// Numbers for metrics.
    pub samples: Vec<Sample>,
    /// How many victims preempt could have had on the node that it tried last; `None`: it tried
    /// none (actions.md 10.4).
    pub preemption_victims: Option<u32>,
    /// How often preempt has tried evictions on a node or chosen a candidate.
    pub n_preemption_attempts: u32,
    /// How often a place was found for a task of the job, also if it was given up later.
    pub placed: BTreeMap<JobId, u32>,
    /// One per transaction that evicts, in the order of the commits.
    pub certificates: Vec<Certificate>,
    /// The state at each certificate, its operations applied; only where somebody wants to verify.
    pub witnesses: Vec<Witness>,
    /// Things that users should know.
    pub warnings: Vec<String>,
}
