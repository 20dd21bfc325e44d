//! Copies of an engine: for questions, and for a process that follows it. Specification: answers.md
//! 9, 10.

use vc_framework::{CacheStats, Caches, Evaluator, EvictionHolds, PluginSet};
use vc_model::Cluster;

use super::Engine;
use crate::fork::{Fork, ForkConfiguration};
use crate::overwrites::ConditionOverwrites;

impl Engine {
    /// Returns a copy of the state and the configuration, for questions. It has no caches: sessions
    /// of it use the plain evaluator, and ask no extender. The next decisions of the engine do not
    /// depend on it.
    pub fn fork(&self) -> Fork {
        let eviction_holds = self.eviction_holds.clone();
        let eviction_holds =
            eviction_holds.unwrap_or_else(|| EvictionHolds::rebuilt(&self.cluster));
        let configuration = ForkConfiguration {
            config: self.config.clone(),
            settings: self.settings.clone(),
            actions: self.actions.iter().map(|action| action.name()).collect(),
            plugins: self.plugins,
        };
        let state = (&self.cluster, &self.plugin_set, eviction_holds);
        let evaluator = self.evaluator();
        let active_jobs = self.active_jobs.for_copy();
        let times = (evaluator, self.n_cycles, self.last_micros);
        Fork::new(configuration, (state, active_jobs), times)
    }

    /// Lets copies made from now on share the tables with this engine, until either side writes to them.
    /// The engine then copies the parts that it writes; decisions do not depend on it.
    pub fn share(&mut self) {
        self.cluster.share();
        self.active_jobs.share();
    }

    /// Takes tables of its own: what another engine has, too, is copied. The other engine then writes to its tables
    /// without copying them; decisions do not depend on it.
    pub fn unshare(&mut self) {
        self.cluster.unshare();
        self.active_jobs.unshare();
    }

    /// Returns an engine that decides the same from now on, if it is given the same. Returns `None`
    /// if the configuration asks services outside, whose answers cannot be repeated.
    pub fn twin(&self) -> Option<Self> {
        self.is_repeatable().then(|| self.copy())
    }

    /// Returns a copy on which questions are answered with whole cycles. Nobody else writes conditions there, so that
    /// it does not remember which ones were written. A cycle without a change is skipped if this engine would skip
    /// it.
    #[must_use]
    pub fn copy_for_questions(&self) -> Self {
        // The report of a skipped cycle is that of the last one.
        let idle_cycle = self.idle_cycle.clone().filter(|_| self.explain);
        Self { idle_cycle, ..self.copy_with(ConditionOverwrites::disabled()) }
    }

    /// Returns a second engine with this state, configuration and memory. It explains, asks no extender, and starts
    /// without caches; decisions do not depend on them. The next decisions of this engine do not depend on it.
    #[must_use]
    pub fn copy(&self) -> Self {
        self.copy_with(self.overwrites.clone())
    }

    fn copy_with(&self, overwrites: ConditionOverwrites) -> Self {
        let (mut plugin_set, _warnings) = PluginSet::new(&self.config, self.plugins);
        plugin_set.copy_memory(&self.plugin_set);
        let evaluator = self.evaluator();
        Self {
            cluster: self.cluster.clone(),
            plugins: self.plugins,
            extender: None,
            plugin_set,
            actions: self.actions.clone(),
            config: self.config.clone(),
            settings: self.settings.clone(),
            seed: self.seed,
            n_cycles: self.n_cycles,
            last_micros: self.last_micros,
            previous_micros: self.previous_micros,
            explain: true,
            witness: false,
            victim_index_bytes: self.victim_index_bytes,
            eviction_holds: self.eviction_holds.clone(),
            caches: Caches::new(evaluator),
            active_jobs: self.active_jobs.for_copy(),
            memory: self.memory.clone(),
            idle_cycle: None,
            is_skipped: false,
            stopwatch: None,
            cache_stats: CacheStats::default(),
            metric_samples: self.metric_samples.clone(),
            pending: self.pending.clone(),
            not_written: self.not_written.clone(),
            refusals: self.refusals.clone(),
            hyper_node_problems: self.hyper_node_problems.clone(),
            topology_problems: self.topology_problems.clone(),
            overwrites,
        }
    }

    pub(super) fn evaluator(&self) -> Evaluator {
        if self.caches.is_fast() { Evaluator::Fast } else { Evaluator::Plain }
    }

    /// True if the decisions follow from what the engine is given alone. False if the configuration
    /// asks services outside.
    pub fn is_repeatable(&self) -> bool {
        !vc_plugins::asks_services(&self.config)
    }

    /// Changes the state otherwise than by events. The change must be logged as those of events are.
    /// It is for copies.
    pub fn suppose<T>(&mut self, change: impl FnOnce(&mut Cluster) -> T) -> T {
        change(&mut self.cluster)
    }

    /// Drops all caches across cycles.
    pub fn drop_caches(&mut self) {
        self.forget();
    }
}
