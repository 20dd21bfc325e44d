//! The machine of the binary: its files, threads, signals, sockets and clocks, as the process takes
//! them. Specification: core.md 1.3-1.6.

use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use vc_daemon::run::Process;
use vc_daemon::{ConfigFiles, EngineMachine, ProcessHost};
use vc_kube::{Backlog, Clients, ElectionNews, Observer, TwinFeed};
use vc_model::UtcOffset;

use crate::answers::{self, AnswerHandle};
use crate::dump::Dumper;
use crate::fatal::Fatal;
use crate::log::Level;
use crate::meter::Meter;
use crate::serve::{self, Servers};
use crate::threads::OwnThreads;

/// The machine on which this process runs.
pub struct OwnHost {
    /// The verbosity, which a socket changes.
    pub level: Level,
    /// The way to the answers; unused without `--enable-answers`.
    pub answers: AnswerHandle,
}

/// The files of the machine.
#[derive(Clone, Copy, Debug)]
pub struct MachineFiles;

impl ConfigFiles for MachineFiles {
    fn read(&self, path: &Path) -> io::Result<String> {
        std::fs::read_to_string(path)
    }

    async fn read_aside(&self, path: &Path) -> Option<io::Result<String>> {
        let path = path.to_owned();
        // A file system that hangs must not hold up anything else.
        tokio::task::spawn_blocking(move || std::fs::read_to_string(path)).await.ok()
    }

    fn is_directory(&self, path: &Path) -> bool {
        path.is_dir()
    }
}

impl ProcessHost for OwnHost {
    type Files = MachineFiles;
    type Dumps = Dumper;
    type Servers = Servers;
    type Threads = OwnThreads;

    fn files(&self) -> MachineFiles {
        MachineFiles
    }

    fn catch_dumps(&self) -> io::Result<Dumper> {
        Dumper::install()
    }

    async fn serve(&self, process: &Process, clients: &Clients) -> Result<Servers, Fatal> {
        serve::start(&process.flags, clients, &process.meter, &self.answers).await
    }

    async fn unmark_answers(&self, process: &Process, clients: &Clients) {
        answers::unmark(clients, process.environment.pod.as_ref()).await;
    }

    fn identity(&self) -> String {
        vc_kube::identity()
    }

    fn stands_by(&self, news: ElectionNews<'_>) {
        self.answers.stands_by(news.leader);
    }

    fn threads(&self, process: &Process, backlog: &Backlog) -> OwnThreads {
        OwnThreads::new(&process.meter, backlog)
    }

    fn engine_machine(&self) -> EngineMachine {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        EngineMachine {
            seed: u64::try_from(time.as_nanos() & u128::from(u64::MAX)).unwrap_or(0),
            stopwatch,
            utc_offset: UtcOffset::Local(crate::zone::utc_offset_seconds),
            extender: Some(Arc::new(vc_kube::HttpExtender::default())),
        }
    }

    fn observer(&self, meter: &Arc<Meter>) -> Arc<dyn Observer> {
        meter.clone()
    }

    fn start_twin(&self, process: &Process) -> Result<Option<TwinFeed>, Fatal> {
        let flags = process.flags.answers.as_ref();
        let twin = flags.map(|flags| answers::start(&self.answers, flags, &process.meter));
        Ok(twin.transpose()?)
    }

    fn run_beside(&self, process: &Process, clients: &Clients, beside: &mut JoinSet<()>) {
        if process.flags.answers.is_some() {
            let pod = process.environment.pod.clone();
            beside.spawn(answers::mark(self.answers.clone(), clients.clone(), pod));
        }
        let (sockets, level) = (process.environment.socket_dir.clone(), self.level.clone());
        beside.spawn(async move { serve::socket(&sockets, level).await });
    }
}

/// Nanoseconds since the first call.
fn stopwatch() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    u64::try_from(START.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Ends at the first SIGTERM or SIGINT; the second one ends the process (core.md 1.6).
///
/// # Errors
/// The handlers cannot be installed.
pub fn signals() -> std::io::Result<impl Future<Output = ()>> {
    let (mut term, mut interrupt) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let (first, stopped) = oneshot::channel();
    tokio::spawn(async move {
        let mut first = Some(first);
        loop {
            tokio::select! { _ = term.recv() => {}, _ = interrupt.recv() => {} }
            match first.take() {
                Some(first) => drop(first.send(())),
                None => std::process::exit(1),
            }
        }
    });
    Ok(async { drop(stopped.await) })
}
