//! Performs the effects of cycles, at most 96 calls at a time; what fails comes back as an event of
//! a later cycle. Specification: core.md 7, 4.5 (resync), 11; rust-ecosystem.md 3 (K-03).

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustc_hash::FxHashMap;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use vc_engine::Effect;

use crate::backlog::{Backlog, RequestSlots};
use crate::client::{Clients, WriteClients};
use crate::events::EventRecorder;
use crate::failure_log::PERIOD;
use crate::inbox::EngineMessage;
use crate::observe::Observer;
use crate::pausable::Pausable;
use crate::perform::{EffectWriter, WriteOutcome};
use crate::scheduler_loop::Decisions;
use crate::simulated::of_this_process;
use crate::write_queue::{WriteQueue, WriteTarget};

/// Calls in flight: half of them may be answered before somebody looks, and the others still keep the
/// server busy (K-03).
const IN_FLIGHT: usize = 96;

/// Performs what arrives until the sender is gone and everything is done; events get a little time
/// at the end.
pub async fn write(
    clients: Clients,
    component: String,
    inbox: mpsc::Sender<EngineMessage>,
    mut decisions: mpsc::Receiver<Decisions>,
    observer: Arc<dyn Observer>,
) {
    let (busy, yields) = watch::channel(false);
    let (recorder, events) = EventRecorder::new(
        (clients.events, clients.writes.events),
        component,
        yields,
        (clients.backlog.clone(), clients.failures.clone()),
        observer.clone(),
    );
    let events = tokio::spawn(of_this_process(events));
    let Clients { core, volcano, backlog, pod_group_cache, usage_store, failures, .. } = clients;
    let event_copies = clients.event_copies;
    let WriteClients { binds, pod_groups, .. } = clients.writes;
    let (log, seen, counts) = (failures.clone(), pod_group_cache.clone(), observer.clone());
    let queue_status_refused = AtomicBool::new(false);
    let writer = EffectWriter {
        core,
        volcano,
        binds,
        pod_groups,
        recorder,
        inbox,
        event_copies,
        observer,
        pod_group_cache,
        usage_store,
        failures,
        queue_status_refused,
    };
    let mut pool = Pool::new(writer, busy, backlog);
    let mut open = true;
    let mut minute = tokio::time::interval(PERIOD);
    while open || !pool.in_flight.is_empty() {
        // In this order, so that a simulation is the same again: what is rare comes first.
        tokio::select! {
            biased;
            batch = decisions.recv(), if open => match batch {
                Some(batch) => pool.accept(batch),
                // Nothing rests at the end.
                None => {
                    open = false;
                    pool.write_queue.wake(None);
                }
            },
            () = rested(pool.write_queue.rested_at()), if open => pool.write_queue.wake(Some(now())),
            _ = minute.tick() => {
                log.flush();
                pool.tell_sizes(&*counts);
            }
            keys = seen.changed() => {
                keys.into_iter().for_each(|key| pool.write_queue.pod_group_changed(key, now()));
            }
            Some(done) = pool.resyncs.join_next() => {
                pool.write_queue.finish(done.expect(CAUGHT), now());
            }
            Some(done) = pool.in_flight.join_next() => pool.finished(done.expect(CAUGHT)),
        }
        pool.start();
    }
    drop(pool);
    log.flush_all();
    if events.await.is_err() {
        counts.internal_error("event");
        tracing::error!("the writer of events has failed");
    }
}

async fn rested(at: Option<tokio::time::Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn now() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

/// Why a task has an answer when it ends.
const CAUGHT: &str = "panics are caught in it, and nobody aborts it while the pool is there";

/// A write that has been answered.
struct AnsweredWrite {
    target: WriteTarget,
    pausable: Option<Pausable>,
    is_bind: bool,
    outcome: WriteOutcome,
}

struct Pool {
    writer: Arc<EffectWriter>,
    /// Of the pods whose bind waits.
    created_micros: FxHashMap<Arc<str>, i64>,
    write_queue: WriteQueue,
    in_flight: JoinSet<AnsweredWrite>,
    /// They wait between attempts, so they do not count.
    resyncs: JoinSet<WriteTarget>,
    /// Whether calls are in flight, for which events make room.
    busy: watch::Sender<bool>,
    places: RequestSlots,
    backlog: Backlog,
}

impl Pool {
    fn new(writer: EffectWriter, busy: watch::Sender<bool>, backlog: Backlog) -> Self {
        Self {
            writer: Arc::new(writer),
            created_micros: FxHashMap::default(),
            write_queue: WriteQueue::default(),
            in_flight: JoinSet::new(),
            resyncs: JoinSet::new(),
            busy,
            places: RequestSlots::of(backlog.clone()),
            backlog,
        }
    }

    fn accept(&mut self, decisions: Decisions) {
        self.created_micros.extend(decisions.created_micros);
        for effect in decisions.effects {
            match (WriteTarget::of(&effect), effect) {
                (Some(target), effect) => self.write_queue.push(target, effect, now()),
                (None, Effect::Event { about, warning, reason, message }) => {
                    self.writer.note(about, warning, reason, &message);
                }
                (None, _) => {}
            }
        }
        self.count_dropped_binds();
    }

    /// Binds that are never sent wait no more.
    fn count_dropped_binds(&mut self) {
        (0..self.write_queue.take_dropped_binds()).for_each(|_| self.backlog.started());
    }

    /// Tells how much is kept.
    fn tell_sizes(&self, observer: &dyn Observer) {
        let of_queue = self.write_queue.table_sizes();
        let of_groups = self.writer.pod_group_cache.table_sizes();
        let own = ("writes.creation_times", self.created_micros.len());
        let sizes = of_queue.into_iter().chain(of_groups).chain([own]);
        sizes.for_each(|(table, size)| observer.table_size(table, size));
    }

    fn start(&mut self) {
        while self.in_flight.len() < IN_FLIGHT
            && let Some((target, effect)) = self.write_queue.next()
        {
            let writer = self.writer.clone();
            let created = match &effect {
                Effect::Bind { uid, .. } | Effect::PreBind { uid, .. } => {
                    self.backlog.started();
                    self.created_micros.remove(uid)
                }
                _ => None,
            };
            let pausable = Pausable::of(&target, &effect);
            let is_bind = matches!(effect, Effect::Bind { .. });
            // Boxed: tokio moves what it is given several times, and these are kilobytes.
            let write = Box::pin(async move {
                let outcome = writer.try_to_perform(effect, created).await;
                AnsweredWrite { target, pausable, is_bind, outcome }
            });
            self.in_flight.spawn(of_this_process(write));
        }
        let n_in_flight = self.in_flight.len();
        self.places.taken(n_in_flight, n_in_flight == IN_FLIGHT);
        let busy = 0 < n_in_flight;
        self.busy.send_if_modified(|before| std::mem::replace(before, busy) != busy);
    }

    /// The object stays taken while it is looked at again.
    fn finished(&mut self, answered: AnsweredWrite) {
        let AnsweredWrite { target, pausable, is_bind, outcome: done } = answered;
        self.places.answered();
        if is_bind && done.rest.is_none() {
            self.write_queue.bound(&target);
            self.count_dropped_binds();
            if let WriteTarget::Pod(uid) = &target {
                self.created_micros.remove(uid);
            }
        }
        if done.is_refused
            && let WriteTarget::PodGroup(key) = &target
        {
            self.writer.pod_group_cache.await_change(key);
        }
        self.write_queue.answered(pausable, done.is_refused, now());
        let Some(rest) = done.rest else { return self.write_queue.finish(target, now()) };
        let writer = self.writer.clone();
        self.resyncs.spawn(of_this_process(async move {
            writer.finish(rest).await;
            target
        }));
    }
}
