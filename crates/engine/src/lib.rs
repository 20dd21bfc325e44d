//! The scheduler as a function: events and time in, effects and a report out. No clock, no I/O, no
//! async.

mod engine;
mod known;
mod lap;
mod numbers;
mod pre_bind;
mod queue_status;
mod record;
mod report;
mod session_id;
mod shard;
mod throttle;

pub use engine::{Engine, EngineOptions, Now};
pub use known::KNOWN;
pub use vc_framework::{
    About, Amounts, Effect, Evaluator, EvictReason, GangState, Nomination, PendingPods,
    PendingReason, PipelinedTask, PluginStage, PluginTime, QueueAmount, QueueGauges, QueueUse,
    Report, Sample, Stopwatch, Timings, WaitingTask,
};
