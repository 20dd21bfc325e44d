//! The state of an engine at the end of a cycle as data. An engine that is made of it decides the
//! same from then on. Specification: answers.md 15.
//!
//! Exact because:
//! - caches, active jobs and the idle cycle are rebuilt, and decisions do not depend on them;
//! - actions and settings follow from the configuration;
//! - metric samples, `explain` and `witness` change reports alone;
//! - no effect is pending at the end of a cycle, and an extender is never stored;
//! - the engine's `histories.rs` stores states at random moments and compares what follows.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vc_conf::Config;
use vc_framework::{Evaluator, EvictionHolds};
use vc_model::Cluster;

use super::{Engine, EngineMemory, EngineOptions};
use crate::deciding_options::DecidingOptions;
use crate::hyper_node_problems::HyperNodeProblems;
use crate::overwrites::ConditionOverwrites;
use crate::refusals::WriteRefusals;
use crate::topology_problems::TopologyProblems;

/// Why an engine cannot be stored.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// Effects of events have not been handed out yet.
    #[error("effects of events wait for the next cycle")]
    Pending,
    /// The state of a plugin cannot be stored: its name, and why.
    #[error("{0}")]
    Plugin(String),
}

/// The state of an engine at the end of a cycle.
#[derive(Serialize, Deserialize)]
pub struct Checkpoint {
    cluster: Cluster,
    config: Config,
    /// State of the plugins, by name.
    plugins: BTreeMap<String, Vec<u8>>,
    seed: u64,
    /// The evaluator of the engine. It is not stored, because decisions do not depend on it.
    #[serde(skip)]
    evaluator: Evaluator,
    n_cycles: u64,
    last_micros: i64,
    previous_micros: Option<i64>,
    eviction_holds: Option<EvictionHolds>,
    memory: EngineMemory,
    not_written: BTreeMap<Arc<str>, String>,
    refusals: WriteRefusals,
    #[serde(default)]
    hyper_node_problems: HyperNodeProblems,
    topology_problems: TopologyProblems,
    overwrites: ConditionOverwrites,
}

impl Checkpoint {
    /// Returns the number of cycles that were run.
    pub fn n_cycles(&self) -> u64 {
        self.n_cycles
    }

    /// Returns the time of the last cycle, in microseconds since 1970.
    pub fn last_micros(&self) -> i64 {
        self.last_micros
    }

    /// Builds the hash indexes of the state anew, after its texts were replaced (ANS-102).
    pub fn rebuild_indexes(&mut self) {
        self.cluster.rebuild_indexes();
    }

    /// Returns the configuration in force.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the options by which the engine decides. A checkpoint that was read from a file does not know the evaluator:
    /// it is the default.
    pub fn deciding_options(&self) -> DecidingOptions {
        let settings = &self.cluster.settings;
        DecidingOptions::new(settings, (self.seed, self.evaluator), self.last_micros)
    }
}

impl Engine {
    /// Returns the state of this engine, which must be between two cycles. The offset of the local
    /// time is kept as it is at `now_micros`; the configuration is without its secrets.
    ///
    /// # Errors
    /// See [`CheckpointError`].
    pub fn into_checkpoint(self, now_micros: i64) -> Result<Checkpoint, CheckpointError> {
        if !self.pending.is_empty() {
            return Err(CheckpointError::Pending);
        }
        let plugins = self.plugin_set.store_memory().map_err(CheckpointError::Plugin)?;
        let evaluator = self.evaluator();
        let mut cluster = self.cluster;
        let settings = &mut cluster.settings;
        settings.utc_offset = settings.utc_offset.fixed_at(now_micros);
        Ok(Checkpoint {
            cluster,
            config: self.config.without_secrets(),
            plugins,
            seed: self.seed,
            evaluator,
            n_cycles: self.n_cycles,
            last_micros: self.last_micros,
            previous_micros: self.previous_micros,
            eviction_holds: self.eviction_holds,
            memory: self.memory,
            not_written: self.not_written,
            refusals: self.refusals,
            hyper_node_problems: self.hyper_node_problems,
            topology_problems: self.topology_problems,
            overwrites: self.overwrites,
        })
    }

    /// Returns an engine that goes on from a checkpoint. It explains, and asks no service outside.
    pub fn restore(checkpoint: Checkpoint, evaluator: Evaluator) -> Self {
        let Checkpoint { cluster, config, plugins, seed, n_cycles, last_micros, .. } = checkpoint;
        let options = EngineOptions { seed, evaluator, ..EngineOptions::default() };
        let (mut engine, _warnings) = Self::new(options, &config);
        engine.plugin_set.restore_memory(&plugins);
        (engine.cluster, engine.explain) = (cluster, true);
        (engine.n_cycles, engine.last_micros) = (n_cycles, last_micros);
        engine.previous_micros = checkpoint.previous_micros;
        engine.eviction_holds = checkpoint.eviction_holds;
        engine.memory = checkpoint.memory;
        engine.not_written = checkpoint.not_written;
        engine.refusals = checkpoint.refusals;
        engine.hyper_node_problems = checkpoint.hyper_node_problems;
        engine.topology_problems = checkpoint.topology_problems;
        engine.overwrites = checkpoint.overwrites;
        engine
    }
}
