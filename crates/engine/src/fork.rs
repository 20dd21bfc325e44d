//! A copy of the engine's state, on which questions are answered. The engine itself never notices.
//! Specification: answers.md 1, 10.2.

use vc_conf::ActionSettings;
use vc_framework::{ActiveJobs, Caches, EvictionHolds, EvictionSides, Opening, PluginSet, Session};
use vc_model::{Cluster, ClusterEvent};

/// A copy of the cluster with the configuration in force.
pub struct Fork {
    cluster: Cluster,
    plugin_set: PluginSet,
    eviction_holds: EvictionHolds,
    settings: ActionSettings,
    actions: Vec<&'static str>,
    n_cycles: u64,
    now_micros: i64,
}

impl Fork {
    pub(crate) fn new(
        (cluster, plugin_set, eviction_holds): (Cluster, PluginSet, EvictionHolds),
        (settings, actions): (ActionSettings, Vec<&'static str>),
        (n_cycles, now_micros): (u64, i64),
    ) -> Self {
        Self { cluster, plugin_set, eviction_holds, settings, actions, n_cycles, now_micros }
    }

    /// Returns the cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Changes the copy.
    pub fn apply(&mut self, event: ClusterEvent) {
        self.cluster.apply(event);
    }

    /// Returns the names of the configured actions, in order.
    pub fn actions(&self) -> &[&'static str] {
        &self.actions
    }

    /// Returns the number of cycles that the engine has run.
    pub fn n_cycles(&self) -> u64 {
        self.n_cycles
    }

    /// Returns the time of the engine's last cycle, in microseconds since 1970.
    pub fn now_micros(&self) -> i64 {
        self.now_micros
    }

    /// Opens a session on the copy. Its plugins see the state as at the start of the next cycle, at
    /// the time of the last one.
    pub fn session(&mut self) -> Session<'_> {
        let mut eviction_holds = self.eviction_holds.clone();
        eviction_holds.expire(&self.cluster);
        let opening = Opening {
            now_micros: self.now_micros,
            previous_micros: None,
            session_id: String::new(),
            enqueue_configured: self.actions.contains(&"enqueue"),
            sides: EvictionSides::of(self.actions.iter().copied()),
            eviction_holds,
            caches: Caches::default(),
            active_jobs: ActiveJobs::default(),
        };
        Session::open(&mut self.cluster, &mut self.plugin_set, &self.settings, opening)
    }
}
