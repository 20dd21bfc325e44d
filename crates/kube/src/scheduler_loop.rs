//! The engine's thread: everything listed once, then cycles as the pace says, effects to the
//! writer. Specification: core.md 1.5 (7), 5.1; the thread never waits for the network.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustc_hash::FxHashMap;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use vc_engine::{CycleTime, Effect, Engine, Report};
use vc_model::{Cluster, ClusterEvent};

use crate::backlog::Backlog;
use crate::inbox::{CyclePace, EngineMessage, PauseEnd, TAKEN};
use crate::observe::Observer;

/// What the thread talks to.
pub struct SchedulerLoop {
    pub inbox: mpsc::Receiver<EngineMessage>,
    /// Closed when the thread ends: the writer finishes what it has.
    pub effects: mpsc::Sender<Decisions>,
    pub pace: CyclePace,
    /// That of the writer's clients.
    pub backlog: Backlog,
    /// Kinds that are followed; the first cycle waits for all of them.
    pub n_kinds: usize,
    /// After so many cycles every sum of the engine is computed anew and compared; 0: never.
    pub check_cycles: u64,
    pub observer: Arc<dyn Observer>,
}

/// What a cycle wants done.
#[derive(Debug, Default)]
pub struct Decisions {
    pub effects: Vec<Effect>,
    /// Creation of the pods that are bound, or whose volumes are, in microseconds since 1970, by uid.
    pub created_micros: FxHashMap<Arc<str>, i64>,
}

impl From<Vec<Effect>> for Decisions {
    fn from(effects: Vec<Effect>) -> Self {
        Self { effects, created_micros: FxHashMap::default() }
    }
}

impl Decisions {
    fn stamped(effects: Vec<Effect>, cluster: &Cluster) -> Self {
        let created = |effect: &Effect| {
            let (Effect::Bind { uid, .. } | Effect::PreBind { uid, .. }) = effect else {
                return None;
            };
            let task = cluster.task(uid)?;
            Some((uid.clone(), cluster.tasks[task].created_micros))
        };
        let created_micros = effects.iter().filter_map(created).collect();
        Self { effects, created_micros }
    }
}

impl SchedulerLoop {
    /// Runs until it is told to stop, or nobody listens any more. Blocks the calling thread.
    pub fn run(mut self, mut engine: Engine, runtime: &Runtime) {
        if !self.sync(&mut engine) {
            return;
        }
        tracing::info!("all objects are known, cycles start");
        self.observer.synced();
        let (mut events, mut said, mut n_cycles) = (Some(Vec::new()), Vec::new(), 0_u64);
        while let Some(batch) = events {
            n_cycles += 1;
            let start = Instant::now();
            let n_events = batch.len();
            let (mut n_early, mut listens) = (0, true);
            let (effects, report) = engine.cycle_with(batch, now(), &mut |effects, cluster| {
                n_early += effects.len();
                listens &= self.send(effects, cluster);
            });
            let took = start.elapsed();
            log(&report, n_events, n_early + effects.len(), took);
            // Metrics of many jobs take a while; nobody waits for them.
            if !listens || !self.send(effects, engine.cluster()) {
                return;
            }
            self.report_cycle(report, &mut said);
            if 0 < self.check_cycles && n_cycles.is_multiple_of(self.check_cycles) {
                check(engine.cluster(), &*self.observer);
            }
            events = self.pause(&mut engine, took, runtime);
        }
    }

    /// The events of the next cycle, once it is due; `None`: there is none. Binds that wait only for
    /// what is written before them do not wait for that cycle.
    fn pause(
        &mut self,
        engine: &mut Engine,
        took: Duration,
        runtime: &Runtime,
    ) -> Option<Vec<ClusterEvent>> {
        let mut pause = self.pace.behind(self.backlog.n_waiting()).pause(took);
        pause.end_by(engine.due_micros().map(until));
        loop {
            let next = pause.next(&mut self.inbox, |visit| visit.pay(engine));
            match runtime.block_on(next) {
                PauseEnd::Cycle(events) => return Some(events),
                PauseEnd::Stop(events) => {
                    self.finish(engine, events);
                    return None;
                }
                PauseEnd::Written(events) => {
                    let effects = engine.follow_up(events, now());
                    if !self.send(effects, engine.cluster()) {
                        return None;
                    }
                }
            }
        }
    }

    /// Nothing new is decided, but what was is finished: a bind may wait for the answers to what is
    /// written before it. Whoever has stopped us knows how long that may take (C-05).
    fn finish(&mut self, engine: &mut Engine, mut events: Vec<ClusterEvent>) {
        let mut taken = Vec::new();
        if !self.send(engine.last_writes(now()), engine.cluster()) {
            return;
        }
        loop {
            let effects = engine.follow_up(events, now());
            if !self.send(effects, engine.cluster()) || !engine.awaits_answers() {
                return;
            }
            if self.inbox.blocking_recv_many(&mut taken, TAKEN) == 0 {
                return;
            }
            events = taken.drain(..).filter_map(EngineMessage::event).collect();
        }
    }

    /// False: nobody listens any more.
    fn send(&self, effects: Vec<Effect>, cluster: &Cluster) -> bool {
        if effects.is_empty() {
            return true;
        }
        let decisions = Decisions::stamped(effects, cluster);
        self.backlog.add(decisions.created_micros.len());
        self.effects.blocking_send(decisions).is_ok()
    }

    /// Takes in the first lists. False: it was told to stop.
    fn sync(&mut self, engine: &mut Engine) -> bool {
        let (mut n_synced, mut taken, mut events) = (0, Vec::new(), Vec::new());
        while n_synced < self.n_kinds {
            if self.inbox.blocking_recv_many(&mut taken, TAKEN) == 0 {
                return false;
            }
            for message in taken.drain(..) {
                match message {
                    EngineMessage::Event(event) => events.push(event),
                    EngineMessage::Synced(kind) => {
                        tracing::debug!(v = 3, kind = kind.noun(), "listed");
                        n_synced += 1;
                    }
                    EngineMessage::Visit(visit) => {
                        engine.apply(std::mem::take(&mut events));
                        visit.pay(engine);
                    }
                    EngineMessage::Stop => return false,
                }
            }
            engine.apply(std::mem::take(&mut events));
        }
        true
    }

    /// Metrics and warnings; `said` holds those of the cycle before, which are not repeated.
    fn report_cycle(&self, report: Report, said: &mut Vec<String>) {
        for warning in report.warnings.iter().filter(|text| !said.contains(text)) {
            tracing::warn!("{warning}");
        }
        self.observer.cycle(&report);
        *said = report.warnings;
    }
}

/// A wrong sum is told and counted; the scheduler goes on with it (C-03).
pub fn check(cluster: &Cluster, observer: &dyn Observer) {
    if let Err(problem) = cluster.check() {
        tracing::error!(
            "the sums of the cache do not match: {problem}\n\
             hint: this is a fault of the scheduler, please report it; a restart computes them anew"
        );
        observer.internal_error("cluster");
    }
}

fn log(report: &Report, n_events: usize, n_effects: usize, took: Duration) {
    // An idle scheduler is silent at the level of the chart.
    tracing::debug!(
        v = if n_effects == 0 { 4 } else { 3 },
        n_events,
        n_nodes = report.n_nodes,
        n_jobs = report.n_jobs,
        n_binds = report.n_binds,
        n_evictions = report.n_evictions,
        n_effects,
        micros = took.as_micros(),
        "cycle"
    );
}

/// How long it is until this time, in microseconds since 1970.
fn until(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros.saturating_sub(now().unix_micros)).unwrap_or(0))
}

fn now() -> CycleTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    CycleTime { unix_micros: i64::try_from(since.as_micros()).unwrap_or(i64::MAX) }
}
