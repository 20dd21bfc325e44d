//! The engine's thread: everything listed once, then cycles as the pace says, effects to the
//! writer. Specification: core.md 1.5 (7), 5.1; the thread never waits for the network.

use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::Instant;
use vc_engine::{BatchKind, BrokenInvariant, CycleTime, Effect, Engine, Report};
use vc_model::{Cluster, ClusterEvent};

use crate::backlog::Backlog;
use crate::event_batch::EventBatch;
use crate::inbox::{CyclePace, EngineMessage, EngineVisit, PauseEnd, TAKEN};
use crate::observe::Observer;
use crate::twin_feed::{BatchCopy, TwinFeed};
use crate::wall_clock::wall_micros;

const REPORT_IT: &str = "hint: this is a fault of the scheduler, please report it";

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
    /// The state may have changed since its sums were checked.
    pub is_unchecked: bool,
    pub observer: Arc<dyn Observer>,
    /// Feed of the twin. `None`: there is no twin, and nothing is copied.
    pub twin: Option<TwinFeed>,
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
    pub fn run(self, engine: Engine, runtime: &Runtime) {
        runtime.block_on(self.drive(engine));
    }

    /// The same for a thread that has other things to do between two cycles, as in a simulation.
    pub async fn drive(mut self, mut engine: Engine) {
        if !self.sync(&mut engine).await {
            return;
        }
        tracing::info!("all objects are known, cycles start");
        self.observer.synced();
        if !self.send(engine.create_missing_queues(), engine.cluster()).await {
            return;
        }
        if let Some(twin) = &mut self.twin {
            twin.start(&mut engine);
        }
        let (mut next, mut said, mut n_cycles) = (Some(EventBatch::default()), Vec::new(), 0_u64);
        while let Some(mut batch) = next {
            n_cycles += 1;
            let start = Instant::now();
            let (n_events, now) = (batch.events.len(), now());
            let mut copy = self.copy(BatchKind::Cycle, &mut batch);
            let (mut n_early, mut early) = (0, EarlyDecisions::default());
            let (effects, report) =
                engine.cycle_with(batch.events, now, &mut |effects, cluster| {
                    n_early += effects.len();
                    copy.iter_mut().for_each(|copy| copy.add(&effects));
                    early.send(&self, effects, cluster);
                });
            let took = start.elapsed();
            self.send_copy(copy, &effects, now);
            log(&report, n_events, n_early + effects.len(), took);
            // Metrics of many jobs take a while; nobody waits for them.
            if !early.finish(&self).await || !self.send(effects, engine.cluster()).await {
                return;
            }
            self.observer.decided(&engine, &report, now);
            self.is_unchecked |= !engine.skipped_last_cycle() || 0 < n_events;
            self.report_cycle(report, &mut said);
            if self.is_unchecked && self.is_to_check(n_cycles) {
                check(engine.cluster(), &*self.observer);
                self.is_unchecked = false;
            }
            next = self.pause(&mut engine, took).await;
        }
    }

    fn is_to_check(&self, n_cycles: u64) -> bool {
        0 < self.check_cycles && n_cycles.is_multiple_of(self.check_cycles)
    }

    /// The events of the next cycle, once it is due; `None`: there is none. Binds that wait only for
    /// what is written before them do not wait for that cycle.
    async fn pause(&mut self, engine: &mut Engine, took: Duration) -> Option<EventBatch> {
        let mut pause = self.pace.behind(self.backlog.n_waiting()).pause(took);
        pause.end_by(engine.due_micros().map(until));
        loop {
            let twin = self.twin.as_ref();
            let command = |command: &_| twin.into_iter().for_each(|twin| twin.command(command));
            let is_unchecked = &mut self.is_unchecked;
            let visit = |visit: EngineVisit| {
                *is_unchecked |= visit.changes();
                visit.pay(engine, command);
            };
            match pause.next(&mut self.inbox, visit).await {
                PauseEnd::Cycle(batch) => {
                    if let Some(twin) = self.twin.as_mut().filter(|_| batch.events.is_empty()) {
                        twin.lull(engine);
                    }
                    return Some(batch);
                }
                PauseEnd::Stop(batch) => {
                    self.finish(engine, batch.events).await;
                    return None;
                }
                PauseEnd::Written(mut batch) => {
                    self.is_unchecked = true;
                    let (copy, now) = (self.copy(BatchKind::FollowUp, &mut batch), now());
                    let effects = engine.follow_up(batch.events, now);
                    self.send_copy(copy, &effects, now);
                    if !self.send(effects, engine.cluster()).await {
                        return None;
                    }
                }
            }
        }
    }

    fn copy(&self, kind: BatchKind, batch: &mut EventBatch) -> Option<BatchCopy> {
        self.twin.as_ref()?.copy(kind, batch)
    }

    /// Sends a copy to the twin, with the digest of these effects behind those before.
    fn send_copy(&self, copy: Option<BatchCopy>, effects: &[Effect], now: CycleTime) {
        if let (Some(mut copy), Some(twin)) = (copy, &self.twin) {
            copy.add(effects);
            twin.send(copy, now);
        }
    }

    /// Nothing new is decided, but what was is finished: a bind may wait for the answers to what is
    /// written before it. Whoever has stopped us knows how long that may take (C-05).
    async fn finish(&mut self, engine: &mut Engine, mut events: Vec<ClusterEvent>) {
        let mut taken = Vec::new();
        if !self.send(engine.last_writes(now()), engine.cluster()).await {
            return;
        }
        loop {
            let effects = engine.follow_up(events, now());
            if !self.send(effects, engine.cluster()).await || !engine.awaits_answers() {
                return;
            }
            if self.inbox.recv_many(&mut taken, TAKEN).await == 0 {
                return;
            }
            events = taken.drain(..).filter_map(EngineMessage::event).collect();
        }
    }

    /// False: nobody listens any more.
    async fn send(&self, effects: Vec<Effect>, cluster: &Cluster) -> bool {
        if effects.is_empty() {
            return true;
        }
        self.effects.send(self.counted(effects, cluster)).await.is_ok()
    }

    /// What the effects are sent as, after their binds were counted as waiting.
    fn counted(&self, effects: Vec<Effect>, cluster: &Cluster) -> Decisions {
        let decisions = Decisions::stamped(effects, cluster);
        self.backlog.add(decisions.created_micros.len());
        decisions
    }

    /// Takes in the first lists. False: it was told to stop.
    async fn sync(&mut self, engine: &mut Engine) -> bool {
        let (mut n_synced, mut taken, mut events) = (0, Vec::new(), Vec::new());
        while n_synced < self.n_kinds {
            if self.inbox.recv_many(&mut taken, TAKEN).await == 0 {
                return false;
            }
            for message in taken.drain(..) {
                match message {
                    EngineMessage::Event(event) | EngineMessage::Copied { event, .. } => {
                        events.push(event);
                    }
                    EngineMessage::Synced(kind) => {
                        tracing::debug!(v = 3, kind = kind.noun(), "listed");
                        n_synced += 1;
                    }
                    EngineMessage::Visit(visit) => {
                        engine.apply(std::mem::take(&mut events));
                        // The twin is made after this.
                        visit.pay(engine, |_| {});
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
        for BrokenInvariant { name, text } in &report.broken_invariants {
            tracing::error!("invariant {name} is violated: {text}\n{REPORT_IT}");
            self.observer.internal_error(name);
        }
        *said = report.warnings;
    }
}

/// Decisions that are sent while the cycle goes on, as far as the channel has room.
#[derive(Default)]
struct EarlyDecisions {
    /// Those that found no room, in order.
    late: Vec<Decisions>,
    is_closed: bool,
}

impl EarlyDecisions {
    fn send(&mut self, from: &SchedulerLoop, effects: Vec<Effect>, cluster: &Cluster) {
        let decisions = from.counted(effects, cluster);
        if !self.late.is_empty() {
            return self.late.push(decisions);
        }
        match from.effects.try_send(decisions) {
            Ok(()) => {}
            Err(TrySendError::Full(decisions)) => self.late.push(decisions),
            Err(TrySendError::Closed(_)) => self.is_closed = true,
        }
    }

    /// Sends the rest. False: nobody listens any more.
    async fn finish(self, from: &SchedulerLoop) -> bool {
        for decisions in self.late {
            if from.effects.send(decisions).await.is_err() {
                return false;
            }
        }
        !self.is_closed
    }
}

/// A wrong sum is told and counted; the scheduler goes on with it (C-03).
pub fn check(cluster: &Cluster, observer: &dyn Observer) {
    if let Err(problem) = cluster.check() {
        tracing::error!(
            "the sums of the cache do not match: {problem}\n{REPORT_IT}; a restart computes them anew"
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
    CycleTime { unix_micros: wall_micros() }
}
