//! The machine of a process in the simulation: a file in memory, one thread, the clock of the simulation,
//! no sockets and no signals.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use vc_daemon::fatal::Fatal;
use vc_daemon::meter::Meter;
use vc_daemon::run::Process;
use vc_daemon::{DumpRequests, EngineMachine, ProcessHost};
use vc_engine::EngineOptions;
use vc_kube::{Backlog, Clients, ElectionNews, EngineMessage, Observer, TwinFeed};
use vc_model::UtcOffset;

use super::config_file::MountedConfig;
use super::fault::FaultKind;
use super::findings::{Findings, ProcessObserver};
use super::process::ProcessSetup;
use crate::one_thread::OneThread;

/// The machine of one life of a process.
pub(super) struct SimulatedHost {
    /// Identity of the life in the Lease.
    pub(super) name: String,
    pub(super) setup: ProcessSetup,
    pub(super) config: MountedConfig,
}

/// The story in place of an operator: it looks at the engine, and requests no dump.
pub(super) struct StoryDumps(Arc<Findings>);

impl DumpRequests for StoryDumps {
    async fn idle(&mut self) {
        std::future::pending().await
    }

    fn run(
        self,
        _folder: Option<PathBuf>,
        inbox: mpsc::Sender<EngineMessage>,
        _meter: Arc<Meter>,
    ) -> impl Future<Output = ()> + Send + 'static {
        self.0.leads(&inbox);
        std::future::pending()
    }
}

impl ProcessHost for SimulatedHost {
    type Files = MountedConfig;
    type Dumps = StoryDumps;
    type Servers = ();
    type Threads = OneThread;

    fn files(&self) -> MountedConfig {
        self.config.clone()
    }

    fn catch_dumps(&self) -> io::Result<StoryDumps> {
        Ok(StoryDumps(self.setup.findings.clone()))
    }

    async fn serve(&self, _process: &Process, _clients: &Clients) -> Result<(), Fatal> {
        Ok(())
    }

    async fn unmark_answers(&self, _process: &Process, _clients: &Clients) {}

    fn identity(&self) -> String {
        self.name.clone()
    }

    fn stands_by(&self, _news: ElectionNews<'_>) {}

    fn threads(&self, _process: &Process, _backlog: &Backlog) -> OneThread {
        self.setup.trace.say(format_args!("{}: leads", self.name));
        self.setup.network.leads(&self.name);
        if self.setup.is_old {
            self.setup.network.strike(FaultKind::OldVersion);
        }
        OneThread::new(self.setup.process()).with_witness()
    }

    fn engine_machine(&self) -> EngineMachine {
        let seed = EngineOptions::default().seed;
        EngineMachine { seed, stopwatch: || 0, utc_offset: UtcOffset::Fixed(0), extender: None }
    }

    fn observer(&self, meter: &Arc<Meter>) -> Arc<dyn Observer> {
        let findings = &self.setup.findings;
        Arc::new(ProcessObserver::new(findings, &self.name, meter, &self.config))
    }

    fn start_twin(&self, _process: &Process) -> Result<Option<TwinFeed>, Fatal> {
        Ok(None)
    }

    fn run_beside(&self, _process: &Process, _clients: &Clients, _beside: &mut JoinSet<()>) {}
}
