//! The engine: it owns the cluster state, the plugins and the actions, and runs cycles.
//! Specification: core.md 5.1, architecture "One cycle".

mod checkpoint;
mod copies;
mod table_sizes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vc_conf::{ActionSettings, Config, Warning};
use vc_framework::{
    AccountUse, Action, ActiveJobs, CacheStats, Caches, Effect, Evaluator, EvaluatorPaths,
    EvictionHolds, EvictionSides, ExtenderClient, NodeScoreCache, Opening, Outbox, PluginEntry,
    PluginSet, Report, Session, Stopwatch, Timings,
};
use vc_model::{BindingStage, Cluster, ClusterEvent, Settings};

use crate::hyper_node_problems::HyperNodeProblems;
use crate::idle_cycle::IdleCycle;
use crate::invariants::broken_invariants;
use crate::load_source::interval_warning;
use crate::metric_samples::MetricSamples;
use crate::overwrites::ConditionOverwrites;
use crate::pauses::KeptPlace;
use crate::phase_timer::PhaseTimer;
use crate::pre_bind::{self, LostVolumes};
use crate::queue_status::QueueStatuses;
use crate::record;
use crate::refusals::WriteRefusals;
use crate::report;
use crate::report_throttle::ReportThrottle;
use crate::session_id::session_id;
use crate::topology_problems::TopologyProblems;
use crate::verify::verify;

pub use checkpoint::{Checkpoint, CheckpointError};

/// Actions that evict pods for starving jobs.
const EVICTING: [&str; 4] = ["preempt", "reclaim", "gangpreempt", "gangreclaim"];
/// Number of jobs to close from which writes are handed out before the close. Below it the close is
/// short enough to wait for.
const MANY_TO_CLOSE: usize = 1_000;
/// A clock that goes back by more than this was set. Smaller steps are ordinary corrections.
const SET_BACK_MICROS: i64 = 60_000_000;

/// Receiver of writes that are decided before the cycle ends; it also gets the state.
pub type EarlyEffects<'a> = dyn FnMut(Vec<Effect>, &Cluster) + 'a;

/// The clock at the start of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CycleTime {
    /// Microseconds since 1970.
    pub unix_micros: i64,
}

/// Options of the engine, from the command line.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Settings that decide which objects are ours, and what the API server can do.
    pub settings: Settings,
    /// Seed from which session ids are derived.
    pub seed: u64,
    /// Clock for the durations in reports. `None`: reports have no durations.
    pub stopwatch: Option<Stopwatch>,
    /// `--evaluator`: how nodes are found. The decisions of both evaluators are the same.
    pub evaluator: Evaluator,
    /// Plugins that a configuration can name.
    pub plugins: &'static [PluginEntry],
    /// Way to the service of the plugin `extender`. `None`: the service cannot be reached.
    pub extender: Option<Arc<dyn ExtenderClient>>,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            seed: 0,
            stopwatch: None,
            evaluator: Evaluator::default(),
            plugins: vc_plugins::ALL,
            extender: None,
        }
    }
}

impl From<Settings> for EngineOptions {
    fn from(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }
}

/// State of the engine across cycles, besides the cluster.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct EngineMemory {
    pub(crate) report_throttle: ReportThrottle,
    /// Queues with a missing parent for which a warning was written (C-31).
    pub(crate) orphan_queues: BTreeSet<Arc<str>>,
    /// Statuses of queues, as of the last full cycle (core.md 7.7).
    pub(crate) statuses: QueueStatuses,
    /// Uids of the PodGroups to which a missing queue was reported (C-21).
    pub(crate) without_queue: BTreeSet<Arc<str>>,
    /// Time at which a pod outside the session is due for a report, in microseconds since 1970.
    /// `None` if all such pods have theirs.
    pub(crate) outside_due_micros: Option<i64>,
    /// True if it was reported that our NodeShard does not exist.
    pub(crate) without_shard: bool,
}

/// The whole scheduler as a function of events and time.
pub struct Engine {
    cluster: Cluster,
    plugins: &'static [PluginEntry],
    extender: Option<Arc<dyn ExtenderClient>>,
    plugin_set: PluginSet,
    actions: Vec<&'static dyn Action>,
    config: Config,
    settings: ActionSettings,
    seed: u64,
    n_cycles: u64,
    /// Time of the last cycle, in microseconds since 1970.
    last_micros: i64,
    /// Time of the cycle before the last one, in microseconds since 1970. `None`: there was none.
    previous_micros: Option<i64>,
    explain: bool,
    witness: bool,
    victim_index_bytes: Option<usize>,
    /// Eviction holds. `None` until the first cycle rebuilds those of an earlier process.
    eviction_holds: Option<EvictionHolds>,
    /// Node scores. `None` if the plain evaluator is selected.
    caches: Caches,
    active_jobs: ActiveJobs,
    memory: EngineMemory,
    /// The last cycle, if it was idle. `None` if it changed something, or if the plain evaluator is
    /// selected.
    idle_cycle: Option<IdleCycle>,
    /// The last cycle was skipped.
    is_skipped: bool,
    stopwatch: Option<Stopwatch>,
    cache_stats: CacheStats,
    metric_samples: MetricSamples,
    /// Effects that follow from events instead of a session.
    pending: Vec<Effect>,
    /// Errors by uid of pods whose volumes were not written.
    not_written: BTreeMap<Arc<str>, String>,
    refusals: WriteRefusals,
    hyper_node_problems: HyperNodeProblems,
    topology_problems: TopologyProblems,
    overwrites: ConditionOverwrites,
}

impl Engine {
    /// Returns an engine without objects, and warnings about the configuration.
    pub fn new(options: EngineOptions, config: &Config) -> (Self, Vec<Warning>) {
        let mut engine = Self {
            cluster: Cluster::new(options.settings),
            plugins: options.plugins,
            extender: options.extender,
            plugin_set: PluginSet::default(),
            actions: Vec::new(),
            config: Config::default(),
            settings: ActionSettings::default(),
            seed: options.seed,
            n_cycles: 0,
            last_micros: i64::MIN,
            previous_micros: None,
            explain: false,
            witness: false,
            victim_index_bytes: None,
            eviction_holds: None,
            caches: Caches::new(options.evaluator),
            active_jobs: ActiveJobs::default(),
            memory: EngineMemory::default(),
            idle_cycle: None,
            is_skipped: false,
            stopwatch: options.stopwatch,
            cache_stats: CacheStats::default(),
            metric_samples: MetricSamples::default(),
            pending: Vec::new(),
            not_written: BTreeMap::new(),
            refusals: WriteRefusals::default(),
            hyper_node_problems: HyperNodeProblems::default(),
            topology_problems: TopologyProblems::default(),
            overwrites: ConditionOverwrites::default(),
        };
        let warnings = engine.configure(config);
        (engine, warnings)
    }

    /// Replaces the configuration, in force from the next cycle on. Every argument starts from its
    /// default (A2, C-08).
    pub fn configure(&mut self, config: &Config) -> Vec<Warning> {
        // `vc_conf::parse` has already reported faults in action arguments.
        self.config = config.clone();
        self.settings = ActionSettings::from(config, &mut Vec::new());
        let (mut plugin_set, mut warnings) = PluginSet::new(config, self.plugins);
        warnings.extend(interval_warning(config));
        self.extender.iter().for_each(|client| plugin_set.connect(client));
        let earlier = std::mem::replace(&mut self.plugin_set, plugin_set);
        self.plugin_set.copy_memory(&earlier);
        self.plugin_set.set_stopwatch(self.stopwatch);
        let built =
            |name: &String| vc_actions::ALL.iter().copied().find(|action| action.name() == name);
        self.actions = config.actions.iter().filter_map(built).collect();
        self.forget();
        warnings
    }

    /// Records that the API server serves ResourceClaims from now on (plugins-nodes.md 2.1).
    pub fn serve_devices(&mut self) {
        self.cluster.settings.dynamic_resources = true;
        // Cached results for pods with claims were computed without the claims.
        self.forget();
    }

    /// Drops all caches across cycles. The next cycle looks at everything.
    fn forget(&mut self) {
        let is_fast = self.caches.is_fast();
        self.caches = Caches::new(self.evaluator());
        self.idle_cycle = None;
        self.active_jobs = if is_fast { ActiveJobs::kept() } else { ActiveJobs::default() };
    }

    /// Sets whether reports say why each task waits and how queues use their shares.
    pub fn explain(&mut self, on: bool) {
        self.explain = on;
        self.idle_cycle = None;
    }

    /// Sets whether reports hold the state at each certificate, for [`Engine::verify`].
    pub fn witness(&mut self, on: bool) {
        self.witness = on;
    }

    /// Sets the bytes of the victim index, for tests. The decisions do not depend on it.
    pub fn set_victim_index_bytes(&mut self, most_bytes: usize) {
        self.victim_index_bytes = Some(most_bytes);
    }

    /// Returns the cache counters of the last cycle.
    pub fn cache_stats(&self) -> CacheStats {
        self.cache_stats
    }

    /// Returns how often each path of the fast evaluator was taken with the present configuration.
    /// Returns `None` if the plain evaluator is selected.
    pub fn paths(&self) -> Option<EvaluatorPaths> {
        self.caches.score_cache().map(NodeScoreCache::paths)
    }

    /// Returns the cluster state.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Returns the faults in the certificates of a cycle of the present configuration, one text
    /// each. The check does not know the search; [`Engine::witness`] must have been on.
    pub fn verify(&self, report: &Report, now: CycleTime) -> Vec<String> {
        let certificates = &report.certificates;
        if certificates.len() != report.witnesses.len() {
            return vec!["there are certificates without witness".to_owned()];
        }
        let pairs = report.witnesses.iter().zip(certificates);
        let mut faults = Vec::new();
        for (witness, it) in pairs {
            let (mut plugin_set, _warnings) = PluginSet::new(&self.config, self.plugins);
            self.extender.iter().for_each(|client| plugin_set.connect(client));
            plugin_set.copy_victim_memory(&self.plugin_set);
            faults.extend(verify(plugin_set, &self.config, witness, it, now));
        }
        faults
    }

    /// Returns the time of the last cycle, in microseconds since 1970.
    pub fn last_micros(&self) -> i64 {
        self.last_micros
    }

    /// Returns the number of cycles that were run.
    pub fn n_cycles(&self) -> u64 {
        self.n_cycles
    }

    /// True if the last cycle was skipped, because nothing has changed since one that decided nothing.
    pub fn skipped_last_cycle(&self) -> bool {
        self.is_skipped
    }

    /// Returns the configuration in force.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns what accounts have used, by queue and account, at the time of the last cycle. Empty if no
    /// plugin remembers usage; otherwise it costs a copy of the state and a session on it.
    pub fn account_use(&self) -> Vec<AccountUse> {
        if !self.plugin_set.remembers_usage() {
            return Vec::new();
        }
        let mut fork = self.fork();
        let session = fork.session();
        let usages = session.plugins().account_use(session.view());
        session.finish();
        usages
    }

    /// Applies events to the state without a cycle.
    pub fn apply(&mut self, events: Vec<ClusterEvent>) {
        let is_usage = |event: &ClusterEvent| matches!(event, ClusterEvent::UsageRead(_));
        let reads_usage = events.iter().any(is_usage) && self.plugin_set.remembers_usage();
        for event in events {
            if let ClusterEvent::PreBindFailed { uid, error, .. } = &event {
                self.not_written.insert(uid.clone(), error.clone());
            }
            if let ClusterEvent::QueueDeleted { name } = &event {
                self.queue_deleted(name.clone());
            }
            self.metric_samples.note(&event);
            let hidden = self.overwrites.see(&event);
            self.refusals.apply(&mut self.cluster, event);
            hidden.iter().for_each(|hidden| self.overwrites.hide(&mut self.cluster, hidden));
        }
        if reads_usage {
            // The order of everything may be another one, as with a new configuration. Its warnings are known.
            let config = self.config.clone();
            self.configure(&config);
        }
    }

    /// Applies the events and returns the effects that follow without a session. These are binds
    /// whose volumes are bound, or have failed.
    pub fn follow_up(&mut self, events: Vec<ClusterEvent>, now: CycleTime) -> Vec<Effect> {
        self.apply(events);
        let mut effects = std::mem::take(&mut self.pending);
        effects.retain(|effect| !self.tells_nobody(effect));
        let failed = std::mem::take(&mut self.not_written);
        let (repeats, kept) = self.refusals.take(&mut self.cluster, now.unix_micros, &mut effects);
        self.give_first_turns(kept);
        let lost = LostVolumes { errors: &failed, repeats: &repeats };
        pre_bind::advance(&mut self.cluster, &lost, now.unix_micros, &mut effects);
        self.overwrites.end(&mut self.cluster, now.unix_micros);
        self.overwrites.sent(&effects, now.unix_micros);
        effects
    }

    /// Gives the pods that have kept their places the first turn on them.
    fn give_first_turns(&mut self, kept: Vec<KeptPlace>) {
        if !self.settings.allocate.claim_first {
            return;
        }
        for KeptPlace { task, node } in kept {
            let rebuilt = || EvictionHolds::rebuilt(&self.cluster);
            self.eviction_holds.get_or_insert_with(rebuilt).keep(&self.cluster, task, node);
        }
    }

    /// Returns the writes that keep the state of plugins over a restart. Called once, when no cycle
    /// follows.
    pub fn last_writes(&mut self, now: CycleTime) -> Vec<Effect> {
        self.plugin_set.last_writes(now.unix_micros)
    }

    /// Returns the time when the next write may be repeated, in microseconds since 1970; a cycle is
    /// due then. Such a write was refused (core.md 7.2), or is a condition that another writer has
    /// overwritten (7.6). Returns `None` if no write waits.
    pub fn due_micros(&self) -> Option<i64> {
        self.refusals.due_micros().into_iter().chain(self.overwrites.due_micros()).min()
    }

    /// True if a decided bind waits for the answer to a write before it. A bind that waits for
    /// others, such as a provisioner, does not count.
    pub fn awaits_answers(&self) -> bool {
        let volumes = &self.cluster.volumes;
        let stage = |task| volumes.reservation(task).map(|reservation| &reservation.stage);
        volumes.held().any(|task| matches!(stage(task), Some(BindingStage::Sent { .. })))
    }

    /// Requests the creation of a deleted queue that must exist (core.md 4.7).
    fn queue_deleted(&mut self, queue: Arc<str>) {
        let reclaimable = queue == self.cluster.settings.default_queue;
        if reclaimable || &*queue == "root" {
            self.pending.push(Effect::CreateQueue { queue, reclaimable });
        }
    }

    /// Requests the queues that must exist and that the lists lack: a restore of the API server may have taken them while
    /// this process did not lead (core.md 4.7).
    pub fn create_missing_queues(&self) -> Vec<Effect> {
        let default = &self.cluster.settings.default_queue;
        let wanted = [(Arc::from("root"), false), (default.clone(), true)];
        let is_there = |name: &Arc<str>| {
            self.cluster.queue(name).is_some_and(|id| self.cluster.queues[id].present)
        };
        let missing = wanted.into_iter().filter(|(name, _)| !is_there(name));
        missing.map(|(queue, reclaimable)| Effect::CreateQueue { queue, reclaimable }).collect()
    }

    /// True if the effect is a condition of a pod that no longer exists.
    fn tells_nobody(&self, effect: &Effect) -> bool {
        let Effect::PodCondition { uid, .. } = effect else { return false };
        self.cluster.task(uid).is_none()
    }

    /// Applies the events and runs one cycle. The effects are in the order in which they were
    /// decided.
    pub fn cycle(&mut self, events: Vec<ClusterEvent>, now: CycleTime) -> (Vec<Effect>, Report) {
        self.run(events, now, None)
    }

    /// Runs one cycle like [`Engine::cycle`]. If many jobs are to be closed, the writes of the
    /// actions are handed to `early` before that. Binds and evictions of a scheduler that has just
    /// started thus need not wait for the state of every job. Writes keep their order among
    /// themselves, and so do events of the API.
    pub fn cycle_with(
        &mut self,
        events: Vec<ClusterEvent>,
        now: CycleTime,
        early: &mut EarlyEffects<'_>,
    ) -> (Vec<Effect>, Report) {
        self.run(events, now, Some(early))
    }

    fn run(
        &mut self,
        events: Vec<ClusterEvent>,
        now: CycleTime,
        early: Option<&mut EarlyEffects<'_>>,
    ) -> (Vec<Effect>, Report) {
        if now.unix_micros.saturating_add(SET_BACK_MICROS) < self.last_micros {
            // Times of earlier reports are ahead of now; without a reset nothing would be reported
            // until then.
            self.memory.report_throttle = ReportThrottle::default();
            self.refusals.forget(&mut self.cluster);
            self.overwrites.forget_all(&mut self.cluster);
        }
        if now.unix_micros < self.last_micros {
            // Cached answers hold from the time of their cycle on, for example while a zone is open.
            self.forget();
        }
        self.previous_micros = Some(self.last_micros).filter(|_| 0 < self.n_cycles);
        self.last_micros = now.unix_micros;
        let mut timer = PhaseTimer::start(self.stopwatch);
        self.pending = self.follow_up(events, now);
        let apply = timer.split();
        self.n_cycles += 1;
        let idle = self.quiet_report(now);
        self.is_skipped = idle.is_some();
        let (effects, mut report, times) = match idle {
            Some(report) => (Vec::new(), report, Timings::default()),
            None => self.full_cycle(now, &mut timer, early),
        };
        self.overwrites.sent(&effects, now.unix_micros);
        let (samples, warning) = self.overwrites.report(now.unix_micros);
        report.samples.extend(samples);
        report.warnings.extend(warning);
        report.timings = timer.total().map(|cycle| Timings { cycle, apply, ..times });
        (effects, report)
    }

    fn quiet_report(&mut self, now: CycleTime) -> Option<Report> {
        let idle_cycle = self.idle_cycle.as_ref()?;
        if !self.pending.is_empty() || self.cluster.volumes.held().next().is_some() {
            return None;
        }
        let (cluster, metric_samples) = (&self.cluster, &mut self.metric_samples);
        let seen = || metric_samples.take_seen(cluster).collect();
        idle_cycle.report(cluster.version(), now.unix_micros, seen)
    }

    /// Runs the session of a cycle. The returned times are the durations of its parts.
    fn full_cycle(
        &mut self,
        now: CycleTime,
        timer: &mut PhaseTimer,
        early: Option<&mut EarlyEffects<'_>>,
    ) -> (Vec<Effect>, Report, Timings) {
        let mut eviction_holds =
            self.eviction_holds.take().unwrap_or_else(|| EvictionHolds::rebuilt(&self.cluster));
        eviction_holds.expire(&self.cluster);
        let n_hold_changes = eviction_holds.n_changes();
        let opening = Opening {
            now_micros: now.unix_micros,
            previous_micros: self.previous_micros,
            session_id: session_id(self.seed, self.n_cycles),
            enqueue_configured: self.actions.iter().any(|action| action.name() == "enqueue"),
            sides: EvictionSides::of(self.actions.iter().map(|action| action.name())),
            eviction_holds,
            caches: std::mem::take(&mut self.caches),
            active_jobs: std::mem::take(&mut self.active_jobs),
        };
        let mut session =
            Session::open(&mut self.cluster, &mut self.plugin_set, &self.settings, opening);
        session.outcome.with_witnesses = self.witness;
        session.outcome.turns = self.explain.then(Vec::new);
        self.victim_index_bytes.into_iter().for_each(|most| session.set_victim_index_bytes(most));
        let of_hyper_nodes = self.hyper_node_problems.report(&mut session);
        self.topology_problems.report(&mut session);
        let open = timer.split();
        let actions = run_actions(&self.actions, &mut session, timer);
        let effects = &session.outcome.out.effects;
        let broken_invariants = broken_invariants(&session, &self.config, effects);
        let reported = early.map(|early| {
            let overwrites = &mut self.overwrites;
            let mut early = |effects: Vec<Effect>, cluster: &Cluster| {
                overwrites.sent(&effects, now.unix_micros);
                early(effects, cluster);
            };
            report_early(&mut session, &mut self.pending, &mut early)
        });
        record::record(&mut session, &mut self.memory);
        let mut report = report::report(&session, self.explain);
        (report.n_binds, report.n_evictions) = reported.unwrap_or_default();
        report.samples = self.metric_samples.take(&mut session);
        let of_topologies = self.topology_problems.sample(&session);
        report.samples.extend(of_hyper_nodes.into_iter().chain(of_topologies));
        let traceless = session.left_no_trace() && self.pending.is_empty();
        let clock = traceless.then(|| session.plugins().clock(session.view()));
        self.cache_stats = *session.stats();
        let (outbox, eviction_holds, caches, active_jobs) = session.finish();
        let clock = clock.filter(|_| eviction_holds.n_changes() == n_hold_changes);
        self.eviction_holds = Some(eviction_holds);
        (self.caches, self.active_jobs) = (caches, active_jobs);
        let Outbox { effects, warnings, certificates, witnesses, .. } = outbox;
        report.warnings = warnings;
        (report.certificates, report.witnesses) = (certificates, witnesses);
        report.broken_invariants = broken_invariants;
        let mut all = std::mem::take(&mut self.pending);
        match all.is_empty() {
            true => all = effects,
            false => all.extend(effects),
        }
        report.count(&all);
        self.idle_cycle = clock.filter(|_| self.caches.is_fast()).and_then(|clock| {
            let due_micros = self.memory.report_throttle.next_due_micros();
            let due_micros = due_micros.into_iter().chain(self.memory.outside_due_micros).min();
            let version = self.cluster.version();
            IdleCycle::after(&report, version, now.unix_micros, clock, due_micros)
        });
        let (close, times) = (timer.split(), self.plugin_set.take_times());
        self.cluster.recycle();
        (all, report, Timings { open, actions, close, ..times })
    }
}

/// Runs the actions in their order. Returns their names and durations.
fn run_actions(
    actions: &[&dyn Action],
    session: &mut Session<'_>,
    timer: &mut PhaseTimer,
) -> Vec<(&'static str, u64)> {
    let mut times = Vec::new();
    for action in actions {
        action.run(session);
        times.push((action.name(), timer.split()));
    }
    // The cause "not admitted" matters only if evictions could help (actions.md 3.3).
    if !actions.iter().any(|action| EVICTING.contains(&action.name())) {
        session.outcome.causes.clear();
    }
    times
}

/// Hands out the writes so far, if the close takes long. Returns the numbers of binds and evictions
/// among them.
fn report_early(
    session: &mut Session<'_>,
    pending: &mut Vec<Effect>,
    early: &mut EarlyEffects<'_>,
) -> (usize, usize) {
    let active_jobs = &session.info().active_jobs;
    let n_to_close = active_jobs.changed().map_or(active_jobs.n_jobs(), <[_]>::len);
    let is_write = |effect: &mut Effect| !matches!(effect, Effect::Event { .. });
    if n_to_close < MANY_TO_CLOSE || !session.outcome.out.effects.iter_mut().any(is_write) {
        return (0, 0);
    }
    let mut writes: Vec<Effect> = pending.extract_if(.., is_write).collect();
    writes.extend(session.outcome.out.effects.extract_if(.., is_write));
    // These writes are no longer among the effects that show whether the session decided something.
    session.leaves_trace();
    let mut counted = Report::default();
    counted.count(&writes);
    early(writes, session);
    (counted.n_binds, counted.n_evictions)
}
