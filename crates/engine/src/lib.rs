//! The scheduler as a function: events and time in, effects and a report out. No clock, no I/O, no
//! async.

mod changeable_rows;
mod deciding_options;
mod effect_digest;
mod engine;
mod fork;
mod hyper_node_problems;
mod idle_cycle;
mod input;
mod invariants;
mod known;
mod load_source;
mod metric_samples;
mod n_values;
mod overwrites;
mod pauses;
mod phase_timer;
mod pre_bind;
mod queue_status;
mod record;
mod refusals;
mod report;
mod report_throttle;
mod session_id;
mod shard;
mod skipped;
mod topology_problems;
mod verify;
mod wait_cause;

pub use deciding_options::DecidingOptions;
pub use effect_digest::EffectDigest;
pub use engine::{Checkpoint, CheckpointError, CycleTime, EarlyEffects, Engine, EngineOptions};
pub use fork::Fork;
pub use input::{BatchKind, EngineBatch, EngineCommand, RepeatedBatch};
pub use known::{KNOWN, caches_off};
pub use load_source::load_interval_micros;
pub use vc_conf::{Config, Warning};
pub use vc_framework::{
    About, AccountUse, Amounts, BrokenInvariant, CacheStats, Certificate, CertifiedVictim,
    DeviceUse, Effect, Evaluator, EvaluatorPaths, EvictReason, EvictionRule, ExtenderAnswer,
    ExtenderClient, ExtenderError, ExtenderQuery, ExtenderRequest, FairshareUsage, GangState,
    HyperNodeProblemCount, NodeDevices, NodeLock, Nomination, PendingPods, PendingReason,
    PipelinedTask, Placement, PluginStage, PluginTime, PreBindWrites, QueueAmount, QueueGauges,
    QueueUse, QuotaAmounts, QuotaUse, Relation, Report, Sample, SessionInfo, SessionView,
    SkippedAction, SkippedCause, SkippedCycle, Stopwatch, Timings, Unit, WaitingTask, effect_text,
    evict_message,
};
pub use vc_plugins::{
    DeviceConfigMap, UsageConfigMap, asks_services, needs_device_reports, with_device_config,
};
