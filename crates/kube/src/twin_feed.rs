//! Copies of what the engine is given, for a second engine on another thread that decides the same
//! and answers questions. The engine's thread never waits for it.
//! Specification: answers.md 10 (ANS-56, ANS-57, ANS-59, ANS-60).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use vc_engine::{BatchKind, CycleTime, Effect, EffectDigest, Engine, EngineBatch, EngineCommand};
use vc_model::{ClusterEvent, NodeRecord, PodGroupRecord, PodRecord};

use crate::event_batch::EventBatch;

/// Events that wait for the twin at most.
pub const MOST_TWIN_EVENTS: usize = 200_000;
/// Bytes of events that wait for the twin at most, by [`rough_bytes`].
const MOST_TWIN_BYTES: usize = 64 << 20;
/// How long no new twin is made after the last one.
const NEXT_TWIN: Duration = Duration::from_secs(60);

/// What the twin is given, in the order of the engine.
pub enum TwinInput {
    /// An engine with the state of this moment. It replaces an earlier one. It shares its rows with the engine that
    /// decides until it takes rows of its own ([`Engine::unshare`]).
    Start(Box<Engine>),
    /// The engine was given these events.
    Batch(EngineBatch),
    /// The engine was changed otherwise.
    Command(EngineCommand),
    /// Nothing more comes until the next start.
    Stop(TwinStop),
}

/// Why nothing more comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TwinStop {
    /// More than [`MOST_TWIN_EVENTS`] events wait, or more than 64 MiB of them.
    Backlog,
    /// The configuration asks services outside, whose answers cannot be repeated.
    Services,
}

/// What both sides know.
#[derive(Debug, Default)]
pub struct TwinProgress {
    is_following: AtomicBool,
    n_waiting: AtomicUsize,
    /// Bytes of these events, by [`rough_bytes`].
    waiting_bytes: AtomicUsize,
    /// Time of the oldest batch that the twin has not applied, in microseconds since 1970; 0: there is none.
    /// While batches wait between two calls of the twin it is that of the batch before them.
    oldest_micros: AtomicI64,
}

impl TwinProgress {
    /// False: the twin was given up, or none was made yet.
    pub fn is_following(&self) -> bool {
        self.is_following.load(Ordering::Relaxed)
    }

    /// A twin was made: from now on everything is sent.
    pub(crate) fn begin(&self) {
        self.is_following.store(true, Ordering::Relaxed);
    }

    /// The twin was given up: nothing is sent until a new one is made.
    pub fn give_up(&self) {
        self.is_following.store(false, Ordering::Relaxed);
    }

    /// Adds events that were sent to the twin. Returns how many wait now.
    pub fn add_waiting(&self, n_events: usize) -> usize {
        self.n_waiting.fetch_add(n_events, Ordering::Relaxed) + n_events
    }

    /// Adds bytes of events that were sent to the twin. Returns how many wait now.
    fn add_bytes(&self, n_bytes: usize) -> usize {
        self.waiting_bytes.fetch_add(n_bytes, Ordering::Relaxed) + n_bytes
    }

    /// The twin has taken so many events.
    pub fn took(&self, n_events: usize) {
        subtract(&self.n_waiting, n_events);
    }

    /// Returns the number of events that wait for the twin.
    pub fn n_waiting(&self) -> usize {
        self.n_waiting.load(Ordering::Relaxed)
    }

    /// A batch of this time is sent to the twin. Its events are among those that wait.
    fn sends(&self, micros: i64) {
        // The time of an older batch stays.
        let _older =
            self.oldest_micros.compare_exchange(0, micros, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// The twin begins with this batch: all older ones are applied.
    pub fn begin_batch(&self, batch: &EngineBatch) {
        subtract(&self.waiting_bytes, rough_bytes(&batch.events));
        self.oldest_micros.store(batch.now.unix_micros, Ordering::Relaxed);
    }

    /// The twin has ended a batch.
    pub fn end_batch(&self) {
        let ended = self.oldest_micros.swap(0, Ordering::Relaxed);
        // The order matters: a batch that is sent meanwhile is seen here, or its sender sees the 0.
        if 0 < self.n_waiting() {
            self.sends(ended);
        }
    }

    /// Returns the age of the oldest batch that the twin has not applied, in microseconds; 0 if there is
    /// none.
    pub fn behind_micros(&self, now_micros: i64) -> i64 {
        match self.oldest_micros.load(Ordering::Relaxed) {
            0 => 0,
            oldest => now_micros.saturating_sub(oldest).max(0),
        }
    }
}

/// Subtracts from a counter, which does not fall below 0.
fn subtract(counter: &AtomicUsize, n: usize) {
    let left = |before: usize| Some(before.saturating_sub(n));
    let _always = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left);
}

/// Returns roughly how many bytes events take: those of their records, without texts and lists, many of
/// which are shared.
fn rough_bytes(events: &[ClusterEvent]) -> usize {
    let of_record = |event: &ClusterEvent| match event {
        ClusterEvent::PodApplied(_) | ClusterEvent::PodRead { .. } => size_of::<PodRecord>(),
        ClusterEvent::NodeApplied(_) => size_of::<NodeRecord>(),
        ClusterEvent::PodGroupApplied(_) => size_of::<PodGroupRecord>(),
        _ => 0,
    };
    size_of_val(events) + events.iter().map(of_record).sum::<usize>()
}

/// The engine's end.
pub struct TwinFeed {
    send: Box<dyn Fn(TwinInput) + Send>,
    progress: Arc<TwinProgress>,
    most_events: usize,
    most_bytes: usize,
    started: Option<Instant>,
}

impl TwinFeed {
    /// Returns a feed that hands everything to `send`, which must not block.
    pub fn new(send: impl Fn(TwinInput) + Send + 'static, progress: Arc<TwinProgress>) -> Self {
        Self {
            send: Box::new(send),
            progress,
            most_events: MOST_TWIN_EVENTS,
            most_bytes: MOST_TWIN_BYTES,
            started: None,
        }
    }

    /// Makes a twin of the engine, which is between two cycles. The twin shares the rows with the engine, and its
    /// thread takes rows of its own.
    pub fn start(&mut self, engine: &mut Engine) {
        self.started = Some(Instant::now());
        if engine.is_repeatable() {
            engine.share();
        }
        match engine.twin() {
            Some(twin) => {
                // Before it is sent: a twin that is given up meanwhile must not begin with it.
                self.progress.begin();
                (self.send)(TwinInput::Start(Box::new(twin)));
            }
            None => (self.send)(TwinInput::Stop(TwinStop::Services)),
        }
    }

    /// Nothing happens now: a twin that was given up is made anew, unless that was lately.
    pub(crate) fn lull(&mut self, engine: &mut Engine) {
        let is_due = self.started.is_none_or(|started| NEXT_TWIN <= started.elapsed());
        if is_due && !self.progress.is_following() {
            self.start(engine);
        }
    }

    /// Returns the progress of the twin.
    pub(crate) fn progress(&self) -> Arc<TwinProgress> {
        self.progress.clone()
    }

    /// Returns a copy of what the engine is about to be given. Returns `None` if nobody follows.
    pub fn copy(&self, kind: BatchKind, batch: &mut EventBatch) -> Option<BatchCopy> {
        let copy =
            || BatchCopy { kind, events: batch.take_copies(), digest: EffectDigest::default() };
        self.progress.is_following().then(copy)
    }

    /// Sends the copy after the engine's call.
    pub fn send(&self, copy: BatchCopy, now: CycleTime) {
        let BatchCopy { kind, events, digest } = copy;
        let n_waiting = self.progress.add_waiting(events.len());
        let n_bytes = self.progress.add_bytes(rough_bytes(&events));
        self.progress.sends(now.unix_micros);
        (self.send)(TwinInput::Batch(EngineBatch { kind, events, now, digest: digest.value() }));
        if self.most_events < n_waiting || self.most_bytes < n_bytes {
            self.stop(TwinStop::Backlog);
        }
    }

    /// Sends a command that the engine is about to run.
    pub(crate) fn command(&self, command: &EngineCommand) {
        if self.progress.is_following() {
            (self.send)(TwinInput::Command(command.clone()));
        }
    }

    fn stop(&self, why: TwinStop) {
        self.progress.give_up();
        (self.send)(TwinInput::Stop(why));
    }
}

/// A copy of a batch with the digest of the effects so far.
pub struct BatchCopy {
    kind: BatchKind,
    events: Vec<ClusterEvent>,
    digest: EffectDigest,
}

impl BatchCopy {
    /// Adds effects to the digest, in the order in which the engine has returned them.
    pub fn add(&mut self, effects: &[Effect]) {
        self.digest.add(effects);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use vc_engine::{Config, EngineOptions};

    use super::*;

    fn engine() -> Engine {
        Engine::new(EngineOptions::default(), &Config::default()).0
    }

    fn feed(most_events: usize) -> (TwinFeed, Arc<TwinProgress>, mpsc::Receiver<TwinInput>) {
        let (sender, receiver) = mpsc::channel();
        let progress = Arc::new(TwinProgress::default());
        let mut feed = TwinFeed::new(move |it| drop(sender.send(it)), progress.clone());
        feed.most_events = most_events;
        (feed, progress, receiver)
    }

    fn words(receiver: &mpsc::Receiver<TwinInput>) -> Vec<String> {
        let word = |input| match input {
            TwinInput::Start(_) => "start".to_owned(),
            TwinInput::Batch(batch) => format!("{:?} {}", batch.kind, batch.events.len()),
            TwinInput::Command(_) => "command".to_owned(),
            TwinInput::Stop(why) => format!("stop {why:?}"),
        };
        receiver.try_iter().map(word).collect()
    }

    fn send(feed: &TwinFeed, n_events: usize) -> bool {
        let events = vec![ClusterEvent::NodeDeleted { name: "n".into() }; n_events];
        let copy = feed.copy(BatchKind::Cycle, &mut events.into());
        let is_copied = copy.is_some();
        copy.into_iter().for_each(|copy| feed.send(copy, CycleTime { unix_micros: 1 }));
        is_copied
    }

    #[tokio::test(start_paused = true)]
    async fn ans_56_what_the_engine_gets_is_sent_in_its_order() {
        let (mut feed, progress, receiver) = feed(10);
        assert!(!send(&feed, 1), "nothing is copied before the start");
        feed.command(&EngineCommand::ServeDevices);
        feed.start(&mut engine());
        assert!(send(&feed, 2));
        feed.command(&EngineCommand::ServeDevices);
        assert!(send(&feed, 0));
        assert_eq!(words(&receiver), ["start", "Cycle 2", "command", "Cycle 0"]);
        assert_eq!(progress.n_waiting(), 2);
        progress.took(2);
        assert_eq!(progress.n_waiting(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn ans_60_a_twin_is_given_up_when_too_many_bytes_wait() {
        let (mut feed, progress, receiver) = feed(10);
        let one = || ClusterEvent::NodeApplied(Box::default());
        let of_two = rough_bytes(&[one(), one()]);
        assert!(2 * size_of::<NodeRecord>() < of_two);
        feed.most_bytes = of_two;
        feed.start(&mut engine());
        let send = |n_events: usize| {
            let events: Vec<ClusterEvent> = (0..n_events).map(|_| one()).collect();
            let copy = feed.copy(BatchKind::Cycle, &mut events.into());
            copy.into_iter().for_each(|copy| feed.send(copy, CycleTime { unix_micros: 1 }));
        };
        send(2);
        assert!(progress.is_following());
        // What the twin has begun with does not wait any more.
        for input in receiver.try_iter() {
            if let TwinInput::Batch(batch) = input {
                progress.begin_batch(&batch);
            }
        }
        send(2);
        assert!(progress.is_following());
        send(1);
        assert!(!progress.is_following());
        assert_eq!(words(&receiver), ["Cycle 2", "Cycle 1", "stop Backlog"]);
    }

    #[test]
    fn ans_61_the_twin_is_behind_by_the_age_of_the_oldest_batch() {
        let progress = TwinProgress::default();
        let begin = |unix_micros: i64| {
            let (kind, now) = (BatchKind::Cycle, CycleTime { unix_micros });
            progress.begin_batch(&EngineBatch { kind, events: Vec::new(), now, digest: 0 });
        };
        assert_eq!(progress.behind_micros(100), 0, "nothing was sent");
        for micros in [10, 20] {
            progress.add_waiting(1);
            progress.sends(micros);
        }
        assert_eq!(progress.behind_micros(100), 90);
        assert_eq!(progress.behind_micros(9), 0, "the clock was set back");
        begin(10);
        progress.took(1);
        progress.end_batch();
        assert_eq!(progress.behind_micros(100), 90, "the second one waits");
        begin(20);
        progress.took(1);
        assert_eq!(progress.behind_micros(100), 80, "it is being applied");
        progress.end_batch();
        assert_eq!(progress.behind_micros(100), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn ans_60_a_twin_that_is_given_up_is_made_anew_in_a_later_lull() {
        let (mut feed, progress, receiver) = feed(3);
        let mut engine = engine();
        feed.start(&mut engine);
        assert!(send(&feed, 3) && send(&feed, 1) && !send(&feed, 1));
        assert_eq!(words(&receiver), ["start", "Cycle 3", "Cycle 1", "stop Backlog"]);
        feed.lull(&mut engine);
        assert_eq!(words(&receiver), [""; 0], "not at once");
        tokio::time::advance(NEXT_TWIN).await;
        progress.took(4);
        feed.lull(&mut engine);
        feed.lull(&mut engine);
        assert_eq!(words(&receiver), ["start"]);
        progress.give_up();
        assert!(!send(&feed, 1));
    }

    /// Making a twin copies no row on the engine's thread: both have the same rows in memory. Once the twin has taken
    /// rows of its own, the engine writes to its rows without copying them.
    #[tokio::test(start_paused = true)]
    async fn ans_60_a_twin_that_is_made_in_a_lull_shares_the_rows_of_the_engine() {
        let (mut feed, _progress, receiver) = feed(10);
        let mut engine = engine();
        let node = |unschedulable: bool| {
            let record = NodeRecord { name: "n".into(), unschedulable, ..NodeRecord::default() };
            vec![ClusterEvent::NodeApplied(Box::new(record))]
        };
        engine.apply(node(false));
        let row = |engine: &Engine| {
            let cluster = engine.cluster();
            std::ptr::from_ref(&cluster.nodes[cluster.node("n").expect("it was applied")])
        };
        let before = row(&engine);
        feed.lull(&mut engine);
        let Ok(TwinInput::Start(mut twin)) = receiver.try_recv() else { panic!("no twin") };
        assert_eq!((row(&engine), row(&twin)), (before, before));
        twin.unshare();
        engine.apply(node(true));
        assert_eq!(row(&engine), before);
        assert_ne!(row(&twin), before);
        let is_cordoned = |engine: &Engine| {
            let cluster = engine.cluster();
            cluster.node("n").map(|node| cluster.nodes[node].unschedulable)
        };
        assert_eq!((is_cordoned(&engine), is_cordoned(&twin)), (Some(true), Some(false)));
    }

    /// What the engine had before is in the twin, what comes meanwhile is in the batch after it.
    #[tokio::test(start_paused = true)]
    async fn ans_59_no_event_is_lost_and_none_comes_twice_while_the_twin_is_made() {
        let (mut feed, progress, receiver) = feed(10);
        let mut engine = engine();
        let run = |feed: &TwinFeed, engine: &mut Engine, name: &str| {
            let record = NodeRecord { name: name.into(), ..NodeRecord::default() };
            let events = vec![ClusterEvent::NodeApplied(Box::new(record))];
            let now = CycleTime { unix_micros: engine.last_micros().max(0) + 1 };
            let mut batch = EventBatch::from(events);
            let copy = feed.copy(BatchKind::Cycle, &mut batch);
            engine.cycle(batch.events, now);
            copy.into_iter().for_each(|copy| feed.send(copy, now));
        };
        run(&feed, &mut engine, "before");
        // These are sent while the twin is made, so that the engine gets them afterwards.
        feed.start(&mut engine);
        run(&feed, &mut engine, "meanwhile");
        progress.give_up();
        run(&feed, &mut engine, "between");
        feed.start(&mut engine);
        run(&feed, &mut engine, "after");
        let mut twin = None;
        for input in receiver.try_iter() {
            match input {
                TwinInput::Start(engine) => twin = Some(engine),
                TwinInput::Batch(batch) => {
                    let twin = twin.as_mut().expect("it has begun");
                    twin.cycle(batch.events, batch.now);
                }
                _ => panic!("nothing else is sent"),
            }
        }
        let rows =
            |engine: &Engine| format!("{:?}", engine.cluster().nodes.iter().collect::<Vec<_>>());
        assert_eq!(rows(&twin.expect("it has begun")), rows(&engine));
        assert_eq!(engine.cluster().nodes.len(), 4);
    }
}
