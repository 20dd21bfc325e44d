//! The engine: owns the cluster state, the plugins and the actions, and runs cycles. Specification:
//! core.md 5.1, architecture "One cycle".

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_conf::{ActionSettings, Config, Warning};
use vc_framework::{
    Action, Claims, Dispatch, Effect, Evaluator, Hits, Memo, Opening, Outbox, Paths, PluginEntry,
    Report, Roster, Session, Sides, Stopwatch, Timings,
};
use vc_model::{Cluster, ClusterEvent, Settings, Stage};

use crate::lap::Lap;
use crate::numbers::Numbers;
use crate::overwrites::Overwrites;
use crate::pre_bind::{self, Lost};
use crate::queue_status::Statuses;
use crate::quiet::Quiet;
use crate::record;
use crate::refusals::Refusals;
use crate::report;
use crate::session_id::session_id;
use crate::throttle::Throttle;
use crate::verify::verify;

/// Actions that make room for starving jobs.
const EVICTING: [&str; 4] = ["preempt", "reclaim", "gangpreempt", "gangreclaim"];
/// Jobs whose close takes so long that nobody should wait for it who does not have to.
const MANY_TO_CLOSE: usize = 1_000;
/// A clock that goes back by more than this was set; less is corrected all the time.
const SET_BACK_MICROS: i64 = 60_000_000;

/// Takes writes that are decided while the cycle goes on, and the state.
pub type Early<'a> = dyn FnMut(Vec<Effect>, &Cluster) + 'a;

/// The clock at the start of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Microseconds since 1970.
    pub unix_micros: i64,
}

/// What the command line says about the engine.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Settings that say which objects are ours and what the API server can do.
    pub settings: Settings,
    /// Session ids are derived from it.
    pub seed: u64,
    /// By which reports tell how long things took; `None`: they do not.
    pub stopwatch: Option<Stopwatch>,
    /// `--evaluator`: how nodes are found; the decisions are the same.
    pub evaluator: Evaluator,
    /// What a configuration can name; those that are built.
    pub plugins: &'static [PluginEntry],
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            seed: 0,
            stopwatch: None,
            evaluator: Evaluator::default(),
            plugins: vc_plugins::ALL,
        }
    }
}

impl From<Settings> for EngineOptions {
    fn from(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }
}

/// What the engine remembers from cycle to cycle besides the cluster.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) throttle: Throttle,
    /// Queues whose parent is missing and that were warned of (C-31).
    pub(crate) orphan_queues: BTreeSet<Arc<str>>,
    /// Of queues, as of the last full cycle (core.md 7.7).
    pub(crate) statuses: Statuses,
    /// Uids of the PodGroups that were told that their queue is missing (C-21).
    pub(crate) without_queue: BTreeSet<Arc<str>>,
    /// When a pod that is not part of the session is to be told why, in microseconds since 1970;
    /// `None`: all were told.
    pub(crate) outside_due_micros: Option<i64>,
    /// It was said that our NodeShard does not exist.
    pub(crate) without_shard: bool,
}

/// The whole scheduler as a function of events and time.
pub struct Engine {
    cluster: Cluster,
    plugins: &'static [PluginEntry],
    dispatch: Dispatch,
    actions: Vec<&'static dyn Action>,
    config: Config,
    settings: ActionSettings,
    seed: u64,
    n_cycles: u64,
    /// Of the last cycle.
    last_micros: i64,
    explain: bool,
    witness: bool,
    walk_bytes: Option<usize>,
    /// `None` until the first cycle finds those of an earlier process.
    claims: Option<Claims>,
    /// `None`: the plain evaluator is selected.
    memo: Option<Memo>,
    roster: Roster,
    memory: Memory,
    /// `None`: the last cycle has changed something, or the plain evaluator is selected.
    quiet: Option<Quiet>,
    stopwatch: Option<Stopwatch>,
    hits: Hits,
    numbers: Numbers,
    /// Effects that follow from events, not from a session.
    pending: Vec<Effect>,
    /// Uids of pods whose volumes were not written, and why.
    not_written: BTreeMap<Arc<str>, String>,
    refusals: Refusals,
    overwrites: Overwrites,
}

impl Engine {
    /// An engine without objects. The warnings are about the configuration.
    pub fn new(options: EngineOptions, config: &Config) -> (Self, Vec<Warning>) {
        let mut engine = Self {
            cluster: Cluster::new(options.settings),
            plugins: options.plugins,
            dispatch: Dispatch::default(),
            actions: Vec::new(),
            config: Config::default(),
            settings: ActionSettings::default(),
            seed: options.seed,
            n_cycles: 0,
            last_micros: i64::MIN,
            explain: false,
            witness: false,
            walk_bytes: None,
            claims: None,
            memo: (options.evaluator == Evaluator::Fast).then(Memo::default),
            roster: Roster::default(),
            memory: Memory::default(),
            quiet: None,
            stopwatch: options.stopwatch,
            hits: Hits::default(),
            numbers: Numbers::default(),
            pending: Vec::new(),
            not_written: BTreeMap::new(),
            refusals: Refusals::default(),
            overwrites: Overwrites::default(),
        };
        let warnings = engine.configure(config);
        (engine, warnings)
    }

    /// Takes another configuration, in force from the next cycle on. Every argument starts from its
    /// default (A2, C-08).
    pub fn configure(&mut self, config: &Config) -> Vec<Warning> {
        // `vc_conf::parse` has reported what is wrong with action arguments.
        self.config = config.clone();
        self.settings = ActionSettings::from(config, &mut Vec::new());
        let (dispatch, warnings) = Dispatch::new(config, self.plugins);
        let earlier = std::mem::replace(&mut self.dispatch, dispatch);
        self.dispatch.succeed(earlier);
        self.dispatch.set_stopwatch(self.stopwatch);
        let built =
            |name: &String| vc_actions::ALL.iter().copied().find(|action| action.name() == name);
        self.actions = config.actions.iter().filter_map(built).collect();
        self.forget();
        warnings
    }

    /// The API server has claims for devices from now on (plugins-nodes.md 2.1).
    pub fn serve_devices(&mut self) {
        self.cluster.settings.dynamic_resources = true;
        // What was remembered of pods with claims was found without them.
        self.forget();
    }

    /// Whatever was remembered to spare work; the next cycle looks at everything.
    fn forget(&mut self) {
        self.memo = self.memo.take().map(|_| Memo::default());
        self.quiet = None;
        self.roster = match self.memo {
            Some(_) => Roster::lasting(),
            None => Roster::default(),
        };
    }

    /// Whether reports say why each task waits and how queues use their shares.
    pub fn explain(&mut self, on: bool) {
        self.explain = on;
        self.quiet = None;
    }

    /// Whether reports hold the state at each certificate, for [`Engine::verify`].
    pub fn witness(&mut self, on: bool) {
        self.witness = on;
    }

    /// How many bytes of what evictions know of the nodes are kept, for tests: the decisions are the
    /// same.
    pub fn keep_walks(&mut self, most_bytes: usize) {
        self.walk_bytes = Some(most_bytes);
    }

    /// How often shortcuts of evictions were taken in the last cycle.
    pub fn hits(&self) -> Hits {
        self.hits
    }

    /// How often which path of the fast evaluator was taken with the present configuration. `None`:
    /// the plain one is selected.
    pub fn paths(&self) -> Option<Paths> {
        self.memo.as_ref().map(Memo::paths)
    }

    /// The state.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// What is wrong with the certificates of a cycle of the present configuration, one text per
    /// fault. It knows nothing of how they came about; [`Engine::witness`] must have been on.
    pub fn verify(&self, report: &Report, now: Now) -> Vec<String> {
        let certificates = &report.certificates;
        if certificates.len() != report.witnesses.len() {
            return vec!["there are certificates without witness".to_owned()];
        }
        let pairs = report.witnesses.iter().zip(certificates);
        pairs
            .flat_map(|(witness, it)| verify(self.plugins, &self.config, witness, it, now))
            .collect()
    }

    /// Brings events into the state without a cycle.
    pub fn apply(&mut self, events: Vec<ClusterEvent>) {
        for event in events {
            if let ClusterEvent::PreBindFailed { uid, error, .. } = &event {
                self.not_written.insert(uid.clone(), error.clone());
            }
            if let ClusterEvent::QueueDeleted { name } = &event {
                self.queue_deleted(name.clone());
            }
            self.numbers.note(&event);
            let hidden = self.overwrites.see(&event);
            self.refusals.apply(&mut self.cluster, event);
            hidden.iter().for_each(|hidden| self.overwrites.hide(&mut self.cluster, hidden));
        }
    }

    /// Applies the events and answers what follows from them without a session: binds whose volumes
    /// are there or never will be.
    pub fn follow_up(&mut self, events: Vec<ClusterEvent>, now: Now) -> Vec<Effect> {
        self.apply(events);
        let mut effects = std::mem::take(&mut self.pending);
        effects.retain(|effect| !self.tells_nobody(effect));
        let failed = std::mem::take(&mut self.not_written);
        let repeats = self.refusals.take(&mut self.cluster, now.unix_micros, &mut effects);
        let lost = Lost { errors: &failed, repeats: &repeats };
        pre_bind::advance(&mut self.cluster, &lost, now.unix_micros, &mut effects);
        self.overwrites.end(&mut self.cluster, now.unix_micros);
        self.overwrites.sent(&effects, now.unix_micros);
        effects
    }

    /// When the next write may be repeated, in microseconds since 1970: one that was refused (core.md
    /// 7.2), or a condition that somebody else has overwritten (7.6). A cycle is due then. `None`:
    /// nothing waits for that.
    pub fn due_micros(&self) -> Option<i64> {
        self.refusals.due_micros().into_iter().chain(self.overwrites.due_micros()).min()
    }

    /// Whether a bind that was decided waits for the answer to what is written before it. One that
    /// waits for somebody else, as for a volume to be made, does not count.
    pub fn awaits_answers(&self) -> bool {
        let volumes = &self.cluster.volumes;
        let stage = |task| volumes.reservation(task).map(|reservation| &reservation.stage);
        volumes.held().any(|task| matches!(stage(task), Some(Stage::Sent { .. })))
    }

    /// The queues that must exist are made again (core.md 4.7).
    fn queue_deleted(&mut self, queue: Arc<str>) {
        let reclaimable = queue == self.cluster.settings.default_queue;
        if reclaimable || &*queue == "root" {
            self.pending.push(Effect::CreateQueue { queue, reclaimable });
        }
    }

    /// Whether it is a word to a pod that has gone since.
    fn tells_nobody(&self, effect: &Effect) -> bool {
        let Effect::PodCondition { uid, .. } = effect else { return false };
        self.cluster.task(uid).is_none()
    }

    /// Applies the events and runs one cycle. The effects are in the order in which they were
    /// decided.
    pub fn cycle(&mut self, events: Vec<ClusterEvent>, now: Now) -> (Vec<Effect>, Report) {
        self.run(events, now, None)
    }

    /// The same, but where many jobs are to be closed the writes that the actions decided are handed
    /// to `early` before that: binds and evictions of a scheduler that has just started do not wait
    /// until the state of every job is recorded. Writes stay in their order among themselves, as do
    /// events of the API.
    pub fn cycle_with(
        &mut self,
        events: Vec<ClusterEvent>,
        now: Now,
        early: &mut Early<'_>,
    ) -> (Vec<Effect>, Report) {
        self.run(events, now, Some(early))
    }

    fn run(
        &mut self,
        events: Vec<ClusterEvent>,
        now: Now,
        early: Option<&mut Early<'_>>,
    ) -> (Vec<Effect>, Report) {
        if now.unix_micros.saturating_add(SET_BACK_MICROS) < self.last_micros {
            // When something was said last lies ahead of now: nothing would be said until then.
            self.memory.throttle = Throttle::default();
            self.refusals.forget(&mut self.cluster);
            self.overwrites.forget_all(&mut self.cluster);
            self.forget();
        }
        self.last_micros = now.unix_micros;
        let mut lap = Lap::start(self.stopwatch);
        self.pending = self.follow_up(events, now);
        let apply = lap.split();
        self.n_cycles += 1;
        let (effects, mut report, times) = match self.quiet_report(now) {
            Some(report) => (Vec::new(), report, Timings::default()),
            None => self.full_cycle(now, &mut lap, early),
        };
        self.overwrites.sent(&effects, now.unix_micros);
        let (samples, warning) = self.overwrites.report(now.unix_micros);
        report.samples.extend(samples);
        report.warnings.extend(warning);
        report.timings = lap.total().map(|cycle| Timings { cycle, apply, ..times });
        (effects, report)
    }

    fn quiet_report(&mut self, now: Now) -> Option<Report> {
        let quiet = self.quiet.as_ref()?;
        if !self.pending.is_empty() || self.cluster.volumes.held().next().is_some() {
            return None;
        }
        let (cluster, numbers) = (&self.cluster, &mut self.numbers);
        let seen = || numbers.take_seen(cluster).collect();
        quiet.report(cluster.version(), now.unix_micros, seen)
    }

    /// The session of a cycle. The times are those of its parts.
    fn full_cycle(
        &mut self,
        now: Now,
        lap: &mut Lap,
        early: Option<&mut Early<'_>>,
    ) -> (Vec<Effect>, Report, Timings) {
        let mut claims = self.claims.take().unwrap_or_else(|| Claims::rebuilt(&self.cluster));
        claims.expire(&self.cluster);
        let n_claim_changes = claims.n_changes();
        let opening = Opening {
            now_micros: now.unix_micros,
            session_id: session_id(self.seed, self.n_cycles),
            enqueue_configured: self.actions.iter().any(|action| action.name() == "enqueue"),
            sides: Sides::of(self.actions.iter().map(|action| action.name())),
            claims,
            memo: self.memo.take(),
            roster: std::mem::take(&mut self.roster),
        };
        let mut session =
            Session::open(&mut self.cluster, &mut self.dispatch, &self.settings, opening);
        session.with_witnesses = self.witness;
        session.walk_bytes = self.walk_bytes.unwrap_or(session.walk_bytes);
        let open = lap.split();
        let mut actions = Vec::new();
        for action in &self.actions {
            action.run(&mut session);
            actions.push((action.name(), lap.split()));
        }
        // That enqueue holds a job back matters only where evictions could help it (3.3).
        if !self.actions.iter().any(|action| EVICTING.contains(&action.name())) {
            session.causes.clear();
        }
        let told = early.map(|early| {
            let overwrites = &mut self.overwrites;
            let mut early = |effects: Vec<Effect>, cluster: &Cluster| {
                overwrites.sent(&effects, now.unix_micros);
                early(effects, cluster);
            };
            tell_early(&mut session, &mut self.pending, &mut early)
        });
        record::record(&mut session, &mut self.memory);
        let mut report = report::report(&session, self.explain);
        (report.n_binds, report.n_evictions) = told.unwrap_or_default();
        report.samples = self.numbers.take(&mut session);
        let traceless = session.left_no_trace() && self.pending.is_empty();
        let clock = traceless.then(|| session.hooks().clock(session.ask()));
        self.hits = session.hits;
        let (outbox, claims, memo, roster) = session.finish();
        let clock = clock.filter(|_| claims.n_changes() == n_claim_changes);
        self.claims = Some(claims);
        (self.memo, self.roster) = (memo, roster);
        let Outbox { effects, warnings, certificates, witnesses, .. } = outbox;
        report.warnings = warnings;
        (report.certificates, report.witnesses) = (certificates, witnesses);
        let mut all = std::mem::take(&mut self.pending);
        match all.is_empty() {
            true => all = effects,
            false => all.extend(effects),
        }
        report.count(&all);
        self.quiet = clock.filter(|_| self.memo.is_some()).and_then(|clock| {
            let due_micros = self.memory.throttle.next_due_micros();
            let due_micros = due_micros.into_iter().chain(self.memory.outside_due_micros).min();
            let version = self.cluster.version();
            Quiet::after(&report, version, now.unix_micros, clock, due_micros)
        });
        let (close, times) = (lap.split(), self.dispatch.take_times());
        self.cluster.recycle();
        (all, report, Timings { open, actions, close, ..times })
    }
}

/// Hands out the writes so far, if it takes long until the others are known. How many of them are
/// binds and evictions.
fn tell_early(
    session: &mut Session<'_>,
    pending: &mut Vec<Effect>,
    early: &mut Early<'_>,
) -> (usize, usize) {
    let roster = &session.facts().roster;
    let n_to_close = roster.changed().map_or(roster.n_jobs(), <[_]>::len);
    let is_write = |effect: &mut Effect| !matches!(effect, Effect::Event { .. });
    if n_to_close < MANY_TO_CLOSE || !session.out.effects.iter_mut().any(is_write) {
        return (0, 0);
    }
    let mut writes: Vec<Effect> = pending.extract_if(.., is_write).collect();
    writes.extend(session.out.effects.extract_if(.., is_write));
    // They are no longer among the effects that tell whether something was decided.
    session.leaves_trace();
    let mut counted = Report::default();
    counted.count(&writes);
    early(writes, session);
    (counted.n_binds, counted.n_evictions)
}
