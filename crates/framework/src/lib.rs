//! Extension points, plugin set, session and statement: everything that plugins and actions share.
//! This crate knows no plugin and no action. Specification: core.md 5, 6, 8, actions.md 2.

#![deny(missing_docs)]

mod accounts_ahead;
mod action;
mod active_jobs;
mod atom;
mod cause;
mod certificate;
mod depends;
mod effect;
mod enqueue_refusals;
mod eviction_hold;
mod extender;
mod failed_preemption_cache;
mod gang_shape;
mod gang_text;
mod journal;
mod lens;
mod limit;
mod log;
mod message;
mod meter;
mod node_score_cache;
mod outbox;
mod plugin;
mod plugin_set;
mod pod_signature;
mod points;
mod quota;
mod recorder;
mod records;
mod report;
mod report_log;
mod sample;
mod scan;
mod sentences;
mod session;
mod sort;
mod statement;
mod sub_job_shape;
mod sums;
mod time;
mod topology;
mod trial;
mod unschedulable_cache;
mod victim_node_index;
mod victim_selection;
mod wait_cause;

pub use action::Action;
pub use active_jobs::ActiveJobs;
pub use atom::{Atom, effect_text};
pub use cause::{Cause, Causes, CountedIn, Tally, histogram};
pub use certificate::{
    Certificate, CertificateTerms, CertifiedVictim, Placement, Relation, Unit, Witness,
};
pub use depends::{ALL_INPUTS, CacheOff, Depends, Inputs, caches_off};
pub use effect::{About, Effect, EvictReason, NodeLock, Nomination, PreBindWrites, evict_message};
pub use enqueue_refusals::RefusalKey;
pub use eviction_hold::{EvictionHold, EvictionHolds};
pub use extender::{ExtenderAnswer, ExtenderClient, ExtenderError, ExtenderQuery, ExtenderRequest};
pub use failed_preemption_cache::{
    DependsOn, EvictableSet, FailureCaching, InfeasibleSearch, NodeCauses, NodeFailure, NodeProbe,
    PreemptionKind, QueueUsageStamp,
};
pub use gang_shape::GangShape;
pub use gang_text::{WaitTexts, gated_members, n_lacking};
pub use journal::StateMark;
pub use lens::{Lens, RefusalRule, RefusingAtoms};
pub use limit::{FactOwner, LimitFact, LimitOwner, LimitedAmount, QueueLimit, quantity};
pub use message::{TaskMessage, job_text, task_message, write_task_message};
pub use meter::Stopwatch;
pub use node_score_cache::{
    BatchFill, ClassField, ColumnFill, DimColumns, Evaluator, EvaluatorPaths, NodeColumnRule,
    NodeColumns, NodeScoreCache, NodeSearch, NodeTest, NodeTests, Normalizer, RawScore,
    ScoreColumn,
};
pub use outbox::Outbox;
pub use plugin::{
    Admission, AdmissionKey, AdmissionMark, CacheKeys, Clock, EarlierMemory, GangEviction,
    Gradient, GradientProblem, GradientPurpose, GradientQuery, HyperNodeScore, JobInvalid,
    NodeRule, PastUsage, Plugin, PluginBuilder, PluginEntry, PluginMemory, QueueShare, QuotaPlugin,
    SessionInfo, SessionView, TopologyPlugin, VectorizedPlugin, VictimFilter, VictimVote, Vote,
};
pub use plugin_set::{EnqueueRefusal, JobDecider, NodeRules, PluginSet, ShareRefusal};
pub use pod_signature::{ClassSignature, PodSignature};
pub use points::{ALL_POINTS, Points};
pub use quota::{
    EvictionSides, HeadChanges, Notice, PreemptionRequest, QueueHeads, QuotaRefusal, Surroundings,
    TargetGroup, Targets, preempt_targets,
};
pub use recorder::{check_reads, with_undeclared};
pub use records::{FailedRoles, LastTransaction, Records};
pub use report::{
    AccountUse, BrokenInvariant, PipelinedTask, PluginStage, PluginTime, QueueUse, QuotaAmounts,
    QuotaUse, Report, SkippedAction, SkippedCause, SkippedCycle, Timings, WaitingTask,
};
pub use report_log::ReportLog;
pub use sample::{
    Amounts, DeviceUse, FairshareUsage, GangState, HyperNodeProblemCount, NodeDevices, PendingPods,
    PendingReason, QueueAmount, QueueGauges, Sample,
};
pub use scan::{Filter, Scan, outside_shard};
pub use sentences::{Sentences, admission, begins_with_text};
pub use session::{CacheStats, Caches, Opening, Outcome, PausedSession, Session, SessionState};
pub use sort::sort_stably;
pub use statement::{Mark, Op, OperationRefused, Plan, Room, Statement};
pub use sub_job_shape::SubJobShape;
pub use sums::JobSums;
pub use time::rfc3339;
/// For [`klog!`].
#[doc(hidden)]
pub use tracing;
pub use trial::{JobChange, LiftedRows, UNSCHEDULABLE_TAINT};
pub use unschedulable_cache::{PreviousAttempt, RepeatedFailure};
pub use victim_node_index::{PreemptionBound, VictimNodeIndex, VictimNodeIndexCache};
pub use victim_selection::{EvictionRule, EvictionRuleId, Question, VictimSelection};
pub use wait_cause::{JobFit, WaitCause};
