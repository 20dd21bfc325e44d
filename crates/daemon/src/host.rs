//! What a process takes from the machine that it runs on. The binary has one implementation, a
//! simulation another.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use vc_engine::{ExtenderClient, Stopwatch};
use vc_kube::{Backlog, Clients, ElectionNews, EngineMessage, LeaderThreads, Observer, TwinFeed};
use vc_model::UtcOffset;

use crate::fatal::Fatal;
use crate::meter::Meter;
use crate::run::Process;

/// The files among which the configuration file is.
pub trait ConfigFiles: Clone + Send + 'static {
    /// Returns the text of a file.
    ///
    /// # Errors
    /// It cannot be read.
    fn read(&self, path: &Path) -> io::Result<String>;

    /// Returns the text of a file, and holds up nothing else meanwhile. `None`: the process ends.
    fn read_aside(&self, path: &Path) -> impl Future<Output = Option<io::Result<String>>> + Send;

    /// True if there is a directory of this name.
    fn is_directory(&self, path: &Path) -> bool;
}

/// Requests of an operator for dumps of the cache.
pub trait DumpRequests {
    /// Says of each request that there is nothing to dump yet. Never returns.
    fn idle(&mut self) -> impl Future<Output = ()>;

    /// Dumps what the engine knows whenever that is requested. `folder`: where files are written.
    /// `None`: requests are ignored.
    fn run(
        self,
        folder: Option<PathBuf>,
        inbox: mpsc::Sender<EngineMessage>,
        meter: Arc<Meter>,
    ) -> impl Future<Output = ()> + Send + 'static;
}

/// What the engine gets from the machine.
pub struct EngineMachine {
    /// Seed from which session ids are derived.
    pub seed: u64,
    /// Clock for the durations in reports.
    pub stopwatch: Stopwatch,
    pub utc_offset: UtcOffset,
    /// Way to the service of the plugin `extender`. `None`: the service cannot be reached.
    pub extender: Option<Arc<dyn ExtenderClient>>,
}

/// The machine that a process runs on: files, threads, signals, sockets and clocks.
pub trait ProcessHost {
    type Files: ConfigFiles;
    type Dumps: DumpRequests;
    /// Running servers, which end when this is dropped.
    type Servers;
    /// The threads of a leader.
    type Threads: LeaderThreads<Error: Into<Fatal>>;

    /// Returns the files of the machine.
    fn files(&self) -> Self::Files;

    /// Catches requests for dumps from now on.
    ///
    /// # Errors
    /// They cannot be caught.
    fn catch_dumps(&self) -> io::Result<Self::Dumps>;

    /// Starts the servers that the flags ask for. The API server was not asked for anything yet.
    ///
    /// # Errors
    /// A server that is needed cannot start.
    fn serve(
        &self,
        process: &Process,
        clients: &Clients,
    ) -> impl Future<Output = Result<Self::Servers, Fatal>>;

    /// Takes back what an earlier process of this pod has told others about its answers.
    fn unmark_answers(&self, process: &Process, clients: &Clients) -> impl Future<Output = ()>;

    /// Returns the identity of the process in the Lease, unlike that of any other process.
    fn identity(&self) -> String;

    /// Takes note of an attempt to lead.
    fn stands_by(&self, news: ElectionNews<'_>);

    /// Returns the threads of a leader. Called once, when this process begins to lead.
    fn threads(&self, process: &Process, backlog: &Backlog) -> Self::Threads;

    /// Returns what the engine gets from the machine.
    fn engine_machine(&self) -> EngineMachine;

    /// Returns who counts what a leader does, which is `meter` with whatever else.
    fn observer(&self, meter: &Arc<Meter>) -> Arc<dyn Observer>;

    /// Starts the twin that answers. `None`: no flag asks for one.
    ///
    /// # Errors
    /// A thread does not start.
    fn start_twin(&self, process: &Process) -> Result<Option<TwinFeed>, Fatal>;

    /// Adds what runs beside a leader.
    fn run_beside(&self, process: &Process, clients: &Clients, beside: &mut JoinSet<()>);
}
