//! The scheduler as a function: events and time in, effects and a report out. No clock, no I/O, no
//! async.

mod engine;
mod known;
mod lap;
mod numbers;
mod overwrites;
mod pauses;
mod pre_bind;
mod queue_status;
mod quiet;
mod record;
mod refusals;
mod report;
mod session_id;
mod shard;
mod skipped;
mod throttle;
mod verify;
mod wait_cause;

pub use engine::{Early, Engine, EngineOptions, Now};
pub use known::KNOWN;
pub use vc_framework::{
    About, Amounts, Certificate, CertifiedVictim, Effect, Evaluator, EvictReason, GangState, Hits,
    Nomination, Paths, PendingPods, PendingReason, PipelinedTask, Placement, PluginStage,
    PluginTime, PreBindWrites, QueueAmount, QueueGauges, QueueUse, QuotaAmounts, QuotaUse,
    Relation, Report, Rule, Sample, Skipped, Stopwatch, Timings, Unit, WaitingTask, evict_message,
};
