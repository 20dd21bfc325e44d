//! What a process does while it leads: watches, engine and writer joined by channels, from the moment
//! when it holds the Lease until it gives it back. The daemon runs them on threads of their own, a
//! simulation on one. Specification: core.md 1.4 (C-05), 1.5, 1.6.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use vc_engine::Engine;

use crate::client::{ClientError, Clients};
use crate::elect::Leadership;
use crate::event_batch::EventCopies;
use crate::feeds::{Feeds, follow};
use crate::inbox::{CyclePace, EngineMessage, inbox};
use crate::kinds::KindSet;
use crate::observe::Observer;
use crate::scheduler_loop::SchedulerLoop;
use crate::twin_feed::TwinFeed;
use crate::writer::write;

/// Batches of effects between engine and writer.
const BATCHES: usize = 16;
/// How long writes in flight may take at the end (C-05).
const LAST_WRITES: Duration = Duration::from_secs(5);

/// Where the parts of a leader run. Each method is called once, in this order.
pub trait LeaderThreads {
    /// Why a part cannot run.
    type Error: From<ClientError>;

    /// Starts the watches where they are to run.
    ///
    /// # Errors
    /// There is no thread, or no client.
    fn read(
        &mut self,
        follow: impl FnOnce() -> Result<Feeds, ClientError>,
    ) -> Result<Feeds, Self::Error>;

    /// Makes and runs the writer. The receiver tells its end, however that comes.
    ///
    /// # Errors
    /// There is no thread, or no client.
    fn write<W: Future<Output = ()> + Send + 'static>(
        &mut self,
        writer: impl FnOnce() -> Result<W, ClientError>,
    ) -> Result<oneshot::Receiver<()>, Self::Error>;

    /// Runs the engine. The receiver tells its end, however that comes.
    ///
    /// # Errors
    /// There is no thread.
    fn decide(
        &mut self,
        scheduler_loop: SchedulerLoop,
        engine: Engine,
    ) -> Result<oneshot::Receiver<()>, Self::Error>;
}

/// Settings of a leader.
pub struct LeaderSetup {
    /// Source of its events.
    pub component: String,
    /// Kinds that are followed beside those of [`KindSet::Core`].
    pub kinds: Vec<KindSet>,
    pub pace: CyclePace,
    /// After so many cycles every sum of the engine is computed anew and compared; 0: never.
    pub check_cycles: u64,
    pub observer: Arc<dyn Observer>,
    /// Feed of the twin. `None`: there is no twin, and nothing is copied.
    pub twin: Option<TwinFeed>,
}

/// Why a leader ended without being told to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeaderFailure {
    /// Somebody else may lead now.
    #[error("the Lease is lost")]
    LeaseLost,
    /// A watch, the engine or the writer has ended.
    #[error("{0} has died")]
    Died(&'static str),
}

/// The running parts of a leader.
pub struct LeaderWork {
    inbox: mpsc::Sender<EngineMessage>,
    feeds: Feeds,
    engine: oneshot::Receiver<()>,
    writer: oneshot::Receiver<()>,
    /// The writer ends with this value, whatever it still has.
    writing: oneshot::Sender<()>,
}

impl LeaderWork {
    /// Starts watches, writer and engine.
    ///
    /// # Errors
    /// Those of the threads.
    pub fn start<T: LeaderThreads>(
        threads: &mut T,
        clients: &Clients,
        setup: LeaderSetup,
        engine: Engine,
    ) -> Result<Self, T::Error> {
        let LeaderSetup { component, kinds, pace, check_cycles, observer, twin } = setup;
        let (inbox, receiver) = inbox();
        let (effects, batches) = mpsc::channel(BATCHES);
        let event_copies = EventCopies::of(twin.as_ref().map(TwinFeed::progress));
        let feeds = threads.read(|| {
            let clients = clients.again()?.with_copies(event_copies.clone());
            Ok(follow(&clients, &kinds, &inbox, &observer))
        })?;
        let (writing, written_enough) = oneshot::channel::<()>();
        let writer = threads.write(|| {
            let (to, observer) = (inbox.clone(), observer.clone());
            let clients = clients.for_writes()?.with_copies(event_copies);
            let writer = write(clients, component, to, batches, observer);
            Ok(async {
                tokio::select! { biased; _ = written_enough => {}, () = writer => {} }
            })
        })?;
        let scheduler_loop = SchedulerLoop {
            inbox: receiver,
            effects,
            pace,
            backlog: clients.backlog.clone(),
            n_kinds: feeds.len(),
            check_cycles,
            is_unchecked: true,
            observer,
            twin,
        };
        let engine = threads.decide(scheduler_loop, engine)?;
        Ok(Self { inbox, feeds, engine, writer, writing })
    }

    /// Returns the way to the engine.
    pub fn inbox(&self) -> &mpsc::Sender<EngineMessage> {
        &self.inbox
    }

    /// Leads until `stop`, then lets what was decided be written, and gives the Lease back.
    ///
    /// # Errors
    /// The Lease is lost, or a part has ended. Then nothing more is written.
    pub async fn lead(
        mut self,
        mut leadership: Option<Leadership>,
        stop: impl Future<Output = ()>,
    ) -> Result<(), LeaderFailure> {
        tokio::select! {
            biased;
            () = stop => {}
            () = lost(&mut leadership) => return Err(LeaderFailure::LeaseLost),
            _ = &mut self.engine => return Err(LeaderFailure::Died("the engine's thread")),
            () = self.feeds.ended() => return Err(LeaderFailure::Died("a watch")),
            _ = &mut self.writer => return Err(LeaderFailure::Died("the writer")),
        }
        tokio::select! {
            biased;
            () = self.finish() => {}
            () = lost(&mut leadership) => return Err(LeaderFailure::LeaseLost),
        }
        // Only now may somebody else decide: everything of ours is written.
        if let Some(leadership) = leadership {
            leadership.release().await;
        }
        Ok(())
    }

    /// No new decisions; those that were made are written, if that does not take too long.
    async fn finish(self) {
        let Self { inbox, feeds, engine, mut writer, writing } = self;
        drop(feeds);
        let finish = async {
            // Either may be gone already; the writer ends when the engine's side of the channel is
            // closed.
            drop(inbox.send(EngineMessage::Stop).await);
            drop(engine.await);
            drop((&mut writer).await);
        };
        if timeout(LAST_WRITES, finish).await.is_err() {
            tracing::warn!("writes in flight were given up after {LAST_WRITES:?}");
            // A binding that is answered now must not be followed by one more.
            drop(writing);
            drop(writer.await);
        }
    }
}

async fn lost(leadership: &mut Option<Leadership>) {
    match leadership {
        Some(leadership) => leadership.lost().await,
        None => std::future::pending().await,
    }
}
