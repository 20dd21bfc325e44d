//! A copy of the engine's state, on which questions are answered. The engine itself never notices.
//! Specification: answers.md 1, 10.2.

use vc_conf::{ActionSettings, Config};
use vc_framework::{
    ActiveJobs, Caches, Evaluator, EvictionHolds, Opening, PausedSession, PluginEntry, PluginSet,
    Session,
};
use vc_model::{Cluster, ClusterEvent};

use crate::changeable_rows::ChangeableRows;
use crate::engine::CycleTime;
use crate::verify::opening_of_copy;

/// A copy of the cluster with the configuration in force.
pub struct Fork {
    cluster: Cluster,
    plugin_set: PluginSet,
    eviction_holds: EvictionHolds,
    configuration: ForkConfiguration,
    evaluator: Evaluator,
    n_cycles: u64,
    now_micros: i64,
    /// What the last session has read, for the next one.
    caches: Caches,
    active_jobs: ActiveJobs,
    /// The session of the last question, which the next one goes on with. `None` if there was none since the
    /// last change.
    paused: Option<Box<PausedSession>>,
}

/// What the plugins and actions of a copy are built from.
#[derive(Clone)]
pub(crate) struct ForkConfiguration {
    pub(crate) config: Config,
    pub(crate) settings: ActionSettings,
    pub(crate) actions: Vec<&'static str>,
    pub(crate) plugins: &'static [PluginEntry],
}

impl ForkConfiguration {
    /// Builds plugins with copies of the memory of these.
    fn build(&self, memory: &PluginSet) -> PluginSet {
        let (mut plugin_set, _warnings) = PluginSet::new(&self.config, self.plugins);
        plugin_set.copy_memory(memory);
        plugin_set
    }
}

impl Fork {
    pub(crate) fn new(
        configuration: ForkConfiguration,
        ((cluster, memory, eviction_holds), active_jobs): (
            (&Cluster, &PluginSet, EvictionHolds),
            ActiveJobs,
        ),
        (evaluator, n_cycles, now_micros): (Evaluator, u64, i64),
    ) -> Self {
        let plugin_set = configuration.build(memory);
        let mut cluster = cluster.clone();
        cluster.share();
        Self {
            cluster,
            plugin_set,
            eviction_holds,
            configuration,
            evaluator,
            n_cycles,
            now_micros,
            caches: Caches::default(),
            active_jobs,
            paused: None,
        }
    }

    /// Lets copies made from now on share the tables with this one, until either side writes to them.
    pub fn share(&mut self) {
        self.cluster.share();
    }

    /// Returns a copy, to be changed.
    #[must_use]
    pub fn copy(&self) -> Self {
        let (configuration, eviction_holds) =
            (self.configuration.clone(), self.eviction_holds.clone());
        let state = (&self.cluster, &self.plugin_set, eviction_holds);
        let caches = self.paused.as_ref().map_or(&self.caches, |paused| paused.caches());
        let active_jobs = self.paused.as_ref().map_or(&self.active_jobs, |it| it.active_jobs());
        Self {
            caches: caches.copy_for_trials(),
            ..Self::new(
                configuration,
                (state, active_jobs.for_copy()),
                (self.evaluator, self.n_cycles, self.now_micros),
            )
        }
    }

    /// Returns the cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Returns the cluster, to be changed between two sessions. Changes of nodes and jobs must be logged, since
    /// sessions keep what they have read of them.
    pub fn cluster_mut(&mut self) -> &mut Cluster {
        self.end_session();
        &mut self.cluster
    }

    /// Changes the copy.
    pub fn apply(&mut self, event: ClusterEvent) {
        self.end_session();
        self.cluster.apply(event);
    }

    /// Returns the names of the configured actions, in order.
    pub fn actions(&self) -> &[&'static str] {
        &self.configuration.actions
    }

    /// Returns the number of cycles that the engine has run.
    pub fn n_cycles(&self) -> u64 {
        self.n_cycles
    }

    /// Returns the time of the engine's last cycle, in microseconds since 1970.
    pub fn now_micros(&self) -> i64 {
        self.now_micros
    }

    /// True if answers about this state may be kept. With the plain evaluator each is worked out anew.
    pub fn keeps_answers(&self) -> bool {
        self.evaluator == Evaluator::Fast
    }

    /// Opens a session on the copy; the service of the plugin extender is not asked. Its plugins see the
    /// state as at the start of the next cycle, at the time of the last one. Trials are cached if the engine
    /// has the fast evaluator.
    pub fn session(&mut self) -> Session<'_> {
        self.end_session();
        let mut eviction_holds = self.eviction_holds.clone();
        eviction_holds.expire(&self.cluster);
        let now = CycleTime { unix_micros: self.now_micros };
        let opening = Opening {
            caches: std::mem::take(&mut self.caches),
            active_jobs: std::mem::take(&mut self.active_jobs),
            ..opening_of_copy(&self.configuration.config, eviction_holds, now)
        };
        let settings = &self.configuration.settings;
        let mut session = Session::open(&mut self.cluster, &mut self.plugin_set, settings, opening);
        session.cache_trials(self.evaluator == Evaluator::Fast);
        session
    }

    /// Asks a question in a session as [`Fork::session`] opens it. The question must undo what it does there. The
    /// next question goes on with the session, unless something was changed in between. With the plain
    /// evaluator each question has a session of its own. Debug builds check that rows are as before.
    pub fn with_session<T>(&mut self, question: impl FnOnce(&mut Session<'_>) -> T) -> T {
        let keeps_session = self.keeps_answers();
        let before = ChangeableRows::of_small(&self.cluster);
        let mut session = match self.paused.take() {
            Some(paused) => {
                let settings = &self.configuration.settings;
                Session::resume(&mut self.cluster, &mut self.plugin_set, settings, *paused)
            }
            None => self.session(),
        };
        let answer = question(&mut session);
        self.paused = Some(Box::new(session.pause()));
        let changed =
            |rows: ChangeableRows| rows.differing_table(&ChangeableRows::of(&self.cluster));
        debug_assert_eq!(before.and_then(changed), None, "a question has changed this table");
        if !keeps_session {
            self.end_session();
        }
        answer
    }

    /// Ends the session of the last question, and keeps what it and its plugins have read for the next one.
    /// The plugins are not closed. Exact because:
    /// - a plugin that is opened again follows the logs of changes, as after each cycle;
    /// - questions undo what they did, and plugins have followed the events of that, too;
    /// - what plugins write when they are closed nobody reads.
    fn end_session(&mut self) {
        if let Some(paused) = self.paused.take() {
            (self.caches, self.active_jobs) = paused.end();
        }
    }
}
